//! Mutation testing by cargo-mutants: what is wrong in one place must fail a test.
//!
//! `.cargo/mutants.toml` says what is left out. All mutants of a subject take hours on a small machine, so a shard
//! is a part of them, spread evenly: `3/20` is the fourth of twenty parts. Tests that take long to build are shown
//! only those mutants that the others have missed.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::steps::{Steps, cargo, succeeds, target};

/// Of the mutants that can be built, so many in a hundred must be caught.
const MIN_CAUGHT_PERCENT: f64 = 95.0;

/// What is changed, and what must notice.
struct Subject {
    name: &'static str,
    /// Arguments that pick the changes.
    changed: &'static [&'static str],
    /// Packages whose tests are run.
    tested: &'static str,
    /// Tests of the front crate that are shown what those miss.
    tested_then: &'static [&'static str],
}

/// All of them.
const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "bef",
        changed: &["--package=tfrt-bef"],
        tested: "tfrt-bef,tfrt-compiler",
        tested_then: &["--test=broken", "--test=inspect", "--test=hollow"],
    },
    Subject {
        name: "values",
        changed: &[
            "--package=tfrt-async",
            "--file=crates/async/src/*.rs",
            "--file=crates/async/src/cell/*.rs",
        ],
        tested: "tfrt-async",
        tested_then: &[],
    },
    Subject {
        name: "executor",
        changed: &[
            "--package=tfrt-host",
            "--file=crates/host/src/executor/**/*.rs",
            "--file=crates/host/src/executor.rs",
        ],
        tested: "tfrt-host,tfrt-kernels,tfrt-differential",
        tested_then: &["--test=corpus", "--test=survival", "--test=interleaving"],
    },
];

/// The names that `run` knows.
pub fn names() -> Vec<&'static str> {
    SUBJECTS.iter().map(|subject| subject.name).collect()
}

/// Makes the mutants of one subject, or of a shard of it; false if there is no such subject.
pub fn run(steps: &mut Steps, name: &str, shard: Option<&str>) -> bool {
    let Some(subject) = SUBJECTS.iter().find(|subject| subject.name == name) else {
        return false;
    };
    if !succeeds(&mut cargo(&["mutants", "--version"])) {
        steps.skip("mutants", "cargo-mutants (cargo install cargo-mutants)");
        return true;
    }
    let packages = format!("--test-package={}", subject.tested);
    let mut picked = vec![packages];
    if let Some(shard) = shard {
        picked.extend(["--sharding=round-robin", "--shard", shard].map(str::to_owned));
    }
    let mut tally = Tally::default();
    steps.work(&format!("mutants: {name}"), || {
        subject.add_to(&mut tally, name, &picked)
    });
    if !subject.tested_then.is_empty() && !tally.missed.is_empty() {
        let mut tests = cargo(&["test", "--package=tfrt"]);
        steps.tests(
            "further tests without a mutant",
            tests.args(subject.tested_then),
        );
        // The unchanged code was just tried.
        let options = ["--baseline=skip", "--timeout=300", "--test-package=tfrt"];
        let mut picked: Vec<String> = options.map(str::to_owned).into();
        let missed = std::mem::take(&mut tally.missed);
        picked.extend(
            missed
                .iter()
                .map(|name| format!("--re=^{}$", escaped(name))),
        );
        picked.push("--".to_owned());
        picked.extend(subject.tested_then.iter().map(|test| (*test).to_owned()));
        steps.work(&format!("mutants: {name}, those that were missed"), || {
            subject.add_to(&mut tally, &format!("{name}-then"), &picked)
        });
    }
    steps.work("enough mutants are caught", || {
        println!("{name} {}: {tally}", shard.unwrap_or("whole"));
        tally.caught_percent() >= MIN_CAUGHT_PERCENT
    });
    true
}

impl Subject {
    /// Tries the mutants that are picked; false if that can't be done.
    fn add_to(&self, tally: &mut Tally, folder: &str, picked: &[String]) -> bool {
        let found = self.try_mutants(&target("mutants").join(folder), picked);
        match found {
            Ok(found) => tally.add(found),
            Err(error) => {
                eprintln!("{error}");
                return false;
            }
        }
        true
    }

    /// Runs cargo-mutants, and reads what it leaves.
    fn try_mutants(&self, folder: &Path, picked: &[String]) -> io::Result<Tally> {
        let found = folder.join("mutants.out");
        if found.exists() {
            fs::remove_dir_all(&found)?;
        }
        fs::create_dir_all(folder)?;
        // What it returns tells no more than its lists.
        cargo(&["mutants", "--no-shuffle", "--colors=never", "--output"])
            .arg(folder)
            .args(self.changed)
            .args(picked)
            .status()?;
        Tally::read(&found)
    }
}

/// What became of mutants.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    n_caught: usize,
    n_timeouts: usize,
    /// They could not be built.
    n_unviable: usize,
    missed: Vec<String>,
}

impl Tally {
    /// Reads the lists that cargo-mutants writes.
    fn read(folder: &Path) -> io::Result<Tally> {
        let names = |list: &str| -> io::Result<Vec<String>> {
            let path: PathBuf = folder.join(list);
            let text = fs::read_to_string(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Tally {
            n_caught: names("caught.txt")?.len(),
            n_timeouts: names("timeout.txt")?.len(),
            n_unviable: names("unviable.txt")?.len(),
            missed: names("missed.txt")?,
        })
    }

    fn add(&mut self, more: Tally) {
        self.n_caught += more.n_caught;
        self.n_timeouts += more.n_timeouts;
        self.n_unviable += more.n_unviable;
        self.missed.extend(more.missed);
    }

    /// Of those that could be built. What never ends is noticed, too.
    fn caught_percent(&self) -> f64 {
        let n_noticed = self.n_caught + self.n_timeouts;
        100.0 * n_noticed as f64 / (n_noticed + self.missed.len()).max(1) as f64
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for name in &self.missed {
            writeln!(f, "missed: {name}")?;
        }
        let Tally {
            n_caught,
            n_timeouts,
            n_unviable,
            missed,
        } = self;
        let n_all = n_caught + n_timeouts + n_unviable + missed.len();
        write!(
            f,
            "{n_all} mutants: {n_caught} caught, {n_timeouts} timeouts, {n_unviable} unviable, {} missed: {:.1} % caught",
            missed.len(),
            self.caught_percent()
        )
    }
}

/// The text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let name = "a.rs:4:5: replace || with && in <impl F for [T]>::f -> Option<u8>";
        let expected = r"a\.rs:4:5: replace \|\| with && in <impl F for \[T\]>::f -> Option<u8>";
        assert_eq!(escaped(name), expected);
    }

    #[test]
    fn what_cannot_be_built_does_not_count() {
        let tally = Tally {
            n_caught: 17,
            n_timeouts: 2,
            n_unviable: 20,
            missed: vec!["a.rs:1:1: replace + with -".to_owned()],
        };
        assert_eq!(tally.caught_percent(), 95.0);
        let text = "missed: a.rs:1:1: replace + with -\n\
                    40 mutants: 17 caught, 2 timeouts, 20 unviable, 1 missed: 95.0 % caught";
        assert_eq!(tally.to_string(), text);
    }
}
