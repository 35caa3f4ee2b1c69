//! Calls of models by the library: names, types, symbols, and what does not fit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tfrt::model::{Datum, ModelInputs};
use tfrt::{Element, ErrorCode, Model, OpenError, Runtime, SingleThreadedWorkQueue, Tensor};

use super::{TWO, model};

fn runtime() -> Runtime {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    Runtime::builder().queue(queue).build()
}

fn tensor<T: Element>(extents: &[usize], elements: &[T]) -> Tensor {
    Tensor::from_slice(extents, elements).unwrap()
}

fn elements(tensor: impl TryInto<Tensor, Error: std::fmt::Debug>) -> Vec<f32> {
    tensor.try_into().unwrap().to_vec::<f32>().unwrap()
}

fn message(model: &Model, runtime: &Runtime, inputs: impl ModelInputs) -> String {
    let error = model.call(&runtime.context(), inputs).wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    error.message().to_owned()
}

#[test]
fn model_says_what_it_takes_and_gives() {
    let runtime = runtime();
    let model = model(&runtime, TWO);
    let shown: Vec<String> = model.inputs().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["x: f32 [N, 3]", "y: f32 [N, 3]"]);
    let shown: Vec<String> = model.outputs().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["sum: f32 [N, 3]", "positive: f32 [N, 3]"]);
}

#[test]
fn inputs_are_given_by_name_or_in_order() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, TWO), runtime.context());
    let x = tensor(&[1, 3], &[1.0_f32, -9.0, 0.0]);
    let y = tensor(&[1, 3], &[0.5_f32, 0.0, 0.0]);
    let expected = [2.5, -7.0, 3.0];
    let calls = [
        model.call(&context, (&x, &y)),
        model.call(&context, [&x, &y]),
        model.call(&context, vec![x.clone(), y.clone()]),
        model.call(&context, [("y", &y), ("x", &x)]),
        model.call(&context, &[("y", y.clone()), ("x", x.clone())][..]),
        model.call(&context, &[("y".to_owned(), &y), ("x".to_owned(), &x)][..]),
        model.call(
            &context,
            vec![("x".to_owned(), x.clone()), ("y".to_owned(), y.clone())],
        ),
        model.call(
            &context,
            HashMap::from([("x", x.clone()), ("y", y.clone())]),
        ),
        model.spawn(&context, (Datum::from(&x), &y)),
    ];
    for call in calls {
        let outputs = call.wait().unwrap();
        assert_eq!(elements(outputs.tensor("sum").unwrap()), expected);
        assert_eq!(elements(outputs[1].clone()), [2.5, 0.0, 3.0]);
        let names: Vec<&str> = outputs.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["sum", "positive"]);
    }
}

#[test]
fn symbols_are_bound_anew_at_each_call() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, TWO), runtime.context());
    for n in [0, 1, 4, 100] {
        let x = tensor(&[n, 3], &vec![1.0_f32; n * 3]);
        let outputs = model.call(&context, (&x, &x)).wait().unwrap();
        let sum = outputs.tensor("sum").unwrap();
        assert_eq!(sum.shape().to_dims()[..], [n, 3]);
    }
}

#[test]
fn what_does_not_fit_is_said_with_its_name() {
    let runtime = runtime();
    let model = model(&runtime, TWO);
    let x = tensor(&[2, 3], &[0.0_f32; 6]);
    let said = |inputs: Vec<(&str, &Tensor)>| message(&model, &runtime, inputs);
    assert_eq!(
        said(vec![("x", &x)]),
        "input 'y' is missing: the model takes f32 [N, 3]"
    );
    let other = tensor(&[1, 3], &[0.0_f32; 3]);
    assert_eq!(
        said(vec![("x", &x), ("y", &other)]),
        "input 'y' was expected to be f32 [N, 3], found f32 [1, 3]: N is 1 here, but 2 in input 'x'"
    );
    let other = tensor(&[2, 4], &[0.0_f32; 8]);
    assert_eq!(
        said(vec![("x", &other)]),
        "input 'x' was expected to be f32 [N, 3], found f32 [2, 4]"
    );
    let other = tensor(&[2, 3], &[0.0_f64; 6]);
    assert_eq!(
        said(vec![("x", &other)]),
        "input 'x' was expected to be f32 [N, 3], found f64 [2, 3]"
    );
    let other = tensor(&[3], &[0.0_f32; 3]);
    assert_eq!(
        said(vec![("x", &other)]),
        "input 'x' was expected to be f32 [N, 3], found f32 [3]"
    );
    let unknown = "the model has no input 'z': it takes x, y";
    assert_eq!(said(vec![("z", &x)]), unknown);
    assert_eq!(said(vec![("x", &x), ("x", &x)]), "input 'x' is given twice");
    assert_eq!(
        message(&model, &runtime, [&x, &x, &x]),
        "more inputs are given than the 2 that the model takes"
    );
}

