//! Libraries in C++: programs under `peers/`, built where the headers are, that run a graph as often
//! as they are asked to.
//!
//! A program is started with the graph's file, the number of threads, and what a node does. For
//! each line on its standard input, a number of times, it runs the graph that often and answers
//! with the nanoseconds that it took, and the value of the last node.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::cases::{START, STEP};
use crate::compare::{Contender, Sample};
use crate::folders;
use crate::graph::Graph;
use crate::peers::shared::Body;

/// A library in C++, with a program of ours that uses it.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    name: &'static str,
    /// The program under `peers/`.
    source: &'static str,
    /// The variable of the environment with the folder of headers, if they are not the system's.
    folder: Option<&'static str>,
    /// The libraries that the program is linked with.
    link: &'static [&'static str],
}

/// taskflow, whose headers are in the folder `TASKFLOW_DIR`.
pub const TASKFLOW: Library = Library {
    name: "taskflow",
    source: "taskflow.cpp",
    folder: Some("TASKFLOW_DIR"),
    link: &[],
};

/// oneTBB's flow graph, as the system has it (Debian: `libtbb-dev`).
pub const ONE_TBB: Library = Library {
    name: "oneTBB flow graph",
    source: "onetbb.cpp",
    folder: None,
    link: &["-ltbb"],
};

impl Library {
    /// Builds the program, unless the headers are not there.
    ///
    /// # Errors
    ///
    /// Why it can't be built, in a line.
    pub fn build(self) -> Result<Program, String> {
        let folder = match self.folder {
            None => None,
            Some(variable) => match std::env::var_os(variable) {
                Some(folder) => Some(folder),
                None => return Err(format!("{}: {variable} is not set", self.name)),
            },
        };
        let source = folders::here().join("peers").join(self.source);
        let target = folders::target("peers");
        fs::create_dir_all(&target).map_err(|error| error.to_string())?;
        let path = target.join(self.source).with_extension("");
        let mut command = Command::new("g++");
        command.args(["-std=c++20", "-O3", "-DNDEBUG", "-pthread", "-o"]);
        command.arg(&path).arg(&source);
        if let Some(folder) = folder {
            command.arg("-isystem").arg(folder);
        }
        let output = command.args(self.link).output();
        match output {
            Ok(output) if output.status.success() => Ok(Program {
                name: self.name,
                path,
            }),
            Ok(_) => Err(format!("{}: g++ can't build its program", self.name)),
            Err(_) => Err(format!("{}: g++ is not installed", self.name)),
        }
    }
}

/// A program that was built.
#[derive(Clone, Debug)]
pub struct Program {
    name: &'static str,
    path: PathBuf,
}

impl Program {
    /// Starts the program on a graph.
    ///
    /// # Panics
    ///
    /// If it can't be started.
    pub fn start(&self, graph: &Graph, body: Body, n_threads: usize) -> Contender {
        let file = self.path.with_extension("graph");
        fs::write(&file, text(graph)).expect("the folder of what is built can be written");
        let mut command = Command::new(&self.path);
        command
            .arg(&file)
            .arg(n_threads.to_string())
            .arg(if body.is_slow() { "slow" } else { "add" })
            .args([START.to_string(), STEP.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("what was built can be started");
        let mut process = Process {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
        };
        // It answers when it has read the file, which the next one overwrites.
        process.ask(0);
        Contender {
            name: self.name.to_owned(),
            work: Box::new(move |n_times| process.ask(n_times)),
        }
    }
}

/// Returns the graph as the programs read it: for each node the number of its predecessors, and
/// these.
fn text(graph: &Graph) -> String {
    let mut text = format!("{}\n", graph.n_nodes());
    for node in 0..graph.n_nodes() as u32 {
        let before = graph.predecessors(node);
        let words = before.iter().map(u32::to_string);
        let words: Vec<String> = std::iter::once(before.len().to_string())
            .chain(words)
            .collect();
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text
}

/// A program that runs.
struct Process {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    child: Child,
}

impl Process {
    fn ask(&mut self, n_times: u32) -> Sample {
        let input = self.input.as_mut().expect("it is taken at the end only");
        writeln!(input, "{n_times}").expect("the program reads");
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.expect("the program answers");
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<i64>().ok());
        let (Some(time), Some(answer)) = (number(), number()) else {
            panic!("the program answers with two numbers, not '{line}'");
        };
        Sample {
            time: Duration::from_nanos(u64::try_from(time).unwrap_or(0)),
            answer: i32::try_from(answer).unwrap_or(0),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without an input it ends.
        self.input = None;
        drop(self.child.wait());
    }
}
