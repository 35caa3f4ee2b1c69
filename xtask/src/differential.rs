//! Random programs on all processors, in several processes, since what a program leaves behind is counted
//! for the whole process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use crate::steps::{Steps, cargo, target};

/// What is tried if nobody says how many.
const N_PROGRAMS: u64 = 1_000_000;

/// How long `ci` may have taken when it has tried programs, and how long it tries some even if it is late.
const CI_END: Duration = Duration::from_secs(18 * 60);
const CI_LEAST: Duration = Duration::from_secs(60);

/// Processes for each processor: at times a program only waits, for threads or for some time to go by.
const N_EACH: u64 = 2;

/// The profile and the features of what is counted: `ci` builds most of it only once.
const BUILD: [&str; 8] = [
    "build",
    "--quiet",
    "--profile=counting",
    "--no-default-features",
    "--package=tfrt-benches",
    "--package=tfrt-differential",
    "--bin",
    "differential",
];

/// What the processes have said together.
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
    build(steps);
    let search = Search::begin(n_programs, first, None);
    end(steps, search);
    true
}

/// Begins to run a million programs, or as many as there is time for, always the same ones: what fails here is the
/// fault of the change. To find what was wrong before is for campaigns. They take what other steps leave of the
/// processors until [`end`] waits for them.
pub fn begin_ci(steps: &mut Steps) -> Option<Search> {
    build(steps);
    let left = CI_END.saturating_sub(steps.elapsed()).max(CI_LEAST);
    Search::begin(N_PROGRAMS, 0, Some(left.as_secs()))
}

/// Waits for a search, and says what it has found.
pub fn end(steps: &mut Steps, search: Option<Search>) {
    steps.work("differential", || search.is_some_and(Search::end));
}

/// A seed whose programs nobody has run before: a search that always tries the same finds nothing after its first
/// time.
fn new_seed() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |time| time.as_secs().saturating_mul(N_PROGRAMS))
}

fn build(steps: &mut Steps) {
    steps.run("differential (build)", &mut cargo(&BUILD));
}

/// Processes that try programs.
pub struct Search {
    begin: Instant,
    listeners: Vec<JoinHandle<Heard>>,
}

/// What a process has said, and what it counted if all was well.
#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    sum: Option<Sum>,
}

impl Search {
    /// Divides the seeds among processes that give way to everything else.
    fn begin(n_programs: u64, first: u64, seconds: Option<u64>) -> Option<Search> {
        let n_processors = thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let n_processes = n_processors.saturating_mul(N_EACH);
        let each = n_programs.div_ceil(n_processes);
        let start = |process: u64| {
            let (skipped, seed) = (process * each, first.saturating_add(process * each));
            let n_programs = each.min(n_programs.saturating_sub(skipped));
            println!(
                "seeds {seed} to {}",
                seed.saturating_add(n_programs).saturating_sub(1)
            );
            let numbers = [seed, n_programs].into_iter().chain(seconds);
            Command::new("nice")
                .args(["-n", "19"])
                .arg(target("counting").join("differential"))
                .args(numbers.map(|number| number.to_string()))
                .stdout(Stdio::piped())
                .spawn()
        };
        let children: Vec<Child> = (0..n_processes).map(start).collect::<Result<_, _>>().ok()?;
        let listen = |child| thread::spawn(|| listen(child));
        Some(Search {
            begin: Instant::now(),
            listeners: children.into_iter().map(listen).collect(),
        })
    }

    /// Waits for the processes and says what they did.
    fn end(self) -> bool {
        let n_processes = self.listeners.len();
        let mut total = Sum::default();
        let mut ok = true;
        for listener in self.listeners {
            let heard = listener.join().unwrap_or_default();
            for line in heard.lines {
                println!("{line}");
            }
            ok &= heard.sum.is_some();
            let sum = heard.sum.unwrap_or_default();
            total.programs += sum.programs;
            total.runs += sum.runs;
        }
        let seconds = self.begin.elapsed().as_secs_f64();
        let rate = total.programs as f64 / seconds;
        println!(
            "{} programs, {} runs, {n_processes} processes, {seconds:.0} s: {rate:.0} programs a second",
            total.programs, total.runs
        );
        ok
    }
}

/// Hears all that a process says.
fn listen(mut child: Child) -> Heard {
    let mut heard = Heard::default();
    let Some(output) = child.stdout.take() else {
        return heard;
    };
    let mut sum = Some(Sum::default());
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        // `N programs, M runs; ...`
        let counts = line
            .split_once("; ")
            .and_then(|(counts, _)| counts.split_once(" programs, "));
        if let Some((programs, runs)) = counts {
            sum = Sum::parse(programs, runs);
        }
        heard.lines.push(line);
    }
    let ended_well = child.wait().is_ok_and(|status| status.success());
    heard.sum = sum.filter(|_| ended_well);
    heard
}

impl Sum {
    fn parse(programs: &str, runs: &str) -> Option<Sum> {
        Some(Sum {
            programs: programs.parse().ok()?,
            runs: runs.strip_suffix(" runs")?.parse().ok()?,
        })
    }
}
