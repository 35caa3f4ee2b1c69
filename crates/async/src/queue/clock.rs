//! [`Clock`]: a source of time for timers and deadlines, which tests can move.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A source of time for timers and deadlines.
///
/// Who has none reads the time of the system, and costs no more than without this trait. Searches of idle workers and
/// threads that wait for values go by the system's time whatever the clock is.
pub trait Clock: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Returns how long a thread may sleep that waits for `deadline`. `None` if time doesn't pass by itself: then whoever
    /// moves it tells those that have [attached](Self::attach) themselves.
    fn time_until(&self, deadline: Instant) -> Option<Duration> {
        Some(deadline.saturating_duration_since(self.now()))
    }

    /// Registers a queue of timers, which is told when the time is moved.
    fn attach(&self, timers: Weak<dyn Timers>) {
        drop(timers);
    }
}

/// Timers that go by a [`Clock`] which somebody moves.
pub trait Timers: Send + Sync {
    /// Returns the nearest deadline.
    fn nearest(&self) -> Option<Instant>;

    /// Waits until every timer has fired whose deadline is not after the clock's time.
    fn catch_up(&self);
}

/// A clock that stands still until it is advanced.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::mpsc::channel;
/// use std::time::Duration;
/// use tfrt_async::queue::{ManualClock, TimerQueue};
///
/// let clock = Arc::new(ManualClock::new());
/// let timers = TimerQueue::with_clock(clock.clone());
/// let (sender, receiver) = channel();
/// timers.schedule_after(Duration::from_secs(3600), move || sender.send("an hour").unwrap());
/// clock.advance(Duration::from_secs(3599));
/// assert!(receiver.try_recv().is_err());
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(receiver.try_recv(), Ok("an hour"));
/// ```
pub struct ManualClock {
    now: Mutex<Instant>,
    timers: Mutex<Vec<Weak<dyn Timers>>>,
}

/// Locks a mutex whose content is consistent whatever happens.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ManualClock {
    /// Makes a clock that shows the time of the system at this moment.
    pub fn new() -> ManualClock {
        ManualClock {
            now: Mutex::new(Instant::now()),
            timers: Mutex::default(),
        }
    }

    /// Lets time pass: goes from one deadline to the next, and at each waits until what is due has fired, timers included
    /// that were set by others. Not to be called by one of them.
    ///
    /// # Panics
    ///
    /// If the time is too late for the system's clock.
    pub fn advance(&self, by: Duration) {
        let end = self.now() + by;
        loop {
            let mut timers: Vec<Arc<dyn Timers>> = Vec::new();
            lock(&self.timers).retain(|weak| {
                timers.extend(weak.upgrade());
                weak.strong_count() > 0
            });
            let nearest = timers.iter().filter_map(|timers| timers.nearest()).min();
            let nearest = nearest.filter(|nearest| *nearest <= end);
            let mut now = lock(&self.now);
            *now = nearest.unwrap_or(end).max(*now);
            drop(now);
            timers.iter().for_each(|timers| timers.catch_up());
            if nearest.is_none() {
                return;
            }
        }
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        ManualClock::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        *lock(&self.now)
    }

    fn time_until(&self, _: Instant) -> Option<Duration> {
        None
    }

    fn attach(&self, timers: Weak<dyn Timers>) {
        lock(&self.timers).push(timers);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::TimerQueue;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn timers_fire_when_the_clock_comes_to_them_each_at_its_time() {
        let clock = Arc::new(ManualClock::new());
        let begin = clock.now();
        let (sender, receiver) = channel();
        let queues = [(); 2].map(|()| TimerQueue::with_clock(clock.clone()));
        for (name, after, queue) in [("c", 3, 0), ("a", 1, 0), ("b", 2, 1), ("d", 30, 1)] {
            let (sender, clock) = (sender.clone(), clock.clone());
            queues[queue].schedule_after(after * HOUR, move || {
                sender.send((name, clock.now() - begin)).unwrap();
            });
        }
        clock.advance(10 * HOUR);
        let fired: Vec<_> = receiver.try_iter().collect();
        assert_eq!(fired, [("a", HOUR), ("b", 2 * HOUR), ("c", 3 * HOUR)]);
        assert_eq!(clock.now() - begin, 10 * HOUR);
        clock.advance(20 * HOUR);
        assert_eq!(receiver.try_recv(), Ok(("d", 30 * HOUR)));
    }

    #[test]
    fn timer_that_is_set_again_and_again_fires_as_often_as_it_would() {
        fn again(timers: &Arc<TimerQueue>, tell: std::sync::mpsc::Sender<()>) {
            let weak = Arc::downgrade(timers);
            timers.schedule_after(HOUR, move || {
                tell.send(()).unwrap();
                if let Some(timers) = weak.upgrade() {
                    again(&timers, tell);
                }
            });
        }
        let clock = Arc::new(ManualClock::new());
        let timers = Arc::new(TimerQueue::with_clock(clock.clone()));
        let (sender, receiver) = channel();
        again(&timers, sender);
        clock.advance(100 * HOUR);
        assert_eq!(receiver.try_iter().count(), 100);
    }

    #[test]
    fn clock_is_not_held_up_by_timers_that_are_cancelled_or_gone() {
        let clock = Arc::new(ManualClock::new());
        let timers = TimerQueue::with_clock(clock.clone());
        assert!(timers.schedule_after(HOUR, || unreachable!()).cancel());
        let gone = TimerQueue::with_clock(clock.clone());
        gone.schedule_after(HOUR, || unreachable!("it was dropped"));
        drop(gone);
        clock.advance(2 * HOUR);
        assert_eq!(timers.pending(), 0);
    }
}
