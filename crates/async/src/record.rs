//! Recordings of what ran when, on which thread: rings of fixed-size records, cheap enough to be
//! kept in production.
//!
//! Each thread that takes part has a [`Track`]: a ring that it alone writes, without a lock, an
//! allocation or a read-modify-write. When a ring is full the oldest records give way. Whoever
//! wants to know reads all rings at once, while the threads go on: [`Recorder::recording`].
//!
//! # One reading of the clock an event
//!
//! Events on a thread follow each other, so each begins where the one before it ended, and only
//! ends are read from the clock. Who has done something else in between says so first
//! ([`Track::mark`]). The time that a kernel takes therefore includes what it costs to find it and
//! to hand on its results.
//!
//! # Names
//!
//! A record holds numbers only. Programs reserve numbers for their functions when they are loaded
//! ([`Recorder::functions`]), and know their names when the records are read.

// The model reads and writes a ring alone.
#![cfg_attr(loom, allow(dead_code))]

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::fence;

use crate::sync::statistic::{AtomicU64, Mutex, MutexGuard, Ordering};

mod gauge;
#[cfg(all(test, loom))]
mod loom;
mod ring;
#[allow(unsafe_code)]
mod ticks;

use ring::{Ring, Words};
use ticks::Clock;

pub use gauge::{Gauge, GaugeRecording, GaugeStep};

/// The number of a function among those of all programs that one recorder knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u32);

impl FunctionId {
    /// Returns the function that stands `index` behind this one in its program.
    #[must_use]
    pub fn offset(self, index: u32) -> FunctionId {
        FunctionId(self.0.saturating_add(index).min(MAX_FUNCTION))
    }

    /// Returns how far this function stands behind `first`, if it does; `None` for one that got no
    /// number.
    pub fn index_from(self, first: FunctionId) -> Option<u32> {
        match self.0 {
            MAX_FUNCTION => None,
            number => number.checked_sub(first.0),
        }
    }
}

/// Functions with greater numbers are recorded under this one, which none has.
const MAX_FUNCTION: u32 = (1 << 24) - 1;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A kernel was run.
    Kernel {
        /// The function that the kernel stands in.
        function: FunctionId,
        /// The kernel's number in the function.
        kernel: u32,
        /// The number of the call, which tells calls of the function apart that are in progress at
        /// one time.
        call: u64,
    },
    /// Work was done for a kernel that may have returned before: in a task of the work queue, or in
    /// a loop that several threads share.
    Part {
        /// The function that the kernel stands in.
        function: FunctionId,
        /// The kernel's number in the function.
        kernel: u32,
    },
    /// A task of the work queue was run, with all kernels in it.
    Task,
    /// A worker stole so many tasks from another.
    Steal(u32),
    /// A worker slept.
    Park,
}

/// An event, with times in nanoseconds since the recorder was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of the event.
    pub kind: EventKind,
    /// The time at which the event began.
    pub begin_ns: u64,
    /// The time at which the event ended; equal to `begin_ns` for events without duration.
    pub end_ns: u64,
}

/// The events of one thread, in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub struct ThreadRecording {
    /// The thread's name.
    pub name: String,
    /// Whether the thread is a worker of a queue, whose time between tasks is idle.
    pub is_worker: bool,
    /// The events that are still in the ring.
    pub events: Vec<Event>,
    /// The number of events that gave way to later ones.
    pub n_lost: u64,
}

/// The events of all threads up to a moment.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The threads, in the order in which they began to take part.
    pub threads: Vec<ThreadRecording>,
    /// The moment, in nanoseconds since the recorder was made.
    pub end_ns: u64,
    /// Events of threads that ended long ago.
    pub n_lost: u64,
}

impl Recording {
    /// Leaves the events that began at `begin_ns` or later, in nanoseconds since the recorder was made.
    #[must_use]
    pub fn since(mut self, begin_ns: u64) -> Recording {
        for thread in &mut self.threads {
            // A thread loses its earliest events first: it has lost none of these if an earlier one is there.
            if thread
                .events
                .first()
                .is_some_and(|first| first.begin_ns < begin_ns)
            {
                thread.n_lost = 0;
            }
            thread.events.retain(|event| event.begin_ns >= begin_ns);
        }
        self
    }
}

/// A recorder of events, with a ring for each thread.
///
/// # Examples
///
/// ```
/// use tfrt_async::record::{EventKind, Recorder};
///
/// let recorder = Recorder::new();
/// let first = recorder.functions(1);
/// let track = recorder.track();
/// track.mark();
/// // ... kernel 3 runs here ...
/// track.kernel(first, 3, 0);
///
/// let recording = recorder.recording();
/// let event = &recording.threads[0].events[0];
/// assert!(matches!(event.kind, EventKind::Kernel { kernel: 3, .. }));
/// assert!(event.begin_ns <= event.end_ns);
/// ```
pub struct Recorder {
    /// The number of the recorder, by which threads find their tracks.
    id: u64,
    capacity: usize,
    clock: Clock,
    n_functions: AtomicU64,
    tracks: Mutex<Tracks>,
}

