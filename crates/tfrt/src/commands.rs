//! The commands, a module each; each reads like its help text.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use tfrt::input::STANDARD_INPUT;
use tfrt::ir::visible;
use tfrt_run::report::unless_unread;

use crate::console::json;
use crate::failure::Failure;

pub mod bench;
pub mod check;
#[cfg(feature = "dist")]
pub mod cluster;
pub mod compile;
pub mod completions;
pub mod decompile;
pub mod devices;
pub mod diff;
pub mod dump;
pub mod explain;
pub mod inspect;
mod kernel_times;
pub mod kernels;
mod limits;
pub mod lsp;
mod mapped;
#[cfg(feature = "dist")]
mod member;
mod model_inputs;
pub mod opt;
mod output;
mod pattern;
#[cfg(feature = "plugins")]
pub mod plugin;
pub mod rejection;
pub mod run;
#[cfg(feature = "serve")]
pub mod serve;
mod testing;
mod trace;
#[cfg(feature = "dist")]
pub mod worker;

/// Refuses to read standard input twice: the second time there would be nothing left.
fn refuse_second_stdin<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
    let paths = paths.into_iter();
    match paths
        .filter(|path| *path == Path::new(STANDARD_INPUT))
        .count()
    {
        0 | 1 => Ok(()),
        n => Err(Failure::Usage(format!(
            "'{STANDARD_INPUT}' is given {n} times, but standard input can be read once only"
        ))),
    }
}

/// Writes lines for people to standard output, or fails the command.
fn print_line(line: &str) -> Result<(), Failure> {
    write_line(&visible::text(line)).map_err(Failure::Output)
}

/// Writes a line as it is to standard output, and sees to it that it is seen at once, if anybody reads there still.
fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(line.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    unless_unread(written)
}

/// Writes a document as one line of JSON.
fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    write_line(&json::line(document)).map_err(Failure::Output)
}
