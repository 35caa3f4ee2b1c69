//! Worker processes that run cases: each reads names from its standard input, a line each, and answers with a line of
//! JSON.
//!
//! A worker has a limit on its memory where the shell knows `ulimit`, and on the time of each case. What a case
//! prints goes to standard error, which is not looked at.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tfrt::tensor::math::packed_gemm::InstructionSet;

use crate::case::{self, RunMode};
use crate::verdict::{CaseEnd, Verdict};

/// The argument that makes this program a worker. A [`WorkerOptions`] and a folder follow.
pub const WORKER: &str = "--worker";
/// The word for [`RunMode::Whole`].
const WHOLE: &str = "whole";
/// The word for [`RunMode::Eager`].
const EAGER: &str = "eager";
/// The word for [`RunMode::Checks`].
const CHECKS: &str = "checks";
/// The word for [`RunMode::Bare`].
const BARE: &str = "bare";
/// The word for [`RunMode::Gpu`].
#[cfg(feature = "gpu")]
const GPU: &str = "gpu";

/// The settings of a worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerOptions {
    /// The way in which cases are run.
    pub mode: RunMode,
    /// The best instructions that the worker may use.
    pub instructions: InstructionSet,
}

impl WorkerOptions {
    /// Returns the words that [`WorkerOptions::from_words`] reads.
    fn words(self) -> [&'static str; 2] {
        let mode = match self.mode {
            RunMode::Whole => WHOLE,
            RunMode::Bare => BARE,
            RunMode::Eager => EAGER,
            RunMode::Checks => CHECKS,
            #[cfg(feature = "gpu")]
            RunMode::Gpu => GPU,
        };
        [mode, self.instructions.name()]
    }

    /// Reads the words of a worker's arguments.
    pub fn from_words([mode, instructions]: [&str; 2]) -> Option<WorkerOptions> {
        let mode = match mode {
            WHOLE => RunMode::Whole,
            BARE => RunMode::Bare,
            EAGER => RunMode::Eager,
            CHECKS => RunMode::Checks,
            #[cfg(feature = "gpu")]
            GPU => RunMode::Gpu,
            _ => return None,
        };
        let instructions = InstructionSet::from_name(instructions)?;
        Some(WorkerOptions { mode, instructions })
    }
}

/// The longest time of a case. Cases take milliseconds, unless the machine is very busy.
const LIMIT: Duration = Duration::from_secs(60);
/// The address space of a worker.
const MEMORY_KIB: u64 = 6 << 20;

/// Runs cases as a worker until standard input ends.
pub fn serve(folder: &Path, setting: WorkerOptions) {
    let limited = setting.instructions.limit_process();
    limited.expect("a worker asks for what the processor has, before anything else");
    let runner = case::Runner::new(setting.mode);
    for name in std::io::stdin().lines().map_while(Result::ok) {
        let verdict = runner.run(&folder.join(&name), &name);
        let line = serde_json::to_string(&verdict).expect("a verdict is plain data");
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// Runs the cases on so many workers.
pub fn run(
    folder: &Path,
    setting: WorkerOptions,
    names: VecDeque<String>,
    n_workers: usize,
) -> Vec<Verdict> {
    let names = Mutex::new(names);
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                let mut worker = None;
                while let Some(name) = pop(&names) {
                    let verdict = judge(&mut worker, folder, setting, &name);
                    verdicts
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(verdict);
                }
                if let Some(worker) = worker {
                    Worker::stop(worker);
                }
            });
        }
    });
    verdicts
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

fn pop(names: &Mutex<VecDeque<String>>) -> Option<String> {
    names
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front()
}

/// Runs a case in the worker, of which a new one is started if there is none.
fn judge(slot: &mut Option<Worker>, folder: &Path, setting: WorkerOptions, name: &str) -> Verdict {
    let started = slot
        .take()
        .map_or_else(|| Worker::start(folder, setting), Ok);
    let mut worker = match started {
        Ok(worker) => worker,
        Err(error) => {
            let reason = format!("no worker could be started: {error}");
            return Verdict::of(name, CaseEnd::Crashed(reason));
        }
    };
    // A worker that is gone gives no answer, which is looked at below.
    let _ = writeln!(worker.names, "{name}").and_then(|()| worker.names.flush());
    match worker.answers.recv_timeout(LIMIT) {
        Ok(line) => match serde_json::from_str(&line) {
            Ok(verdict) => {
                *slot = Some(worker);
                verdict
            }
            Err(error) => {
                worker.stop();
                let reason = format!("the worker answered {line:?}: {error}");
                Verdict::of(name, CaseEnd::Crashed(reason))
            }
        },
        Err(RecvTimeoutError::Timeout) => {
            worker.stop();
            Verdict::of(name, CaseEnd::Hung)
        }
        Err(RecvTimeoutError::Disconnected) => Verdict::of(name, CaseEnd::Crashed(worker.status())),
    }
}

struct Worker {
    process: Child,
    names: std::process::ChildStdin,
    answers: Receiver<String>,
}

impl Worker {
    fn start(folder: &Path, setting: WorkerOptions) -> std::io::Result<Worker> {
        let program = std::env::current_exe()?;
        let limited = format!("ulimit -v {MEMORY_KIB} 2>/dev/null; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, "sh"]).arg(program);
        let mut process = command
            .arg(WORKER)
            .args(setting.words())
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let names = process.stdin.take().expect("it is piped");
        let out = process.stdout.take().expect("it is piped");
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Worker {
            process,
            names,
            answers,
        })
    }

    fn stop(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Returns how the process, which has closed its output, ended.
    fn status(mut self) -> String {
        drop(self.names);
        match self.process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}
