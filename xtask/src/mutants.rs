//! Mutation testing: a small change of the code must fail a test.
//!
//! cargo-mutants says what could be changed; `.cargo/mutants.toml` says what of that is left out. All changes of a
//! subject are built together, each behind a number that the environment gives ([`switch`]), so that a mutant takes no
//! longer than its tests do. The few that can't be built so are left to cargo-mutants. A shard is a part of them, spread
//! evenly: `3/20` is the fourth of twenty parts.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::steps::{Steps, cargo, root, succeeds, target, tracked_files};

mod switch;

use switch::{Mutant, Program};

/// The least per cent of mutants, of those that can be built, that must be caught.
const MIN_CAUGHT_PERCENT: f64 = 95.0;

/// The factor on the time of the tests without a mutant after which, and never before [`MIN_PATIENCE`], a mutant is
/// taken for one that never ends.
const PATIENCE: u32 = 10;
const MIN_PATIENCE: Duration = Duration::from_secs(10);

/// The address space of a program with tests, in KiB: some mutants take memory without end.
const MAX_MEMORY_KIB: u64 = 8 << 20;

/// The most rounds in which mutants that do not compile are left out.
const MAX_ROUNDS: usize = 30;

/// A subject of mutation: the code that is changed, and the tests that must notice.
struct Subject {
    name: &'static str,
    /// The arguments that pick the changes.
    changed: &'static [&'static str],
    /// The root of the crate that is changed.
    root: &'static str,
    /// The packages whose tests are run, that of the crate first.
    tested: &'static [&'static str],
    /// The stack of a thread of tests: a body with all its copies has a large frame. All stacks of a program fit into
    /// its address space.
    stack_bytes: usize,
}

/// All subjects.
const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "bef",
        changed: &["--package=tfrt-bef"],
        root: "crates/bef/src/lib.rs",
        tested: &["tfrt-bef", "tfrt-compiler"],
        stack_bytes: 512 << 20,
    },
    Subject {
        name: "values",
        changed: &[
            "--package=tfrt-async",
            "--file=crates/async/src/*.rs",
            "--file=crates/async/src/cell/*.rs",
        ],
        root: "crates/async/src/lib.rs",
        tested: &["tfrt-async"],
        stack_bytes: 64 << 20,
    },
    Subject {
        name: "executor",
        changed: &[
            "--package=tfrt-host",
            "--file=crates/host/src/executor/**/*.rs",
            "--file=crates/host/src/executor.rs",
        ],
        root: "crates/host/src/lib.rs",
        tested: &["tfrt-host", "tfrt-kernels", "tfrt-differential"],
        stack_bytes: 512 << 20,
    },
];

