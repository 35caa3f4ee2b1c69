//! `tfrt plugin check`: whether plugins load.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tfrt::capi::check::{Report, check as check_file};

use super::load;
use crate::commands::{print_json, print_line};
use crate::console::counted;
use crate::failure::{ExitStatus, Failure};
use crate::options::PluginCheckOptions;

/// The most names that a line has unless all are asked for.
const MAX_LISTED: usize = 8;

/// The time after which a library that is being loaded is given up.
const LOADING_TIME: Duration = Duration::from_secs(30);

/// Checks each library, and loads it where that is asked for.
pub(super) fn check(options: &PluginCheckOptions) -> Result<ExitStatus, Failure> {
    if options.in_process {
        return registered(options);
    }
    let mut status = ExitStatus::Fine;
    for path in &options.libraries {
        let report = check_file(path);
        let loaded = (options.load && report.loads()).then(|| load_apart(path));
        let loads = report.loads() && loaded.as_ref().is_none_or(Result::is_ok);
        if !loads {
            status = ExitStatus::Rejected;
        }
        match options.json {
            true => print_json(&Document::new(&report, loaded.as_ref(), loads))?,
            false => print_line(&text(&report, loaded.as_ref(), options.long))?,
        }
    }
    Ok(status)
}

/// Operations and kernels of a plugin that was loaded in a process of its own.
#[derive(Deserialize, Serialize)]
struct Registered {
    ops: Vec<Op>,
    kernels: Vec<Kernel>,
}

#[derive(Deserialize, Serialize)]
struct Op {
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    attributes: Vec<String>,
    stateful: bool,
}

#[derive(Deserialize, Serialize)]
struct Kernel {
    op: String,
    /// Whether the operation is defined: else the kernel is not called.
    defined: bool,
    device: String,
    constraints: String,
    priority: i32,
    asynchronous: bool,
}

/// Prints what a library registers, when it is loaded in this process.
fn registered(options: &PluginCheckOptions) -> Result<ExitStatus, Failure> {
    // Who asks may be killed while the library's code goes on. Where this can't be asked for, it outlives that.
    #[cfg(target_os = "linux")]
    let _asked = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    for path in &options.libraries {
        let plugin = load(path)?;
        let names = |args: &[tfrt::capi::ArgSpec]| {
            args.iter()
                .map(|arg| arg.name.clone())
                .collect::<Vec<String>>()
        };
        let ops = plugin.ops().map(|op| Op {
            name: op.name.clone(),
            inputs: names(&op.inputs),
            outputs: names(&op.outputs),
            attributes: op.attrs.iter().map(|attr| attr.name.clone()).collect(),
            stateful: op.is_stateful,
        });
        let kernels = plugin.kernels().map(|kernel| Kernel {
            op: kernel.op().to_owned(),
            defined: kernel.is_defined(),
            device: kernel.device().to_owned(),
            constraints: kernel.constraints(),
            priority: kernel.priority(),
            asynchronous: kernel.is_async(),
        });
        print_json(&Registered {
            ops: ops.collect(),
            kernels: kernels.collect(),
        })?;
    }
    Ok(ExitStatus::Fine)
}

