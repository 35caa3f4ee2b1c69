//! The task counters of a queue, cheap to keep and exact about zero.
//!
//! Each worker has three counters that only it writes, with plain loads and stores. Threads that own
//! none share a set, with read-modify-writes, and another set is for tasks that may block, on whatever
//! thread. The counters only grow.
//!
//! A task is *added* before anybody can see it, and *finished* after it was dropped. Its add
//! therefore happens before its finish, whichever threads did the two.
//!
//! # Why zero is exact
//!
//! [`TaskCounters::in_flight`] sums the finishes first and the adds afterwards. Each finish that it
//! sees it acquires, so it sees that task's add, and the adds that the task itself made. If both
//! sums are equal, the adds it sees are just those of the finishes it sees. A task that it does
//! not see was added by a thread outside, concurrently with this call, or by another task that
//! it does not see: so between the two sums there was a moment without any.

use super::deque::Padded;
use crate::sync::{AtomicU64, Ordering};

/// The counters of one worker, of all threads that are not workers, or of tasks that may block.
#[derive(Debug)]
pub(super) struct WorkerCounters {
    added: AtomicU64,
    started: AtomicU64,
    finished: AtomicU64,
    /// Whether several threads write the counters.
    shared: bool,
}

impl WorkerCounters {
    fn new(shared: bool) -> WorkerCounters {
        let zero = || AtomicU64::new(0);
        WorkerCounters {
            added: zero(),
            started: zero(),
            finished: zero(),
            shared,
        }
    }

    #[inline]
    fn bump(&self, counter: &AtomicU64, n: u64, ordering: Ordering) {
        if self.shared {
            counter.fetch_add(n, ordering);
            return;
        }
        // Only this thread writes the counter.
        counter.store(counter.load(Ordering::Relaxed) + n, ordering);
    }

    /// Counts `n` tasks as added. Comes before they are visible.
    #[inline]
    pub(super) fn add(&self, n: u64) {
        // Ordering: published with the tasks, by the queue that they are put into.
        self.bump(&self.added, n, Ordering::Relaxed);
    }

    /// Counts a task as started.
    #[inline]
    pub(super) fn start(&self) {
        // Ordering: a statistic.
        self.bump(&self.started, 1, Ordering::Relaxed);
    }

    /// Counts a task as dropped, run or not.
    #[inline]
    pub(super) fn finish(&self) {
        // Ordering: pairs with the acquire in `in_flight`.
        self.bump(&self.finished, 1, Ordering::Release);
    }
}

/// The counters of a queue.
#[derive(Debug)]
pub(super) struct TaskCounters {
    workers: Box<[Padded<WorkerCounters>]>,
    shared: Padded<WorkerCounters>,
    blocking: Padded<WorkerCounters>,
}

impl TaskCounters {
    /// Makes a set for each worker, a shared one, and that of tasks that may block.
    pub(super) fn new(n_workers: usize) -> TaskCounters {
        let workers = (0..n_workers)
            .map(|_| Padded(WorkerCounters::new(false)))
            .collect();
        TaskCounters {
            workers,
            shared: Padded(WorkerCounters::new(true)),
            blocking: Padded(WorkerCounters::new(true)),
        }
    }

    /// Returns the counters that only the thread of worker `index` may write.
    #[inline]
    pub(super) fn worker(&self, index: usize) -> &WorkerCounters {
        &self.workers[index].0
    }

    /// Returns the counters for compute tasks on all other threads.
    #[inline]
    pub(super) fn shared(&self) -> &WorkerCounters {
        &self.shared.0
    }

    /// Returns the counters for tasks that may block, from their add to their finish.
    #[inline]
    pub(super) fn blocking(&self) -> &WorkerCounters {
        &self.blocking.0
    }

    fn compute(&self) -> impl Iterator<Item = &WorkerCounters> + Clone {
        self.workers
            .iter()
            .chain([&self.shared])
            .map(|counters| &counters.0)
    }

    fn all(&self) -> impl Iterator<Item = &WorkerCounters> + Clone {
        self.compute().chain([&self.blocking.0])
    }

    /// Returns the number of tasks added and not finished; never too low.
    pub(super) fn in_flight(&self) -> u64 {
        in_flight(self.all())
    }

    /// Returns the number of compute tasks added and not finished; never too low.
    pub(super) fn compute_in_flight(&self) -> u64 {
        in_flight(self.compute())
    }

    /// Returns a number that changes whenever a task starts or ends.
    pub(super) fn epoch(&self) -> u64 {
        // Ordering: a statistic.
        let of = |counters: &WorkerCounters| {
            counters.started.load(Ordering::Relaxed) + counters.finished.load(Ordering::Relaxed)
        };
        self.all().map(of).sum()
    }

    /// Returns how many tasks have started.
    pub(super) fn started(&self) -> u64 {
        // Ordering: a statistic.
        self.all()
            .map(|counters| counters.started.load(Ordering::Relaxed))
            .sum()
    }
}

/// Returns how many tasks are in flight that are counted on these sets.
fn in_flight<'a>(sets: impl Iterator<Item = &'a WorkerCounters> + Clone) -> u64 {
    // Ordering: pairs with the release in `finish`; see the module's documentation.
    let finished: u64 = sets
        .clone()
        .map(|counters| counters.finished.load(Ordering::Acquire))
        .sum();
    // Ordering: the acquires above keep these loads behind them.
    let added: u64 = sets
        .map(|counters| counters.added.load(Ordering::Relaxed))
        .sum();
    added - finished
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_over_lanes() {
        let counters = TaskCounters::new(2);
        counters.shared().add(2);
        counters.worker(0).start();
        counters.worker(0).add(1);
        let epoch = counters.epoch();
        counters.worker(0).finish();
        assert_eq!(counters.in_flight(), 2);
        assert_ne!(counters.epoch(), epoch);
        counters.worker(1).finish();
        counters.shared().finish();
        assert_eq!((counters.in_flight(), counters.started()), (0, 1));
    }

    #[test]
    fn counts_tasks_that_may_block_apart() {
        let counters = TaskCounters::new(1);
        counters.blocking().add(1);
        counters.blocking().start();
        assert_eq!((counters.in_flight(), counters.compute_in_flight()), (1, 0));
        counters.shared().add(1);
        assert_eq!((counters.in_flight(), counters.compute_in_flight()), (2, 1));
        counters.blocking().finish();
        counters.worker(0).finish();
        assert_eq!((counters.in_flight(), counters.compute_in_flight()), (0, 0));
    }
}
