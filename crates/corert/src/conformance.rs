//! The tests that every handler of operations must pass.
//!
//! [`suite`] takes a function that puts a handler in front of another, and panics with the name of the promise that the
//! handler does not keep. What stands behind the handler are a few operations for these tests, on the host's device, which
//! the handler must find and may do anything around.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tfrt_corert::{LoggingOpHandler, conformance};
//! use tfrt_host::Output;
//!
//! conformance::suite(&|_, next| Arc::new(LoggingOpHandler::new(next, false, Output::captured().0)));
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, Chain, Error, ErrorCode, HostContext, Promise, SourceLocation};
use tfrt_tensor::math::pointwise::{BinaryFunction, OperandOrder};
use tfrt_tensor::{Tensor, TensorMetadata};

use crate::attributes::OpAttrs;
use crate::context::Context;
use crate::definition::{MetadataCall, OpDefinition, OpRegistry, Output, Outputs, ResultMetadata};
use crate::handler::OpHandler;
use crate::op::{CoreRuntimeOp, Handles};
use crate::runtime::CoreRuntime;
use crate::{Call, TensorHandle};

/// Function that wraps the handler under test around another handler.
pub type Make<'a> = dyn Fn(&CoreRuntime, Arc<dyn OpHandler>) -> Arc<dyn OpHandler> + 'a;

/// A promise of the contract, with its test.
type Check = (&'static str, fn(&TestBed));

const CHECKS: &[Check] = &[
    (
        "an operation that nobody knows is not found, and the error names it",
        unknown_operations,
    ),
    ("a handler has a name, and one device", name_and_device),
    (
        "an operation that is found has its name, and says of its results and effects what is true",
        what_is_found,
    ),
    ("results are on the handler's device", device_of_results),
    (
        "what is wrong with shapes is the error of the call, with the place of the caller",
        errors_of_calls,
    ),
    (
        "what goes wrong later fails the results with that error",
        errors_of_results,
    ),
    (
        "an input that has failed fails the results with its error",
        failed_inputs,
    ),
    (
        "a call does not wait for inputs that are to come",
        inputs_to_come,
    ),
    (
        "cancellation fails what is to come, and calls that come",
        cancellation,
    ),
    (
        "the memory of inputs that are lent is not written",
        lent_inputs,
    ),
    ("side effects keep the order of the calls", order_of_effects),
    (
        "an operation that is found may be called by several threads at once",
        calls_of_threads,
    ),
];

/// Runs all checks on handlers made by `make`, each on one of its own.
///
/// # Panics
///
/// Panics if a handler breaks a promise of the contract.
pub fn suite(make: &Make<'_>) {
    for &(promise, check) in CHECKS {
        let bed = TestBed::new(make);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| check(&bed))) {
            eprintln!("'{}' breaks a promise: {promise}", bed.handler.name());
            resume_unwind(payload);
        }
    }
}

/// A handler under test, with the runtime and operations around it.
struct TestBed {
    runtime: CoreRuntime,
    context: Context,
    handler: Arc<dyn OpHandler>,
    /// The promises that `conformance.later` owes, in the order of the calls.
    owed: Receiver<Promise<Tensor>>,
    /// First elements of the tensors that calls of `conformance.note` were given.
    noted: Arc<Mutex<Vec<f32>>>,
}

impl TestBed {
    fn new(make: &Make<'_>) -> TestBed {
        let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
        let (sender, owed) = channel();
        let noted = Arc::new(Mutex::new(Vec::new()));
        let mut registry = OpRegistry::new();
        registry
            .add(sum())
            .add(later(move |promise| {
                // Who is not heard any more has failed already.
                let _gone = sender.send(promise);
            }))
            .add(note(noted.clone()));
        let handler = make(&runtime, runtime.handler_of("own", registry, None));
        TestBed {
            context: runtime.context(),
            runtime,
            handler,
            owed,
            noted,
        }
    }

    fn op(&self, name: &str) -> CoreRuntimeOp {
        let op = self.runtime.op(name, &self.handler);
        op.unwrap_or_else(|error| panic!("{name} is not found: {error}"))
    }

    fn vector(&self, elements: &[f32]) -> TensorHandle {
        let made = self.runtime.dense(&[elements.len()], elements);
        made.expect("there is memory for a few numbers")
    }

