//! [`Ring`]: the last records of one thread, which others may read while it writes.
//!
//! # Protocol
//!
//! The writer stores a record's words, and then the number of records. A reader reads the number,
//! the words, and the number again: of the records that it has got, those are whole that the writer
//! had not begun to overwrite at the second reading. So reading never holds the writer up.

use crate::sync::{AtomicU64, Ordering, fence};

/// Believes records that may be torn: a bug that the models must find.
const BELIEVE_TORN: bool = cfg!(tfrt_planted = "torn-record");

/// The size of the smallest pages that there are.
const PAGE_BYTES: usize = 4096;

/// A record.
pub(super) type Words = [u64; 4];

/// The records of one thread. Only that thread calls [`Ring::write`]; if others did, records would
/// be mixed up, and nothing worse.
pub(super) struct Ring {
    /// Invariant: their number is a power of two.
    slots: Box<[[AtomicU64; 4]]>,
    n_written: AtomicU64,
}

impl Ring {
    /// Makes a ring for so many records, or for a few more.
    pub(super) fn new(capacity: usize) -> Ring {
        let zero = || AtomicU64::new(0);
        let slots =
            (0..capacity.max(2).next_power_of_two()).map(|_| [zero(), zero(), zero(), zero()]);
        let slots: Box<[_]> = slots.collect();
        // Memory that is touched now costs the first events nothing.
        for slot in slots.iter().step_by(PAGE_BYTES / size_of::<Words>()) {
            // Ordering: nobody else has it yet.
            slot[0].store(0, Ordering::Relaxed);
        }
        Ring {
            slots,
            n_written: zero(),
        }
    }

    /// Adds a record, in place of the oldest if there is no room.
    #[inline]
    pub(super) fn write(&self, words: Words) {
        // Only this thread writes the number.
        let n_written = self.n_written.load(Ordering::Relaxed);
        // Ordering: pairs with the fence in `read`: who sees one of these words sees the number that
        // was stored before, and so knows that the record in their place is gone.
        fence(Ordering::Release);
        for (slot, word) in self.slots[self.slot(n_written)].iter().zip(words) {
            // Ordering: by the fences and by the number, see above and below.
            slot.store(word, Ordering::Relaxed);
        }
        // Ordering: pairs with the acquire in `read`, which then sees the words.
        self.n_written.store(n_written + 1, Ordering::Release);
    }

    /// Returns how many records gave way, and those that are whole, the oldest first.
    pub(super) fn read(&self) -> (u64, Vec<Words>) {
        // Ordering: pairs with the release in `write`.
        let end = self.n_written.load(Ordering::Acquire);
        let begin = self.first_whole(end);
        let record = |index: u64| {
            let slot = &self.slots[self.slot(index)];
            // Ordering: by the number and by the fences.
            [0, 1, 2, 3].map(|word: usize| slot[word].load(Ordering::Relaxed))
        };
        let mut records: Vec<Words> = (begin..end).map(record).collect();
        // Ordering: pairs with the fence in `write`.
        fence(Ordering::Acquire);
        let whole = self.first_whole(self.n_written.load(Ordering::Relaxed));
        if BELIEVE_TORN {
            return (begin, records);
        }
        let n_torn = whole.saturating_sub(begin).min(end - begin);
        records.drain(..usize::try_from(n_torn).unwrap_or(records.len()));
        (begin + n_torn, records)
    }

    /// The first record that nobody overwrites while the next one after `n_written` is written.
    fn first_whole(&self, n_written: u64) -> u64 {
        (n_written + 1).saturating_sub(self.slots.len() as u64)
    }

    #[inline]
    fn slot(&self, index: u64) -> usize {
        // The mask is below the number of slots, which is a `usize`.
        (index & (self.slots.len() as u64 - 1)) as usize
    }
}
