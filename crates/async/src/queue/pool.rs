//! [`MultiThreadedWorkQueue`]: workers that steal from each other.
//!
//! ```text
//!   outside threads --> injector --+--> worker 0: deque <--+
//!                                  +--> worker 1: deque <--+ steal half
//!                                  +--> ...                +
//! ```
//!
//! A worker takes its own newest task, else some from the injector, else half of what another
//! worker has, oldest first. Now and then it takes the oldest task first, so that no task waits
//! forever behind newer ones. Finding nothing it searches for a moment, and then sleeps; the
//! protocol for that is in [`idle`](super::idle).
//!
//! # The end
//!
//! Shutting down closes the injector, lets the workers run what is queued, and joins them; then
//! the same for blocking threads. What is added after the beginning of that is dropped. A queue
//! whose last handle goes away on one of its own threads joins all the others, and that thread
//! leaves by itself when its task is done.
//!
//! # Invariants
//!
//! * A task is counted as added before it is put anywhere, and as finished after it was dropped.
//! * Only the thread of worker `i` uses lane `i` and the owner's end of deque `i`.

use std::cell::{Cell, OnceCell};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::blocking::{BlockingThreads, Bounds, Spawner as SpawnerFn, join_others};
use super::deque::{Owner, Steal, Thief, deque};
use super::idle::{Idle, MAX_WORKERS, lock};
use super::injector::Injector;
use super::latch::wait_settled;
use super::rest::Rest;
use super::tally::{Lane, Tally};
use super::unwind::{drop_caught, run_caught};
use super::{Activity, AwaitError, ConcurrentWorkQueue, QueueStats, Task};
use crate::any::AnyAsyncValue;
use crate::error::Error;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, spin_loop, thread};

pub use super::blocking::Spawner;

/// Tasks that a worker's deque holds before it overflows to the injector.
const DEQUE_CAPACITY: u32 = 256;
/// Most tasks that a worker takes from the injector at once.
const INJECTOR_BATCH: usize = 32;
/// Every so many tasks a worker takes the oldest one.
const FAIRNESS_INTERVAL: u32 = 61;
/// How long a worker searches before it sleeps: about twice what waking it would take.
const SEARCH_TIME: Duration = Duration::from_micros(25);
/// How long an idle blocking thread stays.
const BLOCKING_PATIENCE: Duration = Duration::from_secs(1);
/// Tasks that may wait for each blocking thread.
const BLOCKING_CAPACITY: usize = 1024;
/// Most threads for blocking tasks that may not be queued.
const DYNAMIC_THREADS: usize = 4096;

/// How a [`MultiThreadedWorkQueue`] is made.
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
    /// How long an idle blocking thread stays.
    pub blocking_patience: Duration,
    /// Makes the threads.
    pub spawner: SpawnerFn,
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
    core: Arc<Core>,
    blocking: BlockingThreads,
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
    n_workers: usize,
    n_blocking: usize,
}

/// What workers, blocking threads and handles share.
struct Core {
    idle: Idle,
    injector: Injector<Task>,
    thieves: Box<[Thief<Task>]>,
    tally: Tally,
    rest: Rest,
    counts: Counts,
}

/// Statistics of events that are rare.
#[derive(Default)]
struct Counts {
    panicked: AtomicU64,
    dropped: AtomicU64,
    stolen: AtomicU64,
    overflowed: AtomicU64,
    parked: AtomicU64,
    woken: AtomicU64,
}

fn count(counter: &AtomicU64, n: u64) {
    // Ordering: a statistic.
    counter.fetch_add(n, Ordering::Relaxed);
}

/// What only the thread of one worker may use.
struct Local {
    core: Arc<Core>,
    index: usize,
    deque: Owner<Task>,
    tick: Cell<u32>,
    random: Cell<u32>,
}

thread_local! {
    /// Set for good on the threads of workers.
    static LOCAL: OnceCell<Local> = const { OnceCell::new() };
    /// The core whose blocking task this thread is running.
    static BLOCKING_FOR: Cell<*const Core> = const { Cell::new(std::ptr::null()) };
}

impl MultiThreadedWorkQueue {
    /// Starts so many workers; blocking threads are made when needed, at most so many for tasks
    /// that may be queued.
    ///
    /// # Errors
    ///
    /// As [`with_options`](Self::with_options).
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
        let (owners, thieves): (Vec<_>, Vec<_>) =
            (0..options.threads).map(|_| deque(DEQUE_CAPACITY)).unzip();
        let core = Arc::new(Core {
            idle: Idle::new(options.threads),
            injector: Injector::new(),
            thieves: thieves.into(),
            tally: Tally::new(options.threads),
            rest: Rest::new(),
            counts: Counts::default(),
        });
        let workers = start_workers(&core, owners, &options.spawner)?;
        let bounds = Bounds {
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
        self.core.injector.close();
        self.core.idle.close();
        let workers = std::mem::take(&mut *lock(&self.workers));
        join_others(workers);
        self.blocking.shut_down();
        if !self.is_worker_thread() {
            // Workers leave only when nothing is queued, so this is empty unless one died.
            self.core.injector.drain().into_iter().for_each(|task| {
                self.core.discard(task);
                self.core.tally.shared().finish();
            });
        }
    }

