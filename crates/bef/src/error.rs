//! [`BefError`]: where bytes stopped being a file, and why.

use std::fmt;

/// The first violated condition of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BefError {
    code: &'static str,
    offset: usize,
    message: String,
}

impl BefError {
    pub(crate) fn new(code: &'static str, offset: usize, message: impl Into<String>) -> BefError {
        BefError {
            code,
            offset,
            message: message.into(),
        }
    }

    /// Returns the code of the condition, one of [`codes`](crate::codes).
    pub fn code(&self) -> &'static str {
        self.code
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
        let BefError {
            code,
            offset,
            message,
        } = self;
        write!(f, "byte {offset:#x}: {message} [{code}]")
    }
}

impl std::error::Error for BefError {}
