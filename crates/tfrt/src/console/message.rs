//! A problem as one line of JSON, for `--message-format json`.

use serde::Serialize;
use tfrt::ir::Location;
use tfrt::ir::diagnostic::{Diagnostic, Note, Position};

use super::problem::{Problem, SourcePos};

/// A message: its parts, its place, and the text of `--message-format full`.
#[derive(Serialize)]
pub struct Message<'m> {
    severity: &'static str,
    code: Option<&'static str>,
    message: &'m str,
    #[serde(flatten)]
    place: TextRange,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'m str>,
    notes: Vec<SubMessage>,
    help: Vec<SubMessage>,
    rendered: String,
}

/// A note or a piece of advice.
#[derive(Serialize)]
struct SubMessage {
    message: String,
    #[serde(flatten)]
    place: TextRange,
}

/// A range of a source text. Lines and columns count from 1, columns in bytes; the end is the first
/// byte behind.
#[derive(Default, Serialize)]
struct TextRange {
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    end_line: Option<u32>,
    end_column: Option<u32>,
}

impl TextRange {
    fn new(location: &Location, position: Option<&Position>) -> TextRange {
        let Some((file, line, column)) = location.file_line_col() else {
            return TextRange::default();
        };
        if line == 0 {
            // The file as a whole.
            return TextRange {
                file: Some(file.to_string()),
                ..TextRange::default()
            };
        }
        let end = match position {
            Some(position) => position.source.line_column(position.span.range().end),
            None => (line, column),
        };
        TextRange {
            file: Some(file.to_string()),
            line: Some(line),
            column: Some(column),
            end_line: Some(end.0),
            end_column: Some(end.1),
        }
    }
}

impl<'m> Message<'m> {
    /// Makes a message of a problem, its diagnostic if its place is known, and its text for people.
    pub fn new(problem: &'m Problem, placed: Option<&Diagnostic>, rendered: String) -> Message<'m> {
        let unplaced = |message: &String| SubMessage {
            message: message.clone(),
            place: TextRange::default(),
        };
        let notes = match placed {
            Some(diagnostic) => {
                let notes = diagnostic.notes().iter();
                let part = |note: &Note| SubMessage {
                    message: note.message().to_owned(),
                    place: TextRange::new(note.location(), note.position()),
                };
                notes.map(part).collect()
            }
            None => problem.notes.iter().map(unplaced).collect(),
        };
        Message {
            severity: problem.severity,
            code: problem.code,
            message: &problem.message,
            place: placed.map_or_else(TextRange::default, |diagnostic| {
                TextRange::new(diagnostic.location(), diagnostic.position())
            }),
            location: match &problem.place {
                SourcePos::Opaque(text) => Some(text),
                _ => None,
            },
            kernel: problem.kernel.as_deref(),
            notes,
            help: problem.help.iter().map(unplaced).collect(),
            rendered,
        }
    }
}
