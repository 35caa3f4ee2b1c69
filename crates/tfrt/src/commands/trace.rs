//! `--trace-stdout`: begins and ends of scopes, as lines.

use std::io::{self, Write};

use tfrt::host::trace::{TraceLevel, TraceSink};

/// A trace sink that prints `Scope:NAME` and `End Scope`.
pub struct LineTrace {
    level: TraceLevel,
    to: Stream,
}

/// The stream that the lines are written to.
pub enum Stream {
    StandardOutput,
    /// Standard error, where standard output is one document.
    StandardError,
}

impl LineTrace {
    /// Makes a sink that listens up to `level`.
    pub fn new(level: TraceLevel, to: Stream) -> LineTrace {
        LineTrace { level, to }
    }

    fn print(&self, line: &str) {
        // The command itself notices when standard output is gone.
        let _ = match self.to {
            Stream::StandardOutput => writeln!(io::stdout().lock(), "{line}"),
            Stream::StandardError => writeln!(io::stderr().lock(), "{line}"),
        };
    }
}

impl TraceSink for LineTrace {
    fn level(&self) -> TraceLevel {
        self.level
    }

    fn begin(&self, name: &str) {
        self.print(&format!("Scope:{name}"));
    }

    fn end(&self) {
        self.print("End Scope");
    }
}
