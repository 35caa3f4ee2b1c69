//! [`Handle`]: a checked reference that a plugin holds to an object of the host.
//!
//! C sees a pointer to an opaque type; it is a number, which nothing dereferences: the place of the object in one table,
//! and the generation of that place. A number that was never given out, or whose object was deleted, or is of another
//! type, is found to be wrong. Objects are used under the lock of their place, so that two threads of a plugin that use
//! one object wait for each other; nothing is called back meanwhile.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::fault;
use crate::functions::construction::Construction;
use crate::functions::context::Done;
use crate::functions::kernel::KernelBuilder;
use crate::functions::op::OpBuilder;
use crate::functions::resource::{Device, VariableInfo};
use crate::functions::shape::{DimensionBox, ShapeBox, ShapeContext};
use crate::functions::status::Status;
use crate::functions::variable::LockHolder;
use crate::run::Context;
use crate::value::Tensor;

/// Places in a chunk, and the most chunks: 16 million objects.
const CHUNK: usize = 1 << 12;
const MAX_CHUNKS: usize = 1 << 12;
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

    /// Returns the object as an entry of the table.
    fn into_object(self) -> Object;

    /// Returns the object of an entry, if it is of this type.
    fn of(object: &mut Object) -> Option<&mut Self>;

    /// Returns the object of an entry; the entry if it is of another type.
    fn take(object: Object) -> Result<Self, Object>;
}

/// `kinds!(Status = "TF_Status")` makes an arm of [`Object`] and a [`Kind`] of a type.
macro_rules! kinds {
    ($($type:ident = $name:literal,)*) => {
        /// An object that plugins hold.
        pub enum Object {
            $(
                #[expect(missing_docs, reason = "the type says it")]
                $type(Box<$type>),
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

                fn into_object(self) -> Object {
                    Object::$type(Box::new(self))
                }

                fn of(object: &mut Object) -> Option<&mut Self> {
                    match object {
                        Object::$type(own) => Some(own),
                        _ => None,
                    }
                }

                fn take(object: Object) -> Result<Self, Object> {
                    match object {
                        Object::$type(own) => Ok(*own),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}

kinds! {
    Status = "TF_Status",
    Tensor = "TF_Tensor",
    KernelBuilder = "TF_KernelBuilder",
    Construction = "TF_OpKernelConstruction",
    Context = "TF_OpKernelContext",
    Done = "TF_AsyncOpKernelDoneCallback",
    OpBuilder = "TF_OpDefinitionBuilder",
    ShapeContext = "TF_ShapeInferenceContext",
    ShapeBox = "TF_ShapeHandle",
    DimensionBox = "TF_DimensionHandle",
    LockHolder = "TF_VariableInputLockHolder",
    VariableInfo = "TF_VariableInfo",
    Device = "TF_Device",
}

/// A place of the table.
#[derive(Default)]
struct Place {
    /// Counts the objects that were here. Invariant: above 0 once there was one.
    generation: u32,
    object: Option<Object>,
}

/// All objects that plugins hold.
struct Table {
    chunks: [OnceLock<Box<[Mutex<Place>]>>; MAX_CHUNKS],
    free: Mutex<Free>,
}

/// Places without an object.
#[derive(Default)]
struct Free {
    places: Vec<u32>,
    /// The number of places that were ever used.
    n_used: u32,
}

static TABLE: Table = Table {
    chunks: [const { OnceLock::new() }; MAX_CHUNKS],
    free: Mutex::new(Free {
        places: Vec::new(),
        n_used: 0,
    }),
};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn place(&self, index: u32) -> Option<&Mutex<Place>> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)
    }

    /// Returns a place for a new object, if there are not too many.
    fn take_place(&self) -> Option<u32> {
        let mut free = lock(&self.free);
        if let Some(index) = free.places.pop() {
            return Some(index);
        }
        let index = free.n_used;
        let chunk = self.chunks.get(index as usize / CHUNK)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| Mutex::default()).collect());
        free.n_used += 1;
        Some(index)
    }
}

/// Returns the number of objects that plugins hold.
pub fn n_held() -> usize {
    let free = lock(&TABLE.free);
    free.n_used as usize - free.places.len()
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
    pub fn new(value: K) -> Handle<K> {
        let Some(index) = TABLE.take_place() else {
            fault::record(format_args!("a plugin holds too many objects"));
            return Handle::NULL;
        };
        let place = TABLE.place(index).expect("places that were taken exist");
        let mut place = lock(place);
        // Generations of a place that has had four thousand million objects begin anew.
        place.generation = place.generation.checked_add(1).unwrap_or(1);
        place.object = Some(value.into_object());
        Handle {
            bits: u64::from(place.generation) << 32 | u64::from(index << LOW_BITS),
            kind: PhantomData,
        }
    }

    /// Uses the object. Records a fault and returns `None` if there is none: `argument` is the one that the handle was.
    pub fn with<R>(self, argument: &str, use_it: impl FnOnce(&mut K) -> R) -> Option<R> {
        match self.with_quietly(use_it) {
            Ok(result) => Some(result),
            Err(reason) => {
                fault::argument(argument, &reason);
                None
            }
        }
    }

    /// Uses the object, or says why there is none.
    pub fn with_quietly<R>(self, use_it: impl FnOnce(&mut K) -> R) -> Result<R, String> {
        if self.is_null() {
            return Err(format!("expected a {}, found a null pointer", K::NAME));
        }
        let Some((place, generation)) = self.place() else {
            return Err(self.made_up());
        };
        let mut place = lock(place);
        if place.generation != generation || place.object.is_none() {
            return Err(self.gone(place.generation, generation));
        }
        let Some(object) = place.object.as_mut() else {
            return Err(self.made_up());
        };
        let found = object.name();
        match K::of(object) {
            Some(value) => Ok(use_it(value)),
            None => Err(format!("expected a {}, found a {found}", K::NAME)),
        }
    }

    /// Takes the object out of the table: the handle and its copies lead nowhere from then on.
    pub fn take(self, argument: &str) -> Option<K> {
        match self.take_quietly() {
            Ok(value) => Some(value),
            Err(reason) => {
                fault::argument(argument, &reason);
                None
            }
        }
    }

    /// Takes the object out of the table, or says why there is none.
    pub fn take_quietly(self) -> Result<K, String> {
        if self.is_null() {
            return Err(format!("expected a {}, found a null pointer", K::NAME));
        }
        let Some((place, generation)) = self.place() else {
            return Err(self.made_up());
        };
        let mut place = lock(place);
        if place.generation != generation {
            return Err(self.gone(place.generation, generation));
        }
        let Some(object) = place.object.take() else {
            return Err(self.gone(generation, generation));
        };
        match K::take(object) {
            Ok(value) => {
                drop(place);
                let index = (self.bits as u32) >> LOW_BITS;
                lock(&TABLE.free).places.push(index);
                Ok(value)
            }
            Err(other) => {
                let found = other.name();
                place.object = Some(other);
                Err(format!("expected a {}, found a {found}", K::NAME))
            }
        }
    }

    fn place(self) -> Option<(&'static Mutex<Place>, u32)> {
        let (index, generation) = self.parts()?;
        Some((TABLE.place(index)?, generation))
    }

    fn gone(self, now: u32, asked: u32) -> String {
        match asked <= now {
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
}
