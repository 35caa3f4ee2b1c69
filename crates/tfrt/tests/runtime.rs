//! What a service makes requests of: their memory.

use std::sync::Arc;

use tfrt::tensor::Tensor as Layered;
use tfrt::{
    AsyncValue, Context, Error, ErrorCode, Model, Runtime, SingleThreadedWorkQueue, Tensor,
};

const MIB: usize = 1 << 20;

fn runtime() -> Runtime {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    Runtime::builder().queue(queue).build()
}

fn twice(runtime: &Runtime) -> Model {
    let text = r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
        attributes {onnx.inputs = ["x"], onnx.outputs = ["y"]} {
      %y = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      tfrt.return %y : tensor<?xf32>
    }"#;
    let program = runtime.compile("twice.mlir", text).unwrap();
    Model::from_program(program, runtime).unwrap()
}

/// A tensor of a MiB, as is what `twice` makes of it.
fn mib() -> Tensor {
    Tensor::from(vec![1.5_f32; MIB / size_of::<f32>()])
}

fn call(model: &Model, context: &Context, x: &Tensor) -> Result<Tensor, Error> {
    model.call(context, (x,)).wait()?.take("y")
}

#[test]
fn request_above_its_limit_of_memory_fails_while_one_beside_it_goes_on() {
    let runtime = runtime();
    let (model, x) = (twice(&runtime), mib());
    // It waits for its input when the other fails.
    let (promise, later) = AsyncValue::<Layered>::pending();
    let beside = model.call(&runtime.context(), (later,));

    let limited = runtime.context_builder().max_memory(64 << 10).build();
    let error = call(&model, &limited, &x).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    assert_eq!(error.notes(), ["the request is limited to 65536 bytes"]);
    assert_eq!(limited.request().memory_refusals(), 1);
    // It is the call that fails, not the request: a smaller one has room.
    let small = call(&model, &limited, &Tensor::from([1.0_f32])).unwrap();
    assert_eq!(small.to_vec::<f32>().unwrap(), [2.0]);

    promise.resolve(Layered::from(x));
    let y = beside.wait().unwrap().take("y").unwrap();
    assert!(y.view::<f32>().unwrap().iter().all(|&y| y == 3.0));
}

#[test]
fn outputs_count_against_the_limit_of_their_request_until_they_are_dropped() {
    let runtime = runtime();
    let (model, x) = (twice(&runtime), mib());
    // Two outputs, and something for calls.
    let context = runtime
        .context_builder()
        .max_memory(2 * MIB + (64 << 10))
        .build();
    for _ in 0..10 {
        call(&model, &context, &x).unwrap();
    }
    let kept = call(&model, &context, &x).unwrap();
    let reading = call(&model, &context, &x).unwrap().read_owned().unwrap();
    let error = call(&model, &context, &x).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    drop(reading);
    let more = call(&model, &context, &x).unwrap();
    drop((kept, more));
}
