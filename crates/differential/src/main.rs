//! `differential FIRST_SEED PROGRAMS [SECONDS]`: compares random programs with the oracle, one
//! process's part of `cargo xtask differential`.
//!
//! It prints what it has tried, or a difference; the exit status tells which.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tfrt_differential::search;

const USAGE: &str = "Usage: differential FIRST_SEED PROGRAMS [SECONDS]";

fn main() -> ExitCode {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let (first, n_programs, seconds) = match numbers.as_deref() {
        Ok([first, n_programs]) => (*first, *n_programs, None),
        Ok([first, n_programs, seconds]) => (*first, *n_programs, Some(*seconds)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let deadline =
        seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    search::be_quiet_about_kernels();
    match search::search(first..first.saturating_add(n_programs), deadline) {
        Ok(counts) => {
            println!("{counts}");
            match counts.missing() {
                None => return ExitCode::SUCCESS,
                Some(kind) => println!("no program had {kind}"),
            }
        }
        Err(difference) => println!("{difference}"),
    }
    ExitCode::FAILURE
}
