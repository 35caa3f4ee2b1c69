//! Operations, called one at a time: what comes back, when, and what is said of what is wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tfrt_corert::{
    Call, Context, CoreRuntime, CoreRuntimeOp, Handles, MetadataCall, OpAttrs, OpDefinition,
    OpRegistry, Output, Outputs, TensorHandle, same_metadata,
};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, ErrorCode, HostContext, Promise, SourceLocation};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorShape};

#[path = "calls/endings.rs"]
mod endings;
#[path = "calls/programs.rs"]
mod programs;
#[path = "calls/recordings.rs"]
mod recordings;
#[path = "calls/steps.rs"]
mod steps;

/// Returns the runtime of a host, with all kernels.
fn runtime_of(host: &HostContext) -> CoreRuntime {
    let runtime = CoreRuntime::new(host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    runtime
}

fn host() -> HostContext {
    HostContext::builder(KernelRegistry::new()).build()
}

fn none() -> OpAttrs {
    OpAttrs::new()
}

/// Returns a runtime whose host keeps what the diagnostic handler is told.
fn listening() -> (CoreRuntime, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let handler = told.clone();
    let host = HostContext::builder(KernelRegistry::new())
        .diagnostics(move |error| handler.lock().unwrap().push(error.to_string()))
        .build();
    (runtime_of(&host), told)
}

/// Returns the operation `gate`: its results come when the promises that it leaves are kept. `knows_metadata`: they
/// have the metadata of its operand, known at once.
pub(crate) fn gate(
    runtime: &CoreRuntime,
    knows_metadata: bool,
) -> (CoreRuntimeOp, mpsc::Receiver<Promise<Tensor>>) {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let dispatch = move |_: &mut Call<'_>| {
        let (promise, tensor) = AsyncValue::pending();
        sender.lock().unwrap().send(promise).unwrap();
        Ok([Output::Later(tensor)].into())
    };
    let mut definition = OpDefinition::new("gate", dispatch).inputs(1).pure();
    if knows_metadata {
        definition = definition.metadata(same_metadata);
    }
    let mut registry = OpRegistry::new();
    registry.add(definition);
    let handler = runtime.handler_of("own", registry, None);
    (runtime.op("gate", &handler).unwrap(), receiver)
}

fn tensor(runtime: &CoreRuntime, elements: &[f32]) -> Tensor {
    let allocator = runtime.host().allocator();
    DenseHostTensor::from_slice(allocator, &[elements.len()], elements)
        .unwrap()
        .into()
}

fn values(handle: &TensorHandle) -> Vec<f32> {
    let tensor = handle
        .tensor()
        .expect("it is settled")
        .expect("it has not failed");
    tensor
        .as_dense()
        .unwrap()
        .read()
        .unwrap()
        .elements::<f32>()
        .unwrap()
        .to_vec()
}

fn add(runtime: &CoreRuntime) -> CoreRuntimeOp {
    runtime.op("tf.AddV2", &runtime.cpu()).unwrap()
}

#[test]
fn shapes_that_values_decide_are_known_with_the_tensor() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let (gate, promises) = gate(&runtime, false);
    let x = runtime.handle(tensor(&runtime, &[1.0, 2.0]));
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let axes = runtime.dense(&[1], &[0_i32]).unwrap();
    let sum = runtime.op("tf.Sum", &runtime.cpu()).unwrap();
    let total = sum.call_one(&context, [&later, &axes], &none()).unwrap();
    assert!(total.metadata().is_none());
    let promise = promises.recv().unwrap();
    promise.resolve(tensor(&runtime, &[1.0, 2.0]));
    assert_eq!(values(&total), [3.0]);
    assert_eq!(total.metadata().unwrap().to_string(), "f32 []");
}

