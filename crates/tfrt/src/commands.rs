//! The commands, a module each; each reads like its help text.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

pub mod check;
pub mod compile;
pub mod completions;
pub mod decompile;
pub mod diff;
pub mod dump;
pub mod explain;
pub mod kernels;
pub mod lsp;
pub mod opt;
mod output;
pub mod run;
mod testing;
mod trace;

/// Writes a line to standard output, and sees to it that it is seen at once.
fn print_line(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Writes a document as one line of JSON.
fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(document).expect("our documents have text for keys");
    print_line(&line)
}
