//! Random programs must do on every queue what the evaluator says, and leave nothing behind.
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_DIFFERENTIAL_PROGRAMS` | number of programs | as many as there is time for |
//! | `TFRT_DIFFERENTIAL_SECONDS` | how long that is | 10, without limit if a number is given |
//! | `TFRT_DIFFERENTIAL_SEED` | the first seed | 0 |
//!
//! On one thread they must print the same, to the order of the lines, whether kernels run in the order
//! that load has found or are counted. Each program runs in both ways, and on one of the queues with
//! threads of its own, in turn; one that makes a difference runs on all of them.
//!
//! A difference is shown by the seed and by the smallest program that makes one.
//!
//! `cargo xtask differential` runs many of these at a time: what a program leaves behind is counted for
//! the whole process, so one process runs one program.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_fuzz::bench::Bench;
use tfrt_oracle::differential::{Outcome, Subject, campaign};
use tfrt_oracle::generate::Options;

/// Programs tried between two looks at the clock.
const BATCH: u64 = 50;

/// What programs must have, each among a few thousand, and the operations that it is seen by.
const KINDS: &[(&str, &[&str])] = &[
    ("calls", &["tfrt.call "]),
    ("conditions", &["tfrt.if ", "tfrt.cond ", "tfrt.case "]),
    (
        "loops",
        &["tfrt.while ", "tfrt.repeat.i32 ", "parallel_call"],
    ),
    ("tasks", &["tfrt_test.async_", "tfrt_test.do.async"]),
    ("threads", &["tfrt_test.external"]),
    (
        "errors",
        &["tfrt_test.fail", "tfrt_test.report_error", "partial_fail"],
    ),
    ("panics", &["tfrt_test.panic"]),
    ("dropped promises", &["tfrt_test.drop_promise"]),
    ("cancellation", &["tfrt_test.cancel"]),
];

/// How many programs are sure to have one of each kind.
const ENOUGH: u64 = 2_000;

#[test]
fn random_programs_do_what_the_evaluator_says_on_every_queue() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("TFRT_DIFFERENTIAL_SEED").unwrap_or(0);
    let wanted = number("TFRT_DIFFERENTIAL_PROGRAMS");
    let seconds = number("TFRT_DIFFERENTIAL_SECONDS").or(wanted.is_none().then_some(10));
    let last = wanted.map_or(u64::MAX, |wanted| first.saturating_add(wanted));
    std::panic::set_hook(Box::new(|panic| {
        if !tfrt::host::is_in_kernel() {
            eprintln!("{panic}");
        }
    }));

    let mut session = Session::new();
    let begin = Instant::now();
    let is_over = || seconds.is_some_and(|limit| begin.elapsed() > Duration::from_secs(limit));
    let mut n_compared = 0;
    let mut next = first;
    while next < last && !is_over() {
        let seeds = next..last.min(next + BATCH);
        next = seeds.end;
        match campaign(seeds, &options, &mut |subject| session.run(subject)) {
            Ok(n) => n_compared += n,
            Err(difference) => panic!("{difference}"),
        }
    }
    let kinds: Vec<String> = (session.kinds.iter())
        .map(|(kind, n)| format!("{n} with {kind}"))
        .collect();
    println!(
        "{n_compared} programs, {} runs; {}",
        session.n_runs,
        kinds.join(", ")
    );
    let missing = KINDS
        .iter()
        .find(|(kind, _)| !session.kinds.contains_key(kind));
    assert!(n_compared < ENOUGH || missing.is_none(), "{missing:?}");
}

/// Runtimes, and what has been run on them.
struct Session {
    /// On this thread: in order, and counted.
    alone: [Bench; 2],
    /// With threads of their own.
    pools: Vec<Bench>,
    n_runs: u64,
    /// How many programs had what.
    kinds: BTreeMap<&'static str, u64>,
}

impl Session {
    fn new() -> Session {
        let mut alone = Bench::on_queues(&[1, 2, 4, 16]);
        let pools = alone.split_off(2);
        Session {
            alone: alone
                .try_into()
                .unwrap_or_else(|_| unreachable!("two are left")),
            pools,
            n_runs: 0,
            kinds: BTreeMap::new(),
        }
    }

    /// Runs a program, on all queues if it is known to make a difference on some.
    fn run(&mut self, subject: Subject<'_>) -> Vec<Outcome> {
        let file = match open(subject) {
            Ok(file) => file,
            // A smaller form that nobody would compile shows nothing.
            Err(_) if subject.seed.is_none() => return Vec::new(),
            Err(complaint) => {
                return vec![Outcome {
                    way: "compiling".to_owned(),
                    complaint: Some(complaint),
                    ..Outcome::default()
                }];
            }
        };
        let mut outcomes: Vec<Outcome> = self.alone.iter().map(|bench| bench.run(&file)).collect();
        let [in_order, counted] = &mut outcomes[..] else {
            unreachable!("there are two runtimes on this thread");
        };
        if in_order.stdout != counted.stdout && counted.complaint.is_none() {
            counted.complaint = Some(format!(
                "counted kernels print\n{}where those in order print\n{}",
                counted.stdout, in_order.stdout
            ));
        }
        let n_pools = self.pools.len();
        // Not by the last bits, which say what the program is like.
        let mixed = |seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let turn = subject.seed.map(|seed| mixed(seed) as usize % n_pools);
        let pools = turn.map_or(&self.pools[..], |turn| &self.pools[turn..=turn]);
        outcomes.extend(pools.iter().map(|bench| bench.run(&file)));
        if subject.seed.is_some() {
            self.count(subject.text, outcomes.len());
        }
        outcomes
    }

    fn count(&mut self, text: &str, n_runs: usize) {
        self.n_runs += n_runs as u64;
        for (kind, operations) in KINDS {
            if operations.iter().any(|operation| text.contains(operation)) {
                *self.kinds.entry(kind).or_default() += 1;
            }
        }
    }
}

/// Compiles a program and opens the bytes.
fn open(subject: Subject<'_>) -> Result<BefFile, String> {
    let bytes = compile(subject.module, &CompileOptions::default());
    let bytes = bytes.map_err(|errors| errors.render(false))?;
    BefFile::open(bytes).map_err(|error| error.to_string())
}

/// Mostly small programs, and some of each other kind.
fn options(seed: u64) -> Options {
    Options {
        size: match seed % 16 {
            0 => 24,
            1..4 => 12,
            _ => 5,
        },
        ordered: seed % 8 != 7,
        delays: seed % 64 == 40,
        faults: seed % 4 < 2,
        ..Options::default()
    }
}
