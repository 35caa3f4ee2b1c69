//! Handlers: the contract, the text of the logging handler, and the order of searches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tfrt_corert::{
    Call, CoreRuntime, FallbackOpHandler, LoggingOpHandler, NullOpHandler, Op, OpAttrs,
    OpDefinition, OpHandler, OpRegistry, Outputs, conformance,
};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{CapturedOutput, DeviceId, Error, ErrorCode, HostContext, Output};

/// Returns the runtime of a host, with all kernels.
fn runtime_of(host: &HostContext) -> CoreRuntime {
    let runtime = CoreRuntime::new(host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    runtime
}

fn runtime() -> (CoreRuntime, CapturedOutput) {
    let (output, captured) = Output::captured();
    let host = HostContext::builder(KernelRegistry::new())
        .output(output)
        .build();
    (runtime_of(&host), captured)
}

#[test]
fn handlers_keep_the_contract() {
    conformance::suite(&|_, next| next);
    conformance::suite(&|runtime, next| runtime.rows(DeviceId::HOST, Some(next)));
    for with_results in [false, true] {
        conformance::suite(&|_, next| {
            Arc::new(LoggingOpHandler::new(
                next,
                with_results,
                Output::captured().0,
            ))
        });
    }
    conformance::suite(&|runtime, next| {
        let null = Arc::new(NullOpHandler::new(DeviceId::HOST));
        Arc::new(FallbackOpHandler::new("row", null, [next, runtime.cpu()]))
    });
}

#[test]
#[should_panic(expected = "shapes differ")]
fn handlers_that_break_the_contract_are_found() {
    /// A handler whose operations swallow errors: a failed call gives no results.
    struct Deaf(Arc<dyn OpHandler>);
    struct DeafOp(Arc<dyn Op>);
    impl OpHandler for Deaf {
        fn name(&self) -> &str {
            "deaf"
        }
        fn device(&self) -> DeviceId {
            self.0.device()
        }
        fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
            Ok(Arc::new(DeafOp(self.0.find(op)?)))
        }
    }
    impl Op for DeafOp {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn is_pure(&self) -> bool {
            self.0.is_pure()
        }
        fn call(&self, call: tfrt_corert::OpCall<'_>) -> Result<tfrt_corert::Handles, Error> {
            Ok(self.0.call(call).unwrap_or_default())
        }
    }
    conformance::suite(&|_, next| Arc::new(Deaf(next)));
}

#[test]
fn what_is_called_is_logged() {
    let (runtime, captured) = runtime();
    let context = runtime.context();
    let log = |with_results| -> Arc<dyn OpHandler> {
        let output = runtime.host().output().clone();
        Arc::new(LoggingOpHandler::new(runtime.cpu(), with_results, output))
    };
    let handler = log(true);
    let op = |name: &str| runtime.op(name, &handler).unwrap();
    let mut attrs = OpAttrs::new();
    attrs.set("shape", [5_i64]).unwrap();
    attrs.set("values", [1_i32, 2, 3, 4, 5]).unwrap();
    let all = op("tfrt_test.create_dense_tensor")
        .call_one(&context, (), &attrs)
        .unwrap();
    op("tfrt_test.odd_collector")
        .call_one(&context, [&all], &OpAttrs::new())
        .unwrap();
    assert_eq!(
        captured.logged(),
        "[0] dispatch 'tfrt_test.create_dense_tensor' 0 arguments, 1 result, OpAttrs contains 2 entries:
  'shape' type=I64 value=[5]
  'values' type=I32 value=[1, 2, 3, 4, 5]
Inputs for [0]: 'tfrt_test.create_dense_tensor':

Outputs for [0]: 'tfrt_test.create_dense_tensor':
  Output for [0] tensor 0: DenseHostTensor dtype = i32, shape = [5], values = [1, 2, 3, 4, 5]

[1] dispatch 'tfrt_test.odd_collector' 1 argument, 1 result, no attributes
Inputs for [1]: 'tfrt_test.odd_collector':
  Input for [1] tensor 0: DenseHostTensor dtype = i32, shape = [5], values = [1, 2, 3, 4, 5]

Outputs for [1]: 'tfrt_test.odd_collector':
  Output for [1] tensor 0: DenseHostTensor dtype = i32, shape = [3], values = [1, 3, 5]

"
    );
    assert_eq!(
        (handler.name(), log(false).name()),
        ("sync_logging", "logging")
    );
    let error = runtime.op("tf.Rely", &handler).unwrap_err();
    assert_eq!(error.message(), "op 'tf.Rely' is not supported");
    assert_eq!(
        error.notes(),
        ["a plugin may bring it: none that is loaded does"]
    );
}

