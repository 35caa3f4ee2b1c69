//! [`SingleThreadedWorkQueue`]: a deterministic queue whose tasks run on the caller's thread.
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
//!
//! The end of the line that a running thread has added itself is that thread's own
//! (`queue/thread_scope.rs`), until somebody else may need it. So a task that adds the next one costs no
//! lock.
//!
//! # Local tasks
//!
//! Local tasks wait on the thread's scope like all others, and are shared when they leave it alone.
//! A thread that has nothing to do with the line any more puts all of its tasks back at once, and
//! whoever comes next takes the whole line. So local tasks in line need not be shared, if nothing but
//! them is at work on what they are about: they change threads all together, under the lock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::sleep::lock;
use super::task_counters::{TaskCounters, WorkerCounters};
use super::thread_scope;
use super::unwind::{drop_caught, run_caught};
use super::{Activity, AwaitError, ConcurrentWorkQueue, LocalTask, QueueStats, Task};
use crate::any::AnyAsyncValue;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};

/// A queue without threads, whose tasks run on the thread that waits for them.
///
/// Tasks that nobody waits for stay in line, with all that they hold. Those of a request hold its host, and the host
/// holds the queue: to give up a host whose requests may not be done, [quiesce](ConcurrentWorkQueue::quiesce) first.
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
    line: Arc<TaskLine>,
}

/// The tasks in line of a single-threaded queue, shared with the continuations of values that somebody waits for.
pub(super) struct TaskLine {
    tasks: Mutex<LineState>,
    /// The number of tasks in line whenever the lock is free.
    n_tasks: AtomicUsize,
    /// A copy of [`LineState::n_threads`] that is read without the lock.
    n_threads: AtomicUsize,
    /// Notified when a task arrives, a value that is waited for settles, or the queue may have
    /// come to rest.
    changed: Condvar,
    /// The counters of tasks. The worker's counters belongs to the thread that has claimed it.
    counters: TaskCounters,
    lane_is_claimed: AtomicBool,
    n_quiescing: AtomicUsize,
    n_panicked: AtomicU64,
}

/// The tasks and waiting threads of a line, protected by its lock.
#[derive(Default)]
struct LineState {
    tasks: VecDeque<Task>,
    /// The number of threads that wait for a change. Notifying costs a system call even if
    /// nobody waits.
    n_threads: usize,
}

impl Default for SingleThreadedWorkQueue {
    fn default() -> Self {
        SingleThreadedWorkQueue::new()
    }
}

impl SingleThreadedWorkQueue {
    /// Makes an empty queue.
    pub fn new() -> SingleThreadedWorkQueue {
        let line = TaskLine {
            tasks: Mutex::default(),
            n_tasks: AtomicUsize::new(0),
            n_threads: AtomicUsize::new(0),
            changed: Condvar::new(),
            counters: TaskCounters::new(1),
            lane_is_claimed: AtomicBool::new(false),
            n_quiescing: AtomicUsize::new(0),
            n_panicked: AtomicU64::new(0),
        };
        SingleThreadedWorkQueue {
            line: Arc::new(line),
        }
    }
}

impl TaskLine {
    /// Lets the calling thread write the counters without exchanges, if no other does.
    pub(super) fn claim_counters(&self) -> bool {
        // Ordering: pairs with the release in `release_counters`: the counters are seen as they were
        // left.
        !self.lane_is_claimed.swap(true, Ordering::Acquire)
    }

    pub(super) fn release_counters(&self) {
        // Ordering: pairs with the acquire in `claim_counters`.
        self.lane_is_claimed.store(false, Ordering::Release);
    }

    /// Returns the counters for a thread that owns the counters, or for one that doesn't.
    #[inline]
    pub(super) fn counters(&self, owns_counters: bool) -> &WorkerCounters {
        if owns_counters {
            self.counters.worker(0)
        } else {
            self.counters.shared()
        }
    }

    /// Returns whether there seem to be tasks that all threads can see.
    #[inline]
    pub(super) fn may_have_tasks(&self) -> bool {
        // Ordering: a hint.
        self.n_tasks.load(Ordering::Relaxed) > 0
    }

