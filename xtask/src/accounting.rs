//! `cargo xtask accounting`: checks that test programs leave nothing behind when they are over.
//!
//! In builds for development `tfrt-async` writes what is alive each time that no thread is left which had anything
//! (`crates/async/src/accounting.rs`); here the last counts are read. There is none if one of its threads never ends, as
//! those of a queue that was lost.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::steps::{Steps, cargo, target};

/// The arguments of cargo for the tests of all packages.
pub const WORKSPACE: [&str; 3] = ["--workspace", "--features", FEATURES];

/// The arguments of cargo for the tests of all packages beside the module for Python: crates that both need are then
/// compiled once, and macros once for lints, too. The module is built by [`cargo build`](crate::python), since no test is
/// linked with it.
pub const WITH_PYTHON: [&str; 5] = [
    "--workspace",
    "--features",
    FEATURES,
    "--features",
    "tfrt-python/extension",
];

/// The features that tests need and no member asks for: TLS, traces of the server, and GPUs, which are simulated.
const FEATURES: &str = "tfrt/gpu,tfrt/otel,tfrt/tls,tfrt-serve/tls";

/// Builds the tests that arguments of cargo choose.
pub fn build(steps: &mut Steps, choice: &[&str]) {
    let mut command = cargo(&["test", "--no-run", "--quiet"]);
    steps.run("tests (build)", command.args(choice));
}

/// Runs the tests that arguments of cargo choose, which must succeed and leave nothing behind.
pub fn tests(steps: &mut Steps, choice: &[&str]) {
    let folder = target("accounting");
    let is_there = emptied(&folder).is_ok();
    let mut command = cargo(&["test", "--no-fail-fast"]);
    command.args(choice);
    steps.tests("tests", command.env("TFRT_ACCOUNTING", &folder));
    steps.check("nothing is left after tests", || {
        if !is_there {
            return vec![format!("{} can't be emptied", folder.display())];
        }
        let counts = counts(&folder).unwrap_or_default();
        println!("{} counts of what programs of tests leave", counts.len());
        if counts.is_empty() {
            return vec!["no program of tests was looked at".to_owned()];
        }
        let left = counts.iter().filter(|count| count.n_left != Some(0));
        left.map(Count::to_string).collect()
    });
}

fn emptied(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// The count of a test program's leftovers.
#[derive(Debug, PartialEq)]
struct Count {
    program: String,
    kind: String,
    /// The number of leftovers; `None` if a thread has not ended that may have some.
    n_left: Option<u64>,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { program, kind, .. } = self;
        match self.n_left {
            Some(n) => write!(f, "{program}: {n} {kind} are left"),
            None => write!(f, "{program}: threads that may have {kind} never end"),
        }
    }
}

/// Reads the counts of test programs.
fn counts(folder: &Path) -> io::Result<Vec<Count>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let text = fs::read_to_string(path).ok()?;
        count(name, &text)
    };
    Ok(paths.iter().filter_map(read).collect())
}

/// Reads a count from the name of its file, `PROGRAM-HASH.PROCESS.KIND`, and its text.
fn count(name: &str, text: &str) -> Option<Count> {
    let [program, _, kind] = name.split('.').collect::<Vec<_>>()[..] else {
        return None;
    };
    let (program, _hash) = program.rsplit_once('-')?;
    Some(Count {
        program: program.to_owned(),
        kind: kind.to_owned(),
        n_left: (text != "?").then(|| text.parse().unwrap_or(u64::MAX)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_test_programs() {
        let left = |n_left| Count {
            program: "wrong_uses".to_owned(),
            kind: "blocks".to_owned(),
            n_left,
        };
        let name = "wrong_uses-3cc904c3fa633190.7371.blocks";
        assert_eq!(count(name, "632"), Some(left(Some(632))));
        assert_eq!(count(name, "?"), Some(left(None)));
        assert_eq!(count(name, ""), Some(left(Some(u64::MAX))));
        assert_eq!(
            count("wrong_uses-3cc904c3fa633190.7371.blocks.new", "3"),
            None
        );
        assert_eq!(count("readme", "3"), None);
    }
}
