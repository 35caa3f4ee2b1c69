//! The parameters of kernels: one implementation of [`KernelParam`] per kind of parameter.
//!
//! | Parameter | Means |
//! | --- | --- |
//! | `T` where `T: Value + Copy` | a strict operand, copied |
//! | `&T` | a strict operand, borrowed for the call |
//! | [`Owned<T>`] | a strict operand, moved out if this kernel is its last user, else cloned |
//! | [`AsyncValue<T>`] | a non-strict operand: not waited for |
//! | [`AnyAsyncValue`] | a strict operand of any type |
//! | [`Operands`] | all remaining operands, strict, of any type, borrowed for the call |
//! | [`Rest`] | the same, in a list to be kept |
//! | [`Awaited`] | the same, only waited for |
//! | [`Arguments`] | the same, to be handed to a function as they are |
//! | [`Attr<T>`] | an attribute, read in place |
//! | [`RestAttributes`] | all remaining attributes |
//! | [`Callee`] | a function for the executor to call |
//! | [`Callees`] | all remaining functions, for the executor to call one |
//! | [`Function`] | a function, to be kept or looked at |
//! | [`Early`] | nothing: the kernel runs as soon as one operand is there |
//! | [`ResultCount`] | how many results the program asks for |
//! | a tuple of these | several parameters, for kernels that have more than functions may |
//! | [`NodeState`](super::NodeState) | what the kernel keeps for the node from run to run |
//! | `&`[`HostContext`], `&`[`ExecutionContext`] | surroundings |
//!
//! A parameter is taken off the frame in two steps, so that it can be borrowed for the call:
//! [`KernelParam::take`] moves what it needs out of the frame into a guard, and
//! [`KernelParam::item`] lends the guard to the function. Guards are dropped as soon as the kernel
//! has returned and before its results are published.
//!
//! The type parameter `M` of the trait only tells kinds of parameter apart for the compiler's
//! coherence rules; it is always inferred.

use std::ops::Deref;

use smallvec::SmallVec;
use tfrt_async::{AnyAsyncValue, AsyncValue, Value};
use tfrt_bef::{AttributeOffset, AttributeSection, AttributeView, BefFile};

use super::control::Callee;
use super::frame::{KernelFrame, Mismatch};
use super::signature::{AttributeSpec, Part};
use crate::context::HostContext;
use crate::function::Function;
use crate::request::{ExecutionContext, LentContext};

/// Something that a kernel function may declare as a parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a parameter of a kernel",
    note = "operands are `T`, `&T`, `Owned<T>` or `AsyncValue<T>` with `T: Value` (`T` by value needs `T: Copy`); \
            attributes are `Attr<T>`; see the table in `tfrt_host::kernel`"
)]
pub trait KernelParam<M>: Sized {
    /// The value that is taken off the frame and lives for the call; programs and requests live longer, for `'f`.
    type Guard<'f>;
    /// The argument of the function: the parameter with the lifetime of the call.
    type Item<'a>;

    /// The part of the signature that the parameter adds.
    const PART: &'static Part;

    /// Takes the parameter off the frame.
    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Self::Guard<'f>, Mismatch>;

    /// Lends the parameter to the function.
    fn item<'a>(guard: &'a mut Self::Guard<'_>) -> Self::Item<'a>;

    /// How many operands it takes, if [`Self::copy`] can do without taking them.
    #[doc(hidden)]
    const N_COPIED: Option<u32> = None;

    /// It stands for all operands that are left, which are waited for.
    #[doc(hidden)]
    const IS_REST: bool = false;

    /// Gives the parameter if that takes one look at operand `index`, and no more.
    #[doc(hidden)]
    fn copy<'f>(frame: &mut KernelFrame<'f, '_>, index: u32) -> Option<Self::Guard<'f>> {
        let _ = (frame, index);
        None
    }
}

