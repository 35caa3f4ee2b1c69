//! Any function of the right shape is a kernel.

use std::marker::PhantomData;

use super::frame::{KernelEnv, KernelFrame, Mismatch, Status};
use super::param::KernelParam;
use super::returns::KernelReturn;
use super::signature::Parts;
use crate::executor::slots::Activation;

/// A Rust function that can be registered as a kernel.
///
/// Implemented for every `Fn(P0, P1, ...) -> R` whose parameters are [`KernelParam`]s and whose
/// result is a [`KernelReturn`]. `M` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel",
    note = "a kernel is a function, `Send + Sync + 'static`, of up to twelve parameters that implement `KernelParam`, \
            whose result implements `KernelReturn`; `tfrt_host::kernel::explain::<fn(..) -> ..>()` names the one that does not"
)]
pub trait KernelFn<M>: Leaf<Self::Shape> + Send + Sync + 'static {
    /// The signature that it shares with all functions of its type.
    #[doc(hidden)]
    type Shape: Shape;

    /// Hides which of them it is.
    #[doc(hidden)]
    fn erase(&self) -> &dyn Leaf<Self::Shape>;

    /// With what [`Self::invoke_fitted`] works, if parameters and results are scalars, or it answers
    /// with a call.
    #[doc(hidden)]
    const COUNTS: Option<Counts>;

    /// Does as [`Shape::invoke`] if the counts fit and all operands are values in place, or else
    /// nothing. Tells which.
    #[doc(hidden)]
    fn invoke_fitted(&self, frame: &mut KernelFrame<'_, '_>) -> bool;

    /// Does as [`Shape::invoke`] in a shorter way, or nothing. Tells which.
    #[doc(hidden)]
    #[inline(always)]
    fn try_shortcut(&self, _frame: &mut KernelFrame<'_, '_>) -> bool {
        false
    }
}

/// A kernel with a [shortcut](with_shortcut).
#[derive(Clone, Copy)]
pub struct WithShortcut<F, S> {
    kernel: F,
    shortcut: S,
}

/// Marks the signature of a kernel with a shortcut.
#[doc(hidden)]
pub struct Shortened<M>(PhantomData<M>);

/// Returns `kernel` with a shortcut, which is tried first in each run: for kernels that are called so often that it counts how
/// they take their operands.
///
/// The shortcut looks at the frame, and either does all that the kernel would do, so that every result is put or failed, and
/// returns true; or it takes and puts nothing, and returns false: then the kernel runs. Builds for size leave it out.
///
/// # Examples
///
/// ```
/// use tfrt_host::kernel::{KernelFrame, KernelRegistry, with_shortcut};
///
/// fn sum(x: i64, y: i64) -> i64 {
///     x + y
/// }
///
/// /// Of no use but to show it: gives a second operand that is added to 0.
/// fn sum_with_zero(frame: &mut KernelFrame<'_, '_>) -> bool {
///     if frame.peek_operand(0).and_then(|x| x.get::<i64>()) != Some(&0) {
///         return false;
///     }
///     let operands = [frame.take_operand(), frame.take_operand()];
///     if let [Ok(_), Ok(sum)] = operands {
///         frame.put_result(sum);
///     }
///     true
/// }
///
/// let mut registry = KernelRegistry::new();
/// registry.add("my.sum", with_shortcut(sum, sum_with_zero));
/// assert_eq!(registry.get("my.sum").unwrap().signature().to_string(), "(i64, i64) -> i64");
/// ```
pub fn with_shortcut<M, F, S>(kernel: F, shortcut: S) -> WithShortcut<F, S>
where
    F: KernelFn<M>,
    S: Fn(&mut KernelFrame<'_, '_>) -> bool + Send + Sync + 'static,
{
    WithShortcut { kernel, shortcut }
}

impl<P: Shape, F: Leaf<P>, S> Leaf<P> for WithShortcut<F, S> {
    #[inline(always)]
    fn call<'a>(&self, items: P::Items<'a>) -> P::Results {
        self.kernel.call(items)
    }
}

