//! [`SingleThreadedWorkQueue`]: deterministic, runs on the caller.
//!
//! It has no threads. Tasks wait in one line until some thread awaits or quiesces, and run there,
//! first in, first out. The order is exact, since output depends on it:
//!
//! * A waiting thread takes the whole line as a *batch* and runs it task by task. After each
//!   task it looks whether what it waits for has come; if so, the rest of the batch goes back to
//!   the *front* of the line.
//! * Tasks that are added meanwhile go to the end of the line, so behind the whole batch.
//! * A task that quiesces runs the line, not the rest of the batch that it is part of: that
//!   keeps its place.
//!
//! Blocking tasks stand in the same line; one that may not be queued is refused.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::idle::lock;
use super::tally::Tally;
use super::unwind::{drop_caught, run_caught};
use super::{Activity, AwaitError, ConcurrentWorkQueue, QueueStats, Task};
use crate::any::AnyAsyncValue;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};

/// A queue without threads, whose tasks run on the thread that waits for them.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use tfrt_async::queue::{ConcurrentWorkQueue, SingleThreadedWorkQueue, Task};
///
/// let queue = SingleThreadedWorkQueue::new();
/// let (sender, receiver) = channel();
/// for number in 0..3 {
///     let sender = sender.clone();
///     queue.add_task(Task::new(move || sender.send(number).unwrap()));
/// }
/// queue.quiesce().unwrap();
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
/// ```
pub struct SingleThreadedWorkQueue {
    line: Arc<Line>,
}

/// What the queue shares with the continuations of values that somebody waits for.
struct Line {
    tasks: Mutex<Waiting>,
    /// Notified when a task arrives, a value that is waited for settles, or the queue may have
    /// come to rest.
    changed: Condvar,
    tally: Tally,
    n_quiescing: AtomicUsize,
    n_panicked: AtomicU64,
}

/// What a line's lock protects.
#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    /// The number of threads that wait for a change. Notifying costs a system call even if
    /// nobody waits.
    n_threads: usize,
}

thread_local! {
    /// The lines whose tasks this thread is running, outermost first.
    static RUNNING: RefCell<Vec<*const Line>> = const { RefCell::new(Vec::new()) };
}

/// Marks the thread as running tasks of a line, until dropped.
struct Running;

impl Running {
    fn enter(line: &Line) -> Running {
        RUNNING.with_borrow_mut(|running| running.push(line));
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(Vec::pop);
    }
}

impl Default for SingleThreadedWorkQueue {
    fn default() -> Self {
        SingleThreadedWorkQueue::new()
    }
}

impl SingleThreadedWorkQueue {
    /// Makes an empty queue.
    pub fn new() -> SingleThreadedWorkQueue {
        let line = Line {
            tasks: Mutex::default(),
            changed: Condvar::new(),
            tally: Tally::new(0),
            n_quiescing: AtomicUsize::new(0),
            n_panicked: AtomicU64::new(0),
        };
        SingleThreadedWorkQueue {
            line: Arc::new(line),
        }
    }
}

impl Line {
    /// Tells whether the calling thread is inside one of the line's tasks.
    fn is_running_here(&self) -> bool {
        RUNNING
            .try_with(|running| running.borrow().contains(&(self as *const Line)))
            .unwrap_or(false)
    }

    fn push(&self, task: Task) {
        self.tally.shared().add(1);
        let mut waiting = lock(&self.tasks);
        waiting.tasks.push_back(task);
        self.release(waiting);
    }

    /// Runs the tasks of `batch` until it is empty or `done` says so.
    fn run(&self, batch: &mut VecDeque<Task>, done: impl Fn() -> bool) {
        let _running = Running::enter(self);
        while !done() {
            let Some(task) = batch.pop_front() else {
                return;
            };
            self.tally.shared().start();
            if run_caught(task) {
                // Ordering: a statistic.
                self.n_panicked.fetch_add(1, Ordering::Relaxed);
            }
            self.tally.shared().finish();
            // Ordering: a read-modify-write against the one in `quiesce`: either it sees the
            // finish above, or this sees that somebody is quiescing.
            if self.n_quiescing.fetch_add(0, Ordering::AcqRel) > 0 {
                self.notify();
            }
        }
    }

    /// Wakes all waiting threads; those that are about to wait see what the caller did before.
    fn notify(&self) {
        self.release(lock(&self.tasks));
    }

    /// Releases the lock, and wakes all threads that wait for a change.
    fn release(&self, waiting: MutexGuard<'_, Waiting>) {
        let n_threads = waiting.n_threads;
        drop(waiting);
        if n_threads > 0 {
            self.changed.notify_all();
        }
    }

