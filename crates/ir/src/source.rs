//! Program text: its name, its bytes, and where its lines are.
//!
//! Offsets are bytes from the start; lines and columns start at 1 and columns
//! count bytes, as in MLIR. A [`Source`] is counted and cheap to clone, so
//! modules and diagnostics keep the text that they speak about.

use std::{
    fs, io,
    path::Path,
    sync::{Arc, OnceLock},
};

use crate::{
    codes,
    diagnostic::{Diagnostic, Diagnostics},
    location::Location,
    name::Name,
};

/// A range of bytes of a source.
///
/// The default span is empty and lies at offset 0; [`Span::is_none`] tells it
/// from spans of real text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// Makes a span; offsets beyond 4 GiB are cut, which [`crate::parse`]
    /// rules out by refusing such sources.
    pub fn new(start: usize, end: usize) -> Span {
        let cut = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span {
            start: cut(start),
            end: cut(end),
        }
    }

    /// Returns whether this is the span of something that has no text.
    pub fn is_none(self) -> bool {
        self == Span::default()
    }

    /// Returns the smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Returns the span as a range for indexing the text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A named program text.
#[derive(Clone, Debug)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: Name,
    text: String,
    line_offset: u32,
    /// The offsets at which lines start; built when first asked for.
    lines: OnceLock<Vec<u32>>,
}

impl Source {
    /// Names a text.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_ir::Source;
    ///
    /// let source = Source::new("two.mlir", "first\nsecond");
    /// assert_eq!(source.line_column(8), (2, 3));
    /// ```
    pub fn new(name: impl AsRef<str>, text: impl Into<String>) -> Source {
        Source::with_line_offset(name.as_ref().into(), text.into(), 0)
    }

    /// Names bytes that should be UTF-8.
    ///
    /// # Errors
    ///
    /// One diagnostic at the first byte that is not UTF-8.
    pub fn from_bytes(name: impl AsRef<str>, bytes: Vec<u8>) -> Result<Source, Diagnostics> {
        let name = name.as_ref();
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => {
                let bytes = error.as_bytes();
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(bytes).into_owned();
                let source = Source::new(name, text);
                let bad = bytes[valid];
                let message = format!("expected UTF-8 text, found the byte 0x{bad:02x}");
                let span = Span::new(valid, valid + char::REPLACEMENT_CHARACTER.len_utf8());
                let error = Diagnostic::error(codes::NOT_UTF8, message).at(&source, span);
                let help = match bytes {
                    [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                        "it begins like UTF-16; save it as UTF-8"
                    }
                    _ if bytes.contains(&0) => {
                        "it is no text; files of bytes for tfrt begin with the bytes 0x0b 0xef"
                    }
                    _ => "save it as UTF-8",
                };
                Err(Diagnostics::from(error.help(help)))
            }
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// One diagnostic without a position if the file cannot be read, or with
    /// one if it is not UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<Source, Diagnostics> {
        let path = path.as_ref();
        let name = path.to_string_lossy();
        let bytes = fs::read(path).map_err(|error| unreadable(&name, &error))?;
        Source::from_bytes(name, bytes)
    }

    /// Makes a source whose first line has the number `line_offset + 1`: a
    /// piece of a larger file.
    pub(crate) fn with_line_offset(name: Name, text: String, line_offset: u32) -> Source {
        Source(Arc::new(Inner {
            name,
            text,
            line_offset,
            lines: OnceLock::new(),
        }))
    }

    /// Returns the name, usually a path.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns how many lines of the file precede this text.
    pub fn line_offset(&self) -> u32 {
        self.0.line_offset
    }

    /// Returns the line and the column, both from 1, of a byte offset.
    ///
    /// Offsets behind the end count as the end.
    pub fn line_column(&self, offset: usize) -> (u32, u32) {
        let offset = Span::new(offset.min(self.text().len()), 0).start;
        let lines = self.lines();
        let index = lines.partition_point(|&start| start <= offset) - 1;
        let line = u32::try_from(index)
            .unwrap_or(u32::MAX)
            .saturating_add(1 + self.0.line_offset);
        (line, offset - lines[index] + 1)
    }

    /// Returns the byte offset of a line and column, if there are such.
    pub fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let index = line.checked_sub(self.0.line_offset + 1)?;
        let start = *self.lines().get(index as usize)?;
        let offset = start.checked_add(column.checked_sub(1)?)? as usize;
        (offset <= self.text().len()).then_some(offset)
    }

    /// Returns the range of a part of the text: a slice of [`text`](Self::text), and no copy of
    /// one, of which nothing is known.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_ir::Source;
    ///
    /// let source = Source::new("a.calc", "y = relu(x)");
    /// let (_, operation) = source.text().split_once(" = ").unwrap();
    /// assert_eq!(source.span_of(operation).range(), 4..11);
    /// assert!(source.span_of("relu").is_none());
    /// ```
    pub fn span_of(&self, part: &str) -> Span {
        let text = self.text().as_bytes().as_ptr_range();
        let part = part.as_bytes().as_ptr_range();
        match text.start <= part.start && part.end <= text.end {
            true => {
                let at = |place: *const u8| place.addr() - text.start.addr();
                Span::new(at(part.start), at(part.end))
            }
            false => Span::default(),
        }
    }

    /// Returns the location of a part of the text: see [`span_of`](Self::span_of).
    pub fn location_of(&self, part: &str) -> Location {
        self.location(self.span_of(part).start as usize)
    }

    /// Returns the location of a byte offset.
    pub fn location(&self, offset: usize) -> Location {
        let (line, column) = self.line_column(offset);
        Location::FileLineCol {
            file: self.name().clone(),
            line,
            column,
        }
    }

    /// Returns whether both are the same text in memory.
    pub fn same(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn lines(&self) -> &[u32] {
        self.0.lines.get_or_init(|| {
            let after = |(at, _): (usize, &str)| Span::new(at + 1, 0).start;
            std::iter::once(0)
                .chain(self.text().match_indices('\n').map(after))
                .collect()
        })
    }
}

fn unreadable(name: &str, error: &io::Error) -> Diagnostics {
    Diagnostics::from(Diagnostic::error(
        codes::UNREADABLE,
        format!("cannot read '{name}': {error}"),
    ))
}
