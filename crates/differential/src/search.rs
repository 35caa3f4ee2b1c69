//! The search: runs the programs of many seeds in several ways each, and compares.
//!
//! On one thread they must print the same, to the order of the lines, whether kernels run in the order
//! that load has found or are counted; but for the order of lines that are in none, in programs whose
//! tasks have bodies. Each program runs in both ways, and then, mostly together with
//! others, on one of the queues with threads of its own; one that makes a difference runs on all of them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Instant;

use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_oracle::differential::{Difference, Outcome, TestProgram, campaign};
use tfrt_oracle::generate::Options;

use crate::test_runtime::TestRuntime;

/// The operation whose effects may come in another order when it is counted than in order: a task whose body gives back
/// one of its arguments. Counted, who awaits that goes on before the rest of the body; in order, after it.
const ANY_ORDER: &str = "tfrt_test.do.async";

/// The number of programs between two looks at the clock.
const BATCH: u64 = 64;

/// The number of programs that go through each stage together.
const AT_ONCE: usize = 32;

/// The number of programs that share a pool at one time.
const N_TOGETHER: usize = 8;

/// The kinds of content that programs must have, each among some hundred thousand, and the operations that show it.
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

/// The number of programs of which some are sure to have each kind.
const ENOUGH: u64 = 200_000;

/// The counts of a search.
#[derive(Debug, Default)]
pub struct SearchCounts {
    /// Programs that were compared.
    pub n_programs: u64,
    /// The number of runs.
    pub n_runs: u64,
    /// The number of programs that had each kind of content.
    kinds: BTreeMap<&'static str, u64>,
}

impl SearchCounts {
    /// Returns a kind of content that no program had, though there were enough programs.
    pub fn missing(&self) -> Option<&'static str> {
        let mut kinds = KINDS.iter().map(|(kind, _)| *kind);
        let missing = kinds.find(|kind| !self.kinds.contains_key(kind));
        missing.filter(|_| self.n_programs >= ENOUGH)
    }
}

impl fmt::Display for SearchCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} programs, {} runs; ", self.n_programs, self.n_runs)?;
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, n)| format!("{n} with {kind}"));
        f.write_str(&kinds.collect::<Vec<_>>().join(", "))
    }
}

/// Silences panics of kernels, which are part of programs.
pub fn be_quiet_about_kernels() {
    std::panic::set_hook(Box::new(|panic| {
        if !tfrt_host::is_in_kernel() {
            eprintln!("{panic}");
        }
    }));
}

/// Runs the programs of some seeds, as far as they come until the deadline.
///
/// # Errors
///
/// The first difference.
pub fn search(
    seeds: Range<u64>,
    deadline: Option<Instant>,
) -> Result<SearchCounts, Box<Difference>> {
    let mut session = Session::new();
    let is_over = || deadline.is_some_and(|deadline| Instant::now() > deadline);
    let mut next = seeds.start;
    while next < seeds.end && !is_over() {
        let batch = next..seeds.end.min(next.saturating_add(BATCH));
        next = batch.end;
        let n_compared = campaign(batch, &options, AT_ONCE, &mut |programs| {
            session.run(programs)
        })?;
        session.counts.n_programs += n_compared;
    }
    Ok(session.counts)
}

/// The runtimes of a search, and its counts.
struct Session {
    /// The runtimes on this thread: in order, and counted.
    alone: [TestRuntime; 2],
    /// The runtimes with threads of their own; each group shares some.
    pools: Vec<Vec<TestRuntime>>,
    counts: SearchCounts,
}

impl Session {
    fn new() -> Session {
        Session {
            alone: TestRuntime::alone(),
            pools: [1, 2, 4, 16]
                .map(|n| TestRuntime::on_pool(n, N_TOGETHER))
                .into(),
            counts: SearchCounts::default(),
        }
    }

