//! [`LentContext`]: the surroundings of a kernel, for the length of its run.
//!
//! Most kernels look at their [`ExecutionContext`] and are done. Counting its program and its request for
//! each of them would be four read-modify-writes, which is more than a small kernel has to do; and whoever calls
//! the kernel holds both anyway.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::{ExecutionContext, Place, RequestContext};
use crate::program::ProgramRef;

/// A context that is not counted. Clones of what it leads to are.
pub struct LentContext<'f> {
    // Invariant: bitwise copies of handles that are borrowed for `'f`; never dropped, and lent as shared only.
    context: ManuallyDrop<ExecutionContext>,
    handles: PhantomData<(&'f ProgramRef, &'f Arc<RequestContext>)>,
}

impl<'f> LentContext<'f> {
    /// Lends a context for a kernel of a function.
    #[inline]
    pub(crate) fn new(
        program: &'f ProgramRef,
        request: &'f Arc<RequestContext>,
        function: u32,
        kernel: u32,
    ) -> Self {
        // SAFETY: a handle is there. The copy is never dropped, and used for `'f` only, for which the handle
        // is borrowed, so that what it leads to lives.
        let program = unsafe { std::ptr::read(program) };
        // SAFETY: as above.
        let request = unsafe { std::ptr::read(request) };
        let place = Place {
            program,
            function,
            kernel,
        };
        LentContext {
            context: ManuallyDrop::new(ExecutionContext {
                request,
                place: Some(place),
            }),
            handles: PhantomData,
        }
    }

    /// The context.
    #[inline]
    pub fn get(&self) -> &ExecutionContext {
        &self.context
    }
}
