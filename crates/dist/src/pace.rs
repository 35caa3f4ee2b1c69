//! [`Pace`]: whether work that is done again and again is short enough to be done on a thread of the transport;
//! [`Dispatcher`]: where what waits for messages goes on.
//!
//! Work that runs on the thread which has read its message wakes no other thread, but holds up the messages behind it. So
//! the work is tried there, and its time taken. After a long run the next runs are left to the host's queue: one, then two,
//! four and so on; a short run sets that back. A function that takes long holds up others once in some thousand runs.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tfrt_async::queue::{ConcurrentWorkQueue, Task};

use crate::transport::Transport;

/// The time above which work is long.
const SHORT: Duration = Duration::from_micros(200);

/// The most times in a row that are left to the queue.
const MAX_LEFT: u32 = 4_096;

/// A record of how long something took.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Record>);

#[derive(Debug, Default)]
struct Record {
    /// How many times are left to the queue before it is tried again.
    n_left: u32,
    /// How many it was the last time that it took long.
    n_before: u32,
}

impl Pace {
    /// Returns whether the work is to be done at once; if so it is to be [measured](Self::measure).
    pub fn is_short(&self) -> bool {
        let mut record = self.lock();
        let is_short = record.n_left == 0;
        record.n_left = record.n_left.saturating_sub(1);
        is_short
    }

    /// Does the work, and notes how long it takes.
    pub fn measure<R>(&self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        self.took(begin.elapsed());
        result
    }

    fn took(&self, time: Duration) {
        let mut record = self.lock();
        record.n_before = match time <= SHORT {
            true => 0,
            false => (2 * record.n_before).clamp(1, MAX_LEFT),
        };
        record.n_left = record.n_before;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs what waits for messages of a context: on the thread that it becomes ready on if that is a worker's, or one of the
/// transport's and what ran before was short; else on the host's queue.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    queue: Arc<dyn ConcurrentWorkQueue>,
    transport: Weak<dyn Transport>,
    pace: Arc<Pace>,
}

impl Dispatcher {
    /// Returns one that knows nothing of what it runs.
    pub fn new(queue: &Arc<dyn ConcurrentWorkQueue>, transport: &Arc<dyn Transport>) -> Dispatcher {
        Dispatcher {
            queue: queue.clone(),
            transport: Arc::downgrade(transport),
            pace: Arc::default(),
        }
    }

    /// Runs work, here or on the queue.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) {
        if self.queue.is_worker_thread() {
            return work();
        }
        let is_own = self
            .transport
            .upgrade()
            .is_some_and(|it| it.is_own_thread());
        match is_own && self.pace.is_short() {
            true => self.pace.measure(work),
            false => self.queue.add_task(Task::new(work)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of `n` times are done at once, if each takes `time`.
    fn n_at_once(pace: &Pace, n: usize, time: Duration) -> usize {
        let at_once = (0..n).filter(|_| {
            let is_short = pace.is_short();
            if is_short {
                pace.took(time);
            }
            is_short
        });
        at_once.count()
    }

    #[test]
    fn short_work_is_done_at_once_and_long_work_is_left() {
        let pace = Pace::default();
        assert_eq!(n_at_once(&pace, 1_000, SHORT), 1_000);
        let long = 10 * SHORT;
        // 1 + 1, 1 + 2, 1 + 4, ..: each time of the first kind is followed by twice as many of the second.
        assert_eq!(n_at_once(&pace, 1_000, long), 10);
        assert_eq!(n_at_once(&pace, 100_000, long), 26);
    }

    #[test]
    fn work_that_was_long_once_is_soon_done_at_once_again() {
        let pace = Pace::default();
        assert_eq!(n_at_once(&pace, 1, 10 * SHORT), 1);
        assert_eq!(n_at_once(&pace, 100, SHORT), 99);
    }
}