/// Kinds of parameter, for the compiler only.
#[doc(hidden)]
pub mod kinds {
    /// `T`
    pub enum Copied {}
    /// `&T`
    pub enum Borrowed {}
    /// Everything that is told apart by its own type.
    pub enum Itself {}
    /// `Attr<T>` of a scalar
    pub enum ScalarAttribute {}
    /// `Attr<&str>`
    pub enum TextAttribute {}
    /// `Attr<&[T]>`
    pub enum ArrayAttribute {}
    /// `Attr<AttributeView>`
    pub enum AnyAttribute {}
    /// A tuple of others.
    pub struct Several<M>(std::marker::PhantomData<M>);
    /// `&HostContext`
    pub enum Host {}
    /// `&ExecutionContext`
    pub enum Execution {}
}
use kinds::*;

impl<T: Value + Copy> KernelParam<Copied> for T {
    type Guard<'f> = T;
    type Item<'a> = T;

    const PART: &'static Part = &Part::operand(Some(T::NAME), true);

    #[inline]
    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<T, Mismatch> {
        frame.take_copy::<T>()
    }

    #[inline]
    fn item<'a>(guard: &'a mut T) -> T {
        *guard
    }

    const N_COPIED: Option<u32> = Some(1);

    #[inline(always)]
    fn copy(frame: &mut KernelFrame<'_, '_>, index: u32) -> Option<T> {
        frame.copy_at::<T>(index)
    }
}

impl<T: Value> KernelParam<Borrowed> for &T {
    type Guard<'f> = AsyncValue<T>;
    type Item<'a> = &'a T;

    const PART: &'static Part = &Part::operand(Some(T::NAME), true);

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<AsyncValue<T>, Mismatch> {
        frame.take_typed::<T>()
    }

    fn item<'a>(guard: &'a mut AsyncValue<T>) -> &'a T {
        match guard.get() {
            Some(Ok(value)) => value,
            _ => unreachable!("take_typed() checked that the operand is a value"),
        }
    }
}

/// An operand that the kernel may keep: moved out of its register if no one else will read it.
#[derive(Debug)]
pub struct Owned<T>(pub T);

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Value + Clone> KernelParam<Itself> for Owned<T> {
    type Guard<'f> = Option<T>;
    type Item<'a> = Owned<T>;

    const PART: &'static Part = &Part::operand(Some(T::NAME), true);

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<T>, Mismatch> {
        let value = frame.take_typed::<T>()?;
        Ok(Some(match value.try_into_value() {
            Ok(value) => value,
            Err(shared) => match shared.get() {
                Some(Ok(value)) => value.clone(),
                _ => unreachable!("take_typed() checked that the operand is a value"),
            },
        }))
    }

    fn item<'a>(guard: &'a mut Option<T>) -> Owned<T> {
        Owned(guard.take().expect("a parameter is lent once"))
    }
}

impl<T: Value> KernelParam<Itself> for AsyncValue<T> {
    type Guard<'f> = Option<AsyncValue<T>>;
    type Item<'a> = AsyncValue<T>;

    const PART: &'static Part = &Part::operand(Some(T::NAME), false);

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<AsyncValue<T>>, Mismatch> {
        let index = frame.next_operand();
        frame
            .take_operand()?
            .downcast::<T>()
            .map(Some)
            .map_err(|value| Mismatch::Operand {
                index,
                expected: T::NAME,
                found: value.type_name(),
            })
    }

    fn item<'a>(guard: &'a mut Option<AsyncValue<T>>) -> AsyncValue<T> {
        guard.take().expect("a parameter is lent once")
    }
}

impl KernelParam<Itself> for AnyAsyncValue {
    type Guard<'f> = Option<AnyAsyncValue>;
    type Item<'a> = AnyAsyncValue;

    const PART: &'static Part = &Part::operand(None, true);

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<AnyAsyncValue>, Mismatch> {
        frame.take_value().map(Some)
    }

    fn item<'a>(guard: &'a mut Option<AnyAsyncValue>) -> AnyAsyncValue {
        guard.take().expect("a parameter is lent once")
    }
}

/// All remaining operands, untyped.
#[derive(Debug, Default)]
pub struct Rest(pub Vec<AnyAsyncValue>);

