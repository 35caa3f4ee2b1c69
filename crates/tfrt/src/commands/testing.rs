//! `--split-input-file` and `--verify-diagnostics`, for every command that has them.

use tfrt::ir::{Diagnostics, Source, expected, split};

use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::TestingOptions;

/// The line between parts, in the output as in the input.
pub const SEPARATOR: &str = "// -----\n";

/// Returns the programs that a text holds.
pub fn parts(source: &Source, options: TestingOptions) -> Vec<Source> {
    if options.split_input_file {
        return split::split(source);
    }
    vec![source.clone()]
}

/// Does some work with each part of a text, and compares its diagnostics with those that the part
/// announces.
pub fn compare(
    source: &Source,
    options: TestingOptions,
    console: &Console,
    work: impl Fn(&Source) -> Result<(), Diagnostics>,
) -> Result<ExitStatus, Failure> {
    let mut status = ExitStatus::Fine;
    for part in parts(source, options) {
        let diagnostics = work(&part).err().unwrap_or_default();
        if let Err(wrong) = expected::check(&part, &diagnostics) {
            console.failure(&Failure::Text(wrong));
            status = ExitStatus::Rejected;
        }
    }
    Ok(status)
}
