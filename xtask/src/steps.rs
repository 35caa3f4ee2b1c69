//! [`Steps`]: the steps of a chore, each of which runs, is timed, and counts as passed, failed or skipped.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The steps so far, with their results.
pub struct Steps {
    started: Instant,
    n_steps: usize,
    failed: Vec<String>,
    /// The complaints of failed checks, repeated at the end.
    complaints: Vec<String>,
    skipped: Vec<String>,
    tests: TestCounts,
}

/// Commands that run beside steps.
pub struct Started {
    name: String,
    started: Instant,
    children: Vec<io::Result<Child>>,
}

/// The counts of tests over all test programs.
#[derive(Default)]
struct TestCounts {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// The names of the failed tests.
    names: Vec<String>,
    /// The output of failed tests, each under its name.
    said: Vec<String>,
    /// The number of further lines that belong to a failed test's output.
    n_said: usize,
}

/// The most lines of a failed test's output that are repeated at the end, and the most complaints of a check.
const MAX_SAID: usize = 8;

impl Steps {
    /// Returns an empty list of steps.
    pub fn new() -> Steps {
        Steps {
            started: Instant::now(),
            n_steps: 0,
            failed: Vec::new(),
            complaints: Vec::new(),
            skipped: Vec::new(),
            tests: TestCounts::default(),
        }
    }

    /// Returns how long all has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Runs a command that must succeed.
    pub fn run(&mut self, name: &str, command: &mut Command) {
        self.step(name, |_| {
            command.status().is_ok_and(|status| status.success())
        });
    }

    /// Starts commands that run beside each other, and beside the steps that follow, until [`join`](Self::join): with what
    /// these leave of the processors.
    pub fn start(name: &str, commands: Vec<Command>) -> Started {
        println!("==> {name}: started");
        let started = Instant::now();
        let children = commands
            .into_iter()
            .map(|command| niced(&command).spawn())
            .collect();
        Started {
            name: name.to_owned(),
            started,
            children,
        }
    }

    /// Waits for commands that were started, all of which must succeed.
    pub fn join(&mut self, started: Started) {
        let mut ok = true;
        for child in started.children {
            let status = child.and_then(|mut child| child.wait());
            ok &= status.is_ok_and(|status| status.success());
        }
        self.end(&started.name, started.started, ok);
    }

