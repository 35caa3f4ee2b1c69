//! Who helps with a short loop, and whether it is worth waking somebody for.
//!
//! A helper is worth what it takes off the caller: of a short loop there is something to take for a few only, however
//! many workers there are.
//!
//! Waking a worker costs the caller some ten microseconds, and the worker comes that much later: too much for one
//! short loop, little for many of them, since who is woken stays awake for the next one. So each thread keeps in mind
//! how long the loops took together that it ran alone, as long as each begins soon after the one before has ended.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tfrt_async::queue::ConcurrentWorkQueue;

/// The work that a helper is to take off the caller, about: some times the cost of notifying a thread that is awake.
const WORTH_A_HELPER: Duration = Duration::from_micros(20);
/// Loops that together take so long are worth waking a worker.
const WORTH_WAKING: Duration = Duration::from_micros(80);
/// With more than this between the end of one loop and the beginning of the next, who helped with one may be asleep at
/// the other.
const APART: Duration = Duration::from_micros(50);

thread_local! {
    static ALONE: Cell<Option<Alone>> = const { Cell::new(None) };
}

/// Loops that a thread has run alone, one soon after the other.
#[derive(Clone, Copy)]
struct Alone {
    /// When the last of them is over, as far as its cost tells.
    end: Instant,
    /// The sum of their costs.
    total: Duration,
}

impl Alone {
    /// A loop that costs so much begins `now`, after those `before`: `None` if it is worth waking a worker for.
    fn and(before: Option<Alone>, now: Instant, cost: Duration) -> Option<Alone> {
        let close = before.filter(|alone| now.saturating_duration_since(alone.end) < APART);
        let total = close.map_or(cost, |alone| alone.total.saturating_add(cost));
        // Short from here on, so that a cost from outside can't take the end out of range.
        let is_short = total < WORTH_WAKING;
        is_short.then(|| Alone {
            end: now + cost,
            total,
        })
    }
}

/// How many workers are to help with a loop that the calling thread begins now, and takes so long for alone.
pub(super) fn n_helpers(queue: &dyn ConcurrentWorkQueue, cost: Duration) -> usize {
    let n_idle = match (queue.idle_workers(), queue.sleeping_workers()) {
        (0, n_sleeping) if n_sleeping > 0 && is_worth_waking(cost) => n_sleeping,
        (n_awake, _) => n_awake,
    };
    // The calling thread works, too, whether it is the queue's or not.
    n_idle
        .min(queue.parallelism().saturating_sub(1))
        .min(max_helpers(cost))
}

/// The most helpers that a loop has work for. One that is awake costs next to nothing, and is asked in any case.
fn max_helpers(cost: Duration) -> usize {
    let n = cost.as_nanos().div_ceil(WORTH_A_HELPER.as_nanos());
    usize::try_from(n).unwrap_or(usize::MAX).max(1)
}

/// Whether to wake a worker for a loop that the calling thread begins now, and takes so long for alone.
fn is_worth_waking(cost: Duration) -> bool {
    let alone = Alone::and(ALONE.get(), Instant::now(), cost);
    ALONE.set(alone);
    alone.is_none()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tfrt_async::queue::MultiThreadedWorkQueue;

    use super::*;

    /// Which of ten loops of `cost_us` microseconds wakes first, with `gap_us` between the end of one and the beginning
    /// of the next.
    fn first_to_wake(cost_us: u64, gap_us: u64) -> Option<usize> {
        let (cost, gap) = (
            Duration::from_micros(cost_us),
            Duration::from_micros(gap_us),
        );
        let mut now = Instant::now();
        let mut alone = None;
        (0..10).find(|_| {
            alone = Alone::and(alone, now, cost);
            now += cost + gap;
            alone.is_none()
        })
    }

    #[test]
    fn loops_one_right_after_the_other_are_worth_waking_for() {
        for (cost_us, first) in [(20, 3), (40, 1), (60, 1), (79, 1), (80, 0), (1000, 0)] {
            for gap_us in [0, 1, 49] {
                assert_eq!(first_to_wake(cost_us, gap_us), Some(first), "{cost_us} µs");
            }
        }
    }

    #[test]
    fn loops_apart_are_each_on_their_own() {
        for cost_us in [0, 20, 40, 60, 79] {
            assert_eq!(first_to_wake(cost_us, 50), None, "{cost_us} µs");
        }
        assert_eq!(first_to_wake(80, 1000), Some(0));
    }

    #[test]
    fn loop_may_end_before_it_was_expected_to() {
        let now = Instant::now();
        let alone = Alone::and(None, now, Duration::from_micros(79));
        let at_once = Alone::and(alone, now, Duration::from_micros(1));
        assert!(alone.is_some() && at_once.is_none());
    }

    #[test]
    fn as_many_help_as_the_loop_has_work_for() {
        let of = |cost_us| max_helpers(Duration::from_micros(cost_us));
        let n_helpers = [0, 1, 20, 21, 80, 400].map(of);
        assert_eq!(n_helpers, [1, 1, 1, 2, 4, 20]);
        assert!(max_helpers(Duration::MAX) >= of(u64::MAX));
    }

    #[test]
    fn short_loop_does_not_wake_everybody() {
        let queue = MultiThreadedWorkQueue::new(8, 0).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while queue.sleeping_workers() < 8 {
            assert!(Instant::now() < deadline, "workers stay awake without work");
            thread::yield_now();
        }
        let n_helpers = |cost_us| n_helpers(&queue, Duration::from_micros(cost_us));
        assert_eq!([0, 79, 80, 100, 400].map(n_helpers), [0, 0, 4, 5, 7]);
    }

    #[test]
    fn cost_may_be_anything() {
        let now = Instant::now();
        assert!(Alone::and(None, now, Duration::MAX).is_none());
        let alone = Alone::and(None, now, Duration::ZERO);
        assert!(Alone::and(alone, now, Duration::MAX).is_none());
    }
}
