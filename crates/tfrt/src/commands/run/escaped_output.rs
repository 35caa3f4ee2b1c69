//! The output of an untrusted program, with control characters as escapes.

use std::io::{self, Write};

use tfrt::Output;
use tfrt::ir::visible;

/// Returns standard output and standard error, to which control characters are written as escapes.
pub fn output() -> Output {
    Output::new(Visible(io::stdout()), Visible(io::stderr()))
}

/// A writer that writes control characters as escapes. Each write is one of whole lines.
struct Visible<W>(W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(visible::text(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