/// Loads a library in a process of its own, since its code may end the process.
fn load_apart(path: &Path) -> Result<Registered, String> {
    let command = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(command)
        .args(["plugin", "check", "--in-process", "--message-format=short"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let output = output_in_time(child.map_err(|error| error.to_string())?)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        // The host's errors, in the order in which they are looked for: that of a crash, that of a refusal.
        let is_of_crash = |line: &&str| line.starts_with("error: ");
        let refusal = errors
            .lines()
            .find_map(|line| line.strip_prefix("tfrt: error: "));
        let last = errors.lines().find(is_of_crash).or(refusal);
        let last = last.or(errors.lines().last()).unwrap_or_default();
        return Err(match output.status.code() {
            Some(_) => last.to_owned(),
            None => format!("it ends the process: {}; it said: {last}", output.status),
        });
    }
    // What the library itself prints comes before.
    let out = String::from_utf8_lossy(&output.stdout);
    let document = out.lines().last().unwrap_or_default();
    serde_json::from_str(document).map_err(|error| error.to_string())
}

/// Returns the output of a process, which is ended if it takes too long.
fn output_in_time(child: Child) -> Result<Output, String> {
    let id = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(LOADING_TIME) {
        Ok(output) => output.map_err(|error| error.to_string()),
        Err(_) => {
            // It may have ended just now.
            let _ended = kill_process(id, Signal::KILL);
            let seconds = LOADING_TIME.as_secs();
            Err(format!("loading has not ended within {seconds} s"))
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    machine: &'static str,
    loads: bool,
    needs: &'a [String],
    entry_points: &'a [&'static str],
    provided: &'a [String],
    unprovided: &'a [String],
    beside: &'a [String],
    threads: &'a [String],
    reasons: Vec<ReasonDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registered: Option<&'a Registered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct ReasonDocument<'a> {
    code: &'static str,
    message: String,
    symbols: &'a [String],
}

impl<'a> Document<'a> {
    fn new(
        report: &'a Report,
        loaded: Option<&'a Result<Registered, String>>,
        loads: bool,
    ) -> Document<'a> {
        let reasons = report.reasons.iter().map(|reason| ReasonDocument {
            code: reason.code(),
            message: reason.to_string(),
            symbols: reason.symbols(),
        });
        Document {
            schema: "tfrt.plugin/1",
            file: report.path.to_string_lossy().into_owned(),
            machine: report.machine,
            loads,
            needs: &report.asks_for,
            entry_points: &report.entry_points,
            provided: &report.provided,
            unprovided: &report.unprovided,
            beside: &report.beside,
            threads: &report.threads,
            reasons: reasons.collect(),
            registered: loaded.and_then(|loaded| loaded.as_ref().ok()),
            error: loaded
                .and_then(|loaded| loaded.as_ref().err())
                .map(String::as_str),
        }
    }
}

fn listed(names: &[String], all: bool) -> String {
    let n = if all { names.len() } else { MAX_LISTED };
    let shown = names
        .iter()
        .take(n)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() > n {
        true => format!("{shown}, .. ({} in all)", names.len()),
        false => shown,
    }
}

/// Returns the report as text for a terminal.
fn text(report: &Report, loaded: Option<&Result<Registered, String>>, long: bool) -> String {
    let or_nothing = |list: String| {
        if list.is_empty() {
            "nothing of TensorFlow".to_owned()
        } else {
            list
        }
    };
    let mut lines = Vec::new();
    let file = report.path.display();
    let is_read = !report
        .reasons
        .iter()
        .any(|reason| reason.code() == tfrt::capi::codes::UNREADABLE);
    if is_read {
        let needs = or_nothing(report.asks_for.join(", "));
        let entries = match report.entry_points.is_empty() {
            true => "none".to_owned(),
            false => report.entry_points.join(", "),
        };
        let machine = report.machine;
        lines.push(format!(
            "{file}: {machine}, needs {needs}; entry points: {entries}"
        ));
        let (provided, unprovided) = (report.provided.len(), report.unprovided.len());
        let n = provided + unprovided;
        lines.push(format!(
            "  {} of TensorFlow's C API: {provided} provided",
            counted(n as u64, "function")
        ));
        if long && provided > 0 {
            lines.push(format!("    {}", listed(&report.provided, true)));
        }
        if unprovided > 0 {
            let names = listed(&report.unprovided, long);
            let told = match unprovided {
                1 => "1 is not provided, and fails when it is called".to_owned(),
                n => format!("{n} are not provided, and fail when they are called"),
            };
            lines.push(format!("  {told}: {names}"));
        }
        if !report.beside.is_empty() {
            let (n, names) = (report.beside.len(), listed(&report.beside, long));
            lines.push(format!(
                "  libraries in its folders, which it may open, ask for {n} more: {names}"
            ));
        }
        if !report.threads.is_empty() {
            let names = report.threads.join(", ");
            lines.push(format!(
                "  it brings threads of its own: {names}; OMP_NUM_THREADS bounds them"
            ));
        }
    } else {
        lines.push(format!("{file}:"));
    }
    for reason in &report.reasons {
        lines.push(format!("  error[{}]: {reason}", reason.code()));
        if !reason.symbols().is_empty() {
            lines.push(format!("    {}", listed(reason.symbols(), long)));
        }
    }
    match (report.loads(), loaded) {
        (true, None) => lines.push("  loads: yes".to_owned()),
        (false, _) => lines.push("  loads: no".to_owned()),
        (true, Some(Err(why))) => {
            lines.push(format!("  {why}"));
            lines.push("  loads: no".to_owned());
        }
        (true, Some(Ok(registered))) => {
            let (n_ops, n_kernels) = (registered.ops.len(), registered.kernels.len());
            lines.push(format!(
                "  loads: yes; registers {} and {}",
                counted(n_ops as u64, "operation"),
                counted(n_kernels as u64, "kernel")
            ));
            let ops_of = |is_meant: fn(&&Kernel) -> bool| {
                let kernels = registered.kernels.iter().filter(is_meant);
                let mut ops: Vec<String> = kernels.map(|kernel| kernel.op.clone()).collect();
                ops.sort_unstable();
                ops.dedup();
                ops
            };
            let (ops, undefined) = (ops_of(|_| true), ops_of(|kernel| !kernel.defined));
            let ops_told = counted(ops.len() as u64, "operation");
            lines.push(format!("  the kernels are of {ops_told}"));
            if !undefined.is_empty() {
                let (n, names) = (undefined.len(), listed(&undefined, long));
                let told = match n {
                    1 => "1 of them is not defined, and its kernels are not called".to_owned(),
                    n => format!("{n} of them are not defined, and their kernels are not called"),
                };
                lines.push(format!("  {told}: {names}"));
            }
            if long {
                let kernels = registered.kernels.iter().map(|kernel| {
                    let Kernel {
                        op,
                        device,
                        constraints,
                        priority,
                        ..
                    } = kernel;
                    format!("    {op} on {device}, {constraints}, priority {priority}")
                });
                lines.extend(kernels);
            }
        }
    }
    lines.join("\n")
}
