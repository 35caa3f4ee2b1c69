//! Tests that random programs do on every queue what the evaluator says, and leave nothing behind: a few of them, as a
//! search without an optimiser. `cargo xtask differential` tries many.
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_DIFFERENTIAL_PROGRAMS` | number of programs | as many as there is time for: two seconds |
//! | `TFRT_DIFFERENTIAL_SEED` | the first seed | 0 |
//!
//! A difference is shown by the seed and by the smallest program that makes one.

use std::time::{Duration, Instant};

use tfrt_differential::search;

/// The time for which programs are tried if their number is not given.
const TIME: Duration = Duration::from_secs(2);

#[test]
fn random_programs_do_what_the_evaluator_says_on_every_queue() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        text.parse::<u64>().ok()
    };
    let first = number("TFRT_DIFFERENTIAL_SEED").unwrap_or(0);
    let wanted = number("TFRT_DIFFERENTIAL_PROGRAMS");
    let deadline = wanted.is_none().then(|| Instant::now() + TIME);
    let seeds = first..wanted.map_or(u64::MAX, |wanted| first.saturating_add(wanted));
    search::be_quiet_about_kernels();
    match search::search(seeds, deadline) {
        Ok(counts) => {
            println!("{counts}");
            assert_eq!(counts.missing(), None);
        }
        Err(difference) => panic!("{difference}"),
    }
}
