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
        let again = self.tally("all", &missed, "--tests", self.tested)?;
        tally.with_missed(&again)
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

/// What became of mutants, by their names.
#[derive(Debug)]
struct Tally {
    caught: Vec<String>,
    timeouts: Vec<String>,
    /// They could not be built.
    unviable: Vec<String>,
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
            caught: names("caught.txt")?,
            timeouts: names("timeout.txt")?,
            unviable: names("unviable.txt")?,
            missed: names("missed.txt")?,
        })
    }

    fn n_all(&self) -> usize {
        self.caught.len() + self.timeouts.len() + self.unviable.len() + self.missed.len()
    }

    /// With what became of all that were missed, which were tried again.
    fn with_missed(&self, again: &Tally) -> io::Result<Tally> {
        let again = again.only(&self.missed);
        if again.n_all() != self.missed.len() {
            let (n_tried, n_missed) = (again.n_all(), self.missed.len());
            let message = format!("{n_tried} of {n_missed} mutants were tried by all tests");
            return Err(io::Error::other(message));
        }
        let both = |first: &[String], then: &[String]| [first, then].concat();
        Ok(Tally {
            caught: both(&self.caught, &again.caught),
            timeouts: both(&self.timeouts, &again.timeouts),
            unviable: both(&self.unviable, &again.unviable),
            missed: again.missed,
        })
    }

    /// Of those with these names: cargo-mutants tries fields that are deleted whatever it is asked for.
    fn only(&self, wanted: &[String]) -> Tally {
        let only = |names: &[String]| -> Vec<String> {
            let names = names.iter().filter(|name| wanted.contains(name));
            names.cloned().collect()
        };
        Tally {
            caught: only(&self.caught),
            timeouts: only(&self.timeouts),
            unviable: only(&self.unviable),
            missed: only(&self.missed),
        }
    }

    /// Of those that could be built. What never ends is noticed, too.
    fn caught_percent(&self) -> f64 {
        let n_noticed = self.caught.len() + self.timeouts.len();
        100.0 * n_noticed as f64 / (n_noticed + self.missed.len()).max(1) as f64
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for name in &self.missed {
            writeln!(f, "missed: {name}")?;
        }
        write!(
            f,
            "{} mutants: {} caught, {} timeouts, {} unviable, {} missed: {:.1} % caught",
            self.n_all(),
            self.caught.len(),
            self.timeouts.len(),
            self.unviable.len(),
            self.missed.len(),
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
        let some = |n: usize| vec![String::new(); n];
        let tally = Tally {
            caught: some(17),
            timeouts: some(2),
            unviable: some(20),
            missed: vec!["a.rs:1:1: replace + with -".to_owned()],
        };
        assert_eq!(tally.caught_percent(), 95.0);
        let text = "missed: a.rs:1:1: replace + with -\n\
                    40 mutants: 17 caught, 2 timeouts, 20 unviable, 1 missed: 95.0 % caught";
        assert_eq!(tally.to_string(), text);
    }

    #[test]
    fn what_some_tests_missed_is_as_all_tests_have_found_it() {
        let tally = |caught: &str, timeouts: &str, missed: &str| {
            let names = |names: &str| names.chars().map(String::from).collect();
            Tally {
                caught: names(caught),
                timeouts: names(timeouts),
                unviable: Vec::new(),
                missed: names(missed),
            }
        };
        let first = tally("xyz", "t", "abc");
        // What nobody asked for, `d`, is not counted.
        let both = first.with_missed(&tally("a", "c", "bd"));
        let both = both.expect("all three were tried again").to_string();
        assert!(
            both.ends_with("7 mutants: 4 caught, 2 timeouts, 0 unviable, 1 missed: 85.7 % caught"),
            "{both}"
        );
        let lost = first.with_missed(&tally("a", "c", "d"));
        assert_eq!(
            lost.unwrap_err().to_string(),
            "2 of 3 mutants were tried by all tests"
        );
    }
}
