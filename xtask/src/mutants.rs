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
    /// Tries mutants by the unit tests of the changed package, which are built and run fastest, and those that they
    /// miss by all tests. Examples in the documentation are none: what only they would notice counts as missed.
    fn run(&self, shard: Option<&str>) -> io::Result<Tally> {
        let shard = shard.map(|shard| format!("--shard={shard}"));
        let shard = shard.map(|shard| vec!["--sharding=round-robin".to_owned(), shard]);
        let tally = self.tally(
            "unit",
            &shard.unwrap_or_default(),
            "--lib",
            &self.tested[..1],
        )?;
        if tally.missed.is_empty() {
            return Ok(tally);
        }
        let missed = tally.missed.iter();
        let missed: Vec<String> = missed
            .map(|name| format!("--re=^{}$", escaped(name)))
            .collect();
        tally.with_missed(self.tally("all", &missed, "--tests", self.tested)?)
    }

    /// Runs cargo-mutants for some mutants and some targets of packages, and reads what it leaves in a folder.
    fn tally(
        &self,
        folder: &str,
        picked: &[String],
        targets: &str,
        tested: &[&str],
    ) -> io::Result<Tally> {
        let folder = target("mutants").join(self.name).join(folder);
        let found = folder.join("mutants.out");
        if found.exists() {
            fs::remove_dir_all(&found)?;
        }
        fs::create_dir_all(&folder)?;
        let mut command = cargo(&["mutants", "--no-shuffle", "--colors=never"]);
        command.arg("--profile=mutants").arg("--output").arg(folder);
        command.args(self.changed).args(picked);
        command.arg(format!("--test-package={}", tested.join(",")));
        command.arg(format!("--cargo-arg={targets}"));
        // What it returns tells no more than its lists.
        command.status()?;
        Tally::read(&found)
    }
}

/// A regular expression for a name of a mutant.
fn escaped(name: &str) -> String {
    let mut expression = String::new();
    for char in name.chars() {
        if r"\.+*?()|[]{}^$".contains(char) {
            expression.push('\\');
        }
        expression.push(char);
    }
    expression
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

    fn n_all(&self) -> usize {
        self.n_caught + self.n_timeouts + self.n_unviable + self.missed.len()
    }

    /// With what became of all that were missed, which were tried again.
    fn with_missed(self, again: Tally) -> io::Result<Tally> {
        if again.n_all() != self.missed.len() {
            let (n_tried, n_missed) = (again.n_all(), self.missed.len());
            let message = format!("{n_tried} of {n_missed} mutants were tried by all tests");
            return Err(io::Error::other(message));
        }
        Ok(Tally {
            n_caught: self.n_caught + again.n_caught,
            n_timeouts: self.n_timeouts + again.n_timeouts,
            n_unviable: self.n_unviable + again.n_unviable,
            missed: again.missed,
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
        let n_all = self.n_all();
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
    fn names_are_escaped() {
        let name = "a.rs:1:1: replace + with - in <impl Drop for A<'a>>::b -> Option<&(u8, [u8])>";
        let expression =
            r"a\.rs:1:1: replace \+ with - in <impl Drop for A<'a>>::b -> Option<&\(u8, \[u8\]\)>";
        assert_eq!(escaped(name), expression);
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

    #[test]
    fn what_some_tests_missed_is_as_all_tests_have_found_it() {
        let tally = |n_caught, missed: &[&str]| Tally {
            n_caught,
            n_timeouts: 1,
            n_unviable: 0,
            missed: missed.iter().map(|&name| name.to_owned()).collect(),
        };
        let both = tally(3, &["a", "b", "c"]).with_missed(tally(1, &["b"]));
        let both = both.expect("all three were tried again");
        assert_eq!(
            (both.n_caught, both.n_timeouts, both.missed.len()),
            (4, 2, 1)
        );
        let lost = tally(3, &["a", "b", "c"]).with_missed(tally(1, &[]));
        assert_eq!(
            lost.unwrap_err().to_string(),
            "2 of 3 mutants were tried by all tests"
        );
    }
}
