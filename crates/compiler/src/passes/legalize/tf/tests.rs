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
