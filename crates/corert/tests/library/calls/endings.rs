//! Ends of waiting: cancellation and calls after it, room, failures.

use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_corert::kernels;
use tfrt_host::{Error, Program, RequestContext};
use tfrt_tensor::TensorFormat;

use super::*;

#[test]
fn clones_begin_anew_together() {
    let runtime = super::runtime_of(&host());
    let mut context = runtime.context();
    let clone = context.clone();
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    context.cancel();
    assert!(clone.is_cancelled() && add(&runtime).call(&clone, [&x, &x], &none()).is_err());
    context.reset();
    assert!(!clone.is_cancelled());
    let sum = add(&runtime).call_one(&clone, [&x, &x], &none()).unwrap();
    assert_eq!(values(&sum), [2.0]);
    let renewed = clone.renewed().unwrap();
    assert!(renewed.renewed().is_none() && context.renewed().is_none());
    // One that is not cancelled stays as it is.
    let request = context.execution();
    context.reset();
    assert!(Arc::ptr_eq(
        request.request(),
        context.execution().request()
    ));
    clone.cancel();
    assert!(context.is_cancelled());
}

#[test]
fn what_a_request_was_given_outlives_a_reset() {
    let host = host();
    let runtime = super::runtime_of(&host);
    let request = RequestContext::builder(&host).id(7).data(42_i32).build();
    let mut context = runtime.context_of(&request);
    context.cancel();
    context.reset();
    let execution = context.execution();
    let request = execution.request();
    assert_eq!((request.id(), *request.data::<i32>().unwrap()), (7, 42));
}

#[test]
fn cancelling_ends_every_wait() {
    let runtime = super::runtime_of(&host());
    let mut context = runtime.context().with_max_in_flight(2);
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let print = runtime.op("tfrt_test.print", &runtime.cpu()).unwrap();
    print.call(&context, [&later], &none()).unwrap();
    let other = runtime.context();
    let sum = add(&runtime).call_one(&context, [&later, &x], &none());
    let sum = sum.unwrap();
    let relu = runtime.op("tf.Relu", &runtime.cpu()).unwrap();
    let relu = relu.call_one(&other, [&later], &none()).unwrap();
    let (effects, room) = (context.effects(), context.room());
    assert!(context.is_full() && !effects.is_settled() && !room.is_settled());
    assert!(!relu.is_settled());
    context.cancel();
    assert_eq!(effects.error().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(room.error().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(sum.error().unwrap().code(), ErrorCode::Cancelled);
    // So does that of an operation of another context.
    assert_eq!(relu.error().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(other.in_flight(), 0);
    context.reset();
    assert_eq!(context.in_flight(), 0);
    let again = gate.call_one(&context, [&x], &none()).unwrap();
    add(&runtime)
        .call_one(&context, [&again, &x], &none())
        .unwrap();
    drop(promises);
}

#[test]
fn several_results_that_fail_are_told_of_once() {
    let (runtime, told) = listening();
    let (promise, tensor) = AsyncValue::pending();
    let promise: Mutex<Option<Promise<Tensor>>> = Mutex::new(Some(promise));
    let dispatch = move |_: &mut Call<'_>| {
        let outputs = [tensor.clone(), tensor.clone()].map(Output::Later);
        Ok(outputs.into_iter().collect())
    };
    let mut registry = OpRegistry::new();
    registry.add(OpDefinition::new("two", dispatch).inputs(1).results(2));
    let op = runtime
        .op("two", &runtime.handler_of("own", registry, None))
        .unwrap();
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&runtime.context(), [&x], &none()).unwrap();
    // At once, and deferred.
    let at_once = op.call(&runtime.context(), [&x], &none()).unwrap();
    let deferred = op.call(&runtime.context(), [&later], &none()).unwrap();
    promises.recv().unwrap().resolve(tensor_of(&x));
    let promise = promise.lock().unwrap().take().unwrap();
    promise.fail(Error::data_loss("the disk is gone"));
    for results in [at_once, deferred] {
        let [one, other] = &results[..] else {
            panic!("{results:?}")
        };
        assert!(one.error().unwrap().same(other.error().unwrap()));
    }
    assert_eq!(told.lock().unwrap().len(), 2);
}

fn tensor_of(handle: &TensorHandle) -> Tensor {
    handle.tensor().unwrap().unwrap().clone()
}

#[test]
fn transfers_wait_like_operations() {
    let (runtime, told) = listening();
    let context = runtime.context().with_max_in_flight(1);
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let (gate, promises) = gate(&runtime, false);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let to = |format| context.transfer(&later, &runtime.device(), format);
    let moved = to(TensorFormat::StringHost).unwrap();
    assert_eq!(context.in_flight(), 1);
    let refused = to(TensorFormat::DenseHost).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ResourceExhausted);
    promises.recv().unwrap().resolve(tensor_of(&x));
    assert_eq!(moved.error().unwrap().kernel(), Some("transfer"));
    assert!(moved.error().unwrap().location().is_some());
    assert_eq!((told.lock().unwrap().len(), context.in_flight()), (1, 0));
}

