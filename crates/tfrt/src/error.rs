//! [`OpenError`]: the error of a program that can't be opened; [`AnyError`]: this, or the error of a call.

use std::path::PathBuf;
use std::{error, fmt, io};

use tfrt_bef::BefError;
use tfrt_host::{Error, LoadError};
use tfrt_ir::{Diagnostic, Diagnostics, Location};
pub use tfrt_run::report::error_message;

use crate::formats::Formats;

mod problem;

pub use problem::Problem;

/// The error of a program that could not be opened: one kind for each stage that may refuse it.
///
/// # Examples
///
/// ```
/// use tfrt::{Model, OpenError};
///
/// match Model::open("nowhere.onnx") {
///     Err(OpenError::Unreadable { path, .. }) => assert_eq!(path.to_str(), Some("nowhere.onnx")),
///     other => panic!("there is no such file, but {other:?}"),
/// }
/// let error = Model::from_bytes("m.onnx", b"func.func @main() {".to_vec()).unwrap_err();
/// assert!(matches!(error, OpenError::Text(_)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file can't be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
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
    /// A dimension can't be fixed as [`OpenOptions::dim`](crate::OpenOptions::dim) asks.
    Dimension(String),
    /// The model can't be placed as [`OpenOptions::device`](crate::OpenOptions::device) asks.
    Device(String),
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
            | OpenError::Constants(_)
            | OpenError::Dimension(_)
            | OpenError::Device(_) => None,
        }
    }

    /// Returns the error of a file that was to be opened as a model, and is something else.
    pub(crate) fn not_a_model(name: &str, found: &str, formats: &Formats) -> OpenError {
        let message = format!(
            "expected a model: {}, MLIR text with a function, or what `tfrt compile` makes of these; found {found}",
            formats.names()
        );
        let place = Location::FileLineCol {
            file: name.into(),
            line: 0,
            column: 0,
        };
        let error = Diagnostic::error(tfrt_import::codes::NOT_A_MODEL, message);
        OpenError::Text(Diagnostics::from(error.at_location(place)))
    }

    /// Adds to the error of bytes that are no text that no model was found either.
    pub(crate) fn about_model(self, name: &str, formats: &Formats) -> OpenError {
        match &self {
            OpenError::Text(wrong)
                if wrong
                    .iter()
                    .any(|wrong| wrong.code() == Some(tfrt_ir::codes::NOT_UTF8)) =>
            {
                OpenError::not_a_model(name, "bytes that are none of these", formats)
            }
            _ => self,
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
            OpenError::Dimension(message) | OpenError::Device(message) => message.clone(),
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
            OpenError::NoModel | OpenError::Dimension(_) | OpenError::Device(_) => None,
            OpenError::Constants(reason) => Some(reason),
        }
    }
}

/// The error of a program that could not be opened, or of a call: for callers that treat both alike.
///
/// `Display` writes the message, with notes of a call's error in brackets. `Debug` writes the same, as `main` prints what it returns; `{:#?}` writes the parts.
///
/// # Examples
///
/// ```
/// use tfrt::{AnyError, ErrorCode, Runtime};
///
/// fn run(text: &str) -> Result<i32, AnyError> {
///     let runtime = Runtime::new();
///     let program = runtime.compile("main.mlir", text)?;
///     let main = program.function("main").expect("the text has it");
///     let values = main.call(&runtime.context(), (7,)).wait()?;
///     Ok(*values.get::<i32>(0)?)
/// }
///
/// // What is wrong with a text has a number and a place, ...
/// let error = run("func.func @main(%x: i32) -> i32 {\n  tfrt.return %y : i32\n}").unwrap_err();
/// assert_eq!(error.code(), Some("TF0201"));
/// let place = error.problems().swap_remove(0).location.unwrap();
/// assert_eq!(place.to_string(), "main.mlir:2:15");
/// assert_eq!(format!("{error:?}"), error.to_string());
///
/// // ... and what fails in a call a kind, a kernel and a place.
/// let text = "func.func @main(%x: i32) -> i32 {
///   %zero = tfrt.constant.i32 0
///   %quotient, %remainder = tfrt.div.i32 %x, %zero
///   tfrt.return %quotient : i32
/// }";
/// let problem = run(text).unwrap_err().problems().swap_remove(0);
/// assert_eq!(problem.kind, Some(ErrorCode::Unknown));
/// assert_eq!(problem.kernel.as_deref(), Some("tfrt.div.i32"));
/// assert_eq!(problem.location.unwrap().to_string(), "main.mlir:3:27");
/// ```
#[non_exhaustive]
pub enum AnyError {
    /// The program could not be opened.
    Open(OpenError),
    /// A call failed.
    Call(Error),
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyError::Open(error) => fmt::Display::fmt(error, f),
            AnyError::Call(error) => {
                fmt::Display::fmt(error, f)?;
                match error.notes() {
                    [] => Ok(()),
                    notes => write!(f, " ({})", notes.join("; ")),
                }
            }
        }
    }
}

impl fmt::Debug for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if !f.alternate() => fmt::Display::fmt(self, f),
            AnyError::Open(error) => f.debug_tuple("Open").field(error).finish(),
            AnyError::Call(error) => f.debug_tuple("Call").field(error).finish(),
        }
    }
}

impl error::Error for AnyError {
    // The message is that of the error inside, so what comes next is what that one comes from.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            AnyError::Open(error) => error.source(),
            AnyError::Call(error) => error.source(),
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