/// Returns the names that `run` knows.
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
            Ok(results) => {
                println!("{name} {}: {results}", shard.unwrap_or("whole"));
                results.caught_percent() >= MIN_CAUGHT_PERCENT
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
    /// Tries all mutants, or a part of them.
    fn run(&self, shard: Option<&str>) -> io::Result<MutantResults> {
        let mut list = cargo(&["mutants", "--list", "--json"]);
        list.args(self.changed);
        if let Some(shard) = shard {
            list.arg("--sharding=round-robin")
                .arg(format!("--shard={shard}"));
        }
        let mutants = switch::read(&said(&mut list)?);
        let mutants = mutants.ok_or_else(|| io::Error::other("cargo-mutants lists no mutants"))?;
        let built = self.build(&mutants)?;
        println!(
            "{} of {} mutants are behind a switch, {} do not compile",
            built.carried.len(),
            mutants.len(),
            built.unviable.len()
        );
        let mut results = built.try_all(&mutants, self.stack_bytes)?;
        let is_left = |position: &usize| {
            !built.carried.contains(position) && !built.unviable.contains(position)
        };
        let left = (0..mutants.len()).filter(is_left);
        let left: Vec<String> = left
            .map(|position| mutants[position].name.clone())
            .collect();
        if !left.is_empty() {
            println!("{} mutants are built one by one", left.len());
            results.extend(self.one_by_one(&left)?);
        }
        match results.n_all() == mutants.len() {
            true => Ok(results),
            false => {
                let (n_tried, n_all) = (results.n_all(), mutants.len());
                let message = format!("{n_tried} of {n_all} mutants were tried");
                Err(io::Error::other(message))
            }
        }
    }

    /// Builds the tests with all mutants that compile behind a switch.
    fn build(&self, mutants: &[Mutant]) -> io::Result<MutantBuild> {
        let tree = self.folder().join("tree");
        copy_tracked(&tree)?;
        let of_root = fs::read_to_string(root().join(self.root))?;
        fs::write(tree.join(self.root), of_root + switch::READER)?;
        let files: BTreeSet<&str> = mutants.iter().map(|mutant| &*mutant.file).collect();
        let mut unviable = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let mut arms = BTreeMap::new();
            for file in &files {
                let all = mutants.iter().enumerate();
                let those = all.filter(|(position, mutant)| {
                    mutant.file == **file && !unviable.contains(position)
                });
                let mut source = fs::read_to_string(root().join(file))?;
                if *file == self.root {
                    source.push_str(switch::READER);
                }
                let switched = switch::switched(&source, those);
                fs::write(tree.join(file), switched.text)?;
                arms.insert((*file).to_owned(), switched.arms);
            }
            let checked = self.cargo_in(&tree, "check", &self.tested[..1]).output()?;
            let (wrong, others) = switch::errors(&String::from_utf8_lossy(&checked.stdout), &arms);
            if checked.status.success() {
                let carried = arms.values().flatten().map(|(_, position)| *position);
                let carried = carried.collect();
                let mut build = self.cargo_in(&tree, "test", self.tested);
                build.args(["--no-run", "--lib", "--tests"]);
                let mut programs = switch::programs(&said(&mut build)?);
                let folder = |package: &str| package.replacen("tfrt-", "crates/", 1);
                let place = |program: &Program| {
                    let mut packages = self.tested.iter();
                    let is_of = |package: &&str| program.folder.ends_with(&folder(package));
                    (packages.position(is_of), !program.is_library)
                };
                programs.sort_by_key(place);
                return Ok(MutantBuild {
                    programs,
                    carried,
                    unviable,
                });
            }
            if wrong.is_empty() {
                let message = String::from_utf8_lossy(&checked.stderr).into_owned();
                return Err(io::Error::other(others.join("\n") + &message));
            }
            unviable.extend(wrong);
        }
        Err(io::Error::other(
            "there is always one more that does not compile",
        ))
    }

    /// Returns the command of cargo on some packages of the tree with mutants, which reports in JSON.
    fn cargo_in(&self, tree: &Path, command: &str, packages: &[&str]) -> Command {
        let mut cargo = cargo(&[command, "--profile=mutants", "--message-format=json"]);
        cargo
            .current_dir(tree)
            .args(
                packages
                    .iter()
                    .map(|package| format!("--package={package}")),
            )
            .env("CARGO_TARGET_DIR", self.folder().join("target"))
            // Copies of a body have much that is not used.
            .env("RUSTFLAGS", "--cap-lints=allow")
            .stderr(Stdio::piped());
        cargo
    }

    fn folder(&self) -> PathBuf {
        target("mutants").join(self.name)
    }

    /// Runs cargo-mutants for some mutants, and reads what it leaves in a folder.
    fn one_by_one(&self, names: &[String]) -> io::Result<MutantResults> {
        let folder = self.folder().join("one-by-one");
        let found = folder.join("mutants.out");
        if found.exists() {
            fs::remove_dir_all(&found)?;
        }
        fs::create_dir_all(&folder)?;
        let mut command = cargo(&["mutants", "--no-shuffle", "--colors=never"]);
        command.arg("--profile=mutants").arg("--output").arg(folder);
        command.args(self.changed);
        command.args(names.iter().map(|name| format!("--re=^{}$", escaped(name))));
        command.arg(format!("--test-package={}", self.tested.join(",")));
        command.arg("--cargo-arg=--tests");
        // What it returns tells no more than its lists.
        command.status()?;
        Ok(MutantResults::read(&found)?.only(names))
    }
}

/// The programs with tests, and the mutants in them by their positions.
struct MutantBuild {
    programs: Vec<Program>,
    carried: BTreeSet<usize>,
    unviable: BTreeSet<usize>,
}

/// The result of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Caught,
    NeverEnds,
    Missed,
}

impl MutantBuild {
    /// Tries all mutants behind the switch, as many at a time as there are processors.
    ///
    /// # Errors
    ///
    /// If tests fail without a mutant: they would catch everything.
    fn try_all(&self, mutants: &[Mutant], stack_bytes: usize) -> io::Result<MutantResults> {
        let mut patience = Vec::new();
        for program in &self.programs {
            let begin = Instant::now();
            if run_tests(program, 0, stack_bytes, Duration::MAX) != Fate::Missed {
                let message = format!("{}: tests fail without a mutant", program.path);
                return Err(io::Error::other(message));
            }
            patience.push((begin.elapsed() * PATIENCE).max(MIN_PATIENCE));
        }
        let positions: Vec<usize> = self.carried.iter().copied().collect();
        let (next, results) = (AtomicUsize::new(0), Mutex::new(MutantResults::default()));
        let one = |position: usize| {
            let mut tried = self
                .programs
                .iter()
                .zip(&patience)
                .map(|(program, patience)| {
                    run_tests(program, position + 1, stack_bytes, *patience)
                });
            tried
                .find(|fate| *fate != Fate::Missed)
                .unwrap_or(Fate::Missed)
        };
        thread::scope(|scope| {
            let n_threads = thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..n_threads {
                scope.spawn(|| {
                    // Ordering: each number is taken once, whatever else is seen.
                    while let Some(&position) = positions.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let fate = one(position);
                        let name = mutants[position].name.clone();
                        let mut results = results.lock().expect("no thread panics");
                        if fate == Fate::Missed {
                            println!("missed: {name}");
                        }
                        match fate {
                            Fate::Caught => results.caught.push(name),
                            Fate::NeverEnds => results.timeouts.push(name),
                            Fate::Missed => results.missed.push(name),
                        }
                        if results.n_all().is_multiple_of(100) {
                            println!("{} of {}", results.n_all(), positions.len());
                        }
                    }
                });
            }
        });
        let mut results = results.into_inner().expect("no thread panics");
        let unviable = self
            .unviable
            .iter()
            .map(|position| mutants[*position].name.clone());
        results.unviable.extend(unviable);
        Ok(results)
    }
}

