//! Short parallel loops: the calling thread begins and finishes them, and idle workers help.
//!
//! [`parallel_for`](super::parallel_for) hands tiles over and returns; what follows the loop then goes on wherever the
//! last tile was. That costs more than some microseconds of work are worth. Here parts are taken one by one: the
//! calling thread takes them until none is left, and so do the workers that come in time. Those that come late find
//! nothing, and hold nothing. The caller begins at the front and helpers at the end, so that of a loop that is run again
//! and again each finds in its cache what it has read before. Parts that others are at are waited for, for a moment:
//! they are as short as those that the caller has just done, so mostly the loop is over when the call returns.

use std::mem;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::parallel::{
    LoopEnd, LoopFailure, Stop, TileClosures, TilePanicGuard, TileResult, TileWork,
};
use super::sleep::lock;
use super::{ConcurrentWorkQueue, Task};
use crate::chain::Chain;
use crate::error::Error;
use crate::sync::{Arc, Mutex, spin_loop};
use crate::value::AsyncValue;

/// The time for which the caller spins for parts that others run: some times what those take. Longer only if a helper
/// was put off its processor; then the result comes later.
const PATIENCE: Duration = Duration::from_micros(50);

/// Runs `body(index)` for each index below `n_parts`, on the calling thread and on up to `n_helpers` workers of the
/// queue. Never blocks; spins for some microseconds at most.
///
/// Which parts there are must not hang on the number of helpers: it is what a result's bits may depend on. Parts
/// should take some microseconds each; a helper costs less than one if it is awake
/// ([`idle_workers`](ConcurrentWorkQueue::idle_workers)).
///
/// `cancelled` is looked at before each part; once it says so, no more parts begin. The result settles when the last
/// part is done, and nobody holds `body` then: mostly before the call returns, always without helpers.
///
/// # Errors
///
/// See [`parallel_for`](super::parallel_for).
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, share};
///
/// let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(MultiThreadedWorkQueue::new(2, 0).unwrap());
/// let sum = Arc::new(AtomicUsize::new(0));
/// let total = sum.clone();
/// let done = share(&queue, 10, queue.idle_workers(), || false, move |index| {
///     total.fetch_add(index, Ordering::Relaxed);
///     Ok(())
/// });
/// queue.await_all(&[done.into_any()]).unwrap();
/// assert_eq!(sum.load(Ordering::Relaxed), 45);
/// ```
pub fn share<S: Stop>(
    queue: &Arc<dyn ConcurrentWorkQueue>,
    n_parts: usize,
    n_helpers: usize,
    cancelled: impl Fn() -> S + Send + Sync + 'static,
    body: impl Fn(usize) -> Result<(), Error> + Send + Sync + 'static,
) -> AsyncValue<Chain> {
    if n_parts == 0 {
        return AsyncValue::available(Chain);
    }
    let (promise, done) = AsyncValue::pending();
    let work = TileClosures {
        cancelled: move || cancelled().into_error(),
        body: move |index, _| body(index).into_settling(),
    };
    let shared = Arc::new(SharedLoop {
        left: Mutex::new(RemainingTiles {
            parts: 0..n_parts,
            work: Some(Arc::new(work)),
        }),
        end: LoopEnd::new(n_parts, promise),
    });
    let helper = |_| {
        let shared = shared.clone();
        Task::new(move || shared.help(RemainingTiles::take_last))
    };
    queue.add_tasks(&mut (0..n_helpers.min(n_parts - 1)).map(helper));
    shared.help(RemainingTiles::take_first);
    if !done.is_settled() {
        let begin = Instant::now();
        while !done.is_settled() && begin.elapsed() < PATIENCE {
            (0..16).for_each(|_| spin_loop());
        }
    }
    done
}

/// A running loop, shared by the caller and its helpers.
struct SharedLoop {
    left: Mutex<RemainingTiles>,
    end: LoopEnd,
}

/// The index of a part, and the work that runs it.
type ClaimedTile = (usize, Arc<dyn TileWork>);

/// The parts of a loop that are not started.
struct RemainingTiles {
    parts: Range<usize>,
    // Invariant: there while a part is left. Who takes the last one takes it, too, so that it is gone with those who
    // run parts.
    work: Option<Arc<dyn TileWork>>,
}

impl RemainingTiles {
    fn take_first(&mut self) -> Option<ClaimedTile> {
        let index = self.parts.next()?;
        Some((index, self.work_of_part()?))
    }

    fn take_last(&mut self) -> Option<ClaimedTile> {
        let index = self.parts.next_back()?;
        Some((index, self.work_of_part()?))
    }

    /// Returns the work for a part that has just been taken: the last part takes the work itself.
    fn work_of_part(&mut self) -> Option<Arc<dyn TileWork>> {
        match self.parts.is_empty() {
            true => self.work.take(),
            false => self.work.clone(),
        }
    }
}

impl SharedLoop {
    /// Runs parts until none is left, taken from the front or the end by `take`.
    fn help(&self, take: fn(&mut RemainingTiles) -> Option<ClaimedTile>) {
        loop {
            let Some((index, work)) = take(&mut lock(&self.left)) else {
                return;
            };
            if let Some(error) = work.stopped() {
                drop(work);
                self.end.arrive(1, Some(LoopFailure::LeftOut(error)));
                continue;
            }
            let unwinding = TilePanicGuard {
                end: &self.end,
                index,
            };
            // Dropped before the guard, if it panics.
            let own = work;
            let result = own.tile(index, index + 1);
            drop(own);
            mem::forget(unwinding);
            let failure = result.err().map(|error| LoopFailure::Tile(index, error));
            self.end.arrive(1, failure);
        }
    }
}

#[cfg(test)]
mod tests;
