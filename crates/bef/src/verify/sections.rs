//! Header, section table, strings, and the tables that are lists of strings.

use std::{cell::Cell, ops::Range};

use crate::{
    codes,
    cursor::{Cursor, reserve, reserved},
    error::BefError,
    file::{Section, Span},
    layout::{MAGIC, SectionId, VERSION},
    order::sort_unstable_by,
    verify::Gate,
};

const SECTION_CORRUPTED: &str = "BEF file section header corrupted";

/// Reads the header and finds the sections.
pub(super) fn sections(bytes: &[u8]) -> Result<Vec<Section>, BefError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(BefError::new(
            codes::HEADER,
            0,
            "invalid BEF file header detected",
        ));
    }
    match bytes.get(MAGIC.len()) {
        Some(&VERSION) => {}
        Some(other) => {
            let message = format!("Unknown BEF format version detected: {other}");
            return Err(BefError::new(codes::HEADER, MAGIC.len(), message));
        }
        None => {
            let message = "Unknown BEF format version detected: the file ends here";
            return Err(BefError::new(codes::HEADER, MAGIC.len(), message));
        }
    }
    let mut cursor = Cursor::new(bytes, MAGIC.len() + 1..bytes.len(), SECTION_CORRUPTED);
    let mut sections: Vec<Section> = Vec::new();
    let mut seen = [false; 256];
    while !cursor.is_at_end() {
        let start = cursor.position();
        let section = section(&mut cursor)?;
        if std::mem::replace(&mut seen[usize::from(section.id)], true) {
            let message = format!("section {} is there twice", section.id);
            return Err(cursor.error_at(codes::SECTION_HEADER, start, &message));
        }
        reserve(&mut sections, 1, start)?;
        sections.push(section);
    }
    Ok(sections)
}

/// Reads one section's header and skips its payload.
fn section(cursor: &mut Cursor<'_>) -> Result<Section, BefError> {
    let id_offset = cursor.position();
    let id = cursor.byte()?;
    let head_offset = cursor.position();
    let head = cursor.varint()?;
    if head & 1 == 1 {
        let alignment = cursor.byte()?;
        if !alignment.is_power_of_two() {
            let message = format!("alignment {alignment} is no power of two");
            return Err(cursor.error_at(codes::SECTION_HEADER, cursor.position() - 1, &message));
        }
        cursor.align(usize::from(alignment))?;
    }
    let Ok(len) = usize::try_from(head >> 1) else {
        return Err(cursor.error_at(
            codes::SECTION_HEADER,
            head_offset,
            "length exceeds the address space",
        ));
    };
    if len > cursor.remaining() {
        let message = format!(
            "section {id} has {len} bytes, but the file has {} more",
            cursor.remaining()
        );
        return Err(cursor.error_at(codes::SECTION_HEADER, head_offset, &message));
    }
    let start = cursor.position();
    cursor.take(len)?;
    if SectionId::from_byte(id).is_some() && u32::try_from(len).is_err() {
        let message = format!("section {id} exceeds 4 GiB");
        return Err(cursor.error_at(codes::SECTION_HEADER, id_offset, &message));
    }
    Ok(Section {
        id,
        start,
        end: start + len,
    })
}

impl<'a> Gate<'a> {
    /// Returns where a section lies; empty, at the end of the file, if the file lacks it.
    pub(super) fn section_range(&self, id: SectionId) -> Range<usize> {
        let mut sections = self.index.sections.iter();
        let end = self.bytes.len();
        sections
            .find(|section| section.id == id as u8)
            .map_or(end..end, |s| s.start..s.end)
    }

    /// Starts reading a section; `context` is what the message of an error starts with.
    pub(crate) fn cursor(&self, id: SectionId, context: &'static str) -> Cursor<'a> {
        Cursor::new(self.bytes, self.section_range(id), context)
    }

    /// Returns the text of a string that passed.
    pub(super) fn text(&self, span: Span) -> &'a str {
        let strings = self.section_range(SectionId::Strings);
        std::str::from_utf8(&self.bytes[strings][span.range()]).unwrap_or_default()
    }

    /// Returns a function as messages name it.
    pub(super) fn name_of(&self, function: usize) -> String {
        match self.text(self.index.functions[function].name) {
            "" => format!("region function {function}"),
            name => format!("'{name}'"),
        }
    }
}

/// The number of strings that are cached; a prime, so that strings of one length don't meet.
const N_RECENT: usize = 31;

/// A section of NUL-terminated strings.
pub(super) struct Strings {
    /// The offset of each NUL, in ascending order.
    ends: Vec<u32>,
    /// A cache of strings that were read before, each at the slot of its offset; most are read
    /// often.
    recent: [Cell<Span>; N_RECENT],
}

