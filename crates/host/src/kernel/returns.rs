//! The return types of kernels: one implementation of [`KernelReturn`] per form of result.
//!
//! | Result | Means |
//! | --- | --- |
//! | `T` where `T: Value` | one available result |
//! | `()` | no result |
//! | [`AsyncValue<T>`] | one result to come |
//! | [`AnyAsyncValue`] | one result of any type, there or to come |
//! | a tuple of these | several results |
//! | `Result<R, Error>` | results, or an error on all of them; inside a tuple, on one |
//! | [`Results`] | as many results as the program asks for, of any type |
//! | [`Later<F>`] | one result, which a task of the work queue computes |
//! | [`Call`], [`Forward`] | the results of a function, which the executor calls |
//! | [`Loop`] | those of the last turn of a loop, whose turns the executor calls |
//! | [`Step`] | control flow: calls, tasks, and waiting |
//!
//! As in [`param`](super::param), the type parameter `M` is for the compiler only.

use tfrt_async::{AnyAsyncValue, AsyncValue, Error, Value};

use super::control::{Call, Flow, Forward, Loop, Step, Turns};
use super::frame::KernelFrame;
use super::signature::{Completion, Part};

/// Something that a kernel function may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be returned from a kernel",
    note = "results are `T: Value`, `AsyncValue<T>`, tuples of these, `()`, `Result<_, tfrt_host::Error>`, `Results`, \
            `Later`, `Call` or `Step`; see the table in `tfrt_host::kernel`"
)]
pub trait KernelReturn<M> {
    /// The parts of the signature that the results add.
    const PARTS: &'static [&'static Part];

    /// Puts the results into the frame, or says what the executor is to do for them.
    fn put(self, frame: &mut KernelFrame<'_, '_>);

    /// How many results `put` puts, if these are mostly values in place.
    #[doc(hidden)]
    const N_PLAIN: Option<u32> = None;

    /// Whether it may be an error.
    #[doc(hidden)]
    const FAILS: bool = false;

    /// Whether `put` leaves operands, and the results, to a call.
    #[doc(hidden)]
    const IS_CALL: bool = false;
}

/// One result among others.
pub trait KernelResult<M> {
    /// The part of the signature that the result adds.
    const PART: &'static Part;

    /// Makes the value for the register.
    fn into_value(self) -> AnyAsyncValue;

    /// Whether it is a value in place.
    #[doc(hidden)]
    const IS_PLAIN: bool = false;

    /// Whether it may be an error.
    #[doc(hidden)]
    const FAILS: bool = false;
}

/// Shapes of result, for the compiler only.
#[doc(hidden)]
pub mod shapes {
    /// `T`
    pub enum Plain {}
    /// Everything that is told apart by its own type.
    pub enum Itself {}
    /// A result or an error.
    pub struct Fallible<M>(std::marker::PhantomData<M>);
    /// A result that a task computes.
    pub struct Computed<M>(std::marker::PhantomData<M>);
    /// A tuple.
    pub struct Several<M>(std::marker::PhantomData<M>);
}
use shapes::*;

impl<T: Value> KernelResult<Plain> for T {
    const PART: &'static Part = &Part::result(Some(T::NAME), Completion::Synchronous);

    #[inline(always)]
    fn into_value(self) -> AnyAsyncValue {
        AnyAsyncValue::new(self)
    }

    const IS_PLAIN: bool = AnyAsyncValue::is_in_place::<T>();
}

impl<T: Value> KernelResult<Itself> for AsyncValue<T> {
    const PART: &'static Part = &Part::result(Some(T::NAME), Completion::Asynchronous);

    fn into_value(self) -> AnyAsyncValue {
        self.into_any()
    }
}

impl KernelResult<Itself> for AnyAsyncValue {
    const PART: &'static Part = &Part::result(None, Completion::Asynchronous);

    fn into_value(self) -> AnyAsyncValue {
        self
    }
}

impl<M, R: KernelResult<M>> KernelResult<Fallible<M>> for Result<R, Error> {
    const PART: &'static Part = R::PART;

    const FAILS: bool = true;

    fn into_value(self) -> AnyAsyncValue {
        match self {
            Ok(result) => result.into_value(),
            Err(error) => AnyAsyncValue::from_error(error),
        }
    }
}

impl<T: Value> KernelReturn<Plain> for T {
    const PARTS: &'static [&'static Part] = &[<T as KernelResult<Plain>>::PART];

    #[inline(always)]
    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.put_result(AnyAsyncValue::new(self));
    }

    const N_PLAIN: Option<u32> = if AnyAsyncValue::is_in_place::<T>() {
        Some(1)
    } else {
        None
    };
}

