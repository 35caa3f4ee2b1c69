//! [`TimerQueue`]: callbacks that run at given times.
//!
//! One thread, made when the first timer is set, sleeps until the nearest deadline and runs its
//! callback. Callbacks should be short: they resolve a promise, set a cancellation word or add a
//! task. Nothing is locked while they run.
//!
//! # Invariants
//!
//! * A callback is in its entry, or its owner is running or dropping it: it is taken out once,
//!   by whoever comes first of the timer thread, [`TimerHandle::cancel`] and the queue's drop.
//! * `n_pending` counts callbacks from before they can be seen until after they were dropped.
//!
//! With a [`Clock`] that somebody moves the thread sleeps until it is told, and tells when it has caught up. The system's
//! time is read without one.

use std::cmp::Ordering as Compare;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::blocking::join_others;
use super::clock::{Clock, Timers};
use super::sleep::lock;
use super::task::Task;
use super::unwind::{drop_caught, run_caught};
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, thread};

/// The number of cancelled entries from which on they are removed from the heap, if they are half of all. The heap
/// keeps room for as many entries, at least.
const SWEEP_FROM: usize = 64;

/// A queue of callbacks that run at given times, on a thread of its own.
///
/// Timers with an earlier deadline fire first; of equal deadlines, the one that was set first.
/// Dropping the queue drops the callbacks that have not fired.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::channel;
/// use std::time::Duration;
/// use tfrt_async::queue::TimerQueue;
///
/// let timers = TimerQueue::new();
/// let (sender, receiver) = channel();
/// timers.schedule_after(Duration::from_millis(1), move || sender.send("fired").unwrap());
/// assert_eq!(receiver.recv(), Ok("fired"));
/// ```
pub struct TimerQueue {
    // Of the standard library, so that a clock can hold it whatever its type is.
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when the nearest deadline may have changed, or the queue ends.
    changed: Condvar,
    /// Notified when nothing is due any more, for those who wait for a clock that they have moved.
    caught_up: Condvar,
    /// The clock of the deadlines; `None` is the system's.
    clock: Option<Arc<dyn Clock>>,
    n_pending: AtomicUsize,
    n_cancelled: AtomicUsize,
}

#[derive(Default)]
struct State {
    heap: BinaryHeap<Entry>,
    n_set: u64,
    ended: bool,
    /// Whether the thread is running a callback.
    is_firing: bool,
    thread: Option<thread::JoinHandle<()>>,
}

struct Entry {
    deadline: Instant,
    sequence: u64,
    callback: Arc<Mutex<Option<Task>>>,
}

impl State {
    /// Returns whether a timer is to fire by this time.
    fn is_due(&self, now: Instant) -> bool {
        let nearest = self.heap.peek();
        nearest.is_some_and(|nearest| nearest.deadline <= now)
    }

    /// Gives back most of the room that the heap does not need any more, so that a burst of timers is forgotten.
    fn shrink(&mut self) {
        let n_kept = SWEEP_FROM.max(2 * self.heap.len());
        if self.heap.capacity() > 2 * n_kept {
            self.heap.shrink_to(n_kept);
        }
    }
}

impl Entry {
    fn is_cancelled(&self) -> bool {
        lock(&self.callback).is_none()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Compare::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Compare> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Compares by deadline, reversed: the heap gives the greatest, so the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Compare {
        (other.deadline, other.sequence).cmp(&(self.deadline, self.sequence))
    }
}

/// A handle to one timer. Dropping the handle leaves the timer alone.
#[derive(Clone)]
pub struct TimerHandle {
    callback: Arc<Mutex<Option<Task>>>,
    shared: Arc<Shared>,
}

impl TimerHandle {
    /// Drops the callback, if it has not begun; tells whether that was so.
    pub fn cancel(&self) -> bool {
        let Some(callback) = lock(&self.callback).take() else {
            return false;
        };
        // Ordering: a hint.
        let n_before = self.shared.n_cancelled.fetch_add(1, Ordering::Relaxed);
        self.shared.discard(callback);
        // It is "negative" while the timer thread meets an entry that is not counted yet.
        let n_cancelled = n_before.wrapping_add(1);
        // Ordering: a hint, too: `sweep` looks again.
        if n_cancelled >= SWEEP_FROM.max(self.shared.n_pending.load(Ordering::Relaxed)) {
            self.shared.sweep(&mut lock(&self.shared.state));
        }
        true
    }

    /// Returns whether the timer has neither fired nor been cancelled.
    pub fn is_pending(&self) -> bool {
        lock(&self.callback).is_some()
    }
}

impl fmt::Debug for TimerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerHandle")
            .field("is_pending", &self.is_pending())
            .finish()
    }
}

impl Default for TimerQueue {
    fn default() -> Self {
        TimerQueue::new()
    }
}

impl TimerQueue {
    /// Makes an empty queue, without a thread yet.
    pub fn new() -> TimerQueue {
        TimerQueue::by(None)
    }

