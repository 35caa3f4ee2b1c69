//! A kernel as the executor calls it: one indirect call.
//!
//! It is what a trait object would be, but for two loads: the address of the kernel's own entry lies
//! beside that of its function, where the executor finds both in one line of memory.
//!
//! A kernel of scalars has a second entry, for uses with exactly the operands and results that it is
//! made for: that has nothing to count. Load finds for each use which entry it takes ([`EntryPoints`]).

use std::mem::{self, needs_drop};
use std::ptr;
use std::sync::Arc;

use super::frame::{KernelEnv, Status};
use super::function::{Counts, KernelFn, enter, enter_fitted};
use crate::executor::slots::Activation;

type Enter = for<'c> unsafe fn(*const (), Activation<'c>, &'c mut KernelEnv<'_>) -> Status;

/// A kernel with its type erased.
#[derive(Clone)]
pub(crate) struct Code {
    // Invariant: made for the type that `function` points to.
    enter: Enter,
    // Invariant: the same.
    fitted: Option<&'static Fitted>,
    // Invariant: points into `_keeps`, or to a function without state, which lies nowhere.
    function: *const (),
    _keeps: Option<Arc<dyn Send + Sync>>,
}

/// The entry for uses of which load has found that these counts fit.
struct Fitted {
    enter: Enter,
    counts: Counts,
}

/// The source of the [`Code`] of a function: for one without state, as most kernels are, a constant.
pub(super) enum Made {
    Stateless(Stateless),
    Stateful(Code),
}

/// The entry of a function that has neither state nor a destructor, and of which there is one for good.
#[derive(Clone, Copy)]
pub(super) struct Stateless {
    enter: Enter,
    fitted: Option<&'static Fitted>,
}

// SAFETY: the function that it points to is `Send` and `Sync`, as every `KernelFn` is.
unsafe impl Send for Code {}
// SAFETY: as for `Send`.
unsafe impl Sync for Code {}

impl Code {
    #[inline(always)]
    pub(super) fn make<M: 'static, F: KernelFn<M>>(function: F) -> Made {
        let enter = enter_erased::<M, F>;
        let fitted = const { Fitted::of::<M, F>() };
        if const { size_of::<F>() == 0 && !needs_drop::<F>() } {
            mem::forget(function);
            return Made::Stateless(Stateless { enter, fitted });
        }
        let function = Arc::new(function);
        Made::Stateful(Code {
            enter,
            fitted,
            function: Arc::as_ptr(&function).cast(),
            _keeps: Some(function),
        })
    }

    pub(super) fn stateless(made: Stateless) -> Code {
        Code {
            enter: made.enter,
            fitted: made.fitted,
            // Aligned for any type that there is.
            function: ptr::without_provenance(1 << 29),
            _keeps: None,
        }
    }
}

impl Fitted {
    const fn of<M: 'static, F: KernelFn<M>>() -> Option<&'static Fitted> {
        struct Of<M, F>(std::marker::PhantomData<(M, F)>);
        impl<M: 'static, F: KernelFn<M>> Of<M, F> {
            const FITTED: Option<Fitted> = match F::COUNTS {
                Some(counts) if !cfg!(tfrt_for_size) => Some(Fitted {
                    enter: enter_erased_fitted::<M, F>,
                    counts,
                }),
                _ => None,
            };
        }
        Of::<M, F>::FITTED.as_ref()
    }
}

/// The entries of the kernels of a program: two for each.
pub(crate) struct EntryPoints {
    // Invariant: those of `codes` in their order, for each first that for any use.
    list: Box<[EntryPoint]>,
    codes: Box<[Code]>,
}

/// [`EntryPoints`], found.
#[derive(Clone, Copy)]
pub(crate) struct EntryPointList<'e>(&'e [EntryPoint]);