#[test]
fn what_is_wrong_with_a_call_is_said_before_what_its_inputs_failed_with() {
    let runtime = super::runtime_of(&host());
    let foreign = super::runtime_of(&host()).dense(&[1], &[1.0_f32]).unwrap();
    let failed = runtime.failed(Error::data_loss("the disk is gone"));
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let other = runtime.host().devices().add_host("CPU:7").unwrap();
    let elsewhere = runtime
        .context()
        .transfer(&x, &other, TensorFormat::DenseHost)
        .unwrap();
    for (first, expected) in [(&foreign, "another runtime"), (&elsewhere, "CPU:7")] {
        let result = add(&runtime).call(&runtime.context(), [first, &failed], &none());
        assert!(result.unwrap_err().message().contains(expected));
    }
}

const TWICE: &str = "
func.func @twice(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c \"cpu\"
  %y = corert.executeop(%cpu) \"tf.AddV2\"(%x, %x) : 1
  tfrt.return %c, %y : !tfrt.chain, !corert.tensorhandle
}
";

#[test]
fn functions_that_wait_are_counted() {
    let mut registry = KernelRegistry::new();
    kernels::register(&mut registry);
    let host = HostContext::builder(registry).build();
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("twice.mlir", TWICE)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let runtime = super::runtime_of(&host);
    let twice = runtime
        .composite(program.function("twice").unwrap())
        .unwrap();
    let context = runtime.context().with_max_in_flight(1);
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let call = |x: &TensorHandle| twice.call_one(&context, [x], &none());
    assert_eq!(values(&call(&x).unwrap()), [2.0]);
    assert_eq!(context.in_flight(), 0);
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [&x], &none()).unwrap();
    let sum = call(&later).unwrap();
    assert_eq!(context.in_flight(), 1);
    let refused = call(&later).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ResourceExhausted);
    promises.recv().unwrap().resolve(tensor_of(&x));
    assert_eq!(values(&sum), [2.0]);
    assert_eq!(context.in_flight(), 0);
}

#[test]
fn results_of_a_call_are_inputs_of_another() {
    let runtime = super::runtime_of(&host());
    let context = runtime.context();
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let mut inputs = vec![x.clone(), x];
    let sums: Handles = add(&runtime).call(&context, &inputs, &none()).unwrap();
    let relu = runtime.op("tf.Relu", &runtime.cpu()).unwrap();
    let [sum] = &relu.call(&context, &sums, &none()).unwrap()[..] else {
        panic!("one result")
    };
    assert_eq!(values(sum), [2.0]);
    assert_eq!(
        values(&relu.call(&context, sums, &none()).unwrap()[0]),
        [2.0]
    );
    // What was given for good is gone.
    inputs[0] = runtime.dense(&[1], &[3.0_f32]).unwrap();
    let given = tfrt_corert::Inputs::owned(&mut inputs);
    add(&runtime).call(&context, given, &none()).unwrap();
    let error = add(&runtime).call(&context, &inputs, &none()).unwrap_err();
    assert_eq!(
        error.message(),
        "input 0 of tf.AddV2 was given to another operation for good"
    );
}
