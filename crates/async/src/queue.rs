//! The contract of work queues, and the queues that keep it.
//!
//! A [`ConcurrentWorkQueue`] takes [`Task`]s. *Compute* tasks use a processor and never wait;
//! *blocking* tasks may sleep, read files or wait for a lock, and have threads of their own. A
//! queue never decides what depends on what: that is done by values and their continuations.
//!
//! | Queue | Compute tasks run | Order |
//! |---|---|---|
//! | [`SingleThreadedWorkQueue`] | on the thread that awaits or quiesces | first in, first out |
//! | [`MultiThreadedWorkQueue`] | on workers of its own | own work last in first out, stolen work first in first out |
//!
//! # What every queue promises
//!
//! * Each accepted task is run once or dropped once, never both and never neither.
//! * A task that panics is counted and fails nobody else.
//! * [`Activity::in_flight`] counts a task from before anybody can see it until after it was
//!   dropped. So a reading of zero means that nothing was queued or running.
//! * Waiting is refused where it could only deadlock: see [`AwaitError`].
//!
//! [`conformance`] holds these promises as tests that any implementation can run.

// The models leave out the threads, and with them users of what they model.
#![cfg_attr(loom, allow(dead_code))]

use std::error;
use std::fmt;
use std::time::Instant;

use crate::any::AnyAsyncValue;

pub mod cores;
#[allow(unsafe_code)]
mod deque;
mod injector;
mod quiescence;
mod roster;
mod sleep;
#[allow(unsafe_code)]
mod task;
mod task_counters;
mod unwind;

#[cfg(not(loom))]
mod blocking;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
pub mod conformance;
#[cfg(not(loom))]
mod latch;
#[cfg(not(loom))]
mod parallel;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod search;
#[cfg(not(loom))]
mod share;
#[cfg(not(loom))]
mod single;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod thread_scope;
#[cfg(not(loom))]
mod timer;
#[cfg(not(loom))]
mod worker;

#[cfg(all(test, not(loom)))]
#[allow(unsafe_code)]
mod local_tests;
#[cfg(all(test, not(loom)))]
mod minimal_tests;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(loom, test))]
#[allow(unsafe_code)]
mod loom;

pub use self::cores::available_parallelism;
pub use self::task::{LocalBlock, LocalTask, LocalWork, Task, TaskFamily};

#[cfg(not(loom))]
pub use self::{
    clock::{Clock, ManualClock, Timers},
    parallel::{
        BlockSize, Stop, TileResult, block_size, parallel_for, parallel_reduce, reduce_tree,
    },
    pool::{MultiThreadedWorkQueue, PoolOptions, Spawner},
    share::share,
    single::SingleThreadedWorkQueue,
    timer::{TimerHandle, TimerQueue},
};