/// Implements [`KernelReturn`] for a type that is one result: `single_results!(<T: Value> A<T>)`.
macro_rules! single_results {
    ($(<$($param:ident: $bound:ident)?> $result:ty),*) => {$(
        impl$(<$param: $bound>)? KernelReturn<Itself> for $result {
            const PARTS: &'static [&'static Part] = &[<$result as KernelResult<Itself>>::PART];

            fn put(self, frame: &mut KernelFrame<'_, '_>) {
                frame.put_result(<$result as KernelResult<Itself>>::into_value(self));
                    }
        }
    )*};
}

single_results!(<T: Value> AsyncValue<T>, <> AnyAsyncValue);

impl KernelReturn<Itself> for () {
    const PARTS: &'static [&'static Part] = &[];

    fn put(self, _: &mut KernelFrame<'_, '_>) {}
}

impl<M, R: KernelReturn<M>> KernelReturn<Fallible<M>> for Result<R, Error> {
    const N_PLAIN: Option<u32> = R::N_PLAIN;

    const PARTS: &'static [&'static Part] = R::PARTS;

    const FAILS: bool = true;

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        match self {
            Ok(results) => results.put(frame),
            Err(error) => {
                frame.fail(error);
            }
        }
    }
}

/// Implements [`KernelReturn`] for a tuple: `tuple_results!(A MA, B MB)` gives `(A, B)`.
macro_rules! tuple_results {
    ($($result:ident $marker:ident),+) => {
        impl<$($marker, $result: KernelResult<$marker>),+> KernelReturn<Several<($($marker,)+)>>
            for ($($result,)+)
        {
            const PARTS: &'static [&'static Part] = &[$($result::PART),+];

            const FAILS: bool = false $(|| $result::FAILS)+;

            const N_PLAIN: Option<u32> = {
                let results = [$($result::IS_PLAIN),+];
                let mut index = 0;
                let mut all = true;
                while index < results.len() {
                    all &= results[index];
                    index += 1;
                }
                if all { Some(results.len() as u32) } else { None }
            };

            #[inline]
            #[allow(non_snake_case, reason = "one name per element")]
            fn put(self, frame: &mut KernelFrame<'_, '_>) {
                let ($($result,)+) = self;
                $(frame.put_result($result.into_value());)+
            }
        }
    };
}

tuple_results!(A MA, B MB);
tuple_results!(A MA, B MB, C MC);
tuple_results!(A MA, B MB, C MC, D MD);
tuple_results!(A MA, B MB, C MC, D MD, E ME);
tuple_results!(A MA, B MB, C MC, D MD, E ME, G MG);

/// As many results as the program asks for, of any types.
///
/// Fewer or more than that fail the results with `Internal`.
#[derive(Debug, Default)]
pub struct Results(pub Vec<AnyAsyncValue>);

impl KernelReturn<Itself> for Results {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Asynchronous)];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        for value in self.0 {
            frame.put_result(value);
        }
    }
}

/// One result, which a task of the work queue computes: what the closure gives.
///
/// It is what a kernel that calls [`ExecutionContext::enqueue`] returns, for less: no promise has to
/// be kept. A request that is cancelled does not wait for tasks that have not begun.
/// Kernels that return it are called one after the other: what takes long belongs into the closure.
///
/// # Examples
///
/// ```
/// use tfrt_host::kernel::{KernelRegistry, Later};
///
/// /// `%c = "my.slow_sum"(%a, %b)`
/// fn slow_sum(a: i64, b: i64) -> Later<impl FnOnce() -> i64 + Send> {
///     Later(move || (a..b).sum())
/// }
///
/// let mut registry = KernelRegistry::new();
/// registry.add("my.slow_sum", slow_sum);
/// ```
///
/// [`ExecutionContext::enqueue`]: crate::ExecutionContext::enqueue
#[derive(Debug)]
pub struct Later<F>(pub F);

impl<M, R, F> KernelReturn<Computed<M>> for Later<F>
where
    R: KernelResult<M>,
    F: FnOnce() -> R + Send + 'static,
{
    const PARTS: &'static [&'static Part] = &[R::PART, &Part::Queues];

    #[inline]
    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        let Later(compute) = self;
        frame.later(move || compute().into_value());
    }
}

impl KernelReturn<Itself> for Call {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Calls)];

    #[inline]
    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.follow(Flow::Call(self));
    }
}

impl KernelReturn<Itself> for Forward {
    const IS_CALL: bool = true;

    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Calls)];

    #[inline(always)]
    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.call(self.0);
    }
}

impl KernelReturn<Itself> for Step {
    const PARTS: &'static [&'static Part] =
        &[&Part::AnyResults(Completion::Calls), &Part::Detaches];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.follow(Flow::Step(self));
    }
}

impl<L: Turns> KernelReturn<Itself> for Loop<L> {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Calls)];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.follow(Flow::Loop(Box::new(self.turns), self.values));
    }
}
