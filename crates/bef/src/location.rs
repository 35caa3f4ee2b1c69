//! Source positions, decoded only when an error needs one.
//!
//! A record is a kind byte and its fields; records nest without padding:
//!
//! | Kind | Fields |
//! |---|---|
//! | 0 unknown | none |
//! | 1 file, line, column | string offset, line, column |
//! | 2 name | string offset, record |
//! | 3 call site | callee record, caller record |
//! | 4 fused | count, records |

use std::{fmt, ops::Range};

use crate::{
    codes,
    cursor::Cursor,
    error::BefError,
    layout::{
        LOCATION_PART_BYTES, LocationKind, LocationOffset, MAX_LOCATION_BYTES, MAX_LOCATION_DEPTH,
    },
};

/// A source position as messages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A position in a file.
    FileLineCol {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
    /// Anything else, as text.
    Opaque(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::FileLineCol { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Location::Opaque(text) => f.write_str(text),
        }
    }
}

impl From<LocationRecord> for Location {
    fn from(record: LocationRecord) -> Location {
        match record {
            LocationRecord::FileLineCol { file, line, column } => {
                Location::FileLineCol { file, line, column }
            }
            other => Location::Opaque(other.to_string()),
        }
    }
}

/// A location with all its parts.
///
/// It displays as the text of [`Location::Opaque`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocationRecord {
    /// An unknown location.
    Unknown,
    /// A position in a file.
    FileLineCol {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
    /// A named location.
    Name {
        /// The name.
        name: String,
        /// The location that has the name; [`LocationRecord::Unknown`] if there is none.
        child: Box<LocationRecord>,
    },
    /// A location in a function that was called.
    CallSite {
        /// The location in the callee.
        callee: Box<LocationRecord>,
        /// The location of the call.
        caller: Box<LocationRecord>,
    },
    /// Several locations.
    Fused(Vec<LocationRecord>),
}