/// The tracks of a recorder.
#[derive(Clone, Default)]
struct Tracks {
    all: Vec<Shared>,
    /// Events on tracks that were given up.
    n_lost: u64,
}

/// A track as the recorder holds it.
#[derive(Clone)]
struct Shared {
    name: String,
    is_worker: bool,
    ring: Arc<Ring>,
}

/// The number of ended threads whose events are kept; of further ones, the earliest are forgotten.
const MAX_LEFT: usize = 64;

impl Shared {
    /// Returns whether nobody writes to the track any more.
    fn is_left(&self) -> bool {
        Arc::strong_count(&self.ring) == 1
    }
}

impl Tracks {
    fn add(&mut self, name: String, is_worker: bool, capacity: usize) -> Arc<Ring> {
        let n_left = self.all.iter().filter(|track| track.is_left()).count();
        if n_left >= MAX_LEFT {
            let first = self.all.iter().position(Shared::is_left);
            let forgotten = first.map(|index| self.all.remove(index));
            self.n_lost += forgotten.map_or(0, |track| track.ring.n_written());
        }
        let ring = Arc::new(Ring::new(capacity));
        self.all.push(Shared {
            name,
            is_worker,
            ring: ring.clone(),
        });
        ring
    }
}

/// A handle to the ring that the calling thread records to. A counted handle that stays on its
/// thread.
#[derive(Clone)]
pub struct Track(Rc<Writer>);

struct Writer {
    ring: Arc<Ring>,
    clock: Clock,
    /// The time at which the last event ended.
    mark: Cell<u64>,
}

thread_local! {
    /// The recorder that this thread recorded to last, and its track there.
    static LAST: RefCell<Option<(u64, Track)>> = const { RefCell::new(None) };
}

impl Recorder {
    /// The number of events that a thread keeps unless another is asked for: 2 MiB of them, taken
    /// as they come.
    pub const DEFAULT_CAPACITY: usize = 1 << 16;

    /// Makes a recorder that keeps the last [`Recorder::DEFAULT_CAPACITY`] events of each thread.
    pub fn new() -> Recorder {
        Recorder::with_capacity(Recorder::DEFAULT_CAPACITY)
    }

    /// Makes a recorder that keeps the last `n_events` events of each thread, or a few more.
    pub fn with_capacity(n_events: usize) -> Recorder {
        static N_RECORDERS: AtomicU64 = AtomicU64::new(0);
        Recorder {
            id: N_RECORDERS.fetch_add(1, Ordering::Relaxed),
            capacity: n_events,
            clock: Clock::start(),
            n_functions: AtomicU64::new(0),
            tracks: Mutex::default(),
        }
    }

    /// Reserves numbers for `n` functions, and returns the first.
    pub fn functions(&self, n: u32) -> FunctionId {
        let first = self.n_functions.fetch_add(u64::from(n), Ordering::Relaxed);
        let first = u32::try_from(first).unwrap_or(MAX_FUNCTION);
        FunctionId(first.min(MAX_FUNCTION))
    }

    /// Returns the calling thread's track, made when it asks for the first time.
    pub fn track(&self) -> Track {
        let known = LAST.try_with(|last| match &*last.borrow() {
            Some((id, track)) if *id == self.id => Some(track.clone()),
            _ => None,
        });
        match known {
            Ok(Some(track)) => track,
            _ => self.join(false),
        }
    }

    /// Begins the next event of the calling thread now.
    #[inline]
    pub fn mark(&self) {
        self.with_track(Track::mark);
    }

    /// Records that a kernel of a function has run on the calling thread: see [`Track::kernel`].
    #[inline]
    pub fn kernel(&self, function: FunctionId, kernel: u32, call: u64) {
        self.with_track(|track| track.kernel(function, kernel, call));
    }

    /// Records work for a kernel on the calling thread: see [`Track::part`].
    pub fn part(&self, function: FunctionId, kernel: u32) {
        self.with_track(|track| track.part(function, kernel));
    }

    #[inline]
    fn with_track(&self, event: impl Fn(&Track)) {
        let known = LAST.try_with(|last| match &*last.borrow() {
            Some((id, track)) if *id == self.id => {
                event(track);
                true
            }
            _ => false,
        });
        if known != Ok(true) {
            event(&self.join(false));
        }
    }

    /// Returns the calling thread's track, as that of a worker of a queue.
    pub(crate) fn worker_track(&self) -> Track {
        self.join(true)
    }

    #[cold]
    fn join(&self, is_worker: bool) -> Track {
        let thread = std::thread::current();
        let mut tracks = self.tracks();
        let name = match thread.name() {
            Some(name) => name.to_owned(),
            None => format!("thread {}", tracks.all.len()),
        };
        // A thread that records to two recorders in turn comes back to its ring.
        let is_own = |track: &&Shared| track.name == name && !is_worker && track.is_left();
        let ring = match tracks.all.iter().find(is_own) {
            Some(track) => {
                // Ordering: pairs with the release of the last writer's count, so that what it has
                // written is seen.
                fence(Ordering::Acquire);
                track.ring.clone()
            }
            None => tracks.add(name, is_worker, self.capacity),
        };
        drop(tracks);
        let track = Track(Rc::new(Writer {
            ring,
            clock: self.clock,
            mark: Cell::new(self.clock.now()),
        }));
        // A thread that is past the end of its thread-locals gets a new track each time.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some((self.id, track.clone())));
        track
    }

