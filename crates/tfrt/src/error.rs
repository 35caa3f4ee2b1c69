//! [`OpenError`]: why a program can't be had; [`AnyError`]: that, or why a call failed.

use std::path::PathBuf;
use std::{error, fmt, io};

use tfrt_bef::BefError;
use tfrt_host::{Error, LoadError};
use tfrt_ir::Diagnostics;
pub use tfrt_run::report::error_message;

mod problem;

pub use problem::Problem;

/// Why a program could not be opened: one kind for each stage that may refuse it.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file can't be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// The text is not a program: all that is wrong with it, with places.
    Text(Diagnostics),
    /// The bytes are not a program.
    Bytes {
        /// The name under which they were read.
        name: String,
        /// The first condition that they break.
        reason: BefError,
    },
    /// The program does not fit the kernels: all misfits.
    Load(LoadError),
    /// The program does not say that it is a model.
    NoModel,
    /// The constants of a model can't be made.
    Constants(Error),
}

impl OpenError {
    /// Returns the code, if there is a single one: of a file that can't be read, or of bytes.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            OpenError::Unreadable { reason, .. } => Some(match reason.kind() {
                io::ErrorKind::FileTooLarge => tfrt_ir::codes::TOO_LARGE,
                _ => tfrt_ir::codes::UNREADABLE,
            }),
            OpenError::Bytes { reason, .. } => Some(reason.code()),
            OpenError::Text(_)
            | OpenError::Load(_)
            | OpenError::NoModel
            | OpenError::Constants(_) => None,
        }
    }

    /// Returns what is wrong, without the code.
    pub fn message(&self) -> String {
        match self {
            OpenError::Unreadable { path, reason } => format!(
                "cannot open input file '{}': {}",
                path.display(),
                error_message(reason)
            ),
            OpenError::Text(diagnostics) => diagnostics.to_string(),
            OpenError::Bytes { name, reason } => {
                let (offset, message) = (reason.offset(), reason.message());
                format!("{name}: byte {offset:#x}: {message}")
            }
            OpenError::Load(error) => error.to_string(),
            OpenError::NoModel => {
                "the program has no function that is called with named inputs, as a model's is"
                    .to_owned()
            }
            OpenError::Constants(error) => {
                format!(
                    "the constants of the model can't be made: {}",
                    error.message()
                )
            }
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        match self.code() {
            Some(code) => write!(f, " [{code}]"),
            None => Ok(()),
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            OpenError::Unreadable { reason, .. } => Some(reason),
            OpenError::Text(reason) => Some(reason),
            OpenError::Bytes { reason, .. } => Some(reason),
            OpenError::Load(reason) => Some(reason),
            OpenError::NoModel => None,
            OpenError::Constants(reason) => Some(reason),
        }
    }
}

/// Why a program could not be opened, or why a call of it failed: for callers that treat both
/// alike.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyError {
    /// It could not be opened.
    Open(OpenError),
    /// A call failed.
    Call(Error),
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyError::Open(error) => error.fmt(f),
            AnyError::Call(error) => error.fmt(f),
        }
    }
}

impl error::Error for AnyError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            AnyError::Open(error) => Some(error),
            AnyError::Call(error) => Some(error),
        }
    }
}

impl From<OpenError> for AnyError {
    fn from(error: OpenError) -> Self {
        AnyError::Open(error)
    }
}

impl From<Error> for AnyError {
    fn from(error: Error) -> Self {
        AnyError::Call(error)
    }
}
