//! Random programs on all processors: one process each, since what a program leaves behind is counted
//! for the whole process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Instant;

use crate::steps::{Steps, cargo};

/// What is tried if nobody says how many.
const N_PROGRAMS: u64 = 1_000_000;

const TEST: [&str; 6] = [
    "test",
    "-p",
    "tfrt",
    "--no-default-features",
    "--test",
    "differential",
];

/// What the processes have said together.
#[derive(Default)]
struct Sum {
    programs: u64,
    runs: u64,
}

/// Runs so many programs, from some seed on, in release mode.
pub fn campaign(steps: &mut Steps, arguments: &[&str]) -> bool {
    let mut numbers = arguments
        .iter()
        .map(|text| text.replace('_', "").parse::<u64>());
    let (n_programs, first) = match (numbers.next(), numbers.next(), numbers.next()) {
        (None, ..) => (N_PROGRAMS, 0),
        (Some(Ok(n_programs)), None, _) => (n_programs, 0),
        (Some(Ok(n_programs)), Some(Ok(first)), None) => (n_programs, first),
        _ => return false,
    };
    steps.run(
        "differential (build)",
        cargo(&TEST).args(["--release", "--no-run"]),
    );
    steps.work("differential", || run(n_programs, first));
    true
}

/// Divides the seeds among processes, waits for them and says what they did.
fn run(n_programs: u64, first: u64) -> bool {
    let n_processes = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let begin = Instant::now();
    let each = n_programs.div_ceil(n_processes);
    let start = |process: u64| {
        let (skipped, seed) = (process * each, first.saturating_add(process * each));
        let n_programs = each.min(n_programs.saturating_sub(skipped));
        cargo(&TEST)
            .args(["--release", "--", "--nocapture"])
            .env("TFRT_DIFFERENTIAL_SEED", seed.to_string())
            .env("TFRT_DIFFERENTIAL_PROGRAMS", n_programs.to_string())
            .stdout(Stdio::piped())
            .spawn()
    };
    let Ok(children) = (0..n_processes).map(start).collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    let listeners: Vec<_> = children
        .into_iter()
        .map(|child| thread::spawn(|| listen(child)))
        .collect();
    let mut sum = Sum::default();
    let mut ok = true;
    for listener in listeners {
        let heard = listener.join().unwrap_or_default();
        ok &= heard.is_some();
        let heard = heard.unwrap_or_default();
        sum.programs += heard.programs;
        sum.runs += heard.runs;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = sum.programs as f64 / seconds;
    println!(
        "{} programs, {} runs, seeds {first} to {}, {n_processes} processes, {seconds:.0} s: {rate:.0} programs a second",
        sum.programs,
        sum.runs,
        first.saturating_add(n_programs).saturating_sub(1)
    );
    ok
}

/// Shows what a process says; gives what it counted, if all was well.
fn listen(mut child: Child) -> Option<Sum> {
    let output = child.stdout.take()?;
    let mut sum = Sum::default();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        println!("{line}");
        // `N programs, M runs; ...`
        let counts = line
            .split_once("; ")
            .and_then(|(counts, _)| counts.split_once(" programs, "));
        if let Some((programs, runs)) = counts {
            sum.programs = programs.parse().ok()?;
            sum.runs = runs.strip_suffix(" runs")?.parse().ok()?;
        }
    }
    child
        .wait()
        .is_ok_and(|status| status.success())
        .then_some(sum)
}
