//! Diagnostics of a program: gathered, sorted, shown with the source line.
//!
//! The first line of a rendered diagnostic is `FILE:LINE:COLUMN: error: MESSAGE [CODE]`,
//! which editors and scripts understand; the line of source and the carets
//! below it are drawn by the crate `annotate-snippets`.

use std::{borrow::Cow, error, fmt};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::{
    location::Location,
    source::{Source, Span},
    visible,
};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The program is rejected.
    Error,
    /// The program is accepted, but probably not what was meant.
    Warning,
    /// A remark that was asked for.
    Remark,
}

impl Severity {
    /// Returns the word that stands before the message.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Remark => "remark",
        }
    }

    fn level(self) -> Level<'static> {
        match self {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Remark => Level::INFO,
        }
    }
}

/// A range of a source text.
#[derive(Clone, Debug)]
pub struct Position {
    /// The text.
    pub source: Source,
    /// The range in the text.
    pub span: Span,
}

/// One message on a program, with further messages that explain it.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    severity: Severity,
    /// The code; `None` for errors of a program that runs.
    code: Option<&'static str>,
    message: String,
    pos: SourcePos,
    notes: Vec<Note>,
    help: Vec<String>,
}

/// A note that explains a diagnostic, maybe at a place of its own.
#[derive(Clone, Debug)]
pub struct Note {
    message: String,
    pos: SourcePos,
}

/// The source position of a message: a range in a text at hand, or else a location.
#[derive(Clone, Debug, Default)]
struct SourcePos {
    position: Option<Position>,
    location: Location,
}

impl Diagnostic {
    /// Makes an error that has no place yet; the code is one of a `codes` module.
    pub fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, Some(code), message.into())
    }

    /// Makes a warning that has no place yet; the code is one of a `codes` module.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, Some(code), message.into())
    }

    /// Makes a remark that has no place yet; the code is one of a `codes` module.
    pub fn remark(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Remark, Some(code), message.into())
    }

    /// Makes an error of a program that runs, which no code explains.
    pub fn runtime_error(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, None, message.into())
    }

    fn new(severity: Severity, code: Option<&'static str>, message: String) -> Diagnostic {
        let (notes, help) = (Vec::new(), Vec::new());
        Diagnostic {
            severity,
            code,
            message,
            pos: SourcePos::default(),
            notes,
            help,
        }
    }

    /// Sets the position to a range of a text.
    #[must_use]
    pub fn at(mut self, source: &Source, span: Span) -> Diagnostic {
        self.pos = SourcePos::of(source, span);
        self
    }

    /// Narrows the position to a part of the range, if that is known.
    #[must_use]
    pub fn narrowed(self, source: Option<&Source>, part: Option<Span>) -> Diagnostic {
        match (source, part) {
            (Some(source), Some(span)) => self.at(source, span),
            _ => self,
        }
    }

    /// Sets the position to a location for which there is no text at hand.
    #[must_use]
    pub fn at_location(mut self, location: Location) -> Diagnostic {
        self.pos = SourcePos {
            position: None,
            location,
        };
        self
    }

    /// Adds a note without a place.
    #[must_use]
    pub fn note(mut self, message: impl Into<String>) -> Diagnostic {
        self.notes.push(Note {
            message: message.into(),
            pos: SourcePos::default(),
        });
        self
    }

    /// Adds a note that shows a place.
    #[must_use]
    pub fn note_at(
        mut self,
        message: impl Into<String>,
        source: Option<&Source>,
        span: Span,
    ) -> Diagnostic {
        let pos = source.map_or_else(SourcePos::default, |source| SourcePos::of(source, span));
        self.notes.push(Note {
            message: message.into(),
            pos,
        });
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, message: impl Into<String>) -> Diagnostic {
        self.help.push(message.into());
        self
    }

    /// Makes an error of a warning, where what it warns of is refused.
    pub fn into_error(self) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            ..self
        }
    }

    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns the code, which `tfrt explain` explains; `None` for errors of a program that runs.
    pub fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the range in a text, if there is one.
    pub fn position(&self) -> Option<&Position> {
        self.pos.position.as_ref()
    }

    /// Returns file, line and column as a location; `Unknown` without a position.
    pub fn location(&self) -> &Location {
        &self.pos.location
    }

    /// Returns the notes.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the pieces of advice.
    pub fn help_texts(&self) -> &[String] {
        &self.help
    }

    /// Returns line and column, if there is a position.
    pub fn line_column(&self) -> Option<(u32, u32)> {
        self.pos
            .location
            .file_line_col()
            .map(|(_, line, column)| (line, column))
    }

    /// Returns the diagnostic as text, in colour if asked; ends with a line feed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_ir::{Diagnostic, Source, Span};
    ///
    /// let source = Source::new("a.mlir", "tfrt.retrun\n");
    /// let error = Diagnostic::error("TF0118", "unknown").at(&source, Span::new(0, 11));
    /// let text = error.render(false);
    /// assert!(text.starts_with("a.mlir:1:1: error: unknown [TF0118]\n"));
    /// assert!(text.contains("^^^^^^^^^^^"));
    /// ```
    pub fn render(&self, color: bool) -> String {
        let renderer = renderer(color);
        let mut text = String::new();
        let (level, name) = (self.severity.level(), self.severity.name());
        let headline = self.headline();
        self.pos
            .render(&renderer, level, name, &headline, &mut text);
        for note in &self.notes {
            let line = visible::name(&note.message);
            note.pos
                .render(&renderer, Level::NOTE, "note", &line, &mut text);
        }
        for help in &self.help {
            let line = visible::name(help);
            SourcePos::default().render(&renderer, Level::HELP, "help", &line, &mut text);
        }
        text
    }

    /// Returns the first line of the text, in colour if asked; ends with a line feed.
    pub fn render_short(&self, color: bool) -> String {
        let pos = SourcePos {
            position: None,
            location: self.pos.location.clone(),
        };
        let headline = self.headline();
        let line = visible::name(&headline);
        let mut text = String::new();
        let (level, name) = (self.severity.level(), self.severity.name());
        pos.render(&renderer(color), level, name, &line, &mut text);
        text
    }

    /// Returns the message with the code at its end. One that has a code is a line, whatever the names in it; what a
    /// program reports may have several.
    fn headline(&self) -> Cow<'_, str> {
        let message = &*self.message;
        match self.code {
            None => Cow::Borrowed(message),
            Some(code) => Cow::Owned(format!("{} [{code}]", visible::name(message))),
        }
    }
}

