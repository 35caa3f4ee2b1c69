//! The sleep protocol: when a worker parks, and who wakes it.
//!
//! One word counts the workers that *sleep* and those that *search*, and says whether the queue
//! is closed and whether somebody *watches* for it to come to rest. Every change of the word is
//! a read-modify-write, so the changes have one order, and each sees those before it.
//!
//! ```text
//!            begin_search            fall_asleep
//!  running ---------------> searching ----------> sleeping
//!     ^                      |     ^                  |
//!     +----- end_search -----+     +--- wake_one -----+
//!     |                                               ^
//!     +------------------ fall_asleep ----------------+
//! ```
//!
//! Whoever adds work calls [`SleepProtocol::announce`] after the work is visible. It wakes a sleeper if
//! there is one and nobody searches: a searcher will find the work, and when it does it wakes
//! the next one if there is more. So a burst of tasks wakes one worker after the other, and a
//! single task wakes one.
//!
//! # Why no wake-up is lost
//!
//! A worker that stops searching, to sleep or to run what it found, changes the word first and
//! looks at every queue afterwards. Adding work and that look are ordered, since both are
//! read-modify-writes of the same counter, or happen under the same lock (`Thief::has_items`,
//! `Injector::has_tasks`). If the work came first, the look sees it. If the look came first, the
//! announcement comes after the change of the word, and sees one searcher less or one sleeper
//! more. Now take the announcement's reading of the word. If somebody searches in it, that
//! searcher will stop searching later, and look later. If nobody searches and somebody sleeps,
//! a sleeper is woken and searches. If nobody does either, all run, and will look before they
//! sleep.
//!
//! (A store of the work and a load of the word against a store of the word and a load of the
//! work would be the same with sequentially consistent fences, which no checker follows.)
//!
//! # Invariants
//!
//! * The number of sleepers in the word is the length of the list, while the lock is free.
//! * Whoever takes a worker from the list counts it as searching, and opens its gate once.

use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

const SLEEPER: u64 = 1;
const SEARCHER: u64 = 1 << 16;
const COUNT: u64 = (1 << 16) - 1;
const CLOSED: u64 = 1 << 32;
const WATCHED: u64 = 1 << 33;

/// The most workers that can be counted.
pub(super) const MAX_WORKERS: usize = 1 << 14;

/// A snapshot of the protocol's word.
#[derive(Clone, Copy, Debug)]
pub(super) struct SleepWord(u64);

impl SleepWord {
    /// Returns how many workers sleep.
    pub(super) fn sleepers(self) -> u64 {
        self.0 & COUNT
    }

    /// Returns how many workers are awake and look for work.
    pub(super) fn searchers(self) -> u64 {
        (self.0 / SEARCHER) & COUNT
    }

    /// Returns whether the queue takes no more work.
    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Returns whether somebody waits for the queue to come to rest.
    pub(super) fn is_watched(self) -> bool {
        self.0 & WATCHED != 0
    }
}

/// A semaphore of one worker: it lets one thread through for each time it is opened.
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *lock(&self.open) = true;
        self.opened.notify_one();
    }

    fn pass(&self) {
        let mut open = lock(&self.open);
        while !*open {
            open = self
                .opened
                .wait(open)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *open = false;
    }
}

/// The sleep protocol of a set of workers.
pub(super) struct SleepProtocol {
    word: AtomicU64,
    sleepers: Mutex<Vec<usize>>,
    gates: Box<[Gate]>,
    max_searchers: u64,
}

