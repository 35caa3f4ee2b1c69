//! `tfrt check`: every reason why programs would not compile or open, at once; calls nothing.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Serialize;
use tfrt::bef::BefFile;
use tfrt::compiler::codes::NEVER_SUCCEEDS;
use tfrt::compiler::graph::refuse_outside_models;
use tfrt::host::LoadProblem;
use tfrt::input::{self, Input};
use tfrt::ir::verifier::Chains;
use tfrt::ir::{Diagnostic, Diagnostics, Module, Source, codes, parse_in, verify_in, visible};
use tfrt::{
    Formats, HostEvaluator, OpenError, OpenOptions, PlacementReport, Placements, Program, Runtime,
    SingleThreadedWorkQueue, SourceLocation, Warnings,
};

use super::devices::{DeviceOption, UNPLACED, placement_document, placement_text};
use super::limits::refuse_compiled;
use super::{print_json, print_line, refuse_second_stdin};
use crate::console::{Console, Problem};
use crate::failure::{ExitStatus, Failure};
use crate::options::CheckOptions;

mod model;

use model::MissingOp;

use model::opened;
pub use model::{Found, in_model, place};

/// Checks each file.
pub fn check(options: &CheckOptions, console: &Console) -> Result<ExitStatus, Failure> {
    refuse_second_stdin(options.files.iter().map(PathBuf::as_path))?;
    let queue = std::sync::Arc::new(SingleThreadedWorkQueue::new());
    let builder = Runtime::builder().queue(queue);
    #[cfg(feature = "plugins")]
    let builder = super::plugin::known(&options.plugins, builder)?;
    let runtime = builder.build();
    #[cfg(feature = "plugins")]
    let asks_for_ops = !options.plugins.plugins.is_empty();
    #[cfg(not(feature = "plugins"))]
    let asks_for_ops = false;
    let told = Warnings::default();
    let opening = options.dims.open_options(true).warnings(told.clone());
    let mut files = Vec::new();
    for path in &options.files {
        let input = Input::read(path);
        if let Ok(input) = &input {
            refuse_compiled(input, &options.dims, false)?;
        }
        let kept = options.device.as_ref().and(input.as_ref().ok().cloned());
        let Found {
            missing,
            mut problems,
            open,
        } = problems(input, &opening, (&runtime, asks_for_ops), console);
        let placement = match options.device.as_ref().zip(kept) {
            Some((device, input)) if problems.is_empty() && missing.is_empty() => {
                let placed = placed(&input, device, options.strict_device, &opening)?;
                placed.unwrap_or_else(|error| {
                    problems.push(error);
                    None
                })
            }
            _ => None,
        };
        let file = path.to_string_lossy().into_owned();
        let mut warnings = Diagnostics::default();
        let mut fails = Diagnostics::default();
        for warning in told.take() {
            match warning.code() {
                Some(NEVER_SUCCEEDS) => fails.push(warning.into_error()),
                _ => warnings.push(warning),
            }
        }
        if !fails.is_empty() {
            problems.push(OpenError::Text(fails));
        }
        let ok = problems.is_empty() && missing.is_empty();
        if !options.json {
            console.diagnostics(&warnings);
            problems.iter().for_each(|error| console.open_error(error));
            if !missing.is_empty() {
                tell_missing(&file, &missing, console);
            }
            if let Some(report) = &placement {
                let text = format!("{file}: {}", placement_text(report));
                console.say(&visible::text(&text));
            }
            let verdict = match (ok, &open[..]) {
                (false, _) => "rejected".to_owned(),
                (true, []) => "ok".to_owned(),
                (true, [first, ..]) => format!(
                    "ok, but for sizes that calls give ({}): to check one, --dim {}=SIZE",
                    visible::name(&open.join(", ")),
                    visible::name(first)
                ),
            };
            print_line(&format!("{}: {verdict}", visible::name(&file)))?;
        }
        let problems = problems.iter().flat_map(Problem::all_of_open);
        files.push(FileReport {
            file,
            ok,
            missing,
            open,
            placement: placement.as_ref().map(placement_document),
            problems: problems.collect(),
            warnings: Problem::all_of_text(&warnings),
        });
    }
    let all_ok = files.iter().all(|file| file.ok);
    if options.json {
        print_json(&Document {
            schema: "tfrt.check/1",
            ok: all_ok,
            files,
        })?;
    }
    Ok(if all_ok {
        ExitStatus::Fine
    } else {
        ExitStatus::Rejected
    })
}

