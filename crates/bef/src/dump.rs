//! Bytes for people: offset, field, name.

use crate::file::BefFile;

/// Returns `file` as text.
pub fn dump(file: &BefFile) -> String {
    format!("{file:?}\n")
}
