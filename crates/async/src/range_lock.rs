//! [`RangeLock`]: a lock for readers and writers of ranges of bytes, which refuses rather than waits.
//!
//! Most blocks are used as a whole: then one word says how many read, or that somebody writes. Once
//! a block is [divided](RangeLock::divide), new holders are written into a table with their ranges,
//! so that writers of different parts do not meet. Who got in before that holds the whole block,
//! and those who come later still look at the word.
//!
//! # Protocol
//!
//! | Word | Means |
//! |---|---|
//! | bits 0 to 28 | how many hold the whole block for reading |
//! | [`FROZEN`] | nobody writes, so that whoever reads is not counted |
//! | [`WRITER`] | somebody holds it for writing; then nobody reads |
//! | [`DIVIDED`] | nobody gets in by the word any more, but readers of what is frozen |
//!
//! A holder by the word leaves with a release that a later one's acquire sees; holders by the table
//! are ordered by its mutex, which is held for a look at few entries.
//!
//! [`FROZEN`] is set and cleared by whoever has the lock for himself, by `&mut`: nobody holds a right
//! then, and whatever hands the lock on to other threads orders the writes before against their reads.
//! So a look at the word is all that a reader needs.
//!
//! [`DIVIDED`] is cleared by whoever has the lock for himself, if the table is empty: parts are held apart
//! while there are several, and what was made of them is read as a whole.

use std::ops::Range;

use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering};

const FROZEN: u32 = 1 << 29;
const WRITER: u32 = 1 << 30;
const DIVIDED: u32 = 1 << 31;
const MAX_READERS: u32 = FROZEN - 1;

/// A lock over a range of bytes, never waited for.
///
/// # Examples
///
/// ```
/// use tfrt_async::RangeLock;
///
/// let lock = RangeLock::new();
/// let reader = lock.try_read(0..8).unwrap();
/// assert!(lock.try_write(0..4).is_none());
/// lock.release(reader);
///
/// lock.divide();
/// let (left, right) = (lock.try_write(0..4), lock.try_write(4..8));
/// assert!(left.is_some() && right.is_some());
/// # lock.release(left.unwrap());
/// # lock.release(right.unwrap());
/// ```
#[derive(Debug, Default)]
pub struct RangeLock {
    word: AtomicU32,
    table: Mutex<HolderTable>,
}

/// The holders of parts of a divided lock. Behind an address of its own, so that locks are small: most are never
/// divided.
#[derive(Debug, Default)]
struct HolderTable(
    #[expect(clippy::box_collection, reason = "a third of the size")] Option<Box<Vec<Entry>>>,
);