    /// Calls `f` with the worker of this queue that the calling thread is, if it is one.
    fn with_local<R>(&self, f: impl FnOnce(Option<&Local>) -> R) -> R {
        let mut f = Some(f);
        let called = LOCAL.try_with(|local| {
            let local = local
                .get()
                .filter(|local| Arc::ptr_eq(&local.core, &self.core));
            f.take().map(|f| f(local))
        });
        match (called, f) {
            (Ok(Some(result)), _) => result,
            // The thread is ending, and its locals are gone.
            (_, Some(f)) => f(None),
            _ => unreachable!("`f` is called by exactly one of the branches"),
        }
    }

    /// Returns how many workers sleep.
    #[cfg(test)]
    pub(super) fn n_asleep(&self) -> u64 {
        self.core.idle.peek().sleepers()
    }

    /// Tells whether the calling thread runs a task of this queue, of either kind.
    fn is_inside_task(&self) -> bool {
        self.is_worker_thread() || BLOCKING_FOR.try_with(Cell::get) == Ok(Arc::as_ptr(&self.core))
    }
}

/// Makes the threads of the workers, as many as possible.
fn start_workers(
    core: &Arc<Core>,
    owners: Vec<Owner<Task>>,
    spawner: &SpawnerFn,
) -> Result<Vec<thread::JoinHandle<()>>, Error> {
    let mut workers = Vec::with_capacity(owners.len());
    for (index, deque) in owners.into_iter().enumerate() {
        let core = core.clone();
        let seed = u32::try_from(index).map_or(1, |index| index.wrapping_mul(0x9e37_79b9) | 1);
        let body = Box::new(move || {
            let (tick, random) = (Cell::new(0), Cell::new(seed));
            LOCAL.with(|local| {
                local
                    .get_or_init(|| Local {
                        core,
                        index,
                        deque,
                        tick,
                        random,
                    })
                    .work();
            });
        });
        match spawner(format!("tfrt-worker-{index}"), body) {
            Ok(handle) => workers.push(handle),
            Err(error) if workers.is_empty() => {
                return Err(Error::resource_exhausted(format!(
                    "no thread could be made for the work queue: {error}"
                )));
            }
            Err(_) => break,
        }
    }
    Ok(workers)
}

impl Core {
    /// Adds a task from a thread that is no worker of this queue.
    fn add_outside(&self, task: Task) {
        self.tally.shared().add(1);
        match self.injector.push(task) {
            Ok(()) => self.announce(),
            Err(task) => {
                self.discard(task);
                self.tally.shared().finish();
                self.notify_watchers();
            }
        }
    }

    #[inline]
    fn announce(&self) {
        if self.idle.announce() {
            count(&self.counts.woken, 1);
        }
    }

    /// Runs a task and counts it, its drop included.
    #[inline]
    fn run(&self, lane: &Lane, task: Task) {
        lane.start();
        if run_caught(task) {
            count(&self.counts.panicked, 1);
        }
        lane.finish();
    }

    /// Runs a blocking task on the calling thread.
    fn run_blocking(&self, task: Task) {
        BLOCKING_FOR.set(self);
        self.run(self.tally.shared(), task);
        BLOCKING_FOR.set(std::ptr::null());
        self.notify_watchers();
    }

    fn discard(&self, task: Task) {
        drop_caught(task);
        count(&self.counts.dropped, 1);
    }

    /// Wakes threads that wait for the queue to come to rest, after something was finished on a
    /// thread that is no worker.
    fn notify_watchers(&self) {
        if self.idle.read().is_watched() {
            self.rest.notify();
        }
    }

    /// Looks at every queue; ordered against whoever adds work.
    fn has_work(&self) -> bool {
        self.injector.has_tasks() || self.thieves.iter().any(Thief::has_items)
    }
}

impl Local {
    /// The life of a worker.
    fn work(&self) {
        let mut searching = false;
        loop {
            let task = self.next().or_else(|| {
                searching = searching || self.core.idle.begin_search();
                if searching { self.search() } else { None }
            });
            if let Some(task) = task {
                if std::mem::take(&mut searching) {
                    self.end_search();
                }
                self.core.run(self.lane(), task);
                continue;
            }
            if !self.sleep(searching) {
                return;
            }
            searching = true;
        }
    }

    fn lane(&self) -> &Lane {
        self.core.tally.worker(self.index)
    }

    fn end_search(&self) {
        if self.core.idle.end_search(|| self.core.has_work()) {
            count(&self.core.counts.woken, 1);
        }
    }

