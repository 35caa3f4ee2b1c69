//! Tests that find planted bugs, of which one is chosen when they run.

use std::process::Command;

use crate::steps::cargo_within;

/// A group of tests by one method of checking.
pub struct Search {
    /// The method, for people.
    pub method: &'static str,
    /// The arguments by which `cargo test` builds them.
    tests: &'static [&'static str],
    /// The filter on the names of the tests that are run.
    filter: &'static [&'static str],
    /// A variable that the tests look at.
    variable: Option<(&'static str, &'static str)>,
    /// The longest time of the tests.
    seconds: u32,
}

const SURVIVAL: &[&str] = &["-p", "tfrt", "--no-default-features", "--test", "alone"];

/// Random programs against the evaluator.
pub static DIFFERENTIAL: Search = Search {
    method: "differential",
    tests: &["-p", "tfrt-differential", "--test", "differential"],
    filter: &[],
    variable: Some(("TFRT_DIFFERENTIAL_PROGRAMS", "20000")),
    seconds: 900,
};

/// Requests cancelled at every step.
pub static CANCELLATION: Search = Search {
    method: "cancellation sweep",
    tests: SURVIVAL,
    filter: &["cancelled_by", "cancelled_from"],
    variable: None,
    seconds: 300,
};

/// Kernels that never settle their results, and those that take their time.
pub static STUCK: Search = Search {
    method: "stuck detection",
    tests: SURVIVAL,
    filter: &["never", "stuck"],
    variable: None,
    seconds: 60,
};

/// Leaks after failures at every step, and after everything was dropped half way.
pub static ACCOUNTING: Search = Search {
    method: "accounting at rest",
    tests: SURVIVAL,
    filter: &["failure_of", "promise_that", "dropped_half_way"],
    variable: None,
    seconds: 300,
};

/// Every prefix, every flipped bit: one of so many.
pub static SWEEP: Search = Search {
    method: "sweep of prefixes and bits",
    tests: &["-p", "tfrt-fuzz", "--test", "library"],
    filter: &["sweep::"],
    variable: Some(("TFRT_SWEEP_STRIDE", "101")),
    seconds: 600,
};

/// Texts that nest as deep as they like.
pub static NESTING: Search = Search {
    method: "hostile texts",
    tests: &["-p", "tfrt-ir", "--test", "library"],
    filter: &["nesting"],
    variable: None,
    seconds: 120,
};

/// Rights to parts of a buffer.
pub static RANGES: Search = Search {
    method: "tests: range lock",
    tests: &["-p", "tfrt-async", "--lib"],
    filter: &["range_lock"],
    variable: None,
    seconds: 60,
};

/// GPUs on the simulated driver, and what that finds.
pub static GPU: Search = Search {
    method: "simulated GPU",
    tests: &["-p", "tfrt-gpu", "--test", "library"],
    filter: &["device", "findings", "memory", "sim"],
    variable: None,
    seconds: 300,
};

/// Collectives of simulated tasks, under seeded delays and faults.
pub static COLLECTIVES: Search = Search {
    method: "simulated collectives",
    tests: &["-p", "tfrt-dist", "--test", "library"],
    filter: &["collective::"],
    variable: None,
    seconds: 300,
};

/// Calls between tasks, their ends, and what clients leave behind, on a virtual clock.
pub static CALLS: Search = Search {
    method: "simulated calls",
    tests: &["-p", "tfrt-dist", "--test", "library"],
    filter: &["contexts", "programs", "schedules", "transport"],
    variable: None,
    seconds: 300,
};

/// Tasks on a simulated network that draws delays, cuts and restarts.
pub static WIRE: Search = Search {
    method: "simulated network",
    tests: &["-p", "tfrt-wire", "--test", "library"],
    filter: &["schedules"],
    variable: Some(("TFRT_WIRE_SEEDS", "0:200")),
    seconds: 600,
};

/// Tensors in any layout against the definition of each operation.
pub static PROPERTIES: Search = Search {
    method: "property tests: tensors",
    tests: &["-p", "tfrt-tensor", "--lib"],
    filter: &["math::layout_copy"],
    variable: None,
    seconds: 300,
};

impl Search {
    /// Returns the command that builds the tests, or the one that runs them with a bug, or with
    /// none.
    pub fn command(&self, bug: Option<&str>, only_build: bool) -> Command {
        let seconds = if only_build { 3_600 } else { self.seconds };
        let mut command = cargo_within(seconds, &["test"]);
        command
            .args(self.tests)
            .args(only_build.then_some("--no-run"));
        command.arg("--").args(self.filter);
        command
            .envs(self.variable)
            .env("TFRT_PLANTED", bug.unwrap_or_default())
            // What fails here is no regression.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command
    }
}
