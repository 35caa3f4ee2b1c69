//! Walks `tests/` and `examples/` at the root and runs every program there; `tests/README.md` says how programs
//! state what they expect.
//!
//! A program with `RUN: run` runs four ways, and all must agree. What that means depends on whether
//! every two of its effects are ordered by operands: then every way must print the same. Otherwise
//! one thread must print what is expected, and the others the same lines in some order.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use tfrt_ir::{Module, Source};
use tfrt_oracle::evaluate::{Ending, Limits, Refusal};

use super::{filecheck, root};

/// Returns the tests of all programs.
pub fn trials() -> Vec<Trial> {
    let mut paths = Vec::new();
    collect(&root().join("tests"), &mut paths);
    collect(&root().join("examples"), &mut paths);
    paths.sort();
    paths.iter().flat_map(|path| trials_of(path)).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for entry in entries {
        let path = entry.expect("the folder is listed").path();
        // Programs for kernels of an example's own are run by the example's test, and those that
        // are broken by `broken.rs`.
        let has_a_test = path.join("Cargo.toml").exists() || path.ends_with("tests/broken");
        // Those for kernels that are an optional part are for commands that have it.
        let has_kernels = (cfg!(feature = "dist")
            || !(path.ends_with("tests/execute/dist") || path.ends_with("tests/cluster")))
            && (cfg!(feature = "gpu") || !path.ends_with("tests/gpu"));
        if path.is_dir() && !has_a_test && has_kernels {
            collect(&path, paths);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "mlir")
        {
            paths.push(path);
        }
    }
}

/// A way of running a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As its first line says, and nothing else.
    AsWritten,
    ManyThreads,
    OneThread,
    /// By the evaluator that shares no code with the runtime.
    Reference,
    CompiledBytes,
    /// With tasks on sockets of this kind, in one process: `unix` or `tcp`.
    OnSockets(&'static str),
    /// With tasks in processes of their own: the functions that use the context of the first task alone.
    InProcesses,
    /// On a cluster of processes, which meet at a socket of this kind: `unix` or `tcp`.
    OnCluster(&'static str),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::AsWritten => "as written",
            Way::ManyThreads => "many threads",
            Way::OneThread => "one thread",
            Way::Reference => "reference",
            Way::CompiledBytes => "compiled bytes",
            Way::OnSockets(kind) => kind,
            Way::InProcesses => "processes",
            Way::OnCluster("unix") => "cluster unix",
            Way::OnCluster(_) => "cluster tcp",
        }
    }
}

/// A program and what its first lines say.
#[derive(Clone, Debug)]
struct Case {
    /// From the root.
    path: String,
    text: String,
    flags: Vec<String>,
    exit: i32,
    /// The number of processes, of a program for a cluster.
    n_tasks: Option<usize>,
}

/// The outcome of one way of running a program.
struct Outcome {
    stdout: String,
    /// `None` for the reference, whose diagnostics have another form.
    stderr: Option<String>,
    status: i32,
}

fn trials_of(path: &Path) -> Vec<Trial> {
    let short = path.strip_prefix(root()).unwrap_or(path);
    let short = short.to_string_lossy().into_owned();
    let case = match Case::read(path, short.clone()) {
        Ok(case) => case,
        Err(message) => return vec![Trial::test(short, move || Err(message.into()))],
    };
    let trial = |case: &Case, way: Way, driver: &str| {
        let case = case.clone();
        let unknown = way == Way::Reference && case.is_unknown_to_reference();
        let name = format!("{short} ({}{driver})", way.name());
        Trial::test(name, move || case.run(way)).with_ignored_flag(unknown)
    };
    let Some(at) = case.flags.iter().position(|flag| flag == "sim") else {
        let ways = case.ways().into_iter();
        return ways.map(|way| trial(&case, way, "")).collect();
    };
    // Commands of a simulated GPU run in several orders.
    let mut all = Vec::new();
    for driver in DRIVERS {
        let mut case = case.clone();
        case.flags[at] = driver.to_owned();
        let ways = case.ways().into_iter();
        all.extend(ways.map(|way| trial(&case, way, &format!(", {driver}"))));
    }
    all
}

