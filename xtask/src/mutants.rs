//! Mutation testing by cargo-mutants: what is wrong in one place must fail a test.
//!
//! `.cargo/mutants.toml` says what is left out. All mutants of a subject take hours on a small machine, so a shard
//! is a part of them, spread evenly: `3/20` is the fourth of twenty parts.

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
    tested: &'static [&'static str],
}

/// All of them.
const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "bef",
        changed: &["--package=tfrt-bef"],
        tested: &["tfrt-bef", "tfrt-compiler"],
    },
    Subject {
        name: "values",
        changed: &[
            "--package=tfrt-async",
            "--file=crates/async/src/*.rs",
            "--file=crates/async/src/cell/*.rs",
        ],
        tested: &["tfrt-async"],
    },
    Subject {
        name: "executor",
        changed: &[
            "--package=tfrt-host",
            "--file=crates/host/src/executor/**/*.rs",
            "--file=crates/host/src/executor.rs",
        ],
        tested: &["tfrt-host", "tfrt-kernels", "tfrt-differential"],
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
    let mut passes = false;
    // Tests that fail anyway would catch everything, and cargo-mutants looks at those of the changed package only.
    steps.work("tests pass without a mutant", || {
        let packages = subject.tested.iter();
        let packages = packages.map(|package| format!("--package={package}"));
        passes = succeeds(cargo(&["test", "--quiet"]).args(packages));
        passes
    });
    if passes {
        steps.work(&format!("mutants: {name}"), || match subject.run(shard) {
            Ok(tally) => {
                println!("{name} {}: {tally}", shard.unwrap_or("whole"));
                tally.caught_percent() >= MIN_CAUGHT_PERCENT
            }
            Err(error) => {
                eprintln!("{error}");
                false
            }
        });
    }
    true
}

impl Subject {
    /// Runs cargo-mutants, and reads what it leaves.
    fn run(&self, shard: Option<&str>) -> io::Result<Tally> {
        let folder = target("mutants").join(self.name);
        let found = folder.join("mutants.out");
        if found.exists() {
            fs::remove_dir_all(&found)?;
        }
        fs::create_dir_all(&folder)?;
        let mut command = cargo(&["mutants", "--no-shuffle", "--colors=never"]);
        command.arg("--profile=mutants").arg("--output").arg(folder);
        command.args(self.changed);
        command.arg(format!("--test-package={}", self.tested.join(",")));
        if let Some(shard) = shard {
            command.args(["--sharding=round-robin", "--shard", shard]);
        }
        // Examples in the documentation take as long to build as all else, and are no tests: what only they would
        // notice counts as missed.
        command.args(["--", "--tests"]);
        // What it returns tells no more than its lists.
        command.status()?;
        Tally::read(&found)
    }
}

/// What became of mutants.
#[derive(Debug)]
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

#[cfg(test)]
mod tests {
    use super::*;

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
