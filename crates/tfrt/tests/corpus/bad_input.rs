//! Bad command lines, files, pipes and runs of every kind that we could think of: what the command
//! says, and how it ends. Programs that are rejected are in `tests/broken/`.
//!
//! Each [`Case`] is one kind. Whatever it is, the command ends by itself with the status that the
//! table says, says why, and never panics; programs that run do so on one thread, on many, and
//! once more with an allocator that finds leaks. `cargo test -p tfrt --test corpus -- --ignored --exact table`
//! prints the table.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

mod faults;
mod files;
mod lines;
mod modules;
mod texts;

/// The longest time that any case may take, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the tests of all cases.
pub fn trials() -> Vec<Trial> {
    let cases: Vec<Case> = [
        files::cases(),
        lines::cases(),
        modules::cases(),
        texts::cases(),
        faults::cases(),
    ]
    .concat();
    let mut trials: Vec<Trial> = cases
        .iter()
        .cloned()
        .map(|case| Trial::test(case.kind, move || case.check()))
        .collect();
    trials.push(Trial::test("standard output that is closed", closed_output));
    trials.push(Trial::test("Ctrl-C", || {
        interrupted("interrupted", ENDLESS_PRINT)
    }));
    let silent = ENDLESS_PRINT.replacen(" -> i32", "", 1);
    let silent = silent.replacen("tfrt.return %x : i32\n", "tfrt.return\n", 1);
    trials.push(Trial::test("Ctrl-C, without results", move || {
        interrupted("silent", &silent)
    }));
    trials.push(Trial::test("table", move || print_table(&cases)).with_ignored_flag(true));
    trials
}

/// One kind of bad input.
#[derive(Clone)]
struct Case {
    kind: &'static str,
    /// The command line; `FILE` stands for the path of the input, `OUT` for a path beside it.
    line: Vec<String>,
    file: Option<Vec<u8>>,
    stdin: Vec<u8>,
    status: i32,
    /// Texts that standard output must have, in this order.
    stdout: Vec<&'static str>,
    /// Texts that standard error must have, in this order.
    stderr: Vec<&'static str>,
    /// Whether it runs on every queue, and with an allocator that finds leaks.
    runs: bool,
    /// The longest time that the case may take on a machine with nothing else to do.
    within: Option<Duration>,
}

/// The outcome of a process.
struct Outcome {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Case {
    /// Makes the case of a command line.
    fn line(kind: &'static str, line: &str, status: i32) -> Case {
        Case {
            kind,
            line: line.split(' ').map(str::to_owned).collect(),
            file: None,
            stdin: Vec::new(),
            status,
            stdout: Vec::new(),
            stderr: Vec::new(),
            runs: false,
            within: None,
        }
    }

    /// Makes the case of a program that goes wrong when it runs.
    fn fault(kind: &'static str, flags: &str, text: &str, status: i32) -> Case {
        let line = format!("run {flags} FILE").replace("  ", " ");
        let mut case = Case::line(kind, &line, status).file(text);
        case.runs = true;
        case
    }

    fn file(mut self, file: impl Into<Vec<u8>>) -> Case {
        self.file = Some(file.into());
        self
    }

    fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Case {
        self.stdin = bytes.into();
        self
    }

    fn stdout(mut self, text: &'static str) -> Case {
        self.stdout.push(text);
        self
    }

    fn stderr(mut self, text: &'static str) -> Case {
        self.stderr.push(text);
        self
    }

    fn within(mut self, limit: Duration) -> Case {
        self.within = Some(limit);
        self
    }

    fn check(&self) -> Result<(), Failed> {
        let ways: &[&[&str]] = match self.runs {
            true => &[
                &["--queue", "single"],
                &["--queue", "multi:4"],
                &["--queue", "multi:4", "--allocator", "leak-check"],
            ],
            false => &[&[]],
        };
        for way in ways {
            if way.len() > 2 && self.line.iter().any(|flag| flag == "--allocator") {
                continue;
            }
            let outcome = self.run(way)?;
            self.check_outcome(&outcome).map_err(|message| {
                format!(
                    "{} {way:?}: {message}\n--- standard output\n{:.4000}\n--- standard error\n{:.4000}",
                    self.line.join(" "),
                    outcome.stdout,
                    outcome.stderr
                )
            })?;
        }
        Ok(())
    }

    fn check_outcome(&self, outcome: &Outcome) -> Result<(), String> {
        if outcome.status != Some(self.status) {
            let status = outcome.status.map_or("a signal".into(), |s| s.to_string());
            return Err(format!("expected status {}, found {status}", self.status));
        }
        if outcome.stderr.contains("panicked at") || outcome.stderr.contains("fault of tfrt") {
            return Err("it panicked".to_owned());
        }
        if matches!(self.status, 1 | 2) && outcome.stderr.is_empty() {
            return Err("it says nothing".to_owned());
        }
        if let Some(limit) = self.within.filter(|limit| outcome.took > *limit) {
            return Err(format!(
                "expected {limit:?} at most, took {:?}",
                outcome.took
            ));
        }
        for (expected, found) in [
            (&self.stdout, &outcome.stdout),
            (&self.stderr, &outcome.stderr),
        ] {
            let mut rest = found.as_str();
            for text in expected {
                let start = rest.find(text).ok_or_else(|| format!("expected: {text}"))?;
                rest = &rest[start + text.len()..];
            }
        }
        Ok(())
    }

