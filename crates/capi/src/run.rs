//! Runs of kernels: a call of a kernel's function in a [`Context`], at once or asynchronously, and what comes of it.

use std::cell::Cell;

use tfrt_corert::Output;
use tfrt_host::{Chain, Error, Promise};

use crate::fault;
use crate::functions::context::Done;
use crate::guard::Exception;
use crate::handle::Handle;
use outcome::running;

mod context;
mod instance;
#[expect(unsafe_code, reason = "what the caller lends for the time of the call")]
mod now;
mod outcome;
#[expect(unsafe_code, reason = "views that are not counted")]
mod tensors;

pub use context::{Context, Results, no_such};
pub use instance::{BoundKernel, Instance, UNTOLD};
pub use now::{compute_now, view_of_input};
pub use tensors::Input;

/// A context in the table of handles, for the time in which the plugin's code runs; gone when this is, also by a panic.
struct Entered(Handle<Context>);

impl Entered {
    /// Takes the context back.
    fn leave(self) -> Option<Box<Context>> {
        let context = self.0.take_stored().ok();
        std::mem::forget(self);
        context
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        drop(self.0.take_stored());
    }
}

/// Runs a kernel of a kind of calls to its end, for a call that has inputs of its own.
///
/// # Errors
///
/// Those that the plugin tells; `Internal` if it throws, `InvalidArgument` for wrong uses of the C API.
pub fn compute(context: Box<Context>, bound: &BoundKernel) -> Results {
    let kernel = &*bound.instance.kernel;
    let entered = Entered(Handle::of_stored(context));
    let arguments = [bound.state, entered.0.bits()];
    let (called, faults) = running(kernel, || kernel.compute.call(&arguments));
    match entered.leave() {
        Some(mut context) => context.finish(called.err(), faults, kernel),
        None => Err(Error::internal("the context of a call is gone")),
    }
}

/// Starts an asynchronous kernel, whose results come when it says that it is done.
pub fn start(
    context: Box<Context>,
    promises: Vec<Promise<tfrt_tensor::Tensor>>,
    effects: Option<Promise<Chain>>,
) {
    let kernel = context.bound().instance.kernel.clone();
    let state = context.bound().state;
    let context: Handle<Context> = Handle::of_stored(context);
    let done = Handle::new(Done {
        context,
        promises,
        effects,
    });
    let arguments = [state, context.bits(), done.bits()];
    let before = STARTING.replace(done.bits());
    let (called, faults) = running(&kernel, || kernel.compute.call(&arguments));
    STARTING.set(before);
    if called.is_err() || !faults.is_empty() {
        match done.take_quietly() {
            Ok(done) => done.settle(called.err(), faults),
            // It was done already: nobody hears of it otherwise.
            Err(_) => {
                let text = kernel.text();
                for one in faults {
                    fault::record(format_args!("{one}, in {text}"));
                }
            }
        }
    }
}

thread_local! {
    /// The `done` of the asynchronous kernel whose function runs on this thread; 0 if there is none.
    static STARTING: Cell<usize> = const { Cell::new(0) };
}

/// Ends an asynchronous kernel that says that it is done. If its function still runs, on this thread, its faults so far
/// are those of the call.
///
/// # Errors
///
/// Why the handle leads nowhere.
pub fn end(done: Handle<Done>) -> Result<(), String> {
    let ended = done.take_quietly()?;
    let faults = match STARTING.get() == done.bits() {
        true => fault::take(),
        false => Vec::new(),
    };
    ended.settle(None, faults);
    Ok(())
}

impl Done {
    /// Settles the results of an asynchronous kernel.
    pub fn settle(self, thrown: Option<Exception>, faults: Vec<String>) {
        let results = match self.context.take_stored() {
            Ok(mut context) => {
                let kernel = context.bound().instance.kernel.clone();
                context.finish(thrown, faults, &kernel)
            }
            Err(_) => Err(Error::internal("the context of a call is gone")),
        };
        settle(results, self.promises, self.effects);
    }
}

/// Settles results, and the effects, with what has come of a call.
pub fn settle(
    results: Results,
    promises: Vec<Promise<tfrt_tensor::Tensor>>,
    effects: Option<Promise<Chain>>,
) {
    match results {
        Ok(results) => {
            for (promise, result) in promises.into_iter().zip(results) {
                match result {
                    Output::Ready(tensor) => promise.resolve(tensor),
                    Output::Later(later) => promise.forward(later),
                }
            }
            if let Some(effects) = effects {
                effects.resolve(Chain);
            }
        }
        Err(error) => {
            for promise in promises {
                promise.fail(error.clone());
            }
            if let Some(effects) = effects {
                effects.fail(error);
            }
        }
    }
}
