//! [`BefError`]: the place where bytes stopped being a file, and the reason.

use std::fmt;

/// The first violated condition of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BefError(Box<Violation>);

/// The fields of a [`BefError`], boxed, so that functions which read a byte return a word or two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    code: &'static str,
    offset: usize,
    message: String,
}

impl BefError {
    #[cold]
    pub(crate) fn new(code: &'static str, offset: usize, message: impl Into<String>) -> BefError {
        BefError(Box::new(Violation {
            code,
            offset,
            message: message.into(),
        }))
    }

    /// Returns the code of the condition, one of [`codes`](crate::codes).
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Returns the distance, in bytes from the start of the file, of what violates the condition.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// Returns the message: what was expected and what was found.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for BefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            code,
            offset,
            message,
        } = &*self.0;
        write!(f, "byte {offset:#x}: {message} [{code}]")
    }
}

impl std::error::Error for BefError {}
