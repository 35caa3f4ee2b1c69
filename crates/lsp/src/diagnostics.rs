//! Diagnostics of a text in the protocol's form.

use lsp_types::{DiagnosticRelatedInformation, DiagnosticSeverity, NumberOrString, Range, Uri};
use tfrt_ir::{Diagnostic, Diagnostics, Location, Severity, Span};

use crate::{Checker, analysis::Analysis, document::MAX_ANALYSED_BYTES, positions::LinedText};

/// A text with its address, whose diagnostics are converted.
pub(crate) struct DiagnosedText<'d> {
    pub uri: &'d Uri,
    pub text: &'d LinedText,
    pub analysis: &'d Analysis,
    /// Whether the editor shows notes at places of their own.
    pub takes_related: bool,
}

impl DiagnosedText<'_> {
    /// Returns all diagnostics of the text.
    pub fn diagnostics(&self, checker: &dyn Checker) -> Vec<lsp_types::Diagnostic> {
        let Analysis {
            source,
            module,
            diagnostics,
            ..
        } = self.analysis;
        let later = match diagnostics.has_errors() {
            true => Diagnostics::default(),
            false => checker.problems(source, module),
        };
        let all = diagnostics.iter().chain(&later);
        let mut list: Vec<_> = all.map(|diagnostic| self.convert(diagnostic)).collect();
        let n_dropped = diagnostics.n_dropped() + later.n_dropped();
        if n_dropped > 0 {
            let message = format!("there are {n_dropped} more that are not shown");
            list.push(about_all(DiagnosticSeverity::INFORMATION, message));
        }
        list
    }

    /// Puts a diagnostic into the protocol's form.
    fn convert(&self, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
        let mut message = diagnostic.message().to_owned();
        let span = self.span(diagnostic).unwrap_or_else(|| {
            // Of another file, or of none.
            let location = diagnostic.location();
            if *location != Location::Unknown {
                message = format!("{location}: {message}");
            }
            Span::default()
        });
        let mut related = Vec::new();
        for note in diagnostic.notes() {
            match note.position() {
                Some(position) if position.source.same(&self.analysis.source) => {
                    let range = self.text.range(position.span);
                    if self.takes_related {
                        related.push(self.related(note.message(), range));
                    } else {
                        let line = range.start.line + 1;
                        message += &format!("\nnote: {} (line {line})", note.message());
                    }
                }
                _ => message += &format!("\nnote: {}", note.message()),
            }
        }
        for help in diagnostic.help_texts() {
            message += &format!("\nhelp: {help}");
        }
        lsp_types::Diagnostic {
            range: self.text.range(span),
            severity: Some(severity(diagnostic.severity())),
            code: diagnostic
                .code()
                .map(|code| NumberOrString::String(code.to_owned())),
            source: Some("tfrt".to_owned()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..lsp_types::Diagnostic::default()
        }
    }

    fn related(&self, message: &str, range: Range) -> DiagnosticRelatedInformation {
        DiagnosticRelatedInformation {
            location: lsp_types::Location::new(self.uri.clone(), range),
            message: message.to_owned(),
        }
    }

    /// Returns the range in this text that a diagnostic belongs to.
    fn span(&self, diagnostic: &Diagnostic) -> Option<Span> {
        let source = &self.analysis.source;
        if let Some(position) = diagnostic.position() {
            return position.source.same(source).then_some(position.span);
        }
        let location = diagnostic.location();
        if let Some((file, line, column)) = location.file_line_col()
            && *file == **source.name()
            && let Some(offset) = source.offset(line, column)
            && source.text().is_char_boundary(offset)
        {
            let token = self.analysis.token_at(offset);
            return Some(token.map_or(Span::new(offset, offset), |token| token.span));
        }
        // The text may say that an operation is from elsewhere.
        let module = &self.analysis.module;
        let is_same = |other: &Location| match location {
            Location::Unknown => false,
            Location::Opaque(text) => other.to_string() == **text,
            _ => other == location,
        };
        let mut extents = self.analysis.index.op_extents().iter();
        let found = extents.find(|extent| is_same(module.op(extent.op).location()))?;
        Some(module.op(found.op).span())
    }
}

/// Returns the diagnostic of a text that is too large to be analysed.
pub(crate) fn too_large() -> lsp_types::Diagnostic {
    let message = format!(
        "the text is larger than {MAX_ANALYSED_BYTES} bytes, and not looked at here; 'tfrt check' \
         does"
    );
    about_all(DiagnosticSeverity::INFORMATION, message)
}

/// Returns the diagnostic of a fault of the server.
pub(crate) fn fault() -> lsp_types::Diagnostic {
    let message = "this text has met a fault of tfrt itself; please report it".to_owned();
    about_all(DiagnosticSeverity::ERROR, message)
}

fn about_all(severity: DiagnosticSeverity, message: String) -> lsp_types::Diagnostic {
    lsp_types::Diagnostic {
        severity: Some(severity),
        source: Some("tfrt".to_owned()),
        message,
        ..lsp_types::Diagnostic::default()
    }
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Remark => DiagnosticSeverity::INFORMATION,
    }
}
