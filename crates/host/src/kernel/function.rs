//! Any function of the right shape is a kernel.

use super::frame::{KernelFrame, Mismatch, Status, Surroundings};
use super::param::KernelParam;
use super::returns::KernelReturn;
use super::signature::Signature;
use crate::executor::slots::Activation;

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

    /// Whether parameters and results are scalars, so that [`Self::invoke_fast`] works.
    #[doc(hidden)]
    const IS_FAST: bool;

    /// Does as [`Self::invoke`] if all operands are values in place, or else nothing. Tells which.
    #[doc(hidden)]
    fn invoke_fast(&self, frame: &mut KernelFrame<'_, '_>) -> bool;
}

/// The entry of a kernel.
#[inline(always)]
pub(super) fn enter<'c, M, F: KernelFn<M>>(
    function: &F,
    activation: Activation<'c>,
    around: &'c mut Surroundings<'_>,
) -> Status {
    if !F::IS_FAST {
        return enter_slow(function, activation, around);
    }
    let mut frame = KernelFrame::new(activation, around);
    if function.invoke_fast(&mut frame) {
        frame.end()
    } else {
        enter_anyhow(function, frame)
    }
}

/// The entry of a kernel whose operands are not what most operands are.
#[cold]
#[inline(never)]
fn enter_anyhow<M, F: KernelFn<M>>(function: &F, frame: KernelFrame<'_, '_>) -> Status {
    let (activation, around) = frame.into_activation();
    enter_slow(function, activation, around)
}

#[inline(always)]
fn enter_slow<'c, M, F: KernelFn<M>>(
    function: &F,
    activation: Activation<'c>,
    around: &'c mut Surroundings<'_>,
) -> Status {
    let mut frame = KernelFrame::new(activation, around);
    match function.invoke(&mut frame) {
        Ok(()) => frame.end(),
        Err(mismatch) => frame.end_unfit(mismatch),
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

            const IS_FAST: bool = R::N_PLAIN.is_some() $(&& $param::N_COPIED.is_some())*;

            #[inline(always)]
            #[allow(unused_mut, unused_variables, unused_assignments, reason = "no parameters")]
            fn invoke_fast(&self, frame: &mut KernelFrame<'_, '_>) -> bool {
                let n_operands = const { 0 $(+ match $param::N_COPIED { Some(n) => n, None => 0 })* };
                if !frame.has_counts(n_operands, R::N_PLAIN.unwrap_or(0)) {
                    return false;
                }
                let mut next = 0;
                $(
                    let Some(mut $guard) = $param::copy(frame, next) else {
                        return false;
                    };
                    next += const { match $param::N_COPIED { Some(n) => n, None => 0 } };
                )*
                frame.has_copied();
                (self)($($param::item(&mut $guard)),*).put(frame);
                true
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