#[test]
fn errors_about_shapes_are_the_callers_and_have_his_place() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let x = runtime.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let y = runtime.dense(&[3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let line = line!() + 1;
    let error = add(&runtime).call(&context, [&x, &y], &none()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(error.kernel(), Some("tf.AddV2"));
    match error.location() {
        Some(SourceLocation::FileLineCol {
            file, line: found, ..
        }) => {
            assert!(file.ends_with("calls.rs"), "{file}");
            assert_eq!(*found, line);
        }
        other => panic!("{other:?}"),
    }
    // Others go on.
    let sum = add(&runtime).call_one(&context, [&x, &x], &none()).unwrap();
    assert_eq!(values(&sum), [2.0, 4.0]);
}

#[test]
fn the_last_handle_of_a_tensor_lends_its_memory_to_the_result() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let address = |handle: &TensorHandle| dense_of(handle).buffer().address();
    let ones = |n: usize| runtime.dense(&[n], &vec![1.0_f32; n]).unwrap();
    // Short, and long enough for workers.
    for n in [4, 1 << 14, 1 << 18] {
        let (x, y) = (ones(n), ones(n));
        let before = address(&x);
        let sum = add(&runtime).call_one(&context, [x, y], &none()).unwrap();
        wait(&sum);
        assert_eq!(address(&sum), before, "{n}");
        // Somebody else holds it: not written.
        let kept = sum.clone();
        let other = add(&runtime)
            .call_one(&context, [sum, ones(n)], &none())
            .unwrap();
        wait(&other);
        assert_ne!(address(&other), before, "{n}");
        assert_eq!((values(&kept)[n - 1], values(&other)[n - 1]), (2.0, 3.0));
        // The second one, if the first can't.
        let before = address(&other);
        let third = add(&runtime)
            .call_one(&context, [kept.clone(), other], &none())
            .unwrap();
        wait(&third);
        assert_eq!(address(&third), before, "{n}");
        // Lent handles are never written.
        let fourth = add(&runtime)
            .call_one(&context, [&third, &third], &none())
            .unwrap();
        wait(&fourth);
        assert_ne!(address(&fourth), address(&third));
    }
}

#[test]
fn a_tensor_that_a_handle_leads_to_is_written_by_nobody_else() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    for n in [4, 1 << 14] {
        let x = runtime.dense(&[n], &vec![1.0_f32; n]).unwrap();
        let sum = add(&runtime).call_one(&context, [&x, &x], &none()).unwrap();
        for handle in [&x, &sum] {
            let dense = dense_of(handle);
            let error = dense.write().unwrap_err();
            assert_eq!(error.code(), ErrorCode::FailedPrecondition);
            assert_eq!(
                error.message(),
                "the buffer is for reading only: its tensor is finished"
            );
            // As often at once as one likes.
            let readings = [dense.read().unwrap(), dense.read().unwrap()];
            assert_eq!(readings[0].bytes(), readings[1].bytes());
        }
        // A tensor that somebody else has is his to write.
        let own = dense_of(&x).deep_copy(runtime.host().allocator()).unwrap();
        let shared = runtime.handle(own.clone());
        own.write().unwrap().elements_mut::<f32>().unwrap()[0] = 7.0;
        assert_eq!(values(&shared)[0], 7.0);
    }
}

fn dense_of(handle: &TensorHandle) -> &DenseHostTensor {
    handle.tensor().unwrap().unwrap().as_dense().unwrap()
}

fn wait(handle: &TensorHandle) {
    let (sender, receiver) = mpsc::channel();
    handle.to_async().and_then(move || sender.send(()).unwrap());
    receiver
        .recv_timeout(Duration::from_secs(20))
        .expect("it settles");
}

#[test]
fn operations_wait_for_what_is_to_come_and_say_what_they_know() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let x = runtime.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let sum = add(&runtime)
        .call_one(&context, [&later, &x], &none())
        .unwrap();
    assert!(!sum.is_settled());
    assert_eq!(sum.to_string(), "f32 [2], to come");
    // What is wrong with shapes is known before anything runs.
    let wrong = runtime.dense(&[3], &[0.0_f32; 3]).unwrap();
    assert!(
        add(&runtime)
            .call(&context, [&sum, &wrong], &none())
            .is_err()
    );
    promises
        .recv()
        .unwrap()
        .resolve(tensor(&runtime, &[10.0, 20.0]));
    assert_eq!(values(&sum), [11.0, 22.0]);
    assert_eq!(context.in_flight(), 0);
}