#[test]
fn what_fails_is_logged_too() {
    let (runtime, captured) = runtime();
    let context = runtime.context();
    let output = runtime.host().output().clone();
    let handler: Arc<dyn OpHandler> = Arc::new(LoggingOpHandler::new(runtime.cpu(), true, output));
    let relu = runtime.op("tf.Relu", &handler).unwrap();
    let failed = runtime.failed(Error::unknown("it is gone"));
    relu.call_one(&context, [&failed], &OpAttrs::new()).unwrap();
    assert_eq!(
        captured.logged(),
        "[0] dispatch 'tf.Relu' 1 argument, 1 result, no attributes
Inputs for [0]: 'tf.Relu':
  Input for [0] tensor 0: Error TensorHandle: 'it is gone'

Outputs for [0]: 'tf.Relu':
  Output for [0] tensor 0: Error TensorHandle: 'it is gone'

"
    );
}

/// Fails with a code, and counts how often it is asked.
struct Failing(ErrorCode, Arc<AtomicUsize>);

impl OpHandler for Failing {
    fn name(&self) -> &str {
        "failing"
    }
    fn device(&self) -> DeviceId {
        DeviceId::HOST
    }
    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        // Ordering: one thread.
        self.1.fetch_add(1, Ordering::Relaxed);
        Err(Error::new(self.0, format!("{op}: failing")))
    }
}

#[test]
fn handlers_in_a_row_are_asked_one_after_the_other() {
    let (runtime, _) = runtime();
    let asked = Arc::new(AtomicUsize::new(0));
    let row = |code: ErrorCode| -> Arc<dyn OpHandler> {
        let first = Arc::new(Failing(code, asked.clone()));
        Arc::new(FallbackOpHandler::new("row", first, [runtime.cpu()]))
    };
    let known = runtime.op("tf.Relu", &row(ErrorCode::NotFound)).unwrap();
    assert_eq!((known.name(), known.handler()), ("tf.Relu", "row"));
    // Ordering: one thread.
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // Who knows the operation but can't have it now is heard.
    let error = runtime.op("tf.Relu", &row(ErrorCode::Unavailable));
    assert_eq!(error.unwrap_err().code(), ErrorCode::Unavailable);
}

#[test]
fn the_null_handler_knows_nothing() {
    let (runtime, _) = runtime();
    let null: Arc<dyn OpHandler> = Arc::new(NullOpHandler::new(DeviceId::HOST));
    let error = runtime.op("tf.Relu", &null).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    assert_eq!(
        error.message(),
        "tf.Relu was not supported by NullOpHandler."
    );
}

#[test]
fn side_effects_that_take_long_keep_their_order() {
    let (runtime, _) = runtime();
    let context = runtime.context();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = seen.clone();
    let (sender, second_is_called) = std::sync::mpsc::channel::<()>();
    let second_is_called = std::sync::Mutex::new(second_is_called);
    let note = move |call: &mut Call<'_>| {
        let n = call.dense(0)?.n_elements();
        if n > 1 {
            second_is_called.lock().unwrap().recv().unwrap();
        }
        keep.lock().unwrap().push(n);
        Ok(Outputs::new())
    };
    let mut registry = OpRegistry::new();
    registry.add(OpDefinition::new("note", note).inputs(1).results(0));
    let note = runtime
        .op("note", &runtime.handler_of("own", registry, None))
        .unwrap();
    // The first is left to a worker, and has no result to wait for.
    for n in [1 << 20, 1] {
        let x = runtime.dense(&[n], &vec![1_u8; n]).unwrap();
        note.call(&context, [&x], &OpAttrs::new()).unwrap();
    }
    sender.send(()).unwrap();
    let effects = context.effects().into_any();
    runtime.host().queue().await_all(&[effects]).unwrap();
    assert_eq!(*seen.lock().unwrap(), [1 << 20, 1]);
}
