//! A thousand models, each a program of its own, and calls of each: in a process of their own, whose threads are
//! counted.

use std::fs;
use std::sync::Arc;

use tfrt::tensor::DenseHostTensor;
use tfrt::{Model, MultiThreadedWorkQueue, Runtime};

use crate::own_process::in_own_process;

const N_MODELS: usize = 1_000;
/// A page of Linux on most machines; elsewhere it is larger, and less is found than there is.
const PAGE_BYTES: usize = 4096;
/// Of text, program, constants and bookkeeping of a model of two operations.
const MOST_BYTES: usize = 256 << 10;

/// Adds a number of its own to what it is given.
fn model(runtime: &Runtime, number: usize) -> Model {
    let text = format!(
        r#"module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32>
      attributes {{model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 3 : i64]],
                  model.output_dims = [["N", 3 : i64]]}} {{
    %c = "onnx.Constant"() {{value = dense<{number}.0> : tensor<3xf32>}} : () -> tensor<3xf32>
    %a = "onnx.Add"(%x, %c) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
    %y = "onnx.Sqrt"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    func.return %y : tensor<?x3xf32>
  }}
}}
"#
    );
    let program = runtime.compile("model.mlir", text).unwrap();
    Model::from_program(program, runtime).unwrap()
}

fn n_threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Returns the bytes of the process that are in memory.
fn resident() -> usize {
    let numbers = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = numbers.split(' ').nth(1).unwrap();
    pages.parse::<usize>().unwrap() * PAGE_BYTES
}

#[test]
fn threads_stay_within_the_budget_with_a_thousand_models() {
    let _alone = crate::alone();
    in_own_process(
        "thousand::threads_stay_within_the_budget_with_a_thousand_models",
        look_at_a_thousand_models,
    );
}

fn look_at_a_thousand_models() {
    let runtime = Runtime::builder()
        .queue(Arc::new(MultiThreadedWorkQueue::new(3, 1).unwrap()))
        .build();
    let allocator = runtime.host().allocator();
    let x = DenseHostTensor::from_slice(allocator, &[1, 3], &[0.0_f32; 3]).unwrap();
    let call = |model: &Model, number: usize| {
        let outputs = model
            .spawn(&runtime.context(), (x.clone(),))
            .wait()
            .unwrap();
        let y = outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()[0];
        assert!((y * y - number as f32).abs() < 0.01, "{y} of {number}");
    };
    call(&model(&runtime, 0), 0);
    let (threads, bytes) = (n_threads(), resident());
    // The harness has two.
    assert!(threads <= 3 + 1 + 2, "{threads} threads");
    let models: Vec<Model> = (0..N_MODELS)
        .map(|number| model(&runtime, number))
        .collect();
    assert_eq!(n_threads(), threads);
    for (number, model) in models.iter().enumerate() {
        call(model, number);
    }
    // All of them at once.
    let context = runtime.context();
    let calls: Vec<_> = models
        .iter()
        .map(|model| model.spawn(&context, (x.clone(),)))
        .collect();
    assert_eq!(n_threads(), threads);
    for call in calls {
        let _ = call.wait().unwrap();
    }
    assert_eq!(n_threads(), threads);
    let each = (resident() - bytes) / N_MODELS;
    println!("{threads} threads before and after, {each} bytes a model");
    assert!(each < MOST_BYTES, "{each} bytes a model");
}
