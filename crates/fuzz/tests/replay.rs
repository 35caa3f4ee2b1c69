//! Tests that run the corpus of `tests/fuzz/` through the targets: bugs that fuzzing has found stay
//! fixed.
//!
//! Each target's corpus is one test; each input that once broke a property is one of its own,
//! named after what it found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use tfrt_fuzz::{TARGETS, Target, seeds};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = seeds::root().join("tests/fuzz");
    let mut trials = Vec::new();
    for target in TARGETS {
        let corpus = folder.join(target.corpus);
        let name = format!("corpus of {}", target.name);
        trials.push(Trial::test(name, move || {
            files(&corpus).iter().for_each(|path| check(target, path));
            Ok(())
        }));
        for path in files(&folder.join("regressions").join(target.name)) {
            let found = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{}: {}", target.name, found.replace('-', " "));
            trials.push(Trial::test(name, move || {
                check(target, &path);
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The longest time of an input; the limits on programs are for a hundredth of that.
const PATIENCE: Duration = Duration::from_secs(10);

fn check(target: Target, path: &Path) {
    let bytes = fs::read(path).expect("it can be read");
    let begin = Instant::now();
    // A panic says what is broken, but not for which file.
    let ran = std::panic::catch_unwind(|| (target.check)(&bytes));
    assert!(ran.is_ok(), "{}: {}", target.name, path.display());
    let took = begin.elapsed();
    assert!(took < PATIENCE, "{}: {took:?}", path.display());
}

/// Returns the files of a folder, in order; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}
