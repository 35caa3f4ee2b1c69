//! Any function of the right shape is a kernel.

use std::marker::PhantomData;

use super::frame::{KernelFrame, Mismatch, Status, Surroundings};
use super::param::KernelParam;
use super::returns::KernelReturn;
use super::signature::Signature;
use crate::executor::slots::Activation;

/// A kernel as the executor sees it: [`Erased`] is the only one.
pub(crate) trait Kernel: Send + Sync + 'static {
    /// Runs it once. With [`Status::PLAIN`] all its results are put.
    fn call<'c>(&self, activation: Activation<'c>, around: &'c mut Surroundings<'_>) -> Status;
}

/// A Rust function that can be registered as a kernel.
///
/// Implemented for every `Fn(P0, P1, ...) -> R` whose parameters are [`KernelParam`]s and whose
/// result is a [`KernelReturn`]. `M` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel",
    note = "a kernel is a function, `Send + Sync + 'static`, of up to ten parameters that implement `KernelParam`, \
            whose result implements `KernelReturn`; `tfrt_host::kernel::explain::<fn(..) -> ..>()` names the one that does not"
)]
pub trait KernelFn<M>: Send + Sync + 'static {
    /// What the function takes and gives.
    fn signature(&self) -> Signature;

    /// Takes the parameters off the frame, calls the function, and puts its results.
    ///
    /// # Errors
    ///
    /// The first parameter that does not fit what the frame holds.
    fn invoke(&self, frame: &mut KernelFrame<'_, '_>) -> Result<(), Mismatch>;
}

/// A [`KernelFn`] with its type erased.
pub(super) struct Erased<F, M>(F, PhantomData<fn(M)>);

impl<F, M> Erased<F, M> {
    pub(super) fn new(function: F) -> Self {
        Erased(function, PhantomData)
    }
}

impl<M: 'static, F: KernelFn<M>> Kernel for Erased<F, M> {
    fn call<'c>(&self, activation: Activation<'c>, around: &'c mut Surroundings<'_>) -> Status {
        let mut frame = KernelFrame::new(activation, around);
        match self.0.invoke(&mut frame) {
            Ok(()) => frame.end(),
            Err(mismatch) => frame.end_unfit(mismatch),
        }
    }
}

/// Implements [`KernelFn`] for functions of one arity: `kernel_fn!(A MA a, B MB b)` for two.
///
/// The double bound is what lets borrowed parameters in: the function is `Fn(P)` for the type `P`
/// as written, and `Fn(P::Item<'a>)` for every lifetime of a call.
macro_rules! kernel_fn {
    ($($param:ident $marker:ident $guard:ident),*) => {
        impl<F, R, MR, $($param, $marker),*> KernelFn<(fn($($param),*) -> R, MR, $($marker),*)> for F
        where
            F: Fn($($param),*) -> R
                + for<'a> Fn($($param::Item<'a>),*) -> R
                + Send + Sync + 'static,
            R: KernelReturn<MR>,
            $($param: KernelParam<$marker>,)*
        {
            fn signature(&self) -> Signature {
                #[allow(unused_mut, reason = "no parameters, no results")]
                let mut signature = Signature::default();
                $($param::describe(&mut signature);)*
                R::describe(&mut signature);
                signature
            }

            #[inline(always)]
            fn invoke(&self, frame: &mut KernelFrame<'_, '_>) -> Result<(), Mismatch> {
                #[allow(unused_mut, clippy::let_unit_value, reason = "no parameters")]
                let results = {
                    // A tuple drops its fields in order: the first operand is released first.
                    let mut guards = ($($param::take(frame)?,)*);
                    frame.check_rest()?;
                    let ($($guard,)*) = &mut guards;
                    (self)($($param::item($guard)),*)
                };
                results.put(frame);
                Ok(())
            }
        }
    };
}

kernel_fn!();
kernel_fn!(A MA a);
kernel_fn!(A MA a, B MB b);
kernel_fn!(A MA a, B MB b, C MC c);
kernel_fn!(A MA a, B MB b, C MC c, D MD d);
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e);
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g);
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h);
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h, I MI i);
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h, I MI i, J MJ j);
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h, I MI i, J MJ j, K MK k);

/// Compiles only if the function type is a kernel, and otherwise makes the compiler name the
/// parameter or result that is not.
///
/// # Examples
///
/// ```
/// use tfrt_host::kernel::{Attr, explain};
/// explain::<fn(i32, Attr<i32>) -> i32, _>();
/// ```
pub fn explain<F: Explain<M>, M>() {}

/// A function type whose parameters and result fit a kernel.
pub trait Explain<M> {}

/// Implements [`Explain`] for function pointers of one arity.
macro_rules! explain_fn {
    ($($param:ident $marker:ident),*) => {
        impl<R: KernelReturn<MR>, MR, $($param: KernelParam<$marker>, $marker),*>
            Explain<(MR, $($marker,)*)> for fn($($param),*) -> R {}
    };
}

explain_fn!();
explain_fn!(A MA);
explain_fn!(A MA, B MB);
explain_fn!(A MA, B MB, C MC);
explain_fn!(A MA, B MB, C MC, D MD);
explain_fn!(A MA, B MB, C MC, D MD, E ME);
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG);
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG, H MH);
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG, H MH, I MI);
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG, H MH, I MI, J MJ);
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG, H MH, I MI, J MJ, K MK);
