//! [`Handle`]: a checked reference that a plugin holds to an object of the host.
//!
//! C sees a pointer to an opaque type; it is a number, which nothing dereferences: the place of the object in one table,
//! and the generation of that place. A number that was never given out, or whose object was deleted, or is of another
//! type, is found to be wrong.
//!
//! A place is one word beside its object: the generation, whether there is an object, and whether a thread uses it. One
//! exchange of that word checks a handle and takes the place, a plain store gives it back. Two threads of a plugin that
//! use one object wait for each other; nothing is called back meanwhile. Some [facts](Facts) about an object are read
//! without taking its place. Free places are kept by thread: what a kernel makes and deletes touches no memory of other
//! threads.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fault;
use crate::functions::construction::Construction;
use crate::functions::context::Done;
use crate::functions::env::{StringStream, Thread, WritableFile};
use crate::functions::kernel::KernelBuilder;
use crate::functions::op::OpBuilder;
use crate::functions::resource::{Device, VariableInfo};
use crate::functions::shape::{DimensionBox, ShapeBox, ShapeContext};
use crate::functions::status::Status;
use crate::functions::variable::LockHolder;
use crate::library::OpenLibrary;
use crate::run::Context;
use crate::value::Tensor;

mod facts;

pub use facts::{Facts, Words};

/// Places of the first chunk; each further one has twice as many.
const FIRST_CHUNK: u32 = 1 << 8;
/// The most chunks: 16 million objects.
const MAX_CHUNKS: usize = 16;
/// Bits below the number of a place, so that handles look like aligned pointers.
const LOW_BITS: u32 = 4;

/// A reference that a plugin holds to a `K`; 0 is none.
#[repr(transparent)]
pub struct Handle<K> {
    bits: u64,
    kind: PhantomData<fn() -> K>,
}

/// A type of objects that plugins hold.
pub trait Kind: Sized {
    /// Name of the type in C.
    const NAME: &'static str;
    /// How an object is stored in its place.
    type Stored: Storage<Self>;
    /// The number of the type, from 1 on.
    const NUMBER: u32;
    /// Whether there are facts that change with the object.
    const FACTS_CHANGE: bool;

    /// Returns the facts of an object, which are read without taking its place.
    fn facts(&self) -> Option<Words>;

    /// Returns the object as an entry of the table.
    fn into_object(stored: Self::Stored) -> Object;

    /// Returns the object of an entry, if it is of this type.
    fn of(object: &mut Object) -> Option<&mut Self>;

    /// Returns the object of an entry, if it is of this type.
    fn take(object: Object) -> Option<Self::Stored>;
}

/// Storage of an object in its place: a box, unless calls make many of them.
pub trait Storage<T>: DerefMut<Target = T> {
    /// Stores an object.
    fn store(value: T) -> Self;
    /// Returns the object.
    fn unstore(self) -> T;
}

impl<T> Storage<T> for Box<T> {
    #[inline]
    fn store(value: T) -> Self {
        Box::new(value)
    }

    #[inline]
    fn unstore(self) -> T {
        *self
    }
}

/// An object that is stored in its place itself.
pub struct InPlace<T>(T);

impl<T> Deref for InPlace<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for InPlace<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Storage<T> for InPlace<T> {
    #[inline]
    fn store(value: T) -> Self {
        InPlace(value)
    }

    #[inline]
    fn unstore(self) -> T {
        self.0
    }
}

