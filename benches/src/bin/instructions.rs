//! Instructions for each kernel, call or turn of the defended cases, counted under callgrind and
//! compared with `instructions.txt`.
//!
//! `cargo xtask instructions [--bless]` calls it. It starts itself under valgrind; that process runs
//! each case a few times, then the times that count between two calls of [`end_of_stretch`], at
//! each of which callgrind writes down what it has counted since the last. So neither start-up nor
//! the first runs are in the numbers. With `--peers` those whom we compare with are counted too, on
//! graphs and in this process.

#![forbid(unsafe_code)]

use std::fs;
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tfrt_bef::BefBuffer;
use tfrt_benches::cases::{Case, NAMES};
use tfrt_benches::compare::Contender;
use tfrt_benches::counted::{Count, Counts};
use tfrt_benches::folders;
use tfrt_benches::ours::{self, Bound, Order, Ours, Threads};
use tfrt_benches::peers;
use tfrt_benches::small::{self, Small};

/// The argument by which the program runs cases, and counts nothing.
const INSIDE: &str = "--inside";
/// The argument by which the program runs our peers too.
const PEERS: &str = "--peers";
/// The tunables by which the system's allocator neither maps nor gives back: whether it does
/// depends on what was before.
const ALLOCATOR: &str = "glibc.malloc.top_pad=268435456:glibc.malloc.mmap_threshold=1073741824:\
                         glibc.malloc.trim_threshold=4294967296";
/// The number of units that are run for a count, at least: the allocator takes more in some runs
/// than in others.
const N_UNITS: usize = 50_000;
/// The share of further instructions than in the file that is too many.
const TOLERANCE: f64 = 0.05;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [INSIDE, options @ ..] => {
            run_all(options.contains(&PEERS));
            ExitCode::SUCCESS
        }
        [] => verdict(count(&[]).map(|counts| is_fine(&counts))),
        ["--bless"] => verdict(count(&[]).and_then(|counts| write_again(counts, &Counts::path()))),
        ["--write", path, options @ ..] => {
            verdict(count(options).and_then(|counts| write(&counts, Path::new(path))))
        }
        _ => {
            eprintln!("Usage: instructions [--bless | --write FILE [--peers]]");
            ExitCode::from(2)
        }
    }
}

