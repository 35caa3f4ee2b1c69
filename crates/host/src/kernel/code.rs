//! A kernel as the executor calls it: one indirect call.
//!
//! It is what a trait object would be, but for two loads: the address of the kernel's own entry lies
//! beside that of its function, where the executor finds both in one line of memory.

use std::mem::{self, needs_drop};
use std::ptr;
use std::sync::Arc;

use super::frame::{Status, Surroundings};
use super::function::{KernelFn, enter};
use crate::executor::slots::Activation;

type Enter = for<'c> unsafe fn(*const (), Activation<'c>, &'c mut Surroundings<'_>) -> Status;

/// A kernel with its type erased.
#[derive(Clone)]
pub(crate) struct Code {
    // Invariant: made for the type that `function` points to.
    enter: Enter,
    // Invariant: points into `_keeps`, or to a function without state, which lies nowhere.
    function: *const (),
    _keeps: Option<Arc<dyn Send + Sync>>,
}

/// What makes the [`Code`] of a function: for one without state, as most kernels are, a constant.
pub(super) enum Made {
    Stateless(Stateless),
    Stateful(Code),
}

/// The entry of a function that has neither state nor a destructor, and of which there is one for good.
#[derive(Clone, Copy)]
pub(super) struct Stateless(Enter);

// SAFETY: the function that it points to is `Send` and `Sync`, as every `KernelFn` is.
unsafe impl Send for Code {}
// SAFETY: as for `Send`.
unsafe impl Sync for Code {}

impl Code {
    #[inline(always)]
    pub(super) fn make<M: 'static, F: KernelFn<M>>(function: F) -> Made {
        if const { size_of::<F>() == 0 && !needs_drop::<F>() } {
            mem::forget(function);
            return Made::Stateless(Stateless(enter_erased::<M, F>));
        }
        let function = Arc::new(function);
        Made::Stateful(Code {
            enter: enter_erased::<M, F>,
            function: Arc::as_ptr(&function).cast(),
            _keeps: Some(function),
        })
    }

    pub(super) fn stateless(made: Stateless) -> Code {
        Code {
            enter: made.0,
            // Aligned for any type that there is.
            function: ptr::without_provenance(1 << 29),
            _keeps: None,
        }
    }

    /// Runs the kernel once. With [`Status::PLAIN`] all its results are put, and values in place.
    #[inline(always)]
    pub(crate) fn call<'c>(
        &self,
        activation: Activation<'c>,
        around: &'c mut Surroundings<'_>,
    ) -> Status {
        // SAFETY: it was made for the type of the function, which `_keeps` keeps alive.
        unsafe { (self.enter)(self.function, activation, around) }
    }
}

/// # Safety
///
/// `function` points to an `F`.
unsafe fn enter_erased<'c, M: 'static, F: KernelFn<M>>(
    function: *const (),
    activation: Activation<'c>,
    around: &'c mut Surroundings<'_>,
) -> Status {
    // SAFETY: the caller says so.
    let function = unsafe { &*function.cast::<F>() };
    enter(function, activation, around)
}
