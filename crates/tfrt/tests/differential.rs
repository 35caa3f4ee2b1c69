//! Random programs must do on every queue what the evaluator says, and leave nothing behind.
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_DIFFERENTIAL_PROGRAMS` | number of programs | as many as take ten seconds, 4,000 at most |
//! | `TFRT_DIFFERENTIAL_SEED` | the first seed | 0 |
//!
//! On one thread they must print the same, to the order of the lines, whether kernels run in the order
//! that load has found or are counted.
//!
//! A difference is shown by the seed and by the smallest program that makes one.

use std::ops::Range;
use std::time::{Duration, Instant};

use tfrt_bef::BefFile;
use tfrt_fuzz::bench::Bench;
use tfrt_ir::Source;
use tfrt_oracle::differential::{FILE, Outcome, campaign};
use tfrt_oracle::generate::Options;

/// How long a run takes whose number of programs is not given.
const BUDGET: Duration = Duration::from_secs(10);

/// Programs tried between two looks at the clock.
const BATCH: u64 = 50;

#[test]
fn random_programs_do_what_the_evaluator_says_on_every_queue() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("TFRT_DIFFERENTIAL_SEED").unwrap_or(0);
    let wanted = number("TFRT_DIFFERENTIAL_PROGRAMS");
    let last = first + wanted.unwrap_or(4_000);

    let benches = Bench::on_queues(&[1, 2, 4, 16]);
    let begin = Instant::now();
    let mut n_compared = 0;
    let mut next = first;
    while next < last && (wanted.is_some() || begin.elapsed() < BUDGET) {
        let seeds = next..last.min(next + BATCH);
        next = seeds.end;
        n_compared += compare(seeds, &benches);
    }
    println!("{n_compared} programs on {} queues each", benches.len());
}

/// Compares the programs of some seeds; returns how many there were.
fn compare(seeds: Range<u64>, benches: &[Bench]) -> u64 {
    let mut run = |text: &str| match open(text) {
        Ok(file) => {
            let mut outcomes: Vec<Outcome> = benches.iter().map(|bench| bench.run(&file)).collect();
            let [in_order, counted, ..] = &mut outcomes[..] else {
                unreachable!("there are two runtimes on this thread");
            };
            if in_order.stdout != counted.stdout && counted.complaint.is_none() {
                counted.complaint = Some(format!(
                    "counted kernels print\n{}where those in order print\n{}",
                    counted.stdout, in_order.stdout
                ));
            }
            outcomes
        }
        Err(complaint) => vec![Outcome {
            way: "compiling".to_owned(),
            complaint: Some(complaint),
            ..Outcome::default()
        }],
    };
    match campaign(seeds, &options, &mut run) {
        Ok(n_compared) => n_compared,
        Err(difference) => panic!("{difference}"),
    }
}

/// Compiles a program and opens the bytes.
fn open(text: &str) -> Result<BefFile, String> {
    let bytes = tfrt::input::compile(&Source::new(FILE, text), &Default::default());
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
        ..Options::default()
    }
}
