//! Tests of what becomes of TensorFlow's operations.

use tfrt_ir::{Source, parse};

use crate::legalize::Context;
use crate::onnx::NoEvaluator;
use crate::pipeline::Pipeline;

/// Runs passes on the body of a model that takes `%x` and gives `%y`.
fn run(passes: &str, input: &str, body: &str, output: &str) -> String {
    let text = format!(
        "func.func @main(%x: {input}) -> {output} attributes {{model.input_names = [\"x\"], \
         model.output_names = [\"y\"]}} {{\n{body}\n  tfrt.return %y : {output}\n}}\n"
    );
    let mut module = parse(&Source::new("model.mlir", text)).unwrap();
    let passes = Pipeline::parse(passes).unwrap();
    match passes.run_with(&mut module, &Context::new(&NoEvaluator), &mut |_, _| {}) {
        Ok(_) => module.to_string(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn operands_that_are_attributes_are_found_in_constants() {
    let body = r#"
  %p = "graph.constant"() {value = dense<[1, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y = "tf.Transpose"(%x, %p) {T = f32, Tperm = i32} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<3x2xf32>"#;
    let text = run("legalize", "tensor<2x3xf32>", body, "tensor<3x2xf32>");
    assert!(
        text.contains("graph.transpose") && text.contains("perm = [1, 0]"),
        "{text}"
    );
}

#[test]
fn attributes_of_which_nothing_is_known_are_refused() {
    let body = r#"  %y = "tf.Relu"(%x) {surprise = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>"#;
    let text = run("legalize", "tensor<2xf32>", body, "tensor<2xf32>");
    assert!(
        text.contains("has an attribute 'surprise', of which nothing is known here"),
        "{text}"
    );
}

#[test]
fn convolutions_and_what_follows_have_channels_first_and_zeros_around_fold() {
    let body = r#"
  %pads = "onnx.Constant"() {value = dense<[0, 1, 1, 0, 0, 1, 1, 0]> : tensor<8xi64>} : () -> tensor<8xi64>
  %f = "onnx.Constant"() {value = dense<1.0> : tensor<3x3x2x4xf32>} : () -> tensor<3x3x2x4xf32>
  %b = "onnx.Constant"() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %p = "graph.pad"(%x, %pads) : (tensor<1x5x5x2xf32>, tensor<8xi64>) -> tensor<1x7x7x2xf32>
  %c = "tf.Conv2D"(%p, %f) {padding = "VALID", strides = [1, 1, 1, 1]} : (tensor<1x7x7x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32>
  %s = "graph.add"(%c, %b) : (tensor<1x5x5x4xf32>, tensor<4xf32>) -> tensor<1x5x5x4xf32>
  %y = "graph.relu"(%s) : (tensor<1x5x5x4xf32>) -> tensor<1x5x5x4xf32>"#;
    let text = run(
        "tf-to-graph",
        "tensor<1x5x5x2xf32>",
        body,
        "tensor<1x5x5x4xf32>",
    );
    for part in [
        "graph.conv",
        "pads = [1, 1, 1, 1]",
        "dense<2.000000e+00> : tensor<4x1x1xf32>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(
        !text.contains("graph.pad\"") && !text.contains("tf.Conv2D"),
        "{text}"
    );
}

#[test]
fn optimizers_are_their_formulas_and_give_what_they_changed() {
    let body = r#"
  %rate = "graph.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %w, %m = "tf.ApplyMomentum"(%x, %x, %rate, %x, %rate) {T = f32, use_nesterov = 0 : i64}
      : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  %a, %n, %v = "tf.ApplyAdam"(%w, %m, %x, %rate, %rate, %rate, %rate, %rate, %rate, %x) {T = f32}
      : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>)
      -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  %b, %c = "tf.ApplyAdagradV2"(%a, %v, %rate, %rate, %n) {T = f32, update_slots = 1 : i64}
      : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %y = "graph.add"(%b, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"#;
    let text = run("legalize", "tensor<2xf32>", body, "tensor<2xf32>");
    assert!(
        !text.contains("tf.Apply") && text.matches("graph.sqrt").count() == 3,
        "{text}"
    );
    let double = body.replace("T = f32", "T = f64");
    let text = run("legalize", "tensor<2xf32>", &double, "tensor<2xf32>");
    assert!(
        text.contains("has a form that nothing here stands for"),
        "{text}"
    );
}

#[test]
fn initial_values_of_variables_are_a_function_of_their_own() {
    let text = r#"func.func @main(%x: tensor<2xf32>, %v: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {
      model.input_names = ["x", "v"], model.output_names = ["y", "v"], model.initial = [dense<[1.0, 2.0]> : tensor<2xf32>]} {
  %y = "tf.AddV2"(%x, %v) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tfrt.return %y, %y : tensor<2xf32>, tensor<2xf32>
}
"#;
    let mut module = parse(&Source::new("model.mlir", text)).unwrap();
    let context = Context::new(&NoEvaluator);
    crate::onnx::pipeline(&mut module, &crate::onnx::Options::default(), &context).unwrap();
    let text = module.to_string();
    let initial = text.split("@main.initial").nth(1).unwrap();
    assert!(
        initial.contains("dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"),
        "{text}"
    );
    assert!(!text.contains("model.initial"), "{text}");
}
