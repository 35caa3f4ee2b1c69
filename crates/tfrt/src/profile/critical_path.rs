//! What the end of a run waited for: a walk back from the kernel that ended last, each time to the
//! one that was ready last of those that it needed.
//!
//! # The step back
//!
//! 1. A kernel waited for the producers of its operands in the same call. The one that began last
//!    was ready last.
//! 2. If that one calls functions, it was its callee that kept the kernel waiting: the last run of a
//!    kernel that gives a result of a callee.
//! 3. A kernel without producers, but for the function's arguments, waited for the call: the kernel
//!    that made it, or, in a loop, the turn before.
//!
//! Where there is nothing to go back to, a path begins. What ended before that call began belongs to
//! an earlier run, and has a path of its own.
//!
//! Recordings tell the calls of a function apart only while these are in progress. Of several runs
//! that fit, the last one before is taken, so that paths through recursion are near the truth rather
//! than the truth.

use tfrt_host::record::{FunctionId, Recording};

use super::graphs::Graphs;
use super::runs::{Run, runs};
use super::{Profile, Step};
use crate::program::Program;

/// Paths after which no more are looked for.
const MAX_PATHS: u32 = 1_000;

/// Marks the slices of `profile` that lie on a critical path.
pub fn mark(profile: &mut Profile, recording: &Recording, programs: &[Program]) {
    let runs = runs(profile, recording);
    let graphs = Graphs::new(&runs, programs);
    let index = Index::new(&runs);
    // The last to end first, for the beginnings of paths.
    let mut by_end: Vec<usize> = (0..runs.len()).collect();
    by_end.sort_by_key(|run| (runs[*run].end_ns, *run));
    for path in 0..MAX_PATHS {
        let Some(mut at) = by_end.pop() else {
            return;
        };
        loop {
            let run = &runs[at];
            profile.threads[run.thread].slices[run.slice].critical_path = Some(path);
            if let Some(producer) = ready_last(at, &runs, &graphs, &index) {
                let step = Step {
                    function: run.function,
                    producer: runs[producer].kernel,
                    user: run.kernel,
                };
                profile.critical_steps.insert(step);
            }
            match before(at, &runs, &graphs, &index) {
                Some(earlier) => at = earlier,
                None => break,
            }
        }
        // What is left of this call had others wait, but not the end.
        let call = |run: &Run| (run.function, run.call);
        let same = runs.iter().filter(|run| call(run) == call(&runs[at]));
        let begin_ns = same.map(|run| run.begin_ns).min().unwrap_or_default();
        let n_earlier = by_end.partition_point(|run| runs[*run].end_ns <= begin_ns);
        by_end.truncate(n_earlier);
    }
}

/// What `at` waited for, by the rules above.
fn before(at: usize, runs: &[Run], graphs: &Graphs, index: &Index) -> Option<usize> {
    let Some(ready) = ready_last(at, runs, graphs, index) else {
        let graph = graphs.of(runs[at].function)?;
        let callers = graph.callers.iter();
        return callers
            .filter_map(|(function, kernel)| {
                let caller = index.last(*function, *kernel, at)?;
                Some(last_result(caller, at, runs, graphs, index))
            })
            .max();
    };
    Some(last_result(ready, at, runs, graphs, index))
}

/// The producer of an operand of `at` that began last, in the same call.
fn ready_last(at: usize, runs: &[Run], graphs: &Graphs, index: &Index) -> Option<usize> {
    let run = &runs[at];
    let graph = graphs.of(run.function)?;
    let producers = graph.producers(run.kernel).iter();
    producers
        .filter_map(|kernel| index.last_in_call(run.function, *kernel, run.call, at))
        .max()
}

/// The run before `at` that gave the last result of what `caller` calls, or of what that one calls;
/// the caller itself, if it calls nothing.
fn last_result(caller: usize, at: usize, runs: &[Run], graphs: &Graphs, index: &Index) -> usize {
    let mut last = caller;
    loop {
        let run = &runs[last];
        let callees = graphs
            .of(run.function)
            .map(|graph| graph.callees(run.kernel));
        let results = callees.unwrap_or_default().iter().flat_map(|callee| {
            let kernels = graphs.of(*callee).map(|graph| graph.last.as_slice());
            let kernels = kernels.unwrap_or_default().iter();
            kernels.map(|kernel| (*callee, *kernel))
        });
        let found = results
            .filter_map(|(function, kernel)| index.last(function, kernel, at))
            .max();
        match found {
            Some(later) if later > last => last = later,
            _ => return last,
        }
    }
}

/// Runs by kernel, to find the last one before another.
struct Index {
    by_call: Vec<(FunctionId, u32, u64, usize)>,
    by_kernel: Vec<(FunctionId, u32, usize)>,
}

impl Index {
    fn new(runs: &[Run]) -> Index {
        let numbered = || runs.iter().enumerate();
        let mut by_call: Vec<_> = numbered()
            .map(|(at, run)| (run.function, run.kernel, run.call, at))
            .collect();
        let mut by_kernel: Vec<_> = numbered()
            .map(|(at, run)| (run.function, run.kernel, at))
            .collect();
        by_call.sort_unstable();
        by_kernel.sort_unstable();
        Index { by_call, by_kernel }
    }

    fn last_in_call(
        &self,
        function: FunctionId,
        kernel: u32,
        call: u64,
        at: usize,
    ) -> Option<usize> {
        let key = (function, kernel, call, at);
        let n_before = self.by_call.partition_point(|entry| *entry < key);
        let (found, of_kernel, of_call, run) = self.by_call.get(n_before.checked_sub(1)?)?;
        ((*found, *of_kernel, *of_call) == (function, kernel, call)).then_some(*run)
    }

    fn last(&self, function: FunctionId, kernel: u32, at: usize) -> Option<usize> {
        let key = (function, kernel, at);
        let n_before = self.by_kernel.partition_point(|entry| *entry < key);
        let (found, of_kernel, run) = self.by_kernel.get(n_before.checked_sub(1)?)?;
        ((*found, *of_kernel) == (function, kernel)).then_some(*run)
    }
}
