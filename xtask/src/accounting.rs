//! What programs of tests leave behind: nothing, which is looked at when they are over.
//!
//! In builds for development `tfrt-async` writes what is alive each time that no thread is left which had anything
//! (`crates/async/src/accounting.rs`); here the last counts are read. A program is not looked at if one of its
//! threads never ends: then there is no last count.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::steps::{Steps, cargo, target};

/// Runs the tests of some packages, or of all, which must succeed and leave nothing behind.
pub fn tests(steps: &mut Steps, packages: &[&str]) {
    let folder = target("accounting");
    let is_there = emptied(&folder).is_ok();
    let mut command = cargo(&["test", "--no-fail-fast"]);
    match packages {
        [] => command.arg("--workspace"),
        packages => command.args(packages.iter().flat_map(|package| ["-p", *package])),
    };
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
        let left = counts.iter().filter(|count| count.n_left > 0);
        left.map(|count| {
            format!(
                "{}: {} {} are left",
                count.program, count.n_left, count.kind
            )
        })
        .collect()
    });
}

fn emptied(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// What a program has left.
#[derive(Debug, PartialEq)]
struct Count {
    program: String,
    kind: String,
    n_left: u64,
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

/// Reads a count from the name of its file, `PROGRAM-HASH.PROCESS.KIND`, and its text. Commands that tests run
/// have no hash: they exit in the middle of what they do.
fn count(name: &str, text: &str) -> Option<Count> {
    let [program, _, kind] = name.split('.').collect::<Vec<_>>()[..] else {
        return None;
    };
    let (program, hash) = program.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| Count {
        program: program.to_owned(),
        kind: kind.to_owned(),
        n_left: text.trim().parse().unwrap_or(u64::MAX),
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
        assert_eq!(count(name, "632"), Some(left(632)));
        assert_eq!(count(name, ""), Some(left(u64::MAX)));
        assert_eq!(count("tfrt.7371.blocks", "3"), None);
        assert_eq!(count("tfrt-run.7371.blocks", "3"), None);
        assert_eq!(count("readme", "3"), None);
    }
}
