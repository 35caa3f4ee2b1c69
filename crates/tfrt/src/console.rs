//! [`Console`]: messages on standard error, for people or, as lines of JSON, for machines.

pub mod json;
mod message;
mod problem;
mod progress;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tfrt::OpenError;
use tfrt::ir::{Diagnostic, Diagnostics, Location, Source, Span, visible};

use crate::failure::Failure;
use crate::options::{Color, MessageFormat};

use message::Message;
use problem::SourcePos;

pub use problem::{Problem, ProblemSource};
pub use progress::Progress;

/// Source files larger than this are not read for the sake of a message.
const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// The writer of all messages to standard error, in colour or not, with lines of the source.
pub struct Console {
    color: bool,
    format: MessageFormat,
    /// The texts of sources by the names that locations give them; `None` for what can't be read.
    sources: Mutex<HashMap<String, Option<Source>>>,
    /// Whether files are read that locations name.
    reads_files: AtomicBool,
    /// Whether the command is about a model.
    is_of_model: AtomicBool,
    /// Whether somebody has begun to write the document that was asked for.
    has_document: AtomicBool,
}

impl Console {
    /// Makes a console, and decides on colours.
    pub fn new(color: Color, format: MessageFormat) -> Console {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stderr().is_terminal() && !is_set("NO_COLOR"),
        };
        Console {
            color: color && format != MessageFormat::Json,
            format,
            sources: Mutex::default(),
            reads_files: AtomicBool::new(true),
            is_of_model: AtomicBool::new(false),
            has_document: AtomicBool::new(false),
        }
    }

    /// Returns the form of messages.
    #[cfg(feature = "dist")]
    pub fn format(&self) -> MessageFormat {
        self.format
    }

    /// Remembers that the command is about a model, of which its document is.
    pub fn about_model(&self) {
        // Ordering: a flag on its own.
        self.is_of_model.store(true, Ordering::Relaxed);
    }

    /// Returns whether the command is about a model.
    pub fn is_of_model(&self) -> bool {
        // Ordering: a flag on its own.
        self.is_of_model.load(Ordering::Relaxed)
    }

    /// Asks to write the command's document; only the first who asks may.
    pub fn begin_document(&self) -> bool {
        // Ordering: a flag on its own.
        !self.has_document.swap(true, Ordering::Relaxed)
    }

    /// Reads no more files for the sake of messages: a stranger's program may name any. Texts that are remembered
    /// are shown still.
    pub fn read_no_files(&self) {
        // Ordering: a flag on its own.
        self.reads_files.store(false, Ordering::Relaxed);
    }

    /// Keeps a text, so that messages can show lines of what came by standard input.
    pub fn remember(&self, source: &Source) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.insert(source.name().to_string(), Some(source.clone()));
    }

    /// Shows on a terminal what is being waited for, if it takes its time, until the value is dropped.
    pub fn progress(&self, what: &str) -> Progress {
        let is_shown = self.format == MessageFormat::Full && io::stderr().is_terminal();
        Progress::new(is_shown.then(|| what.to_owned()), progress::PATIENCE)
    }

    /// Shows on a terminal how much of a long work is done, which [`Progress::say`] tells; not where results are lines
    /// of the same terminal.
    pub fn count(&self, has_lines: bool) -> Progress {
        let is_mixed = has_lines && io::stdout().is_terminal();
        let is_shown = self.format == MessageFormat::Full && io::stderr().is_terminal();
        let what = (is_shown && !is_mixed).then(String::new);
        Progress::new(what, progress::PATIENCE_OF_COUNTS)
    }

    /// Writes text as it is. Nothing can be done if that fails.
    pub fn say(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Says something that is no problem: a line of JSON, or a text for people.
    pub fn document(&self, document: &impl Serialize, text: impl FnOnce() -> String) {
        self.say(&self.text_of(document, text));
    }

    /// Returns the text that [`document`](Self::document) writes.
    pub fn text_of(&self, document: &impl Serialize, text: impl FnOnce() -> String) -> String {
        match self.format {
            MessageFormat::Json => format!("{}\n", json::line(document)),
            _ => visible::text(&text()).into_owned(),
        }
    }

    /// Tells what is wrong with the command line, in the words of the library that has read it: paragraphs, of which
    /// the first says what is wrong, and some give advice.
    pub fn usage(&self, text: &str) {
        let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paragraphs = text.split("\n\n");
        let first = paragraphs.next().unwrap_or_default();
        let message = joined(first.strip_prefix("error: ").unwrap_or(first));
        let mut problem = Problem::of_command(None, message);
        let tips = paragraphs.filter_map(|paragraph| paragraph.trim_start().strip_prefix("tip: "));
        problem.help.extend(tips.map(joined));
        let message = Message::new(&problem, None, visible::text(text).into_owned());
        self.say(&format!("{}\n", json::line(&message)));
    }

    /// Tells why a command stopped.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Open(error) => self.open_error(error),
            Failure::Text(diagnostics) => self.diagnostics(diagnostics),
            other => Problem::all_of_failure(other)
                .iter()
                .for_each(|problem| self.tell(problem)),
        }
    }

    /// Tells why a program could not be opened.
    pub fn open_error(&self, error: &OpenError) {
        if let OpenError::Text(diagnostics) = error {
            return self.diagnostics(diagnostics);
        }
        Problem::all_of_open(error)
            .iter()
            .for_each(|problem| self.tell(problem));
    }

    /// Tells the diagnostics of a text.
    pub fn diagnostics(&self, diagnostics: &Diagnostics) {
        Problem::all_of_text(diagnostics)
            .iter()
            .for_each(|problem| self.tell(problem));
        let n_dropped = diagnostics.n_dropped();
        let is_json = self.format == MessageFormat::Json;
        if n_dropped > 0 && !is_json {
            self.say(&format!("and {n_dropped} more that are not shown\n"));
        } else if diagnostics.is_full() && diagnostics.has_errors() && !is_json {
            self.say("no more is looked for after so many errors\n");
        }
    }

    /// Tells a problem, in the form that was asked for.
    pub fn tell(&self, problem: &Problem) {
        let placed = self.placed(problem);
        let is_short = self.format == MessageFormat::Short;
        let text = match (&placed, is_short) {
            (Some(diagnostic), false) => diagnostic.render(self.color),
            (Some(diagnostic), true) => diagnostic.render_short(self.color),
            (None, _) => self.render_unplaced(problem, is_short),
        };
        if self.format != MessageFormat::Json {
            return self.say(&text);
        }
        let message = Message::new(problem, placed.as_ref(), text);
        self.say(&format!("{}\n", json::line(&message)));
    }

    /// Returns a problem as a diagnostic, if its place is a line of a file.
    fn placed(&self, problem: &Problem) -> Option<Diagnostic> {
        if let ProblemSource::Text(diagnostic) = &problem.origin {
            return Some(Diagnostic::clone(diagnostic));
        }
        let SourcePos::File { file, line, column } = &problem.place else {
            return None;
        };
        let message = &*problem.message;
        let diagnostic = match problem.shown_code() {
            Some(code) => Diagnostic::error(code, message),
            None => Diagnostic::runtime_error(message),
        };
        let position = self.source(file).and_then(|source| {
            let start = source.offset(*line, *column)?;
            let rest = source.text().get(start..)?;
            let span = Span::new(start, start + name_len_bytes(rest));
            Some((source.clone(), span))
        });
        let diagnostic = match position {
            Some((source, span)) => diagnostic.at(&source, span),
            None => diagnostic.at_location(Location::FileLineCol {
                file: file.as_str().into(),
                line: *line,
                column: *column,
            }),
        };
        let diagnostic = problem.notes.iter().fold(diagnostic, Diagnostic::note);
        Some(problem.help.iter().fold(diagnostic, Diagnostic::help))
    }

    /// Finds the text of a file, if it can be read.
    pub fn source(&self, file: &str) -> Option<Source> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources
            .entry(file.to_owned())
            .or_insert_with(|| {
                // Ordering: a flag on its own.
                let may_read = self.reads_files.load(Ordering::Relaxed);
                may_read.then(|| read_source(file)).flatten()
            })
            .clone()
    }

    /// Returns the files whose texts were read.
    pub fn files_read(&self) -> Vec<PathBuf> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let read = sources.iter().filter(|(_, source)| source.is_some());
        read.map(|(name, _)| name.into()).collect()
    }

    fn render_unplaced(&self, problem: &Problem, is_short: bool) -> String {
        let node = match &problem.place {
            SourcePos::Opaque(text) => node_of_model(text),
            _ => None,
        };
        let name = visible::name;
        let prefix = match (node, &problem.origin) {
            (Some((file, _)), _) => &name(file),
            (None, ProblemSource::Command) => "tfrt",
            _ => "<unknown>:0",
        };
        let message = match (&problem.place, node) {
            (_, Some((_, node))) => format!("node '{}': {}", name(node), problem.message),
            (SourcePos::Opaque(text), None) => {
                format!("loc(\"{}\"): {}", name(text), problem.message)
            }
            _ => problem.message.clone(),
        };
        // What has a code is a line, whatever the names in it; what a program reports may have several.
        let message = match problem.shown_code() {
            None if is_short => name(&message),
            None => visible::text(&message),
            Some(code) => format!("{} [{code}]", name(&message)).into(),
        };
        let mut text = self.headed(prefix, &message);
        if is_short {
            return text;
        }
        for (title, lines) in [("note", &problem.notes), ("help", &problem.help)] {
            for line in lines {
                writeln!(text, "{title}: {}", name(line)).expect("a String takes all text");
            }
        }
        text
    }

    /// Returns `PREFIX: error: MESSAGE` and a line feed, in colours if they are wanted.
    fn headed(&self, prefix: &str, message: &str) -> String {
        if self.color {
            return format!("\x1b[1m{prefix}: \x1b[91merror\x1b[0m\x1b[1m: {message}\x1b[0m\n");
        }
        format!("{prefix}: error: {message}\n")
    }
}