    /// Runs the command in a folder of its own.
    fn run(&self, more: &[&str]) -> Result<Outcome, Failed> {
        let folder = self.folder(more)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
        for word in &self.line {
            command.arg(match word.as_str() {
                "FILE" => "input.mlir",
                "OUT" => "out/put.bef",
                word => word,
            });
        }
        command.args(more).current_dir(&folder);
        command.env_remove("NO_COLOR").env_remove("RUST_BACKTRACE");
        run_within_limit(command, &self.stdin)
    }

    fn folder(&self, more: &[&str]) -> Result<PathBuf, Failed> {
        let name: String = format!("{} {}", self.kind, more.join(" "))
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("bad_input")
            .join(name);
        fs::create_dir_all(&folder)?;
        if let Some(file) = &self.file {
            fs::write(folder.join("input.mlir"), file)?;
        }
        Ok(folder)
    }
}

/// Makes the case of a file that is no program.
fn rejected(kind: &'static str, file: impl Into<Vec<u8>>, stderr: &'static str) -> Case {
    Case::line(kind, "run FILE", 1).file(file).stderr(stderr)
}

/// Runs a command; one that does not end is killed.
fn run_within_limit(mut command: Command, stdin: &[u8]) -> Result<Outcome, Failed> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdin.take().expect("it is piped");
    let stdin = stdin.to_vec();
    // Who ends without reading its input closes the pipe, which is fine.
    let writer = thread::spawn(move || drop(pipe.write_all(&stdin)));
    let outcome = wait_for(child);
    writer.join().expect("writing does not panic");
    outcome
}

/// Waits for a process, and reads what it prints meanwhile.
fn wait_for(mut child: Child) -> Result<Outcome, Failed> {
    let begin = Instant::now();
    let stdout = child.stdout.take().map(reader);
    let stderr = child.stderr.take().map(reader);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if begin.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(format!("it runs longer than {LIMIT:?}").into());
        }
        thread::sleep(Duration::from_millis(1));
    };
    let took = begin.elapsed();
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.map_or_else(String::new, |reader| {
            reader.join().expect("reading does not panic")
        })
    };
    Ok(Outcome {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
        took,
    })
}

fn reader(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until then is what there is.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Checks that a reader that goes away is no error.
fn closed_output() -> Result<(), Failed> {
    let mut child = spawn_in_folder("closed", ENDLESS_PRINT, Stdio::piped())?;
    drop(child.stdout.take());
    // The function goes on printing into the void until its deadline; nothing else happens.
    let outcome = wait_for(child)?;
    match outcome.status {
        Some(4) if !outcome.stderr.contains("panicked") => Ok(()),
        status => Err(format!("{status:?}: {}", outcome.stderr).into()),
    }
}

/// Ctrl-C cancels what runs, and that is said, by a result or in its place.
fn interrupted(test: &str, text: &str) -> Result<(), Failed> {
    let mut child = spawn_in_folder(test, text, Stdio::piped())?;
    let mut first = [0; 64];
    // Something was printed, so it runs.
    child
        .stdout
        .as_mut()
        .expect("it is piped")
        .read_exact(&mut first)?;
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()?;
    if !killed.success() {
        return Err("no signal could be sent".into());
    }
    let begin = Instant::now();
    let outcome = wait_for(child)?;
    let told = [
        "'main' returned <<error: Interrupted>>",
        "runtime error: Interrupted",
    ];
    let is_told = outcome.stdout.contains(told[0]) || outcome.stderr.contains(told[1]);
    if outcome.status != Some(4) || !is_told {
        return Err(format!("{:?}: {}", outcome.status, outcome.stderr).into());
    }
    match begin.elapsed() < Duration::from_secs(3) {
        true => Ok(()),
        false => Err("it takes its time".into()),
    }
}

/// Prints for five seconds, unless it is stopped.
const ENDLESS_PRINT: &str = "func.func @main() -> i32 {
  %t = tfrt.constant.i1 true
  %n = tfrt.constant.i32 1
  %x = tfrt.while %t @body(%n) parallel_iterations(1) : (i32) -> (i32)
  tfrt.return %x : i32
}
func.func @body(%x: i32) -> (i32, i1) {
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %x, %c0
  %t = tfrt.constant.i1 true
  tfrt.return %x, %t : i32, i1
}
";

fn spawn_in_folder(name: &str, program: &str, stdout: Stdio) -> Result<Child, Failed> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("bad_input")
        .join(name);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("input.mlir"), program)?;
    let child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(["run", "--deadline", "5s", "input.mlir"])
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// Prints what each kind comes to, for documents.
fn print_table(cases: &[Case]) -> Result<(), Failed> {
    println!("| Input | Command | Printed | Exit status |\n| --- | --- | --- | --- |");
    for case in cases {
        let outcome = case.run(if case.runs {
            &["--queue", "single"]
        } else {
            &[]
        })?;
        let results = outcome
            .stdout
            .lines()
            .filter(|line| line.contains("returned"));
        let errors = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("error:") || line.contains("help: there is"));
        let mut lines: Vec<&str> = results.chain(errors).take(3).collect();
        if lines.is_empty() {
            lines = outcome.stdout.lines().take(2).collect();
        }
        let printed: Vec<String> = lines
            .iter()
            .map(|line| {
                format!(
                    "`{:.200}`",
                    line.trim().replace('|', "\\|").replace('`', "'")
                )
            })
            .collect();
        println!(
            "| {} | `{}` | {} | {} |",
            case.kind,
            case.line.join(" "),
            printed.join("<br>"),
            outcome.status.unwrap_or(-1)
        );
    }
    Ok(())
}
