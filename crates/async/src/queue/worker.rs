//! The workers of a [`MultiThreadedWorkQueue`](super::MultiThreadedWorkQueue): what they share, and
//! how one of them lives.
//!
//! A worker takes its own newest task, else some from the injector, else half of what another
//! worker has, oldest first. Now and then it takes a task from outside, or its oldest one, first,
//! so that no task waits forever behind newer ones. Finding nothing it searches for a moment, for
//! longer while other tasks run (see [`search`](super::search)), and then sleeps; the protocol for
//! that is in [`sleep`](super::sleep).
//!
//! # Invariants
//!
//! * A task is counted as added before it is put anywhere, and as finished after it was dropped.
//! * Only the thread of worker `i` writes counters `i` and the owner's end of deque `i`.

use std::cell::{Cell, OnceCell};
use std::collections::VecDeque;
use std::ptr;
use std::time::{Duration, Instant};

use super::blocking::Spawner;
use super::deque::{Owner, Steal, Thief, deque};
use super::injector::Injector;
use super::quiescence::Quiescence;
use super::search::{Next, Search};
use super::sleep::SleepProtocol;
use super::task::Task;
use super::task_counters::{TaskCounters, WorkerCounters};
use super::unwind::{drop_caught, run_caught};
use crate::error::Error;
use crate::memory;
use crate::record::{Recorder, Track};
use crate::sync::{Arc, AtomicU64, Ordering, spin_loop, thread, thread_cell};

/// The number of tasks that a worker's deque holds before it overflows to the injector.
const DEQUE_CAPACITY: u32 = 256;
/// The most tasks that a worker takes from the injector at once.
const INJECTOR_BATCH: usize = 32;
/// The number of tasks after which a worker looks for one from outside first.
const OUTSIDE_INTERVAL: u32 = 64;
/// The number of tasks after which a worker takes the oldest of its own; a multiple of
/// [`OUTSIDE_INTERVAL`]. Rarely, since the oldest task of a tree brings many others, and they cost
/// more memory than the newest one's.
const OLDEST_INTERVAL: u32 = 64 * 64;

/// The shared state of a pool, held by workers, blocking threads and handles.
pub(super) struct PoolState {
    idle: SleepProtocol,
    injector: Injector<Task>,
    thieves: Box<[Thief<Task>]>,
    pub(super) counters: TaskCounters,
    quiescence: Quiescence,
    pub(super) counts: PoolStats,
    recorder: Option<Arc<Recorder>>,
}

/// Statistics of events that are rare.
#[derive(Default)]
pub(super) struct PoolStats {
    pub(super) panicked: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) stolen: AtomicU64,
    pub(super) overflowed: AtomicU64,
    pub(super) parked: AtomicU64,
    pub(super) woken: AtomicU64,
}

fn count(counter: &AtomicU64, n: u64) {
    // Ordering: a statistic.
    counter.fetch_add(n, Ordering::Relaxed);
}

fn count_of(tasks: &[Task]) -> u64 {
    u64::try_from(tasks.len()).unwrap_or(u64::MAX)
}

/// The state of one worker, which only its thread may use.
struct WorkerState {
    core: Arc<PoolState>,
    index: usize,
    deque: Owner<Task>,
    tick: Cell<u32>,
    random: Cell<u32>,
    /// The number of searches that are to be short, since another process wants the processor.
    short_searches: Cell<u32>,
    track: Option<Track>,
}

thread_cell! {
    /// The core whose worker this thread is, while it works.
    static WORKER_OF: Cell<*const PoolState> = Cell::new(std::ptr::null());
}
thread_cell! {
    /// The state of the worker that this thread is; set while `WORKER_OF` is.
    static LOCAL: OnceCell<WorkerState> = OnceCell::new();
}
thread_cell! {
    /// The core whose blocking task this thread is running.
    static BLOCKING_FOR: Cell<*const PoolState> = Cell::new(std::ptr::null());
}

/// Returns whether the calling thread is a worker of `core`.
#[inline]
pub(super) fn is_thread_of(core: &PoolState) -> bool {
    ptr::eq(WORKER_OF.with(Cell::get), core)
}

/// Returns the number of the worker of `core` that the calling thread is.
pub(super) fn index_in(core: &PoolState) -> Option<usize> {
    is_thread_of(core)
        .then(|| LOCAL.with(|local| local.get().map(|local| local.index)))
        .flatten()
}

/// Returns whether the calling thread runs a blocking task for `core`.
pub(super) fn is_blocking_for(core: &PoolState) -> bool {
    ptr::eq(BLOCKING_FOR.with(Cell::get), core)
}