/// A work queue: it runs tasks, and lets threads that it does not own wait for values.
///
/// See the [module documentation](self) for what an implementation promises, and
/// [`conformance::suite`] for the tests that check it.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tfrt_async::queue::{ConcurrentWorkQueue, SingleThreadedWorkQueue, Task};
///
/// let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(SingleThreadedWorkQueue::new());
/// queue.add_task(Task::new(|| println!("runs while somebody waits")));
/// queue.quiesce().unwrap();
/// assert_eq!(queue.activity().in_flight, 0);
/// ```
pub trait ConcurrentWorkQueue: Send + Sync + 'static {
    /// Returns the name that is shown to people.
    fn name(&self) -> String;

    /// Adds a compute task. Never blocks, and may be called from any thread.
    ///
    /// A queue that was shut down drops the task.
    fn add_task(&self, task: Task);

    /// Adds compute tasks in the order given, all at once: cheaper than one after the other, since a
    /// queue publishes them together and decides once whether to wake somebody.
    fn add_tasks(&self, tasks: &mut dyn Iterator<Item = Task>) {
        for task in tasks {
            self.add_task(task);
        }
    }

    /// Adds a compute task that is confined to the calling thread. A queue that does not know when its
    /// tasks change threads shares it at once.
    ///
    /// It can't be kept as it is:
    ///
    /// ```compile_fail,E0521
    /// # use std::cell::RefCell;
    /// use tfrt_async::queue::LocalTask;
    ///
    /// thread_local!(static KEPT: RefCell<Vec<LocalTask<'static>>> = RefCell::default());
    ///
    /// fn add_local_task(task: LocalTask<'_>) {
    ///     KEPT.with_borrow_mut(|kept| kept.push(task));
    /// }
    /// ```
    fn add_local_task(&self, task: LocalTask<'_>) {
        self.add_task(task.into_shared());
    }

    /// Takes the next task, if it is a local one of this owner and the queue would run it now, when the
    /// task that calls this had ended. That task goes on as this one, then.
    #[expect(unused_variables, reason = "the names say what they are")]
    fn take_local_task(&self, owner: *const (), take: &mut dyn FnMut(LocalTask<'_>)) {}

    /// Shares all local tasks that are not about to be run.
    fn share_local_tasks(&self) {}

    /// Calls `work` on this thread. Other threads may have to wait for what it adds until it has
    /// returned.
    fn run_here(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Adds a task that may wait.
    ///
    /// Without `allow_queuing` the task is accepted only if a thread takes it at once.
    ///
    /// # Errors
    ///
    /// Hands the task back if no thread takes it now and it may not, or can't, be queued.
    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task>;

    /// Waits until every value is settled.
    ///
    /// # Errors
    ///
    /// [`AwaitError::FromWorker`] on a thread of the queue, where waiting could deadlock.
    fn await_all(&self, values: &[AnyAsyncValue]) -> Result<(), AwaitError> {
        self.await_until(values, None).map(|_| ())
    }

    /// Waits until every value is settled or the deadline has passed; tells which.
    ///
    /// A wait that ends at its deadline leaves a small continuation with each value that is not
    /// settled. To wait again and again, wait for one value that [`when_all`](crate::when_all)
    /// gives.
    ///
    /// # Errors
    ///
    /// See [`await_all`](Self::await_all).
    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError>;

    /// Waits until no task is queued or running, those included that were added meanwhile.
    ///
    /// # Errors
    ///
    /// [`AwaitError::QuiesceFromWorker`] where the queue would have to wait for the caller's own
    /// task.
    fn quiesce(&self) -> Result<(), AwaitError>;

    /// Returns how many compute tasks can run at the same time.
    fn parallelism(&self) -> usize;

    /// Returns which of the queue's workers the calling thread is: a number below
    /// [`parallelism`](Self::parallelism), or `None` if it is none of them.
    ///
    /// A hint, by which a worker is given again what is in its caches.
    fn worker_index(&self) -> Option<usize> {
        None
    }

    /// Returns how many workers have nothing to do and are awake, looking for work. What is added
    /// now, one of them takes at once, for the price of a few cache lines.
    ///
    /// A hint, as old as it is when it is read: at most one relaxed load, so that it can be asked
    /// between tasks. A queue without workers has none.
    fn idle_workers(&self) -> usize {
        0
    }

    /// Returns how many workers sleep. Adding work wakes one, which costs its system call here and
    /// some ten microseconds until it runs: worth it for more work than that.
    ///
    /// A hint, as [`idle_workers`](Self::idle_workers).
    fn sleeping_workers(&self) -> usize {
        0
    }

    /// Returns whether the calling thread is running a compute task of this queue.
    fn is_worker_thread(&self) -> bool;

    /// Returns a snapshot of the queue's work, by which a stuck program is told from a busy one.
    fn activity(&self) -> Activity;

    /// Returns the queue's counters.
    fn stats(&self) -> QueueStats;
}

/// A snapshot of a queue's work, by which a stuck program is told from a busy one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Tasks queued or running, compute and blocking. Never too low: zero means that at some
    /// moment of the call there was none.
    pub in_flight: usize,
    /// Changes whenever a task starts or ends.
    pub epoch: u64,
}

/// The counters of a queue since it was made. Each number alone is exact once the queue is at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Tasks that ran, panicking ones included.
    pub executed: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Tasks that were dropped without running, since the queue was shut down.
    pub dropped: u64,
    /// Tasks that changed hands between workers.
    pub stolen: u64,
    /// Tasks that left a worker's full deque for the shared queue.
    pub overflowed: u64,
    /// Times that a worker went to sleep.
    pub parked: u64,
    /// Times that a sleeping worker was woken.
    pub woken: u64,
    /// Threads made for blocking tasks.
    pub blocking_threads: u64,
}

/// The reason why a thread was not let wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AwaitError {
    /// Waiting for values on a thread that must be free to resolve them.
    FromWorker,
    /// Waiting for the queue to be empty inside one of its tasks.
    QuiesceFromWorker,
}

impl fmt::Display for AwaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self {
            AwaitError::FromWorker => "Await",
            AwaitError::QuiesceFromWorker => "Quiesce",
        };
        write!(
            f,
            "{operation} should not be called by a work thread already managed by the queue."
        )
    }
}

impl error::Error for AwaitError {}