fn verdict(is_fine: io::Result<bool>) -> ExitCode {
    match is_fine {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Compares with the file.
fn is_fine(counts: &Counts) -> bool {
    let path = Counts::path();
    let before = Counts::read(&path).unwrap_or_default();
    let mut is_fine = true;
    for count in counts.all() {
        let (case, who, now) = (&count.case, &count.who, count.instructions);
        let Some(before) = before.of(case, who) else {
            println!(
                "{case:<12} {who:<14} {now:10.1}  is not in {}",
                path.display()
            );
            is_fine = false;
            continue;
        };
        let change = now / before - 1.0;
        let verdict = match change {
            change if change > TOLERANCE => "TOO MANY",
            change if change < -TOLERANCE => "fewer: --bless",
            _ => "",
        };
        is_fine &= change <= TOLERANCE;
        let percent = change * 100.0;
        println!("{case:<12} {who:<14} {now:10.1}  {before:10.1}  {percent:+6.1}%  {verdict}");
    }
    is_fine
}

/// Writes what was counted over the lines of a file; lines of what was not counted stay.
fn write_again(mut counts: Counts, path: &Path) -> io::Result<bool> {
    for count in Counts::read(path)?.all() {
        if counts.of(&count.case, &count.who).is_none() {
            counts.push(count.clone());
        }
    }
    write(&counts, path)
}

fn write(counts: &Counts, path: &Path) -> io::Result<bool> {
    const HEAD: &str = "\
# Instructions for each kernel, call or turn, by `cargo xtask instructions --bless`.
# More than 5% above a line fails `cargo xtask ci`.
";
    fs::write(path, format!("{HEAD}{counts}"))?;
    print!("{counts}");
    Ok(true)
}

/// Runs this program under callgrind, and reads what it has counted.
fn count(options: &[&str]) -> io::Result<Counts> {
    let folder = folders::target("instructions");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    // Here it takes a fiftieth of the time.
    for name in NAMES {
        let case = Case::find(name).expect("each name has a case");
        fs::write(path_of(name), ours::bytes_of(&case.text).as_bytes())?;
    }
    let output = folder.join("out");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--dump-after=*end_of_stretch*"])
        .arg(format!("--callgrind-out-file={}", output.display()))
        .arg(std::env::current_exe()?)
        .arg(INSIDE)
        .args(options)
        .env("GLIBC_TUNABLES", ALLOCATOR);
    let finished = command.output()?;
    if !finished.status.success() {
        let told = String::from_utf8_lossy(&finished.stderr).into_owned();
        return Err(io::Error::other(told));
    }
    let errors = String::from_utf8_lossy(&finished.stderr).into_owned();
    let skipped = errors.lines().filter(|line| line.starts_with("SKIPPED"));
    skipped.for_each(|line| println!("{line}"));
    let told = String::from_utf8_lossy(&finished.stdout).into_owned();
    let mut counts = Counts::default();
    // Each case has ended two stretches, of which the second counts.
    for (index, line) in told.lines().enumerate() {
        let part = folder.join(format!("out.{}", 2 * index + 2));
        let mut words = line.splitn(3, '\t');
        let (Some(case), Some(n_units), Some(who)) = (words.next(), words.next(), words.next())
        else {
            return Err(io::Error::other(format!("expected a case, found '{line}'")));
        };
        let n_units: f64 = n_units.parse().map_err(io::Error::other)?;
        counts.push(Count {
            case: case.to_owned(),
            instructions: total(&part)? / n_units,
            who: who.to_owned(),
        });
    }
    Ok(counts)
}

/// Returns where the compiled program of a case is.
fn path_of(name: &str) -> PathBuf {
    folders::target("instructions").join(format!("{name}.bef"))
}

/// Reads the compiled program of a case.
fn compiled(name: &str) -> BefBuffer {
    BefBuffer::read(path_of(name)).expect("it was written before this program was started")
}

/// Reads how many instructions callgrind has written down.
fn total(part: &Path) -> io::Result<f64> {
    let text = fs::read_to_string(part)?;
    let mut lines = text.lines();
    let total = lines.find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|total| total.trim().parse().ok());
    total.ok_or_else(|| io::Error::other(format!("{}: no totals", part.display())))
}

/// Runs all cases, and says of each how many units were counted.
fn run_all(with_peers: bool) {
    for name in NAMES {
        let case = Case::find(name).expect("each name has a case");
        let bytes = compiled(name);
        for order in Order::BOTH {
            if order == Order::Static || case.graph.is_some() {
                run(&case, &bytes, order);
            }
        }
        if name == "empty" {
            run_bound(&case, &bytes);
        }
        if with_peers && let Some(graph) = &case.graph {
            for peer in peers::on_one_thread(graph) {
                run_peer(&case, peer);
            }
        }
    }
    small::ALL.into_iter().for_each(run_small);
    load();
    #[cfg(feature = "models")]
    tfrt_benches::whole::all().into_iter().for_each(run_whole);
}

/// Runs an eager operation, or a whole model.
#[cfg(feature = "models")]
fn run_whole(mut whole: tfrt_benches::whole::Whole) {
    (whole.work)();
    end_of_stretch(1);
    (whole.work)();
    end_of_stretch(2);
    println!("{}\t{}\ttfrt", whole.name, whole.n_calls);
}

/// Runs a small thing.
fn run_small(small: Small) {
    let n_units = usize::try_from(small::N).expect("it is not negative");
    let n_runs = N_UNITS.div_ceil(n_units);
    let run = || assert_eq!((small.work)(), small::answer(), "{}", small.name);
    (0..n_runs).for_each(|_| run());
    end_of_stretch(1);
    (0..n_runs).for_each(|_| run());
    end_of_stretch(2);
    println!("{}\t{}\ttfrt", small.name, n_runs * n_units);
}

fn run(case: &Case, bytes: &BefBuffer, order: Order) {
    let ours = Ours::open(bytes.clone(), order, Threads::Caller);
    let n_runs = (N_UNITS / case.n_units).max(1);
    let run = |n_runs: usize| {
        for _ in 0..n_runs {
            assert_eq!(ours.call(&case.arguments).ok(), Some(case.answer));
        }
    };
    run(n_runs + 1);
    end_of_stretch(1);
    run(n_runs);
    end_of_stretch(2);
    println!("{}\t{}\ttfrt, {order}", case.name, n_runs * case.n_units);
}

/// Runs a case whose function is bound.
fn run_bound(case: &Case, bytes: &BefBuffer) {
    let mut bound = Ours::open(bytes.clone(), Order::Static, Threads::Caller).bind();
    let mut run = || assert_eq!(bound.call(&case.arguments).ok(), Some(case.answer));
    (0..N_UNITS).for_each(|_| run());
    end_of_stretch(1);
    (0..N_UNITS).for_each(|_| run());
    end_of_stretch(2);
    println!("{}\t{N_UNITS}\t{}", case.name, Bound::NAME);
}

fn run_peer(case: &Case, mut peer: Contender) {
    (peer.work)(2);
    end_of_stretch(1);
    let answer = (peer.work)(1).answer;
    end_of_stretch(2);
    assert_eq!(answer, case.answer, "{}: {}", case.name, peer.name);
    println!("{}\t{}\t{}", case.name, case.n_units, peer.name);
}

/// Loads a program, whose units are its kernels.
fn load() {
    let case = Case::find("random").expect("it is a case's name");
    let bytes = compiled(case.name);
    let load = || ours::load(bytes.clone(), &ours::host(Order::Static, Threads::Caller));
    drop(load());
    end_of_stretch(1);
    let program = load();
    end_of_stretch(2);
    drop(program);
    println!("load\t{}\ttfrt", case.n_units);
}

/// Tells callgrind to write down what it has counted.
#[inline(never)]
fn end_of_stretch(which: u32) -> u32 {
    black_box(which)
}
