//! [`Value`]: the Rust types that may sit in a register, and how each is stored.
//!
//! | Storage     | Where a settled value lies                       | Copying it        |
//! |-------------|--------------------------------------------------|-------------------|
//! | [`InPlace`] | in the 16 payload bytes of the register itself   | copies the bytes  |
//! | [`Heap`]    | in a counted cell that the register points to    | counts            |
//!
//! Each type has a record with its name, its identity and the few functions that must know its
//! layout. The address of that record is what a register's tag word holds. A type whose
//! [`Value::RECORD`] is not a static may have several records with equal contents (one per
//! codegen unit), so unequal addresses prove nothing: [`TypeRecord::same`] compares identities.

use std::{any::TypeId, fmt, marker::PhantomData, ptr::NonNull};

use crate::{
    cell::{self, Header},
    repr::Repr,
};

/// A Rust type that may sit in a register.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, Heap, Value};
///
/// struct Matrix(Vec<f32>);
///
/// impl Value for Matrix {
///     const NAME: &'static str = "!my.matrix";
///     type Storage = Heap;
/// }
///
/// let value = AsyncValue::available(Matrix(vec![1.0, 2.0]));
/// assert_eq!(value.get().unwrap().unwrap().0.len(), 2);
/// ```
pub trait Value: Send + Sync + Sized + 'static {
    /// The type's name in MLIR, such as `i32` or `!tfrt.chain`.
    const NAME: &'static str;

    /// [`InPlace`] for small plain data, [`Heap`] for all else.
    type Storage: Storage<Self>;

    /// The run-time record of the type.
    ///
    /// The default works for every type. A type that is read often gives its record one address
    /// in the whole program, so that a comparison of addresses finds it:
    ///
    /// ```
    /// use tfrt_async::{AnyAsyncValue, InPlace, Record, Value};
    ///
    /// #[derive(Clone, Copy, Debug, PartialEq)]
    /// struct Celsius(f32);
    ///
    /// impl Value for Celsius {
    ///     const NAME: &'static str = "!my.celsius";
    ///     type Storage = InPlace;
    ///     const RECORD: &'static Record<Self> = {
    ///         static RECORD: Record<Celsius> = Record::new();
    ///         &RECORD
    ///     };
    /// }
    ///
    /// assert_eq!(AnyAsyncValue::new(Celsius(20.0)).get_in_place(), Some(Celsius(20.0)));
    /// ```
    const RECORD: &'static Record<Self> = &Record::new();
}

/// The run-time record of the type `T`; see [`Value::RECORD`].
#[repr(transparent)]
pub struct Record<T> {
    /// Invariant: describes `T`.
    erased: TypeRecord,
    of: PhantomData<fn(T) -> T>,
}

impl<T: Value> Record<T> {
    /// Returns the record of `T`.
    #[expect(
        clippy::new_without_default,
        reason = "a record is made in constants only"
    )]
    pub const fn new() -> Record<T> {
        Record {
            erased: TypeRecord {
                name: T::NAME,
                type_id: TypeId::of::<T>(),
                in_place: is_in_place::<T>(),
                needs_drop: std::mem::needs_drop::<T>(),
                free: cell::free::<T>,
                load: cell::load_in_place::<T>,
                store: cell::store_in_place::<T>,
            },
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.erased.fmt(f)
    }
}

/// A way to store values of type `T` in registers: [`InPlace`] or [`Heap`].
#[diagnostic::on_unimplemented(
    message = "`{T}` cannot be stored as `{Self}`",
    note = "`InPlace` is for types that are `Copy`; use `Heap` for all others"
)]
pub trait Storage<T>: sealed::Sealed {
    /// True if values lie in the register itself.
    #[doc(hidden)]
    const IN_PLACE: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::InPlace {}
    impl Sealed for super::Heap {}
}

/// Stores a value in the register: for types that are `Copy`, of at most 16 bytes, aligned to at
/// most 8.
#[derive(Debug)]
pub enum InPlace {}

