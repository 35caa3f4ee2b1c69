//! The runner of ONNX's cases of single operations: `tfrt-suite FOLDER [--filter WORD] [--list-failures]`.
//!
//! A case is a folder with a model, inputs and the outputs that are expected. Each is opened and called
//! in a worker process, which this program starts and watches: a case that takes its worker down, or too long, has
//! failed, and the others go on. `cargo xtask onnx` gets the folder. Models are opened as users open them; `--bare`
//! leaves out the passes that make them faster.
//!
//! With `--bits FILE` the cases are run once for each instruction set that the processor has, and the file gets a
//! line for each: instruction set, case, and a hash of its outputs' bits. Two such files, compared by `diff`, show
//! what a change of the arithmetic has changed.
//!
//! With `--checks` the folder has texts of StableHLO, whose checks are made: chunks of its interpreter suite, or modules of
//! its test data.
//!
//! With `--eager` those of one operation are called without a model, by the name of the operation's row.
//!
//! With `--gpu`, built with the feature of this name, models are opened for a simulated GPU, which checks what is done.
//!
//! With `--shapes` nothing is run: what is known of the outputs' types and shapes without running is compared.
//!
//! It ends with status 0 if as many pass as are to, and none takes its worker down.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use case::RunMode;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use verdict::{CaseEnd, Verdict};
use workers::WorkerOptions;

mod case;
mod checks;
mod compare;
mod eager;
mod output_hash;
mod probes;
mod report;
mod shapes;
mod verdict;
mod workers;

const USAGE: &str = "Usage: tfrt-suite FOLDER [--filter WORD] [--list-failures] [--bare] [--workers N] [--at-least N] \
                     [--bits FILE] [--shapes] [--eager] [--checks] [--gpu]";

struct Options {
    folder: PathBuf,
    filter: String,
    lists_failures: bool,
    mode: RunMode,
    n_workers: usize,
    /// The number of cases that have to pass.
    at_least: usize,
    /// The file for the hashes of outputs.
    bits: Option<PathBuf>,
    /// Whether shapes are compared, and nothing is run.
    only_shapes: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [workers::WORKER, mode, instructions, folder] = *words.as_slice()
        && let Some(setting) = WorkerOptions::from_words([mode, instructions])
    {
        workers::serve(Path::new(folder), setting);
        return ExitCode::SUCCESS;
    }
    let Some(options) = parse(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let names = match names(&options) {
        Ok(names) if !names.is_empty() => names,
        Ok(_) => {
            eprintln!("no case has {:?} in its name", options.filter);
            return ExitCode::from(2);
        }
        Err(error) => {
            eprintln!("{}: {error}", options.folder.display());
            return ExitCode::from(2);
        }
    };
    if options.only_shapes {
        let is_right = shapes::run(&options.folder, names.into_iter());
        return ExitCode::from(u8::from(!is_right));
    }
    let verdicts = run(&options, &names, InstructionSet::best());
    if let Some(path) = &options.bits
        && let Err(error) = write_bits(&options, &names, &verdicts, path)
    {
        eprintln!("{}: {error}", path.display());
        return ExitCode::from(2);
    }
    print!("{}", report::text(&verdicts, options.lists_failures));
    let n_passed = verdicts.iter().filter(|verdict| verdict.passes()).count();
    let is_steady = !verdicts
        .iter()
        .any(|verdict| matches!(verdict.ending, CaseEnd::Crashed(_) | CaseEnd::Hung));
    ExitCode::from(u8::from(n_passed < options.at_least || !is_steady))
}

/// Runs the cases with one instruction set, and returns their verdicts in the order of their names.
fn run(options: &Options, names: &VecDeque<String>, instructions: InstructionSet) -> Vec<Verdict> {
    let setting = WorkerOptions {
        mode: options.mode,
        instructions,
    };
    let mut verdicts = workers::run(&options.folder, setting, names.clone(), options.n_workers);
    verdicts.sort_by(|a, b| a.name.cmp(&b.name));
    verdicts
}

/// Writes the hashes of outputs for all instruction sets; `best` are the verdicts of the best one.
fn write_bits(
    options: &Options,
    names: &VecDeque<String>,
    best: &[Verdict],
    path: &Path,
) -> std::io::Result<()> {
    let mut text = String::new();
    for set in InstructionSet::ALL {
        if set == InstructionSet::best() {
            text.push_str(&output_hash::lines(set, best));
        } else if set.is_available() {
            text.push_str(&output_hash::lines(set, &run(options, names, set)));
        }
    }
    std::fs::write(path, text)
}

fn parse(words: &[&str]) -> Option<Options> {
    let (folder, mut rest) = words.split_first()?;
    let mut options = Options {
        folder: PathBuf::from(folder),
        filter: String::new(),
        lists_failures: false,
        mode: RunMode::Whole,
        n_workers: std::thread::available_parallelism().map_or(1, usize::from),
        at_least: 0,
        bits: None,
        only_shapes: false,
    };
    loop {
        rest = match rest {
            [] => return Some(options),
            ["--list-failures", rest @ ..] => {
                options.lists_failures = true;
                rest
            }
            ["--bare", rest @ ..] => {
                options.mode = RunMode::Bare;
                rest
            }
            ["--checks", rest @ ..] => {
                options.mode = RunMode::Checks;
                rest
            }
            ["--eager", rest @ ..] => {
                options.mode = RunMode::Eager;
                rest
            }
            #[cfg(feature = "gpu")]
            ["--gpu", rest @ ..] => {
                options.mode = RunMode::Gpu;
                rest
            }
            ["--filter", word, rest @ ..] => {
                options.filter = (*word).to_owned();
                rest
            }
            ["--workers", number, rest @ ..] => {
                options.n_workers = number.parse().ok().filter(|number| *number > 0)?;
                rest
            }
            ["--at-least", number, rest @ ..] => {
                options.at_least = number.parse().ok()?;
                rest
            }
            ["--shapes", rest @ ..] => {
                options.only_shapes = true;
                rest
            }
            ["--bits", path, rest @ ..] => {
                options.bits = Some(PathBuf::from(path));
                rest
            }
            _ => return None,
        }
    }
}

/// Returns the names of the cases: the folders that have a model, or chunks of files.
fn names(options: &Options) -> std::io::Result<VecDeque<String>> {
    let mut names = Vec::new();
    if options.mode == RunMode::Checks {
        names = checks::names(&options.folder)?;
        names.retain(|name| name.contains(&options.filter));
        names.sort();
        return Ok(names.into());
    }
    for entry in std::fs::read_dir(&options.folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(&options.filter) && entry.path().join("model.onnx").exists() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.into())
}
