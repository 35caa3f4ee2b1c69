//! Inputs of `tests/fuzz/` through the targets of fuzzing.
//!
//! Each target's corpus is one test; each input that once broke a property is one of its own,
//! named after what it found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use tfrt_fuzz::seeds::{self, Corpus};
use tfrt_fuzz::{TARGETS, Target};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Some targets compare how many values the process has before and after, among them those that another target's
    // thread lets go of when it ends.
    arguments.test_threads = Some(1);
    let regressions = seeds::root().join("tests/fuzz/regressions");
    let mut trials = Vec::new();
    for target in TARGETS {
        let name = format!("corpus of {}", target.name);
        trials.push(Trial::test(name, move || {
            let corpus = Corpus::of(target.name);
            for number in numbers(&corpus) {
                check(target, &corpus.input(number), &format!("number {number}"));
            }
            Ok(())
        }));
        for path in files(&regressions.join(target.name)) {
            let found = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{}: {}", target.name, found.replace('-', " "));
            trials.push(Trial::test(name, move || {
                let bytes = fs::read(&path).expect("it can be read");
                check(target, &bytes, &path.display().to_string());
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The numbers that are listed, or as many as `TFRT_CORPUS` asks for.
fn numbers(corpus: &Corpus) -> Vec<u64> {
    match std::env::var("TFRT_CORPUS") {
        Ok(end) => (0..end.parse().expect("a number")).collect(),
        Err(_) => corpus.listed(),
    }
}

/// The longest time of an input; the limits on programs are for a hundredth of that.
const PATIENCE: Duration = Duration::from_secs(10);

fn check(target: Target, bytes: &[u8], name: &str) {
    let begin = Instant::now();
    // A panic says what is broken, but not for which input.
    let ran = std::panic::catch_unwind(|| (target.check)(bytes));
    assert!(ran.is_ok(), "{}: {name}", target.name);
    let took = begin.elapsed();
    assert!(took < PATIENCE, "{}: {name}: {took:?}", target.name);
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