impl Strings {
    /// Reads the Strings section.
    pub(super) fn read(gate: &Gate<'_>) -> Result<Strings, BefError> {
        Strings::read_section(
            gate,
            SectionId::Strings,
            "invalid Strings section in BEF file",
        )
    }

    /// Checks that a section is UTF-8 and ends in a NUL.
    pub(super) fn read_section(
        gate: &Gate<'_>,
        id: SectionId,
        context: &'static str,
    ) -> Result<Strings, BefError> {
        let range = gate.section_range(id);
        let bytes = &gate.bytes[range.clone()];
        if let Err(error) = std::str::from_utf8(bytes) {
            let offset = range.start + error.valid_up_to();
            return Err(BefError::new(
                codes::STRING,
                offset,
                format!("{context}: text is not UTF-8"),
            ));
        }
        if bytes.last().is_some_and(|last| *last != 0) {
            let message = format!("{context}: the last string has no NUL");
            return Err(BefError::new(codes::STRING, range.end - 1, message));
        }
        let is_nul = |byte: &&u8| **byte == 0;
        let mut ends = reserved(bytes.iter().filter(is_nul).count(), range.start)?;
        let positions = (0u32..).zip(bytes).filter(|(_, byte)| is_nul(byte));
        ends.extend(positions.map(|(position, _)| position));
        Ok(Strings {
            ends,
            recent: Default::default(),
        })
    }

    /// Finds the string at `offset`, without its NUL.
    pub(super) fn span(&self, offset: u32) -> Option<Span> {
        let next = self.ends.partition_point(|end| *end < offset);
        let end = *self.ends.get(next)?;
        let start = if next == 0 {
            0
        } else {
            self.ends[next - 1] + 1
        };
        (start == offset).then_some(Span { start, end })
    }

    /// Reads the offset of a string.
    pub(super) fn read_span(&self, cursor: &mut Cursor<'_>) -> Result<Span, BefError> {
        let position = cursor.position();
        let offset = cursor.varint32()?;
        let slot = &self.recent[offset as usize % N_RECENT];
        let recent = slot.get();
        if recent.start == offset && recent.len() > 0 {
            return Ok(recent);
        }
        let no_string = || {
            cursor.error_at(
                codes::STRING,
                position,
                &format!("no string starts at {offset}"),
            )
        };
        let span = self.span(offset).ok_or_else(no_string)?;
        slot.set(span);
        Ok(span)
    }
}

/// Reads the Kernels section.
pub(super) fn kernel_names(gate: &mut Gate<'_>, strings: &Strings) -> Result<(), BefError> {
    let cursor = gate.cursor(SectionId::Kernels, "invalid Kernels section in BEF file");
    gate.index.kernel_names = names(cursor, strings, "kernel")?;
    Ok(())
}

/// Reads the Types section.
pub(super) fn type_names(gate: &mut Gate<'_>, strings: &Strings) -> Result<(), BefError> {
    let cursor = gate.cursor(SectionId::Types, "invalid Types section in BEF file");
    gate.index.type_names = names(cursor, strings, "type")?;
    Ok(())
}

/// Reads a section that is a list of names: of strings that are not empty.
fn names(mut cursor: Cursor<'_>, strings: &Strings, what: &str) -> Result<Vec<Span>, BefError> {
    let n_names = cursor.count(1)?;
    let mut names = reserved(n_names, cursor.position())?;
    for index in 0..n_names {
        let position = cursor.position();
        let name = strings.read_span(&mut cursor)?;
        if name.len() == 0 {
            let message = format!("{what} {index} has no name");
            return Err(cursor.error_at(codes::STRING, position, &message));
        }
        names.push(name);
    }
    cursor.finish()?;
    Ok(names)
}

/// Sorts the named functions by name.
///
/// Functions that share a string are told apart before texts are compared, and
/// strings are disjoint: so comparing takes no longer than the section is long.
pub(super) fn by_name(gate: &mut Gate<'_>) -> Result<(), BefError> {
    let functions = &gate.index.functions;
    let mut by_name = reserved(functions.len(), 0)?;
    let named = (0u32..)
        .zip(functions)
        .filter(|(_, function)| function.name.len() > 0);
    by_name.extend(named.map(|(index, _)| index));
    let name_of = |index: &u32| functions[*index as usize].name;
    sort_unstable_by(&mut by_name, |a, b| {
        let starts = name_of(a).start.cmp(&name_of(b).start);
        starts.then(b.cmp(a))
    });
    by_name.dedup_by_key(|index| name_of(index).start);
    // The order of bytes is that of the text.
    let strings = &gate.bytes[gate.section_range(SectionId::Strings)];
    let text = |index: &u32| &strings[name_of(index).range()];
    sort_unstable_by(&mut by_name, |a, b| text(a).cmp(text(b)).then(b.cmp(a)));
    gate.index.by_name = by_name;
    Ok(())
}
