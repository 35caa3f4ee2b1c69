//! Navigation: definitions and references of names, and the outline of a text.

use lsp_types::{DocumentHighlight, DocumentHighlightKind, DocumentSymbol, SymbolKind};
use tfrt_ir::{OpId, Span, index::Role};

use crate::{analysis::Analysis, hover::header, positions::LinedText};

/// Returns the definitions of the name at a place.
pub(crate) fn definition(analysis: &Analysis, offset: usize) -> Vec<Span> {
    match analysis.named_at(offset) {
        Some(named) => analysis.definitions(named),
        None => Vec::new(),
    }
}

/// Returns the references to the object that is named at a place.
pub(crate) fn references(analysis: &Analysis, offset: usize, with_definition: bool) -> Vec<Span> {
    let Some(named) = analysis.named_at(offset) else {
        return Vec::new();
    };
    let role = (!with_definition).then_some(Role::Use);
    analysis.mentions(named, role)
}

/// Returns the [`references`] with their roles.
pub(crate) fn highlights(
    analysis: &Analysis,
    text: &LinedText,
    offset: usize,
) -> Vec<DocumentHighlight> {
    let Some(named) = analysis.named_at(offset) else {
        return Vec::new();
    };
    let mentions = analysis.mentions_with_roles(named);
    let highlight = |span: Span, role: Role| DocumentHighlight {
        range: text.range(span),
        kind: Some(match role {
            Role::Definition => DocumentHighlightKind::WRITE,
            Role::Use => DocumentHighlightKind::READ,
        }),
    };
    let mut list: Vec<_> = mentions
        .map(|mention| highlight(mention.span, mention.role))
        .collect();
    list.dedup();
    list
}

/// Returns the functions and modules of a text, nested as they are.
pub(crate) fn symbols(analysis: &Analysis, text: &LinedText) -> Vec<DocumentSymbol> {
    let module = &analysis.module;
    let mut roots: Vec<DocumentSymbol> = Vec::new();
    // Those that are open, each with the end of its text.
    let mut open: Vec<(usize, DocumentSymbol)> = Vec::new();
    let close = |open: &mut Vec<(usize, DocumentSymbol)>, roots: &mut Vec<_>| {
        if let Some((_, symbol)) = open.pop() {
            match open.last_mut() {
                Some((_, parent)) => parent.children.get_or_insert_default().push(symbol),
                None => roots.push(symbol),
            }
        }
    };
    for extent in analysis.index.op_extents() {
        let is_module = module.op(extent.op).name() == "builtin.module";
        if !is_module && module.symbol_name(extent.op).is_none() {
            continue;
        }
        while open
            .last()
            .is_some_and(|(end, _)| *end <= extent.span.range().start)
        {
            close(&mut open, &mut roots);
        }
        let symbol = outline(analysis, text, extent.op, extent.span, is_module);
        open.push((extent.span.range().end, symbol));
    }
    while !open.is_empty() {
        close(&mut open, &mut roots);
    }
    roots
}

#[expect(deprecated, reason = "the type has no other way to be made")]
fn outline(
    analysis: &Analysis,
    text: &LinedText,
    op: OpId,
    span: Span,
    is_module: bool,
) -> DocumentSymbol {
    let data = analysis.module.op(op);
    let name = match analysis.module.symbol_name(op) {
        Some(name) if !name.is_empty() => format!("@{name}"),
        _ => data.name().to_string(),
    };
    DocumentSymbol {
        name,
        detail: (!is_module).then(|| header(analysis, op)),
        kind: match is_module {
            true => SymbolKind::MODULE,
            false => SymbolKind::FUNCTION,
        },
        tags: None,
        deprecated: None,
        range: text.range(span),
        selection_range: text.range(data.span()),
        children: None,
    }
}
