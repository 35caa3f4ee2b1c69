//! A problem as one line of JSON, for `--message-format json`.

use serde::Serialize;
use tfrt::ir::Location;
use tfrt::ir::diagnostic::{Diagnostic, Note, Position};

use super::problem::{Place, Problem};

/// Something said, where, and in the words of `--message-format full`.
#[derive(Serialize)]
pub struct Message<'m> {
    severity: &'static str,
    code: Option<&'static str>,
    message: &'m str,
    #[serde(flatten)]
    place: Lines,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'m str>,
    notes: Vec<Part>,
    help: Vec<Part>,
    rendered: String,
}

/// A note or a piece of advice.
#[derive(Serialize)]
struct Part {
    message: String,
    #[serde(flatten)]
    place: Lines,
}

/// Lines and columns count from 1, columns in bytes; the end is the first byte behind.
#[derive(Default, Serialize)]
struct Lines {
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    end_line: Option<u32>,
    end_column: Option<u32>,
}

impl Lines {
    fn new(location: &Location, position: Option<&Position>) -> Lines {
        let Some((file, line, column)) = location.file_line_col() else {
            return Lines::default();
        };
        if line == 0 {
            // The file as a whole.
            return Lines {
                file: Some(file.to_string()),
                ..Lines::default()
            };
        }
        let end = match position {
            Some(position) => position.source.line_column(position.span.range().end),
            None => (line, column),
        };
        Lines {
            file: Some(file.to_string()),
            line: Some(line),
            column: Some(column),
            end_line: Some(end.0),
            end_column: Some(end.1),
        }
    }
}

impl<'m> Message<'m> {
    /// Makes a message of a problem, what is known of its places, and how people see it.
    pub fn new(problem: &'m Problem, placed: Option<&Diagnostic>, rendered: String) -> Message<'m> {
        let unplaced = |message: &String| Part {
            message: message.clone(),
            place: Lines::default(),
        };
        let notes = match placed {
            Some(diagnostic) => {
                let notes = diagnostic.notes().iter();
                let part = |note: &Note| Part {
                    message: note.message().to_owned(),
                    place: Lines::new(note.location(), note.position()),
                };
                notes.map(part).collect()
            }
            None => problem.notes.iter().map(unplaced).collect(),
        };
        Message {
            severity: problem.severity,
            code: problem.code,
            message: &problem.message,
            place: placed.map_or_else(Lines::default, |diagnostic| {
                Lines::new(diagnostic.location(), diagnostic.position())
            }),
            location: match &problem.place {
                Place::Words(text) => Some(text),
                _ => None,
            },
            kernel: problem.kernel.as_deref(),
            notes,
            help: problem.help.iter().map(unplaced).collect(),
            rendered,
        }
    }
}
