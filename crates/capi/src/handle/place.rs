//! [`Place`]: where one object after another lies, beside a word that says which one, and whose turn it is.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use super::facts::Facts;
use super::kinds::{Kind, Object, Storage, Viewed};
use crate::value::Tensor;

/// Bit of a place's word that a thread sets while it uses the place.
const IN_USE: u64 = 1;
/// Bits of a place's word below the number of the object's type, which is 0 if there is no object.
const KIND: u32 = 8;
/// Bits of a place's word below the generation.
const GENERATION: u32 = 32;

/// A place of the table. The word and the facts, which are all that most calls look at, take one line of the cache.
#[repr(C, align(64))]
pub(super) struct Place {
    /// The generation, which counts the objects that were here from 1 on; the number of the type of the object; and whether
    /// a thread uses it.
    word: AtomicU64,
    /// Facts of the object, written by the thread that uses it.
    facts: Facts,
    /// Whether a thread keeps the place for views ([`views`](super::views)), so that it is not among the free ones when it
    /// is empty. Changed by that thread while it uses the place.
    is_kept: AtomicBool,
    /// The object. Invariant: used by the thread that has set [`IN_USE`], that has [taken](Self::take) the object out, or that
    /// has taken the place from the free ones, and by no other; there is one if the word has the number of its type. A free
    /// place has none that must be dropped.
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
            word: AtomicU64::new(1 << GENERATION),
            facts: Facts::default(),
            is_kept: AtomicBool::new(false),
            object: UnsafeCell::new(None),
        }
    }
}

/// Generation and type in a place's word: those of an object that a handle leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Found(u64);

impl Found {
    /// Returns the word's part of a generation and a type. The generation stands in the upper half of `bits`, where handles
    /// have it, too.
    #[inline(always)]
    pub(super) fn new<K: Kind>(bits: u64) -> Found {
        Found(bits & u64::MAX << GENERATION | u64::from(K::NUMBER) << KIND)
    }

    /// Returns the generation.
    pub(super) fn generation(self) -> u32 {
        (self.0 >> GENERATION) as u32
    }

    /// Returns the number of the type; 0 if there is no object.
    pub(super) fn kind(self) -> u32 {
        (self.0 as u32) >> KIND
    }

    /// Returns the word of an empty place of the next generation.
    #[inline]
    fn next(self) -> u64 {
        // Generations of a place that has had four thousand million objects begin anew.
        let next = self.generation().checked_add(1).unwrap_or(1);
        u64::from(next) << GENERATION
    }
}

/// A place that the thread uses; it is given back at the end, also when the user panics.
struct InUse<'p> {
    place: &'p Place,
    /// The word that the place gets then.
    then: Found,
}

impl Drop for InUse<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.word.store(self.then.0, Ordering::Release);
    }
}

/// How often a thread looks whether another is done before it lets others run.
const SPINS: u32 = 64;

impl Place {
    /// Returns the generation and the type of the object that is here.
    #[inline(always)]
    pub(super) fn found(&self) -> Found {
        // Ordering: the acquire pairs with the release of who has deleted the object, and uses it no more.
        Found(self.word.load(Ordering::Acquire) & !IN_USE)
    }

    /// Changes the word, if the place has this object and nobody uses it; waits for who does.
    #[inline(always)]
    fn change(&self, wanted: Found, then: u64) -> bool {
        let acquire = Ordering::Acquire;
        let changed = self
            .word
            .compare_exchange(wanted.0, then, acquire, Ordering::Relaxed);
        changed.is_ok() || self.change_later(wanted, then)
    }

    /// Changes the word when another thread is done with the object, if it is still there then.
    #[cold]
    #[inline(never)]
    fn change_later(&self, wanted: Found, then: u64) -> bool {
        let mut spins = 0;
        while self.found() == wanted {
            let acquire = Ordering::Acquire;
            let changed = self
                .word
                .compare_exchange(wanted.0, then, acquire, Ordering::Relaxed);
            if changed.is_ok() {
                return true;
            }
            match spins < SPINS {
                true => std::hint::spin_loop(),
                false => std::thread::yield_now(),
            }
            spins += 1;
        }
        false
    }

    /// Lends the object, if the place has the one that is wanted, to a function that may change it.
    #[inline(always)]
    pub(super) fn lend<K: Kind, R>(
        &self,
        wanted: Found,
        use_it: impl FnOnce(&mut K) -> R,
    ) -> Option<R> {
        if !self.change(wanted, wanted.0 | IN_USE) {
            return None;
        }
        let _in_use = InUse {
            place: self,
            then: wanted,
        };
        // SAFETY: this thread has set the bit, so that no other uses the object before `_in_use` is dropped.
        let object = unsafe { &mut *self.object.get() };
        let value = K::of(object.as_mut()?)?;
        let result = use_it(value);
        if K::FACTS_CHANGE {
            self.facts.set(value.facts());
        }
        Some(result)
    }

    /// Reads facts of the object, if the place has the one that is wanted, and nobody changes it.
    #[inline(always)]
    pub(super) fn look<R>(&self, wanted: Found, read: impl FnOnce(&Facts) -> R) -> Option<R> {
        if self.word.load(Ordering::Acquire) != wanted.0 {
            return None;
        }
        let result = read(&self.facts);
        // Ordering: the acquire pairs with the release in `Facts::set`: if a number was of a later object, the word is
        // another by now.
        fence(Ordering::Acquire);
        (self.word.load(Ordering::Relaxed) == wanted.0).then_some(result)
    }

