//! `cargo xtask differential`: random programs on all processors, in several processes, since what a program leaves
//! behind is counted for the whole process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::steps::{Steps, cargo, target};

/// The number of programs if none is given.
const N_PROGRAMS: u64 = 1_000_000;

/// The time after its start by which `ci` has tried programs, and the least time for which it tries some.
const CI_END: Duration = Duration::from_secs(12 * 60);
const CI_LEAST: Duration = Duration::from_secs(20);

/// The number of processes for each processor: at times a program only waits, for threads or for some time to go by.
const N_EACH: u64 = 2;

/// The profile and the features of what is counted: `ci` builds most of it only once.
const BUILD: [&str; 8] = [
    "build",
    "--quiet",
    "--release",
    "--no-default-features",
    "--package=tfrt-benches",
    "--package=tfrt-differential",
    "--bin",
    "differential",
];

/// The sum of the processes' counts.
#[derive(Default)]
struct Sum {
    programs: u64,
    runs: u64,
}

/// Runs so many programs, from some seed on, which is a new one if nobody says which. The seeds are printed; with them
/// this finds again what it has found.
pub fn campaign(steps: &mut Steps, arguments: &[&str]) -> bool {
    let mut numbers = arguments
        .iter()
        .map(|text| text.replace('_', "").parse::<u64>());
    let (n_programs, first) = match (numbers.next(), numbers.next(), numbers.next()) {
        (None, ..) => (N_PROGRAMS, new_seed()),
        (Some(Ok(n_programs)), None, _) => (n_programs, new_seed()),
        (Some(Ok(n_programs)), Some(Ok(first)), None) => (n_programs, first),
        _ => return false,
    };
    search(steps, n_programs, first, None);
    true
}

/// Runs a million programs, or as many as there is time for, always the same ones: what fails here is the fault of the
/// change. To find what was wrong before is for campaigns.
pub fn ci(steps: &mut Steps) {
    let left = CI_END.saturating_sub(steps.elapsed()).max(CI_LEAST);
    search(steps, N_PROGRAMS, 0, Some(left.as_secs()));
}

/// Returns a seed whose programs nobody has run before: a search that always tries the same finds nothing after its
/// first time.
fn new_seed() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |time| time.as_secs().saturating_mul(N_PROGRAMS))
}

/// Returns the command that builds the searching program.
pub fn build() -> Command {
    cargo(&BUILD)
}

fn search(steps: &mut Steps, n_programs: u64, first: u64, seconds: Option<u64>) {
    steps.run("differential (build)", &mut build());
    steps.work("differential", || run(n_programs, first, seconds));
}

/// Divides the seeds among processes, waits for them and prints what they did.
fn run(n_programs: u64, first: u64, seconds: Option<u64>) -> bool {
    let n_processors = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let n_processes = n_processors.saturating_mul(N_EACH);
    let begin = Instant::now();
    let each = n_programs.div_ceil(n_processes);
    let start = |process: u64| {
        let (skipped, seed) = (process * each, first.saturating_add(process * each));
        let n_programs = each.min(n_programs.saturating_sub(skipped));
        println!(
            "seeds {seed} to {}",
            seed.saturating_add(n_programs).saturating_sub(1)
        );
        let numbers = [seed, n_programs].into_iter().chain(seconds);
        Command::new(target("release").join("differential"))
            .args(numbers.map(|number| number.to_string()))
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
        "{} programs, {} runs, {n_processes} processes, {seconds:.0} s: {rate:.0} programs a second",
        sum.programs, sum.runs
    );
    ok
}

/// Shows the output of a process; returns its counts, if all was well.
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