    /// Makes an empty queue whose timers go by a clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> TimerQueue {
        let timers = TimerQueue::by(Some(clock.clone()));
        let weak = Arc::downgrade(&timers.shared);
        clock.attach(weak);
        timers
    }

    fn by(clock: Option<Arc<dyn Clock>>) -> TimerQueue {
        let shared = Shared {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            caught_up: Condvar::new(),
            clock,
            n_pending: AtomicUsize::new(0),
            n_cancelled: AtomicUsize::new(0),
        };
        TimerQueue {
            shared: Arc::new(shared),
        }
    }

    /// Runs `callback` at `deadline`, or at once if that has passed.
    ///
    /// If the system refuses a thread the callback is dropped, and the handle is not pending.
    pub fn schedule_at(
        &self,
        deadline: Instant,
        callback: impl FnOnce() + Send + 'static,
    ) -> TimerHandle {
        let shared = &self.shared;
        let callback = Arc::new(Mutex::new(Some(Task::new(callback))));
        let handle = TimerHandle {
            callback: callback.clone(),
            shared: shared.clone(),
        };
        // Ordering: it comes before the callback is visible, which the lock publishes.
        shared.n_pending.fetch_add(1, Ordering::Relaxed);
        let mut state = lock(&shared.state);
        if !shared.has_thread(&mut state) {
            drop(state);
            handle.cancel();
            return handle;
        }
        let sequence = state.n_set;
        state.n_set += 1;
        let is_nearest = state
            .heap
            .peek()
            .is_none_or(|nearest| deadline < nearest.deadline);
        state.heap.push(Entry {
            deadline,
            sequence,
            callback,
        });
        drop(state);
        if is_nearest {
            shared.changed.notify_one();
        }
        handle
    }

    /// Runs `callback` after `delay`.
    ///
    /// A delay too long for the clock never ends; such a callback is kept until it is cancelled
    /// or the queue is dropped.
    pub fn schedule_after(
        &self,
        delay: Duration,
        callback: impl FnOnce() + Send + 'static,
    ) -> TimerHandle {
        let now = self.shared.now();
        let century = Duration::from_secs(100 * 366 * 24 * 3600);
        self.schedule_at(now.checked_add(delay).unwrap_or(now + century), callback)
    }

    /// Returns how many callbacks have not yet fired or are running, and are not cancelled.
    pub fn pending(&self) -> usize {
        // Ordering: pairs with the release in `Shared::discard` and `Shared::fire`.
        self.shared.n_pending.load(Ordering::Acquire)
    }
}

impl Timers for Shared {
    fn nearest(&self) -> Option<Instant> {
        lock(&self.state).heap.peek().map(|entry| entry.deadline)
    }