/// `kinds!(Box Status = "TF_Status",)` makes an arm of [`Object`] and a [`Kind`] of a type, stored so. With `| Status::facts`
/// behind the name the type has facts, which that function returns; with `[constant]` before it they stay as they are.
macro_rules! kinds {
    ($($storage:ident $type:ident = $name:literal $(| $([$constant:ident])? $facts:path)?,)*) => {
        /// Numbers of the types, from 0 on.
        enum Number {
            $($type,)*
        }

        /// An object that plugins hold.
        pub enum Object {
            $(
                #[expect(missing_docs, reason = "the type says it")]
                $type($storage<$type>),
            )*
        }

        impl Object {
            fn name(&self) -> &'static str {
                match self {
                    $(Object::$type(_) => $name,)*
                }
            }
        }

        $(
            impl Kind for $type {
                const NAME: &'static str = $name;
                type Stored = $storage<$type>;
                const NUMBER: u32 = Number::$type as u32 + 1;
                const FACTS_CHANGE: bool = kinds!(@change $([$($constant)?])?);

                #[inline(always)]
                fn facts(&self) -> Option<Words> {
                    kinds!(@facts self $($facts)?)
                }

                #[inline]
                fn into_object(stored: Self::Stored) -> Object {
                    Object::$type(stored)
                }

                #[inline]
                fn of(object: &mut Object) -> Option<&mut Self> {
                    match object {
                        Object::$type(own) => Some(own),
                        _ => None,
                    }
                }

                #[inline]
                fn take(object: Object) -> Option<Self::Stored> {
                    match object {
                        Object::$type(own) => Some(own),
                        _ => None,
                    }
                }
            }
        )*
    };
    (@change) => { false };
    (@change []) => { true };
    (@change [constant]) => { false };
    (@facts $own:ident) => { None };
    (@facts $own:ident $facts:path) => { Some($facts($own)) };
}

kinds! {
    InPlace Status = "TF_Status" | Status::facts,
    InPlace Tensor = "TF_Tensor" | Tensor::facts,
    Box KernelBuilder = "TF_KernelBuilder",
    Box Construction = "TF_OpKernelConstruction",
    Box Context = "TF_OpKernelContext" | [constant] Context::facts,
    Box Done = "TF_AsyncOpKernelDoneCallback",
    Box OpBuilder = "TF_OpDefinitionBuilder",
    Box ShapeContext = "TF_ShapeInferenceContext",
    Box ShapeBox = "TF_ShapeHandle",
    Box DimensionBox = "TF_DimensionHandle",
    Box WritableFile = "TF_WritableFileHandle",
    Box StringStream = "TF_StringStream",
    Box Thread = "TF_Thread",
    Box OpenLibrary = "library",
    Box LockHolder = "TF_VariableInputLockHolder",
    Box VariableInfo = "TF_VariableInfo",
    Box Device = "TF_Device",
}

/// Bit of a place's word that a thread sets while it uses the place.
const IN_USE: u64 = 1;
/// Bit of a place's word that says that there is an object.
const OCCUPIED: u64 = 2;
/// Bits of a place's word below the generation.
const STATE_BITS: u32 = 2;