/// Stores a value in a counted cell on the heap: for every type.
#[derive(Debug)]
pub enum Heap {}

impl<T: Copy> Storage<T> for InPlace {
    const IN_PLACE: bool = {
        assert!(
            size_of::<T>() <= 16,
            "a type stored InPlace has at most 16 bytes"
        );
        assert!(
            align_of::<T>() <= 8,
            "a type stored InPlace is aligned to at most 8 bytes"
        );
        true
    };
}

impl<T> Storage<T> for Heap {
    const IN_PLACE: bool = false;
}

/// Returns true if values of `T` lie in the register itself.
pub(crate) const fn is_in_place<T: Value>() -> bool {
    <T::Storage as Storage<T>>::IN_PLACE
}

/// The run-time record of a type, without the type: its name, and how it is stored, moved and
/// freed.
///
/// Aligned so that the low bits of its address are free for a register's tag.
#[repr(align(8))]
pub(crate) struct TypeRecord {
    pub(crate) name: &'static str,
    pub(crate) type_id: TypeId,
    pub(crate) in_place: bool,
    /// True if dropping the payload runs code, which may nest without bound.
    pub(crate) needs_drop: bool,
    /// Drops the payload, if the cell holds one, and frees the cell.
    pub(crate) free: unsafe fn(NonNull<Header>, bool),
    /// Copies the payload of a settled cell into a register. Only for types stored in place.
    pub(crate) load: unsafe fn(NonNull<Header>) -> Repr,
    /// Copies the payload of a register into a pending cell. Only for types stored in place.
    pub(crate) store: unsafe fn(NonNull<Header>, &Repr),
}

impl TypeRecord {
    /// Returns the record of `T`.
    #[inline(always)]
    pub(crate) const fn of<T: Value>() -> &'static TypeRecord {
        &T::RECORD.erased
    }

    /// Returns the record of cells that may be settled with a value of any type.
    ///
    /// In state `Value` such a cell holds a [`Repr`] whose value lies in place.
    pub(crate) const fn untyped() -> &'static TypeRecord {
        enum Untyped {}
        static UNTYPED: TypeRecord = TypeRecord {
            name: "(unknown)",
            type_id: TypeId::of::<Untyped>(),
            in_place: true,
            needs_drop: false,
            free: cell::free::<Repr>,
            load: cell::load_untyped,
            store: cell::store_untyped,
        };
        &UNTYPED
    }

    /// Returns true if this is a record of `T`.
    #[inline]
    pub(crate) fn is<T: Value>(&'static self) -> bool {
        self.same(TypeRecord::of::<T>())
    }

    /// Returns true if both are records of one type.
    #[inline]
    pub(crate) fn same(&'static self, other: &'static TypeRecord) -> bool {
        std::ptr::eq(self, other) || self.type_id == other.type_id
    }

    /// Returns true if this is the record of cells without a type of their own.
    pub(crate) fn is_untyped(&'static self) -> bool {
        self.same(TypeRecord::untyped())
    }
}

impl fmt::Debug for TypeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Makes scalars values: `bool => "i1"` becomes
/// `impl Value for bool { const NAME: &'static str = "i1"; type Storage = InPlace; .. }`, with a
/// static record.
macro_rules! scalars {
    ($($type:ty => $name:literal,)*) => {
        $(
            impl Value for $type {
                const NAME: &'static str = $name;
                type Storage = InPlace;
                const RECORD: &'static Record<$type> = {
                    static RECORD: Record<$type> = Record::new();
                    &RECORD
                };
            }
        )*
    };
}

scalars! {
    bool => "i1",
    i8 => "i8",
    i16 => "i16",
    i32 => "i32",
    i64 => "i64",
    u8 => "ui8",
    u16 => "ui16",
    u32 => "ui32",
    u64 => "ui64",
    f32 => "f32",
    f64 => "f64",
}

impl Value for String {
    const NAME: &'static str = "!tfrt.string";
    type Storage = Heap;
}
