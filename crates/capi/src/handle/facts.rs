//! [`Facts`]: numbers about an object that any thread reads without taking the object's place.
//!
//! Plugins ask for the rank and the address of a tensor, or the code of a status, far more often than they change one. The
//! numbers are written by the thread that has the place, and read beside the word of the place: a reader looks at the word
//! before and after, and believes nothing if an object was deleted, or made, meanwhile. While a thread changes the object
//! they say nothing. A reader that comes at that very moment gets each number as it was or as it will be.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The number of words.
pub const N_WORDS: usize = 6;

/// Facts as an object tells them.
pub type Words = [u64; N_WORDS];

/// Facts of the object in a place, if it is of a type that has some. The first word says so: it holds the number of the
/// type, and one fact of 32 bits.
#[derive(Default)]
pub struct Facts([AtomicU64; N_WORDS]);

/// Returns a first word: a fact, and the number of the type, which is not 0.
#[inline(always)]
fn first(kind: u32, fact: u64) -> u64 {
    u64::from(kind) << 32 | fact & u64::from(u32::MAX)
}

impl Facts {
    /// Sets the facts of an object that was put into the place, or changed; `None` for one without facts.
    #[inline(always)]
    pub fn set(&self, kind: u32, words: Option<Words>) {
        // Ordering: the release pairs with the acquire in `Place::look`: who reads a number that is written below sees also that
        // the object of before is gone.
        fence(Ordering::Release);
        let Some(words) = words else {
            return self.hide();
        };
        let Facts([head, a, b, c, d, e]) = self;
        let [fact, ..] = words;
        // One by one: a loop is not taken apart.
        a.store(words[1], Ordering::Relaxed);
        b.store(words[2], Ordering::Relaxed);
        c.store(words[3], Ordering::Relaxed);
        d.store(words[4], Ordering::Relaxed);
        e.store(words[5], Ordering::Relaxed);
        // Ordering: the release pairs with the acquire in `of`.
        head.store(first(kind, fact), Ordering::Release);
    }

    /// Says nothing, until the facts are [set](Self::set).
    #[inline(always)]
    pub fn hide(&self) {
        // Ordering: who still reads them reads numbers that were right.
        self.0[0].store(0, Ordering::Relaxed);
    }

    /// Returns the first fact, if the facts are those of an object of a type.
    #[inline(always)]
    pub fn of(&self, kind: u32) -> Option<u32> {
        // Ordering: the acquire pairs with the release in `set`.
        let found = self.0[0].load(Ordering::Acquire);
        let fact = found as u32;
        (found >> 32 == u64::from(kind)).then_some(fact)
    }

    /// Returns a further fact.
    #[inline(always)]
    pub fn word<const INDEX: usize>(&self) -> u64 {
        const { assert!(0 < INDEX && INDEX < N_WORDS) };
        // Ordering: `of` comes before, and the second look at the place's word after.
        self.0[INDEX].load(Ordering::Relaxed)
    }
}