    fn call(&self, name: &str, inputs: &[&TensorHandle]) -> Result<Handles, Error> {
        self.op(name).call(&self.context, inputs, &OpAttrs::new())
    }

    /// Returns the only result of a call that is right.
    fn result(&self, name: &str, inputs: &[&TensorHandle]) -> TensorHandle {
        let results = self.call(name, inputs);
        let mut results = results.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(results.len(), 1, "results of {name}");
        results.remove(0)
    }

    /// Returns the promise of the first result that is owed.
    fn promise(&self) -> Promise<Tensor> {
        self.owed.recv().expect("the operation has run")
    }

    fn wait(&self, handle: &TensorHandle) {
        let value = handle.to_async().into_any();
        let waited = self.runtime.host().queue().await_all(&[value]);
        waited.expect("this is no thread of the queue");
    }

    /// Returns the elements of a tensor that has not failed, awaited.
    fn elements(&self, handle: &TensorHandle) -> Vec<f32> {
        self.wait(handle);
        let read = || {
            let tensor = handle.to_async().settled();
            let tensor = tensor.get().expect("it is settled").map_err(Clone::clone)?;
            let reading = tensor.as_dense()?.read()?;
            Ok(reading.elements::<f32>()?.to_vec())
        };
        read().unwrap_or_else(|error: Error| panic!("{error:?}"))
    }
}

/// Defines `conformance.sum`: the sum of two tensors of one shape.
fn sum() -> OpDefinition {
    OpDefinition::new("conformance.sum", |call| {
        call.binary(BinaryFunction::Add, OperandOrder::TargetFirst)
    })
    .inputs(2)
    .metadata(same_shapes)
    .pure()
}

fn same_shapes(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    match call.inputs {
        [x, y] if x == y => Ok([TensorMetadata::clone(x)].into_iter().collect()),
        _ => {
            let message = format!("{}: the inputs are not alike", call.op);
            Err(Error::invalid_argument(message))
        }
    }
}

/// Defines `conformance.later`: a pending tensor, whose promise is handed to `leave`.
fn later(leave: impl Fn(Promise<Tensor>) + Send + Sync + 'static) -> OpDefinition {
    let dispatch = move |_: &mut Call<'_>| {
        let (promise, tensor) = AsyncValue::pending();
        leave(promise);
        Ok(Outputs::from_iter([Output::Later(tensor)]))
    };
    OpDefinition::new("conformance.later", dispatch)
        .inputs(1)
        .pure()
}

/// Defines `conformance.note`: keeps the first element of a tensor, and has no results.
fn note(noted: Arc<Mutex<Vec<f32>>>) -> OpDefinition {
    let dispatch = move |call: &mut Call<'_>| {
        let first = call.dense(0)?.read()?.elements::<f32>()?.first().copied();
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.extend(first);
        Ok(Outputs::new())
    };
    OpDefinition::new("conformance.note", dispatch)
        .inputs(1)
        .results(0)
}

fn unknown_operations(bed: &TestBed) {
    let name = "conformance.unknown";
    match bed.handler.find(name) {
        Ok(op) => panic!("{} was found", op.name()),
        Err(error) => {
            assert_eq!(error.code(), ErrorCode::NotFound);
            assert!(error.message().contains(name), "{error}");
        }
    }
}

fn name_and_device(bed: &TestBed) {
    assert!(!bed.handler.name().is_empty());
    assert_eq!(bed.handler.device(), bed.handler.device());
}

fn what_is_found(bed: &TestBed) {
    let x = bed.vector(&[1.0]);
    for (name, n_results, is_pure) in [("conformance.sum", 1, true), ("conformance.note", 0, false)]
    {
        let op = bed.op(name);
        assert_eq!(op.name(), name);
        assert_eq!(op.is_pure(), is_pure, "{name}");
        let n = op.n_results().unwrap_or(n_results);
        assert_eq!(n, n_results, "{name}");
    }
    assert_eq!(
        bed.elements(&bed.result("conformance.sum", &[&x, &x])),
        [2.0]
    );
}

fn device_of_results(bed: &TestBed) {
    let x = bed.vector(&[1.0]);
    let (now, to_come) = (
        bed.result("conformance.sum", &[&x, &x]),
        bed.result("conformance.later", &[&x]),
    );
    for result in [now, to_come] {
        assert_eq!(result.device(), bed.handler.device());
    }
}