    /// Takes a task without looking at other workers.
    fn next(&self) -> Option<Task> {
        let tick = self.tick.get().wrapping_add(1);
        self.tick.set(tick);
        if tick % FAIRNESS_INTERVAL == 0 {
            let oldest = self.take_injected().or_else(|| self.deque.pop_oldest());
            if oldest.is_some() {
                return oldest;
            }
        }
        self.deque.pop().or_else(|| self.take_injected())
    }

    /// Takes the oldest task of the injector, and some more into the own deque.
    fn take_injected(&self) -> Option<Task> {
        if !self.core.injector.may_have_tasks() {
            return None;
        }
        let room = usize::try_from(self.deque.room()).map_or(0, |room| room.min(INJECTOR_BATCH));
        let mut more = Vec::new();
        let task = self
            .core
            .injector
            .take(self.core.thieves.len(), room, &mut more);
        // The oldest is pushed last, so that it is popped first.
        for task in more.into_iter().rev() {
            let pushed = self.deque.push(task);
            assert!(pushed.is_ok(), "no more was taken than there was room");
        }
        task
    }

    /// Looks for work for a moment.
    fn search(&self) -> Option<Task> {
        let begin = Instant::now();
        loop {
            if let Some(task) = self.steal().or_else(|| self.take_injected()) {
                return Some(task);
            }
            if self.core.idle.peek().is_closed() || begin.elapsed() > SEARCH_TIME {
                return None;
            }
            (0..16).for_each(|_| spin_loop());
        }
    }

    /// Tries each of the other workers once, starting anywhere.
    fn steal(&self) -> Option<Task> {
        let thieves = &self.core.thieves;
        let start = self.random(thieves.len());
        for victim in thieves[start..].iter().chain(&thieves[..start]) {
            if !victim.may_have_items() {
                continue;
            }
            if let Steal::Taken { item, moved } = victim.steal(&self.deque) {
                count(&self.core.counts.stolen, u64::from(moved) + 1);
                return Some(item);
            }
        }
        None
    }

    /// A number below `bound` that is not the same all the time.
    fn random(&self, bound: usize) -> usize {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random.set(x);
        usize::try_from(x).map_or(0, |x| x % bound)
    }

    /// Sleeps until there may be work; `false` means that the worker must end.
    fn sleep(&self, searching: bool) -> bool {
        let core = &*self.core;
        let mut ended = false;
        let slept = core.idle.sleep_unless(self.index, searching, |word| {
            if word.is_watched() {
                core.rest.notify();
            }
            let has_work = core.has_work();
            ended = word.is_closed() && !has_work;
            has_work || ended
        });
        if slept {
            count(&core.counts.parked, 1);
        }
        if ended {
            self.end_search();
        }
        !ended
    }

    /// Adds a task of a task that runs here.
    #[inline]
    fn add(&self, task: Task) {
        if self.core.idle.peek().is_closed() {
            self.core.discard(task);
            return;
        }
        self.lane().add(1);
        self.push(task);
        self.core.announce();
    }

    #[inline]
    fn push(&self, task: Task) {
        if let Err(task) = self.deque.push(task) {
            self.overflow(task);
        }
    }

    /// Makes room for a task by moving the older half to the injector.
    #[cold]
    fn overflow(&self, task: Task) {
        let mut older = VecDeque::new();
        self.deque.shed(|task| older.push_back(task));
        // A thief at work makes shedding impossible: then the new task itself goes.
        older.extend(self.deque.push(task).err());
        count(
            &self.core.counts.overflowed,
            u64::try_from(older.len()).unwrap_or(u64::MAX),
        );
        self.core.injector.overflow(older);
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
        self.with_local(|local| match local {
            Some(local) => local.add(task),
            None => self.core.add_outside(task),
        });
    }

    fn add_tasks(&self, tasks: &mut dyn Iterator<Item = Task>) {
        for task in tasks {
            self.add_task(task);
        }
    }

    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        self.core.tally.shared().add(1);
        self.blocking.add(task, allow_queuing).inspect_err(|_| {
            self.core.tally.shared().finish();
            self.core.notify_watchers();
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
        self.core.rest.wait(&self.core.idle, &self.core.tally);
        Ok(())
    }

    fn parallelism(&self) -> usize {
        self.n_workers
    }

    fn is_worker_thread(&self) -> bool {
        self.with_local(|local| local.is_some())
    }

    fn activity(&self) -> Activity {
        let tally = &self.core.tally;
        Activity {
            in_flight: usize::try_from(tally.in_flight()).unwrap_or(usize::MAX),
            epoch: tally.epoch(),
        }
    }

    fn stats(&self) -> QueueStats {
        let counts = &self.core.counts;
        // Ordering: statistics.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueStats {
            executed: self.core.tally.started(),
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
