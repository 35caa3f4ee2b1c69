//! The tables that benchmarks print: a heading for each subject, and a line for each contender.

use crate::cases::{REFERENCE_NS, START, STEP, goal};
use crate::compare::{Contender, Row, Subject, compare};
use crate::counted::Counts;
use crate::graph::Graph;
use crate::hand_off::HandOff;
use crate::measure::Clock;
use crate::peers::loops::plain_loop;
use crate::peers::shared::Body;

/// The options of a benchmark.
pub struct Bench {
    n_rounds: usize,
    words: Vec<String>,
    counts: Counts,
}

impl Bench {
    /// Reads the command line, of which each word picks subjects by name, and the environment:
    /// `TFRT_BENCH_RUNS` is the number of rounds, 31 if it says nothing.
    pub fn from_environment() -> Bench {
        let n_rounds = std::env::var("TFRT_BENCH_RUNS")
            .ok()
            .and_then(|runs| runs.parse().ok());
        let words = std::env::args().skip(1);
        Bench {
            n_rounds: n_rounds.unwrap_or(31),
            words: words.filter(|word| !word.starts_with('-')).collect(),
            counts: Counts::read(&Counts::path()).unwrap_or_default(),
        }
    }

    /// Returns whether the command line asks for a subject.
    pub fn is_wanted(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Prints the heading of a subject.
    pub fn begin(&self, what: &str) {
        // The machine may have slept until now.
        yardstick(200);
        println!("{what}; medians of {} interleaved rounds", self.n_rounds);
        println!("yardstick: a node of the plain loop over a chain of 10,000, before and after");
        println!("spread: half the interquartile range; ratio: to the first, round by round");
        println!("goals are scaled by the yardstick, from {REFERENCE_NS} ns");
    }

    /// Compares, and prints what came of it. Instructions are those that were counted last.
    pub fn compare(&self, subject: Subject<'_>, contenders: &mut [Contender]) -> Vec<Row> {
        let before = yardstick(self.n_rounds);
        let rows = compare(subject, contenders, self.n_rounds);
        let after = yardstick(self.n_rounds);
        let Subject {
            name,
            unit,
            n_units,
            ..
        } = subject;
        println!("\n{name}: {n_units} {unit}s; yardstick {before:.2} ns, {after:.2} ns");
        println!(
            "  {:<30}{:>11}{:>8}{:>9}{:>14}{:>8}",
            "",
            format!("ns/{unit}"),
            "spread",
            "ratio",
            "instructions",
            "goal"
        );
        for row in &rows {
            let or_nothing = |number: Option<f64>| {
                number.map_or("-".to_owned(), |number| format!("{number:.1}"))
            };
            let scale = (before + after) / 2.0 / REFERENCE_NS;
            let goal = goal(name, &row.name).map(|goal| goal * scale);
            println!(
                "  {:<30}{:>11.2}{:>7.0}%{:>9.3}{:>14}{:>8}",
                row.name,
                row.ns,
                row.spread * 100.0,
                row.ratio,
                or_nothing(self.counts.of(name, &row.name)),
                or_nothing(goal),
            );
        }
        rows
    }

    /// Compares as [`compare`](Self::compare), with the time of a hand-off between two threads
    /// before and after.
    pub fn compare_on_two(&self, subject: Subject<'_>, contenders: &mut [Contender]) -> Vec<Row> {
        let before = HandOff::measure();
        let rows = self.compare(subject, contenders);
        println!("  hand-off: {before} before; {} after", HandOff::measure());
        rows
    }
}

/// Returns the nanoseconds for a node of the plain loop over a chain: how fast the machine is now.
fn yardstick(n_rounds: usize) -> f64 {
    let graph = Graph::chain(10_000);
    let subject = Subject {
        name: "yardstick",
        unit: "node",
        n_units: graph.n_nodes(),
        answer: graph.result(START, STEP),
    };
    let rows = compare(
        subject,
        &mut [plain_loop(&graph, Body::Add, Clock::Process)],
        n_rounds,
    );
    rows[0].ns
}

/// Prints the reason why a contender is missing.
pub fn skip(why: &str) {
    println!("SKIPPED: {why}");
}
