//! Tests of operations on integers that quantised models become.

use crate::passes::testing::run;

/// Returns what becomes of a quantised convolution, whose activation and scale of the result are given.
fn made(activation: &str, scale: &str, kind: &str) -> String {
    let text = format!(
        r#"func.func @main(%x: tensor<?x3x8x8x{kind}>) -> tensor<*x{kind}> attributes {{
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 3 : i64, 8 : i64, 8 : i64]]}} {{
             %w = "onnx.Constant"() {{value = dense<3> : tensor<16x3x3x3xi8>}} : () -> tensor<16x3x3x3xi8>
             %b = "onnx.Constant"() {{value = dense<70> : tensor<16xi32>}} : () -> tensor<16xi32>
             %xs = "onnx.Constant"() {{value = dense<0.5> : tensor<f32>}} : () -> tensor<f32>
             %xz = "onnx.Constant"() {{value = dense<7> : tensor<{kind}>}} : () -> tensor<{kind}>
             %ws = "onnx.Constant"() {{value = dense<0.25> : tensor<16xf32>}} : () -> tensor<16xf32>
             %wz = "onnx.Constant"() {{value = dense<0> : tensor<16xi8>}} : () -> tensor<16xi8>
             %bs = "onnx.Constant"() {{value = dense<0.125> : tensor<16xf32>}} : () -> tensor<16xf32>
             %ys = "onnx.Constant"() {{value = dense<{scale}> : tensor<f32>}} : () -> tensor<f32>
             %yz = "onnx.Constant"() {{value = dense<0> : tensor<{kind}>}} : () -> tensor<{kind}>
             %xf = "onnx.DequantizeLinear"(%x, %xs, %xz) : (tensor<?x3x8x8x{kind}>, tensor<f32>, tensor<{kind}>) -> tensor<*xf32>
             %wf = "onnx.DequantizeLinear"(%w, %ws, %wz) {{axis = 0 : i64}} : (tensor<16x3x3x3xi8>, tensor<16xf32>, tensor<16xi8>) -> tensor<*xf32>
             %bf = "onnx.DequantizeLinear"(%b, %bs) {{axis = 0 : i64}} : (tensor<16xi32>, tensor<16xf32>) -> tensor<*xf32>
             %c = "onnx.Conv"(%xf, %wf, %bf) {{pads = [1 : i64, 1 : i64, 1 : i64, 1 : i64]}}
                 : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             {activation}
             %q = "onnx.QuantizeLinear"(%a, %ys, %yz) : (tensor<*xf32>, tensor<f32>, tensor<{kind}>) -> tensor<*x{kind}>
             tfrt.return %q : tensor<*x{kind}>
           }}"#
    );
    run(
        "onnx-upgrade,onnx-to-graph,graph-infer,graph-quantize,graph-layout",
        &text,
    )
}

const RELU: &str = r#"%a = "onnx.Relu"(%c) : (tensor<*xf32>) -> tensor<*xf32>"#;

#[test]
fn a_convolution_between_integers_is_one_of_integers() {
    let text = made(RELU, "0.75", "ui8");
    assert!(text.contains("\"cpu.fused.qconv\""), "{text}");
    assert!(text.contains("pads = [1, 1, 1, 1]"), "{text}");
    for gone in ["graph.conv", "graph.relu", "quantize"] {
        assert!(!text.contains(gone), "{text}");
    }
}

#[test]
fn forms_that_mean_something_else_stay_as_they_are() {
    let clip = r#"%least = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
             %a = "onnx.Clip"(%c, %least) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>"#;
    for (activation, scale, kind) in [
        // The range of `i8` has numbers below 0.
        (RELU, "0.75", "i8"),
        (clip, "0.75", "ui8"),
        (RELU, "0.0", "ui8"),
        (RELU, "0x7F800000", "ui8"),
        (RELU, "0x7FC00000", "ui8"),
        (RELU, "-0.75", "ui8"),
    ] {
        let text = made(activation, scale, kind);
        assert!(!text.contains("cpu.fused.qconv"), "{text}");
        assert!(text.contains("graph.quantize"), "{text}");
    }
}

#[test]
fn convolutions_of_integers_are_made_as_written_without_the_pass() {
    let text = r#"func.func @main(%x: tensor<1x3x8x8xui8>) -> tensor<*xui8> attributes {
               model.input_names = ["x"], model.output_names = ["y"]} {
             %w = "onnx.Constant"() {value = dense<3> : tensor<4x3x1x1xi8>} : () -> tensor<4x3x1x1xi8>
             %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
             %z = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
             %wz = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
             %y = "onnx.QLinearConv"(%x, %s, %z, %w, %s, %wz, %s, %z)
                 : (tensor<1x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x3x1x1xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
             tfrt.return %y : tensor<*xui8>
           }"#;
    for (pass, is_packed) in [("graph-quantize,", true), ("", false)] {
        let passes = format!(
            "onnx-upgrade,onnx-to-graph,graph-infer,{pass}graph-fold,graph-infer,graph-layout"
        );
        let made = run(&passes, text);
        assert_eq!(made.contains("cpu.fused.qconv"), is_packed, "{made}");
        assert!(!made.contains("model.rounded_once"), "{made}");
    }
}

mod moves;
mod products;
