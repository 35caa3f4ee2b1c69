//! Counters of live cells, their bytes, and caught panics: always on, nearly free.
//!
//! Each thread counts in a shard of its own with plain loads and stores; [`counters`] adds the
//! shards up. A shard outlives its thread and is handed to a later one, so the sums stay right
//! and there are never more shards than there were threads at one time. No decision in this
//! crate rests on these numbers. They are exact when no other thread is at work, which is when a
//! leak check looks at them.

use std::cell::Cell;

#[cfg(debug_assertions)]
use crate::accounting::{ObjectKind, report, withdraw};
use crate::sync::statistic::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The process-wide counters of live values, as [`counters`] returns them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Cells that were made and not yet freed: pending values and values on the heap.
    pub live_cells: u64,
    /// The bytes of these cells.
    pub live_cell_bytes: u64,
    /// Continuations and destructors that panicked, since the process started.
    pub waiter_panics: u64,
}

/// Returns the counters of the whole process.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, counters};
/// let before = counters().live_cells;
/// let (promise, value) = AsyncValue::<i32>::pending();
/// assert_eq!(counters().live_cells, before + 1);
/// promise.resolve(1);
/// drop(value);
/// assert_eq!(counters().live_cells, before);
/// ```
pub fn counters() -> Counters {
    registry().sum()
}

impl Registry {
    fn sum(&self) -> Counters {
        let mut sum = Counters::default();
        // A cell may be freed by another thread than the one that made it, so that a single shard
        // may be "negative": only the sums, which wrap, make sense.
        for shard in self.all.iter().copied().chain([&LATE]) {
            let add = |sum: &mut u64, counter: &AtomicU64| {
                *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
            };
            add(&mut sum.live_cells, &shard.live_cells);
            add(&mut sum.live_cell_bytes, &shard.live_cell_bytes);
            add(&mut sum.waiter_panics, &shard.waiter_panics);
        }
        sum
    }
}

/// Returns the live cells as this thread has counted them: those it made less those it freed.
///
/// For models, whose threads are all run by one.
#[cfg(all(test, loom))]
pub(crate) fn live_cells_of_this_thread() -> u64 {
    let shard = MINE
        .get()
        .or_else(adopt)
        .expect("a model's thread has not ended");
    shard.live_cells.load(Ordering::Relaxed)
}

/// Counts a new cell of `size_bytes`.
#[inline]
pub(crate) fn cell_created(size_bytes: usize) {
    count(|shard, add| {
        add(&shard.live_cells, 1);
        add(&shard.live_cell_bytes, size_bytes as u64);
    });
}

/// Counts a cell of `size_bytes` as freed.
#[inline]
pub(crate) fn cell_freed(size_bytes: usize) {
    count(|shard, add| {
        add(&shard.live_cells, 1_u64.wrapping_neg());
        add(&shard.live_cell_bytes, (size_bytes as u64).wrapping_neg());
    });
}

/// Counts a panic that was caught.
#[cold]
pub(crate) fn panic_caught() {
    count(|shard, add| add(&shard.waiter_panics, 1));
}

/// One thread's counters, on a cache line of their own.
#[repr(align(64))]
struct Shard {
    live_cells: AtomicU64,
    live_cell_bytes: AtomicU64,
    waiter_panics: AtomicU64,
}

impl Shard {
    const fn new() -> Shard {
        Shard {
            live_cells: AtomicU64::new(0),
            live_cell_bytes: AtomicU64::new(0),
            waiter_panics: AtomicU64::new(0),
        }
    }
}

/// The shard of threads whose thread-local values are gone.
static LATE: Shard = Shard::new();

struct Registry {
    all: Vec<&'static Shard>,
    /// Shards whose thread has ended.
    free: Vec<&'static Shard>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    all: Vec::new(),
    free: Vec::new(),
});

fn registry() -> MutexGuard<'static, Registry> {
    // Nothing panics while it holds this lock.
    REGISTRY
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

thread_local! {
    /// This thread's shard: none before it has counted anything, and after its end. Without a
    /// destructor of its own, so that counting looks at nothing else.
    static MINE: Cell<Option<&'static Shard>> = const { Cell::new(None) };
    static END: ThreadExit = const { ThreadExit };
}

/// A guard that returns the thread's shard to the registry when the thread ends.
struct ThreadExit;

impl Drop for ThreadExit {
    fn drop(&mut self) {
        if let Some(shard) = MINE.take() {
            let mut registry = registry();
            registry.free.push(shard);
            #[cfg(debug_assertions)]
            registry.report_at_end();
        }
    }
}

#[cfg(debug_assertions)]
impl Registry {
    /// Reports how many cells live if no thread has a shard any more.
    fn report_at_end(&self) {
        if self.free.len() == self.all.len() {
            report(ObjectKind::Values, self.sum().live_cells);
        }
    }

    /// Withdraws the reported number of values if no thread has a shard yet.
    fn withdraw_report(&self) {
        if self.free.len() == self.all.len() {
            withdraw(ObjectKind::Values);
        }
    }
}

#[inline(always)]
fn count(change: impl Fn(&'static Shard, fn(&AtomicU64, u64))) {
    let Some(shard) = MINE.get().or_else(adopt) else {
        change(&LATE, |counter, more| {
            counter.fetch_add(more, Ordering::Relaxed);
        });
        #[cfg(debug_assertions)]
        registry().report_at_end();
        return;
    };
    change(shard, |counter, more| {
        let now = counter.load(Ordering::Relaxed).wrapping_add(more);
        counter.store(now, Ordering::Relaxed);
    });
}

/// Lets the calling thread have a shard before it counts anything.
#[cfg(debug_assertions)]
pub(crate) fn register_thread() {
    if MINE.get().is_none() {
        let _ = adopt();
    }
}

/// Gives the thread a shard, unless it is past its end.
#[cold]
#[inline(never)]
fn adopt() -> Option<&'static Shard> {
    END.try_with(|_| ()).ok()?;
    let mut registry = registry();
    #[cfg(debug_assertions)]
    registry.withdraw_report();
    let shard = registry.free.pop().unwrap_or_else(|| {
        let shard: &'static Shard = Box::leak(Box::new(Shard::new()));
        registry.all.push(shard);
        shard
    });
    MINE.set(Some(shard));
    Some(shard)
}