/// The right to read or write a range, given back by [`RangeLock::release`].
///
/// One that is forgotten keeps its range for good. One that a frozen lock gave ends at the latest when
/// that is [thawed](RangeLock::thaw).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a range that is not released stays held"]
pub struct Hold(HoldKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum HoldKind {
    /// A reader of the whole, counted in the word.
    ForReading,
    /// A reader of a frozen lock, counted nowhere: nobody writes what is frozen.
    Frozen,
    /// The writer of the word.
    ForWriting,
    /// An entry of the table. Behind an address, so that the other rights move in registers.
    Part(Box<Entry>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    range: Range<usize>,
    is_writer: bool,
}

impl Entry {
    fn conflicts_with(&self, other: &Entry) -> bool {
        // Of an empty range the end is behind no start.
        let start = self.range.start.max(other.range.start);
        let end = self.range.end.min(other.range.end);
        let overlap = start < end;
        overlap && (self.is_writer || other.is_writer)
    }
}

impl RangeLock {
    /// Returns a lock that nobody holds.
    pub fn new() -> RangeLock {
        RangeLock::default()
    }

    /// Divides the lock: from now on holders are told apart by their ranges, rather than each being taken for one of
    /// the whole.
    pub fn divide(&self) {
        // Ordering: whoever misses it gets in by the word, which those of the table look at.
        if self.word.load(Ordering::Relaxed) & DIVIDED == 0 {
            // Ordering: as above.
            self.word.fetch_or(DIVIDED, Ordering::Relaxed);
        }
    }

    /// Undivides the lock: each holder counts as one of the whole again, as before it was [divided](Self::divide),
    /// unless somebody still holds a part.
    #[inline]
    pub fn unite(&mut self) {
        // Ordering: nobody else has the lock.
        if self.word.load(Ordering::Relaxed) & DIVIDED != 0 {
            self.unite_divided();
        }
    }

    #[cold]
    fn unite_divided(&mut self) {
        // A right that is forgotten stays in the table for good.
        if self.table().0.as_ref().is_none_or(|table| table.is_empty()) {
            // Ordering: nobody else has the lock.
            let word = self.word.load(Ordering::Relaxed);
            self.word.store(word & !DIVIDED, Ordering::Relaxed);
        }
    }

    /// Refuses to be written from now on, and is whole again ([`unite`](Self::unite)). So reading takes no
    /// read-modify-write.
    #[inline]
    pub fn freeze(&mut self) {
        self.unite();
        // Ordering: nobody else has the lock.
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word | FROZEN, Ordering::Relaxed);
    }

    /// Lets writers in again, and is whole again ([`unite`](Self::unite)).
    #[inline]
    pub fn thaw(&mut self) {
        self.unite();
        // Ordering: nobody else has the lock.
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word & !FROZEN, Ordering::Relaxed);
    }

    /// Returns whether writers are refused until the lock is [thawed](Self::thaw).
    #[inline]
    pub fn is_frozen(&self) -> bool {
        // Ordering: it does not change while anybody else has the lock.
        self.word.load(Ordering::Relaxed) & FROZEN != 0
    }

    /// Returns whether holders are told apart by their ranges: by a table, which takes longer than the word.
    #[inline]
    pub fn is_divided(&self) -> bool {
        // Ordering: as in `divide`.
        self.word.load(Ordering::Relaxed) & DIVIDED != 0
    }

    /// Returns the right to read these bytes, unless somebody writes some of them.
    #[inline]
    pub fn try_read(&self, range: Range<usize>) -> Option<Hold> {
        // Ordering: only a guess, which the exchange decides; of what is frozen see the protocol.
        let mut word = self.word.load(Ordering::Relaxed);
        if word & FROZEN != 0 {
            return Some(Hold(HoldKind::Frozen));
        }
        while word < MAX_READERS {
            // Ordering: the acquire pairs with the release of a writer in `release`.
            match self.word.compare_exchange_weak(
                word,
                word + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Hold(HoldKind::ForReading)),
                Err(found) => word = found,
            }
        }
        self.try_part(word, range, false)
    }

    /// Returns the right to write these bytes, unless somebody reads or writes some of them.
    #[inline]
    pub fn try_write(&self, range: Range<usize>) -> Option<Hold> {
        // Ordering: the acquire pairs with the releases of readers and writers in `release`.
        let exchange = self
            .word
            .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed);
        match exchange {
            Ok(_) => Some(Hold(HoldKind::ForWriting)),
            Err(word) => self.try_part(word, range, true),
        }
    }

    /// Gets in by the table, if the word says that this is the way.
    #[cold]
    fn try_part(&self, word: u32, range: Range<usize>, is_writer: bool) -> Option<Hold> {
        if word & DIVIDED == 0 {
            return None;
        }
        let entry = Entry { range, is_writer };
        let mut table = self.table();
        // Ordering: the acquire pairs with the releases of those who came by the word. No more do,
        // since the bit is set, so what they still hold is all that can be in the way.
        let by_word = self.word.load(Ordering::Acquire) & !DIVIDED;
        // A frozen word is in every writer's way, and readers of it do not come here.
        let is_free = by_word == 0 || (!is_writer && by_word & WRITER == 0);
        let table = table.0.get_or_insert_default();
        if !is_free || table.iter().any(|other| other.conflicts_with(&entry)) {
            return None;
        }
        table.push(entry.clone());
        Some(Hold(HoldKind::Part(Box::new(entry))))
    }

    /// Gives a right back that came from this lock.
    ///
    /// # Panics
    ///
    /// If it is seen not to have come from it.
    #[inline]
    pub fn release(&self, hold: Hold) {
        match hold.0 {
            HoldKind::Frozen => {}
            // Ordering: the release pairs with the acquire of the next writer, so that what was read
            // was read before it writes.
            HoldKind::ForReading => {
                self.word.fetch_sub(1, Ordering::Release);
            }
            // Ordering: the release pairs with the acquire of whoever comes next.
            HoldKind::ForWriting => {
                self.word.fetch_and(!WRITER, Ordering::Release);
            }
            HoldKind::Part(entry) => self.release_part(&entry),
        }
    }

    #[cold]
    fn release_part(&self, entry: &Entry) {
        let mut table = self.table();
        let table = table.0.get_or_insert_default();
        let index = table.iter().position(|other| other == entry);
        table.swap_remove(index.expect("a right is given back to the lock that gave it"));
    }

    fn table(&self) -> MutexGuard<'_, HolderTable> {
        // Nothing in between can panic but for want of memory, and the table is whole at any time.
        self.table.lock().unwrap_or_else(|error| error.into_inner())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let lock = RangeLock::new();
        let readers = [lock.try_read(0..8).unwrap(), lock.try_read(0..8).unwrap()];
        assert_eq!(lock.try_write(0..8), None);
        readers.into_iter().for_each(|hold| lock.release(hold));
        let writer = lock.try_write(0..8).unwrap();
        assert_eq!(lock.try_read(0..8), None);
        assert_eq!(lock.try_write(0..8), None);
        lock.release(writer);
        lock.release(lock.try_write(0..8).unwrap());
    }

    #[test]
    fn readers_who_cannot_be_counted_are_refused() {
        let lock = RangeLock::new();
        let first = lock.try_read(0..8).unwrap();
        // As many as can be, but for one.
        lock.word.store(MAX_READERS - 1, Ordering::Relaxed);
        let last = lock.try_read(0..8).unwrap();
        assert_eq!(lock.try_read(0..8), None);
        assert!(!lock.is_frozen());
        lock.release(last);
        lock.release(lock.try_read(0..8).unwrap());
        lock.word.store(1, Ordering::Relaxed);
        lock.release(first);
        lock.release(lock.try_write(0..8).unwrap());
    }

    #[test]
    fn parts_of_a_divided_block_are_held_apart() {
        let lock = RangeLock::new();
        lock.divide();
        let writer = lock.try_write(0..4).unwrap();
        assert_eq!(lock.try_read(3..5), None);
        let reader = lock.try_read(4..8).unwrap();
        assert_eq!(lock.try_write(7..9), None);
        let other = lock.try_read(6..8).unwrap();
        lock.release(writer);
        lock.release(reader);
        assert_eq!(lock.try_write(0..8), None);
        lock.release(other);
        lock.release(lock.try_write(0..8).unwrap());
    }

    #[test]
    fn who_held_the_whole_before_it_was_divided_still_does() {
        let lock = RangeLock::new();
        let reader = lock.try_read(0..8).unwrap();
        lock.divide();
        assert_eq!(lock.try_write(0..4), None);
        let second = lock.try_read(0..4).unwrap();
        lock.release(reader);
        assert_eq!(lock.try_write(0..4), None);
        lock.release(second);
        lock.release(lock.try_write(0..4).unwrap());

        let lock = RangeLock::new();
        let writer = lock.try_write(0..8).unwrap();
        lock.divide();
        assert_eq!(lock.try_read(0..4), None);
        lock.release(writer);
        lock.release(lock.try_read(0..4).unwrap());
    }

    #[test]
    fn what_is_frozen_is_read_and_not_written() {
        let mut lock = RangeLock::new();
        assert!(!lock.is_frozen());
        for _ in 0..2 {
            lock.freeze();
            assert!(lock.is_frozen());
        }
        let readers = [lock.try_read(0..8).unwrap(), lock.try_read(4..8).unwrap()];
        assert_eq!(lock.try_write(0..8), None);
        lock.divide();
        assert_eq!(lock.try_write(0..4), None);
        let [first, second] = readers;
        lock.release(first);
        lock.release(lock.try_read(0..4).unwrap());
        assert_eq!(lock.try_write(0..4), None);
        lock.release(second);
        for _ in 0..2 {
            lock.thaw();
            assert!(!lock.is_frozen());
        }
        let writer = lock.try_write(0..4).unwrap();
        assert_eq!(lock.try_read(0..8), None);
        lock.release(writer);
    }

    #[test]
    fn a_divided_lock_is_whole_again_for_its_only_holder_when_no_part_is_held() {
        for unite in [RangeLock::unite, RangeLock::freeze, RangeLock::thaw] {
            let mut lock = RangeLock::new();
            lock.divide();
            let part = lock.try_write(0..4).unwrap();
            unite(&mut lock);
            assert!(lock.is_divided(), "a part is held");
            lock.release(part);
            unite(&mut lock);
            assert!(!lock.is_divided());
            lock.thaw();
            let part = lock.try_write(0..4).unwrap();
            assert_eq!(lock.try_write(4..8), None);
            lock.release(part);
        }
    }

    #[test]
    fn an_empty_range_is_in_nobodys_way() {
        let lock = RangeLock::new();
        lock.divide();
        let all = lock.try_write(0..8).unwrap();
        let empty = lock.try_write(4..4).unwrap();
        lock.release(all);
        let all = lock.try_write(0..8).unwrap();
        lock.release(empty);
        lock.release(all);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::RangeLock;
    use crate::sync::{Arc, UnsafeCell, thread};

    /// A block of two parts behind a lock; loom sees whoever is where another writes.
    #[derive(Default)]
    struct Parts {
        lock: RangeLock,
        parts: [UnsafeCell<u32>; 2],
    }

    impl Parts {
        fn write(&self, range: std::ops::Range<usize>) {
            if let Some(hold) = self.lock.try_write(range.clone()) {
                for part in &self.parts[range] {
                    part.with_mut(|_| ());
                }
                self.lock.release(hold);
            }
        }

        fn read(&self, range: std::ops::Range<usize>) {
            if let Some(hold) = self.lock.try_read(range.clone()) {
                for part in &self.parts[range] {
                    part.with(|_| ());
                }
                self.lock.release(hold);
            }
        }
    }

    fn check(
        other: impl Fn(&Parts) + Send + Sync + 'static + Copy,
        own: impl Fn(&Parts) + Send + Sync + 'static,
    ) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(3);
        builder.check(move || {
            let parts = Arc::new(Parts::default());
            let shared = parts.clone();
            let thread = thread::spawn(move || other(&shared));
            own(&parts);
            thread.join().unwrap();
            let hold = parts.lock.try_write(0..2).expect("everybody has left");
            parts.lock.release(hold);
        });
    }

    #[test]
    fn range_lock_keeps_a_writer_alone() {
        check(
            |parts| parts.write(0..2),
            |parts| {
                parts.read(0..2);
                parts.write(0..2);
            },
        );
    }

    #[test]
    fn range_lock_that_is_frozen_is_read_at_once_until_it_is_thawed() {
        loom::model(|| {
            let mut parts = Parts::default();
            parts.write(0..2);
            parts.lock.freeze();
            let mut parts = Arc::new(parts);
            let shared = parts.clone();
            let thread = thread::spawn(move || {
                shared.write(0..1);
                shared.read(0..2);
            });
            parts.read(0..2);
            // As soon as nobody else has it: the other may still be at it, or gone.
            let own = Arc::get_mut(&mut parts).map(|parts| {
                parts.lock.thaw();
                parts.write(0..2);
            });
            thread.join().unwrap();
            let parts = Arc::get_mut(&mut parts).expect("the other thread has left");
            assert_eq!(parts.lock.is_frozen(), own.is_none());
            parts.lock.thaw();
            let hold = parts.lock.try_write(0..2).expect("it is thawed");
            parts.lock.release(hold);
        });
    }

    #[test]
    fn range_lock_holds_while_it_is_divided() {
        check(
            |parts| {
                parts.lock.divide();
                parts.write(0..1);
            },
            |parts| {
                parts.write(0..2);
                parts.read(0..2);
            },
        );
    }

    #[test]
    fn range_lock_that_was_divided_is_whole_again_for_who_has_it_alone() {
        loom::model(|| {
            let mut parts = Arc::new(Parts::default());
            let shared = parts.clone();
            let thread = thread::spawn(move || {
                shared.lock.divide();
                shared.write(0..1);
            });
            parts.write(1..2);
            // As soon as nobody else has it: the other may still be at it, or gone.
            if let Some(parts) = Arc::get_mut(&mut parts) {
                parts.lock.unite();
                assert!(!parts.lock.is_divided());
            }
            thread.join().unwrap();
            let alone = Arc::get_mut(&mut parts).expect("the other thread has left");
            alone.lock.freeze();
            assert!(!alone.lock.is_divided());
            alone.lock.thaw();
            let shared = parts.clone();
            let thread = thread::spawn(move || shared.write(0..1));
            parts.write(0..2);
            thread.join().unwrap();
        });
    }

    #[test]
    fn range_lock_lets_parts_be_written_side_by_side() {
        check(
            |parts| {
                parts.lock.divide();
                parts.write(0..1);
            },
            |parts| {
                parts.lock.divide();
                parts.write(1..2);
                parts.read(0..1);
            },
        );
    }
}
