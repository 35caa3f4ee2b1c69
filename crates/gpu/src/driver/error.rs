//! [`GpuError`]: errors of drivers, and what follows from them.

use std::borrow::Cow;
use std::fmt;

use tfrt_host::Error;

/// Result of a driver's call.
pub type GpuResult<T> = Result<T, GpuError>;

/// An error of a driver: the call, the code, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuError {
    /// The driver's function: `cuStreamCreate`.
    pub call: &'static str,
    /// The code's name: `CUDA_ERROR_INVALID_DEVICE`.
    pub code: Cow<'static, str>,
    /// The consequence.
    pub kind: GpuErrorKind,
    /// Details: a log, a name.
    pub detail: String,
}

/// The consequence of an error of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuErrorKind {
    /// There is no such driver, or no such device.
    Unavailable,
    /// The call was wrong, and nothing has happened.
    Refused,
    /// There is no memory left.
    Exhausted,
    /// The context is lost: every call for it fails from now on.
    Sticky,
}

impl GpuError {
    /// Makes an error without detail.
    pub fn new(call: &'static str, code: &'static str, kind: GpuErrorKind) -> GpuError {
        GpuError {
            call,
            code: code.into(),
            kind,
            detail: String::new(),
        }
    }

    /// Says more.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> GpuError {
        GpuError {
            detail: detail.into(),
            ..self
        }
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GpuError { call, code, .. } = self;
        match (call.is_empty(), &*self.detail) {
            (true, detail) => f.write_str(detail),
            (false, "") => write!(f, "{call} failed with {code}"),
            (false, detail) => write!(f, "{call} failed with {code}: {detail}"),
        }
    }
}

impl std::error::Error for GpuError {}

impl From<GpuError> for Error {
    fn from(error: GpuError) -> Error {
        let message = error.to_string();
        match error.kind {
            GpuErrorKind::Unavailable => Error::unavailable(message),
            GpuErrorKind::Refused => Error::invalid_argument(message),
            GpuErrorKind::Exhausted => Error::resource_exhausted(message),
            GpuErrorKind::Sticky => Error::failed_precondition(message),
        }
    }
}
