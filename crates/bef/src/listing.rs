//! A listing of every byte of a file, with its meaning.
//!
//! A file is cut into pieces: a field, a table entry, a string, a record, padding. Pieces follow
//! one another without gaps from the first byte to the last.

mod bodies;
mod tables;

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use crate::{
    file::BefFile,
    layout::{LocationOffset, MAGIC, SectionId},
    varint,
};

/// A run of a file's bytes that make one field or record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The offset of the first byte from the start of the file.
    pub start: usize,
    /// The offset behind the last byte.
    pub end: usize,
    /// The section that the bytes lie in; none for those before the first.
    pub section: Option<u8>,
    /// The kind of the bytes.
    pub kind: PieceKind,
    /// The meaning of the bytes, with the names that numbers stand for.
    pub text: String,
}

/// The kind of a [`Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// Magic, version, or the head of a section.
    Head,
    /// Bytes that nobody reads.
    Padding,
    /// A part of a section's payload.
    Payload,
}

impl PieceKind {
    /// Returns the name used in documents.
    pub fn name(self) -> &'static str {
        match self {
            PieceKind::Head => "head",
            PieceKind::Padding => "padding",
            PieceKind::Payload => "payload",
        }
    }
}

/// Returns the name of a section, `unknown` if it is not one of the format's or ours.
pub fn section_name(id: u8) -> &'static str {
    SectionId::from_byte(id).map_or("unknown", SectionId::name)
}

/// Gives all pieces of `file` to `sink`, in order.
///
/// # Examples
///
/// ```
/// use tfrt_bef::{BefFile, BefWriter, listing};
///
/// let file = BefFile::open(BefWriter::new().finish())?;
/// let mut end = 0;
/// listing::list(&file, &mut |piece| {
///     assert_eq!(piece.start, end);
///     end = piece.end;
/// });
/// assert_eq!(end, file.buffer().as_bytes().len());
/// # Ok::<(), tfrt_bef::BefError>(())
/// ```
pub fn list(file: &BefFile, sink: &mut dyn FnMut(Piece)) {
    let mut lister = Lister {
        file,
        bytes: file.buffer().as_bytes(),
        start: 0,
        at: 0,
        section: None,
        locations: HashMap::new(),
        sink,
    };
    lister.file();
}

/// The most bytes of a piece's text, whatever the length of the piece: many pieces may name one
/// long name.
const PIECE_TEXT_BYTES: usize = 256;

/// Returns the first bytes of a text, at most `max_bytes`.
fn shortened(text: impl fmt::Display, max_bytes: usize) -> String {
    let mut limited = BoundedText {
        text: String::new(),
        left: max_bytes,
    };
    if write!(limited, "{text}").is_err() {
        limited.text.push_str(" ..");
    }
    limited.text
}

/// A writer of text that takes no more than so many bytes.
struct BoundedText {
    text: String,
    left: usize,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let taken = &part[..part.floor_char_boundary(self.left)];
        self.text.push_str(taken);
        self.left -= taken.len();
        match taken.len() == part.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

/// Names with commas between.
struct Names<'f>(Vec<&'f str>);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            let comma = if position > 0 { ", " } else { "" };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

/// A cursor that emits the pieces which it has passed.
struct Lister<'f, 's> {
    file: &'f BefFile,
    bytes: &'f [u8],
    /// The offset at which the current piece starts.
    start: usize,
    /// The end of the current piece so far.
    at: usize,
    section: Option<u8>,
    /// The texts of locations: kernels may share a long one.
    locations: HashMap<LocationOffset, String>,
    sink: &'s mut dyn FnMut(Piece),
}

impl Lister<'_, '_> {
    fn file(&mut self) {
        self.at = MAGIC.len();
        self.head("magic");
        self.at += 1;
        self.head(format_args!("version {}", self.bytes[self.at - 1]));
        while self.at < self.bytes.len() {
            self.section();
        }
    }

    fn section(&mut self) {
        let id = self.bytes[self.at];
        self.section = Some(id);
        self.at += 1;
        let head = self.number();
        // The gate has seen that the payload is inside.
        let len_bytes = (head >> 1) as usize;
        let name = section_name(id);
        let mut padding = 0;
        if head & 1 == 1 {
            let alignment = usize::from(self.bytes[self.at]).max(1);
            self.at += 1;
            padding = self.at.next_multiple_of(alignment) - self.at;
            self.head(format_args!(
                "section {id} {name}: {len_bytes} bytes aligned by {alignment}"
            ));
        } else {
            self.head(format_args!("section {id} {name}: {len_bytes} bytes"));
        }
        self.padding(self.at + padding);
        let end = (self.at + len_bytes).min(self.bytes.len());
        // An empty section says nothing, not even how many things it lists.
        match SectionId::from_byte(id).filter(|_| len_bytes > 0) {
            Some(SectionId::Strings | SectionId::LocationStrings) => self.strings(end),
            Some(SectionId::Attributes) => self.attributes(end),
            Some(SectionId::Kernels) => self.kernels(),
            Some(SectionId::Types) => self.types(),
            Some(SectionId::FunctionIndex) => self.function_index(),
            Some(SectionId::Functions) => self.bodies(),
            Some(SectionId::Locations) => self.locations(end),
            Some(SectionId::AttributeTypes) => self.attribute_types(),
            Some(SectionId::AttributeNames) => self.attribute_names(),
            Some(SectionId::RegisterTypes) => self.register_types(),
            Some(SectionId::NonStrict) => self.nonstrict(),
            Some(SectionId::Model) => self.model(),
            None => {}
        }
        // What none of these has read.
        self.at = end;
        self.payload("unused");
    }

    /// Ends the present piece.
    fn piece(&mut self, kind: PieceKind, text: impl fmt::Display) {
        let (start, end) = (self.start, self.at);
        self.start = end;
        if start < end {
            (self.sink)(Piece {
                start,
                end,
                section: self.section,
                kind,
                text: shortened(text, PIECE_TEXT_BYTES.max(8 * (end - start))),
            });
        }
    }

    fn head(&mut self, text: impl fmt::Display) {
        self.piece(PieceKind::Head, text);
    }

    fn payload(&mut self, text: impl fmt::Display) {
        self.piece(PieceKind::Payload, text);
    }

    /// Passes over bytes up to `end` that nobody reads.
    fn padding(&mut self, end: usize) {
        self.at = end.clamp(self.at, self.bytes.len());
        self.piece(PieceKind::Padding, "padding");
    }

    /// Reads a number of variable length; the gate has seen that it is there.
    fn number(&mut self) -> u64 {
        let rest = &self.bytes[self.at..];
        let (value, len) = varint::read(rest).unwrap_or((0, 0));
        self.at += len;
        value
    }

    /// Passes over numbers of variable length.
    fn skip(&mut self, n_numbers: usize) {
        for _ in 0..n_numbers {
            self.number();
        }
    }

    /// Reads a number that stands for an index or a count.
    fn index(&mut self) -> u32 {
        // The gate refuses larger ones.
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }
}