impl<M, F, S> KernelFn<Shortened<M>> for WithShortcut<F, S>
where
    F: KernelFn<M>,
    S: Fn(&mut KernelFrame<'_, '_>) -> bool + Send + Sync + 'static,
{
    type Shape = F::Shape;

    fn erase(&self) -> &dyn Leaf<Self::Shape> {
        self.kernel.erase()
    }

    const COUNTS: Option<Counts> = None;

    fn invoke_fitted(&self, _frame: &mut KernelFrame<'_, '_>) -> bool {
        false
    }

    #[inline(always)]
    fn try_shortcut(&self, frame: &mut KernelFrame<'_, '_>) -> bool {
        (self.shortcut)(frame)
    }
}

/// With how many operands and results a kernel may be used.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// So many are parameters.
    pub n_operands: u32,
    /// More may follow.
    pub has_rest: bool,
    /// As many as wanted, unless it gives them itself.
    pub n_results: Option<u32>,
}

impl Counts {
    #[inline(always)]
    pub(super) fn fit(self, n_operands: usize, n_results: usize) -> bool {
        let n_params = self.n_operands as usize;
        let has_operands = n_operands == n_params || (self.has_rest && n_operands > n_params);
        has_operands && self.n_results.is_none_or(|n| n as usize == n_results)
    }
}

/// The parameters and results of a kernel: what its entry depends on, if it may not depend on the
/// function.
#[doc(hidden)]
pub trait Shape: 'static {
    /// The arguments of the function.
    type Items<'a>;
    /// The return type of the function.
    type Results;

    /// The parameters and results of the signature.
    const PARTS: &'static Parts;

    /// Takes the parameters off the frame, calls the function, and puts its results.
    ///
    /// # Errors
    ///
    /// The first parameter that does not fit what the frame holds.
    fn invoke<L: Leaf<Self> + ?Sized>(
        function: &L,
        frame: &mut KernelFrame<'_, '_>,
    ) -> Result<(), Mismatch>;
}

/// A function of a shape, whichever it is.
#[doc(hidden)]
pub trait Leaf<S: Shape + ?Sized> {
    /// Calls it.
    fn call<'a>(&self, items: S::Items<'a>) -> S::Results;
}

/// The entry of a kernel: one for each, in which the function is inlined, or where size counts more
/// (`build.rs`), or there is another for most uses, a few instructions that lead to the one of its shape.
#[inline(always)]
pub(super) fn enter<'c, M, F: KernelFn<M>>(
    function: &F,
    activation: Activation<'c>,
    around: &'c mut KernelEnv<'_>,
) -> Status {
    if cfg!(tfrt_for_size) || F::COUNTS.is_some() {
        return enter_shared::<F::Shape>(function.erase(), activation, around);
    }
    let mut frame = KernelFrame::new(activation, around);
    if function.try_shortcut(&mut frame) {
        return frame.end();
    }
    let invoked = F::Shape::invoke(function, &mut frame);
    end(&mut frame, invoked)
}

/// The entry of a kernel for uses whose counts fit.
#[inline(always)]
pub(super) fn enter_fitted<'c, M, F: KernelFn<M>>(
    function: &F,
    activation: Activation<'c>,
    around: &'c mut KernelEnv<'_>,
) -> Status {
    let mut frame = KernelFrame::new(activation, around);
    if function.invoke_fitted(&mut frame) {
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
    enter_shared::<F::Shape>(function.erase(), activation, around)
}

/// The entry of all kernels of one shape.
#[inline(never)]
fn enter_shared<'c, S: Shape>(
    function: &dyn Leaf<S>,
    activation: Activation<'c>,
    around: &'c mut KernelEnv<'_>,
) -> Status {
    run(&|frame| S::invoke(function, frame), activation, around)
}

/// Runs a kernel function: the part that the entries of all signatures share.
#[inline(never)]
fn run<'c>(
    invoke: &dyn Fn(&mut KernelFrame<'_, '_>) -> Result<(), Mismatch>,
    activation: Activation<'c>,
    around: &'c mut KernelEnv<'_>,
) -> Status {
    let mut frame = KernelFrame::new(activation, around);
    let invoked = invoke(&mut frame);
    end(&mut frame, invoked)
}