/// Returns the file and the node that a place in a model speaks of: `<model.onnx;0;8>(encoder/add)`, where files have
/// no lines.
fn node_of_model(place: &str) -> Option<(&str, &str)> {
    let (file, node) = place
        .strip_prefix('<')?
        .strip_suffix(')')?
        .split_once(">(")?;
    let (file, _) = file.rsplit_once(';')?;
    Some((file.strip_suffix(";0")?, node))
}

/// Reads a text for the sake of a message; only what is a file, since a pipe may never end.
fn read_source(path: &str) -> Option<Source> {
    // A pipe might never be opened.
    let facts = fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > MAX_SOURCE_BYTES {
        return None;
    }
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(MAX_SOURCE_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(Source::new(path, text))
}

/// Returns the length of the operation's name, quoted or not, at the start of a text; at least one.
fn name_len_bytes(text: &str) -> usize {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-');
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find(|c| !in_name(c)).unwrap_or(quoted.len());
        return 1 + end + usize::from(quoted[end..].starts_with('"'));
    }
    let end = text.find(|c| !in_name(c)).unwrap_or(text.len());
    end.max(text.chars().next().map_or(0, char::len_utf8).min(1))
}

/// Says how many there are of something: `1 kernel`, `2 kernels`.
pub fn counted(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// Returns a time in words, with three digits: `8.42 ns`, `1.23 ms`.
pub fn duration(ns: f64) -> String {
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    // What is rounded up to the next unit is told in that.
    let fits = |(_, size): &(&str, f64)| ns >= 0.9995 * size;
    let (unit, size) = units.into_iter().rev().find(fits).unwrap_or(units[0]);
    let number = ns / size;
    match number {
        _ if ns == 0.0 => "0 ns".to_owned(),
        ..9.995 => format!("{number:.2} {unit}"),
        ..99.95 => format!("{number:.1} {unit}"),
        _ => format!("{number:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, node_of_model};

    #[test]
    fn nodes_of_models_are_told_from_lines_of_texts() {
        let place = node_of_model("<a;b.onnx;0;8>(encoder/add)");
        assert_eq!(place, Some(("a;b.onnx", "encoder/add")));
        assert_eq!(node_of_model("<a.mlir;3;8>(add)"), None);
        assert_eq!(node_of_model("add"), None);
    }

    #[test]
    fn times_have_three_digits() {
        let cases = [
            (0.0, "0 ns"),
            (1.234, "1.23 ns"),
            (842.0, "842 ns"),
            (999.7, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (9_996.0, "10.0 µs"),
            (123_456_789.0, "123 ms"),
            (61e9, "61.0 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }
}
