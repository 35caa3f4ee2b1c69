//! With `--json`: the object of a command that has nothing to report, since its input was rejected, or since it was
//! ended from outside.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use super::{bench, diff, dump, print_json, run};
use crate::console::{Console, Problem};
use crate::failure::{ExitStatus, Failure};
use crate::options::{Command, RunOptions};

/// The report of a command that failed: its problems, without results.
#[derive(Serialize)]
struct Rejection<'r> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<u8>,
    problems: Vec<Problem>,
}

/// Writes the report of a failure, if the command was asked for JSON and its input is to blame.
///
/// A command line that makes no sense gets none; where standard output is the trouble, there may
/// be a part of a report already.
pub fn report(command: &Command, failure: &Failure, console: &Console) -> Result<(), Failure> {
    if let Failure::Usage(_) | Failure::Output(_) | Failure::Told(_) = failure {
        return Ok(());
    }
    match command {
        Command::Run(options) => of_run(options, failure, console),
        Command::Bench(options) if options.json => {
            write(bench::SCHEMA, Some(&options.file), true, failure)
        }
        Command::Dump(options) if options.json => {
            write(dump::SCHEMA, Some(&options.file), false, failure)
        }
        Command::Diff(options) if options.json => write(diff::SCHEMA, None, false, failure),
        _ => Ok(()),
    }
}

/// Writes the report of a failure of `tfrt run`, about a program or about a model.
pub fn of_run(options: &RunOptions, failure: &Failure, console: &Console) -> Result<(), Failure> {
    if !options.json {
        return Ok(());
    }
    let schema = match console.is_of_model() {
        true => run::MODEL_SCHEMA,
        false => run::SCHEMA,
    };
    // Who ends the command, and who was about to end well, may meet.
    match console.begin_document() {
        true => write(schema, Some(&options.file), true, failure),
        false => Ok(()),
    }
}

fn write(
    schema: &'static str,
    file: Option<&Path>,
    has_status: bool,
    failure: &Failure,
) -> Result<(), Failure> {
    let status = has_status.then_some(failure.status());
    write_problems(schema, file, status, Problem::all_of_failure(failure))
}

/// Writes the report of a command whose problems were told on standard error.
pub fn write_problems(
    schema: &'static str,
    file: Option<&Path>,
    status: Option<ExitStatus>,
    problems: Vec<Problem>,
) -> Result<(), Failure> {
    print_json(&Rejection {
        schema,
        file: file.map(Path::to_string_lossy),
        exit_status: status.map(|status| status as u8),
        problems,
    })
}