    /// Returns whether other threads seem to wait for tasks.
    #[inline]
    pub(super) fn has_waiting_threads(&self) -> bool {
        // Ordering: a hint. A thread that is overlooked waits until the caller is done.
        self.n_threads.load(Ordering::Relaxed) > 0
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        lock(&self.tasks)
    }

    #[inline]
    fn push(&self, task: Task) {
        if let Err(task) = thread_scope::add(self, task) {
            self.push_from_outside(task);
        }
    }

    #[inline(never)]
    fn push_from_outside(&self, task: Task) {
        self.counters.shared().add(1);
        let mut waiting = self.lock();
        waiting.tasks.push_back(task);
        self.release(waiting);
    }

    #[cold]
    fn push_local_from_outside(&self, task: LocalTask<'_>) {
        self.push_from_outside(task.into_shared());
    }

    fn push_all(&self, tasks: &mut dyn Iterator<Item = Task>) {
        while let Some(task) = tasks.next() {
            let Err(task) = thread_scope::add(self, task) else {
                continue;
            };
            // The thread runs nothing of ours, and will not before the last task.
            let tasks: VecDeque<Task> = [task].into_iter().chain(tasks).collect();
            let n_tasks = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
            self.counters.shared().add(n_tasks);
            return self.put_back(VecDeque::new(), tasks);
        }
    }

    /// Runs the tasks of `batch`, and what is in line behind it, until there is nothing left or
    /// `done` says so. What is left then goes back.
    fn run(self: &Arc<Self>, batch: VecDeque<Task>, done: impl Fn() -> bool) {
        thread_scope::run(self, batch, &done, |scope| {
            let counters = scope.counters();
            while !done() {
                let Some(task) = scope.next() else {
                    break;
                };
                counters.start();
                if run_caught(task) {
                    // Ordering: a statistic.
                    self.n_panicked.fetch_add(1, Ordering::Relaxed);
                }
                counters.finish();
            }
        });
        // Ordering: a read-modify-write against the one in `quiesce`: either it sees the
        // finishes above, or this sees that somebody is quiescing.
        if self.n_quiescing.fetch_add(0, Ordering::AcqRel) > 0 {
            self.notify();
        }
    }

    /// Wakes all waiting threads; those that are about to wait see what the caller did before.
    fn notify(&self) {
        self.release(self.lock());
    }

    /// Releases the lock, and wakes all threads that wait for a change.
    fn release(&self, waiting: MutexGuard<'_, LineState>) {
        let n_threads = waiting.n_threads;
        // Ordering: a hint.
        self.n_tasks.store(waiting.tasks.len(), Ordering::Relaxed);
        drop(waiting);
        if n_threads > 0 {
            self.changed.notify_all();
        }
    }

    /// Puts tasks at the front of the line, and others at its end. Local ones that have not been shared
    /// are all that the thread has for the line.
    pub(super) fn put_back(&self, mut front: VecDeque<Task>, mut end: VecDeque<Task>) {
        if front.is_empty() && end.is_empty() {
            return;
        }
        let mut waiting = loop {
            let waiting = self.lock();
            // Looked at under the lock: `share_local_tasks` finds what is put back before it comes, and
            // what has made it come is seen by whoever puts back later.
            if front.iter().chain(&end).all(Task::can_move) {
                break waiting;
            }
            drop(waiting);
            let tasks = front.iter_mut().chain(&mut end);
            tasks.filter(|task| !task.can_move()).for_each(Task::share);
        };
        if !front.is_empty() {
            front.append(&mut waiting.tasks);
            waiting.tasks = front;
        }
        waiting.tasks.append(&mut end);
        self.release(waiting);
    }

    /// Takes the whole line, and puts it before `tasks`.
    #[cold]
    pub(super) fn take_before(&self, tasks: &mut VecDeque<Task>) {
        let mut batch = self.take_all();
        batch.append(tasks);
        *tasks = batch;
    }

    fn take_all(&self) -> VecDeque<Task> {
        let mut waiting = self.lock();
        // Ordering: a hint.
        self.n_tasks.store(0, Ordering::Relaxed);
        std::mem::take(&mut waiting.tasks)
    }

