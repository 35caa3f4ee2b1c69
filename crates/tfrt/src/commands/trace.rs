//! `--trace-stdout`: what begins and ends, as lines of standard output.

use std::io::{self, Write};

use tfrt::host::trace::{Level, TraceSink};

/// Prints `Scope:NAME` and `End Scope`.
pub struct StdoutTrace(pub Level);

impl TraceSink for StdoutTrace {
    fn level(&self) -> Level {
        self.0
    }

    fn begin(&self, name: &str) {
        // The command itself notices when standard output is gone.
        let _ = writeln!(io::stdout().lock(), "Scope:{name}");
    }

    fn end(&self) {
        let _ = writeln!(io::stdout().lock(), "End Scope");
    }
}
