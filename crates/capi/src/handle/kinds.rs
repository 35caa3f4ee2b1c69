//! [`Kind`]: the types of objects that plugins hold, each once in one list, and how they are stored.

use super::Words;
use crate::functions::construction::Construction;
use crate::functions::context::Done;
use crate::functions::env::{StringStream, Thread, WritableFile};
use crate::functions::kernel::KernelBuilder;
use crate::functions::op::OpBuilder;
use crate::functions::resource::{Device, VariableInfo};
use crate::functions::shape::{DimensionBox, ShapeBox, ShapeContext};
use crate::functions::status::Status;
use crate::functions::variable::LockHolder;
use crate::lent::View;
use crate::library::OpenLibrary;
use crate::run::Context;
use crate::value::Tensor;

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
pub trait Storage<T> {
    /// Stores an object.
    fn store(value: T) -> Self;
    /// Lends the object.
    fn get(&mut self) -> &mut T;
    /// Returns the facts of the object.
    fn facts(&self) -> Option<Words>;
}

/// Storage that gives the object back whole.
pub trait Unstore<T>: Storage<T> {
    /// Returns the object.
    fn unstore(self) -> T;
}

impl<T: Kind> Unstore<T> for Box<T> {
    #[inline]
    fn unstore(self) -> T {
        *self
    }
}

impl<T: Kind> Unstore<T> for InPlace<T> {
    #[inline]
    fn unstore(self) -> T {
        self.0
    }
}

impl<T: Kind> Storage<T> for Box<T> {
    #[inline]
    fn store(value: T) -> Self {
        Box::new(value)
    }

    #[inline(always)]
    fn get(&mut self) -> &mut T {
        self
    }

    #[inline(always)]
    fn facts(&self) -> Option<Words> {
        T::facts(self)
    }
}

/// An object that is stored in its place itself.
pub struct InPlace<T>(T);

impl<T: Kind> Storage<T> for InPlace<T> {
    #[inline(always)]
    fn get(&mut self) -> &mut T {
        &mut self.0
    }

    #[inline(always)]
    fn facts(&self) -> Option<Words> {
        self.0.facts()
    }

    #[inline]
    fn store(value: T) -> Self {
        InPlace(value)
    }
}

/// A tensor that is stored in its place itself: whole, or, while nothing but its facts was asked for, as the view that it is
/// made of ([`views`](super::views)).
pub enum Viewed<T> {
    /// The tensor.
    Whole(T),
    /// A view of memory that a call holds.
    View(View),
}

impl Storage<Tensor> for Viewed<Tensor> {
    #[inline]
    fn store(value: Tensor) -> Self {
        Viewed::Whole(value)
    }

    #[inline]
    fn get(&mut self) -> &mut Tensor {
        if let Viewed::View(view) = self {
            *self = Viewed::Whole(view.tensor());
        }
        match self {
            Viewed::Whole(tensor) => tensor,
            Viewed::View(_) => unreachable!("it was just replaced"),
        }
    }

    #[inline(always)]
    fn facts(&self) -> Option<Words> {
        Some(match self {
            Viewed::Whole(tensor) => tensor.facts(),
            Viewed::View(view) => view.facts(),
        })
    }
}

/// Returns the name of a type, by its number.
pub(super) fn name(number: u32) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.get(index).copied()
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

        /// Names of the types, by their numbers.
        const NAMES: &[&str] = &[$($name,)*];

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

                #[inline(always)]
                fn into_object(stored: Self::Stored) -> Object {
                    Object::$type(stored)
                }

                #[inline(always)]
                fn of(object: &mut Object) -> Option<&mut Self> {
                    match object {
                        Object::$type(own) => Some(own.get()),
                        _ => None,
                    }
                }

                #[inline(always)]
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
    Viewed Tensor = "TF_Tensor" | Tensor::facts,
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
    InPlace LockHolder = "TF_VariableInputLockHolder",
    Box VariableInfo = "TF_VariableInfo",
    Box Device = "TF_Device",
}