impl Deref for Rest {
    type Target = [AnyAsyncValue];

    fn deref(&self) -> &[AnyAsyncValue] {
        &self.0
    }
}

impl KernelParam<Itself> for Rest {
    type Guard<'f> = Rest;
    type Item<'a> = Rest;

    const PART: &'static Part = &Part::MoreOperands;

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Rest, Mismatch> {
        let rest = frame.take_rest()?;
        Ok(Rest(rest))
    }

    fn item<'a>(guard: &'a mut Rest) -> Rest {
        std::mem::take(guard)
    }
}

/// All remaining operands, untyped, for the length of the kernel's run: costs no list of its own for a few of
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a>(pub &'a [AnyAsyncValue]);

impl Deref for Operands<'_> {
    type Target = [AnyAsyncValue];

    fn deref(&self) -> &[AnyAsyncValue] {
        self.0
    }
}

/// So many operands take no list.
const FEW_OPERANDS: usize = 4;

impl KernelParam<Itself> for Operands<'_> {
    type Guard<'f> = SmallVec<[AnyAsyncValue; FEW_OPERANDS]>;
    type Item<'a> = Operands<'a>;

    const PART: &'static Part = &Part::MoreOperands;

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Self::Guard<'f>, Mismatch> {
        let n_left = frame.n_operands_left();
        let mut rest = SmallVec::with_capacity(n_left);
        for _ in 0..n_left {
            rest.push(frame.take_value()?);
        }
        Ok(rest)
    }

    fn item<'a>(guard: &'a mut Self::Guard<'_>) -> Operands<'a> {
        Operands(guard)
    }
}

/// All remaining operands, which the kernel waits for and does not look at.
#[derive(Debug)]
pub struct Awaited(());

impl KernelParam<Itself> for Awaited {
    type Guard<'f> = Awaited;
    type Item<'a> = Awaited;

    const PART: &'static Part = &Part::MoreOperands;

    #[inline(always)]
    fn take(_: &mut KernelFrame<'_, '_>) -> Result<Awaited, Mismatch> {
        // Whether these have failed is looked at before the kernel runs.
        Ok(Awaited(()))
    }

    #[inline(always)]
    fn item<'a>(_: &'a mut Awaited) -> Awaited {
        Awaited(())
    }

    const N_COPIED: Option<u32> = Some(0);
    const IS_REST: bool = true;

    #[inline(always)]
    fn copy(_: &mut KernelFrame<'_, '_>, _: u32) -> Option<Awaited> {
        Some(Awaited(()))
    }
}

/// All remaining operands, for [`Call::forward`](super::Call::forward): the executor moves them from
/// register to register, and the kernel does not see them.
#[derive(Debug)]
pub struct Arguments(());

impl KernelParam<Itself> for Arguments {
    type Guard<'f> = Arguments;
    type Item<'a> = Arguments;

    const PART: &'static Part = &Part::MoreOperands;

    #[inline(always)]
    fn take(_: &mut KernelFrame<'_, '_>) -> Result<Arguments, Mismatch> {
        // Whether these have failed is looked at before the kernel runs.
        Ok(Arguments(()))
    }

    #[inline(always)]
    fn item<'a>(_: &'a mut Arguments) -> Arguments {
        Arguments(())
    }

    const N_COPIED: Option<u32> = Some(0);
    const IS_REST: bool = true;

    #[inline(always)]
    fn copy(_: &mut KernelFrame<'_, '_>, _: u32) -> Option<Arguments> {
        Some(Arguments(()))
    }
}

/// An attribute: a constant that the compiler attached to the operation.
///
/// `T` is `bool`, an integer, `f32`, `f64`, [`F16`](super::F16), [`BF16`](super::BF16), `&str`, a
/// slice of a scalar type, or [`AttributeView`] for everything else.
#[derive(Clone, Copy, Debug)]
pub struct Attr<T>(pub T);