#[test]
fn what_is_known_late_fails_the_handles_and_is_told_once() {
    let (runtime, told) = listening();
    let context = runtime.context();
    let x = runtime.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let (gate, promises) = gate(&runtime, false);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    assert!(later.metadata().is_none());
    let sum = add(&runtime)
        .call_one(&context, [&later, &x], &none())
        .unwrap();
    let twice = add(&runtime)
        .call_one(&context, [&sum, &sum], &none())
        .unwrap();
    promises
        .recv()
        .unwrap()
        .resolve(tensor(&runtime, &[1.0, 2.0, 3.0]));
    let error = sum.error().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert!(matches!(
        error.location(),
        Some(SourceLocation::FileLineCol { .. })
    ));
    assert!(twice.error().unwrap().same(error));
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[test]
fn cancelling_fails_what_is_to_come_until_reset() {
    let runtime = runtime_of(&host());
    let mut context = runtime.context();
    let x = runtime.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let sum = add(&runtime)
        .call_one(&context, [&later, &x], &none())
        .unwrap();
    let awaited = sum.to_async();
    assert!(!sum.is_settled());
    context.cancel();
    assert!(sum.is_settled() && later.is_settled());
    assert_eq!(sum.error().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(awaited.error().unwrap().code(), ErrorCode::Cancelled);
    let error = add(&runtime).call(&context, [&x, &x], &none()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    context.reset();
    assert_eq!(
        values(&add(&runtime).call_one(&context, [&x, &x], &none()).unwrap()),
        [2.0, 4.0]
    );
    // A handle that failed fails what it is given to, in the new request too.
    let failed = add(&runtime)
        .call_one(&context, [&sum, &x], &none())
        .unwrap();
    assert_eq!(failed.error().unwrap().code(), ErrorCode::Cancelled);
    // Whoever comes too late is not heard.
    promises
        .recv()
        .unwrap()
        .resolve(tensor(&runtime, &[1.0, 1.0]));
    assert!(awaited.error().is_some());
    assert_eq!(later.error().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(sum.error().unwrap().code(), ErrorCode::Cancelled);
}

#[test]
fn a_deadline_ends_the_wait() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, _promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    context.set_deadline(std::time::Instant::now() + Duration::from_millis(20));
    wait(&later);
    assert_eq!(later.error().unwrap().code(), ErrorCode::DeadlineExceeded);
}

#[test]
fn side_effects_keep_the_order_of_the_calls() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let note = move |call: &mut Call<'_>| {
        let first = call.dense(0)?.read()?.elements::<f32>()?[0];
        keep.lock().unwrap().push(first);
        Ok([].into_iter().collect())
    };
    let mut registry = OpRegistry::new();
    registry.add(OpDefinition::new("note", note).inputs(1).results(0));
    let note = runtime
        .op("note", &runtime.handler_of("own", registry, None))
        .unwrap();
    let (gate, promises) = gate(&runtime, true);
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let noted = |handle: &TensorHandle| {
        let results: Handles = note.call(&context, [handle], &none()).unwrap();
        assert!(results.is_empty());
    };
    noted(&later);
    noted(&x);
    assert!(seen.lock().unwrap().is_empty());
    promises.recv().unwrap().resolve(tensor(&runtime, &[7.0]));
    noted(&x);
    assert_eq!(*seen.lock().unwrap(), [7.0, 1.0, 1.0]);
    assert!(context.effects().is_settled());
}

#[test]
fn too_many_operations_that_wait_are_refused_until_there_is_room() {
    let runtime = runtime_of(&host());
    let context: Context = runtime.context().with_max_in_flight(4);
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let mut last = gate.call_one(&context, [&x], &none()).unwrap();
    for _ in 0..4 {
        last = add(&runtime)
            .call_one(&context, [&last, &x], &none())
            .unwrap();
    }
    let error = add(&runtime)
        .call(&context, [&last, &x], &none())
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    let room = context.room();
    assert!(!room.is_settled());
    promises.recv().unwrap().resolve(tensor(&runtime, &[1.0]));
    assert!(room.is_settled() && context.in_flight() == 0);
    assert_eq!(values(&last), [5.0]);
}

#[test]
fn long_rows_of_operations_that_wait_take_no_stack() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let mut last = gate.call_one(&context, [&x], &none()).unwrap();
    let add = add(&runtime);
    for _ in 0..100_000 {
        last = add.call_one(&context, [&last, &x], &none()).unwrap();
    }
    promises.recv().unwrap().resolve(tensor(&runtime, &[0.0]));
    assert_eq!(values(&last), [100_000.0]);
    // Dropped without being settled, too.
    let mut last = gate.call_one(&context, [&x], &none()).unwrap();
    for _ in 0..100_000 {
        last = add.call_one(&context, [last, x.clone()], &none()).unwrap();
    }
    drop(promises.recv().unwrap());
    assert!(last.error().is_some());
}

#[test]
fn handles_of_another_runtime_are_refused() {
    let (one, other) = (runtime_of(&host()), runtime_of(&host()));
    let x = one.dense(&[1], &[1.0_f32]).unwrap();
    let error = add(&other)
        .call(&other.context(), [&x, &x], &none())
        .unwrap_err();
    assert_eq!(
        error.message(),
        "input 1 of tf.AddV2 belongs to another runtime"
    );
    let error = add(&one)
        .call(&other.context(), [&x, &x], &none())
        .unwrap_err();
    assert_eq!(
        error.message(),
        "tf.AddV2 was made by another runtime than the context"
    );
}

#[test]
fn formats_are_converted_where_an_operation_needs_it() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let shape = TensorShape::new(&[2]).unwrap();
    let scalar = runtime.handle(tfrt_tensor::ScalarHostTensor::new(shape, 2.0_f32));
    let relu = runtime.op("tf.Relu", &runtime.cpu()).unwrap();
    assert_eq!(
        values(&relu.call_one(&context, [&scalar], &none()).unwrap()),
        [2.0, 2.0]
    );
}

