//! What a stranger's program prints, as it is shown.

use std::io::{self, Write};

use tfrt::Output;
use tfrt::ir::visible;

/// Standard output and standard error, without control characters.
pub fn output() -> Output {
    Output::new(Visible(io::stdout()), Visible(io::stderr()))
}

/// Writes texts with their control characters as escapes. Each write is one of whole lines.
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