    /// Puts what is left of a batch back in front.
    fn put_back(&self, mut batch: VecDeque<Task>) {
        if batch.is_empty() {
            return;
        }
        let mut waiting = lock(&self.tasks);
        batch.append(&mut waiting.tasks);
        waiting.tasks = batch;
        self.release(waiting);
    }

    /// Waits for a change, at most until `deadline`; tells whether that has passed.
    fn wait<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, Waiting>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, Waiting>, bool) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return (waiting, true);
        }
        waiting.n_threads += 1;
        let mut waiting = match left {
            Some(left) => {
                let woken = self.changed.wait_timeout(waiting, left);
                woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
            None => {
                let woken = self.changed.wait(waiting);
                woken.unwrap_or_else(|poisoned| poisoned.into_inner())
            }
        };
        waiting.n_threads -= 1;
        (waiting, false)
    }

    /// Runs tasks, and waits for more, until `missing` is zero or the deadline has passed.
    fn run_until(&self, missing: &AtomicUsize, deadline: Option<Instant>) -> bool {
        // Ordering: whoever sees the last arrival comes after all of them.
        let settled = || missing.load(Ordering::Acquire) == 0;
        let expired = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut waiting = lock(&self.tasks);
        loop {
            if settled() {
                return true;
            }
            let mut batch = std::mem::take(&mut waiting.tasks);
            if batch.is_empty() {
                let passed;
                (waiting, passed) = self.wait(waiting, deadline);
                if passed {
                    return settled();
                }
                continue;
            }
            drop(waiting);
            self.run(&mut batch, || settled() || expired());
            self.put_back(batch);
            if expired() {
                return settled();
            }
            waiting = lock(&self.tasks);
        }
    }

    /// Runs the line until it is empty.
    fn run_all(&self) {
        loop {
            let mut batch = std::mem::take(&mut lock(&self.tasks).tasks);
            if batch.is_empty() {
                return;
            }
            self.run(&mut batch, || false);
        }
    }
}

impl ConcurrentWorkQueue for SingleThreadedWorkQueue {
    fn name(&self) -> String {
        "single-threaded".to_owned()
    }

    fn add_task(&self, task: Task) {
        self.line.push(task);
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        if !allow_queuing {
            return Err(task);
        }
        self.line.push(task);
        Ok(())
    }

    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError> {
        if self.is_worker_thread() {
            return Err(AwaitError::FromWorker);
        }
        // One more than there are, so that it does not reach zero while some are missing.
        let missing = Arc::new(AtomicUsize::new(1));
        for value in values.iter().filter(|value| !value.is_settled()) {
            // Ordering: nobody can bring the count to zero before the last line of this block.
            missing.fetch_add(1, Ordering::Relaxed);
            let (missing, line) = (missing.clone(), self.line.clone());
            value.and_then(move || {
                // Ordering: pairs with the acquire in `run_until`.
                if missing.fetch_sub(1, Ordering::AcqRel) == 1 {
                    line.notify();
                }
            });
        }
        missing.fetch_sub(1, Ordering::AcqRel);
        Ok(self.line.run_until(&missing, deadline))
    }

    /// Runs all tasks. Inside a task of this queue it runs those that are in line, and returns.
    fn quiesce(&self) -> Result<(), AwaitError> {
        let line = &*self.line;
        if line.is_running_here() {
            line.run_all();
            return Ok(());
        }
        // Ordering: pairs with the read-modify-write in `run`.
        line.n_quiescing.fetch_add(1, Ordering::AcqRel);
        loop {
            line.run_all();
            let waiting = lock(&line.tasks);
            if !waiting.tasks.is_empty() {
                continue;
            }
            // Other threads may be running tasks; they notify, under the lock, as they finish.
            if line.tally.in_flight() == 0 {
                break;
            }
            drop(line.wait(waiting, None));
        }
        line.n_quiescing.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }

    fn parallelism(&self) -> usize {
        1
    }

    fn is_worker_thread(&self) -> bool {
        self.line.is_running_here()
    }

    fn activity(&self) -> Activity {
        let tally = &self.line.tally;
        Activity {
            in_flight: usize::try_from(tally.in_flight()).unwrap_or(usize::MAX),
            epoch: tally.epoch(),
        }
    }

    fn stats(&self) -> QueueStats {
        QueueStats {
            executed: self.line.tally.started(),
            // Ordering: a statistic.
            panicked: self.line.n_panicked.load(Ordering::Relaxed),
            ..QueueStats::default()
        }
    }
}

impl Drop for SingleThreadedWorkQueue {
    /// Drops the tasks that nobody waited for.
    fn drop(&mut self) {
        let tasks = std::mem::take(&mut lock(&self.line.tasks).tasks);
        for task in tasks {
            drop_caught(task);
            self.line.tally.shared().finish();
        }
    }
}