#[test]
fn a_panic_of_an_operation_is_its_error() {
    let runtime = runtime_of(&host());
    let mut registry = OpRegistry::new();
    registry.add(OpDefinition::new("panics", |_| panic!("oh no")).pure());
    let op = runtime
        .op("panics", &runtime.handler_of("own", registry, None))
        .unwrap();
    let error = op.call(&runtime.context(), (), &none()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Internal);
    assert!(error.message().contains("oh no"));
}

#[test]
fn direct_operations_describe_their_results_only_where_inputs_are_to_come() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let n_described = Arc::new(AtomicUsize::new(0));
    let counted = n_described.clone();
    let metadata = move |call: &MetadataCall<'_>| {
        counted.fetch_add(1, Ordering::Relaxed);
        same_metadata(call)
    };
    let dispatch = |call: &mut Call<'_>| match call.dense(0)?.n_elements() {
        1 => Ok(Outputs::new()),
        2 => {
            let (_dropped, later) = AsyncValue::pending();
            Ok([Output::Later(later)].into())
        }
        3 => panic!("oh no"),
        4 => call.result(0).map(|_| Outputs::new()),
        _ => Ok([Output::Ready(call.tensor(0)?.clone())].into()),
    };
    let definition = OpDefinition::new("direct", dispatch).inputs(1).pure();
    let mut registry = OpRegistry::new();
    registry.add(definition.metadata(metadata).direct());
    let handler = runtime.handler_of("own", registry, None);
    let direct = runtime.op("direct", &handler).unwrap();
    let call = |n: usize| {
        let x = runtime.dense(&[n], &vec![1.0_f32; n]).unwrap();
        direct.call_one(&context, [&x], &none())
    };
    assert_eq!(values(&call(5).unwrap()), [1.0; 5]);
    assert_eq!(n_described.load(Ordering::Relaxed), 0);
    let refused = |n: usize| call(n).unwrap_err().message().to_owned();
    assert!(refused(1).contains("direct has made 0 results: expected 1"));
    assert!(
        call(2).unwrap().error().is_some(),
        "nobody keeps the promise"
    );
    assert!(refused(3).contains("oh no"));
    assert!(refused(4).contains("nothing is known of result 0 of direct"));
    let (gate, promises) = gate(&runtime, true);
    let x = runtime.dense(&[5], &[1.0_f32; 5]).unwrap();
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let waiting = direct.call_one(&context, [&later], &none()).unwrap();
    assert_eq!(waiting.to_string(), "f32 [5], to come");
    assert_eq!(n_described.load(Ordering::Relaxed), 1);
    let promise = promises.recv().unwrap();
    promise.resolve(tensor(&runtime, &[2.0; 5]));
    assert_eq!(values(&waiting), [2.0; 5]);
}

#[test]
fn an_operation_may_call_others_with_its_own_context() {
    let runtime = runtime_of(&host());
    let context = runtime.context();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner = {
        let seen = seen.clone();
        let note = move |_: &mut Call<'_>| {
            seen.lock().unwrap().push("inner");
            Ok([].into_iter().collect())
        };
        let mut registry = OpRegistry::new();
        registry.add(OpDefinition::new("inner", note).inputs(0).results(0));
        runtime
            .op("inner", &runtime.handler_of("own", registry, None))
            .unwrap()
    };
    let outer = {
        let (seen, context) = (seen.clone(), context.clone());
        let note = move |_: &mut Call<'_>| {
            inner.call(&context, (), &none())?;
            seen.lock().unwrap().push("outer");
            Ok([].into_iter().collect())
        };
        let mut registry = OpRegistry::new();
        registry.add(OpDefinition::new("outer", note).inputs(0).results(0));
        runtime
            .op("outer", &runtime.handler_of("own", registry, None))
            .unwrap()
    };
    outer.call(&context, (), &none()).unwrap();
    // What is called by an operation comes after it.
    assert_eq!(*seen.lock().unwrap(), ["outer", "inner"]);
    assert!(context.effects().is_settled());
}

#[test]
fn who_waits_for_room_may_ask_for_it_again() {
    let runtime = runtime_of(&host());
    let context: Context = runtime.context().with_max_in_flight(2);
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let sums = [0, 1].map(|_| {
        add(&runtime)
            .call_one(&context, [&later, &x], &none())
            .unwrap()
    });
    let (sender, receiver) = mpsc::channel();
    let again = context.clone();
    context
        .room()
        .and_then(move || sender.send(again.room().is_settled()).unwrap());
    std::thread::spawn(move || {
        promises
            .recv()
            .unwrap()
            .fail(tfrt_host::Error::unknown("late"))
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(true));
    sums.iter().for_each(wait);
}
