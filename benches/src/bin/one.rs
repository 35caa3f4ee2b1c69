//! One case of [`cases`](tfrt_benches::cases) over and over, and nothing else: for profilers.
//!
//! `cargo run --profile profiling -p tfrt-benches --bin one -- chain 1000 [dynamic] [bound] [WORKERS]`

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use tfrt_benches::cases::{Case, NAMES};
use tfrt_benches::ours::{Order, Ours, Threads};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let case = arguments.first().and_then(|name| Case::find(name));
    let n_runs = arguments.get(1).and_then(|runs| runs.parse::<u32>().ok());
    let (Some(case), Some(n_runs)) = (case, n_runs) else {
        eprintln!(
            "Usage: one CASE RUNS [dynamic] [bound] [WORKERS]\n\nCases: {}",
            NAMES.join(", ")
        );
        return ExitCode::from(2);
    };
    let options = &arguments[2..];
    let order = if options.iter().any(|option| option == "dynamic") {
        Order::Dynamic
    } else {
        Order::Static
    };
    let n_workers = options.iter().find_map(|option| option.parse().ok());
    let threads = n_workers.map_or(Threads::Caller, Threads::CallerAnd);
    let ours = Ours::new(&case.text, order, threads);
    let mut bound = ours.bind();
    let is_bound = options.iter().any(|option| option == "bound");
    let start = Instant::now();
    for _ in 0..n_runs {
        let answer = match is_bound {
            true => bound.call(&case.arguments),
            false => ours.call(&case.arguments),
        };
        assert_eq!(answer.ok(), Some(case.answer));
    }
    let total = start.elapsed().as_secs_f64() * 1e9;
    let each = total / f64::from(n_runs) / case.n_units as f64;
    println!("{}, {order}: {each:.2} ns per {}", case.name, case.unit);
    ExitCode::SUCCESS
}