/// Runs the tests of a program with a mutant, and those processes that it starts, for so long at most.
fn run_tests(program: &Program, number: usize, stack_bytes: usize, patience: Duration) -> Fate {
    let limit = format!("ulimit -v {MAX_MEMORY_KIB}; exec \"$0\" --quiet");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limit, &program.path])
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env(switch::VARIABLE, number.to_string())
        .env("RUST_MIN_STACK", stack_bytes.to_string())
        // What it finds is no news.
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let begin = Instant::now();
    let Ok(mut child) = command.spawn() else {
        return Fate::Missed;
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Fate::Missed,
            Ok(Some(_)) => return Fate::Caught,
            _ if begin.elapsed() > patience => {
                succeeds(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]));
                // It is gone now, or was already.
                let _ = child.wait();
                return Fate::NeverEnds;
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Returns the output of a command that must succeed.
fn said(command: &mut Command) -> io::Result<String> {
    let output = command.stdout(Stdio::piped()).output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(message));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies the files that git tracks or does not ignore to a folder that has nothing else then.
fn copy_tracked(to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for file in tracked_files()? {
        let (source, copy) = (root().join(&file), to.join(&file));
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(source, copy)?;
    }
    Ok(())
}

/// Returns a regular expression for a name of a mutant.
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

/// The results of mutants, by their names.
#[derive(Debug, Default)]
struct MutantResults {
    caught: Vec<String>,
    timeouts: Vec<String>,
    /// The mutants that could not be built.
    unviable: Vec<String>,
    missed: Vec<String>,
}

impl MutantResults {
    /// Reads the lists that cargo-mutants writes.
    fn read(folder: &Path) -> io::Result<MutantResults> {
        let names = |list: &str| -> io::Result<Vec<String>> {
            let path: PathBuf = folder.join(list);
            let text = fs::read_to_string(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(MutantResults {
            caught: names("caught.txt")?,
            timeouts: names("timeout.txt")?,
            unviable: names("unviable.txt")?,
            missed: names("missed.txt")?,
        })
    }

    fn n_all(&self) -> usize {
        self.caught.len() + self.timeouts.len() + self.unviable.len() + self.missed.len()
    }

    fn extend(&mut self, other: MutantResults) {
        self.caught.extend(other.caught);
        self.timeouts.extend(other.timeouts);
        self.unviable.extend(other.unviable);
        self.missed.extend(other.missed);
    }

    /// Returns the results of the mutants with these names: cargo-mutants tries fields that are deleted whatever it is
    /// asked for.
    fn only(&self, wanted: &[String]) -> MutantResults {
        let only = |names: &[String]| -> Vec<String> {
            let names = names.iter().filter(|name| wanted.contains(name));
            names.cloned().collect()
        };
        MutantResults {
            caught: only(&self.caught),
            timeouts: only(&self.timeouts),
            unviable: only(&self.unviable),
            missed: only(&self.missed),
        }
    }

    /// Returns the per cent of caught mutants, of those that could be built. One that never ends is noticed, too.
    fn caught_percent(&self) -> f64 {
        let n_noticed = self.caught.len() + self.timeouts.len();
        100.0 * n_noticed as f64 / (n_noticed + self.missed.len()).max(1) as f64
    }
}

impl std::fmt::Display for MutantResults {
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
        let results = MutantResults {
            caught: some(17),
            timeouts: some(2),
            unviable: some(20),
            missed: vec!["a.rs:1:1: replace + with -".to_owned()],
        };
        assert_eq!(results.caught_percent(), 95.0);
        let text = "missed: a.rs:1:1: replace + with -\n\
                    40 mutants: 17 caught, 2 timeouts, 20 unviable, 1 missed: 95.0 % caught";
        assert_eq!(results.to_string(), text);
    }

    #[test]
    fn only_what_was_asked_for_counts() {
        let names = |names: &str| -> Vec<String> { names.chars().map(String::from).collect() };
        let results = |caught, missed| MutantResults {
            caught: names(caught),
            missed: names(missed),
            ..MutantResults::default()
        };
        let mut all = results("ab", "");
        all.extend(results("c", "de").only(&names("cd")));
        assert_eq!((all.n_all(), all.missed), (4, names("d")));
    }
}
