//! Runs functions marked synchronous: kernels in textual order, on the calling thread.
//!
//! The same frames, kernels and rights as the executor's, without wait counts, streams or queue.
//! The first error ends the function; kernels after it do not run. Cancellation is looked at before
//! each kernel.

use std::cell::Cell;
use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, Error};

use crate::executor::frame::Frame;
use crate::executor::registers::Ready;
use crate::executor::{guarded, located, report};
use crate::kernel::{Flow, KernelFrame};

/// Synchronous functions may run others from inside kernels to this depth of the thread's stack.
const MAX_NESTING: u32 = 200;

thread_local! {
    static NESTING: Cell<u32> = const { Cell::new(0) };
}

/// Runs a new frame of a synchronous function to its end.
///
/// # Errors
///
/// The error of the highest-numbered failed argument; else that of the first kernel that failed;
/// else the request's cancellation.
pub(crate) fn run(
    frame: &Arc<Frame>,
    arguments: &[AnyAsyncValue],
) -> Result<Vec<AnyAsyncValue>, Error> {
    // A call is a step whatever comes of it, and whatever it runs: loops have no others.
    if let Some(error) = arguments.iter().rev().find_map(AnyAsyncValue::error) {
        frame.request().count_steps(1);
        return Err(error.clone());
    }
    let depth = NESTING.get();
    if depth >= MAX_NESTING {
        frame.request().count_steps(1);
        return Err(Error::resource_exhausted(format!(
            "synchronous functions are nested deeper than {MAX_NESTING}"
        )));
    }
    NESTING.set(depth + 1);
    let result = run_kernels(frame, arguments);
    NESTING.set(depth);
    frame
        .request()
        .count_steps(1 + frame.shape().n_kernels() as u64);
    result
}

fn run_kernels(
    frame: &Arc<Frame>,
    arguments: &[AnyAsyncValue],
) -> Result<Vec<AnyAsyncValue>, Error> {
    let (mut in_order, fills) = frame.begin_in_order();
    for (fill, value) in fills.into_iter().zip(arguments) {
        let _nobody_waits = frame.fill(fill, value.clone().settled());
    }
    let mut results = Vec::new();
    while let Some(ready) = frame.next_in_order(&mut in_order) {
        run_kernel(frame, ready, &mut results)?;
    }
    Ok(frame.take_results())
}

fn run_kernel(
    frame: &Arc<Frame>,
    ready: Ready,
    results: &mut Vec<AnyAsyncValue>,
) -> Result<(), Error> {
    if let Some(error) = frame.request().cancellation() {
        return Err(error.clone());
    }
    results.clear();
    let kernel = ready.kernel();
    let running = frame.start(ready);
    let node = running.node();
    let n_results = running.n_results();
    let mut call = KernelFrame::new(running, results);
    let flow = guarded(|| node.kernel().call(&mut call));
    let (mut running, failure) = call.end();
    running.release_operands();
    let failure = match (flow, failure) {
        (Err(panic), _) => Some(panic),
        (Ok(_), Some(failure)) => Some(failure),
        (Ok(Flow::Done), None) if results.len() == n_results => None,
        (Ok(Flow::Done), None) => Some(Error::internal(format!(
            "the kernel gave {} results where {n_results} are expected",
            results.len()
        ))),
        (Ok(_), None) => Some(Error::internal(
            "load admits no kernel that makes calls here",
        )),
    };
    if let Some(failure) = failure {
        return Err(report(frame, kernel, failure));
    }
    let mut first_error = None;
    for value in results.drain(..) {
        let value = located(frame, kernel, value.settled());
        let fill = running.next_result().expect("the numbers were compared");
        if !value.is_settled() {
            first_error.get_or_insert(report(
                frame,
                kernel,
                Error::internal("an asynchronous result in a synchronous function"),
            ));
        } else if let Some(error) = value.error() {
            first_error.get_or_insert(error.clone());
        }
        let _nobody_waits = frame.fill(fill, value);
    }
    running.finish();
    first_error.map_or(Ok(()), Err)
}
