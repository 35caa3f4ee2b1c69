//! Locations: one record behind the other, each with strings that exist.

use crate::{
    codes,
    cursor::{Cursor, Offsets},
    error::BefError,
    layout::{
        LOCATION_PART_BYTES, LocationKind, MAX_LOCATION_BYTES, MAX_LOCATION_DEPTH, SectionId,
    },
    verify::{Gate, sections::Strings},
};

const CONTEXT: &str = "invalid Locations section in BEF file";

/// The offsets at which location records start.
pub(super) struct LocationTable {
    starts: Offsets,
    len_bytes: usize,
}

impl LocationTable {
    /// Reads the sections of locations, which may be absent.
    pub(super) fn read(gate: &Gate<'_>) -> Result<LocationTable, BefError> {
        let strings = Strings::read_section(
            gate,
            SectionId::LocationStrings,
            "invalid LocationStrings section in BEF file",
        )?;
        let mut cursor = gate.cursor(SectionId::Locations, CONTEXT);
        let base = cursor.position();
        let mut starts = Offsets::new(cursor.remaining(), base)?;
        while !cursor.is_at_end() {
            starts.insert(cursor.position() - base)?;
            let mut left = MAX_LOCATION_BYTES;
            record(&mut cursor, &strings, 0, &mut left)?;
        }
        Ok(LocationTable {
            starts,
            len_bytes: cursor.position() - base,
        })
    }

    /// Returns whether `offset` may stand in a function or kernel.
    pub(super) fn admits(&self, offset: u32) -> bool {
        offset as usize >= self.len_bytes || self.starts.contains(offset as usize)
    }
}

/// Skips one record and those inside it, whose text may have so many bytes.
fn record(
    cursor: &mut Cursor<'_>,
    strings: &Strings,
    depth: usize,
    left: &mut usize,
) -> Result<(), BefError> {
    let start = cursor.position();
    if depth > MAX_LOCATION_DEPTH {
        let message = format!("locations nest more than {MAX_LOCATION_DEPTH} deep");
        return Err(cursor.error_at(codes::LOCATION, start, &message));
    }
    let byte = cursor.byte()?;
    let Some(kind) = LocationKind::from_byte(byte) else {
        return Err(cursor.error_at(
            codes::LOCATION,
            start,
            &format!("unknown kind of location {byte}"),
        ));
    };
    let name_bytes = match kind {
        LocationKind::FileLineCol | LocationKind::Name => strings.read_span(cursor)?.len(),
        _ => 0,
    };
    let Some(rest) = left.checked_sub(LOCATION_PART_BYTES + name_bytes) else {
        let message = format!("a location says more than {MAX_LOCATION_BYTES} bytes");
        return Err(cursor.error_at(codes::LOCATION, start, &message));
    };
    *left = rest;
    match kind {
        LocationKind::Unknown => {}
        LocationKind::FileLineCol => {
            cursor.varint32()?;
            cursor.varint32()?;
        }
        LocationKind::Name => record(cursor, strings, depth + 1, left)?,
        LocationKind::CallSite => {
            record(cursor, strings, depth + 1, left)?;
            record(cursor, strings, depth + 1, left)?;
        }
        LocationKind::Fused => {
            for _ in 0..cursor.count(1)? {
                record(cursor, strings, depth + 1, left)?;
            }
        }
    }
    Ok(())
}