    /// Waits for a change, at most until `deadline`; tells whether that has passed.
    fn wait<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, LineState>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, LineState>, bool) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return (waiting, true);
        }
        waiting.n_threads += 1;
        // Ordering: a hint.
        self.n_threads.store(waiting.n_threads, Ordering::Relaxed);
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
        // Ordering: a hint.
        self.n_threads.store(waiting.n_threads, Ordering::Relaxed);
        (waiting, false)
    }

    /// Runs tasks, and waits for more, until `missing` is zero or the deadline has passed.
    fn run_until(self: &Arc<Self>, missing: &AtomicUsize, deadline: Option<Instant>) -> bool {
        // Ordering: whoever sees the last arrival comes after all of them.
        let settled = || missing.load(Ordering::Acquire) == 0;
        let expired = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        loop {
            if settled() {
                return true;
            }
            let batch = self.take_all();
            if !batch.is_empty() {
                self.run(batch, || settled() || expired());
                if expired() {
                    return settled();
                }
                continue;
            }
            let waiting = self.lock();
            // What changed before the lock was taken has notified nobody.
            if settled() || !waiting.tasks.is_empty() {
                continue;
            }
            if self.wait(waiting, deadline).1 {
                return settled();
            }
        }
    }

    /// Runs the line until it is empty.
    fn run_all(self: &Arc<Self>) {
        loop {
            let batch = self.take_all();
            if batch.is_empty() {
                return;
            }
            self.run(batch, || false);
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

    #[inline]
    fn add_local_task(&self, task: LocalTask<'_>) {
        if let Err(task) = thread_scope::add_local(&self.line, task) {
            self.line.push_local_from_outside(task);
        }
    }

    #[inline]
    fn take_local_task(&self, owner: *const (), take: &mut dyn FnMut(LocalTask<'_>)) {
        if let Some(task) = thread_scope::take_local(&self.line, owner) {
            take(task);
        }
    }

    fn share_local_tasks(&self) {
        let mut tasks = self.line.take_all();
        tasks.iter_mut().for_each(Task::share);
        self.line.put_back(tasks, VecDeque::new());
    }

    fn run_here(&self, work: &mut dyn FnMut()) {
        thread_scope::run_here(&self.line, work);
    }

    fn add_tasks(&self, tasks: &mut dyn Iterator<Item = Task>) {
        self.line.push_all(tasks);
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        if !allow_queuing {
            return Err(task);
        }
        let line = self.line.clone();
        self.line.push(Task::new(move || {
            // It may wait for what this thread has added.
            thread_scope::publish(&line);
            task.run();
        }));
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
        if values.iter().all(AnyAsyncValue::is_settled) {
            return Ok(true);
        }
        thread_scope::publish(&self.line);
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
        let line = &self.line;
        if thread_scope::is_running(line) {
            thread_scope::publish(line);
            line.run_all();
            return Ok(());
        }
        thread_scope::publish(line);
        // Ordering: pairs with the read-modify-write in `run`.
        line.n_quiescing.fetch_add(1, Ordering::AcqRel);
        loop {
            line.run_all();
            let waiting = line.lock();
            if !waiting.tasks.is_empty() {
                continue;
            }
            // Other threads may be running tasks; they notify, under the lock, as they finish.
            if line.counters.in_flight() == 0 {
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
        thread_scope::is_running(&self.line)
    }

    fn activity(&self) -> Activity {
        let counters = &self.line.counters;
        Activity {
            in_flight: usize::try_from(counters.in_flight()).unwrap_or(usize::MAX),
            epoch: counters.epoch(),
        }
    }

    fn stats(&self) -> QueueStats {
        QueueStats {
            executed: self.line.counters.started(),
            // Ordering: a statistic.
            panicked: self.line.n_panicked.load(Ordering::Relaxed),
            ..QueueStats::default()
        }
    }
}

impl Drop for SingleThreadedWorkQueue {
    /// Drops the tasks that have not run.
    fn drop(&mut self) {
        for task in self.line.take_all() {
            drop_caught(task);
            self.line.counters.shared().finish();
        }
    }
}
