//! The kernels that ran, over all threads, in the order of their beginnings, each with what was done
//! for it on other threads, or later.

use tfrt_host::record::{EventKind, FunctionId, Recording};

use super::{Activity, Profile, Slice};

/// A kernel that ran. Runs are numbered in the order of their beginnings.
pub struct Run {
    pub begin_ns: u64,
    pub end_ns: u64,
    pub function: FunctionId,
    pub kernel: u32,
    pub call: u64,
    pub thread: usize,
    pub slice: usize,
    pub is_critical: bool,
    /// The slices of other work that was done for the kernel, as (thread, slice).
    pub parts: Vec<(usize, usize)>,
    /// The duration of this other work.
    pub parts_ns: u64,
    /// The time when the kernel and all of its parts were done.
    pub done_ns: u64,
    /// The time when the kernel was entered: at `begin_ns`, or with the first of its parts that lie right before that
    /// on its thread.
    entered_ns: u64,
}

impl Run {
    /// Returns the time of the kernel, with that of its parts.
    pub fn took_ns(&self) -> u64 {
        self.end_ns - self.begin_ns + self.parts_ns
    }

    fn add(&mut self, part: &Part) {
        self.parts.push((part.thread, part.slice));
        self.parts_ns += part.end_ns - part.begin_ns;
        self.done_ns = self.done_ns.max(part.end_ns);
    }
}

/// Finds all runs of kernels in a profile.
pub fn runs(profile: &Profile, recording: &Recording) -> Vec<Run> {
    let mut found = Found::default();
    for (thread, (named, recorded)) in profile.threads.iter().zip(&recording.threads).enumerate() {
        let mut slices = named.slices.iter().enumerate().peekable();
        for event in &recorded.events {
            // Kernels of other programs have an event, but no slice.
            let is_same =
                |slice: &Slice| (slice.begin_ns, slice.end_ns) == (event.begin_ns, event.end_ns);
            let Some((index, slice)) = slices.next_if(|(_, slice)| is_same(slice)) else {
                continue;
            };
            match (event.kind, slice.activity) {
                (EventKind::Kernel { call, .. }, Activity::Kernel(kernel)) => {
                    let (function, kernel) = profile.kernel_ids[kernel];
                    found.run(Run {
                        begin_ns: slice.begin_ns,
                        end_ns: slice.end_ns,
                        function,
                        kernel,
                        call,
                        thread,
                        slice: index,
                        is_critical: slice.critical_path.is_some(),
                        parts: Vec::new(),
                        parts_ns: 0,
                        done_ns: slice.end_ns,
                        entered_ns: slice.begin_ns,
                    });
                }
                (_, Activity::Part(kernel)) => found.parts.push(Part {
                    of: profile.kernel_ids[kernel],
                    begin_ns: slice.begin_ns,
                    end_ns: slice.end_ns,
                    thread,
                    slice: index,
                }),
                _ => {}
            }
        }
    }
    found.into_runs()
}

/// A slice that is a part of a kernel.
struct Part {
    of: (FunctionId, u32),
    begin_ns: u64,
    end_ns: u64,
    thread: usize,
    slice: usize,
}

#[derive(Default)]
struct Found {
    runs: Vec<Run>,
    /// Parts whose run is not known yet.
    parts: Vec<Part>,
}

impl Found {
    /// Adds a run, which the parts right before it belong to: those of a loop that its thread has run
    /// while it was in the kernel.
    fn run(&mut self, mut run: Run) {
        let is_own = |part: &Part, run: &Run| {
            part.thread == run.thread
                && part.of == (run.function, run.kernel)
                && part.end_ns == run.entered_ns
        };
        while let Some(part) = self.parts.pop_if(|part| is_own(part, &run)) {
            run.entered_ns = part.begin_ns;
            run.add(&part);
        }
        self.runs.push(run);
    }

    /// Gives the other parts to the last run of their kernel that was entered before; to the first, if
    /// clocks differ.
    fn into_runs(self) -> Vec<Run> {
        let Found { mut runs, parts } = self;
        runs.sort_by_key(|run| (run.begin_ns, run.end_ns));
        if parts.is_empty() {
            return runs;
        }
        let key = |run: &Run| (run.function, run.kernel, run.entered_ns);
        let mut by_entry: Vec<usize> = (0..runs.len()).collect();
        by_entry.sort_by_key(|run| key(&runs[*run]));
        for part in parts {
            let (function, kernel) = part.of;
            let n_before = by_entry
                .partition_point(|run| key(&runs[*run]) <= (function, kernel, part.begin_ns));
            let is_of = |run: &&usize| (runs[**run].function, runs[**run].kernel) == part.of;
            let last = n_before.checked_sub(1).and_then(|last| by_entry.get(last));
            let run = last
                .filter(is_of)
                .or(by_entry.get(n_before).filter(is_of))
                .copied();
            if let Some(run) = run {
                runs[run].add(&part);
            }
        }
        runs
    }
}