fn renderer(color: bool) -> Renderer {
    match color {
        true => Renderer::styled(),
        false => Renderer::plain(),
    }
}

impl Note {
    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the range in a text, if there is one.
    pub fn position(&self) -> Option<&Position> {
        self.pos.position.as_ref()
    }

    /// Returns file, line and column as a location; `Unknown` without a position.
    pub fn location(&self) -> &Location {
        &self.pos.location
    }

    /// Returns line and column, if there is a position.
    pub fn line_column(&self) -> Option<(u32, u32)> {
        self.pos
            .location
            .file_line_col()
            .map(|(_, line, column)| (line, column))
    }
}

/// The bytes of a line that are shown on either side of a span.
const CONTEXT_BYTES: usize = 120;

impl SourcePos {
    fn of(source: &Source, span: Span) -> SourcePos {
        let location = source.location(span.start as usize);
        SourcePos {
            position: Some(Position {
                source: source.clone(),
                span,
            }),
            location,
        }
    }

    fn render(
        &self,
        renderer: &Renderer,
        level: Level<'_>,
        name: &str,
        message: &str,
        text: &mut String,
    ) {
        let shown = visible::name;
        let prefix = match self.location.file_line_col() {
            // A file as a whole, or a part of one that has no lines.
            Some((file, 0, _)) => format!("{}: {name}", shown(file)),
            Some((file, line, column)) => format!("{}:{line}:{column}: {name}", shown(file)),
            None => name.to_owned(),
        };
        let message = visible::text(message);
        // The renderer indents continuation lines under its own heading, so
        // only the first line is given to it as the title.
        let mut lines = message.lines();
        let title = level
            .with_name(prefix)
            .primary_title(lines.next().unwrap_or_default().to_owned());
        let group = match &self.position {
            Some(position) => {
                let (line, start, end, number) = position.window();
                let snippet = Snippet::source(without_c1(line))
                    .line_start(number)
                    .annotation(AnnotationKind::Primary.span(start..end));
                title.element(snippet)
            }
            None => annotate_snippets::Group::with_title(title),
        };
        text.push_str(&renderer.render(&[group]));
        text.push('\n');
        for line in lines {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
}

/// Returns a line with the control characters behind ASCII, which the renderer lets pass, as points of as many bytes:
/// places in the line stay what they are.
fn without_c1(line: &str) -> Cow<'_, str> {
    let is_c1 = |c| matches!(c, '\u{80}'..='\u{9f}');
    match line.contains(is_c1) {
        true => Cow::Owned(line.replace(is_c1, "\u{b7}")),
        false => Cow::Borrowed(line),
    }
}

impl Position {
    /// Returns the piece of line to show, the span within it, and its number.
    fn window(&self) -> (&str, usize, usize, usize) {
        let text = self.source.text();
        let offset = text.floor_char_boundary(self.span.range().start.min(text.len()));
        let line_start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[offset..]
            .find('\n')
            .map_or(text.len(), |at| offset + at);
        let start = text.ceil_char_boundary(line_start.max(offset.saturating_sub(CONTEXT_BYTES)));
        let end = text
            .floor_char_boundary(line_end.min(offset + CONTEXT_BYTES))
            .max(offset);
        let span_end = text.floor_char_boundary(self.span.range().end.clamp(offset, end));
        let number = self.source.line_column(offset).0 as usize;
        (
            &text[start..end],
            offset - start,
            span_end.max(offset) - start,
            number,
        )
    }
}

/// The diagnostics of one program, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    n_dropped: usize,
}

