//! Documents as JSON that is safe to show on a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};
use tfrt::ir::visible;

/// Writes a document on one line, without an end; nothing in it is obeyed by a terminal.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: impl Write, document: &impl Serialize) -> io::Result<()> {
    let written = document.serialize(&mut Serializer::with_formatter(out, Visible));
    written.map_err(io::Error::from)
}

/// Returns a document on one line, without an end.
pub fn line(document: &impl Serialize) -> String {
    let mut line = Vec::new();
    write(&mut line, document).expect("our documents have text for keys");
    String::from_utf8(line).expect("JSON is text")
}

/// A formatter of compact JSON, with escapes also for the control characters that JSON lets stand.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        CompactFormatter.write_string_fragment(writer, &visible::json(fragment))
    }
}