/// A place of the table.
struct Place {
    /// The generation, which counts the objects that were here from 1 on, and bits of state.
    word: AtomicU64,
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
struct InUse<'p> {
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
fn idle(generation: u32) -> u64 {
    u64::from(generation) << STATE_BITS | OCCUPIED
}

/// How often a thread looks whether another is done before it lets others run.
const SPINS: u32 = 64;

impl Place {
    /// Takes the place for use, if it has an object of this generation; else returns the generation that it has.
    #[inline(always)]
    fn enter(&self, generation: u32) -> Result<InUse<'_>, u32> {
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
    fn look<K: Kind, R>(&self, generation: u32, read: impl FnOnce(u32, &Facts) -> R) -> Option<R> {
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
    fn fill(&self, (kind, facts): (u32, Option<Words>), object: Object) -> u32 {
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
    fn object(&mut self) -> &mut Option<Object> {
        // SAFETY: this thread has set the bit, so that no other uses the object; the value is borrowed.
        unsafe { &mut *self.place.object.get() }
    }

    /// Lends the object, if it is of this type, to a function that may change it.
    #[inline(always)]
    fn lend<K: Kind, R>(&mut self, use_it: impl FnOnce(&mut K) -> R) -> Option<R> {
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
    fn empty(&mut self) {
        let generation = (self.then >> STATE_BITS) as u32;
        // Generations of a place that has had four thousand million objects begin anew.
        let next = generation.checked_add(1).unwrap_or(1);
        self.then = u64::from(next) << STATE_BITS;
    }
}

/// All objects that plugins hold.
struct Table {
    /// The first places of the chunks, which are made in this order and stay for good; null for one that is to come.
    /// Invariant: chunk `i` has `FIRST_CHUNK << i` places.
    chunks: [AtomicPtr<Place>; MAX_CHUNKS],
    free: Mutex<Free>,
}

/// Places without an object, of no thread.
struct Free {
    places: Vec<u32>,
    /// The number of places that were ever used.
    n_used: u32,
}

static TABLE: Table = Table {
    chunks: [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CHUNKS],
    free: Mutex::new(Free {
        places: Vec::new(),
        n_used: 0,
    }),
};

/// The number of free places that a thread takes, or gives back, at once.
const BATCH: usize = 64;

/// The most free places that a thread keeps.
const MAX_OWN: usize = 2 * BATCH;

/// Free places of a thread, which all may have when it ends.
struct OwnFree {
    places: [Cell<u32>; MAX_OWN],
    len: Cell<usize>,
}

impl OwnFree {
    #[inline]
    fn pop(&self) -> Option<u32> {
        let len = self.len.get().checked_sub(1)?;
        self.len.set(len);
        Some(self.places.get(len)?.get())
    }

    /// Keeps a place, unless there are too many.
    #[inline]
    fn push(&self, index: u32) -> bool {
        let len = self.len.get();
        let Some(place) = self.places.get(len) else {
            return false;
        };
        place.set(index);
        self.len.set(len + 1);
        true
    }

    /// Takes the places above the first `n`.
    fn split_off(&self, n: usize) -> Vec<u32> {
        let places = self.places.get(n..self.len.get()).unwrap_or_default();
        self.len.set(n.min(self.len.get()));
        places.iter().map(Cell::get).collect()
    }
}

thread_local! {
    /// The number of objects that were made on this thread, less those that a plugin has deleted on it.
    static N_MADE: Cell<i64> = const { Cell::new(0) };
}

/// Runs a plugin's code, and returns with its result how many objects it has made on this thread and not deleted.
#[inline]
pub fn counted<R>(run: impl FnOnce() -> R) -> (R, i64) {
    let before = N_MADE.get();
    let result = run();
    (result, N_MADE.get() - before)
}

impl Drop for OwnFree {
    fn drop(&mut self) {
        lock(&TABLE.free).places.append(&mut self.split_off(0));
    }
}

thread_local! {
    static OWN_FREE: OwnFree = const {
        OwnFree {
            places: [const { Cell::new(0) }; MAX_OWN],
            len: Cell::new(0),
        }
    };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the chunk of a place, and where it is there: below `FIRST_CHUNK << chunk`.
#[inline(always)]
fn split(index: u32) -> (usize, usize) {
    let n = index + FIRST_CHUNK;
    // The highest bit is not below that of the first chunk: `|` says so.
    let chunk = (n | FIRST_CHUNK).ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (n - (FIRST_CHUNK << chunk)) as usize)
}

impl Table {
    #[inline(always)]
    fn place(&self, index: u32) -> Option<&Place> {
        let (chunk, at) = split(index);
        let first = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: by the invariant the chunk has more places than `at`.
        let place = unsafe { first.add(at) };
        // SAFETY: it is one of them, and they stay for good.
        Some(unsafe { &*place })
    }

    /// Returns a place for a new object, if there are not too many.
    #[inline]
    fn take_place(&self) -> Option<u32> {
        match OWN_FREE.try_with(OwnFree::pop) {
            Ok(Some(place)) => Some(place),
            _ => self.take_common(),
        }
    }

    /// Returns a place of no thread, and leaves the thread more of them, unless it ends.
    #[cold]
    fn take_common(&self) -> Option<u32> {
        let mut free = lock(&self.free);
        let only = self.next(&mut free)?;
        let _ends = OWN_FREE.try_with(|own| {
            for _ in 1..BATCH {
                let Some(index) = self.next(&mut free) else {
                    break;
                };
                own.push(index);
            }
        });
        Some(only)
    }

    /// Returns one of the free places, or else one that was never used.
    fn next(&self, free: &mut Free) -> Option<u32> {
        if let Some(index) = free.places.pop() {
            return Some(index);
        }
        let index = free.n_used;
        let (chunk, _) = split(index);
        let n_places = FIRST_CHUNK << chunk;
        let chunk = self.chunks.get(chunk)?;
        // Who has the lock of the free places is the only one to make chunks.
        if chunk.load(Ordering::Relaxed).is_null() {
            let places: Box<[Place]> = (0..n_places).map(|_| Place::default()).collect();
            let first = Box::leak(places).as_mut_ptr();
            chunk.store(first, Ordering::Release);
        }
        free.n_used += 1;
        Some(index)
    }

    /// Takes a place back that is empty.
    #[inline]
    fn free_place(&self, index: u32) {
        if !OWN_FREE.try_with(|own| own.push(index)).unwrap_or(false) {
            self.free_common(index);
        }
    }

    /// Takes a place back that the thread has no room for, and some of its own.
    #[cold]
    fn free_common(&self, index: u32) {
        let others = OWN_FREE.try_with(|own| own.split_off(BATCH));
        let mut free = lock(&self.free);
        free.places.push(index);
        free.places.extend(others.unwrap_or_default());
    }
}

/// Returns the number of objects that plugins hold.
pub fn n_held() -> usize {
    let n_used = lock(&TABLE.free).n_used;
    let places = (0..n_used).filter_map(|index| TABLE.place(index));
    let is_occupied = |place: &&Place| place.word.load(Ordering::Relaxed) & OCCUPIED != 0;
    places.filter(is_occupied).count()
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Handle<K> {}

impl<K> Default for Handle<K> {
    fn default() -> Self {
        Handle::NULL
    }
}

impl<K> Handle<K> {
    /// No object.
    pub const NULL: Handle<K> = Handle {
        bits: 0,
        kind: PhantomData,
    };

    /// Returns whether this is a null pointer.
    pub fn is_null(self) -> bool {
        self.bits == 0
    }

    /// Returns the number that C sees.
    pub fn bits(self) -> usize {
        self.bits as usize
    }

    fn parts(self) -> Option<(u32, u32)> {
        let low = self.bits as u32;
        let is_aligned = low.trailing_zeros() >= LOW_BITS;
        let generation = (self.bits >> 32) as u32;
        (is_aligned && generation > 0).then_some((low >> LOW_BITS, generation))
    }
}

impl<K: Kind> Handle<K> {
    /// Puts an object into the table. Null if there are too many.
    #[inline]
    pub fn new(value: K) -> Handle<K> {
        Handle::of_stored(K::Stored::store(value))
    }

    /// Puts an object that is stored already into the table. Null if there are too many.
    #[inline]
    pub fn of_stored(stored: K::Stored) -> Handle<K> {
        let Some(index) = TABLE.take_place() else {
            fault::record(format_args!("a plugin holds too many objects"));
            return Handle::NULL;
        };
        let place = TABLE.place(index).expect("places that were taken exist");
        N_MADE.set(N_MADE.get() + 1);
        let facts = (K::NUMBER, stored.facts());
        let generation = place.fill(facts, K::into_object(stored));
        Handle {
            bits: u64::from(generation) << 32 | u64::from(index << LOW_BITS),
            kind: PhantomData,
        }
    }

    /// Returns whether the object may be there: `false` once it is deleted, whatever its type was.
    #[inline]
    pub fn may_lead_somewhere(self) -> bool {
        let is_there = |(place, generation): (&Place, u32)| {
            // Ordering: the acquire pairs with the release of who has deleted the object, and uses it no more.
            place.word.load(Ordering::Acquire) & !IN_USE == idle(generation)
        };
        self.place().is_some_and(is_there)
    }

    /// Uses the object. Records a fault and returns `None` if there is none: `argument` is the one that the handle was.
    #[inline(always)]
    pub fn with<R>(self, argument: &str, use_it: impl FnOnce(&mut K) -> R) -> Option<R> {
        if let Some(mut place) = self.enter()
            && let Some(result) = place.lend(use_it)
        {
            return Some(result);
        }
        self.refuse(argument);
        None
    }

    /// Reads facts of the object without taking its place: the first one, and the others. `None` if the handle leads to no
    /// such object, if somebody changes the object right now, or if it tells none: [`with`](Self::with) says which.
    #[inline(always)]
    pub fn look<R>(self, read: impl FnOnce(u32, &Facts) -> R) -> Option<R> {
        let (place, generation) = self.place()?;
        place.look::<K, R>(generation, read)
    }

    /// Uses the object, or says why there is none.
    pub fn with_quietly<R>(self, use_it: impl FnOnce(&mut K) -> R) -> Result<R, String> {
        if let Some(mut place) = self.enter()
            && let Some(result) = place.lend(use_it)
        {
            return Ok(result);
        }
        Err(self.reason())
    }

    /// Takes the object out of the table for a plugin that deletes it: the handle and its copies lead nowhere from then on.
    pub fn take(self, argument: &str) -> Option<K> {
        let taken = self.take_object().and_then(K::take);
        match taken {
            Some(stored) => {
                N_MADE.set(N_MADE.get() - 1);
                Some(stored.unstore())
            }
            None => {
                self.refuse(argument);
                None
            }
        }
    }

    /// Deletes the object for a plugin, unless the handle is null.
    #[inline]
    pub fn delete(self, argument: &str) {
        if self.is_null() {
            return;
        }
        match self.take_object() {
            Some(object) => {
                N_MADE.set(N_MADE.get() - 1);
                drop(object);
            }
            None => self.refuse(argument),
        }
    }

    /// Takes an object that the host has made out of the table, or says why there is none.
    pub fn take_quietly(self) -> Result<K, String> {
        self.take_stored().map(Storage::unstore)
    }

    /// Takes an object that the host has made out of the table, as it is stored, or says why there is none.
    pub fn take_stored(self) -> Result<K::Stored, String> {
        let taken = self.take_object().and_then(K::take);
        taken.ok_or_else(|| self.reason())
    }

    /// Takes the object, if it is of this type, out of the table. It is dropped when nothing is in use: what it held may be
    /// a plugin's, whose code runs then.
    #[inline]
    fn take_object(self) -> Option<Object> {
        let mut place = self.enter()?;
        place.object().as_mut().and_then(K::of)?;
        let object = place.object().take();
        place.empty();
        drop(place);
        TABLE.free_place((self.bits as u32) >> LOW_BITS);
        object
    }

    /// Takes the place of the object for use, if the handle leads to one.
    #[inline(always)]
    fn enter(self) -> Option<InUse<'static>> {
        let (place, generation) = self.place()?;
        place.enter(generation).ok()
    }

    #[inline(always)]
    fn place(self) -> Option<(&'static Place, u32)> {
        let (index, generation) = self.parts()?;
        Some((TABLE.place(index)?, generation))
    }

    /// Records the fault of an argument that leads to no object of this type.
    #[cold]
    fn refuse(self, argument: &str) {
        fault::argument(argument, &self.reason());
    }

    /// Returns why the handle leads to no object of this type.
    #[cold]
    fn reason(self) -> String {
        if self.is_null() {
            return format!("expected a {}, found a null pointer", K::NAME);
        }
        let Some((place, generation)) = self.place() else {
            return self.made_up();
        };
        match place.enter(generation) {
            Ok(mut place) => match place.object() {
                Some(object) => format!("expected a {}, found a {}", K::NAME, object.name()),
                None => self.made_up(),
            },
            Err(now) => self.gone(now, generation),
        }
    }

    fn gone(self, now: u32, asked: u32) -> String {
        // The generation that a free place has was not given out yet.
        match asked < now {
            true => format!("expected a {}, found one that was deleted", K::NAME),
            false => self.made_up(),
        }
    }

    fn made_up(self) -> String {
        let (name, bits) = (K::NAME, self.bits);
        format!("expected a {name}, found {bits:#x}, which the host has not given out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Handle<Status> {
        Handle::new(Status::default())
    }

    #[test]
    fn places_lie_within_their_chunks_and_no_two_are_the_same() {
        let mut last = None;
        for index in 0..FIRST_CHUNK * 40 {
            let (chunk, at) = split(index);
            assert!(at < (FIRST_CHUNK as usize) << chunk, "{index}");
            assert!(last < Some((chunk, at)), "{index}");
            last = Some((chunk, at));
        }
    }

    #[test]
    fn deleted_handles_lead_nowhere_though_their_place_is_used_again() {
        let first = status();
        assert!(first.take_quietly().is_ok());
        let second = status();
        let reason = first.with_quietly(|_| ()).unwrap_err();
        assert_eq!(reason, "expected a TF_Status, found one that was deleted");
        assert!(first.take_quietly().is_err());
        assert!(second.take_quietly().is_ok());
    }

    #[test]
    fn handles_of_other_types_and_made_up_ones_are_refused() {
        let status = status();
        let tensor: Handle<Tensor> = Handle {
            bits: status.bits,
            kind: PhantomData,
        };
        let reason = tensor.take_quietly().err();
        let expected = "expected a TF_Tensor, found a TF_Status";
        assert_eq!(reason.as_deref(), Some(expected));
        assert!(status.with_quietly(|_| ()).is_ok(), "it is still there");
        for bits in [1, 16, 0x7fff_1234_5678, u64::MAX, status.bits + 1] {
            let made_up: Handle<Status> = Handle {
                bits,
                kind: PhantomData,
            };
            let reason = made_up.with_quietly(|_| ()).unwrap_err();
            assert!(reason.contains("has not given out"), "{bits:#x}: {reason}");
        }
        assert!(Handle::<Status>::NULL.take_quietly().is_err());
        assert!(status.take_quietly().is_ok());
    }

    #[test]
    fn facts_are_those_of_the_object_that_a_handle_leads_to() {
        let code = |handle: Handle<Status>| handle.look(|code, _| code);
        let first = status();
        assert_eq!((code(first), code(Handle::NULL)), (Some(0), None));
        assert!(first.with_quietly(|own| own.code = 3).is_ok());
        assert_eq!(code(first), Some(3));
        let inside = first.with_quietly(|_| code(first));
        assert_eq!(inside, Ok(None), "somebody uses it");
        let tensor: Handle<Tensor> = Handle {
            bits: first.bits,
            kind: PhantomData,
        };
        assert_eq!(tensor.look(|code, _| code), None, "of another type");
        assert!(first.may_lead_somewhere());
        assert!(first.take_quietly().is_ok());
        assert_eq!((code(first), first.may_lead_somewhere()), (None, false));
    }

    #[test]
    fn facts_of_later_objects_in_a_place_are_not_those_of_a_handle() {
        const N: usize = 20_000;
        let code_of = |bits: u64| (bits >> 32) as u32;
        let last = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Places are used again and again.
                for _ in 0..N {
                    let handle = status();
                    let set = |own: &mut Status| own.code = code_of(handle.bits).cast_signed();
                    assert!(handle.with_quietly(set).is_ok());
                    last.store(handle.bits, Ordering::Relaxed);
                    assert!(handle.take_quietly().is_ok());
                }
            });
            scope.spawn(|| {
                for _ in 0..N {
                    let bits = last.load(Ordering::Relaxed);
                    let kind = PhantomData;
                    let handle: Handle<Status> = Handle { bits, kind };
                    let found = handle.look(|code, _| code);
                    assert!(found.is_none_or(|code| code == code_of(bits)));
                }
            });
        });
    }

    #[test]
    fn threads_use_an_object_in_turn_and_delete_those_of_others() {
        const N: i32 = 2000;
        let shared = status();
        let given: Vec<Handle<Status>> = (0..200).map(|_| status()).collect();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..N {
                        shared.with_quietly(|own| own.code += 1).unwrap();
                        assert!(status().take_quietly().is_ok());
                    }
                });
            }
            scope.spawn(|| {
                for handle in &given {
                    assert!(handle.take_quietly().is_ok());
                }
            });
        });
        assert_eq!(shared.take_quietly().ok().map(|own| own.code), Some(3 * N));
        for handle in given {
            let reason = handle.with_quietly(|_| ()).unwrap_err();
            assert_eq!(reason, "expected a TF_Status, found one that was deleted");
        }
    }

    #[test]
    fn object_stays_usable_after_a_panic_of_its_user() {
        let handle = status();
        let used = std::panic::catch_unwind(|| handle.with_quietly(|_| panic!("on purpose")));
        assert!(used.is_err());
        assert!(handle.take_quietly().is_ok());
    }
}