/// Starts workers, as many of `n_workers` as the system allows.
///
/// # Errors
///
/// `ResourceExhausted` if it allows none.
pub(super) fn start(
    n_workers: usize,
    spawner: &Spawner,
    recorder: Option<Arc<Recorder>>,
) -> Result<(Arc<PoolState>, Vec<thread::JoinHandle<()>>), Error> {
    let (owners, thieves): (Vec<_>, Vec<_>) = (0..n_workers).map(|_| deque(DEQUE_CAPACITY)).unzip();
    let core = Arc::new(PoolState {
        idle: SleepProtocol::new(n_workers),
        injector: Injector::new(),
        thieves: thieves.into(),
        counters: TaskCounters::new(n_workers),
        quiescence: Quiescence::new(),
        counts: PoolStats::default(),
        recorder,
    });
    let mut workers = Vec::with_capacity(owners.len());
    for (index, deque) in owners.into_iter().enumerate() {
        let core = core.clone();
        let seed = u32::try_from(index).map_or(1, |index| index.wrapping_mul(0x9e37_79b9) | 1);
        let body = Box::new(move || {
            #[cfg(debug_assertions)]
            crate::accounting::register_thread();
            let (tick, random) = (Cell::new(0), Cell::new(seed));
            WORKER_OF.with(|own| own.set(Arc::as_ptr(&core)));
            LOCAL.with(|local| {
                local
                    .get_or_init(|| WorkerState {
                        track: core.recorder.as_ref().map(|to| to.worker_track()),
                        core,
                        index,
                        deque,
                        tick,
                        random,
                        short_searches: Cell::new(0),
                    })
                    .work();
            });
            // What is dropped later must not find a deque that nobody empties any more.
            WORKER_OF.with(|own| own.set(std::ptr::null()));
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
    Ok((core, workers))
}

impl PoolState {
    /// Adds a compute task, from any thread.
    #[inline]
    pub(super) fn add(&self, task: Task) {
        if is_thread_of(self) {
            LOCAL.with(|local| local.get().expect("a worker's thread has it").add(task));
            return;
        }
        self.add_outside(task);
    }

    /// Adds compute tasks, from any thread: all become visible at once, and one worker is woken at
    /// most, which wakes the next one if there is more than it can do.
    pub(super) fn add_all(&self, tasks: Vec<Task>) {
        if is_thread_of(self) {
            LOCAL.with(|local| {
                local
                    .get()
                    .expect("a worker's thread has it")
                    .add_all(tasks)
            });
            return;
        }
        self.counters.shared().add(count_of(&tasks));
        match self.injector.push_all(tasks) {
            Ok(()) => self.announce(),
            Err(tasks) => {
                for task in tasks {
                    self.discard(task);
                    self.count_gone();
                }
            }
        }
    }

    /// Adds a task from a thread that is no worker of this queue.
    fn add_outside(&self, task: Task) {
        self.counters.shared().add(1);
        match self.injector.push(task) {
            Ok(()) => self.announce(),
            Err(task) => {
                self.discard(task);
                self.count_gone();
            }
        }
    }

    #[inline]
    fn announce(&self) {
        if self.idle.announce() {
            self.woke();
        }
    }

    /// Counts a worker as woken.
    fn woke(&self) {
        count(&self.counts.woken, 1);
    }

    /// Runs a task, calls `ended` before the task counts as finished, and counts it, its drop
    /// included.
    #[inline]
    fn run(&self, counters: &WorkerCounters, task: Task, ended: impl FnOnce()) {
        counters.start();
        if run_caught(task) {
            count(&self.counts.panicked, 1);
        }
        ended();
        counters.finish();
    }

    /// Runs a blocking task on the calling thread.
    pub(super) fn run_blocking(&self, task: Task) {
        BLOCKING_FOR.with(|own| own.set(self));
        let track = self.recorder.as_ref().map(|to| to.track());
        track.iter().for_each(Track::mark);
        let begin = track.as_ref().map(Track::last).unwrap_or_default();
        let ended = || track.iter().for_each(|track| track.task(begin));
        self.run(self.counters.blocking(), task, ended);
        BLOCKING_FOR.with(|own| own.set(std::ptr::null()));
        self.notify_watchers();
    }

    /// Counts a blocking task that is about to be offered to threads outside of the workers.
    pub(super) fn count_blocking_added(&self) {
        self.counters.blocking().add(1);
    }

    /// Counts a blocking task as gone that no thread took.
    pub(super) fn count_blocking_refused(&self) {
        self.counters.blocking().finish();
        self.notify_watchers();
    }

    /// Counts a compute task as gone that was added from outside and did not run.
    fn count_gone(&self) {
        self.counters.shared().finish();
        self.notify_watchers();
    }

    /// Takes no more tasks, and lets the workers leave when they have run what there is.
    pub(super) fn close(&self) {
        self.injector.close();
        self.idle.close();
    }

    /// Drops what the injector holds.
    pub(super) fn drop_tasks(&self) {
        for task in self.injector.drain() {
            self.discard(task);
            self.count_gone();
        }
    }

    /// Blocks until nothing is in flight.
    pub(super) fn wait_for_rest(&self) {
        self.quiescence.wait(&self.idle, &self.counters);
    }

    /// Returns how many workers look for work, and how many sleep.
    #[inline]
    pub(super) fn n_idle(&self) -> (usize, usize) {
        let word = self.idle.peek();
        let count = |n| usize::try_from(n).unwrap_or(usize::MAX);
        (count(word.searchers()), count(word.sleepers()))
    }

    fn discard(&self, task: Task) {
        drop_caught(task);
        count(&self.counts.dropped, 1);
    }

    /// Wakes threads that wait for the queue to come to rest, after something was finished on a
    /// thread that is no worker.
    fn notify_watchers(&self) {
        if self.idle.read().is_watched() {
            self.quiescence.notify();
        }
    }

    /// Looks at every queue; ordered against whoever adds work.
    fn has_work(&self) -> bool {
        self.injector.has_tasks() || self.thieves.iter().any(Thief::has_items)
    }
}

impl WorkerState {
    /// Runs tasks on a worker's thread until the queue is closed and empty.
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
                    self.record(Track::mark);
                }
                let begin = self.track.as_ref().map(Track::last);
                let ended = || self.record(|track| track.task(begin.unwrap_or_default()));
                self.core.run(self.counters(), task, ended);
                continue;
            }
            if !self.sleep(searching) {
                return;
            }
            searching = true;
        }
    }

    /// Records an event, if the queue has a recorder.
    #[inline]
    fn record(&self, event: impl FnOnce(&Track)) {
        if let Some(track) = &self.track {
            event(track);
        }
    }

    fn counters(&self) -> &WorkerCounters {
        self.core.counters.worker(self.index)
    }

    fn end_search(&self) {
        if self.core.idle.end_search(|| self.core.has_work()) {
            self.core.woke();
        }
    }

    /// Takes a task without looking at other workers.
    fn next(&self) -> Option<Task> {
        let tick = self.tick.get().wrapping_add(1);
        self.tick.set(tick);
        if tick.is_multiple_of(OUTSIDE_INTERVAL) {
            let own = || {
                if tick.is_multiple_of(OLDEST_INTERVAL) {
                    self.deque.pop_oldest()
                } else {
                    None
                }
            };
            if let Some(task) = self.take_injected().or_else(own) {
                return Some(task);
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
        if self.core.idle.peek().is_watched() {
            // Going to sleep tells those who wait for the queue to come to rest, but later.
            self.core.quiescence.notify();
        }
        let begin = Instant::now();
        let mut search = Search::new(self.short_searches.get());
        let in_flight = || self.core.counters.compute_in_flight() > 0;
        let task = loop {
            let task = self.steal().or_else(|| self.take_injected());
            if task.is_some() || self.core.idle.peek().is_closed() {
                break task;
            }
            // A schedule must not depend on time, of which shuttle knows nothing; and one that goes by
            // priorities must let those work who are in the middle of something.
            let searched = match cfg!(shuttle) {
                true => {
                    thread::yield_now();
                    Duration::MAX
                }
                false => begin.elapsed(),
            };
            match search.next(searched, in_flight) {
                Next::Again => (0..16).for_each(|_| spin_loop()),
                Next::Yield => {
                    (0..16).for_each(|_| spin_loop());
                    let before = Instant::now();
                    thread::yield_now();
                    search.yielded(before.elapsed());
                }
                Next::Sleep => break None,
            }
        };
        self.short_searches.set(search.short_searches_left());
        task
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
                self.record(|track| track.steal(moved.saturating_add(1)));
                return Some(item);
            }
        }
        None
    }

    /// Returns a number below `bound` that is not the same all the time.
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
        memory::collect();
        self.record(Track::mark);
        let slept = core.idle.sleep_unless(self.index, searching, |word| {
            if word.is_watched() {
                core.quiescence.notify();
            }
            let has_work = core.has_work();
            ended = word.is_closed() && !has_work;
            has_work || ended
        });
        if slept {
            count(&core.counts.parked, 1);
            self.record(Track::park);
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
        self.counters().add(1);
        self.push(task);
        self.core.announce();
    }

    /// Adds tasks of a task that runs here.
    fn add_all(&self, tasks: Vec<Task>) {
        if self.core.idle.peek().is_closed() {
            tasks.into_iter().for_each(|task| self.core.discard(task));
            return;
        }
        self.counters().add(count_of(&tasks));
        let mut tasks = tasks.into_iter();
        self.deque.push_all(&mut tasks);
        if tasks.len() > 0 {
            count(
                &self.core.counts.overflowed,
                u64::try_from(tasks.len()).unwrap_or(u64::MAX),
            );
            self.core.injector.overflow(tasks);
        }
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
