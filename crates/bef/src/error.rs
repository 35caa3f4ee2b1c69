//! [`BefError`]: where bytes stopped being a file, and why.

use std::fmt;

/// The first violated condition of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BefError {
    offset: usize,
    message: String,
}

impl BefError {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> BefError {
        BefError {
            offset,
            message: message.into(),
        }
    }

    /// Returns the distance, in bytes from the start of the file, of what violates the condition.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns what was expected and what was found.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for BefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {:#x}: {}", self.offset, self.message)
    }
}

impl std::error::Error for BefError {}
