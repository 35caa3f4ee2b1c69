//! Calls that end when the function of their kernel returns: they borrow inputs and surroundings of the caller, and threads
//! use one context for all of them.

use std::cell::Cell;
use std::ptr;

use tfrt_corert::Call;
use tfrt_host::Error;
use tfrt_tensor::Tensor as HostTensor;

use super::outcome::running;
use super::{BoundKernel, Context, Results};
use crate::handle::views::{self, Of};
use crate::handle::{Handle, Own};
use crate::lent::{Borrowed, Lent, LentCall, View};
use crate::value::Tensor;

/// The call whose kernel's function runs on a thread.
#[derive(Clone, Copy)]
struct Running {
    /// The handle of its context.
    context: usize,
    call: *const Call<'static>,
    /// Whether its inputs are what a plugin gets of them: not if there are references to variables.
    is_plain: bool,
}

thread_local! {
    /// A context that no call uses, with nothing in it.
    static SPARE: Cell<Option<Own<Context>>> = const { Cell::new(None) };
    /// Invariant: the call is there, and this thread owns it; see [`LentCall`].
    static NOW: Cell<Running> = const {
        Cell::new(Running {
            context: 0,
            call: ptr::null(),
            is_plain: false,
        })
    };
}

/// Returns whether this thread runs the function of a call's kernel.
#[inline]
pub(super) fn is_running(call: &LentCall) -> bool {
    NOW.get().call == call.address()
}

/// Puts a view of an input into the table of handles, if this thread runs the call of the context, and the input is dense.
#[inline(always)]
pub fn view_of_input(context: Handle<Context>, index: usize) -> Option<Handle<Tensor>> {
    let now = NOW.get();
    if now.context != context.bits() || !now.is_plain {
        return None;
    }
    // SAFETY: by the invariant.
    let call = unsafe { now.call.as_ref() }?;
    let HostTensor::Dense(dense) = call.input(index)? else {
        return None;
    };
    // SAFETY: the input stays there while the call goes on, unless an output takes its memory: not while there is a view.
    let view = unsafe { View::new(dense) }?;
    views::put(Of::Input(index), view)
}

/// The time in which a thread runs the function of a call's kernel; its end ends the views, also by a panic.
struct Scope {
    before: Running,
    from: usize,
}

impl Scope {
    #[inline]
    fn begin(now: Running) -> Scope {
        Scope {
            from: views::begin(),
            before: NOW.replace(now),
        }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        views::end(self.from);
        NOW.set(self.before);
    }
}

/// Runs a kernel that is not asynchronous. `None` if others have locked variables among the inputs: then nothing has
/// happened.
///
/// # Errors
///
/// Those that the plugin tells; `Internal` if it throws, `InvalidArgument` for wrong uses of the C API.
pub fn compute_now(call: &mut Call<'_>, bound: &BoundKernel) -> Option<Results> {
    let Some(mut spare) = SPARE.take().or_else(|| Own::new(Context::default())) else {
        let many = "plugins hold too many objects";
        return Some(Err(Error::resource_exhausted(many)));
    };
    let context = spare.get_mut();
    let may_run = begin(context, call, bound);
    if !matches!(may_run, Ok(true)) {
        context.clear();
        SPARE.set(Some(spare));
        return may_run.err().map(Err);
    }
    let call = context.tensors.call();
    let kernel = &*bound.instance.kernel;
    let handle = spare.lend();
    let scope = Scope::begin(Running {
        context: handle.bits(),
        call,
        is_plain: bound.resolved.references.is_empty(),
    });
    let arguments = [bound.state, handle.bits()];
    let (called, faults) = running(kernel, || kernel.compute.call(&arguments));
    drop(scope);
    let context = spare.get_mut();
    let results = context.finish(called.err(), faults, kernel);
    context.clear();
    SPARE.set(Some(spare));
    Some(results)
}

/// Fills a context, which is cleared, or dropped, before [`compute_now`] returns. Returns whether the variables among the
/// inputs, if there are some, are locked.
fn begin(context: &mut Context, call: &mut Call<'_>, bound: &BoundKernel) -> Result<bool, Error> {
    let request = call.execution().request();
    // SAFETY: the caller of `compute_now` keeps it for longer than the context is used.
    let own = unsafe { Borrowed::new(bound) };
    // SAFETY: as above, by the call.
    let request = unsafe { Borrowed::new(&**request) };
    context.begin(Lent::Borrowed(own), Lent::Borrowed(request));
    // SAFETY: the call is used by way of this alone until the context is cleared or gone.
    context.tensors.lend(unsafe { LentCall::new(call) });
    if !bound.may_have_variables {
        return Ok(true);
    }
    for index in 0..context.n_inputs() {
        context.add_variable(index);
    }
    match context.has_variables() {
        true => context.variables().locks.try_all(),
        false => Ok(true),
    }
}