    fn tracks(&self) -> MutexGuard<'_, Tracks> {
        // Nothing panics while it holds this lock.
        self.tracks
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns a gauge at 0, which is recorded by the recorder's clock, but not with the events.
    pub fn gauge(&self) -> Gauge {
        Gauge::new(self.clock)
    }

    /// Nanoseconds since the recorder was made, as events have them.
    pub fn now_ns(&self) -> u64 {
        self.clock.scale().ns(self.clock.now())
    }

    /// Reads what all threads have recorded. They go on meanwhile; what gives way while it is read
    /// counts as lost.
    pub fn recording(&self) -> Recording {
        let tracks = self.tracks().clone();
        let (scale, now) = (self.clock.scale(), self.clock.now());
        let thread = |track: Shared| {
            let (n_lost, records) = track.ring.read();
            let decode = |[begin, end, what, call]: Words| {
                let event = Event {
                    kind: decoded(what, call)?,
                    begin_ns: scale.ns(begin),
                    end_ns: scale.ns(end),
                };
                // What was recorded after this reading began is left for the next.
                (end <= now).then_some(event)
            };
            ThreadRecording {
                name: track.name,
                is_worker: track.is_worker,
                events: records.into_iter().filter_map(decode).collect(),
                n_lost,
            }
        };
        Recording {
            threads: tracks.all.into_iter().map(thread).collect(),
            end_ns: scale.ns(now),
            n_lost: tracks.n_lost,
        }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("capacity", &self.capacity)
            .field("n_threads", &self.tracks().all.len())
            .finish_non_exhaustive()
    }
}

impl Track {
    /// Begins the next event now.
    #[inline]
    pub fn mark(&self) {
        self.0.mark.set(self.0.clock.now());
    }

    /// Records that a kernel of a function has run. `call` is equal for all kernels of one call of
    /// it.
    #[inline]
    pub fn kernel(&self, function: FunctionId, kernel: u32, call: u64) {
        let what = encoded(KERNEL, function, kernel);
        self.record(self.0.mark.get(), what, call);
    }

    /// Records work for a kernel of a function, since the last event.
    pub fn part(&self, function: FunctionId, kernel: u32) {
        let what = encoded(PART, function, kernel);
        self.record(self.0.mark.get(), what, 0);
    }

    /// Returns the time at which the last event ended, for what is recorded later and begins there.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.0.mark.get()
    }

    /// Records a task that began when [`last`](Self::last) was `begin`.
    #[inline]
    pub(crate) fn task(&self, begin: u64) {
        self.record(begin, encoded(TASK, FunctionId(0), 0), 0);
    }

    /// Records that tasks were stolen from another worker.
    pub(crate) fn steal(&self, n_tasks: u32) {
        self.mark();
        self.record(self.last(), encoded(STEAL, FunctionId(0), n_tasks), 0);
    }

    /// Records that the worker has slept since the last mark.
    pub(crate) fn park(&self) {
        self.record(self.last(), encoded(PARK, FunctionId(0), 0), 0);
    }

    #[inline]
    fn record(&self, begin: u64, what: u64, call: u64) {
        let now = self.0.clock.now();
        self.0.mark.set(now);
        self.0.ring.write([begin, now, what, call]);
    }
}

impl fmt::Debug for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Track").finish()
    }
}

const KERNEL: u64 = 1;
const TASK: u64 = 2;
const STEAL: u64 = 3;
const PARK: u64 = 4;
const PART: u64 = 5;

/// Returns the third word of a record: the kind in the highest byte, the function in three more, a
/// number in the lower half.
#[inline]
fn encoded(kind: u64, function: FunctionId, number: u32) -> u64 {
    kind << 56 | u64::from(function.0) << 32 | u64::from(number)
}

/// Returns the kind of an event from the third and fourth word of its record; `None` if [`encoded`]
/// did not make it.
fn decoded(what: u64, call: u64) -> Option<EventKind> {
    let (high, low) = (what >> 32, what & u64::from(u32::MAX));
    let (high, number) = (u32::try_from(high).ok()?, u32::try_from(low).ok()?);
    Some(match what >> 56 {
        KERNEL => EventKind::Kernel {
            function: FunctionId(high & MAX_FUNCTION),
            kernel: number,
            call,
        },
        PART => EventKind::Part {
            function: FunctionId(high & MAX_FUNCTION),
            kernel: number,
        },
        TASK => EventKind::Task,
        STEAL => EventKind::Steal(number),
        PARK => EventKind::Park,
        _ => return None,
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