impl<T> Deref for Attr<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A type that an attribute may hold in a fixed number of bytes.
pub trait ScalarAttr: Copy + 'static {
    /// The name in signatures and messages.
    const KIND: &'static str;
    /// The name of an array of these.
    const ARRAY_KIND: &'static str;

    /// Reads the attribute.
    fn read(view: AttributeView<'_>) -> Option<Self>;

    /// Reads an attribute that load has read as one of these before.
    #[doc(hidden)]
    fn read_again(file: &BefFile, section: &AttributeSection, offset: u32) -> Option<Self>;

    /// Reads an array of these in place; `None` where the type has no array in place.
    fn read_array(view: AttributeView<'_>) -> Option<&[Self]>;
}

macro_rules! scalar_attributes {
    ($($type:ty, $kind:literal, $read:expr, $array:expr, $make:expr;)*) => {$(
        impl ScalarAttr for $type {
            const KIND: &'static str = $kind;
            const ARRAY_KIND: &'static str = concat!("array of ", $kind);

            #[inline]
            fn read(view: AttributeView<'_>) -> Option<Self> {
                let read: fn(AttributeView<'_>) -> Option<$type> = $read;
                read(view)
            }

            #[inline(always)]
            fn read_again(file: &BefFile, section: &AttributeSection, offset: u32) -> Option<Self> {
                let make: fn(_) -> $type = $make;
                file.scalar(section, AttributeOffset(offset)).map(make)
            }

            #[inline]
            fn read_array(view: AttributeView<'_>) -> Option<&[Self]> {
                let read: fn(AttributeView<'_>) -> Option<&[$type]> = $array;
                read(view)
            }
        }
    )*};
}

scalar_attributes! {
    bool, "i1", |view| view.as_bool(), |_| None, |byte: u8| byte != 0;
    i8, "i8", |view| view.as_i8(), |view| view.array(), |value| value;
    i16, "i16", |view| view.as_i16(), |view| view.array(), |value| value;
    i32, "i32", |view| view.as_i32(), |view| view.array(), |value| value;
    i64, "i64", |view| view.as_i64(), |view| view.array(), |value| value;
    u8, "ui8", |view| view.as_u8(), |view| view.array(), |value| value;
    u16, "ui16", |view| view.as_u16(), |view| view.array(), |value| value;
    u32, "ui32", |view| view.as_u32(), |view| view.array(), |value| value;
    u64, "ui64", |view| view.as_u64(), |view| view.array(), |value| value;
    f32, "f32", |view| view.as_f32(), |view| view.array(), |value| value;
    f64, "f64", |view| view.as_f64(), |view| view.array(), |value| value;
    super::F16, "f16", |view| view.as_u16().map(super::F16), |_| None, super::F16;
    super::BF16, "bf16", |view| view.as_u16().map(super::BF16), |_| None, super::BF16;
}

impl<T: ScalarAttr> KernelParam<ScalarAttribute> for Attr<T> {
    type Guard<'f> = T;
    type Item<'a> = Attr<T>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: T::KIND,
        readable: |view| T::read(view).is_some(),
    });

    #[inline]
    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<T, Mismatch> {
        frame.take_scalar::<T>()
    }

    #[inline]
    fn item<'a>(guard: &'a mut T) -> Attr<T> {
        Attr(*guard)
    }

    const N_COPIED: Option<u32> = Some(0);

    #[inline(always)]
    fn copy(frame: &mut KernelFrame<'_, '_>, _: u32) -> Option<T> {
        Self::take(frame).ok()
    }
}

/// An attribute held by its program, so that it can be borrowed for a call: the guard of parameters
/// that read one in a way of their own.
pub struct HeldAttribute {
    program: crate::program::ProgramRef,
    offset: u32,
}

impl HeldAttribute {
    /// The attribute.
    pub fn view(&self) -> AttributeView<'_> {
        self.program.attribute(self.offset)
    }
}

