//! Requests on texts: from parameters to answers.

use std::{collections::HashMap, io::Write, rc::Rc};

use lsp_types::{
    CompletionParams, CompletionResponse, DocumentHighlight, DocumentHighlightParams,
    DocumentSymbol, DocumentSymbolParams, DocumentSymbolResponse, GotoDefinitionParams,
    GotoDefinitionResponse, Hover, HoverContents, HoverParams, Location, MarkupContent, Position,
    PrepareRenameResponse, Range, ReferenceParams, RenameParams, SymbolInformation,
    TextDocumentIdentifier, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit,
    request::{
        Completion, DocumentHighlightRequest, DocumentSymbolRequest, GotoDefinition, HoverRequest,
        PrepareRenameRequest, References, Rename, Request,
    },
};
use serde_json::Value;
use tfrt_ir::Span;

use crate::{
    analysis::Analysis,
    completion,
    diagnostics::too_large,
    document::Document,
    hover,
    message::{Failure, code},
    navigation, rename,
    server::Server,
};

/// Answers a request.
pub(crate) fn answer<W: Write>(
    server: &mut Server<'_, W>,
    method: &str,
    params: Value,
) -> Result<Value, Failure> {
    match method {
        HoverRequest::METHOD => with::<HoverRequest>(params, |params| on_hover(server, params)),
        GotoDefinition::METHOD => {
            with::<GotoDefinition>(params, |params| on_definition(server, params))
        }
        References::METHOD => with::<References>(params, |params| on_references(server, params)),
        DocumentHighlightRequest::METHOD => {
            with::<DocumentHighlightRequest>(params, |params| on_highlight(server, params))
        }
        DocumentSymbolRequest::METHOD => {
            with::<DocumentSymbolRequest>(params, |params| on_symbols(server, params))
        }
        PrepareRenameRequest::METHOD => {
            with::<PrepareRenameRequest>(params, |params| on_prepare_rename(server, params))
        }
        Rename::METHOD => with::<Rename>(params, |params| on_rename(server, params)),
        Completion::METHOD => with::<Completion>(params, |params| on_completion(server, params)),
        _ => {
            let message = format!("'{method}' is not known");
            Err(Failure::new(code::METHOD_NOT_FOUND, message))
        }
    }
}

/// Reads parameters and writes the result.
fn with<R: Request>(
    params: Value,
    handler: impl FnOnce(R::Params) -> Result<R::Result, Failure>,
) -> Result<Value, Failure> {
    let params = serde_json::from_value(params)
        .map_err(|error| Failure::new(code::INVALID_PARAMS, error.to_string()))?;
    let result = handler(params)?;
    serde_json::to_value(result)
        .map_err(|error| Failure::new(code::INTERNAL_ERROR, error.to_string()))
}

/// A request's position in an analysed text.
struct RequestPosition<'s> {
    document: &'s Document,
    analysis: Rc<Analysis>,
    offset: usize,
}

impl RequestPosition<'_> {
    fn range(&self, span: Span) -> Range {
        self.document.text.range(span)
    }

    fn locations(&self, spans: Vec<Span>) -> Vec<Location> {
        let uri = &self.document.uri;
        let spans = spans.into_iter();
        spans
            .map(|span| Location::new(uri.clone(), self.range(span)))
            .collect()
    }
}

fn look<'s, W: Write>(
    server: &'s mut Server<'_, W>,
    place: &TextDocumentPositionParams,
) -> Result<RequestPosition<'s>, Failure> {
    look_from(server, &place.text_document, place.position)
}

fn look_from<'s, W: Write>(
    server: &'s mut Server<'_, W>,
    id: &TextDocumentIdentifier,
    position: Position,
) -> Result<RequestPosition<'s>, Failure> {
    let dialects = server.checker.dialects();
    let document = server.document(&id.uri)?;
    let Some(analysis) = document.analysis(dialects) else {
        return Err(Failure::new(code::REQUEST_FAILED, too_large().message));
    };
    let offset = document.text.offset(position);
    Ok(RequestPosition {
        document,
        analysis,
        offset,
    })
}

