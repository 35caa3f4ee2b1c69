//! Loops over an index range, cut into tiles.
//!
//! [`parallel_for`] cuts a range into tiles of a given size, the last one perhaps smaller. The
//! bounds depend on the range and the size alone, never on the number of threads, so a program
//! gives the same bits on one thread and on many; [`reduce_tree`] combines the tiles' results in
//! a tree that depends on their number alone.
//!
//! Tiles are spread by halving: whoever holds a run of tiles adds its upper half as a task until
//! one tile is left, which it runs. So thieves get large halves. A caller that is a worker begins at
//! its own place in the range: the second of two workers with the upper half. So loops over the same
//! data, one after the other, tend to find it in the caches of the same processors, whoever calls
//! them. Nothing waits: the loop's result is a chain.
//!
//! What a loop does is behind one pointer, and all else is compiled once: programs have
//! thousands of loops, and a tile is long enough for a call.

use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::thread::panicking;

use super::sleep::lock;
use super::{ConcurrentWorkQueue, Task};
use crate::any::AnyAsyncValue;
use crate::chain::Chain;
use crate::error::Error;
use crate::promise::Promise;
use crate::storage::Value;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering};
use crate::value::AsyncValue;

/// The size of a parallel loop's blocks, where the problem does not bind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// About four blocks for each worker.
    Even,
    /// Blocks of this size.
    Fixed(NonZeroUsize),
    /// About four blocks for each worker, but none smaller than this.
    Min(NonZeroUsize),
}

/// Returns the size of the blocks for `total` indexes on so many workers; at least one.
///
/// Except for `Fixed` it depends on the number of workers: use it only where results don't
/// depend on how indexes are grouped.
pub fn block_size(total: usize, workers: usize, size: BlockSize) -> NonZeroUsize {
    let even = total / workers.max(1).saturating_mul(4);
    let wanted = match size {
        BlockSize::Even => even,
        BlockSize::Fixed(size) => size.get(),
        BlockSize::Min(size) => size.get().max(even),
    };
    NonZeroUsize::new(wanted.min(total)).unwrap_or(NonZeroUsize::MIN)
}

/// A cancellation check's result: `bool`, or the error to fail with.
pub trait Stop {
    /// Returns the error that stops the loop, or `None` to go on.
    fn into_error(self) -> Option<Error>;
}

impl Stop for bool {
    fn into_error(self) -> Option<Error> {
        self.then(|| Error::cancelled("Cancelled"))
    }
}

impl Stop for Option<Error> {
    fn into_error(self) -> Option<Error> {
        self
    }
}

/// The result of a loop's body for a tile.
pub trait TileResult {
    /// Returns the value that settles when the tile is done, or its error, or `None` if it is
    /// done already.
    fn into_settling(self) -> Result<Option<AnyAsyncValue>, Error>;
}

impl TileResult for () {
    fn into_settling(self) -> Result<Option<AnyAsyncValue>, Error> {
        Ok(None)
    }
}

impl TileResult for Result<(), Error> {
    fn into_settling(self) -> Result<Option<AnyAsyncValue>, Error> {
        self.map(|()| None)
    }
}

impl TileResult for AnyAsyncValue {
    fn into_settling(self) -> Result<Option<AnyAsyncValue>, Error> {
        Ok(Some(self))
    }
}

impl<T: Value> TileResult for AsyncValue<T> {
    fn into_settling(self) -> Result<Option<AnyAsyncValue>, Error> {
        Ok(Some(self.into_any()))
    }
}

/// Runs `body(start, end)` for each tile of `range`, on the queue's workers and for one tile on the
/// calling thread. Never blocks.
///
/// `cancelled` is looked at before each tile; once it says so, no more tiles begin. The result
/// settles when the last tile is done, with what its body returned.
///
/// # Errors
///
/// The value fails with the error of the last tile that failed, in the range's order; if none
/// did but tiles were left out, with the error that `cancelled` gave. A tile that panics fails
/// with code `Internal`, and the panic goes on to the thread's caller.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, parallel_for};
///
/// let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(MultiThreadedWorkQueue::new(2, 0).unwrap());
/// let sum = Arc::new(AtomicUsize::new(0));
/// let tile = NonZeroUsize::new(10).unwrap();
/// let total = sum.clone();
/// let done = parallel_for(&queue, 0..100, tile, || false, move |start, end| {
///     total.fetch_add((start..end).sum(), Ordering::Relaxed);
/// });
/// queue.await_all(&[done.into_any()]).unwrap();
/// assert_eq!(sum.load(Ordering::Relaxed), 4950);
/// ```
pub fn parallel_for<S: Stop, R: TileResult>(
    queue: &Arc<dyn ConcurrentWorkQueue>,
    range: Range<usize>,
    tile: NonZeroUsize,
    cancelled: impl Fn() -> S + Send + Sync + 'static,
    body: impl Fn(usize, usize) -> R + Send + Sync + 'static,
) -> AsyncValue<Chain> {
    let tiles = Tiles { range, tile };
    let n_tiles = tiles.len();
    if n_tiles == 0 {
        return AsyncValue::available(Chain);
    }
    let (promise, done) = AsyncValue::pending();
    let shared = ParallelLoop {
        queue: queue.clone(),
        work: Box::new(TileClosures {
            cancelled: move || cancelled().into_error(),
            body: move |start, end| body(start, end).into_settling(),
        }),
        end: LoopEnd::new(n_tiles, promise),
        tiles,
    };
    Arc::new(shared).start(n_tiles);
    done
}

