//! A million kernels in one function: how long until it can be called, what a call costs, and how
//! much memory there is beside the file's own bytes.
//!
//! Memory is the most that a process had, less what it had when it held the file's bytes and a
//! host. So each program is loaded and called in a process of its own, whose pages are counted by
//! the system.
//!
//! Goals: half a second to open and load, 100 bytes for a kernel, and calls that cost what they cost
//! where there are ten thousand.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::Command;

use tfrt_bef::{BefBuffer, BefFile};
use tfrt_benches::cases::{Case, START, STEP};
use tfrt_benches::compare::Subject;
use tfrt_benches::folders;
use tfrt_benches::graph::{Graph, Kernels};
use tfrt_benches::measure::{Clock, Times};
use tfrt_benches::ours::{self, Order, Ours, Threads};
use tfrt_benches::table::{Bench, skip};
use tfrt_host::Program;

const INSIDE: &str = "--inside";
const N_KERNELS: u32 = 1_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, inside, path, answer, ..] = arguments.as_slice()
        && inside == INSIDE
    {
        return inside_process(Path::new(path), answer);
    }
    let bench = Bench::from_environment();
    bench.begin("a million kernels in one function; processor time");
    for name in ["chain", "random"] {
        let subject = format!("million_{name}");
        if bench.is_wanted(&subject) {
            let graph = match name {
                "chain" => Graph::chain(N_KERNELS),
                _ => Graph::random(N_KERNELS, 1_000),
            };
            measure(&bench, name, &subject, &graph);
        }
    }
}

fn measure(bench: &Bench, name: &str, subject: &str, graph: &Graph) {
    let bytes = ours::bytes_of(&graph.text(&Kernels::PLAIN));
    let path = folders::target("million.bef");
    fs::write(&path, bytes.as_bytes()).expect("the folder of what is built can be written");
    drop(bytes);
    let own = std::env::current_exe().expect("this program has a path");
    let answer = graph.result(START, STEP);
    let output = Command::new(own)
        .args([INSIDE, &path.to_string_lossy(), &answer.to_string()])
        .output()
        .expect("this program can be started");
    println!("{subject}: {} kernels", graph.n_nodes());
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::remove_file(&path).expect("it was just written");
    // The same graph of ten thousand kernels, in the same minute.
    let case = Case::find(name).expect("it is a case's name");
    let mut small = [Ours::contender(
        &case,
        Order::Static,
        Threads::Caller,
        Clock::Process,
    )];
    bench.compare(
        Subject {
            name,
            unit: case.unit,
            n_units: case.n_units,
            answer: case.answer,
        },
        &mut small,
    );
}

/// Loads a file of a million kernels and calls it, and tells what that took.
fn inside_process(path: &Path, answer: &str) {
    const N_RUNS: usize = 11;
    let host = ours::host(Order::Static, Threads::Caller);
    let bytes = BefBuffer::read(path).expect("the file was just written");
    let len_bytes = bytes.len_bytes();
    let n_kernels = f64::from(N_KERNELS);
    let before = kilobytes("VmRSS:");
    let [mut opening, mut loading, mut first, mut running] = [(); 4].map(|()| Times::default());
    let file = take(&mut opening, || {
        BefFile::open(bytes).expect("it is a program")
    });
    let program = take(&mut loading, || {
        Program::load(file, &host).expect("its kernels are known")
    });
    let at_load = kilobytes("VmHWM:");
    let ours = Ours::of(&program, Threads::Caller);
    let call = || {
        let given = ours.call(&[START, STEP]).map(|given| given.to_string());
        assert_eq!(given.as_deref().ok(), Some(answer), "{given:?}");
    };
    first.take(call);
    (0..N_RUNS).for_each(|_| running.take(call));
    let at_end = kilobytes("VmHWM:");
    let ms = |times: &Times| times.median().as_secs_f64() * 1e3;
    println!(
        "  file       {:9.1} bytes/kernel",
        len_bytes as f64 / n_kernels
    );
    println!("  open       {:9.1} ms", ms(&opening));
    println!("  load       {:9.1} ms", ms(&loading));
    println!(
        "  first call {:9.2} ns/kernel",
        ms(&first) * 1e6 / n_kernels
    );
    println!(
        "  call       {:9.2} ns/kernel  +-{:.0}%",
        ms(&running) * 1e6 / n_kernels,
        running.spread() * 100.0
    );
    let (Some(before), Some(at_load), Some(at_end)) = (before, at_load, at_end) else {
        return skip("memory: the system does not say what a process has");
    };
    for (what, after) in [("loaded", at_load), ("called", at_end)] {
        let more = after.saturating_sub(before) as f64 * 1024.0 / n_kernels;
        println!("  memory, {what}  {more:6.1} bytes/kernel beside the file's, at most");
    }
}

/// Runs something, and keeps its time and what it gives.
fn take<T>(times: &mut Times, work: impl FnOnce() -> T) -> T {
    let start = Clock::Thread.now();
    let result = work();
    times.push(Clock::Thread.now().saturating_sub(start));
    result
}

/// Returns a field of the system's report on this process's memory.
fn kilobytes(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
