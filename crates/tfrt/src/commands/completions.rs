//! `tfrt completions`: a script that completes our command lines.

use std::io::Write;

use clap::CommandFactory;

use crate::failure::{ExitStatus, Failure};
use crate::options::{Cli, CompletionsOptions};

/// Prints the script for a shell.
pub fn completions(options: &CompletionsOptions) -> Result<ExitStatus, Failure> {
    // Generated to memory, since the generator does not survive a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "tfrt", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(ExitStatus::Fine)
}
