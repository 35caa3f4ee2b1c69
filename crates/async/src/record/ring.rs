//! [`Ring`]: the last records of one thread, which others may read while it writes.
//!
//! # Protocol
//!
//! The writer stores a record's words, and then the number of records. A reader reads the number,
//! the words, and the number again: of the records that it has got, those are whole that the writer
//! had not begun to overwrite at the second reading. So reading never holds the writer up.

use std::sync::OnceLock;

use crate::sync::{AtomicU64, Ordering, fence};

/// The number of records that memory is taken for at once.
const CHUNK: usize = 1 << 10;

/// A record.
pub(super) type Words = [u64; 4];

type Slot = [AtomicU64; 4];

/// The records of one thread. Only that thread calls [`Ring::write`]; if others did, records would
/// be mixed up, and nothing worse.
pub(super) struct Ring {
    /// The memory of the records, taken chunk by chunk when it is first written.
    ///
    /// Invariant: each has as many slots, and both numbers are powers of two.
    chunks: Box<[OnceLock<Box<[Slot]>>]>,
    n_in_chunk: usize,
    n_written: AtomicU64,
}

impl Ring {
    /// Makes a ring for so many records, or for a few more.
    pub(super) fn new(capacity: usize) -> Ring {
        let capacity = capacity.max(2).next_power_of_two();
        let n_in_chunk = capacity.min(CHUNK);
        Ring {
            chunks: (0..capacity / n_in_chunk)
                .map(|_| OnceLock::new())
                .collect(),
            n_in_chunk,
            n_written: AtomicU64::new(0),
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
        let (chunk, slot) = self.place(n_written);
        let chunk = self.chunks[chunk].get_or_init(|| new_chunk(self.n_in_chunk));
        for (slot, word) in chunk[slot].iter().zip(words) {
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
            let (chunk, slot) = self.place(index);
            let slot = &self.chunks[chunk].get().expect("it was written to")[slot];
            // Ordering: by the number and by the fences.
            [0, 1, 2, 3].map(|word: usize| slot[word].load(Ordering::Relaxed))
        };
        let mut records: Vec<Words> = (begin..end).map(record).collect();
        // Ordering: pairs with the fence in `write`.
        fence(Ordering::Acquire);
        let whole = self.first_whole(self.n_written.load(Ordering::Relaxed));
        let n_torn = whole.saturating_sub(begin).min(end - begin);
        records.drain(..usize::try_from(n_torn).unwrap_or(records.len()));
        (begin + n_torn, records)
    }

    /// Returns how many records were written.
    pub(super) fn n_written(&self) -> u64 {
        // Ordering: a statistic.
        self.n_written.load(Ordering::Relaxed)
    }

    /// Returns the first record that nobody overwrites while the next one after `n_written` is
    /// written.
    fn first_whole(&self, n_written: u64) -> u64 {
        let capacity = (self.chunks.len() * self.n_in_chunk) as u64;
        (n_written + 1).saturating_sub(capacity)
    }

    /// Returns the chunk and the slot in it for a record.
    #[inline]
    fn place(&self, index: u64) -> (usize, usize) {
        // What is cut off is a multiple of the capacity.
        let index = index as usize;
        let chunk = (index >> self.n_in_chunk.trailing_zeros()) & (self.chunks.len() - 1);
        (chunk, index & (self.n_in_chunk - 1))
    }
}

#[cold]
fn new_chunk(n_slots: usize) -> Box<[Slot]> {
    let zero = || AtomicU64::new(0);
    let slots = (0..n_slots).map(|_| [zero(), zero(), zero(), zero()]);
    slots.collect()
}