    /// Takes the object out, if the place has the one that is wanted: from then on its handles lead nowhere, and the place is
    /// the caller's, who gives it back to the free ones.
    #[inline(always)]
    pub(super) fn take(&self, wanted: Found) -> Option<Taken<'_>> {
        self.change(wanted, wanted.next()).then_some(Taken(self))
    }

    /// Deletes the object, if the place has the one that is wanted. Returns whether the place is to be given back to the free
    /// ones; `None` if there is no such object.
    #[inline(always)]
    pub(super) fn delete(&self, wanted: Found) -> Option<bool> {
        if !self.change(wanted, wanted.0 | IN_USE) {
            return None;
        }
        // Ordering: it changes only while the place is in use.
        let is_kept = self.is_kept.load(Ordering::Relaxed);
        // SAFETY: this thread has set the bit.
        let object = unsafe { &mut *self.object.get() };
        // Nothing is in a view that must be dropped.
        let rest = match object {
            Some(Object::Tensor(Viewed::View(_))) => None,
            _ if is_kept => object.take(),
            _ => None,
        };
        self.word.store(wanted.next(), Ordering::Release);
        // What an object held may be a plugin's, whose code runs now: nothing is in use. A place that nobody keeps is this
        // thread's until it is among the free ones.
        match is_kept {
            true => drop(rest),
            false => Taken(self).discard(),
        }
        Some(!is_kept)
    }

    /// Keeps the place, which was taken from the free ones, for views.
    pub(super) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Keeps the place no more: if there is a view in it, the view is made a tensor that counts its memory. Returns whether
    /// the place is empty, and the caller's.
    pub(super) fn keep_no_more(&self) -> bool {
        let found = self.found();
        let lent = found == Found::new::<Tensor>(found.0)
            && self
                .lend(found, |_: &mut Tensor| {
                    self.is_kept.store(false, Ordering::Relaxed)
                })
                .is_some();
        if !lent {
            // Nobody uses an empty place.
            self.is_kept.store(false, Ordering::Relaxed);
        }
        !lent
    }

    /// Returns whether there is an object that handles lead to.
    #[inline(always)]
    pub(super) fn has_object(&self) -> bool {
        self.found().kind() != 0
    }

    /// Puts an object into a place that was free, and returns its generation, in the upper half.
    #[inline(always)]
    pub(super) fn fill<K: Kind>(&self, stored: K::Stored) -> u64 {
        let generation = self.word.load(Ordering::Relaxed);
        self.facts.set(stored.facts());
        // SAFETY: who takes a place from the free ones is the only one to use it until the word says that there is an object;
        // a free place has none that must be dropped.
        unsafe { self.object.get().write(Some(K::into_object(stored))) };
        let word = Found::new::<K>(generation).0;
        self.word.store(word, Ordering::Release);
        generation
    }
}

/// A place whose object no handle leads to any more.
pub(super) struct Taken<'p>(&'p Place);

impl Taken<'_> {
    /// Returns the object.
    #[inline(always)]
    pub(super) fn object(self) -> Option<Object> {
        // SAFETY: this thread alone has the place, until it is among the free ones.
        unsafe { &mut *self.0.object.get() }.take()
    }

    /// Drops the object.
    #[inline(always)]
    pub(super) fn discard(self) {
        // SAFETY: as above.
        let object = unsafe { &mut *self.0.object.get() };
        match object {
            // Nothing is in it that must be dropped, as in most that are deleted.
            Some(Object::Tensor(Viewed::View(_))) => (),
            _ => *object = None,
        }
    }
}

/// A place with an object of a thread's own, to which handles lead while it is [lent](Self::lend) to a plugin.
pub(super) struct OwnPlace<K: Kind> {
    // Invariant: taken from the free ones. Its word has the type of an object only while `lent` is a handle's part of it.
    // The object is a `K`.
    place: &'static Place,
    lent: Option<Found>,
    kind: PhantomData<K>,
}

impl<K: Kind> OwnPlace<K> {
    /// Puts an object into a place that was taken from the free ones.
    pub(super) fn new(place: &'static Place, stored: K::Stored) -> OwnPlace<K> {
        // SAFETY: who takes a place from the free ones is the only one to use it.
        unsafe { place.object.get().write(Some(K::into_object(stored))) };
        OwnPlace {
            place,
            lent: None,
            kind: PhantomData,
        }
    }

    /// Returns the object, to which no handle leads any more.
    #[inline(always)]
    pub(super) fn get_mut(&mut self) -> &mut K {
        self.take_back();
        // SAFETY: no handle leads to the object, and this is borrowed.
        let object = unsafe { &mut *self.place.object.get() };
        let own = object.as_mut().and_then(K::of);
        own.expect("the object that was put into the place is there")
    }

    /// Lends the object to a plugin, and returns the generation of the handle.
    #[inline(always)]
    pub(super) fn lend(&mut self) -> u64 {
        let facts = self.get_mut().facts();
        self.place.facts.set(facts);
        let generation = self.place.word.load(Ordering::Relaxed);
        let lent = Found::new::<K>(generation);
        self.place.word.store(lent.0, Ordering::Release);
        self.lent = Some(lent);
        generation
    }

    /// Takes the object back: waits for a thread that uses it, after which the handle leads nowhere.
    #[inline(always)]
    fn take_back(&mut self) {
        if let Some(lent) = self.lent.take() {
            let is_back = self.place.change(lent, lent.next());
            debug_assert!(is_back, "nobody else takes the object");
        }
    }

    /// Drops the object: the place is to be given back to the free ones, and not used any more.
    pub(super) fn empty(&mut self) {
        self.take_back();
        Taken(self.place).discard();
    }
}
