//! A kernel as the executor calls it: one indirect call.
//!
//! It is what a trait object would be, but for two loads: the address of the kernel's own entry lies
//! beside that of its function, where the executor finds both in one line of memory.

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
    // Invariant: points into `_keeps`.
    function: *const (),
    _keeps: Arc<dyn Send + Sync>,
}

// SAFETY: the function that it points to is `Send` and `Sync`, as every `KernelFn` is.
unsafe impl Send for Code {}
// SAFETY: as for `Send`.
unsafe impl Sync for Code {}

impl Code {
    pub(super) fn new<M: 'static, F: KernelFn<M>>(function: F) -> Code {
        let function = Arc::new(function);
        Code {
            enter: enter_erased::<M, F>,
            function: Arc::as_ptr(&function).cast(),
            _keeps: function,
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
