//! [`ExitStatus`]: the exit status of a process that runs programs.

use std::process::ExitCode;

/// The exit status of the process. The order is that of precedence: of several, the greatest
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExitStatus {
    /// All is well.
    #[default]
    Fine = 0,
    /// The input was rejected, or a file could not be read or written.
    Rejected = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A function returned an error.
    FunctionFailed = 3,
    /// The deadline passed, or the run was interrupted.
    Cancelled = 4,
    /// A limit was exceeded.
    LimitExceeded = 5,
    /// Values leaked.
    Leaked = 6,
    /// Our own fault.
    Internal = 70,
    /// The process was interrupted, and ended at once: what a shell reports for that.
    Interrupted = 130,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}