impl Diagnostics {
    /// The number of diagnostics that are kept; further ones are only counted. Remarks, which somebody asked for, are
    /// kept always.
    pub const MAX_KEPT: usize = 100;

    /// Adds a diagnostic, or counts it if there are too many.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let is_remark = diagnostic.severity == Severity::Remark;
        if self.list.len() >= Diagnostics::MAX_KEPT && !is_remark {
            self.n_dropped += 1;
            return;
        }
        self.list.push(diagnostic);
    }

    /// Adds all diagnostics of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        self.n_dropped += other.n_dropped;
        other
            .list
            .into_iter()
            .for_each(|diagnostic| self.push(diagnostic));
    }

    /// Adds advice to the diagnostic that was added last.
    pub(crate) fn help_last(&mut self, message: String) {
        if let Some(last) = self.list.last_mut() {
            last.help.push(message);
        }
    }

    /// Sorts by place in the text; diagnostics at one place keep their order.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|diagnostic| {
            diagnostic
                .position()
                .map_or(u32::MAX, |position| position.span.start)
        });
    }

    /// Returns whether further diagnostics would only be counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Diagnostics::MAX_KEPT
    }

    /// Returns whether there is no diagnostic.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the number of diagnostics that are kept.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the number of diagnostics that were only counted.
    pub fn n_dropped(&self) -> usize {
        self.n_dropped
    }

    /// Iterates over the diagnostics that are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Returns `Ok` unless one of them is an error.
    ///
    /// # Errors
    ///
    /// All of them, sorted.
    pub fn into_result(mut self) -> Result<(), Diagnostics> {
        if !self.has_errors() {
            return Ok(());
        }
        self.sort();
        Err(self)
    }

    /// Returns all diagnostics as text, in colour if asked.
    pub fn render(&self, color: bool) -> String {
        let mut text: String = self
            .list
            .iter()
            .map(|diagnostic| diagnostic.render(color))
            .collect();
        if self.n_dropped > 0 {
            text.push_str(&format!("and {} more that are not shown\n", self.n_dropped));
        }
        text
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics {
            list: vec![diagnostic],
            n_dropped: 0,
        }
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'d> IntoIterator for &'d Diagnostics {
    type Item = &'d Diagnostic;
    type IntoIter = std::slice::Iter<'d, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl error::Error for Diagnostics {}
