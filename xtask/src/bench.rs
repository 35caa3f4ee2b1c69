//! `cargo xtask bench` and `cargo xtask instructions`: measures the defended numbers, and records
//! them.
//!
//! Times depend on the machine, and are for people; instructions hardly do, and are compared with
//! `benches/instructions.txt` by `ci`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::steps::{Steps, cargo, exists, root, target};

mod summary;

/// The benchmarks that show the instructions of peers.
const COUNTED: [&str; 2] = ["calls", "graphs"];

/// The benchmarks that have the subjects of others, or none: the summary is without them.
const APART: [&str; 4] = ["eager", "idle", "loading", "threads"];

/// The options that leave peers and models out of the counting program.
const ALONE: [&str; 1] = ["--no-default-features"];
/// The options that leave peers out of the counting program.
const NO_PEERS: [&str; 2] = ["--no-default-features", "--features=models"];

/// Returns a command of cargo on the counting program, built for speed.
fn counting(verb: &str, features: &[&str]) -> Command {
    let mut command = cargo(&[verb, "--quiet", "--release"]);
    command
        .args(["--package=tfrt-benches", "--bin=instructions"])
        .args(features);
    command
}

/// Returns the counting program, to be given arguments.
fn count(features: &[&str]) -> Command {
    let mut command = counting("run", features);
    command.arg("--");
    command
}

/// Returns the command that builds the program of [`instructions`] for [`Counted::Executor`].
pub fn build() -> Command {
    counting("build", &ALONE)
}

/// The set of cases whose instructions are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The cases that need no tensors.
    Executor,
    /// All cases: eager operations and whole models, too. The program takes three times as long to
    /// build.
    All,
}

/// Counts instructions, and compares or writes them.
pub fn instructions(steps: &mut Steps, counted: Counted, arguments: &[&str]) {
    if !exists("valgrind") {
        return steps.skip("instructions", "valgrind");
    }
    let mut count = match counted {
        Counted::Executor => count(&ALONE),
        Counted::All => count(&NO_PEERS),
    };
    steps.run("instructions", count.args(arguments));
}

/// Runs benchmarks and prints their output: all, the one called `word`, or those of all subjects
/// that have the word in their name. Whole benchmarks are recorded.
pub fn run(steps: &mut Steps, word: Option<&str>) {
    let names = names();
    let counts = target("instructions.txt");
    // For the rest, and for single subjects, those that are kept will do.
    let with_counts = word.is_none_or(|word| COUNTED.contains(&word));
    if with_counts && exists("valgrind") {
        let path = counts.to_string_lossy();
        let mut count = count(&[]);
        count.args(["--write", &*path, "--peers"]);
        steps.run("instructions", &mut count);
    } else if with_counts {
        steps.skip("instructions", "valgrind");
    }
    let only = word.filter(|word| names.iter().any(|name| name == word));
    let subject = word.filter(|_| only.is_none());
    let mut all = String::new();
    for name in names
        .iter()
        .filter(|name| only.is_none_or(|only| only == *name))
    {
        let mut command = cargo(&[
            "bench",
            "--quiet",
            "--package=tfrt-benches",
            "--bench",
            name,
        ]);
        if with_counts && counts.exists() {
            command.env("TFRT_BENCH_INSTRUCTIONS", &counts);
        }
        command.args(["--"]).args(subject);
        let mut told = String::new();
        steps.work(name, || tell(&mut command, &mut told));
        if subject.is_none() {
            steps.work(&format!("record of {name}"), || record(name, &told));
        }
        if !APART.contains(&name.as_str()) {
            all.push_str(&told);
        }
    }
    if word.is_none() {
        let summary = summary::of(&all);
        print!("{summary}");
        steps.work("record of the summary", || record("summary", &summary));
    }
}

/// Returns the files of `benches/benches`, in order.
fn names() -> Vec<String> {
    let entries = fs::read_dir(root().join("benches/benches"));
    let paths = entries.into_iter().flatten().flatten();
    let mut names: Vec<String> = paths
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Runs a command, prints its output, and keeps it.
fn tell(command: &mut Command, told: &mut String) -> bool {
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else {
        return false;
    };
    let output = child.stdout.take().expect("it is piped");
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        println!("{line}");
        told.push_str(line.trim_end());
        told.push('\n');
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Writes the output of a benchmark under today's date.
fn record(name: &str, told: &str) -> bool {
    let day = answer("date", &["-u", "+%F"]);
    let head = format!(
        "# {day}: {name}\n\n`cargo xtask bench` at {}; {}; {}.\n",
        answer("git", &["describe", "--always", "--dirty"]),
        machine(),
        answer("rustc", &["--version"]),
    );
    let path = root().join(format!("benches/record/{day}-{name}.md"));
    fs::write(path, format!("{head}\n```text\n{told}```\n")).is_ok()
}

/// Returns the processor, and how many there are.
fn machine() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = known.lines().find(|line| line.starts_with(name))?;
        line.split_once(": ").map(|(_, value)| value.to_owned())
    };
    let n_processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{n_processors} processors {} (family {}, model {})",
        field("model name").unwrap_or_default(),
        field("cpu family").unwrap_or_default(),
        field("model\t").unwrap_or_default(),
    )
}

/// Returns the output of a command, in one line.
fn answer(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command)
        .args(arguments)
        .current_dir(Path::new(&root()))
        .output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.unwrap_or_default()
}
