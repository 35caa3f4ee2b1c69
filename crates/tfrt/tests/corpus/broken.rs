//! Walks `tests/broken/`: programs with a mistake, and all that the command says about each.
//!
//! Its messages stand beside the program in `NAME.stderr`; `UPDATE_EXPECT=1` writes them anew. The
//! command is that of the first line, `// RUN: COMMAND`, else `check`, or `decompile` and `opt` in the
//! folders of these names; the file comes behind it. The texts of `tfrt explain` are tested the same way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use tfrt::codes;

use super::root;

mod bytes;
mod explanations;

/// Codes that no program of the folder shows.
const NOT_SHOWN: [(&str, &str); 3] = [
    ("TF0519", "the processor may have it"),
    ("TF0626", "memory does not run out in tests"),
    ("TF0708", "the gate refuses all such files before"),
];

/// Returns the tests of all programs that are rejected, and of the texts of `tfrt explain`.
pub fn trials() -> Vec<Trial> {
    if is_blessing() {
        bytes::write_all(&root().join("tests/broken"));
    }
    let mut paths = Vec::new();
    collect(&root().join("tests/broken"), &mut paths);
    paths.sort();
    let mut trials: Vec<Trial> = paths
        .iter()
        .map(|path| {
            let path = path.clone();
            Trial::test(path.clone(), move || check(&path))
        })
        .collect();
    trials.push(Trial::test("every code is shown", every_code_is_shown));
    trials.push(Trial::test("bytes are those that are made", || {
        bytes::check_all(&root().join("tests/broken"))
    }));
    trials.extend(explanations::trials());
    trials
}

/// Whether what is said becomes what is expected.
fn is_blessing() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some()
}

/// Finds the programs in a folder, from the root.
fn collect(folder: &Path, paths: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for entry in entries {
        let path = entry.expect("the folder is listed").path();
        let is_program = path
            .extension()
            .is_some_and(|extension| extension == "mlir" || extension == "bef");
        if path.is_dir() {
            collect(&path, paths);
        } else if is_program {
            let short = path.strip_prefix(root()).expect("it is below the root");
            paths.push(short.to_string_lossy().replace('\\', "/"));
        }
    }
}

/// Returns the command line of a program.
fn line(path: &str, bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let first = text.lines().next().unwrap_or_default();
    let command = match first
        .trim_start_matches('\u{feff}')
        .strip_prefix("// RUN: ")
    {
        Some(command) => command,
        None if path.contains("/decompile/") => "decompile",
        None if path.contains("/opt/") => "opt",
        None => "check",
    };
    let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    words.push(path.to_owned());
    words
}

/// Runs the command in a folder; returns its exit status and what it says.
fn run(folder: &Path, line: &[String]) -> Result<(i32, String), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(line)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .output()
        .map_err(|error| format!("the command does not start: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code().unwrap_or(-1), stderr))
}

/// Compares what the command says with what stands beside the program.
fn check(path: &str) -> Result<(), Failed> {
    let bytes = fs::read(root().join(path))?;
    let (status, said) = run(&root(), &line(path, &bytes))?;
    let wanted_status = i32::from(said.contains("error: "));
    if status != wanted_status || said.is_empty() {
        return Err(format!("the exit status is {status}; it says\n{said}").into());
    }
    compare(&stderr_path(path), &said)
}

fn stderr_path(path: &str) -> PathBuf {
    root().join(path).with_extension("stderr")
}

/// Compares a text with a file, or writes the file.
fn compare(path: &Path, said: &str) -> Result<(), Failed> {
    if is_blessing() {
        return Ok(fs::write(path, said)?);
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == said {
        return Ok(());
    }
    let path = path.display();
    Err(format!("expected, in {path}:\n{expected}\nfound:\n{said}").into())
}

/// Finds the codes in what the command said about all programs.
fn every_code_is_shown() -> Result<(), Failed> {
    let mut paths = Vec::new();
    collect(&root().join("tests/broken"), &mut paths);
    let mut shown = BTreeSet::new();
    for path in &paths {
        let said = fs::read_to_string(stderr_path(path)).unwrap_or_default();
        let codes = said.match_indices(" [TF").filter_map(|(at, _)| {
            let code = said.get(at + 2..at + 8)?;
            (said.get(at + 8..)?.starts_with(']')).then(|| code.to_owned())
        });
        shown.extend(codes);
    }
    let known: BTreeSet<String> = codes::all()
        .iter()
        .map(|(code, _)| (*code).into())
        .collect();
    let mut excused: BTreeSet<String> = NOT_SHOWN.iter().map(|(code, _)| (*code).into()).collect();
    // Broken models are made, and shown, by `crates/import/tests/library/broken.rs`.
    let of_models = known.iter().filter(|code| code.starts_with("TF10"));
    excused.extend(of_models.cloned());
    // Libraries that are no plugins are shown by `crates/capi/tests/library`.
    let of_plugins = known.iter().filter(|code| code.starts_with("TF14"));
    excused.extend(of_plugins.cloned());
    let missing: Vec<_> = known.difference(&shown).cloned().collect();
    let missing: BTreeSet<String> = missing.into_iter().collect();
    if missing != excused {
        return Err(format!("shown by no program: {missing:?}").into());
    }
    match paths.len() >= 120 {
        true => Ok(()),
        false => Err(format!("expected at least 120 programs, found {}", paths.len()).into()),
    }
}
