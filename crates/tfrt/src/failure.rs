//! [`Failure`]: the reason why a command stopped.

use std::io;
use std::path::PathBuf;

use tfrt::ir::Diagnostics;
use tfrt::{Error, OpenError, error_message};

mod limit;

pub use limit::{LimitReached, status_of};
pub use tfrt_run::ExitStatus;

/// The reason why a command could not do its work.
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
    /// A limit ended the command early, or Ctrl-C did.
    Limited {
        message: String,
        limit: LimitReached,
    },
    /// A limit kept a program from being opened.
    LimitedOpen {
        error: OpenError,
        limit: LimitReached,
    },
    /// Something is wrong with the command line that only the input shows.
    Usage(String),
    /// The host could not be set up.
    Host(Error),
    /// A file could not be written.
    Write { path: PathBuf, reason: io::Error },
    /// Standard output could not be written.
    Output(io::Error),
    /// The reason was told already.
    Told(ExitStatus),
}

impl Failure {
    /// Returns the status of the process.
    pub fn status(&self) -> ExitStatus {
        match self {
            Failure::Usage(_) | Failure::Open(OpenError::Dimension(_)) => ExitStatus::Usage,
            // Whoever reads our output has seen enough.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Fine,
            Failure::Limited { limit, .. } | Failure::LimitedOpen { limit, .. } => limit.status(),
            Failure::Host(_) => ExitStatus::LimitExceeded,
            Failure::Open(OpenError::Constants(error)) => {
                status_of(&[error.code()], ExitStatus::Rejected)
            }
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
    pub fn help(&self) -> Option<String> {
        match self {
            Failure::Rejected { help, .. } => help.clone(),
            Failure::Limited { limit, .. } => limit.help(),
            _ => None,
        }
    }

    /// Returns the message, if it is a plain one.
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
    /// Makes the failure of writing to standard output.
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}
