//! [`Pace`]: whether calls of a model are so short that the thread that has read a request makes them itself.
//!
//! Waking another thread, and being woken by it, takes longer than a small model does. How long calls take can only be
//! seen where they are made by this thread: the time of one through the queue has both ways in it. So one that was quick
//! on the queue is tried here; while trials turn out to be slow, they become rare.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::servable::Place;

/// Calls that take less are made here.
const SMALL: Duration = Duration::from_micros(100);

/// A call through the queue that takes less lets one be tried here, which holds other requests up as long at most.
const QUICK: Duration = Duration::from_millis(1);

/// The quick calls through the queue between trials: at first, and at most.
const TRIALS: (u32, u32) = (16, 4096);

/// How long the calls of a model take, of late. The fields are estimates, which order no memory.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The nanoseconds for which calls here have held the thread: a mean in which the last has an eighth.
    here_ns: AtomicU64,
    /// The quick calls through the queue until one is tried here.
    until_trial: AtomicU32,
    /// Those from the next trial to the one behind it, if it is slow.
    between_trials: AtomicU32,
}

impl Default for Pace {
    /// Nothing is known: the first call goes through the queue, and if it is quick the second is tried here.
    fn default() -> Pace {
        Pace {
            here_ns: AtomicU64::new(u64::MAX),
            until_trial: AtomicU32::new(1),
            between_trials: AtomicU32::new(TRIALS.0),
        }
    }
}

impl Pace {
    fn is_small(&self) -> bool {
        u128::from(self.here_ns.load(Ordering::Relaxed)) < SMALL.as_nanos()
    }

    /// Returns where the next call is to be made.
    pub fn place(&self) -> Place {
        match self.is_small() || self.until_trial.load(Ordering::Relaxed) == 0 {
            true => Place::Here,
            false => Place::Queue,
        }
    }

    /// Notes for how long a call here has held the thread.
    pub fn took_here(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let was_small = self.is_small();
        let mean = match was_small {
            true => {
                let before = self.here_ns.load(Ordering::Relaxed);
                before - before / 8 + ns / 8
            }
            false => ns,
        };
        self.here_ns.store(mean, Ordering::Relaxed);
        if self.is_small() {
            return self.between_trials.store(TRIALS.0, Ordering::Relaxed);
        }
        let between = self.between_trials.load(Ordering::Relaxed);
        self.until_trial.store(between, Ordering::Relaxed);
        let longer = between.saturating_mul(2).min(TRIALS.1);
        self.between_trials.store(longer, Ordering::Relaxed);
    }

    /// Notes how long a call took from when it was given to the queue until its outputs were seen here.
    pub fn took_on_queue(&self, time: Duration) {
        if time >= QUICK {
            return;
        }
        let left = self.until_trial.load(Ordering::Relaxed);
        self.until_trial
            .store(left.saturating_sub(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn small_model_is_called_here_once_one_call_was_quick() {
        let pace = Pace::default();
        assert_eq!(pace.place(), Place::Queue);
        // On an idle machine, both ways to a worker take longer than the model.
        pace.took_on_queue(400 * US);
        assert_eq!(pace.place(), Place::Here);
        for _ in 0..100 {
            pace.took_here(20 * US);
            assert_eq!(pace.place(), Place::Here);
        }
        // One that was held up changes nothing, many do.
        pace.took_here(500 * US);
        assert_eq!(pace.place(), Place::Here);
        for _ in 0..8 {
            pace.took_here(500 * US);
        }
        assert_eq!(pace.place(), Place::Queue);
    }

    #[test]
    fn model_that_is_never_quick_is_never_tried() {
        let pace = Pace::default();
        for _ in 0..100_000 {
            pace.took_on_queue(2000 * US);
            assert_eq!(pace.place(), Place::Queue);
        }
    }

    #[test]
    fn trials_that_are_slow_become_rare() {
        let pace = Pace::default();
        let mut n_trials = 0;
        for _ in 0..20_000 {
            match pace.place() {
                Place::Here => {
                    n_trials += 1;
                    pace.took_here(700 * US);
                }
                Place::Queue => pace.took_on_queue(900 * US),
            }
        }
        assert_eq!(n_trials, 12);
    }
}
