//! [`MultiThreadedWorkQueue`]: workers that steal from each other.
//!
//! ```text
//!   outside threads --> injector --+--> worker 0: deque <--+
//!                                  +--> worker 1: deque <--+ steal half
//!                                  +--> ...                +
//! ```
//!
//! How a worker lives is told in `queue/worker.rs`.
//!
//! # The end
//!
//! Shutting down closes the injector, lets the workers run what is queued, and joins them; then
//! the same for blocking threads. What is added after the beginning of that is dropped. A queue
//! whose last handle goes away on one of its own threads joins all the others, and that thread
//! leaves by itself when its task is done.

use std::time::{Duration, Instant};

use super::blocking::{BlockingLimits, BlockingThreads, join_others};
use super::latch::wait_settled;
use super::sleep::{MAX_WORKERS, lock};
use super::worker::{self, PoolState};
use super::{Activity, AwaitError, ConcurrentWorkQueue, QueueStats, Task};
use crate::any::AnyAsyncValue;
use crate::error::Error;
use crate::record::Recorder;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, thread};

pub use super::blocking::Spawner;

/// The time after which an idle blocking thread ends.
const BLOCKING_PATIENCE: Duration = Duration::from_secs(1);
/// The number of blocking tasks that may wait for each blocking thread.
const BLOCKING_CAPACITY: usize = 1024;
/// The most threads for blocking tasks that may not be queued.
const DYNAMIC_THREADS: usize = 4096;

/// The options of a [`MultiThreadedWorkQueue`].
///
/// # Examples
///
/// ```
/// use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, PoolOptions};
///
/// let options = PoolOptions { dynamic_threads: 2, ..PoolOptions::new(2, 1) };
/// let queue = MultiThreadedWorkQueue::with_options(options).unwrap();
/// assert_eq!(queue.parallelism(), 2);
/// ```
#[derive(Clone)]
pub struct PoolOptions {
    /// Workers for compute tasks.
    pub threads: usize,
    /// Threads, at most, for blocking tasks that may be queued.
    pub blocking_threads: usize,
    /// Blocking tasks that may wait, for each blocking thread.
    pub blocking_capacity: usize,
    /// Threads, at most, for blocking tasks that may not be queued.
    pub dynamic_threads: usize,
    /// The time after which an idle blocking thread ends.
    pub blocking_patience: Duration,
    /// Makes the threads.
    pub spawner: Spawner,
    /// Keeps the tasks, steals and sleeps of workers.
    pub recorder: Option<Arc<Recorder>>,
}

impl PoolOptions {
    /// Returns the defaults for so many workers and blocking threads.
    pub fn new(threads: usize, blocking_threads: usize) -> PoolOptions {
        PoolOptions {
            threads,
            blocking_threads,
            blocking_capacity: BLOCKING_CAPACITY,
            dynamic_threads: DYNAMIC_THREADS,
            blocking_patience: BLOCKING_PATIENCE,
            spawner: Arc::new(|name, body| thread::Builder::new().name(name).spawn(body)),
            recorder: None,
        }
    }
}

/// A queue with worker threads that steal from each other, and threads for blocking tasks.
///
/// Dropping it runs what is queued and joins the threads; tasks added from then on are dropped.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, Task};
///
/// let queue = MultiThreadedWorkQueue::new(2, 1).unwrap();
/// let (sender, receiver) = channel();
/// for number in 0..10 {
///     let sender = sender.clone();
///     queue.add_task(Task::new(move || sender.send(number).unwrap()));
/// }
/// queue.quiesce().unwrap();
/// assert_eq!(receiver.try_iter().sum::<i32>(), 45);
/// ```
pub struct MultiThreadedWorkQueue {
    core: Arc<PoolState>,
    blocking: BlockingThreads,
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
    n_workers: usize,
    n_blocking: usize,
}

impl MultiThreadedWorkQueue {
    /// Starts so many workers; blocking threads are made when needed, at most so many for tasks
    /// that may be queued.
    ///
    /// # Errors
    ///
    /// See [`with_options`](Self::with_options).
    pub fn new(threads: usize, blocking_threads: usize) -> Result<MultiThreadedWorkQueue, Error> {
        MultiThreadedWorkQueue::with_options(PoolOptions::new(threads, blocking_threads))
    }

