//! Completion: names that could stand where the cursor is.

use lsp_types::{CompletionItem, CompletionItemKind, CompletionTextEdit, TextEdit};
use tfrt_ir::{
    OpDef, Span,
    dialect::Execution,
    index::{NameTarget, Role},
    tokens::{Token, TokenKind, tokens},
};

use crate::{Checker, analysis::Analysis, hover::header, positions::LinedText};

/// The most items of a list: a longer one helps nobody.
const MAX_ITEMS: usize = 1000;

/// Returns the names that begin as the one before the cursor does.
pub(crate) fn complete(
    analysis: &Analysis,
    text: &LinedText,
    checker: &dyn Checker,
    offset: usize,
) -> Vec<CompletionItem> {
    let line = text.line_start(offset);
    let source = analysis.source.text();
    let before: Vec<Token> = tokens(&source[..offset], line).collect();
    // What is being written: a token that ends at the cursor, or nothing yet.
    let written = before
        .last()
        .filter(|token| token.span.range().end == offset);
    let read = before.last().map_or(line, |token| token.span.range().end);
    if source[read..offset].contains("//") {
        return Vec::new();
    }
    let span = written.map_or(Span::new(offset, offset), |token| token.span);
    let prefix = analysis.text(span);
    let is_first = |n_behind: usize| {
        let at = before.len().checked_sub(n_behind + 1);
        let previous = at.map(|at| before[at].kind);
        matches!(previous, None | Some(TokenKind::Mark("=" | "{" | "}")))
    };
    let found = match written.map(|token| token.kind) {
        _ if prefix.starts_with('%') => values(analysis, offset, '%'),
        _ if prefix.starts_with('^') => values(analysis, offset, '^'),
        _ if prefix.starts_with('@') => functions(analysis),
        _ if prefix.starts_with(['!', '#']) => aliases(analysis),
        Some(TokenKind::Word) if is_first(1) => operations(checker, false),
        // A string that is not closed yet.
        Some(TokenKind::Bad) if prefix.starts_with('"') && is_first(1) => operations(checker, true),
        None if is_first(0) => operations(checker, false),
        _ => Vec::new(),
    };
    let mut list: Vec<CompletionItem> = found
        .into_iter()
        .filter(|item| item.label.starts_with(prefix) && item.label != prefix)
        .take(MAX_ITEMS)
        .collect();
    for item in &mut list {
        let written = item.insert_text.take();
        item.text_edit = Some(CompletionTextEdit::Edit(TextEdit {
            range: text.range(span),
            new_text: written.unwrap_or_else(|| item.label.clone()),
        }));
    }
    list
}

fn item(label: String, kind: CompletionItemKind, detail: Option<String>) -> CompletionItem {
    CompletionItem {
        label,
        kind: Some(kind),
        detail,
        ..CompletionItem::default()
    }
}

/// Returns the values or blocks that a place sees.
fn values(analysis: &Analysis, offset: usize, sigil: char) -> Vec<CompletionItem> {
    let source = analysis.source.text();
    let spans = analysis.scopes().all_before(source, offset);
    let of_kind = spans
        .into_iter()
        .filter(|&span| analysis.text(span).starts_with(sigil));
    // Results of the operation that is being written are not there yet.
    let line = source[..offset].rfind('\n').map_or(0, |at| at + 1);
    let is_own = |span: &Span| {
        let before = source.get(line..span.range().start).map(str::trim_start);
        before.is_some_and(|before| before.is_empty() || before.starts_with('%'))
    };
    let of_kind = of_kind.filter(|span| sigil != '%' || !is_own(span));
    of_kind
        .map(|span| {
            let mut given = analysis.index.at(span.range().start);
            let ty = given.find_map(|mention| match mention.target {
                NameTarget::Value(value) => analysis
                    .module
                    .known_def(value)
                    .map(|_| analysis.module.value_type(value).to_string()),
                _ => None,
            });
            item(
                analysis.text(span).to_owned(),
                CompletionItemKind::VARIABLE,
                ty,
            )
        })
        .collect()
}

fn functions(analysis: &Analysis) -> Vec<CompletionItem> {
    let given =
        analysis.index.mentions().iter().filter(|mention| {
            mention.target == NameTarget::Symbol && mention.role == Role::Definition
        });
    given
        .map(|mention| {
            let mut around = analysis.index.enclosing(mention.span.range().start);
            let op = around.next().map(|extent| extent.op);
            let op = op.filter(|&op| analysis.module.symbol_name(op).is_some());
            item(
                analysis.text(mention.span).to_owned(),
                CompletionItemKind::FUNCTION,
                op.map(|op| header(analysis, op)),
            )
        })
        .collect()
}

fn aliases(analysis: &Analysis) -> Vec<CompletionItem> {
    let given =
        analysis.index.mentions().iter().filter(|mention| {
            mention.target == NameTarget::Alias && mention.role == Role::Definition
        });
    let aliases = given.map(|mention| analysis.text(mention.span).to_owned());
    let types = ["!tfrt.chain", "!tfrt.device", "!tfrt.string"].map(str::to_owned);
    aliases
        .chain(types)
        .map(|name| item(name, CompletionItemKind::TYPE_PARAMETER, None))
        .collect()
}

fn is_of_models(definition: &OpDef) -> bool {
    definition.execution_kind() == Execution::Compiled
}

/// Returns the operations: bare, those that have a form of their own, and those of models, which
/// get their quotes; in quotes, all.
fn operations(checker: &dyn Checker, in_quotes: bool) -> Vec<CompletionItem> {
    let quoted = |name: &str| match in_quotes {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    };
    let dialects = checker.dialects();
    let defined = dialects.definitions();
    let known = defined
        .iter()
        .filter(|definition| {
            in_quotes || definition.format_text().is_some() || is_of_models(definition)
        })
        .map(|definition| {
            let detail = Some(definition.summary_text().to_owned());
            let label = quoted(definition.name());
            let written = is_of_models(definition) && !in_quotes;
            CompletionItem {
                insert_text: written.then(|| format!("\"{label}\"")),
                ..item(label, CompletionItemKind::KEYWORD, detail)
            }
        });
    let mut list: Vec<CompletionItem> = known.collect();
    if in_quotes {
        let names = checker.kernel_names();
        let others = names
            .iter()
            .filter(|name| dialects.describe(name).is_none());
        list.extend(others.map(|name| {
            let signature = checker.kernel_signature(name);
            item(quoted(name), CompletionItemKind::KEYWORD, signature)
        }));
    }
    list
}
