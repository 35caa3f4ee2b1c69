//! With `--json`: the object of a command that has nothing to report, since its input was rejected.

use std::borrow::Cow;

use serde::Serialize;

use super::{bench, diff, dump, print_json, run};
use crate::failure::Failure;
use crate::options::Command;
use crate::talk::Problem;

/// What is left of a report.
#[derive(Serialize)]
struct Rejection<'r> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<u8>,
    problems: Vec<Problem>,
}

/// Writes the object, if the command was asked for one and its input is to blame.
///
/// A command line that makes no sense gets none; where standard output is the trouble, there may
/// be a part of a report already.
pub fn report(command: &Command, failure: &Failure) -> Result<(), Failure> {
    let (schema, file) = match command {
        Command::Run(options) if options.json => (run::SCHEMA, Some(&options.file)),
        Command::Bench(options) if options.json => (bench::SCHEMA, Some(&options.file)),
        Command::Dump(options) if options.json => (dump::SCHEMA, Some(&options.file)),
        Command::Diff(options) if options.json => (diff::SCHEMA, None),
        _ => return Ok(()),
    };
    if let Failure::Usage(_) | Failure::Output(_) | Failure::Told(_) = failure {
        return Ok(());
    }
    let is_run = matches!(command, Command::Run(_) | Command::Bench(_));
    print_json(&Rejection {
        schema,
        file: file.map(|path| path.to_string_lossy()),
        exit_status: is_run.then_some(failure.status() as u8),
        problems: Problem::all_of_failure(failure),
    })
}