    /// Runs tests that must succeed, and counts them.
    pub fn tests(&mut self, name: &str, command: &mut Command) {
        self.step(name, |steps| {
            let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else {
                return false;
            };
            let output = child.stdout.take().expect("it is piped");
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                steps.tests.add(&line);
            }
            child.wait().is_ok_and(|status| status.success())
        });
    }

    /// Runs a check that returns a list of complaints.
    pub fn check(&mut self, name: &str, check: impl FnOnce() -> Vec<String>) {
        self.step(name, |steps| {
            let complaints = check();
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            let ok = complaints.is_empty();
            let first = complaints.into_iter().take(MAX_SAID);
            let named = first.map(|complaint| format!("    {name}: {complaint}"));
            steps.complaints.extend(named);
            ok
        });
    }

    /// Runs `work`, which returns whether it succeeded.
    pub fn work(&mut self, name: &str, work: impl FnOnce() -> bool) {
        self.step(name, |_| work());
    }

    /// Counts a step that could not be run.
    pub fn skip(&mut self, name: &str, tool: &str) {
        println!("SKIPPED: {name}: {tool} is not installed");
        self.skipped.push(name.to_owned());
    }

    /// Counts a step that was run elsewhere.
    pub fn count(&mut self, name: &str, ok: bool) {
        self.n_steps += 1;
        if !ok {
            self.failed.push(name.to_owned());
        }
    }

    fn step(&mut self, name: &str, work: impl FnOnce(&mut Steps) -> bool) {
        println!("==> {name}");
        let started = Instant::now();
        let ok = work(self);
        self.end(name, started, ok);
    }

    fn end(&mut self, name: &str, started: Instant, ok: bool) {
        let verdict = if ok { "ok" } else { "FAILED" };
        println!("==> {name}: {verdict} in {} s", started.elapsed().as_secs());
        self.count(name, ok);
    }

    /// Prints the results, in the form of `cargo test`.
    pub fn finish(self) -> ExitCode {
        let ok = self.failed.is_empty();
        for name in &self.failed {
            println!("failed: {name}");
        }
        for complaint in &self.complaints {
            println!("{complaint}");
        }
        for name in &self.tests.names {
            println!("failed test: {name}");
        }
        for line in &self.tests.said {
            println!("{line}");
        }
        for name in &self.skipped {
            println!("skipped: {name}");
        }
        println!(
            "test result: {}. {} passed; {} failed; {} ignored; {} of {} steps failed; {} skipped; finished in {:.2}s",
            if ok { "ok" } else { "FAILED" },
            self.tests.passed,
            self.tests.failed,
            self.tests.ignored,
            self.failed.len(),
            self.n_steps,
            self.skipped.len(),
            self.started.elapsed().as_secs_f64()
        );
        if ok {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

impl TestCounts {
    /// Adds a line `test result: ok. 9 passed; 0 failed; 0 ignored; ...` or `test NAME ... FAILED`, and those after
    /// `---- NAME stdout ----`; other lines add nothing.
    fn add(&mut self, line: &str) {
        if let Some(name) = failed_test(line) {
            self.names.push(name.to_owned());
        }
        if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.said.push(line.to_owned());
            self.n_said = MAX_SAID;
        } else if line == "failures:" {
            self.n_said = 0;
        } else if self.n_said > 0 && !line.is_empty() {
            self.said.push(format!("    {line}"));
            self.n_said -= 1;
        }
        let Some(rest) = line.trim_start().strip_prefix("test result: ") else {
            return;
        };
        let counts = rest.split_once(". ").map_or("", |(_, counts)| counts);
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// Returns the name in a line `test NAME ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    verdict.starts_with("FAILED").then_some(name.trim_end())
}

/// Returns a command that yields the processors to others, where the system has `nice`.
fn niced(command: &Command) -> Command {
    let mut niced = match exists("nice") {
        true => {
            let mut niced = Command::new("nice");
            niced.args(["-n", "19"]).arg(command.get_program());
            niced
        }
        false => Command::new(command.get_program()),
    };
    niced.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => niced.env(name, value),
            None => niced.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        niced.current_dir(folder);
    }
    niced
}

/// Returns a command of cargo, at the root.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Returns a command of cargo under a time limit, since a model that has lost its way does not end by itself.
pub fn cargo_within(seconds: u32, arguments: &[&str]) -> Command {
    if !exists("timeout") {
        return cargo(arguments);
    }
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=10", &seconds.to_string(), "cargo"])
        .args(arguments)
        .current_dir(root());
    command
}

/// Returns whether a tool answers to `--version`.
pub fn exists(tool: &str) -> bool {
    succeeds(Command::new(tool).arg("--version"))
}

/// Runs a command without showing its output.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Returns the paths of the files that git tracks or does not ignore, from the root on.
pub fn tracked_files() -> io::Result<Vec<String>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others"]);
    list.arg("--exclude-standard").current_dir(root());
    let output = list.output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(message));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    // What was deleted is listed still.
    let files = names
        .split_terminator('\0')
        .filter(|file| root().join(file).is_file());
    Ok(files.map(str::to_owned).collect())
}

/// Returns a folder for builds with other flags, so that they don't displace each other.
pub fn target(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target
        .map_or_else(|| root().join("target"), PathBuf::from)
        .join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_tests_say_is_kept_for_the_end() {
        let mut counts = TestCounts::default();
        let output = "running 2 tests\ntest one ... ok\nnoise\ntest two ... FAILED\n\nfailures:\n\n\
            ---- two stdout ----\n\nthread 'two' panicked at src/lib.rs:1:1:\nodd\n\n\nfailures:\n    two\n\n\
            test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        for line in output.lines() {
            counts.add(line);
        }
        assert_eq!((counts.passed, counts.failed, counts.ignored), (1, 1, 3));
        assert_eq!(counts.names, ["two"]);
        let said = [
            "---- two stdout ----",
            "    thread 'two' panicked at src/lib.rs:1:1:",
            "    odd",
        ];
        assert_eq!(counts.said, said);
    }

    #[test]
    fn long_stories_of_failed_tests_are_cut() {
        let mut counts = TestCounts::default();
        counts.add("---- three stdout ----");
        for _ in 0..100 {
            counts.add("and then");
        }
        assert_eq!(counts.said.len(), 1 + MAX_SAID);
    }
}
