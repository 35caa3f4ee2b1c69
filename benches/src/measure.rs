//! Times of one work done several times, and their statistics.
//!
//! Times are the processor time of the thread: what else runs on the machine makes them no longer,
//! but for what it does to caches and to the other half of the core. What runs on other threads is
//! timed by another [`Clock`]. Things that are compared are run in turns, so that the machine's
//! moods fall on all of them alike. The median says how long, the quartiles how sure.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock that times are taken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The processor time of the calling thread.
    Thread,
    /// The processor time of all threads of the process.
    Process,
    /// The time that passes.
    Wall,
}

impl Clock {
    /// Returns how long it has run.
    pub fn now(self) -> Duration {
        let time = clock_gettime(match self {
            Clock::Thread => ClockId::ThreadCPUTime,
            Clock::Process => ClockId::ProcessCPUTime,
            Clock::Wall => ClockId::Monotonic,
        });
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanoseconds)
    }
}

/// The times that one thing took, over and over.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Runs `work` and keeps its time; what it returns is dropped outside of it.
    pub fn take<T>(&mut self, work: impl FnOnce() -> T) {
        let start = Clock::Thread.now();
        let result = black_box(work());
        self.0.push(Clock::Thread.now().saturating_sub(start));
        drop(result);
    }

    /// Adds a time that was taken elsewhere.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns all times, in the order in which they were taken.
    pub fn all(&self) -> &[Duration] {
        &self.0
    }

    /// Returns how many times there are.
    pub fn n_runs(&self) -> usize {
        self.0.len()
    }

    /// Returns the time that half of the runs were below.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// Returns the time that a share of the runs were below; zero if there were none.
    pub fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let last = sorted.len().saturating_sub(1);
        let index = (share * last as f64).round() as usize;
        sorted.get(index).copied().unwrap_or_default()
    }

    /// Returns half the distance between the quartiles as a share of the median.
    pub fn spread(&self) -> f64 {
        let middle = self.quantile(0.75).saturating_sub(self.quantile(0.25));
        middle.as_secs_f64() / 2.0 / self.median().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns how many bytes went by in a second, in units of 10^6.
    pub fn megabytes_per_second(&self, len_bytes: usize) -> f64 {
        len_bytes as f64 / 1e6 / self.median().as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_spread_are_those_of_the_sorted_times() {
        let mut times = Times::default();
        for milliseconds in [50, 10, 30, 40, 20] {
            times.push(Duration::from_millis(milliseconds));
        }
        assert_eq!(times.median(), Duration::from_millis(30));
        assert_eq!(times.quantile(0.0), Duration::from_millis(10));
        assert_eq!(times.quantile(1.0), Duration::from_millis(50));
        assert!((times.spread() - 1.0 / 3.0).abs() < 1e-9);
        assert!((times.megabytes_per_second(3_000_000) - 100.0).abs() < 1e-9);
    }
}