/// Locks a mutex whose content is consistent whenever user code could panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SleepProtocol {
    /// Makes the protocol for workers numbered below `n_workers`, all of them running.
    pub(super) fn new(n_workers: usize) -> SleepProtocol {
        assert!(
            n_workers <= MAX_WORKERS,
            "a queue has at most {MAX_WORKERS} workers"
        );
        let gate = |_| Gate {
            open: Mutex::new(false),
            opened: Condvar::new(),
        };
        SleepProtocol {
            word: AtomicU64::new(0),
            sleepers: Mutex::new(Vec::with_capacity(n_workers)),
            gates: (0..n_workers).map(gate).collect(),
            max_searchers: u64::try_from(n_workers / 2).map_or(1, |half| half.max(1)),
        }
    }

    /// Reads the word without ordering anything.
    #[inline]
    pub(super) fn peek(&self) -> SleepWord {
        // Ordering: a hint.
        SleepWord(self.word.load(Ordering::Relaxed))
    }

    /// Reads the word after all that came before it in the word's order.
    pub(super) fn read(&self) -> SleepWord {
        // Ordering: a read-modify-write, so that of this and another change one sees the other:
        // pairs with `watch`.
        SleepWord(self.word.fetch_add(0, Ordering::AcqRel))
    }

    /// Makes sure that a worker looks for the work that the caller has just made visible. Returns
    /// whether a sleeper was woken.
    #[inline]
    pub(super) fn announce(&self) -> bool {
        // Ordering: making the work visible acquired what a worker that overlooked it had done
        // to the word, so even a relaxed load sees that.
        let word = self.peek();
        if word.sleepers() == 0 || word.searchers() > 0 {
            return false;
        }
        self.wake_one()
    }

    /// Starts to search, if not enough others do.
    pub(super) fn begin_search(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while SleepWord(word).searchers() < self.max_searchers {
            // Ordering: all changes of the word acquire and release, so that each one comes
            // after those that it follows.
            match self.word.compare_exchange(
                word,
                word + SEARCHER,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    /// Stops searching, since work was found. If nobody else searches and somebody sleeps, asks
    /// `more_work` whether there is more, and announces it.
    pub(super) fn end_search(&self, more_work: impl FnOnce() -> bool) -> bool {
        // Ordering: as in `begin_search`; the look comes after it.
        let before = SleepWord(self.word.fetch_sub(SEARCHER, Ordering::AcqRel));
        let is_last = before.searchers() == 1 && before.sleepers() > 0;
        is_last && more_work() && self.announce()
    }

    /// Puts worker `index` to sleep until it is woken, unless `stay` finds a reason not to when
    /// it looks at every queue. Either way the worker is searching afterwards. Tells whether it
    /// slept.
    pub(super) fn sleep_unless(
        &self,
        index: usize,
        searching: bool,
        stay: impl FnOnce(SleepWord) -> bool,
    ) -> bool {
        let word = self.fall_asleep(index, searching);
        if stay(word) {
            self.stay_awake(index);
            return false;
        }
        self.gates[index].pass();
        true
    }

    /// Lists the worker as sleeping. It may already be woken when this returns.
    fn fall_asleep(&self, index: usize, searching: bool) -> SleepWord {
        let mut sleepers = lock(&self.sleepers);
        sleepers.push(index);
        let change = if searching {
            SLEEPER.wrapping_sub(SEARCHER)
        } else {
            SLEEPER
        };
        // Ordering: as in `begin_search`; the look comes after it.
        SleepWord(self.word.fetch_add(change, Ordering::AcqRel))
    }

    /// Takes the sleep back.
    fn stay_awake(&self, index: usize) {
        let mut sleepers = lock(&self.sleepers);
        if let Some(at) = sleepers.iter().rposition(|&sleeper| sleeper == index) {
            sleepers.remove(at);
            // Ordering: as in `begin_search`.
            self.word.fetch_add(SEARCHER - SLEEPER, Ordering::AcqRel);
            return;
        }
        drop(sleepers);
        // Somebody was faster, and has opened the gate or is about to.
        self.gates[index].pass();
    }

    /// Wakes the worker that slept last; its caches are the warmest.
    fn wake_one(&self) -> bool {
        let mut sleepers = lock(&self.sleepers);
        // Another announcement may have been faster: its sleeper will find this work, too.
        if self.peek().searchers() > 0 {
            return false;
        }
        let Some(index) = sleepers.pop() else {
            return false;
        };
        // Ordering: as in `begin_search`.
        self.word.fetch_add(SEARCHER - SLEEPER, Ordering::AcqRel);
        drop(sleepers);
        self.gates[index].open();
        true
    }

    /// Marks the queue closed and wakes everybody.
    pub(super) fn close(&self) {
        // Ordering: as in `begin_search`.
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
        loop {
            let mut sleepers = lock(&self.sleepers);
            let Some(index) = sleepers.pop() else { return };
            // Ordering: as in `begin_search`.
            self.word.fetch_add(SEARCHER - SLEEPER, Ordering::AcqRel);
            drop(sleepers);
            self.gates[index].open();
        }
    }

    /// Marks the queue as watched, or not: whoever changes or [reads](Self::read) the word from
    /// now on sees it, and otherwise the caller sees what they did before.
    pub(super) fn watch(&self, watched: bool) {
        // Ordering: as in `begin_search`.
        if watched {
            self.word.fetch_or(WATCHED, Ordering::AcqRel);
        } else {
            self.word.fetch_and(!WATCHED, Ordering::AcqRel);
        }
    }
}
