//! The capabilities of editor and server.

use lsp_types::{
    CompletionOptions, HoverProviderCapability, InitializeResult, MarkupKind, OneOf, RenameOptions,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, WorkDoneProgressOptions,
};
use serde_json::Value;

use crate::positions::Encoding;

/// The editor's capabilities, as far as they matter here.
///
/// It is picked out of the document piece by piece: an editor that is newer than these types, or
/// takes liberties, is served all the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Editor {
    pub encoding: Encoding,
    /// Whether hovering may show Markdown.
    pub takes_markdown: bool,
    /// Whether diagnostics may have further places.
    pub takes_related: bool,
    /// Whether diagnostics may name the version of the text.
    pub takes_versions: bool,
    /// Whether the editor asks for the range of a name before it is renamed.
    pub prepares_rename: bool,
    /// Whether the outline may be nested.
    pub takes_nested_symbols: bool,
}

impl Editor {
    /// Reads the parameters of `initialize`.
    pub fn new(params: &Value) -> Editor {
        let at = |path: &str| params.pointer(&format!("/capabilities/{path}"));
        let is_set = |path: &str| at(path).and_then(Value::as_bool).unwrap_or(false);
        let texts = |path: &str| {
            let list = at(path).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str)
        };
        Editor {
            encoding: Encoding::negotiate(texts("general/positionEncodings")),
            takes_markdown: texts("textDocument/hover/contentFormat")
                .any(|kind| kind == "markdown"),
            takes_related: is_set("textDocument/publishDiagnostics/relatedInformation"),
            takes_versions: is_set("textDocument/publishDiagnostics/versionSupport"),
            prepares_rename: is_set("textDocument/rename/prepareSupport"),
            takes_nested_symbols: is_set(
                "textDocument/documentSymbol/hierarchicalDocumentSymbolSupport",
            ),
        }
    }

    /// Returns the kind of text to answer with.
    pub fn markup(&self) -> MarkupKind {
        match self.takes_markdown {
            true => MarkupKind::Markdown,
            false => MarkupKind::PlainText,
        }
    }
}

/// Returns the answer to `initialize`.
///
/// There is no formatting: the parser passes comments over, so printing would lose them.
pub(crate) fn offer(editor: &Editor, version: &str) -> Value {
    let triggers = ["%", "@", "^", "!", "#", ".", "\""];
    let rename = match editor.prepares_rename {
        false => OneOf::Left(true),
        true => OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
    };
    let capabilities = ServerCapabilities {
        position_encoding: Some(editor.encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                ..TextDocumentSyncOptions::default()
            },
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        rename_provider: Some(rename),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(triggers.map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        ..ServerCapabilities::default()
    };
    let result = InitializeResult {
        capabilities,
        server_info: Some(ServerInfo {
            name: "tfrt".to_owned(),
            version: Some(version.to_owned()),
        }),
    };
    serde_json::to_value(result).expect("our answers have text for keys")
}