impl KernelParam<TextAttribute> for Attr<&str> {
    type Guard<'f> = &'f str;
    type Item<'a> = Attr<&'a str>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: "string",
        readable: |view| view.as_str().is_some(),
    });

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<&'f str, Mismatch> {
        frame.take_attribute("string", |view| view.as_str())
    }

    fn item<'a>(guard: &'a mut &str) -> Attr<&'a str> {
        Attr(guard)
    }
}

impl<T: ScalarAttr> KernelParam<ArrayAttribute> for Attr<&[T]> {
    type Guard<'f> = &'f [T];
    type Item<'a> = Attr<&'a [T]>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: T::ARRAY_KIND,
        readable: |view| T::read_array(view).is_some(),
    });

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<&'f [T], Mismatch> {
        frame.take_attribute(T::ARRAY_KIND, T::read_array)
    }

    fn item<'a>(guard: &'a mut &[T]) -> Attr<&'a [T]> {
        Attr(guard)
    }
}

impl KernelParam<AnyAttribute> for Attr<AttributeView<'_>> {
    type Guard<'f> = AttributeView<'f>;
    type Item<'a> = Attr<AttributeView<'a>>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: "any",
        readable: |_| true,
    });

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<AttributeView<'f>, Mismatch> {
        frame.take_attribute("any", Some)
    }

    fn item<'a>(guard: &'a mut AttributeView<'_>) -> Attr<AttributeView<'a>> {
        Attr(*guard)
    }
}

/// Implements [`KernelParam`] for tuples of parameters: `tuple_params!(A MA a, B MB b)` for `(A, B)`.
macro_rules! tuple_params {
    ($($param:ident $marker:ident $guard:ident),*) => {
        impl<$($param, $marker),*> KernelParam<Several<($($marker,)*)>> for ($($param,)*)
        where
            $($param: KernelParam<$marker> + 'static,)*
        {
            type Guard<'f> = ($($param::Guard<'f>,)*);
            type Item<'a> = ($($param::Item<'a>,)*);

            const PART: &'static Part = &Part::Several(&[$($param::PART),*]);

            fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Self::Guard<'f>, Mismatch> {
                Ok(($($param::take(frame)?,)*))
            }

            fn item<'a>(guard: &'a mut Self::Guard<'_>) -> Self::Item<'a> {
                let ($($guard,)*) = guard;
                ($($param::item($guard),)*)
            }
        }
    };
}

tuple_params!(A MA a, B MB b);
tuple_params!(A MA a, B MB b, C MC c);
tuple_params!(A MA a, B MB b, C MC c, D MD d);
tuple_params!(A MA a, B MB b, C MC c, D MD d, E ME e);
tuple_params!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g);
tuple_params!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h);
tuple_params!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h, I MI i);

/// All remaining attributes, in the order of their names.
#[derive(Debug)]
pub struct RestAttributes<'a>(pub Vec<AttributeView<'a>>);

impl KernelParam<Itself> for RestAttributes<'_> {
    type Guard<'f> = Vec<AttributeView<'f>>;
    type Item<'a> = RestAttributes<'a>;

    const PART: &'static Part = &Part::MoreAttributes;

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Vec<AttributeView<'f>>, Mismatch> {
        let mut rest = Vec::with_capacity(frame.n_attributes_left());
        while frame.n_attributes_left() > 0 {
            rest.push(frame.take_attribute("any", Some)?);
        }
        Ok(rest)
    }

    fn item<'a>(guard: &'a mut Vec<AttributeView<'_>>) -> RestAttributes<'a> {
        RestAttributes(guard.to_vec())
    }
}

/// An attribute that its program lends for a call: the guard of parameters that read it late, or hold it.
#[derive(Clone, Copy)]
pub struct LentAttribute<'f> {
    program: &'f crate::program::ProgramRef,
    offset: u32,
}

impl<'f> LentAttribute<'f> {
    pub(super) fn new(program: &'f crate::program::ProgramRef, offset: u32) -> Self {
        LentAttribute { program, offset }
    }