fn errors_of_calls(bed: &TestBed) {
    let (x, y) = (bed.vector(&[1.0]), bed.vector(&[1.0, 2.0]));
    let error = bed.call("conformance.sum", &[&x, &y]);
    let error = error.expect_err("the shapes differ");
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    let has_place = matches!(error.location(), Some(SourceLocation::FileLineCol { .. }));
    assert!(has_place, "{error:?}");
}

fn errors_of_results(bed: &TestBed) {
    let x = bed.vector(&[1.0]);
    let result = bed.result("conformance.later", &[&x]);
    bed.promise().fail(Error::data_loss("the disk is gone"));
    bed.wait(&result);
    let code = result.error().map(Error::code);
    assert_eq!(code, Some(ErrorCode::DataLoss));
}

fn failed_inputs(bed: &TestBed) {
    let reason = Error::unavailable("the file is gone");
    let (x, failed) = (bed.vector(&[1.0]), bed.runtime.failed(reason.clone()));
    let result = bed.result("conformance.sum", &[&x, &failed]);
    bed.wait(&result);
    assert!(result.error().is_some_and(|error| error.same(&reason)));
}

fn inputs_to_come(bed: &TestBed) {
    let x = bed.vector(&[1.0]);
    let to_come = bed.result("conformance.later", &[&x]);
    let sum = bed.result("conformance.sum", &[&to_come, &x]);
    assert!(!sum.is_settled(), "{sum}");
    let tensor = bed.vector(&[5.0]).to_async();
    bed.promise().forward(tensor);
    assert_eq!(bed.elements(&sum), [6.0]);
}

fn cancellation(bed: &TestBed) {
    let x = bed.vector(&[1.0]);
    let to_come = bed.result("conformance.later", &[&x]);
    let sum = bed.result("conformance.sum", &[&to_come, &x]);
    bed.context.cancel();
    bed.wait(&sum);
    let code = sum.error().map(Error::code);
    assert_eq!(code, Some(ErrorCode::Cancelled));
    let error = bed.call("conformance.sum", &[&x, &x]);
    let error = error.expect_err("the context is cancelled");
    assert_eq!(error.code(), ErrorCode::Cancelled);
}

fn lent_inputs(bed: &TestBed) {
    let (x, y) = (bed.vector(&[1.0]), bed.vector(&[2.0]));
    assert_eq!(
        bed.elements(&bed.result("conformance.sum", &[&x, &y])),
        [3.0]
    );
    assert_eq!((bed.elements(&x), bed.elements(&y)), (vec![1.0], vec![2.0]));
    // Given for good, but held by somebody else.
    let given = [x.clone(), y];
    let sum = bed.op("conformance.sum");
    let sum = sum.call(&bed.context, given, &OpAttrs::new());
    let sum = sum.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bed.elements(&sum[0]), [3.0]);
    assert_eq!(bed.elements(&x), [1.0]);
}

fn order_of_effects(bed: &TestBed) {
    let to_come = bed.result("conformance.later", &[&bed.vector(&[0.0])]);
    let now = bed.vector(&[2.0]);
    for handle in [&to_come, &now] {
        let results = bed.call("conformance.note", &[handle]);
        let results = results.unwrap_or_else(|error| panic!("{error}"));
        assert!(results.is_empty());
    }
    let tensor = bed.vector(&[1.0]).to_async();
    bed.promise().forward(tensor);
    let effects: AsyncValue<Chain> = bed.context.effects();
    let waited = bed.runtime.host().queue().await_all(&[effects.into_any()]);
    waited.expect("this is no thread of the queue");
    let noted = bed.noted.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*noted, [1.0, 2.0]);
}

fn calls_of_threads(bed: &TestBed) {
    let (op, context) = (bed.op("conformance.sum"), &bed.context);
    let sums = thread::scope(|scope| {
        let call = |number: u8| {
            let (op, x) = (&op, bed.vector(&[f32::from(number)]));
            move || op.call_one(context, [&x, &x], &OpAttrs::new())
        };
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(call(number))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        let sums = joined.map(|sum| sum.expect("a call does not panic"));
        sums.collect::<Result<Vec<_>, _>>()
    });
    let sums = sums.unwrap_or_else(|error| panic!("{error}"));
    for (number, sum) in (0_u8..).zip(&sums) {
        assert_eq!(bed.elements(sum), [2.0 * f32::from(number)]);
    }
}
