//! The critical path of a run: a walk back from the kernel that was done last, each time to the one that was done last
//! of those that it needed.
//!
//! # The step back
//!
//! 1. A kernel waited for the producers of its operands in the same call, for the one that was done
//!    last: with its parts, where tasks have computed the value.
//! 2. Where a producer calls functions, it was its callee that kept the kernel waiting: the kernel that
//!    gave the last result of the callee.
//! 3. A kernel without producers, but for the function's arguments, waited for the call: for the kernel
//!    that made it, or, in a loop, for the turn before.
//!
//! Where there is nothing to go back to, a path begins. What was done before that call began belongs
//! to an earlier run, and has a path of its own.
//!
//! Which call made which is found as `calls.rs` says.

use tfrt_host::record::Recording;

use super::calls::{CallTree, Lists};
use super::graphs::Graphs;
use super::runs::{Run, runs};
use super::{PathStep, Profile};
use crate::program::Program;

/// The number of paths that are looked for.
const MAX_PATHS: u32 = 1_000;
/// The number of calls by one kernel that are looked at, the last first, to find the one that mattered.
const MAX_TURNS: usize = 1_000;

/// Marks the slices of `profile` that lie on a critical path. Calls from outside began at `begins_ns`, as
/// far as that is known.
pub fn mark(profile: &mut Profile, recording: &Recording, programs: &[Program], begins_ns: &[u64]) {
    let runs = runs(profile, recording);
    let graphs = Graphs::new(&runs, programs);
    let past = RunHistory::new(&runs, &graphs, begins_ns);
    // The last to be done first, for the beginnings of paths.
    let mut by_end: Vec<usize> = (0..runs.len()).collect();
    by_end.sort_by_key(|run| (runs[*run].done_ns, *run));
    for path in 0..MAX_PATHS {
        let Some(mut at) = by_end.pop() else {
            return;
        };
        loop {
            let run = &runs[at];
            for (thread, slice) in run.parts.iter().chain([&(run.thread, run.slice)]) {
                profile.threads[*thread].slices[*slice].critical_path = Some(path);
            }
            let earlier = match past.ready_last(at) {
                Some(ready) => {
                    profile.critical_steps.insert(PathStep {
                        function: run.function,
                        producer: runs[ready.producer].kernel,
                        user: run.kernel,
                    });
                    Some(ready.by)
                }
                None => past.maker(at),
            };
            // What goes on in two places may be out of order: then the path ends.
            match earlier.filter(|earlier| *earlier < at) {
                Some(earlier) => at = earlier,
                None => break,
            }
        }
        // What is left of this call had others wait, but not the end.
        let begin_ns = runs[past.first_run_of_call(at)].begin_ns;
        let n_earlier = by_end.partition_point(|run| runs[*run].done_ns <= begin_ns);
        by_end.truncate(n_earlier);
    }
}

/// An operand that a kernel waited for, and the run that made it available.
struct ReadyOperand {
    /// The run of the kernel whose result it is, in the same call.
    producer: usize,
    /// The run that gave the value: of that kernel, or in a function that it has called.
    by: usize,
}

/// The runs with their predecessors: operands, calls and callers.
struct RunHistory<'a> {
    runs: &'a [Run],
    graphs: &'a Graphs,
    tree: CallTree,
    /// Runs as (call, kernel, run), in order. A kernel runs once in a call.
    in_call: Vec<(usize, u32, usize)>,
    /// The run that gave the last result of each call, if it has any.
    result_of: Vec<Option<usize>>,
    /// The calls that each run made.
    made_by: Lists,
}

impl<'a> RunHistory<'a> {
    fn new(runs: &'a [Run], graphs: &'a Graphs, begins_ns: &[u64]) -> Self {
        let tree = CallTree::new(runs, graphs, begins_ns);
        let numbered = tree.of_run.iter().zip(runs).enumerate();
        let mut in_call: Vec<(usize, u32, usize)> = numbered
            .map(|(at, (call, run))| (*call, run.kernel, at))
            .collect();
        in_call.sort_unstable();
        let mut result_of: Vec<Option<usize>> = vec![None; tree.calls.len()];
        for (at, (call, run)) in tree.of_run.iter().zip(runs).enumerate() {
            let graph = graphs.of(run.function);
            if !graph.is_some_and(|graph| graph.gives_result(run.kernel)) {
                continue;
            }
            let last = &mut result_of[*call];
            let is_later = |last: usize| runs[last].done_ns <= run.done_ns;
            if last.is_none_or(is_later) {
                *last = Some(at);
            }
        }
        let makers = tree.calls.iter().map(|call| call.maker);
        RunHistory {
            made_by: Lists::new(runs.len(), makers),
            runs,
            graphs,
            in_call,
            result_of,
            tree,
        }
    }

    fn first_run_of_call(&self, at: usize) -> usize {
        self.tree.calls[self.tree.of_run[at]].first_run
    }

    /// Returns the operand of `at` that was ready last.
    fn ready_last(&self, at: usize) -> Option<ReadyOperand> {
        let (run, call) = (&self.runs[at], self.tree.of_run[at]);
        let producers = self.graphs.of(run.function)?.producers(run.kernel);
        let ready = producers.iter().filter_map(|kernel| {
            let first = self
                .in_call
                .partition_point(|(of, number, _)| (*of, *number) < (call, *kernel));
            let (of, number, producer) = *self.in_call.get(first)?;
            ((of, number) == (call, *kernel) && producer < at).then(|| ReadyOperand {
                producer,
                by: self.last_result(producer, at),
            })
        });
        // What is told to be done later than that was done for somebody else.
        ready.max_by_key(|ready| (self.runs[ready.by].done_ns.min(run.begin_ns), ready.by))
    }

    /// Returns the run before `at` that gave the last result of the functions that `caller` has called, directly or
    /// not; the caller itself, if it has called none.
    fn last_result(&self, caller: usize, at: usize) -> usize {
        let mut last = caller;
        loop {
            let calls = self.made_by.of(last).iter().rev().take(MAX_TURNS);
            let results = calls.filter_map(|call| self.result_of[*call].filter(|run| *run < at));
            // Later runs have greater numbers, so that this comes to an end.
            match results.max_by_key(|run| (self.runs[*run].done_ns, *run)) {
                Some(later) if later > last => last = later,
                _ => return last,
            }
        }
    }

    /// Returns the run that led to the call of `at`: the kernel that made it, or in a loop the turn before.
    fn maker(&self, at: usize) -> Option<usize> {
        let call = self.tree.of_run[at];
        let maker = self.tree.calls[call].maker?;
        let begin_ns = self.runs[self.first_run_of_call(at)].begin_ns;
        let calls = self.made_by.of(maker);
        let n_before = calls.partition_point(|other| *other < call);
        let before = calls[..n_before].iter().rev().take(MAX_TURNS);
        let mut results = before.filter_map(|turn| {
            let result = self.result_of[*turn]?;
            let is_done = self.runs[result].done_ns <= begin_ns;
            is_done.then(|| self.last_result(result, at))
        });
        Some(results.next().unwrap_or(maker))
    }
}
