//! Functions of `logging.h`: lines that a plugin logs.

use std::ffi::c_int;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::fault;
use crate::raw::Text;
use crate::variadic::Arguments;

/// How grave a line is: `TF_LogLevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Of interest to who looks for it.
    Info,
    /// Odd.
    Warning,
    /// Wrong.
    Error,
    /// So wrong that TensorFlow ends the process; here the call fails.
    Fatal,
}

impl Level {
    fn of(level: c_int) -> Option<Level> {
        let all = [Level::Info, Level::Warning, Level::Error, Level::Fatal];
        all.get(usize::try_from(level).ok()?).copied()
    }

    /// Returns the letter that begins a line of the level.
    pub fn letter(self) -> char {
        match self {
            Level::Info => 'I',
            Level::Warning => 'W',
            Level::Error => 'E',
            Level::Fatal => 'F',
        }
    }
}

/// Function that hears what plugins log.
pub type LogHandler = fn(Level, &str);

static HANDLER: RwLock<LogHandler> =
    RwLock::new(|level, line| eprintln!("plugin: {} {line}", level.letter()));

/// Sets the handler of what plugins log. Default: lines are written to standard error.
pub fn set_handler(handler: LogHandler) {
    *HANDLER.write().unwrap_or_else(PoisonError::into_inner) = handler;
}

/// Reads a level from a variable of the environment, those that TensorFlow reads.
fn level_of(variable: &str) -> c_int {
    let text = std::env::var(variable).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The least level whose lines are written.
static LEAST: LazyLock<c_int> = LazyLock::new(|| level_of("TF_CPP_MIN_LOG_LEVEL"));
/// The highest level of details that is written.
static DETAILS: LazyLock<c_int> = LazyLock::new(|| level_of("TF_CPP_MAX_VLOG_LEVEL"));

fn write(level: Level, format: &Text, arguments: &Arguments) {
    if let Some(line) = arguments.formatted(format) {
        let handler = *HANDLER.read().unwrap_or_else(PoisonError::into_inner);
        handler(level, &String::from_utf8_lossy(&line));
    }
}

pub(crate) fn log(level: c_int, format: Text, arguments: Arguments) {
    match Level::of(level) {
        Some(Level::Fatal) => {
            if let Some(line) = arguments.formatted(&format) {
                let line = String::from_utf8_lossy(&line);
                fault::record(format_args!("a fatal mistake: {line}"));
            }
        }
        Some(known) if level >= *LEAST => write(known, &format, &arguments),
        Some(_) => (),
        None => fault::argument("level", &format!("expected 0 to 3, found {level}")),
    }
}

pub(crate) fn vlog(level: c_int, format: Text, arguments: Arguments) {
    if level <= *DETAILS {
        write(Level::Info, &format, &arguments);
    }
}

/// Writes nothing, as builds of TensorFlow that are published do.
pub(crate) fn dvlog(_level: c_int, _format: Text, _arguments: Arguments) {}
