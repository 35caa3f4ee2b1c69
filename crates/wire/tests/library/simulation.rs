//! Schedules of a simulated network: tasks that ask and send, and what networks do to them, all drawn from one seed.
//!
//! After each schedule: nothing hangs, nothing ran twice, everything came or failed with the name of the right task,
//! and no more memory was held than admitted. `TFRT_WIRE_SEEDS=FIRST:NUMBER` tries others than those of every run. The
//! first seed that breaks something is printed with a schedule that was made smaller.

mod network;
mod process;
mod schedule;

use network::Network;
use schedule::{Schedule, shrunk};

/// The seeds of every run.
const SEEDS: (u64, u64) = (0, 200);

fn seeds() -> (u64, u64) {
    let Ok(text) = std::env::var("TFRT_WIRE_SEEDS") else {
        return SEEDS;
    };
    let parsed = text.split_once(':').and_then(|(first, n)| {
        let number = |text: &str| text.parse().ok();
        Some((number(first)?, number(n)?))
    });
    parsed.unwrap_or_else(|| panic!("expected TFRT_WIRE_SEEDS=FIRST:NUMBER, found '{text}'"))
}

/// Runs a schedule and says what it breaks.
fn run(schedule: &Schedule) -> Result<(), String> {
    let ran = std::panic::catch_unwind(|| Network::new(schedule).run());
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!("a panic: {}", text.unwrap_or_default()))
    })
}

#[test]
fn schedules_of_a_simulated_network_break_nothing() {
    let (first, n) = seeds();
    for seed in first..first + n {
        let schedule = Schedule::of(seed);
        let Err(broken) = run(&schedule) else {
            continue;
        };
        let (small, broken) = shrunk(schedule, broken, run);
        panic!("seed {seed}: {broken}\n{small}");
    }
}
