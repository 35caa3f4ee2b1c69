//! What is told to people: everything that goes to standard error, and the same for machines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write as _};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tfrt::host::LoadProblem;
use tfrt::ir::{Diagnostic, Diagnostics, Location, Source, Span};
use tfrt::{Error, OpenError, SourceLocation};

use crate::failure::Failure;
use crate::options::Color;

/// Source files larger than this are not read for the sake of a message.
const MAX_SOURCE_BYTES: u64 = 64 << 20;

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    severity: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(flatten)]
    place: Place,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    help: Vec<String>,
}

/// Where it is wrong, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    /// A place in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
}

impl Place {
    fn new(location: Option<&SourceLocation>) -> Place {
        match location {
            None => Place::default(),
            Some(SourceLocation::FileLineCol { file, line, column }) => Place {
                file: Some(file.clone()),
                line: Some(*line),
                column: Some(*column),
                location: None,
            },
            Some(SourceLocation::Opaque(text)) => Place {
                location: Some(text.clone()),
                ..Place::default()
            },
        }
    }
}

impl Problem {
    fn new(message: String, place: Place) -> Problem {
        Problem {
            severity: "error",
            message,
            code: None,
            kernel: None,
            place,
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// An error that a kernel has reported.
    pub fn of_run(error: &Error) -> Problem {
        let message = format!("runtime error: {}", error.message());
        let kernel = error.kernel().filter(|name| !name.is_empty());
        let mut problem = Problem::new(message, Place::new(error.location()));
        problem.code = Some(error.code().name());
        problem.kernel = kernel.map(str::to_owned);
        problem.notes = kernel
            .map(|name| format!("reported by kernel '{name}'"))
            .into_iter()
            .chain(error.notes().iter().cloned())
            .collect();
        problem
    }

    fn of_load(problem: &LoadProblem) -> Problem {
        let place = Place::new(problem.location.as_ref());
        let mut told = Problem::new(problem.message.clone(), place);
        told.help.extend(problem.help.clone());
        told
    }

    fn of_text(diagnostic: &Diagnostic) -> Problem {
        let place = match diagnostic.location().file_line_col() {
            Some((file, line, column)) => Place {
                file: Some(file.to_string()),
                line: Some(line),
                column: Some(column),
                location: None,
            },
            None => Place::default(),
        };
        let notes = diagnostic.notes().iter();
        Problem {
            severity: diagnostic.severity().name(),
            notes: notes.map(|note| note.message().to_owned()).collect(),
            help: diagnostic.help_texts().to_vec(),
            ..Problem::new(diagnostic.message().to_owned(), place)
        }
    }

    /// All that is wrong with a text.
    pub fn all_of_text(diagnostics: &Diagnostics) -> Vec<Problem> {
        diagnostics.iter().map(Problem::of_text).collect()
    }

    /// All that keeps a program from being opened.
    pub fn all_of_open(error: &OpenError) -> Vec<Problem> {
        match error {
            OpenError::Text(diagnostics) => Problem::all_of_text(diagnostics),
            OpenError::Load(error) => error.problems().iter().map(Problem::of_load).collect(),
            other => vec![Problem::new(other.to_string(), Place::default())],
        }
    }
}

/// Writes to standard error, in colour or not, with lines of the source.
pub struct Talk {
    color: bool,
    /// Texts by the names that locations give them; `None` for what can't be read.
    sources: Mutex<HashMap<String, Option<Source>>>,
}

impl Talk {
    /// Decides on colours.
    pub fn new(color: Color) -> Talk {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stderr().is_terminal() && !is_set("NO_COLOR"),
        };
        Talk {
            color,
            sources: Mutex::default(),
        }
    }

    /// Keeps a text, so that messages can show lines of what came by standard input.
    pub fn remember(&self, source: &Source) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.insert(source.name().to_string(), Some(source.clone()));
    }

    /// Writes text as it is. Nothing can be done if that fails.
    pub fn say(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Says why a command stopped.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Open(error) => self.say(&self.open_error_text(error)),
            Failure::Text(diagnostics) => self.say(&diagnostics.render(self.color)),
            other => {
                if let Some(message) = other.message() {
                    self.say(&self.headed("tfrt", &message));
                }
            }
        }
    }

    /// Returns as text why a program could not be opened.
    pub fn open_error_text(&self, error: &OpenError) -> String {
        match error {
            OpenError::Text(diagnostics) => diagnostics.render(self.color),
            OpenError::Load(_) => Problem::all_of_open(error)
                .iter()
                .map(|problem| self.render(problem))
                .collect(),
            other => self.headed("tfrt", &other.to_string()),
        }
    }

    /// Returns a problem as text, with the line of the source if it can be had.
    pub fn render(&self, problem: &Problem) -> String {
        let place = &problem.place;
        let (Some(file), Some(line), Some(column)) = (&place.file, place.line, place.column) else {
            return self.render_unplaced(problem);
        };
        let diagnostic = Diagnostic::error(&*problem.message);
        let position = self.source(file).and_then(|source| {
            let start = source.offset(line, column)?;
            let rest = source.text().get(start..)?;
            Some((
                source.clone(),
                Span::new(start, start + name_len_bytes(rest)),
            ))
        });
        let diagnostic = match position {
            Some((source, span)) => diagnostic.at(&source, span),
            None => diagnostic.at_location(Location::FileLineCol {
                file: file.as_str().into(),
                line,
                column,
            }),
        };
        let diagnostic = problem.notes.iter().fold(diagnostic, Diagnostic::note);
        let diagnostic = problem.help.iter().fold(diagnostic, Diagnostic::help);
        diagnostic.render(self.color)
    }

    /// Finds the text of a file, if it can be read.
    fn source(&self, file: &str) -> Option<Source> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources
            .entry(file.to_owned())
            .or_insert_with(|| read_source(file))
            .clone()
    }

    fn render_unplaced(&self, problem: &Problem) -> String {
        let message = match &problem.place.location {
            Some(text) => format!("loc(\"{text}\"): {}", problem.message),
            None => problem.message.clone(),
        };
        let mut text = self.headed("<unknown>:0", &message);
        for (name, lines) in [("note", &problem.notes), ("help", &problem.help)] {
            for line in lines {
                writeln!(text, "{name}: {line}").expect("a String takes all text");
            }
        }
        text
    }

    /// `PREFIX: error: MESSAGE` and a line feed.
    fn headed(&self, prefix: &str, message: &str) -> String {
        if self.color {
            return format!("\x1b[1m{prefix}: \x1b[91merror\x1b[0m\x1b[1m: {message}\x1b[0m\n");
        }
        format!("{prefix}: error: {message}\n")
    }
}

/// Reads a text for the sake of a message; only what is a file, since a pipe may never end.
fn read_source(path: &str) -> Option<Source> {
    let file = File::open(path).ok()?;
    let facts = file.metadata().ok()?;
    if !facts.is_file() || facts.len() > MAX_SOURCE_BYTES {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_SOURCE_BYTES).read_to_string(&mut text).ok()?;
    Some(Source::new(path, text))
}

/// The length of the operation's name, quoted or not, at the start of a text; at least one.
fn name_len_bytes(text: &str) -> usize {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-');
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find(|c| !in_name(c)).unwrap_or(quoted.len());
        return 1 + end + usize::from(quoted[end..].starts_with('"'));
    }
    let end = text.find(|c| !in_name(c)).unwrap_or(text.len());
    end.max(text.chars().next().map_or(0, char::len_utf8).min(1))
}