impl EntryPointList<'_> {
    /// Runs a kernel once. With [`Status::PLAIN`] all its results are put, and values in place.
    ///
    /// # Safety
    ///
    /// The record of the activation names an entrance of these, by the [`EntryPoints::number`] for its
    /// operands and results.
    #[inline(always)]
    pub(crate) unsafe fn enter<'c>(
        self,
        activation: Activation<'c>,
        around: &'c mut KernelEnv<'_>,
    ) -> Status {
        let number = activation.record().entrance() as usize;
        debug_assert!(number < self.0.len());
        // SAFETY: the caller says that it is one.
        let entrance = unsafe { self.0.get_unchecked(number) };
        // SAFETY: it was made for the type of the function, which the entrances keep alive; and the
        // caller says that the counts fit.
        unsafe { (entrance.enter)(entrance.function, activation, around) }
    }
}

/// An entry, and its function.
struct EntryPoint {
    enter: Enter,
    function: *const (),
}

// SAFETY: the functions that it points to are `Send` and `Sync`, as every `KernelFn` is.
unsafe impl Send for EntryPoints {}
// SAFETY: as for `Send`.
unsafe impl Sync for EntryPoints {}

impl EntryPoints {
    /// There are numbers for so many kernels.
    pub(crate) const MAX_KERNELS: usize = (u32::MAX / 2) as usize;

    pub(crate) fn new(codes: impl Iterator<Item = Code>) -> EntryPoints {
        let codes: Box<[Code]> = codes.collect();
        let both = |code: &Code| {
            let fitted = code.fitted.map_or(code.enter, |fitted| fitted.enter);
            [code.enter, fitted].map(|enter| EntryPoint {
                enter,
                function: code.function,
            })
        };
        EntryPoints {
            list: codes.iter().flat_map(both).collect(),
            codes,
        }
    }

    /// By which entrance a record names the kernel `code`, one of the first
    /// [`Self::MAX_KERNELS`], with so many operands and results.
    pub(crate) fn number(&self, code: usize, n_operands: usize, n_results: usize) -> u32 {
        let fits = |fitted: &Fitted| fitted.counts.fit(n_operands, n_results);
        let is_fitted = self.codes[code].fitted.is_some_and(fits);
        2 * code as u32 + u32::from(is_fitted)
    }

    #[inline(always)]
    pub(crate) fn list(&self) -> EntryPointList<'_> {
        EntryPointList(&self.list)
    }

    /// Runs a kernel once, by the entry that takes any use.
    pub(crate) fn enter_any<'c>(
        &self,
        activation: Activation<'c>,
        around: &'c mut KernelEnv<'_>,
    ) -> Status {
        let entrance = &self.list[2 * activation.record().code() as usize];
        // SAFETY: it was made for the type of the function, which `codes` keeps alive, and asks for no
        // counts.
        unsafe { (entrance.enter)(entrance.function, activation, around) }
    }
}

/// # Safety
///
/// `function` points to an `F`.
unsafe fn enter_erased<'c, M: 'static, F: KernelFn<M>>(
    function: *const (),
    activation: Activation<'c>,
    around: &'c mut KernelEnv<'_>,
) -> Status {
    // SAFETY: the caller says so.
    let function = unsafe { &*function.cast::<F>() };
    enter(function, activation, around)
}

/// # Safety
///
/// `function` points to an `F`, and `F::COUNTS` fit the record of the activation.
unsafe fn enter_erased_fitted<'c, M: 'static, F: KernelFn<M>>(
    function: *const (),
    activation: Activation<'c>,
    around: &'c mut KernelEnv<'_>,
) -> Status {
    // SAFETY: the caller says so.
    let function = unsafe { &*function.cast::<F>() };
    let record = activation.record();
    let fits = F::COUNTS.is_some_and(|counts| {
        counts.fit(record.n_operands() as usize, record.n_results() as usize)
    });
    // SAFETY: the caller says so.
    unsafe { std::hint::assert_unchecked(fits) };
    enter_fitted(function, activation, around)
}