    fn catch_up(&self) {
        let mut state = lock(&self.state);
        // Whoever holds the lock has the time before it sleeps; so it is told.
        self.changed.notify_one();
        while !state.ended && (state.is_firing || state.is_due(self.now())) {
            let woken = self.caught_up.wait(state);
            state = woken.unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl Shared {
    fn now(&self) -> Instant {
        match &self.clock {
            Some(clock) => clock.now(),
            None => Instant::now(),
        }
    }

    /// Starts the thread if there is none yet.
    fn has_thread(self: &Arc<Self>, state: &mut State) -> bool {
        if state.thread.is_none() {
            let shared = self.clone();
            let builder = thread::Builder::new().name("tfrt-timer".to_owned());
            state.thread = builder.spawn(move || shared.work()).ok();
        }
        state.thread.is_some()
    }

    /// Runs callbacks on the timer thread until the queue ends.
    fn work(&self) {
        #[cfg(debug_assertions)]
        crate::accounting::register_thread();
        let mut state = lock(&self.state);
        while !state.ended {
            let now = self.now();
            match state.heap.peek().map(|nearest| nearest.deadline) {
                Some(deadline) if deadline <= now => {
                    let entry = state.heap.pop().expect("it was just seen");
                    state.shrink();
                    state.is_firing = true;
                    drop(state);
                    self.fire(&entry);
                    state = lock(&self.state);
                    state.is_firing = false;
                }
                deadline => {
                    let time = match &self.clock {
                        None => deadline.map(|deadline| deadline - now),
                        Some(clock) => {
                            self.caught_up.notify_all();
                            deadline.and_then(|deadline| clock.time_until(deadline))
                        }
                    };
                    state = self.wait(state, time);
                }
            }
        }
        drop(state);
        self.caught_up.notify_all();
    }

    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        time: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        match time {
            Some(time) => {
                let woken = self.changed.wait_timeout(state, time);
                woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
            None => {
                let woken = self.changed.wait(state);
                woken.unwrap_or_else(|poisoned| poisoned.into_inner())
            }
        }
    }

    fn fire(&self, entry: &Entry) {
        let callback = lock(&entry.callback).take();
        if let Some(callback) = callback {
            run_caught(callback);
            // Ordering: pairs with the acquire in `TimerQueue::pending`.
            self.n_pending.fetch_sub(1, Ordering::Release);
            return;
        }
        // Ordering: a hint.
        self.n_cancelled.fetch_sub(1, Ordering::Relaxed);
    }

    fn discard(&self, callback: Task) {
        drop_caught(callback);
        // Ordering: pairs with the acquire in `TimerQueue::pending`.
        self.n_pending.fetch_sub(1, Ordering::Release);
    }

    /// Removes cancelled entries when they are many, so that they don't pile up until their
    /// deadlines.
    fn sweep(&self, state: &mut State) {
        // Ordering: a hint. A handle whose entry never got into the heap makes it too high, and
        // one that is being cancelled too low; both are put right here.
        let n_cancelled = self.n_cancelled.load(Ordering::Relaxed);
        if n_cancelled < SWEEP_FROM || n_cancelled < state.heap.len() / 2 {
            return;
        }
        state.heap.retain(|entry| !entry.is_cancelled());
        self.n_cancelled.store(0, Ordering::Relaxed);
        state.shrink();
    }
}

impl Drop for TimerQueue {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.ended = true;
        let thread = state.thread.take();
        let entries = std::mem::take(&mut state.heap);
        drop(state);
        self.shared.changed.notify_one();
        for entry in entries {
            let callback = lock(&entry.callback).take();
            if let Some(callback) = callback {
                self.shared.discard(callback);
            }
        }
        join_others(thread.into_iter().collect());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const FAR: Duration = Duration::from_secs(3600);

    #[test]
    fn earlier_deadlines_fire_first_and_equal_ones_in_order() {
        let timers = TimerQueue::new();
        let (sender, receiver) = channel();
        // The first callback holds the thread until all others are set.
        let (release, released) = channel::<()>();
        let now = Instant::now();
        timers.schedule_at(now, move || released.recv().unwrap());
        for (name, delay) in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2)] {
            let sender = sender.clone();
            let deadline = now + Duration::from_micros(delay);
            timers.schedule_at(deadline, move || sender.send(name).unwrap());
        }
        drop(sender);
        release.send(()).unwrap();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), ["a", "b1", "b2", "c"]);
    }

    #[test]
    fn nearer_timer_is_not_held_up_by_a_far_one() {
        let timers = TimerQueue::new();
        let (sender, receiver) = channel();
        timers.schedule_after(FAR, || unreachable!("an hour has not passed"));
        timers.schedule_after(Duration::ZERO, move || sender.send(()).unwrap());
        assert_eq!(receiver.recv(), Ok(()));
    }

    #[test]
    fn cancelled_timer_drops_its_callback_at_once() {
        let timers = TimerQueue::new();
        let held = Arc::new(());
        let inside = held.clone();
        let timer = timers.schedule_after(FAR, move || drop(inside));
        assert_eq!((timers.pending(), timer.is_pending()), (1, true));
        assert!(timer.cancel());
        assert!(!timer.cancel());
        assert_eq!((Arc::strong_count(&held), timers.pending()), (1, 0));
    }

    #[test]
    fn pending_timers_are_dropped_with_the_queue() {
        let held = Arc::new(());
        let timers = TimerQueue::new();
        for delay in [FAR, Duration::MAX] {
            let inside = held.clone();
            timers.schedule_after(delay, move || drop(inside));
        }
        assert_eq!(timers.pending(), 2);
        drop(timers);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn cancelled_entries_do_not_pile_up() {
        let timers = TimerQueue::new();
        for _ in 0..10_000 {
            timers.schedule_after(FAR, || ()).cancel();
        }
        assert!(lock(&timers.shared.state).heap.len() <= 2 * SWEEP_FROM);
    }

    #[test]
    fn burst_of_timers_is_forgotten_when_they_are_cancelled_or_fire() {
        let timers = TimerQueue::new();
        let set = |_| timers.schedule_after(FAR, || ());
        let handles: Vec<_> = (0..10_000).map(set).collect();
        assert!(handles.iter().all(TimerHandle::cancel));
        let state = lock(&timers.shared.state);
        assert!(state.heap.len() <= SWEEP_FROM);
        assert!(state.heap.capacity() <= 4 * SWEEP_FROM);
        drop(state);

        let soon = Instant::now() + Duration::from_millis(50);
        for _ in 0..10_000 {
            timers.schedule_at(soon, || ());
        }
        while timers.pending() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(lock(&timers.shared.state).heap.capacity() <= 4 * SWEEP_FROM);
    }

    #[test]
    fn panicking_callback_leaves_the_others_alone() {
        let timers = TimerQueue::new();
        let (sender, receiver) = channel();
        timers.schedule_after(Duration::ZERO, || {
            std::panic::resume_unwind(Box::new("expected"))
        });
        timers.schedule_after(Duration::ZERO, move || sender.send(()).unwrap());
        assert_eq!(receiver.recv(), Ok(()));
    }

    #[test]
    fn queue_may_be_dropped_by_its_own_callback() {
        let timers = Arc::new(TimerQueue::new());
        let (sender, receiver) = channel();
        let (give, given) = channel::<Arc<TimerQueue>>();
        timers.schedule_after(Duration::ZERO, move || {
            drop(given.recv().unwrap());
            sender.send(()).unwrap();
        });
        give.send(timers).unwrap();
        assert_eq!(receiver.recv(), Ok(()));
    }
}
