//! The cost of calls of a function, learned from earlier calls.
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

/// The most that counting and handing over add to a kernel that was timed with both.
const HAND_OVER: Duration = Duration::from_nanos(300);

/// The time of a call, as a moving average in nanoseconds; 0 before the first was timed.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    #[test]
    fn calls_are_small_until_three_in_four_parts_say_otherwise() {
        let cost = Cost::default();
        assert!(cost.is_unknown() && !cost.is_small(1));
        cost.learn(100 * MICROSECOND);
        assert!(!cost.is_unknown() && !cost.is_small(1));
        // 75, 56.25 and 42.2 µs.
        for is_small in [false, false, true] {
            cost.learn(Duration::ZERO);
            assert_eq!(cost.is_small(1), is_small);
        }
        // 51.6 µs.
        cost.learn(80 * MICROSECOND);
        assert!(!cost.is_small(1));
    }

    #[test]
    fn call_of_nothing_is_known_and_small() {
        let cost = Cost::default();
        for _ in 0..3 {
            cost.learn(Duration::ZERO);
            assert!(!cost.is_unknown() && cost.is_small(0));
        }
    }

    #[test]
    fn kernels_are_small_below_a_quarter_of_a_microsecond() {
        let cost = Cost::default();
        cost.learn(100 * MICROSECOND);
        assert!(!cost.is_small(400) && cost.is_small(401) && cost.is_small(usize::MAX));
        let cost = Cost::default();
        cost.learn(MIN_CALL);
        assert!(!cost.is_small(1));
        let cost = Cost::default();
        cost.learn(MIN_CALL - Duration::from_nanos(1));
        assert!(cost.is_small(1));
    }

    #[test]
    fn counting_is_taken_off() {
        for (n_kernels, is_small) in [(0, false), (166, false), (167, true), (usize::MAX, true)] {
            let cost = Cost::default();
            cost.learn_counted(100 * MICROSECOND, n_kernels);
            assert_eq!(cost.is_small(1), is_small, "{n_kernels} kernels");
        }
    }

    #[test]
    fn what_takes_for_ever_is_averaged_too() {
        let cost = Cost::default();
        cost.learn(Duration::MAX);
        cost.learn(Duration::MAX);
        assert!(!cost.is_small(usize::MAX));
    }

    #[test]
    fn fifteen_calls_are_counted_after_one_that_had_to_be() {
        let tries = Tries::default();
        assert!(tries.is_next() && tries.is_next());
        tries.pause();
        assert!((0..15).all(|_| !tries.is_next()));
        assert!(tries.is_next());
    }
}