fn on_hover<W: Write>(
    server: &mut Server<'_, W>,
    params: HoverParams,
) -> Result<Option<Hover>, Failure> {
    let (checker, kind) = (server.checker, server.editor.markup());
    let look = look(server, &params.text_document_position_params)?;
    let found = hover::hover(&look.analysis, checker, look.offset);
    Ok(found.map(|(value, span)| Hover {
        contents: HoverContents::Markup(MarkupContent { kind, value }),
        range: Some(look.range(span)),
    }))
}

fn on_definition<W: Write>(
    server: &mut Server<'_, W>,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>, Failure> {
    let look = look(server, &params.text_document_position_params)?;
    let spans = navigation::definition(&look.analysis, look.offset);
    Ok(Some(GotoDefinitionResponse::Array(look.locations(spans))))
}

fn on_references<W: Write>(
    server: &mut Server<'_, W>,
    params: ReferenceParams,
) -> Result<Option<Vec<Location>>, Failure> {
    let look = look(server, &params.text_document_position)?;
    let with_definition = params.context.include_declaration;
    let spans = navigation::references(&look.analysis, look.offset, with_definition);
    Ok(Some(look.locations(spans)))
}

fn on_highlight<W: Write>(
    server: &mut Server<'_, W>,
    params: DocumentHighlightParams,
) -> Result<Option<Vec<DocumentHighlight>>, Failure> {
    let look = look(server, &params.text_document_position_params)?;
    let text = &look.document.text;
    Ok(Some(navigation::highlights(
        &look.analysis,
        text,
        look.offset,
    )))
}

fn on_symbols<W: Write>(
    server: &mut Server<'_, W>,
    params: DocumentSymbolParams,
) -> Result<Option<DocumentSymbolResponse>, Failure> {
    let is_nested = server.editor.takes_nested_symbols;
    let look = look_from(server, &params.text_document, Position::default())?;
    let symbols = navigation::symbols(&look.analysis, &look.document.text);
    Ok(Some(match is_nested {
        true => DocumentSymbolResponse::Nested(symbols),
        false => {
            let mut flat = Vec::new();
            flatten(symbols, &look.document.uri, None, &mut flat);
            DocumentSymbolResponse::Flat(flat)
        }
    }))
}

#[expect(deprecated, reason = "the type has no other way to be made")]
fn flatten(
    symbols: Vec<DocumentSymbol>,
    uri: &Uri,
    within: Option<&str>,
    flat: &mut Vec<SymbolInformation>,
) {
    for symbol in symbols {
        flat.push(SymbolInformation {
            name: symbol.name.clone(),
            kind: symbol.kind,
            tags: None,
            deprecated: None,
            location: Location::new(uri.clone(), symbol.range),
            container_name: within.map(str::to_owned),
        });
        let children = symbol.children.unwrap_or_default();
        flatten(children, uri, Some(&symbol.name), flat);
    }
}

fn on_prepare_rename<W: Write>(
    server: &mut Server<'_, W>,
    params: TextDocumentPositionParams,
) -> Result<Option<PrepareRenameResponse>, Failure> {
    let look = look(server, &params)?;
    let span = rename::renamed_span(&look.analysis, look.offset);
    Ok(span.map(|span| PrepareRenameResponse::Range(look.range(span))))
}

fn on_rename<W: Write>(
    server: &mut Server<'_, W>,
    params: RenameParams,
) -> Result<Option<WorkspaceEdit>, Failure> {
    let look = look(server, &params.text_document_position)?;
    let (spans, new_name) = rename::rename(&look.analysis, look.offset, &params.new_name)
        .map_err(|reason| Failure::new(code::REQUEST_FAILED, reason))?;
    let edits = spans.into_iter();
    let edits = edits.map(|span| TextEdit::new(look.range(span), new_name.clone()));
    let uri = look.document.uri.clone();
    // The address is part of an answer only; what it caches does not matter.
    #[expect(clippy::mutable_key_type, reason = "the type is the protocol's")]
    let changes = HashMap::from([(uri, edits.collect())]);
    Ok(Some(WorkspaceEdit::new(changes)))
}

fn on_completion<W: Write>(
    server: &mut Server<'_, W>,
    params: CompletionParams,
) -> Result<Option<CompletionResponse>, Failure> {
    let checker = server.checker;
    let look = look(server, &params.text_document_position)?;
    let text = &look.document.text;
    let items = completion::complete(&look.analysis, text, checker, look.offset);
    Ok(Some(CompletionResponse::Array(items)))
}
