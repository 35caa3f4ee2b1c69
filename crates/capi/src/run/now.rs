//! Calls that end when the function of their kernel returns: they borrow inputs and surroundings of the caller, and threads
//! use one context for all of them.

use std::cell::Cell;

use tfrt_corert::Call;
use tfrt_host::Error;

use super::{BoundKernel, Context, Input, Results, computed};
use crate::lent::{Borrowed, Lent};

thread_local! {
    /// A context that no call uses, with nothing in it.
    static SPARE: Cell<Option<Box<Context>>> = const { Cell::new(None) };
}

/// Runs a kernel that is not asynchronous, for a call without variables.
///
/// # Errors
///
/// Those of [`compute`](super::compute).
pub fn compute_now(call: &mut Call<'_>, bound: &BoundKernel) -> Results {
    let mut context = SPARE.take().unwrap_or_default();
    begin(&mut context, call, bound)?;
    let (results, own) = computed(context, bound);
    if let Some(mut own) = own {
        own.clear();
        SPARE.set(Some(own));
    }
    results
}

/// Fills a context. What it borrows stays as it is until [`compute_now`] returns, where the context is gone, or cleared.
fn begin(context: &mut Context, call: &mut Call<'_>, bound: &BoundKernel) -> Result<(), Error> {
    let request = call.execution().request();
    // SAFETY: the caller of `compute_now` keeps it for longer than the context is used.
    let own = unsafe { Borrowed::new(bound) };
    // SAFETY: as above, by the call.
    let request = unsafe { Borrowed::new(&**request) };
    context.begin(Lent::Borrowed(own), Lent::Borrowed(request));
    let n_inputs = call.n_inputs();
    for index in 0..n_inputs {
        // What was given for good may become an output's memory.
        let given = call.take_sole(index);
        context.add_input(given.map_or_else(Input::taken, Input::given));
    }
    // From here on nothing is changed of the call.
    for index in 0..n_inputs {
        if context.tensors.is_taken(index) {
            // SAFETY: the call keeps its inputs as they are, and is borrowed until the context is used no more.
            let input = unsafe { Borrowed::new(call.tensor(index)?) };
            context.tensors.lend(index, input);
        }
    }
    Ok(())
}