/// Tells of operations of a model that have no kernel, an entry for each kind, instead of a message for
/// each node. `None` if there are none, or if the messages go into a document.
pub fn told_if_missing(
    input: &Input,
    opening: &OpenOptions,
    runtime: &Runtime,
    is_json: bool,
    console: &Console,
) -> Option<Failure> {
    if is_json || !matches!(input, Input::Model { .. }) {
        return None;
    }
    // Its warnings have been told when it was opened.
    let opening = opening.clone().warnings(Warnings::default());
    let Found {
        missing, problems, ..
    } = in_model(input, &opening, runtime);
    if missing.is_empty() || !problems.is_empty() {
        return None;
    }
    tell_missing(input.name(), &missing, console);
    Some(Failure::Told(ExitStatus::Rejected))
}

fn tell_missing(file: &str, missing: &[MissingOp], console: &Console) {
    let lines: String = missing.iter().map(MissingOp::text).collect();
    console.say(&format!(
        "{file}: operations that nothing here runs:\n{lines}"
    ));
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    ok: bool,
    files: Vec<FileReport>,
}

#[derive(Serialize)]
struct FileReport {
    file: String,
    ok: bool,
    /// The operations of a model that have no kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<MissingOp>,
    /// The names of dimensions of a model's inputs whose sizes each call gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<String>,
    /// The nodes of a model that have no kernel on the device that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<serde_json::Value>,
    problems: Vec<Problem>,
    /// The warnings on a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
}

/// Compiles a model for a device, and returns how its nodes were placed; nothing of what is no graph, or on the processor.
///
/// # Errors
///
/// `Rejected` if the command was built without such devices.
fn placed(
    input: &Input,
    device: &DeviceOption,
    is_strict: bool,
    opening: &OpenOptions,
) -> Result<Result<Option<PlacementReport>, OpenError>, Failure> {
    let Some(name) = device.name() else {
        return Ok(Ok(None));
    };
    let evaluator = device.placing(HostEvaluator::default())?;
    let placements = Placements::default();
    let options = opening.clone().warnings(Warnings::default());
    let options = options
        .device(name)
        .strict_device(is_strict)
        .placements(placements.clone());
    let opened = input.open_with(&Formats::builtin(), &evaluator, &options);
    let report = placements.take().pop();
    Ok(match opened {
        Err(error) => Err(error),
        Ok(_) if report.is_none() && is_strict => Err(OpenError::Device(UNPLACED.to_owned())),
        Ok(_) => Ok(report),
    })
}

/// Returns the problems that each stage finds.
fn problems(
    input: Result<Input, OpenError>,
    opening: &OpenOptions,
    (runtime, asks_for_ops): (&Runtime, bool),
    console: &Console,
) -> Found {
    let problems: Vec<OpenError> = match input {
        Err(error) => vec![error],
        Ok(Input::Text(source)) => {
            console.remember(&source);
            match parse_in(&source, &Formats::builtin().text_dialects()) {
                Ok(module) if input::is_graph(&module) => {
                    return model::in_model(&Input::Text(source), opening, runtime);
                }
                Ok(module) => {
                    let problems = in_module(&module, &source, runtime);
                    // Names of others are those of plugins, which are not there.
                    let prefix = if asks_for_ops { "" } else { "tf." };
                    let unknown = unknown_ops(&module, prefix, runtime);
                    problems.into_iter().chain(unknown).collect()
                }
                Err(diagnostics) => vec![OpenError::Text(diagnostics)],
            }
        }
        Ok(input @ Input::Model { .. }) => {
            let progress = console.progress(&format!("reading {}", input.name()));
            let found = model::in_model(&input, opening, runtime);
            drop(progress);
            return found;
        }
        Ok(input @ Input::Bytes { .. }) => opened(&input, opening, runtime).into_iter().collect(),
    };
    problems.into()
}

