//! [`CallSite`]: the place from which an operation was called, for errors.

use std::panic::Location;

use tfrt_host::{Error, ExecutionContext, SourceLocation};

/// The place from which an operation was called, for error messages.
#[derive(Clone, Copy, Debug)]
pub enum CallSite {
    /// Code in Rust, at this place.
    Rust(&'static Location<'static>),
    /// A kernel, whose place the execution context knows.
    Kernel,
}

impl CallSite {
    /// Returns the place of the caller in Rust code.
    #[inline]
    #[track_caller]
    pub fn here() -> CallSite {
        CallSite::Rust(Location::caller())
    }

    /// Adds the place of the call and the operation's name to an error, unless it has them. For a kernel the executor
    /// adds both when the kernel fails.
    #[cold]
    pub fn locate(self, op: &str, error: Error) -> Error {
        match self {
            CallSite::Rust(place) => error
                .with_location(SourceLocation::FileLineCol {
                    file: place.file().to_owned(),
                    line: place.line(),
                    column: place.column(),
                })
                .with_kernel(op),
            CallSite::Kernel => error,
        }
    }

    /// Locates an error that no call returns, and reports it to the diagnostic handler.
    #[cold]
    pub(crate) fn report(self, op: &str, error: Error, execution: &ExecutionContext) -> Error {
        if error.kernel().is_some() {
            // Somebody has told it.
            return error;
        }
        execution.report(self.locate(op, error))
    }
}