    /// Starts the workers. If the system refuses some of the threads, the queue works with those
    /// that it has got.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no worker or too many are asked for, `ResourceExhausted` if not one
    /// thread could be made.
    pub fn with_options(options: PoolOptions) -> Result<MultiThreadedWorkQueue, Error> {
        if options.threads == 0 || options.threads > MAX_WORKERS {
            let asked = options.threads;
            return Err(Error::invalid_argument(format!(
                "a work queue has between 1 and {MAX_WORKERS} threads, not {asked}"
            )));
        }
        let (core, workers) = worker::start(options.threads, &options.spawner, options.recorder)?;
        let bounds = BlockingLimits {
            queued_threads: options.blocking_threads,
            queued_tasks: options
                .blocking_capacity
                .saturating_mul(options.blocking_threads),
            direct_threads: options.dynamic_threads,
            patience: options.blocking_patience,
        };
        let run = {
            let core = core.clone();
            Arc::new(move |task| core.run_blocking(task))
        };
        Ok(MultiThreadedWorkQueue {
            blocking: BlockingThreads::new(bounds, options.spawner, run),
            n_workers: workers.len(),
            n_blocking: options.blocking_threads,
            workers: Mutex::new(workers),
            core,
        })
    }

    /// Closes the queue: runs what is queued, joins the threads other than the calling one, and
    /// from its beginning drops or hands back what is added. Dropping the queue does the same.
    pub fn shut_down(&self) {
        self.core.close();
        let workers = std::mem::take(&mut *lock(&self.workers));
        let all_joined = !workers.is_empty() && !self.is_worker_thread();
        join_others(workers);
        self.blocking.shut_down();
        if all_joined {
            // Workers leave only when nothing is queued, so there is nothing unless one died.
            self.core.drop_tasks();
        }
    }

    /// Returns whether the calling thread runs a task of this queue, of either kind.
    fn is_inside_task(&self) -> bool {
        worker::is_thread_of(&self.core) || worker::is_blocking_for(&self.core)
    }
}

impl ConcurrentWorkQueue for MultiThreadedWorkQueue {
    fn name(&self) -> String {
        format!(
            "Multi-threaded work queue ({} threads, {} blocking threads)",
            self.n_workers, self.n_blocking
        )
    }

    #[inline]
    fn add_task(&self, task: Task) {
        self.core.add(task);
    }

    fn add_tasks(&self, tasks: &mut dyn Iterator<Item = Task>) {
        let tasks: Vec<Task> = tasks.collect();
        if !tasks.is_empty() {
            self.core.add_all(tasks);
        }
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        self.core.count_blocking_added();
        self.blocking.add(task, allow_queuing).inspect_err(|_| {
            self.core.count_blocking_refused();
        })
    }

    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError> {
        if self.is_worker_thread() {
            return Err(AwaitError::FromWorker);
        }
        Ok(wait_settled(values, deadline))
    }

    fn quiesce(&self) -> Result<(), AwaitError> {
        if self.is_inside_task() {
            return Err(AwaitError::QuiesceFromWorker);
        }
        self.core.wait_for_rest();
        Ok(())
    }

    fn parallelism(&self) -> usize {
        self.n_workers
    }

    fn worker_index(&self) -> Option<usize> {
        worker::index_in(&self.core)
    }

    fn idle_workers(&self) -> usize {
        self.core.n_idle().0
    }

    fn sleeping_workers(&self) -> usize {
        self.core.n_idle().1
    }

    fn is_worker_thread(&self) -> bool {
        worker::is_thread_of(&self.core)
    }

    fn activity(&self) -> Activity {
        let counters = &self.core.counters;
        Activity {
            in_flight: usize::try_from(counters.in_flight()).unwrap_or(usize::MAX),
            epoch: counters.epoch(),
        }
    }

    fn stats(&self) -> QueueStats {
        let counts = &self.core.counts;
        // Ordering: statistics.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueStats {
            executed: self.core.counters.started(),
            panicked: read(&counts.panicked),
            dropped: read(&counts.dropped),
            stolen: read(&counts.stolen),
            overflowed: read(&counts.overflowed),
            parked: read(&counts.parked),
            woken: read(&counts.woken),
            blocking_threads: u64::try_from(self.blocking.n_made()).unwrap_or(u64::MAX),
        }
    }
}

impl Drop for MultiThreadedWorkQueue {
    fn drop(&mut self) {
        self.shut_down();
    }
}
