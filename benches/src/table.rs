//! What benchmarks print: a heading for each subject, and a line for each who was compared.

use crate::compare::{Contender, Row, Subject, compare};
use crate::counted::Counts;
use crate::graph::Graph;
use crate::hand_off::HandOff;
use crate::peers::loops::plain_loop;
use crate::peers::shared::Body;

/// What a benchmark was asked to do.
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

    /// Tells whether somebody wants to know about a subject.
    pub fn is_wanted(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Says what is measured, and how fast the machine is today.
    pub fn begin(&self, what: &str) {
        let graph = Graph::chain(10_000);
        let subject = Subject {
            name: "yardstick",
            unit: "node",
            n_units: graph.n_nodes(),
            answer: graph.result(crate::cases::START, crate::cases::STEP),
        };
        let rows = compare(subject, &mut [plain_loop(&graph, Body::Add)], self.n_rounds);
        println!(
            "{what}; medians of {} interleaved rounds; spread is half the interquartile range",
            self.n_rounds
        );
        println!(
            "yardstick: {:.2} ns per node of the plain loop over a chain of 10,000",
            rows[0].ns
        );
    }

    /// Compares, and prints what came of it. Instructions are those of `benches/instructions.txt`.
    pub fn compare(&self, subject: Subject<'_>, contenders: &mut [Contender]) -> Vec<Row> {
        println!("{}: {} {}s", subject.name, subject.n_units, subject.unit);
        let rows = compare(subject, contenders, self.n_rounds);
        for row in &rows {
            let counted = self.counts.of(subject.name, &row.name);
            let counted =
                counted.map_or(String::new(), |count| format!("  {count:8.1} instructions"));
            println!(
                "  {:<30} {:9.2} ns/{:<6}  +-{:<3.0}%  x{:<8.3}{counted}",
                row.name,
                row.ns,
                subject.unit,
                row.spread * 100.0,
                row.ratio,
            );
        }
        rows
    }

    /// The same with the time of a hand-off between two threads before and after.
    pub fn compare_on_two(&self, subject: Subject<'_>, contenders: &mut [Contender]) -> Vec<Row> {
        let before = HandOff::measure();
        let rows = self.compare(subject, contenders);
        println!("  hand-off: {before} before; {} after", HandOff::measure());
        rows
    }
}

/// Says why somebody is not there.
pub fn skip(why: &str) {
    println!("SKIPPED: {why}");
}
