//! [`LimitReached`]: what ended a command early, whether a limit of its options or Ctrl-C.

use std::time::Duration;

use tfrt::ErrorCode;

use super::{ExitStatus, Failure};

/// Something that ended a command before its work was done. Exit status and advice follow from it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// Ctrl-C came before anything was called.
    Interrupted,
    /// The process was still at work after twice this deadline.
    Time(Duration),
    /// There was no thread to watch the time of a stranger's program: the operating system refused it.
    NoWatchdog(String),
    /// `--max-memory`, in bytes.
    Memory(usize),
    /// The bytes of `--allocator fixed:BYTES`.
    Allocator(usize),
    /// `--max-depth`.
    Depth(u32),
    /// `--max-steps`.
    Steps(u64),
    /// The bytes that a program may print with `--json`.
    Printed(usize),
}

impl LimitReached {
    /// Returns the status of the process.
    pub fn status(&self) -> ExitStatus {
        match self {
            LimitReached::Interrupted => ExitStatus::Interrupted,
            LimitReached::Time(_) => ExitStatus::Cancelled,
            _ => ExitStatus::LimitExceeded,
        }
    }

    /// Returns the advice that goes with a message: mostly which option sets the limit.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            LimitReached::Interrupted | LimitReached::Time(_) => return None,
            LimitReached::NoWatchdog(_) => "a program that is trusted runs without".to_owned(),
            LimitReached::Memory(bytes) => {
                format!("--max-memory allows {bytes} bytes at one time")
            }
            LimitReached::Allocator(bytes) => {
                format!("--allocator has {bytes} bytes at one time")
            }
            LimitReached::Depth(depth) => {
                format!("--max-depth allows {depth} calls within calls")
            }
            LimitReached::Steps(steps) => {
                format!("--max-steps allows {steps} kernels and calls in one function")
            }
            LimitReached::Printed(_) => "that is an eighth of what --max-memory allows".to_owned(),
        };
        Some(help)
    }

    /// Returns the message where no error of the program has one.
    fn message(&self) -> String {
        match self {
            LimitReached::Interrupted => "interrupted before anything was called".to_owned(),
            LimitReached::Time(time) => {
                format!("ended, since there was work that did not stop at the deadline of {time:?}")
            }
            LimitReached::NoWatchdog(reason) => {
                format!("nobody can watch the time: no thread can be made: {reason}")
            }
            LimitReached::Printed(bytes) => {
                format!("with --json, a program may print {bytes} bytes, and this prints more")
            }
            LimitReached::Memory(_)
            | LimitReached::Allocator(_)
            | LimitReached::Depth(_)
            | LimitReached::Steps(_) => "a limit was reached".to_owned(),
        }
    }
}

impl From<LimitReached> for Failure {
    fn from(limit: LimitReached) -> Failure {
        Failure::Limited {
            message: limit.message(),
            limit,
        }
    }
}

/// Returns the exit status of errors with these codes: of a limit or a deadline if there is one among them, else
/// `otherwise`.
pub fn status_of(codes: &[ErrorCode], otherwise: ExitStatus) -> ExitStatus {
    if codes.contains(&ErrorCode::ResourceExhausted) {
        return ExitStatus::LimitExceeded;
    }
    if codes.contains(&ErrorCode::DeadlineExceeded) {
        return ExitStatus::Cancelled;
    }
    otherwise
}
