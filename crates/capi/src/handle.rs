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
//!
//! | Part | Has |
//! | --- | --- |
//! | `handle/kinds.rs` | the types of objects |
//! | `handle/place.rs` | a place, and how threads take turns at it |
//! | `handle/table.rs` | all places, and the free ones |
//! | `handle/facts.rs` | numbers that are read without taking a place |
//! | `handle/views.rs` | views of tensors that calls hold, in places that threads keep |

use std::marker::PhantomData;

use crate::fault;

mod facts;
mod kinds;
#[expect(unsafe_code, reason = "places that threads take in turn")]
mod place;
#[expect(unsafe_code, reason = "places that are made once and stay for good")]
mod table;
#[cfg(test)]
mod tests;
pub mod views;

pub use facts::{Facts, Words};
pub use kinds::{InPlace, Kind, Object, Storage, Unstore, Viewed};
use place::{Found, OwnPlace, Place};
use table::{N_MADE, TABLE};
pub use table::{counted, n_held};

/// Bits below the number of a place, so that handles look like aligned pointers.
const LOW_BITS: u32 = 4;

/// Bits of a handle that are the number of its place; the generation is in the upper half, and the others are 0.
const INDEX: u32 = (1 << 28) - (1 << LOW_BITS);

/// A reference that a plugin holds to a `K`; 0 is none.
#[repr(transparent)]
pub struct Handle<K> {
    bits: u64,
    kind: PhantomData<fn() -> K>,
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

    /// Returns the place that the handle leads to, if there is one of its number.
    #[inline(always)]
    fn place(self) -> Option<&'static Place> {
        let low = self.bits as u32;
        match low & !INDEX {
            0 => TABLE.place(low >> LOW_BITS),
            _ => None,
        }
    }
}

impl<K: Kind> Handle<K> {
    /// Puts an object into the table. Null if there are too many.
    #[inline(always)]
    pub fn new(value: K) -> Handle<K> {
        Handle::of_stored(K::Stored::store(value))
    }

    /// Puts an object that is stored already into the table. Null if there are too many.
    #[inline(always)]
    pub fn of_stored(stored: K::Stored) -> Handle<K> {
        let Some(index) = TABLE.take_place() else {
            too_many();
            return Handle::NULL;
        };
        let place = TABLE.place(index).expect("places that were taken exist");
        N_MADE.set(N_MADE.get() + 1);
        Handle::of_place(place.fill::<K>(stored), index)
    }

    /// Returns the handle to the object in a place.
    #[inline(always)]
    fn of_place(generation: u64, index: u32) -> Handle<K> {
        Handle {
            bits: generation | u64::from(index << LOW_BITS),
            kind: PhantomData,
        }
    }

    /// Returns the object that the handle leads to, as its place says it.
    #[inline(always)]
    fn wanted(self) -> Found {
        Found::new::<K>(self.bits)
    }

    /// Uses the object. Records a fault and returns `None` if there is none: `argument` is the one that the handle was.
    #[inline(always)]
    pub fn with<R>(self, argument: &str, use_it: impl FnOnce(&mut K) -> R) -> Option<R> {
        if let Some(place) = self.place()
            && let Some(result) = place.lend(self.wanted(), use_it)
        {
            return Some(result);
        }
        self.refuse(argument);
        None
    }

    /// Reads facts of the object without taking its place. `None` if the handle leads to no such object, or if somebody
    /// changes the object right now: [`with`](Self::with) says which.
    #[inline(always)]
    pub fn look<R>(self, read: impl FnOnce(&Facts) -> R) -> Option<R> {
        self.place()?.look(self.wanted(), read)
    }

    /// Uses the object, or says why there is none.
    pub fn with_quietly<R>(self, use_it: impl FnOnce(&mut K) -> R) -> Result<R, String> {
        if let Some(place) = self.place()
            && let Some(result) = place.lend(self.wanted(), use_it)
        {
            return Ok(result);
        }
        Err(self.reason())
    }

    /// Deletes the object for a plugin, unless the handle is null.
    #[inline(always)]
    pub fn delete(self, argument: &str) {
        match self.place().and_then(|place| place.delete(self.wanted())) {
            Some(is_free) => {
                N_MADE.set(N_MADE.get() - 1);
                if is_free {
                    TABLE.free_place((self.bits as u32) >> LOW_BITS);
                }
            }
            None if self.is_null() => (),
            None => self.refuse(argument),
        }
    }

    /// Records the fault of an argument that leads to no object of this type.
    #[cold]
    #[inline(never)]
    fn refuse(self, argument: &str) {
        fault::argument(argument, &self.reason());
    }

    /// Returns why the handle leads to no object of this type.
    #[cold]
    #[inline(never)]
    fn reason(self) -> String {
        if self.is_null() {
            return format!("expected a {}, found a null pointer", K::NAME);
        }
        let Some(place) = self.place() else {
            return self.made_up();
        };
        let (found, asked) = (place.found(), self.wanted().generation());
        match kinds::name(found.kind()) {
            _ if asked == 0 || asked > found.generation() => self.made_up(),
            _ if asked < found.generation() => {
                format!("expected a {}, found one that was deleted", K::NAME)
            }
            Some(name) => format!("expected a {}, found a {name}", K::NAME),
            // The generation that a free place has was not given out yet.
            None => self.made_up(),
        }
    }

    fn made_up(self) -> String {
        let (name, bits) = (K::NAME, self.bits);
        format!("expected a {name}, found {bits:#x}, which the host has not given out")
    }
}

/// Objects that leave the table whole: all but tensors, of which there may be views.
impl<K: Kind<Stored: Unstore<K>>> Handle<K> {
    /// Takes the object out of the table for a plugin that deletes it: the handle and its copies lead nowhere from then on.
    pub fn take(self, argument: &str) -> Option<K> {
        match self.take_object() {
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

    /// Takes an object that the host has made out of the table, or says why there is none.
    pub fn take_quietly(self) -> Result<K, String> {
        self.take_stored().map(Unstore::unstore)
    }

    /// Takes an object that the host has made out of the table, as it is stored, or says why there is none.
    #[inline]
    pub fn take_stored(self) -> Result<K::Stored, String> {
        self.take_object().ok_or_else(|| self.reason())
    }

    /// Takes the object, if it is of this type, out of the table.
    #[inline(always)]
    fn take_object(self) -> Option<K::Stored> {
        let object = self.place()?.take(self.wanted())?.object();
        TABLE.free_place((self.bits as u32) >> LOW_BITS);
        K::take(object?)
    }
}

/// An object of a thread's own, which it lends to one plugin's call after another.
pub struct Own<K: Kind> {
    place: OwnPlace<K>,
    index: u32,
}

impl<K: Kind> Own<K> {
    /// Puts an object into the table, without a handle. `None` if there are too many.
    pub fn new(value: K) -> Option<Own<K>> {
        let index = TABLE.take_place()?;
        let place = OwnPlace::new(TABLE.place(index)?, K::Stored::store(value));
        Some(Own { place, index })
    }

    /// Returns the object, to which no handle leads from here on.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut K {
        self.place.get_mut()
    }

    /// Returns a handle to the object, which leads to it until this is used again.
    #[inline(always)]
    pub fn lend(&mut self) -> Handle<K> {
        Handle::of_place(self.place.lend(), self.index)
    }
}

impl<K: Kind> Drop for Own<K> {
    fn drop(&mut self) {
        self.place.empty();
        TABLE.free_place(self.index);
    }
}

#[cold]
#[inline(never)]
fn too_many() {
    fault::record(format_args!("a plugin holds too many objects"));
}
