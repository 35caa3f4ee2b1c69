//! [`RwQueueLock`]: a lock for readers and writers who get in by arrival, bound to no thread.
//!
//! It guards what lies elsewhere: a variable's tensor, say. Who finds it taken gets a value to await, so that no
//! worker of a queue waits; foreign code, on a thread of its own, may block.
//!
//! # Protocol
//!
//! | Word | Means |
//! |---|---|
//! | [`WRITER`] | somebody holds it for writing; then nobody reads |
//! | [`QUEUED`] | somebody waits, so that nobody gets in by the word alone |
//! | the rest, times [`READER`] | how many hold it for reading |
//!
//! [`QUEUED`] is set and cleared under the mutex of the list of those who wait, and is set exactly while that list has
//! somebody. Who leaves and finds it set hands the lock over, under the mutex: to the first, and to the readers that
//! follow a reader. Who is about to wait sets it by an exchange that fails if the lock has become free meanwhile. So
//! either the one who leaves sees the flag, or the one who comes sees that the lock is free.
//!
//! Every way out is a release, every way in an acquire of the same word: what a writer did is seen by whoever comes
//! after.

use std::collections::VecDeque;
use std::fmt;
use std::sync::PoisonError;

use crate::storage::{Heap, Value};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use crate::{AsyncValue, Promise};

const WRITER: usize = 1;
const QUEUED: usize = 2;
const READER: usize = 4;

/// The kind of a right to what a [`RwQueueLock`] guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Together with other readers.
    Read,
    /// Alone.
    Write,
}

/// A lock for readers and writers, who get in by arrival: a reader that comes after a waiting writer waits for it.
/// Clones are one lock.
///
/// Rights ([`RwHold`]) are bound to no thread, and end when they are dropped.
///
/// # Examples
///
/// ```
/// use tfrt_async::{LockMode, RwQueueLock};
///
/// let lock = RwQueueLock::new();
/// let (one, other) = (lock.try_read().unwrap(), lock.try_read().unwrap());
/// let writer = lock.acquire(LockMode::Write);
/// assert!(writer.get().is_none(), "it waits for both");
/// assert!(lock.try_read().is_none(), "who comes later gets in later");
/// drop(one);
/// std::thread::spawn(move || drop(other)).join().unwrap();
/// assert!(writer.get().is_some());
/// ```
#[derive(Clone)]
pub struct RwQueueLock(Arc<Shared>);

struct Shared {
    word: AtomicUsize,
    waiting: Mutex<VecDeque<Waiter>>,
}

struct Waiter {
    mode: LockMode,
    wake: Wake,
}

/// The receiver of a right: a promise for those who await it, or the seat of a thread that blocks.
enum Wake {
    Promise(Promise<RwHold>),
    Thread(Arc<Seat>),
}

/// The place of a blocked thread, where its right is put.
struct Seat {
    hold: Mutex<Option<RwHold>>,
    is_given: Condvar,
}

/// The right to what a [`RwQueueLock`] guards, until it is dropped.
#[must_use = "a right that is dropped has ended"]
pub struct RwHold {
    // Invariant: counted in the lock's word.
    lock: RwQueueLock,
    // Invariant: as the lock's word counts it.
    is_writing: AtomicBool,
}

impl Value for RwHold {
    const NAME: &'static str = "!tfrt.lock_hold";
    type Storage = Heap;
}

impl Default for RwQueueLock {
    fn default() -> RwQueueLock {
        RwQueueLock::new()
    }
}

impl RwQueueLock {
    /// Returns a lock that nobody holds.
    pub fn new() -> RwQueueLock {
        RwQueueLock(Arc::new(Shared {
            word: AtomicUsize::new(0),
            waiting: Mutex::new(VecDeque::new()),
        }))
    }

    /// Returns the right to read, unless somebody writes or waits.
    #[inline]
    pub fn try_read(&self) -> Option<RwHold> {
        self.try_acquire(LockMode::Read)
    }

    /// Returns the right to write, unless somebody holds the lock or waits.
    #[inline]
    pub fn try_write(&self) -> Option<RwHold> {
        self.try_acquire(LockMode::Write)
    }