/// Runs `map(start, end)` for each tile of `range` as [`parallel_for`] does, and combines the
/// results by [`reduce_tree`]. An empty range gives `empty`.
///
/// # Errors
///
/// See [`parallel_for`].
pub fn parallel_reduce<S: Stop, T: Value>(
    queue: &Arc<dyn ConcurrentWorkQueue>,
    range: Range<usize>,
    tile: NonZeroUsize,
    empty: T,
    cancelled: impl Fn() -> S + Send + Sync + 'static,
    map: impl Fn(usize, usize) -> Result<T, Error> + Send + Sync + 'static,
    combine: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> AsyncValue<T> {
    let first = range.start;
    let n_tiles = Tiles {
        range: range.clone(),
        tile,
    }
    .len();
    let parts: Arc<[Mutex<Option<T>>]> = (0..n_tiles).map(|_| Mutex::new(None)).collect();
    let filled = parts.clone();
    let done = parallel_for(queue, range, tile, cancelled, move |start, end| {
        let part = map(start, end)?;
        *lock(&filled[(start - first) / tile]) = Some(part);
        Ok(())
    });
    let (promise, result) = AsyncValue::pending();
    let settled = done.clone();
    done.and_then(move || match settled.error() {
        Some(error) => promise.fail(error.clone()),
        None => {
            let parts = parts.iter().filter_map(|part| lock(part).take()).collect();
            promise.resolve(reduce_tree(parts, combine).unwrap_or(empty));
        }
    });
    result
}

/// Combines neighbours, then neighbours of those results, until one is left. The shape of the
/// tree depends on the number of parts alone, and `combine` gets them in order.
///
/// # Examples
///
/// ```
/// use tfrt_async::queue::reduce_tree;
///
/// let parts = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
/// let tree = reduce_tree(parts, |left, right| format!("({left}{right})"));
/// assert_eq!(tree.as_deref(), Some("(((ab)(cd))e)"));
/// ```
pub fn reduce_tree<T>(mut parts: Vec<T>, combine: impl Fn(T, T) -> T) -> Option<T> {
    while parts.len() > 1 {
        let mut level = mem::take(&mut parts).into_iter();
        while let Some(left) = level.next() {
            let part = match level.next() {
                Some(right) => combine(left, right),
                None => left,
            };
            parts.push(part);
        }
    }
    parts.pop()
}

/// A range cut into tiles.
struct Tiles {
    range: Range<usize>,
    tile: NonZeroUsize,
}

impl Tiles {
    fn len(&self) -> usize {
        self.range
            .end
            .saturating_sub(self.range.start)
            .div_ceil(self.tile.get())
    }

    /// Returns the bounds of the tile with this index, which is below the length.
    fn bounds(&self, index: usize) -> (usize, usize) {
        let start = self.range.start + index * self.tile.get();
        (
            start,
            start.saturating_add(self.tile.get()).min(self.range.end),
        )
    }
}

/// The body of a parallel loop, and its cancellation, with types erased.
pub(super) trait TileWork: Send + Sync {
    /// Returns the error that stops the loop, if it is to stop.
    fn stopped(&self) -> Option<Error>;
    /// Runs a tile: see [`TileResult::into_settling`].
    fn tile(&self, start: usize, end: usize) -> Result<Option<AnyAsyncValue>, Error>;
}

/// A loop's body and cancellation as closures.
pub(super) struct TileClosures<C, B> {
    pub(super) cancelled: C,
    pub(super) body: B,
}

impl<C, B> TileWork for TileClosures<C, B>
where
    C: Fn() -> Option<Error> + Send + Sync,
    B: Fn(usize, usize) -> Result<Option<AnyAsyncValue>, Error> + Send + Sync,
{
    fn stopped(&self) -> Option<Error> {
        (self.cancelled)()
    }

    fn tile(&self, start: usize, end: usize) -> Result<Option<AnyAsyncValue>, Error> {
        (self.body)(start, end)
    }
}

/// A running parallel loop.
struct ParallelLoop {
    queue: Arc<dyn ConcurrentWorkQueue>,
    tiles: Tiles,
    work: Box<dyn TileWork>,
    end: LoopEnd,
}

/// The reason why a loop failed: the error of the last tile that failed, or of those left out.
pub(super) enum LoopFailure {
    LeftOut(Error),
    Tile(usize, Error),
}

impl LoopFailure {
    /// Returns whether this failure is reported rather than `other`.
    fn outranks(&self, other: &LoopFailure) -> bool {
        match (self, other) {
            (LoopFailure::Tile(index, _), LoopFailure::Tile(other, _)) => index > other,
            (LoopFailure::Tile(..), LoopFailure::LeftOut(_)) => true,
            (LoopFailure::LeftOut(_), _) => false,
        }
    }
}

/// The end of a running loop: counts its tiles, and settles the chain when the last one is done.
pub(super) struct LoopEnd {
    missing: AtomicUsize,
    // Invariant: the promise is there until `missing` reaches zero.
    state: Mutex<(Option<Promise<Chain>>, Option<LoopFailure>)>,
}

impl LoopEnd {
    /// Returns the end of a loop of so many tiles.
    pub(super) fn new(n_tiles: usize, promise: Promise<Chain>) -> LoopEnd {
        LoopEnd {
            missing: AtomicUsize::new(n_tiles),
            state: Mutex::new((Some(promise), None)),
        }
    }

    /// Counts tiles as done.
    pub(super) fn arrive(&self, n: usize, failure: Option<LoopFailure>) {
        if let Some(failure) = failure {
            let (_, worst) = &mut *lock(&self.state);
            if worst.as_ref().is_none_or(|worst| failure.outranks(worst)) {
                *worst = Some(failure);
            }
        }
        // Ordering: whoever settles the chain comes after all tiles.
        if self.missing.fetch_sub(n, Ordering::AcqRel) != n {
            return;
        }
        let (promise, failure) = {
            let state = &mut *lock(&self.state);
            (state.0.take(), state.1.take())
        };
        let promise = promise.expect("the count reaches zero once");
        match failure {
            None => promise.resolve(Chain),
            Some(LoopFailure::LeftOut(error) | LoopFailure::Tile(_, error)) => promise.fail(error),
        }
    }
}

/// A guard that counts a tile as failed if its body panics.
pub(super) struct TilePanicGuard<'a> {
    pub(super) end: &'a LoopEnd,
    pub(super) index: usize,
}

