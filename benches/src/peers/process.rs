//! Programs that do something as often as they are asked to: for each line on their standard input, a
//! number of times, they answer with the nanoseconds that took. In between they are stopped: threads that wait
//! by going in circles would take the processor from whose turn it is.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::folders;

/// A running program that waits to be asked.
#[derive(Debug)]
pub struct PeerProcess {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    child: Child,
    /// The line that it began with.
    pub greeting: String,
}

impl PeerProcess {
    /// Starts a program, and waits for its first line; what is behind the first word is more of it.
    ///
    /// # Errors
    ///
    /// Why it can't be started, in a line.
    pub fn start(command: &mut Command) -> Result<PeerProcess, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut asked = PeerProcess {
            input,
            output: BufReader::new(output.expect("it is piped")),
            child,
            greeting: String::new(),
        };
        asked.greeting = asked.line()?;
        if asked.greeting.is_empty() {
            return Err("it ended before it said anything".to_owned());
        }
        asked.signal("STOP");
        Ok(asked)
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        status.expect("a child can be sent signals");
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|error| error.to_string())?;
        Ok(line.trim().to_owned())
    }

    /// Lets the program do its work so many times; returns the time that it took.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn ask(&mut self, n_times: usize) -> Duration {
        let line = self.tell(&n_times.to_string());
        let nanoseconds = line
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or_else(|| panic!("a number, not '{line}'")))
    }

    /// Asks, without a number of times, for something else: a line for a line.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn tell(&mut self, question: &str) -> String {
        self.signal("CONT");
        let input = self.input.as_mut().expect("it is taken at the end only");
        writeln!(input, "{question}").expect("the program reads");
        let line = self.line().expect("the program answers");
        self.signal("STOP");
        line
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // Without an input it ends.
        self.signal("CONT");
        self.input = None;
        drop(self.child.wait());
    }
}

/// Returns the folder of what `peers/setup.sh` has set up.
///
/// # Errors
///
/// That it has not, in a line.
pub fn registry() -> Result<PathBuf, String> {
    let folder = folders::target("peers").join("venv");
    match folder.join("bin/python").exists() {
        true => Ok(folder),
        false => Err("benches/peers/setup.sh was not run".to_owned()),
    }
}

/// Returns a program in Python under `peers/`, with what was set up.
///
/// # Errors
///
/// See [`registry`].
pub fn python(source: &str) -> Result<Command, String> {
    let mut command = Command::new(registry()?.join("bin/python"));
    command.arg(folders::here().join("peers").join(source));
    Ok(command)
}

/// Builds `peers/onednn.cpp`.
///
/// # Errors
///
/// Why it can't be built, in a line.
pub fn onednn() -> Result<PathBuf, String> {
    let registry = registry()?;
    let path = folders::target("peers").join("onednn");
    let library = registry.join("lib");
    let output = Command::new("g++")
        .args(["-std=c++20", "-O3", "-DNDEBUG", "-fopenmp", "-o"])
        .arg(&path)
        .arg(folders::here().join("peers/onednn.cpp"))
        .arg("-isystem")
        .arg(registry.join("include"))
        .arg("-L")
        .arg(&library)
        .args(["-ldnnl", &format!("-Wl,-rpath,{}", library.display())])
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(path),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("g++: {error}")),
    }
}