    /// Returns a right, unless one would have to wait for it.
    #[inline]
    pub fn try_acquire(&self, mode: LockMode) -> Option<RwHold> {
        self.0.try_enter(mode).then(|| self.hold(mode))
    }

    /// Calls a function with the right to read held, unless one would have to wait for that: for short looks, which
    /// count no handle of the lock.
    ///
    /// # Errors
    ///
    /// The function, if it was not called.
    #[inline]
    pub fn try_read_with<R, F: FnOnce() -> R>(&self, look: F) -> Result<R, F> {
        if !self.0.try_enter(LockMode::Read) {
            return Err(look);
        }
        let leaving = Leaving(&self.0);
        let result = look();
        drop(leaving);
        Ok(result)
    }

    /// Returns a right as a value: there at once if nobody is in the way, else when all are gone that came before.
    ///
    /// The right ends when the last handle of the value is dropped, also of one that nobody looked at.
    pub fn acquire(&self, mode: LockMode) -> AsyncValue<RwHold> {
        if let Some(hold) = self.try_acquire(mode) {
            return AsyncValue::available(hold);
        }
        let mut waiting = self.0.lock();
        if !self.0.begin_waiting(mode, waiting.is_empty()) {
            drop(waiting);
            return AsyncValue::available(self.hold(mode));
        }
        let (promise, value) = AsyncValue::pending();
        let wake = Wake::Promise(promise);
        waiting.push_back(Waiter { mode, wake });
        value
    }

    /// Blocks the thread until it has the right. A worker of a queue must not: who holds the lock may need the worker.
    pub fn acquire_blocking(&self, mode: LockMode) -> RwHold {
        if let Some(hold) = self.try_acquire(mode) {
            return hold;
        }
        let mut waiting = self.0.lock();
        if !self.0.begin_waiting(mode, waiting.is_empty()) {
            drop(waiting);
            return self.hold(mode);
        }
        let seat = Arc::new(Seat {
            hold: Mutex::new(None),
            is_given: Condvar::new(),
        });
        let wake = Wake::Thread(Arc::clone(&seat));
        waiting.push_back(Waiter { mode, wake });
        drop(waiting);
        let mut given = seat.hold.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match given.take() {
                Some(hold) => return hold,
                None => {
                    given = seat
                        .is_given
                        .wait(given)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn hold(&self, mode: LockMode) -> RwHold {
        RwHold::new(self.clone(), mode)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters by the word alone, if nobody is in the way.
    #[inline]
    fn try_enter(&self, mode: LockMode) -> bool {
        // Ordering: only a guess, which the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let Some(entered) = entered(word, mode).filter(|_| word & QUEUED == 0) else {
                return false;
            };
            // Ordering: the acquire pairs with the releases in `leave`.
            match self.word.compare_exchange_weak(
                word,
                entered,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(found) => word = found,
            }
        }
    }

    /// Says that somebody waits, under the mutex; `is_first` if nobody did. Returns false if the lock has become free
    /// meanwhile, and was entered.
    fn begin_waiting(&self, mode: LockMode, is_first: bool) -> bool {
        if !is_first {
            return true;
        }
        // Ordering: only a guess, which the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, waits) = match entered(word, mode) {
                Some(entered) => (entered, false),
                None => (word | QUEUED, true),
            };
            // Ordering: of who enters as in `try_enter`; the flag is seen by whoever leaves, as both change one word.
            match self
                .word
                .compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return waits,
                Err(found) => word = found,
            }
        }
    }

    fn leave(lock: &Arc<Shared>, mode: LockMode) {
        let left = match mode {
            LockMode::Read => READER,
            LockMode::Write => WRITER,
        };
        // Ordering: the release pairs with the acquires of who enters; the acquire with the releases of readers that
        // left before, for whom the lock is handed over.
        let word = lock.word.fetch_sub(left, Ordering::AcqRel) - left;
        if word & QUEUED != 0 && word < READER {
            Shared::hand_over(lock);
        }
    }

    /// Gives the lock to those who are next. Called by who has left; others may have done it meanwhile.
    #[cold]
    fn hand_over(lock: &Arc<Shared>) {
        let mut next = VecDeque::new();
        let mut waiting = lock.lock();
        while let Some(first) = waiting.front() {
            let mode = first.mode;
            let is_last = waiting.len() == 1;
            // Ordering: only a guess, which the exchange decides.
            let mut word = lock.word.load(Ordering::Relaxed);
            let has_entered = loop {
                let Some(mut entered) = entered(word, mode) else {
                    break false;
                };
                if is_last {
                    entered &= !QUEUED;
                }
                // Ordering: the acquire pairs with the releases in `leave`; who is told gets it with the promise.
                match lock.word.compare_exchange(
                    word,
                    entered,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => break true,
                    Err(found) => word = found,
                }
            };
            if !has_entered {
                break;
            }
            next.extend(waiting.pop_front());
        }
        drop(waiting);
        // Without the mutex: what they do may lead back here.
        for Waiter { mode, wake } in next {
            let lock = RwQueueLock(Arc::clone(lock));
            let hold = RwHold::new(lock, mode);
            match wake {
                Wake::Promise(promise) => promise.resolve(hold),
                Wake::Thread(seat) => {
                    *seat.hold.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
                    seat.is_given.notify_one();
                }
            }
        }
    }
}

