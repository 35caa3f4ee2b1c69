//! [`Failure`]: why a command stopped; [`ExitStatus`]: what the process tells its parent.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use tfrt::ir::Diagnostics;
use tfrt::{Error, OpenError, error_message};

/// What the process ends with. The order is that of precedence: of several, the greatest counts.
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
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

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
    /// Something is wrong with the command line that only the input shows.
    Usage(String),
    /// The host could not be set up.
    Host(Error),
    /// A file could not be written.
    Write { path: PathBuf, reason: io::Error },
    /// Standard output could not be written.
    Output(io::Error),
    /// It was told already.
    Told(ExitStatus),
}

impl Failure {
    /// Returns the status of the process.
    pub fn status(&self) -> ExitStatus {
        match self {
            Failure::Usage(_) => ExitStatus::Usage,
            // Whoever reads our output has seen enough.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Fine,
            Failure::Host(_) => ExitStatus::LimitExceeded,
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
            _ => None,
        }
    }

    /// Returns what there is to say, if it is a plain message.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Rejected { message, .. } | Failure::Usage(message) => Some(message.clone()),
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
            Failure::Open(_) | Failure::Text(_) | Failure::Told(_) => None,
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
