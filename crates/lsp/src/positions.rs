//! Positions: conversion between lines and columns of the protocol, and our offsets.
//!
//! The protocol counts lines from 0, ends them at `\\n`, `\\r\\n` or `\\r`, and counts columns in
//! units that both sides agree on: of UTF-16 unless the editor offers better.

use lsp_types::{Position, PositionEncodingKind, Range};
use tfrt_ir::Span;

/// The unit of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of two bytes.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// Returns the cheapest for us of the encodings that the editor offers.
    pub fn negotiate<'a>(offered: impl Iterator<Item = &'a str>) -> Encoding {
        let mut best = Encoding::Utf16;
        for name in offered {
            match name {
                "utf-8" => return Encoding::Utf8,
                "utf-32" => best = Encoding::Utf32,
                _ => {}
            }
        }
        best
    }

    /// Returns the name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Encoding::Utf8 => character.len_utf8(),
            Encoding::Utf16 => character.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// A text with an index of its lines.
#[derive(Clone, Debug)]
pub(crate) struct LinedText {
    text: String,
    /// The offsets at which lines start; the first is 0.
    starts: Vec<usize>,
    encoding: Encoding,
}

impl LinedText {
    pub fn new(text: String, encoding: Encoding) -> LinedText {
        let mut lined = LinedText {
            text,
            starts: vec![0],
            encoding,
        };
        lined.find_lines(0);
        lined
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the offset at which the line of an offset starts.
    pub fn line_start(&self, offset: usize) -> usize {
        self.starts[self.line(offset)]
    }

    /// Returns the offset of a position; one behind the end of its line is the end of the line,
    /// one within a character its start.
    pub fn offset(&self, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else {
            return self.text.len();
        };
        let end = self.starts.get(line + 1).copied();
        let content = &self.text[start..end.unwrap_or(self.text.len())];
        let content = match end {
            Some(_) => content.trim_end_matches(['\r', '\n']),
            None => content,
        };
        let wanted = position.character as usize;
        if self.encoding == Encoding::Utf8 {
            return start + content.floor_char_boundary(wanted);
        }
        let mut column = 0;
        for (at, character) in content.char_indices() {
            column += self.encoding.width(character);
            if column > wanted {
                return start + at;
            }
        }
        start + content.len()
    }

    /// Returns the position of an offset; one behind the end is the end.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line(offset);
        let before = self.text[self.starts[line]..offset].chars();
        let column: usize = before.map(|character| self.encoding.width(character)).sum();
        Position::new(to_u32(line), to_u32(column))
    }

    /// Returns the range of a span.
    pub fn range(&self, span: Span) -> Range {
        let span = span.range();
        Range::new(self.position(span.start), self.position(span.end))
    }

    /// Replaces a range.
    pub fn replace(&mut self, range: Range, with: &str) {
        let start = self.offset(range.start);
        let end = self.offset(range.end).max(start);
        // The line before may have ended in half of what ends it now.
        let first = self.line(start).saturating_sub(1);
        self.text.replace_range(start..end, with);
        self.find_lines(first);
    }

    /// Finds all lines behind one that is known.
    fn find_lines(&mut self, known: usize) {
        self.starts.truncate(known + 1);
        let from = self.starts[known];
        let bytes = self.text.as_bytes();
        for (index, &byte) in bytes[from..].iter().enumerate() {
            let behind = from + index + 1;
            if byte == b'\n' || (byte == b'\r' && bytes.get(behind) != Some(&b'\n')) {
                self.starts.push(behind);
            }
        }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset) - 1
    }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];
    const TEXT: &str = "a\n\u{e9}\u{1f980}b\r\n\rc\u{4e16}";

    #[test]
    fn columns_count_what_was_agreed_on() {
        let at = TEXT.find('b').unwrap();
        let columns = ENCODINGS.map(|encoding| {
            let position = LinedText::new(TEXT.to_owned(), encoding).position(at);
            (position.line, position.character)
        });
        assert_eq!(columns, [(1, 6), (1, 3), (1, 2)]);
    }

    #[test]
    fn every_offset_is_found_again() {
        for encoding in ENCODINGS {
            let lined = LinedText::new(TEXT.to_owned(), encoding);
            let offsets = TEXT.char_indices().map(|(at, _)| at).chain([TEXT.len()]);
            // Between carriage return and line feed there is no position.
            for offset in offsets.filter(|&at| !TEXT[..at].ends_with("b\r")) {
                assert_eq!(lined.offset(lined.position(offset)), offset);
            }
        }
    }

    #[test]
    fn positions_outside_are_drawn_in() {
        let lined = LinedText::new(TEXT.to_owned(), Encoding::Utf16);
        let cases = [
            ((0, 99), "\n\u{e9}"),
            ((1, 2), "\u{1f980}b"),
            ((1, 99), "\r\n"),
            ((2, 1), "\rc"),
            ((3, 99), ""),
            ((99, 0), ""),
        ];
        for ((line, column), rest) in cases {
            let offset = lined.offset(Position::new(line, column));
            assert!(TEXT[offset..].starts_with(rest), "{line}:{column}");
        }
    }

    #[test]
    fn edits_leave_the_lines_that_a_new_text_has() {
        let pieces = ["", "x", "\n", "\r", "\r\n", "a\rb\nc", "\u{1f980}"];
        for encoding in ENCODINGS {
            for start in 0..=TEXT.len() {
                for end in start..=TEXT.len() {
                    for piece in pieces {
                        let mut lined = LinedText::new(TEXT.to_owned(), encoding);
                        let range = Range::new(lined.position(start), lined.position(end));
                        lined.replace(range, piece);
                        let fresh = LinedText::new(lined.text.clone(), encoding);
                        assert_eq!(lined.starts, fresh.starts, "{start} {end} {piece:?}");
                    }
                }
            }
        }
    }
}
