//! [`Facts`]: numbers about an object that any thread reads without taking the object's place.
//!
//! Plugins ask for the rank and the address of a tensor, or the code of a status, far more often than they change one. The
//! numbers are written by the thread that has the place, and read beside the word of the place: a reader looks at the word
//! before and after, and believes nothing if an object was deleted, made or changed meanwhile. A reader that comes while a
//! change begins or ends gets each number as it was or as it will be.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The number of words.
pub const N_WORDS: usize = 6;

/// Facts as an object tells them.
pub type Words = [u64; N_WORDS];

/// Facts of the object in a place, if it is of a type that has some.
#[derive(Default)]
pub struct Facts([AtomicU64; N_WORDS]);

impl Facts {
    /// Sets the facts of an object that was put into the place, or changed; `None` for one without facts.
    #[inline(always)]
    pub fn set(&self, words: Option<Words>) {
        // Ordering: the release pairs with the acquire in `Place::look`: who reads a number that is written below sees also that
        // the object of before is gone.
        fence(Ordering::Release);
        if let Some([a, b, c, d, e, f]) = words {
            // One by one: a loop is not taken apart.
            self.0[0].store(a, Ordering::Relaxed);
            self.0[1].store(b, Ordering::Relaxed);
            self.0[2].store(c, Ordering::Relaxed);
            self.0[3].store(d, Ordering::Relaxed);
            self.0[4].store(e, Ordering::Relaxed);
            self.0[5].store(f, Ordering::Relaxed);
        }
    }

    /// Returns a fact.
    #[inline(always)]
    pub fn word<const INDEX: usize>(&self) -> u64 {
        const { assert!(INDEX < N_WORDS) };
        // Ordering: the first look at the place's word comes before, and the second one after.
        self.0[INDEX].load(Ordering::Relaxed)
    }
}