impl Drop for TilePanicGuard<'_> {
    fn drop(&mut self) {
        if panicking() {
            let error = Error::internal("the body of a parallel loop panicked");
            self.end
                .arrive(1, Some(LoopFailure::Tile(self.index, error)));
        }
    }
}

impl ParallelLoop {
    /// Runs the first tile of the calling worker's share, and adds tasks for the others: for those
    /// before it, and as [`run`](Self::run) does.
    fn start(self: Arc<Self>, n_tiles: usize) {
        let index = self.queue.worker_index().unwrap_or(0);
        let n_workers = self.queue.parallelism().max(1);
        let (each, more) = (n_tiles / n_workers, n_tiles % n_workers);
        let first = (each * index + more * index / n_workers).min(n_tiles - 1);
        if first > 0 {
            let lower = self.clone();
            self.queue.add_task(Task::new(move || lower.run(0, first)));
        }
        self.run(first, n_tiles);
    }

    /// Runs tile `first`, and adds tasks for the others below `end`.
    fn run(self: Arc<Self>, first: usize, mut end: usize) {
        if let Some(error) = self.work.stopped() {
            self.end
                .arrive(end - first, Some(LoopFailure::LeftOut(error)));
            return;
        }
        while end - first > 1 {
            let middle = first + (end - first) / 2;
            let (upper, upper_end) = (self.clone(), end);
            self.queue
                .add_task(Task::new(move || upper.run(middle, upper_end)));
            end = middle;
        }
        let (start, stop) = self.tiles.bounds(first);
        let unwinding = TilePanicGuard {
            end: &self.end,
            index: first,
        };
        let result = self.work.tile(start, stop);
        mem::forget(unwinding);
        let failure = move |error| Some(LoopFailure::Tile(first, error));
        match result {
            Ok(None) => self.end.arrive(1, None),
            Err(error) => self.end.arrive(1, failure(error)),
            Ok(Some(value)) => {
                let settled = value.clone();
                let shared = self.clone();
                value.and_then(move || {
                    shared
                        .end
                        .arrive(1, settled.error().cloned().and_then(failure));
                });
            }
        }
    }
}