    /// Runs programs.
    fn run(&mut self, programs: &[TestProgram<'_>]) -> Vec<Vec<Outcome>> {
        // Stage by stage: what a stage runs on is in the caches then.
        let compiled: Vec<_> = programs.iter().map(compiled).collect();
        let opened = programs.iter().zip(compiled);
        let opened: Vec<_> = opened
            .map(|(program, bytes)| self.open(program, bytes))
            .collect();
        let mut files = Vec::new();
        let mut outcomes = vec![Vec::new(); programs.len()];
        for (index, (program, opened)) in programs.iter().zip(opened).enumerate() {
            match opened {
                Ok(file) => files.push((index, file)),
                Err(_) if program.seed.is_none() => {}
                Err(complaint) => outcomes[index].push(Outcome {
                    way: "compiling".to_owned(),
                    complaint: Some(complaint),
                    ..Outcome::default()
                }),
            }
        }
        self.run_alone(programs, &files, &mut outcomes);
        let is_over = outcomes.iter().any(|outcomes| complain(outcomes));
        match programs.first().and_then(|program| program.seed) {
            _ if is_over => {}
            Some(seed) => self.run_together(seed, &files, &mut outcomes),
            None => self.run_everywhere(&files, &mut outcomes),
        }
        for (program, outcomes) in programs.iter().zip(&outcomes) {
            if program.seed.is_some() {
                self.count(program.text, outcomes.len());
            }
        }
        outcomes
    }

    /// Opens the compiled programs; a smaller form is loaded, too, since what nobody would load shows nothing.
    fn open(
        &self,
        program: &TestProgram<'_>,
        bytes: Result<BefBuffer, String>,
    ) -> Result<BefFile, String> {
        let file = BefFile::open(bytes?).map_err(|error| error.to_string())?;
        if program.seed.is_none() {
            self.alone[0].load(&file)?;
        }
        Ok(file)
    }

    /// Runs programs on this thread, up to the first complaint: to be sure of leaks takes seconds.
    fn run_alone(
        &self,
        programs: &[TestProgram<'_>],
        files: &[(usize, BefFile)],
        outcomes: &mut [Vec<Outcome>],
    ) {
        for runtime in &self.alone {
            for (index, file) in files {
                let outcome = runtime.run(file);
                let is_over = outcome.complaint.is_some();
                outcomes[*index].push(outcome);
                if is_over {
                    return;
                }
            }
        }
        for (index, _) in files {
            let [in_order, counted] = &mut outcomes[*index][..] else {
                unreachable!("there are two runtimes on this thread");
            };
            let is_kept = !programs[*index].text.contains(ANY_ORDER);
            if is_kept && in_order.stdout != counted.stdout && counted.complaint.is_none() {
                counted.complaint = Some(format!(
                    "counted kernels print\n{}where those in order print\n{}",
                    counted.stdout, in_order.stdout
                ));
            }
        }
    }

    /// Runs programs on one of the pools: mostly together, some one after the other on threads that
    /// have gone to sleep.
    fn run_together(&self, seed: u64, files: &[(usize, BefFile)], outcomes: &mut [Vec<Outcome>]) {
        // Not by the last bits, which say what the program is like.
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let pool = &self.pools[mixed as usize % self.pools.len()];
        let n_together = if (mixed / 16).is_multiple_of(8) {
            1
        } else {
            N_TOGETHER
        };
        for files in files.chunks(n_together) {
            let run = |files: &[(usize, BefFile)]| {
                TestRuntime::run_together(pool, files.iter().map(|(_, file)| file))
            };
            let mut found = run(files);
            if files.len() > 1 && complain(&found) {
                // Whoever does it alone has done it; if nobody does, all have.
                let alone: Vec<Outcome> = files.chunks(1).flat_map(run).collect();
                if complain(&alone) {
                    found = alone;
                }
            }
            for ((index, _), outcome) in files.iter().zip(found) {
                outcomes[*index].push(outcome);
            }
        }
    }

    /// Runs each program on all pools, alone and beside its like.
    fn run_everywhere(&self, files: &[(usize, BefFile)], outcomes: &mut [Vec<Outcome>]) {
        for (index, file) in files {
            let outcomes = &mut outcomes[*index];
            for pool in &self.pools {
                outcomes.push(pool[0].run(file));
                outcomes.extend(TestRuntime::run_together(pool, pool.iter().map(|_| file)));
                if complain(outcomes) {
                    return;
                }
            }
        }
    }

    fn count(&mut self, text: &str, n_runs: usize) {
        self.counts.n_runs += n_runs as u64;
        for (kind, operations) in KINDS {
            if operations.iter().any(|operation| text.contains(operation)) {
                *self.counts.kinds.entry(kind).or_default() += 1;
            }
        }
    }
}

fn complain(outcomes: &[Outcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.complaint.is_some())
}

fn compiled(program: &TestProgram<'_>) -> Result<BefBuffer, String> {
    let bytes = compile(program.module, &CompileOptions::default());
    bytes.map_err(|errors| errors.render(false))
}

/// Returns the options of a seed's program: mostly small ones, and some of each other kind.
fn options(seed: u64) -> Options {
    let (size, functions) = match seed % 1024 {
        0 => (24, 4),
        1..4 => (12, 4),
        4..16 => (5, 4),
        16..128 => (3, 2),
        _ => (2, 1),
    };
    Options {
        size,
        functions,
        ordered: seed % 8 != 7,
        delays: seed % 4096 == 8,
        faults: seed % 4 < 2,
        ..Options::default()
    }
}
