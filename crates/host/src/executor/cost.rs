//! What calls of a function cost, learned from those that were made.
//!
//! Where several threads could run the streams of a function at the same time, handing them over is
//! worth it only for work that takes longer than the hand-over: waking a thread takes more than ten
//! microseconds, passing a kernel on more than a hundred nanoseconds. So the first call is run as if
//! it were worth it, and its kernels are timed; later ones as that has shown. All calls in order are
//! timed again, so that a function whose arguments grow changes over.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Calls that take less in all are not worth waking a thread for.
const MIN_CALL: Duration = Duration::from_micros(50);
/// Kernels that take less, on average, are not worth passing on.
const MIN_KERNEL: Duration = Duration::from_nanos(250);

/// What counting and handing over add to a kernel at most, where it was timed with both.
const HAND_OVER: Duration = Duration::from_nanos(300);

/// What a call takes, as a moving average in nanoseconds; 0 as long as nobody knows.
#[derive(Debug, Default)]
pub(crate) struct Cost(AtomicU64);

impl Cost {
    /// Whether no call was timed yet.
    pub(super) fn is_unknown(&self) -> bool {
        // Ordering: an estimate, here and below.
        self.0.load(Ordering::Relaxed) == 0
    }

    /// A call of so many kernels, some of which were handed over, has kept threads busy for so long.
    pub(super) fn learn_counted(&self, busy: Duration, n_kernels: usize) {
        let n_kernels = u32::try_from(n_kernels).unwrap_or(u32::MAX);
        self.learn(busy.saturating_sub(HAND_OVER * n_kernels));
    }

    /// A call has kept threads busy for so long.
    pub(super) fn learn(&self, busy: Duration) {
        let found = u64::try_from(busy.as_nanos())
            .unwrap_or(u64::MAX / 4)
            .clamp(1, u64::MAX / 4);
        let known = self.0.load(Ordering::Relaxed);
        let average = if known == 0 {
            found
        } else {
            (3 * known + found) / 4
        };
        self.0.store(average.max(1), Ordering::Relaxed);
    }

    /// Whether a call, of so many kernels, is known to be too small for several threads.
    pub(crate) fn is_small(&self, n_kernels: usize) -> bool {
        let known = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        let n_kernels = u32::try_from(n_kernels).unwrap_or(u32::MAX);
        !known.is_zero() && (known < MIN_CALL || known < MIN_KERNEL * n_kernels)
    }
}

/// After a call that was begun in order and had to be counted, so many are counted at once: what is to come
/// mostly is again.
const PAUSE: u32 = 15;

/// Which calls of a function are begun in order that may have to be counted.
#[derive(Debug, Default)]
pub(super) struct Tries {
    /// How many calls are counted at once before the next is tried.
    n_counted: AtomicU32,
}

impl Tries {
    /// Whether the next call is tried.
    #[inline]
    pub(super) fn is_next(&self) -> bool {
        // Ordering: an estimate, here and below.
        let n_left = self.n_counted.load(Ordering::Relaxed);
        if n_left > 0 {
            self.n_counted.store(n_left - 1, Ordering::Relaxed);
        }
        n_left == 0
    }

    /// A call that was tried had to be counted.
    pub(super) fn pause(&self) {
        self.n_counted.store(PAUSE, Ordering::Relaxed);
    }
}