/// Returns the word with one more holder, if those who hold the lock let him in.
fn entered(word: usize, mode: LockMode) -> Option<usize> {
    match mode {
        LockMode::Read => (word & WRITER == 0).then(|| word.wrapping_add(READER)),
        LockMode::Write => (word & !QUEUED == 0).then_some(word | WRITER),
    }
}

impl RwHold {
    fn new(lock: RwQueueLock, mode: LockMode) -> RwHold {
        RwHold {
            lock,
            is_writing: AtomicBool::new(mode == LockMode::Write),
        }
    }

    /// Returns the kind of right.
    pub fn mode(&self) -> LockMode {
        // Ordering: who changes it holds the right, and orders others after that.
        match self.is_writing.load(Ordering::Relaxed) {
            true => LockMode::Write,
            false => LockMode::Read,
        }
    }

    /// Makes a right to read one to write, before those who wait, unless others read. Returns whether this is a right
    /// to write now.
    pub fn try_upgrade(&self) -> bool {
        if self.mode() == LockMode::Write {
            return true;
        }
        let word = &self.lock.0.word;
        // Ordering: only a guess, which the exchange decides.
        let mut found = word.load(Ordering::Relaxed);
        while found & !QUEUED == READER {
            let next = found & QUEUED | WRITER;
            // Ordering: the acquire pairs with the releases in `leave`, of readers that were here.
            match word.compare_exchange_weak(found, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    // Ordering: as in `mode`.
                    self.is_writing.store(true, Ordering::Relaxed);
                    return true;
                }
                Err(other) => found = other,
            }
        }
        false
    }

    /// Returns whether this is a right to what a lock guards.
    pub fn is_of(&self, lock: &RwQueueLock) -> bool {
        Arc::ptr_eq(&self.lock.0, &lock.0)
    }
}

impl Drop for RwHold {
    #[inline]
    fn drop(&mut self) {
        Shared::leave(&self.lock.0, self.mode());
    }
}

/// A reader that leaves when it is dropped, also by a panic.
struct Leaving<'a>(&'a Arc<Shared>);

impl Drop for Leaving<'_> {
    #[inline]
    fn drop(&mut self) {
        Shared::leave(self.0, LockMode::Read);
    }
}

impl fmt::Debug for RwHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RwHold({:?})", self.mode())
    }
}