#[inline(always)]
fn end(frame: &mut KernelFrame<'_, '_>, invoked: Result<(), Mismatch>) -> Status {
    match invoked {
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
        impl<R, MR, $($param, $marker),*> Shape for (fn($($param),*) -> R, MR, $($marker),*)
        where
            R: KernelReturn<MR> + 'static,
            MR: 'static,
            $($param: KernelParam<$marker> + 'static, $marker: 'static,)*
        {
            type Items<'a> = ($($param::Item<'a>,)*);
            type Results = R;

            const PARTS: &'static Parts = &Parts(&[$($param::PART),*], R::PARTS, R::FAILS);

            #[inline(always)]
            fn invoke<L: Leaf<Self> + ?Sized>(
                function: &L,
                frame: &mut KernelFrame<'_, '_>,
            ) -> Result<(), Mismatch> {
                #[allow(unused_mut, clippy::let_unit_value, reason = "no parameters")]
                let results = {
                    // A tuple drops its fields in order: the first operand is released first.
                    let mut guards = ($($param::take(frame)?,)*);
                    frame.check_rest()?;
                    let ($($guard,)*) = &mut guards;
                    function.call(($($param::item($guard),)*))
                };
                results.put(frame);
                Ok(())
            }
        }

        impl<F, R, MR, $($param, $marker),*> Leaf<(fn($($param),*) -> R, MR, $($marker),*)> for F
        where
            F: for<'a> Fn($($param::Item<'a>),*) -> R,
            R: KernelReturn<MR> + 'static,
            MR: 'static,
            $($param: KernelParam<$marker> + 'static, $marker: 'static,)*
        {
            #[inline(always)]
            fn call<'a>(&self, ($($guard,)*): ($($param::Item<'a>,)*)) -> R {
                self($($guard),*)
            }
        }

        impl<F, R, MR, $($param, $marker),*> KernelFn<(fn($($param),*) -> R, MR, $($marker),*)> for F
        where
            F: Fn($($param),*) -> R
                + for<'a> Fn($($param::Item<'a>),*) -> R
                + Send + Sync + 'static,
            R: KernelReturn<MR> + 'static,
            MR: 'static,
            $($param: KernelParam<$marker> + 'static, $marker: 'static,)*
        {
            type Shape = (fn($($param),*) -> R, MR, $($marker),*);

            fn erase(&self) -> &dyn Leaf<Self::Shape> {
                self
            }

            const COUNTS: Option<Counts> = if (R::N_PLAIN.is_some() || R::IS_CALL)
                $(&& $param::N_COPIED.is_some())*
            {
                Some(Counts {
                    n_operands: 0 $(+ match $param::N_COPIED { Some(n) => n, None => 0 })*,
                    has_rest: false $(|| $param::IS_REST)*,
                    n_results: R::N_PLAIN,
                })
            } else {
                None
            };

            #[inline(always)]
            #[allow(unused_mut, unused_variables, unused_assignments, reason = "no parameters")]
            fn invoke_fitted(&self, frame: &mut KernelFrame<'_, '_>) -> bool {
                let counts = match Self::COUNTS {
                    Some(counts) if frame.fits(counts) => counts,
                    _ => return false,
                };
                let mut next = 0;
                $(
                    let Some(mut $guard) = $param::copy(frame, next) else {
                        return false;
                    };
                    next += const { match $param::N_COPIED { Some(n) => n, None => 0 } };
                )*
                if counts.has_rest && !frame.is_rest_in_place(next) {
                    return false;
                }
                if R::IS_CALL {
                    frame.has_copied(next);
                } else {
                    frame.has_copied_all();
                }
                (self)($($param::item(&mut $guard)),*).put(frame);
                true
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
kernel_fn!(A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h, I MI i, J MJ j, K MK k, O MO o);
kernel_fn!(
    A MA a, B MB b, C MC c, D MD d, E ME e, G MG g, H MH h, I MI i, J MJ j, K MK k, O MO o, N MN n
);

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
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG, H MH, I MI, J MJ, K MK, O MO);
explain_fn!(A MA, B MB, C MC, D MD, E ME, G MG, H MH, I MI, J MJ, K MK, O MO, N MN);
