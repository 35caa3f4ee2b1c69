//! [`Place`]: where one object after another lies, beside a word that says whose turn it is.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::facts::{Facts, Words};
use super::kinds::{Kind, Object};

/// Bit of a place's word that a thread sets while it uses the place.
pub(super) const IN_USE: u64 = 1;
/// Bit of a place's word that says that there is an object.
pub(super) const OCCUPIED: u64 = 2;
/// Bits of a place's word below the generation.
pub(super) const STATE_BITS: u32 = 2;

/// A place of the table.
pub(super) struct Place {
    /// The generation, which counts the objects that were here from 1 on, and bits of state.
    pub(super) word: AtomicU64,
    /// Facts of the object, written by the thread that uses it.
    facts: Facts,
    /// The object. Invariant: used by the thread that has set [`IN_USE`], or that has taken the place from the free ones,
    /// and by no other; there is one if [`OCCUPIED`] is set.
    object: UnsafeCell<Option<Object>>,
}

// SAFETY: by the invariant one thread at a time uses the object, which may go from thread to thread.
unsafe impl Sync for Place {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Object>();
};

impl Default for Place {
    fn default() -> Self {
        Place {
            word: AtomicU64::new(1 << STATE_BITS),
            facts: Facts::default(),
            object: UnsafeCell::new(None),
        }
    }
}

/// A place that the thread uses; it is given back at the end, also when the user panics.
pub(super) struct InUse<'p> {
    place: &'p Place,
    /// The word that the place gets then.
    then: u64,
}

impl Drop for InUse<'_> {
    #[inline]
    fn drop(&mut self) {
        self.place.word.store(self.then, Ordering::Release);
    }
}

/// Returns the word of a place with an object of this generation that nobody uses.
#[inline(always)]
pub(super) fn idle(generation: u32) -> u64 {
    u64::from(generation) << STATE_BITS | OCCUPIED
}

/// How often a thread looks whether another is done before it lets others run.
const SPINS: u32 = 64;

impl Place {
    /// Takes the place for use, if it has an object of this generation; else returns the generation that it has.
    #[inline(always)]
    pub(super) fn enter(&self, generation: u32) -> Result<InUse<'_>, u32> {
        let idle = idle(generation);
        match self.take(idle) {
            Ok(()) => (),
            Err(_) => self.enter_later(idle)?,
        }
        Ok(InUse {
            place: self,
            then: idle,
        })
    }

    /// Sets [`IN_USE`], if the word is this; else returns the word.
    #[inline(always)]
    fn take(&self, idle: u64) -> Result<(), u64> {
        let (then, acquire) = (idle | IN_USE, Ordering::Acquire);
        let taken = self
            .word
            .compare_exchange(idle, then, acquire, Ordering::Relaxed);
        taken.map(drop)
    }

    /// Takes the place for use when another thread is done with it; see [`enter`](Self::enter).
    #[cold]
    #[inline(never)]
    fn enter_later(&self, idle: u64) -> Result<(), u32> {
        let mut spins = 0;
        while let Err(found) = self.take(idle) {
            if found & !IN_USE != idle {
                return Err((found >> STATE_BITS) as u32);
            }
            match spins < SPINS {
                true => std::hint::spin_loop(),
                false => std::thread::yield_now(),
            }
            spins += 1;
        }
        Ok(())
    }

    /// Reads facts of the object, if it is of this generation and type, and nobody changes it.
    #[inline(always)]
    pub(super) fn look<K: Kind, R>(
        &self,
        generation: u32,
        read: impl FnOnce(u32, &Facts) -> R,
    ) -> Option<R> {
        let idle = idle(generation);
        if self.word.load(Ordering::Acquire) != idle {
            return None;
        }
        let result = read(self.facts.of(K::NUMBER)?, &self.facts);
        // Ordering: the acquire pairs with the release in `Facts::set`: if a number was of a later object, the word is
        // another by now.
        fence(Ordering::Acquire);
        (self.word.load(Ordering::Relaxed) == idle).then_some(result)
    }

    /// Puts an object into a place that was free, and returns its generation.
    #[inline]
    pub(super) fn fill(&self, (kind, facts): (u32, Option<Words>), object: Object) -> u32 {
        let word = self.word.load(Ordering::Relaxed);
        self.facts.set(kind, facts);
        // SAFETY: who takes a place from the free ones is the only one to use it until the word says that it is occupied;
        // a free place has no object, so that none is forgotten.
        unsafe { self.object.get().write(Some(object)) };
        self.word.store(word | OCCUPIED, Ordering::Release);
        (word >> STATE_BITS) as u32
    }
}

impl InUse<'_> {
    #[inline]
    pub(super) fn object(&mut self) -> &mut Option<Object> {
        // SAFETY: this thread has set the bit, so that no other uses the object; the value is borrowed.
        unsafe { &mut *self.place.object.get() }
    }

    /// Lends the object, if it is of this type, to a function that may change it.
    #[inline(always)]
    pub(super) fn lend<K: Kind, R>(&mut self, use_it: impl FnOnce(&mut K) -> R) -> Option<R> {
        let facts = &self.place.facts;
        let value = self.object().as_mut().and_then(K::of)?;
        if K::FACTS_CHANGE {
            facts.hide();
        }
        let result = use_it(value);
        if K::FACTS_CHANGE {
            facts.set(K::NUMBER, value.facts());
        }
        Some(result)
    }

    /// Makes the place empty, of the next generation.
    #[inline]
    pub(super) fn empty(&mut self) {
        let generation = (self.then >> STATE_BITS) as u32;
        // Generations of a place that has had four thousand million objects begin anew.
        let next = generation.checked_add(1).unwrap_or(1);
        self.then = u64::from(next) << STATE_BITS;
    }
}
