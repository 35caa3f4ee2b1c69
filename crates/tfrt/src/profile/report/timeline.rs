//! The activity of threads over time, made small enough to be drawn: where there is too much, what is short and close
//! together becomes one.

use crate::profile::{Activity, ProfiledThread, Slice};

/// The most marks of all threads on a page.
const MAX_MARKS: usize = 150_000;

/// A mark of the timeline: one slice, or several that are short and close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub begin_ns: u64,
    pub end_ns: u64,
    pub kind: Kind,
    /// The number of slices that the mark stands for.
    pub n_slices: u64,
    pub is_critical: bool,
}

/// The activity of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel, as [`Profile::kernels`](crate::profile::Profile::kernels) numbers it.
    Kernel(usize),
    /// A part of a kernel.
    Part(usize),
    /// Several kernels.
    Kernels,
    Task,
    Park,
    /// The steal of so many tasks from another thread.
    Steal(u32),
}

/// The marks of all threads.
#[derive(Debug)]
pub struct Timeline {
    /// The marks of each thread, in the order of their beginnings; tasks come before the kernels in them.
    pub threads: Vec<Vec<Mark>>,
    /// The duration below which slices that are close together are merged.
    pub merged_below_ns: u64,
}

impl Timeline {
    pub fn new(threads: &[ProfiledThread]) -> Timeline {
        Timeline::within(threads, MAX_MARKS)
    }

    fn within(threads: &[ProfiledThread], max_marks: usize) -> Timeline {
        let mut merged_below_ns = 0;
        loop {
            let marks = threads.iter().map(|thread| marks(thread, merged_below_ns));
            let threads: Vec<Vec<Mark>> = marks.collect();
            let n_marks: usize = threads.iter().map(Vec::len).sum();
            // Threads that are each one mark can't become less.
            if n_marks <= max_marks || merged_below_ns > u64::MAX / 4 {
                return Timeline {
                    threads,
                    merged_below_ns,
                };
            }
            merged_below_ns = (merged_below_ns * 2).max(128);
        }
    }
}

/// Makes the marks of a thread. Slices shorter than `below_ns` that begin in the same stretch of this length become
/// one, if they are alike.
fn marks(thread: &ProfiledThread, below_ns: u64) -> Vec<Mark> {
    let mut slices: Vec<&Slice> = thread.slices.iter().collect();
    slices.sort_by_key(|slice| (slice.begin_ns, std::cmp::Reverse(slice.end_ns)));
    let mut marks: Vec<Mark> = Vec::new();
    // The last mark of each sort that may grow: tasks, kernels, sleep, steals.
    let mut growing: [Option<usize>; 4] = [None; 4];
    for slice in slices {
        let mark = mark(slice);
        let sort = match mark.kind {
            Kind::Task => 0,
            Kind::Kernel(_) | Kind::Part(_) | Kind::Kernels => 1,
            Kind::Park => 2,
            Kind::Steal(_) => 3,
        };
        let is_short = slice.end_ns - slice.begin_ns < below_ns;
        let stretch = |at_ns: u64| at_ns / below_ns.max(1);
        let last = growing[sort]
            .filter(|index| is_short && stretch(marks[*index].begin_ns) == stretch(slice.begin_ns));
        match last {
            Some(index) => join(&mut marks[index], &mark),
            None => {
                growing[sort] = is_short.then_some(marks.len());
                marks.push(mark);
            }
        }
    }
    marks
}

fn mark(slice: &Slice) -> Mark {
    let kind = match slice.activity {
        Activity::Kernel(kernel) => Kind::Kernel(kernel),
        Activity::Part(kernel) => Kind::Part(kernel),
        Activity::Task => Kind::Task,
        Activity::Steal(n_tasks) => Kind::Steal(n_tasks),
        Activity::Park => Kind::Park,
    };
    Mark {
        begin_ns: slice.begin_ns,
        end_ns: slice.end_ns,
        kind,
        n_slices: 1,
        is_critical: slice.critical_path.is_some(),
    }
}

fn join(mark: &mut Mark, other: &Mark) {
    mark.end_ns = mark.end_ns.max(other.end_ns);
    mark.n_slices += other.n_slices;
    mark.is_critical |= other.is_critical;
    mark.kind = match (mark.kind, other.kind) {
        (a, b) if a == b => a,
        (Kind::Kernel(_) | Kind::Part(_) | Kind::Kernels, _) => Kind::Kernels,
        (Kind::Steal(a), Kind::Steal(b)) => Kind::Steal(a.saturating_add(b)),
        (kind, _) => kind,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(slices: impl IntoIterator<Item = (Activity, u64, u64)>) -> ProfiledThread {
        let slices = slices
            .into_iter()
            .map(|(activity, begin_ns, end_ns)| Slice {
                activity,
                begin_ns,
                end_ns,
                critical_path: None,
            });
        ProfiledThread {
            slices: slices.collect(),
            ..ProfiledThread::default()
        }
    }

    #[test]
    fn few_slices_stay_as_they_are() {
        let slices = [
            (Activity::Kernel(3), 10, 20),
            (Activity::Kernel(4), 20, 21),
            (Activity::Task, 5, 30),
        ];
        let timeline = Timeline::within(&[thread(slices)], 10);
        let kinds = timeline.threads[0].iter().map(|mark| mark.kind);
        let kinds: Vec<Kind> = kinds.collect();
        assert_eq!(kinds, [Kind::Task, Kind::Kernel(3), Kind::Kernel(4)]);
        assert_eq!(timeline.merged_below_ns, 0);
    }

    #[test]
    fn many_slices_become_few_and_none_is_lost() {
        let short = (0..10_000).map(|at| (Activity::Kernel(at as usize % 2), at * 10, at * 10 + 9));
        let long = (Activity::Kernel(7), 100_000, 1_000_000);
        let timeline = Timeline::within(&[thread(short.chain([long]))], 100);
        let marks = &timeline.threads[0];
        assert!(marks.len() <= 100, "{}", marks.len());
        assert_eq!(marks.iter().map(|mark| mark.n_slices).sum::<u64>(), 10_001);
        assert!(marks.iter().any(|mark| mark.kind == Kind::Kernel(7)));
        assert!(timeline.merged_below_ns >= 1_000);
    }
}