impl fmt::Debug for RwQueueLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: a statistic.
        let word = self.0.word.load(Ordering::Relaxed);
        f.debug_struct("RwQueueLock")
            .field("readers", &(word / READER))
            .field("is_written", &(word & WRITER != 0))
            .field("is_queued", &(word & QUEUED != 0))
            .finish()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn rights_are_given_in_the_order_of_arrival() {
        let lock = RwQueueLock::new();
        let first = lock.try_write().unwrap();
        let modes = [
            LockMode::Read,
            LockMode::Read,
            LockMode::Write,
            LockMode::Read,
        ];
        let mut all: Vec<_> = modes.iter().map(|mode| Some(lock.acquire(*mode))).collect();
        let there = |all: &[Option<AsyncValue<RwHold>>]| {
            let is_there =
                |one: &Option<AsyncValue<RwHold>>| one.as_ref().is_some_and(|one| one.is_settled());
            all.iter().map(is_there).collect::<Vec<_>>()
        };
        assert_eq!(there(&all), [false; 4]);
        drop(first);
        assert_eq!(there(&all), [true, true, false, false]);
        assert!(lock.try_read().is_none(), "a writer waits");
        all[0] = None;
        assert_eq!(there(&all), [false, true, false, false]);
        all[1] = None;
        assert_eq!(there(&all), [false, false, true, false]);
        all[2] = None;
        assert_eq!(there(&all), [false, false, false, true]);
        assert!(lock.try_read().is_some() && lock.try_write().is_none());
        all[3] = None;
        assert!(lock.try_write().is_some());
    }

    #[test]
    fn a_reader_becomes_a_writer_if_nobody_else_reads() {
        let lock = RwQueueLock::new();
        let (one, other) = (lock.try_read().unwrap(), lock.try_read().unwrap());
        assert!(!one.try_upgrade() && one.mode() == LockMode::Read);
        let waiting = lock.acquire(LockMode::Write);
        drop(other);
        assert!(!waiting.is_settled(), "one still reads");
        assert!(one.try_upgrade() && one.try_upgrade());
        assert!(one.mode() == LockMode::Write && lock.try_read().is_none());
        drop(one);
        assert!(waiting.is_settled(), "who waited is next");
        drop(waiting);
        assert!(lock.try_write().is_some());
    }

    #[test]
    fn who_no_longer_wants_a_right_hands_it_on() {
        let lock = RwQueueLock::new();
        let first = lock.try_write().unwrap();
        let given_up = lock.acquire(LockMode::Write);
        let last = lock.acquire(LockMode::Write);
        drop(given_up);
        drop(first);
        assert!(last.is_settled());
        drop(last);
        assert!(lock.try_write().is_some());
    }

    #[test]
    fn a_million_who_wait_need_no_stack() {
        let lock = RwQueueLock::new();
        let first = lock.try_write().unwrap();
        let n = 100_000;
        let done = std::sync::Arc::new(std::sync::Mutex::new(0));
        for _ in 0..n {
            let (held, done) = (lock.acquire(LockMode::Write), done.clone());
            held.when_settled(move |held| {
                *done.lock().unwrap() += 1;
                drop(held);
            });
        }
        std::thread::Builder::new()
            .stack_size(1 << 18)
            .spawn(move || drop(first))
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(*done.lock().unwrap(), n);
        assert!(lock.try_write().is_some());
    }

    #[test]
    fn threads_that_block_get_in_one_after_the_other() {
        let lock = RwQueueLock::new();
        let n = std::sync::Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for index in 0..200 {
                        let mode = match index % 3 {
                            0 => LockMode::Read,
                            _ => LockMode::Write,
                        };
                        let hold = lock.acquire_blocking(mode);
                        assert!(hold.is_of(&lock) && hold.mode() == mode);
                        if mode == LockMode::Write {
                            let found = n.try_lock().expect("nobody else is in");
                            let before = *found;
                            drop(found);
                            *n.try_lock().expect("nobody else is in") = before + 1;
                        }
                    }
                });
            }
        });
        assert_eq!(*n.lock().unwrap(), 8 * 133);
        assert!(lock.try_read_with(|| 7).is_ok());
        assert!(lock.try_write().is_some());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use crate::sync::thread;

    /// A number behind a lock, which is read and written in two steps: loom shows old values to whoever the lock does not
    /// order after a writer, and lets another in between the steps if the lock does.
    struct Guarded {
        lock: RwQueueLock,
        number: AtomicUsize,
    }

    impl Guarded {
        fn add(&self) {
            // Ordering: the lock's.
            let before = self.number.load(Ordering::Relaxed);
            self.number.store(before + 1, Ordering::Relaxed);
        }

        fn look(&self) {
            // Ordering: the lock's.
            let first = self.number.load(Ordering::Relaxed);
            assert_eq!(self.number.load(Ordering::Relaxed), first);
        }
    }

    /// Adds one with the lock held, now or when it is there.
    fn add_in_turn(guarded: &Arc<Guarded>) {
        let own = Arc::clone(guarded);
        let held = guarded.lock.acquire(LockMode::Write);
        held.when_settled(move |held| {
            own.add();
            drop(held);
        });
    }

    fn look_in_turn(guarded: &Arc<Guarded>) {
        let own = Arc::clone(guarded);
        let held = guarded.lock.acquire(LockMode::Read);
        held.when_settled(move |held| {
            own.look();
            drop(held);
        });
    }

    fn check(
        n_preemptions: usize,
        n_added: usize,
        others: &'static [fn(&Arc<Guarded>)],
        own: fn(&Arc<Guarded>),
    ) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(n_preemptions);
        builder.check(move || {
            let guarded = Arc::new(Guarded {
                lock: RwQueueLock::new(),
                number: AtomicUsize::new(0),
            });
            let threads: Vec<_> = others
                .iter()
                .map(|other| {
                    let shared = Arc::clone(&guarded);
                    thread::spawn(move || other(&shared))
                })
                .collect();
            own(&guarded);
            for thread in threads {
                thread.join().unwrap();
            }
            let hold = guarded.lock.try_write().expect("everybody has left");
            // Ordering: the lock's.
            assert_eq!(guarded.number.load(Ordering::Relaxed), n_added);
            drop(hold);
        });
    }

    /// Adds one to two numbers with both locks held, the second of which is asked for when the first is there.
    fn add_to_both(first: &Arc<Guarded>, second: &Arc<Guarded>) {
        let (first, second) = (Arc::clone(first), Arc::clone(second));
        let held = first.lock.acquire(LockMode::Write);
        held.when_settled(move |held| {
            let next = second.lock.acquire(LockMode::Write);
            next.when_settled(move |next| {
                first.add();
                second.add();
                drop((held, next));
            });
        });
    }

    #[test]
    fn rw_queue_locks_that_are_taken_in_one_order_are_got_by_all() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(2);
        builder.check(|| {
            let guarded = || {
                Arc::new(Guarded {
                    lock: RwQueueLock::new(),
                    number: AtomicUsize::new(0),
                })
            };
            let (first, second) = (guarded(), guarded());
            let thread = {
                let (first, second) = (Arc::clone(&first), Arc::clone(&second));
                thread::spawn(move || add_to_both(&first, &second))
            };
            add_to_both(&first, &second);
            // Who needs one only comes in between.
            add_in_turn(&second);
            thread.join().unwrap();
            for (guarded, n) in [(&first, 2), (&second, 3)] {
                let hold = guarded.lock.try_write().expect("everybody has left");
                // Ordering: the lock's.
                assert_eq!(guarded.number.load(Ordering::Relaxed), n);
                drop(hold);
            }
        });
    }

    #[test]
    fn rw_queue_lock_lets_two_writers_in_one_after_the_other() {
        check(3, 3, &[add_in_turn], |guarded| {
            add_in_turn(guarded);
            add_in_turn(guarded);
        });
    }

    /// Adds one as a reader that becomes a writer, if nobody else reads.
    fn add_by_upgrade(guarded: &Arc<Guarded>) {
        let Some(hold) = guarded.lock.try_read() else {
            return add_in_turn(guarded);
        };
        guarded.look();
        match hold.try_upgrade() {
            true => guarded.add(),
            false => {
                drop(hold);
                add_in_turn(guarded);
            }
        }
    }

    #[test]
    fn rw_queue_lock_makes_readers_writers() {
        check(3, 2, &[add_by_upgrade], add_by_upgrade);
        check(2, 2, &[add_by_upgrade, look_in_turn], add_in_turn);
    }

    #[test]
    fn rw_queue_lock_loses_nobody_of_three() {
        check(2, 1, &[add_in_turn, look_in_turn], look_in_turn);
    }

    #[test]
    fn rw_queue_lock_wakes_threads_that_block() {
        check(
            2,
            2,
            &[|guarded| {
                let hold = guarded.lock.acquire_blocking(LockMode::Write);
                guarded.add();
                drop(hold);
            }],
            |guarded| {
                let hold = guarded.lock.acquire_blocking(LockMode::Write);
                guarded.add();
                drop(hold);
                let _ = guarded.lock.try_read_with(|| guarded.look());
            },
        );
    }
}