/// The simulated drivers of programs for GPUs: two orders of commands, two seeds.
const DRIVERS: [&str; 4] = [
    "sim:random:1",
    "sim:random:2",
    "sim:lazy:1",
    "sim:starving:2",
];

impl Case {
    fn read(path: &Path, short: String) -> Result<Case, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let value = |name: &str| {
            text.lines()
                .filter_map(|line| line.strip_prefix("// ")?.strip_prefix(name))
                .find_map(|rest| rest.strip_prefix(':'))
                .map(str::trim)
        };
        if !text.starts_with("// RUN: ") {
            return Err("the first line must be `// RUN: COMMAND`".to_owned());
        }
        let run = value("RUN").unwrap_or_default();
        let exit = value("EXIT").unwrap_or("0");
        let exit = exit.parse().map_err(|_| format!("no status: {exit}"))?;
        Ok(Case {
            path: short,
            flags: run.split_whitespace().map(str::to_owned).collect(),
            exit,
            n_tasks: value("TASKS").and_then(|n_tasks| n_tasks.parse().ok()),
            text: text.clone(),
        })
    }

    /// Returns the ways that the first line leaves open.
    fn ways(&self) -> Vec<Way> {
        if self.flags.first().is_none_or(|command| command != "run") {
            return vec![Way::AsWritten];
        }
        if self.has_flag("--cluster") {
            if !cfg!(target_os = "linux") {
                return Vec::new();
            }
            return ["unix", "tcp"].map(Way::OnCluster).to_vec();
        }
        let mut ways = match self.has_flag("--queue") {
            true => vec![Way::AsWritten],
            false => vec![Way::ManyThreads, Way::OneThread],
        };
        ways.push(Way::CompiledBytes);
        if cfg!(target_os = "linux") && self.path.starts_with("tests/execute/dist") {
            ways.extend(["unix", "tcp"].map(Way::OnSockets));
            if self.of_first_context().is_some() {
                ways.push(Way::InProcesses);
            }
        }
        if self.flags.len() == 1
            || self.flags[1..]
                .iter()
                .all(|flag| flag == "single" || flag == "--queue")
        {
            ways.push(Way::Reference);
        }
        ways
    }

    fn has_flag(&self, name: &str) -> bool {
        self.flags
            .iter()
            .any(|flag| flag == name || flag.starts_with(&format!("{name}=")))
    }

    fn module(&self) -> Option<Module> {
        tfrt_ir::parse(&Source::new(&self.path, &*self.text)).ok()
    }

    fn is_unknown_to_reference(&self) -> bool {
        let Some(module) = self.module() else {
            return true;
        };
        matches!(
            tfrt_oracle::evaluate::run(&module, Limits::default()),
            Err(Refusal::Unsupported(_) | Refusal::Exhausted(_))
        )
    }

    /// Returns whether the program's output does not depend on who runs its kernels.
    fn is_ordered(&self) -> bool {
        self.module()
            .is_some_and(|module| matches!(tfrt_oracle::ordered::check(&module), Ok(Ok(()))))
    }

    /// Returns the program of those functions that use the context of the first task alone, if there are any: others can't
    /// have contexts of other processes.
    fn of_first_context(&self) -> Option<String> {
        let mut parts = self.text.split_inclusive("// CHECK-LABEL:");
        let mut text = parts.next()?.trim_end_matches("// CHECK-LABEL:").to_owned();
        let uses_others = |part: &str| {
            let lines = part.lines().filter(|line| !line.contains("tfrt.return"));
            let mut names = lines.flat_map(|line| {
                line.split(|c: char| !(c.is_ascii_alphanumeric() || "%#_".contains(c)))
                    .skip_while(|_| line.contains("tfrt.call @two_tasks"))
            });
            names.any(|name| {
                let is_numbered = name.strip_prefix("%ctx#").is_some_and(|n| n != "0");
                is_numbered || name == "%w"
            })
        };
        let own: Vec<&str> = parts
            .map(|part| part.trim_end_matches("// CHECK-LABEL:"))
            .filter(|part| part.contains("@two_tasks") || part.contains("%ctx:"))
            // A pass that a test registers is of this process alone.
            .filter(|part| !uses_others(part) && !part.contains("register_fake_compiler_pass"))
            .collect();
        own.iter()
            .for_each(|part| text.push_str(&format!("// CHECK-LABEL:{part}")));
        (!own.is_empty()).then_some(text)
    }

    fn run(&self, way: Way) -> Result<(), Failed> {
        if way == Way::InProcesses {
            return self.run_in_processes();
        }
        let outcome = self.outcome(way)?;
        let exact = matches!(
            way,
            Way::AsWritten | Way::OneThread | Way::OnSockets(_) | Way::OnCluster(_)
        ) || self.is_ordered();
        if outcome.status != self.exit {
            return Err(self.failed(
                &outcome,
                format!(
                    "expected exit status {}, found {}",
                    self.exit, outcome.status
                ),
            ));
        }
        if exact {
            filecheck::check(&self.text, "CHECK", &outcome.stdout)
                .map_err(|mismatch| self.failed(&outcome, mismatch.to_string()))?;
        } else {
            let expected = self.outcome(self.exact_way())?;
            if sorted(&expected.stdout) != sorted(&outcome.stdout) {
                let message = format!("expected, in some order,\n{}", expected.stdout);
                return Err(self.failed(&outcome, message));
            }
        }
        if let Some(stderr) = outcome.stderr.as_deref().filter(|_| exact) {
            filecheck::check(&self.text, "STDERR", stderr)
                .map_err(|mismatch| self.failed(&outcome, mismatch.to_string()))?;
        }
        Ok(())
    }

    fn run_in_processes(&self) -> Result<(), Failed> {
        let text = self.of_first_context().unwrap_or_default();
        let name = self.path.replace(['/', '.'], "_") + "_processes.mlir";
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, &text)?;
        let path = path.to_string_lossy();
        let queue: &[&str] = match self.has_flag("--queue") {
            true => &[],
            false => &["--queue", "single"],
        };
        let line = self.line(queue, &path);
        let outcome = tfrt_in(&line, &[("TFRT_DIST_TEST_NETWORK", "processes")])?;
        filecheck::check(&text, "CHECK", &outcome.stdout)
            .map_err(|mismatch| self.failed(&outcome, mismatch.to_string()))?;
        Ok(())
    }

    /// Starts as many processes as an engine does, all of which print to one stream.
    fn on_cluster(&self, kind: &str) -> Result<Outcome, Failed> {
        let n_tasks: usize = self.n_tasks.ok_or("expected a line `// TASKS: N`")?;
        let meeting = match kind {
            "unix" => {
                let name = self.path.replace(['/', '.'], "_");
                let name = format!("tfrt-{}-{name}", std::process::id());
                format!("unix:{}", std::env::temp_dir().join(name).display())
            }
            _ => {
                let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
                free.to_string()
            }
        };
        let (mut reading, writing) = std::io::pipe()?;
        let start = |rank: usize| {
            Command::new(env!("CARGO_BIN_EXE_tfrt"))
                .args(self.line(&[], &self.path))
                .env("RANK", rank.to_string())
                .env("WORLD_SIZE", n_tasks.to_string())
                .env("TFRT_RENDEZVOUS", &meeting)
                .current_dir(root())
                .stdout(writing.try_clone()?)
                .stderr(std::process::Stdio::null())
                .spawn()
        };
        let tasks: Result<Vec<_>, _> = (0..n_tasks).map(start).collect();
        drop(writing);
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut reading, &mut stdout)?;
        let mut status = 0;
        for (rank, mut task) in tasks?.into_iter().enumerate() {
            let ended = task.wait()?.code().unwrap_or(-1);
            match rank {
                0 => status = ended,
                _ if ended != 0 => return Err(format!("task {rank} ended with {ended}").into()),
                _ => (),
            }
        }
        Ok(Outcome {
            stdout,
            stderr: None,
            status,
        })
    }

    /// Returns the way that others are compared with.
    fn exact_way(&self) -> Way {
        match self.has_flag("--queue") {
            true => Way::AsWritten,
            false => Way::OneThread,
        }
    }

    fn outcome(&self, way: Way) -> Result<Outcome, Failed> {
        let file = self.path.as_str();
        match way {
            Way::AsWritten => self.tfrt(&[], file),
            Way::ManyThreads => self.tfrt(&["--queue", "multi:4"], file),
            Way::OneThread => self.tfrt(&["--queue", "single"], file),
            Way::OnSockets(kind) => {
                let queue = ["--queue", "single"];
                let more: &[&str] = match self.has_flag("--queue") {
                    true => &[],
                    false => &queue,
                };
                let line = self.line(more, file);
                let outcome = tfrt_in(&line, &[("TFRT_DIST_TEST_NETWORK", kind)])?;
                // Errors of several requests are reported as they come.
                let stderr = None;
                Ok(Outcome { stderr, ..outcome })
            }
            Way::Reference => self.reference(),
            Way::InProcesses => Err("it is compared by itself".into()),
            Way::OnCluster(kind) => self.on_cluster(kind),
            Way::CompiledBytes => {
                let name = file.replace(['/', '.'], "_");
                let bytes = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name + ".bef");
                let bytes = bytes.to_string_lossy();
                let compiled = tfrt(&["compile", file, "-o", &bytes])?;
                if compiled.status != 0 {
                    return Err(self.failed(&compiled, "it does not compile".to_owned()));
                }
                let queue = ["--queue", "single"];
                let more: &[&str] = match self.has_flag("--queue") {
                    true => &[],
                    false => &queue,
                };
                self.tfrt(more, &bytes)
            }
        }
    }

    fn tfrt(&self, more: &[&str], file: &str) -> Result<Outcome, Failed> {
        tfrt(&self.line(more, file))
    }

    fn line<'l>(&'l self, more: &[&'l str], file: &'l str) -> Vec<&'l str> {
        let mut line: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        line.extend(more);
        line.push(file);
        line
    }

    fn reference(&self) -> Result<Outcome, Failed> {
        let module = self.module().ok_or("the program does not parse")?;
        let report = tfrt_oracle::evaluate::run(&module, Limits::default())
            .map_err(|refusal| refusal.to_string())?;
        Ok(Outcome {
            stdout: report.stdout,
            stderr: None,
            // The command counts what a kernel has cancelled as failed.
            status: match report.ending {
                Ending::Fine => 0,
                Ending::Failed | Ending::Cancelled => 3,
            },
        })
    }

    fn failed(&self, outcome: &Outcome, message: String) -> Failed {
        let stderr = outcome.stderr.as_deref().unwrap_or_default();
        format!(
            "{}: {message}\n--- standard output\n{}--- standard error\n{stderr}",
            self.path, outcome.stdout
        )
        .into()
    }
}

/// Runs the command at the root.
fn tfrt(line: &[&str]) -> Result<Outcome, Failed> {
    tfrt_in(line, &[])
}

/// Runs the command at the root with variables.
fn tfrt_in(line: &[&str], variables: &[(&str, &str)]) -> Result<Outcome, Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(line)
        .envs(variables.iter().copied())
        .current_dir(root())
        .output()
        .map_err(|error| format!("the command does not start: {error}"))?;
    Ok(Outcome {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        status: output.status.code().unwrap_or(-1),
    })
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