impl LocationRecord {
    /// Returns the name that the location gives to what stands there.
    pub fn debug_name(&self) -> Option<&str> {
        let own_name = |record: &LocationRecord| matches!(record, LocationRecord::Name { .. });
        let named = match self {
            LocationRecord::Fused(members) => members.iter().find(|member| own_name(member))?,
            LocationRecord::CallSite { callee, .. } => callee,
            other => other,
        };
        match named {
            LocationRecord::Name { name, .. } => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for LocationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocationRecord::Unknown => f.write_str("(unknown)"),
            LocationRecord::FileLineCol { file, line, column } => {
                write!(f, "{file};{line};{column}")
            }
            LocationRecord::Name { name, child } if **child == LocationRecord::Unknown => {
                f.write_str(name)
            }
            LocationRecord::Name { name, child } => write!(f, "<{child}>({name})"),
            LocationRecord::CallSite { callee, caller } => write!(f, "<{callee}><-<{caller}>"),
            LocationRecord::Fused(members) => {
                for (position, member) in members.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    member.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

/// Reads the record at `offset`, or returns `None` past the section's end.
pub(crate) fn decode(
    bytes: &[u8],
    locations: Range<usize>,
    strings: Range<usize>,
    offset: LocationOffset,
) -> Option<LocationRecord> {
    let start = locations.start.checked_add(offset.index())?;
    if start >= locations.end {
        return None;
    }
    let mut decoder = Decoder {
        cursor: Cursor::new(bytes, start..locations.end, "invalid Locations section"),
        strings: &bytes[strings],
        left: MAX_LOCATION_BYTES,
    };
    decoder.record(0).ok()
}

/// A decoder of a record and those inside it. The gate has seen those that start where records do; others keep to its
/// limits, too.
struct Decoder<'a> {
    cursor: Cursor<'a>,
    strings: &'a [u8],
    /// The number of bytes of text that are still allowed.
    left: usize,
}

impl Decoder<'_> {
    fn record(&mut self, depth: usize) -> Result<LocationRecord, BefError> {
        if depth > MAX_LOCATION_DEPTH {
            return Err(self.error("locations nest too deep"));
        }
        self.take(LOCATION_PART_BYTES)?;
        let kind = LocationKind::from_byte(self.cursor.byte()?)
            .ok_or_else(|| self.error("unknown kind of location"))?;
        Ok(match kind {
            LocationKind::Unknown => LocationRecord::Unknown,
            LocationKind::FileLineCol => LocationRecord::FileLineCol {
                file: self.string()?,
                line: self.cursor.varint32()?,
                column: self.cursor.varint32()?,
            },
            LocationKind::Name => LocationRecord::Name {
                name: self.string()?,
                child: Box::new(self.record(depth + 1)?),
            },
            LocationKind::CallSite => LocationRecord::CallSite {
                callee: Box::new(self.record(depth + 1)?),
                caller: Box::new(self.record(depth + 1)?),
            },
            LocationKind::Fused => {
                let count = self.cursor.count(1)?;
                let mut members = Vec::new();
                for _ in 0..count {
                    members.push(self.record(depth + 1)?);
                }
                LocationRecord::Fused(members)
            }
        })
    }

    fn string(&mut self) -> Result<String, BefError> {
        let offset = self.cursor.varint32()? as usize;
        let tail = self
            .strings
            .get(offset..)
            .ok_or_else(|| self.error("string is outside"))?;
        let len = tail
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(tail.len());
        self.take(len)?;
        Ok(String::from_utf8_lossy(&tail[..len]).into_owned())
    }

    fn take(&mut self, n_bytes: usize) -> Result<(), BefError> {
        let left = self.left.checked_sub(n_bytes);
        self.left = left.ok_or_else(|| self.error("location says too much"))?;
        Ok(())
    }

    fn error(&self, message: &str) -> BefError {
        self.cursor.error(codes::LOCATION, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BefFile, BefWriter};

    fn position() -> LocationRecord {
        LocationRecord::FileLineCol {
            file: "a.cc".to_owned(),
            line: 3,
            column: 4,
        }
    }

    fn name(child: LocationRecord) -> LocationRecord {
        LocationRecord::Name {
            name: "nm".to_owned(),
            child: Box::new(child),
        }
    }

    fn call_site(callee: LocationRecord) -> LocationRecord {
        LocationRecord::CallSite {
            callee: Box::new(callee),
            caller: Box::new(position()),
        }
    }

    fn check(record: LocationRecord, text: &str, debug_name: Option<&str>) {
        assert_eq!(record.debug_name(), debug_name);
        assert_eq!(Location::from(record).to_string(), text);
    }

    #[test]
    fn locations_have_a_text_and_maybe_a_name() {
        use LocationRecord::{Fused, Unknown};
        check(Unknown, "(unknown)", None);
        check(position(), "a.cc:3:4", None);
        check(name(Unknown), "nm", Some("nm"));
        check(name(position()), "<a.cc;3;4>(nm)", Some("nm"));
        check(call_site(name(Unknown)), "<nm><-<a.cc;3;4>", Some("nm"));
        check(call_site(Unknown), "<(unknown)><-<a.cc;3;4>", None);
        check(
            Fused(vec![position(), name(Unknown)]),
            "a.cc;3;4,nm",
            Some("nm"),
        );
        check(Fused(vec![]), "", None);
    }

    #[test]
    fn what_is_read_from_within_a_record_nests_to_the_limit() {
        // The file's name, the line and the column of a position, read as kinds and their fields, hold what the next
        // position is read as. At the offsets, the innermost is two, one and none too deep.
        let at_limit = [
            // A name within a name.
            (["a", "", "b"], [2, 0, 2], 129, [1, 3, 5]),
            // The callee of the callee of a call, within a name.
            (["a", "", "b"], [3, 3, 2], 86, [1, 2, 3]),
            // The caller of a call, within a name.
            (["a", "", "b"], [3, 0, 2], 129, [1, 3, 5]),
            // A fusion of one within a fusion of one; the last is of none.
            (["abc", "d", "e"], [4, 1, 4], 130, [3, 5, 7]),
        ];
        for (strings, [file, line, column], n_positions, offsets) in at_limit {
            let mut writer = BefWriter::new();
            for string in strings {
                writer.location_strings.insert(string);
            }
            for _ in 0..n_positions {
                writer.locations.file_line_col(file, line, column);
            }
            for _ in 0..MAX_LOCATION_DEPTH {
                writer.locations.unknown();
            }
            let file = BefFile::open(writer.finish()).unwrap();
            let is_read = |offset| file.location_record(LocationOffset(offset)).is_some();
            assert_eq!(
                offsets.map(is_read),
                [false, false, true],
                "{line}, {column}"
            );
        }
    }

    #[test]
    fn what_is_read_from_within_a_record_says_as_much_as_others_may() {
        let long = "x".repeat(MAX_LOCATION_BYTES - 3 * LOCATION_PART_BYTES);
        let mut writer = BefWriter::new();
        for string in ["", "a", long.as_str()] {
            writer.location_strings.insert(string);
        }
        // The file's name is the third string, which starts at 3. Read from there, the first is a call of what the
        // second is, both in that file.
        for _ in 0..3 {
            writer.locations.file_line_col(3, 1, 3);
        }
        let file = BefFile::open(writer.finish()).unwrap();
        let is_read = |offset| file.location_record(LocationOffset(offset)).is_some();
        assert_eq!([0, 1, 2].map(is_read), [true, false, true]);
    }
}