    /// Returns the attribute.
    pub fn view(&self) -> AttributeView<'f> {
        self.program.attribute(self.offset)
    }

    /// Holds the attribute for longer than the call.
    pub fn hold(&self) -> HeldAttribute {
        HeldAttribute::new(self.program.clone(), self.offset)
    }
}

impl HeldAttribute {
    /// Holds the attribute at `offset` of `program`.
    pub(super) fn new(program: crate::program::ProgramRef, offset: u32) -> Self {
        HeldAttribute { program, offset }
    }
}

impl KernelParam<Itself> for Function {
    type Guard<'f> = Option<Function>;
    type Item<'a> = Function;

    const PART: &'static Part = &Part::Function;

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<Function>, Mismatch> {
        frame.take_function().map(Some)
    }

    fn item<'a>(guard: &'a mut Option<Function>) -> Function {
        guard.take().expect("a parameter is lent once")
    }
}

impl KernelParam<Itself> for Callee {
    type Guard<'f> = Callee;
    type Item<'a> = Callee;

    const PART: &'static Part = &Part::Function;

    #[inline]
    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Callee, Mismatch> {
        frame.take_callee()
    }

    #[inline]
    fn item<'a>(guard: &'a mut Callee) -> Callee {
        *guard
    }

    const N_COPIED: Option<u32> = Some(0);

    #[inline(always)]
    fn copy(frame: &mut KernelFrame<'_, '_>, _: u32) -> Option<Callee> {
        frame.take_callee().ok()
    }
}

/// All remaining functions: references first, then regions.
#[derive(Debug, Default)]
pub struct Callees(pub Vec<Callee>);

impl KernelParam<Itself> for Callees {
    type Guard<'f> = Callees;
    type Item<'a> = Callees;

    const PART: &'static Part = &Part::MoreFunctions;

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Callees, Mismatch> {
        let mut rest = Vec::with_capacity(frame.n_functions_left());
        while frame.n_functions_left() > 0 {
            rest.push(frame.take_callee()?);
        }
        Ok(Callees(rest))
    }

    fn item<'a>(guard: &'a mut Callees) -> Callees {
        std::mem::take(guard)
    }
}

/// Makes the kernel run as soon as one operand is there, as an operation marked `bef.nonstrict` does: for kernels that
/// have to know while they wait that an operand fails, or that their request is stopped. All of their operands are
/// [`AsyncValue`]s.
#[derive(Debug)]
pub struct Early(());

impl KernelParam<Itself> for Early {
    type Guard<'f> = Early;
    type Item<'a> = Early;

    const PART: &'static Part = &Part::StartsEarly;

    fn take(_: &mut KernelFrame<'_, '_>) -> Result<Early, Mismatch> {
        Ok(Early(()))
    }

    fn item<'a>(_: &'a mut Early) -> Early {
        Early(())
    }
}

/// How many results the program asks for: for kernels that give [`Results`](super::Results).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCount(pub usize);

impl KernelParam<Itself> for ResultCount {
    type Guard<'f> = ResultCount;
    type Item<'a> = ResultCount;

    const PART: &'static Part = &Part::Surroundings;

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<ResultCount, Mismatch> {
        Ok(ResultCount(frame.n_results()))
    }

    fn item<'a>(guard: &'a mut ResultCount) -> ResultCount {
        *guard
    }
}

impl KernelParam<Host> for &HostContext {
    type Guard<'f> = &'f HostContext;
    type Item<'a> = &'a HostContext;

    const PART: &'static Part = &Part::Surroundings;

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<&'f HostContext, Mismatch> {
        Ok(frame.host())
    }

    fn item<'a>(guard: &'a mut &HostContext) -> &'a HostContext {
        guard
    }
}

impl KernelParam<Execution> for &ExecutionContext {
    type Guard<'f> = LentContext<'f>;
    type Item<'a> = &'a ExecutionContext;

    const PART: &'static Part = &Part::Surroundings;

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<LentContext<'f>, Mismatch> {
        Ok(frame.lent_context())
    }

    fn item<'a>(guard: &'a mut LentContext<'_>) -> &'a ExecutionContext {
        guard.get()
    }
}