#[test]
fn unknown_outputs_are_said_with_what_there_is() {
    let runtime = runtime();
    let model = model(&runtime, TWO);
    let x = tensor(&[1, 3], &[0.0_f32; 3]);
    let outputs = model.call(&runtime.context(), (&x, &x)).wait().unwrap();
    let error = outputs.get("positiv").unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    let expected = "the model has no output 'positiv': it gives sum, positive";
    assert_eq!(error.message(), expected);
    assert_eq!(error.notes()[0], "there is an output 'positive'");
}

#[test]
fn results_of_one_model_are_inputs_of_another_before_they_are_there() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, TWO), runtime.context());
    let x = tensor(&[1, 3], &[0.0_f32; 3]);
    let first = model.call(&context, (&x, &x));
    let second = model.call(&context, (first.tensor("sum").unwrap(), x));
    let outputs = second.wait().unwrap();
    assert_eq!(elements(outputs.tensor("sum").unwrap()), [2.0, 4.0, 6.0]);
}

#[test]
fn cancelled_and_overdue_calls_fail() {
    let runtime = runtime();
    let model = model(&runtime, TWO);
    let x = tensor(&[1, 3], &[0.0_f32; 3]);
    let context = runtime.context();
    context.cancel();
    let error = model.call(&context, (&x, &x)).wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    let context = runtime.context_builder().deadline(Duration::ZERO).build();
    while !context.is_cancelled() {
        std::thread::yield_now();
    }
    let error = model.call(&context, (&x, &x)).wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
}

#[test]
fn files_of_other_kinds_are_no_models() {
    let png = b"\x89PNG\r\n\x1a\n".to_vec();
    let cases = [
        (b"Dear reader,\n".to_vec(), "text that is none of these"),
        (b"{\"a\": 1}".to_vec(), "text that is none of these"),
        (Vec::new(), "an empty file"),
        (png, "bytes that are none of these"),
    ];
    let runtime = Runtime::new();
    let path = std::env::temp_dir().join(format!("tfrt-no-model-{}", std::process::id()));
    let name = path.to_string_lossy().into_owned();
    for (bytes, found) in cases {
        std::fs::write(&path, &bytes).unwrap();
        // Not in the runtime that all share, whose threads never end: what tests leave is counted.
        let error = runtime.open_model(&path).unwrap_err();
        let expected = format!(
            "{name}: error: expected a model: ONNX, SavedModel, StableHLO, MLIR text with a function, or what \
             `tfrt compile` makes of these; found {found} [TF1001]"
        );
        assert_eq!(error.to_string(), expected);
        // The file as a whole is at no line of it.
        let problem = tfrt::AnyError::from(error).problems()[0].to_string();
        assert!(
            problem.starts_with(&format!("{name}: expected")),
            "{problem}"
        );
    }
    std::fs::remove_file(&path).unwrap();
    // An empty file of text is a program without functions; of another kind it is a file that was cut.
    for ending in ["pb", "tflite"] {
        let path = path.with_extension(ending);
        std::fs::write(&path, []).unwrap();
        let error = runtime.open_model(&path).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("the file is empty: copy it again"),
            "{error}"
        );
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn programs_are_no_models() {
    let runtime = runtime();
    let program = runtime
        .compile("f.mlir", "func.func @f() {\n  tfrt.return\n}")
        .unwrap();
    let error = Model::from_program(program, &runtime).unwrap_err();
    assert!(matches!(error, OpenError::NoModel), "{error}");
}
