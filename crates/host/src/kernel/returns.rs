//! What a kernel may return: one implementation of [`KernelReturn`] per shape of result.
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
//! | [`Call`], [`Forward`] | the results of a function, which the executor calls |
//! | [`Loop`] | those of the last turn of a loop, whose turns the executor calls |
//! | [`Step`] | control flow: calls, tasks, and waiting |
//!
//! As in [`param`](super::param), the type parameter `M` is for the compiler only.

use tfrt_async::{AnyAsyncValue, AsyncValue, Error, Value};

use super::control::{Call, Flow, Forward, Loop, Step, Turns};
use super::frame::KernelFrame;
use super::signature::{Completion, Signature};

/// Something that a kernel function may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be returned from a kernel",
    note = "results are `T: Value`, `AsyncValue<T>`, tuples of these, `()`, `Result<_, tfrt_host::Error>`, `Results`, \
            `Call` or `Step`; see the table in `tfrt_host::kernel`"
)]
pub trait KernelReturn<M> {
    /// Adds the results to the signature.
    fn describe(signature: &mut Signature);

    /// Puts the results into the frame, or says what the executor is to do for them.
    fn put(self, frame: &mut KernelFrame<'_, '_>);

    /// How many results `put` puts, if these are mostly values in place.
    #[doc(hidden)]
    const N_PLAIN: Option<u32> = None;
}

/// One result among others.
pub trait KernelResult<M> {
    /// Adds the result to the signature.
    fn describe(signature: &mut Signature);

    /// Makes the value for the register.
    fn into_value(self) -> AnyAsyncValue;

    /// Whether it is a value in place.
    #[doc(hidden)]
    const IS_PLAIN: bool = false;
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
    /// A tuple.
    pub struct Several<M>(std::marker::PhantomData<M>);
}
use shapes::*;

impl<T: Value> KernelResult<Plain> for T {
    fn describe(signature: &mut Signature) {
        signature.result(Some(T::NAME));
    }

    #[inline(always)]
    fn into_value(self) -> AnyAsyncValue {
        AnyAsyncValue::new(self)
    }

    const IS_PLAIN: bool = AnyAsyncValue::is_in_place::<T>();
}

impl<T: Value> KernelResult<Itself> for AsyncValue<T> {
    fn describe(signature: &mut Signature) {
        signature.result(Some(T::NAME));
        signature.completes(Completion::Asynchronous);
    }

    fn into_value(self) -> AnyAsyncValue {
        self.into_any()
    }
}

impl KernelResult<Itself> for AnyAsyncValue {
    fn describe(signature: &mut Signature) {
        signature.result(None);
        signature.completes(Completion::Asynchronous);
    }

    fn into_value(self) -> AnyAsyncValue {
        self
    }
}

impl<M, R: KernelResult<M>> KernelResult<Fallible<M>> for Result<R, Error> {
    fn describe(signature: &mut Signature) {
        R::describe(signature);
    }

    fn into_value(self) -> AnyAsyncValue {
        match self {
            Ok(result) => result.into_value(),
            Err(error) => AnyAsyncValue::from_error(error),
        }
    }
}

impl<T: Value> KernelReturn<Plain> for T {
    fn describe(signature: &mut Signature) {
        <T as KernelResult<Plain>>::describe(signature);
    }

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
            fn describe(signature: &mut Signature) {
                <$result as KernelResult<Itself>>::describe(signature);
            }

            fn put(self, frame: &mut KernelFrame<'_, '_>) {
                frame.put_result(<$result as KernelResult<Itself>>::into_value(self));
                    }
        }
    )*};
}

single_results!(<T: Value> AsyncValue<T>, <> AnyAsyncValue);

impl KernelReturn<Itself> for () {
    fn describe(_: &mut Signature) {}

    fn put(self, _: &mut KernelFrame<'_, '_>) {}
}

impl<M, R: KernelReturn<M>> KernelReturn<Fallible<M>> for Result<R, Error> {
    const N_PLAIN: Option<u32> = R::N_PLAIN;

    fn describe(signature: &mut Signature) {
        R::describe(signature);
    }

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
            fn describe(signature: &mut Signature) {
                $($result::describe(signature);)+
            }

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
    fn describe(signature: &mut Signature) {
        signature.any_results = true;
        signature.completes(Completion::Asynchronous);
    }

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        for value in self.0 {
            frame.put_result(value);
        }
    }
}

impl KernelReturn<Itself> for Call {
    fn describe(signature: &mut Signature) {
        signature.any_results = true;
        signature.completes(Completion::Calls);
    }

    #[inline]
    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.follow(Flow::Call(self));
    }
}

impl KernelReturn<Itself> for Forward {
    fn describe(signature: &mut Signature) {
        signature.any_results = true;
        signature.completes(Completion::Calls);
    }

    #[inline(always)]
    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.call(self.0);
    }
}

impl KernelReturn<Itself> for Step {
    fn describe(signature: &mut Signature) {
        signature.any_results = true;
        signature.completes(Completion::Calls);
        signature.detaches = true;
    }

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.follow(Flow::Step(self));
    }
}

impl<L: Turns> KernelReturn<Itself> for Loop<L> {
    fn describe(signature: &mut Signature) {
        signature.any_results = true;
        signature.completes(Completion::Calls);
    }

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        frame.follow(Flow::Loop(Box::new(self.turns), self.values));
    }
}