/// Returns the calls of operations by names with a prefix that neither the runtime nor a plugin has.
fn unknown_ops(module: &Module, prefix: &str, runtime: &Runtime) -> Option<OpenError> {
    #[cfg(feature = "plugins")]
    return super::plugin::known_ops(module, prefix, runtime)
        .err()
        .map(OpenError::Text);
    #[cfg(not(feature = "plugins"))]
    {
        let _ = (module, prefix, runtime);
        None
    }
}

/// Returns what is wrong with a text that was parsed. One that does not verify is compiled and loaded all the same,
/// since a kernel that does not exist has nothing to do with a wrong type elsewhere.
pub fn in_module(module: &Module, source: &Source, runtime: &Runtime) -> Vec<OpenError> {
    let dialects = Formats::builtin().text_dialects();
    let wrong = verify_in(module, &dialects, Chains::Required).err();
    let mut told: HashSet<u32> = wrong.iter().flatten().flat_map(told_lines).collect();
    let misplaced = refuse_outside_models(module).err().and_then(|misplaced| {
        let is_news = |error: &Diagnostic| told_lines(error).all(|line| !told.contains(&line));
        let mut news = Diagnostics::default();
        misplaced
            .into_iter()
            .filter(is_news)
            .for_each(|error| news.push(error));
        news.into_result().err()
    });
    told.extend(misplaced.iter().flatten().flat_map(told_lines));
    let is_verified = wrong.is_none() && misplaced.is_none();
    let wrong = wrong.into_iter().chain(misplaced);
    let verified: Vec<OpenError> = wrong.map(OpenError::Text).collect();
    let bytes = match tfrt::compiler::compile(module, &Default::default()) {
        Ok(bytes) => bytes,
        // Of a text that is wrong already, this need not be news.
        Err(_) if !is_verified => return verified,
        Err(diagnostics) => return vec![OpenError::Text(diagnostics)],
    };
    let loaded = BefFile::open(bytes)
        .map_err(|reason| OpenError::Bytes {
            name: source.name().to_string(),
            reason,
        })
        .and_then(|file| Program::from_file(file, runtime));
    let later = match loaded {
        // What is wrong with an operation is told once, by the stage that comes first.
        Err(OpenError::Load(mut error)) => {
            error.place_natives(|name| declaration(module, source, name));
            let is_news = |problem: &LoadProblem| match &problem.location {
                Some(SourceLocation::FileLineCol { file, line, .. }) => {
                    *file != **source.name() || !told.contains(line)
                }
                _ => true,
            };
            error.retain(is_news).map(OpenError::Load)
        }
        Err(error) if is_verified => Some(error),
        _ => None,
    };
    verified.into_iter().chain(later).collect()
}

/// Returns the place where a function is declared.
fn declaration(module: &Module, source: &Source, name: &str) -> Option<SourceLocation> {
    let mut functions = module.children(module.top());
    let function = functions.find(|&op| module.symbol_name(op) == Some(name))?;
    let span = module.op(function).span();
    let (line, column) = source.line_column(span.range().start);
    (!span.is_none()).then(|| SourceLocation::FileLineCol {
        file: source.name().to_string(),
        line,
        column,
    })
}

/// Returns the lines of an error and of its notes. Other errors on these lines are not told.
fn told_lines(error: &Diagnostic) -> impl Iterator<Item = u32> {
    // What ends the region, which the note shows, is not what was to end it.
    let notes = match error.code() {
        Some(codes::NO_RETURN_IN_REGION) => error.notes(),
        _ => &[],
    };
    let noted = notes.iter().filter_map(|note| note.line_column());
    let lines = error.line_column().into_iter().chain(noted);
    lines.map(|(line, _)| line)
}
