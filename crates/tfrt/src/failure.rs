//! [`Failure`]: why a command stopped.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tfrt::ir::Diagnostics;
use tfrt::{Error, ErrorCode, OpenError, error_message};

pub use tfrt_run::ExitStatus;

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The program could not be opened.
    Open(OpenError),
    /// The text is no program.
    Text(Diagnostics),
    /// The input does not have what was asked for.
    Rejected {
        code: Option<&'static str>,
        message: String,
        help: Option<String>,
    },
    /// There was not as much memory as whoever runs the program allows.
    Limited { message: String, help: String },
    /// The program could not be opened for the same reason.
    LimitedOpen { error: OpenError, help: String },
    /// Something is wrong with the command line that only the input shows.
    Usage(String),
    /// The host could not be set up.
    Host(Error),
    /// A file could not be written.
    Write { path: PathBuf, reason: io::Error },
    /// Standard output could not be written.
    Output(io::Error),
    /// The process is still at work when twice this time has passed.
    TookTooLong(Duration),
    /// Ctrl-C came before anything was called.
    Interrupted,
    /// It was told already.
    Told(ExitStatus),
}

impl Failure {
    /// Returns the status of the process.
    pub fn status(&self) -> ExitStatus {
        match self {
            Failure::Usage(_) | Failure::Open(OpenError::Dimension(_)) => ExitStatus::Usage,
            // Whoever reads our output has seen enough.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Fine,
            Failure::Host(_) | Failure::Limited { .. } | Failure::LimitedOpen { .. } => {
                ExitStatus::LimitExceeded
            }
            Failure::Open(OpenError::Constants(error)) => match error.code() {
                ErrorCode::ResourceExhausted => ExitStatus::LimitExceeded,
                ErrorCode::DeadlineExceeded => ExitStatus::Cancelled,
                _ => ExitStatus::Rejected,
            },
            Failure::TookTooLong(_) => ExitStatus::Cancelled,
            Failure::Interrupted => ExitStatus::Interrupted,
            Failure::Told(status) => *status,
            _ => ExitStatus::Rejected,
        }
    }

    /// Returns the code of a plain message, if it has one.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Failure::Rejected { code, .. } => *code,
            _ => None,
        }
    }

    /// Returns the advice that goes with a plain message.
    pub fn help(&self) -> Option<&str> {
        match self {
            Failure::Rejected { help, .. } => help.as_deref(),
            Failure::Limited { help, .. } => Some(help),
            _ => None,
        }
    }

    /// Returns what there is to say, if it is a plain message.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Rejected { message, .. }
            | Failure::Limited { message, .. }
            | Failure::Usage(message) => Some(message.clone()),
            Failure::Host(error) => Some(format!("couldn't create work queue: {error}")),
            Failure::Write { path, reason } => Some(format!(
                "cannot write '{}': {}",
                path.display(),
                error_message(reason)
            )),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::Output(error) => Some(format!(
                "cannot write to standard output: {}",
                error_message(error)
            )),
            Failure::TookTooLong(time) => Some(format!(
                "ended, since there was work that did not stop at the deadline of {time:?}"
            )),
            Failure::Interrupted => Some("interrupted before anything was called".to_owned()),
            Failure::Open(_)
            | Failure::LimitedOpen { .. }
            | Failure::Text(_)
            | Failure::Told(_) => None,
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Failure::Open(error)
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Failure::Text(diagnostics)
    }
}

impl From<io::Error> for Failure {
    /// For writing to standard output.
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}
