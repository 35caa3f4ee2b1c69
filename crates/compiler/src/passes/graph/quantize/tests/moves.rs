//! Tests of operations that move elements.

use crate::passes::testing::run;

/// Returns what becomes of an image of bytes that is dequantised, treated so, and quantised by `%ys` and `%yz`.
fn made(body: &str, scale: &str) -> String {
    let text = format!(
        r#"func.func @main(%x: tensor<?x3x8x8xui8>) -> tensor<*xui8> attributes {{
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 3 : i64, 8 : i64, 8 : i64]]}} {{
             %s = "onnx.Constant"() {{value = dense<{scale}> : tensor<f32>}} : () -> tensor<f32>
             %ys = "onnx.Constant"() {{value = dense<{scale}> : tensor<f32>}} : () -> tensor<f32>
             %other = "onnx.Constant"() {{value = dense<0.75> : tensor<f32>}} : () -> tensor<f32>
             %z = "onnx.Constant"() {{value = dense<7> : tensor<ui8>}} : () -> tensor<ui8>
             %to = "onnx.Constant"() {{value = dense<[0, -1]> : tensor<2xi64>}} : () -> tensor<2xi64>
             %f = "onnx.DequantizeLinear"(%x, %s, %z) : (tensor<?x3x8x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>
             {body}
             tfrt.return %y : tensor<*xui8>
           }}"#
    );
    run(
        "onnx-upgrade,onnx-to-graph,graph-infer,graph-quantize,graph-infer",
        &text,
    )
}

/// Returns the line that quantises a value by a scale.
fn quantized(value: &str, scale: &str) -> String {
    format!(
        "%y = \"onnx.QuantizeLinear\"(%{value}, %{scale}, %z) : (tensor<*xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>"
    )
}

const MOVED: &str = r#"%r = "onnx.Transpose"(%f) {perm = [0 : i64, 2 : i64, 3 : i64, 1 : i64]} : (tensor<*xf32>) -> tensor<*xf32>
             %m = "onnx.Reshape"(%r, %to) : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>"#;

#[test]
fn what_is_moved_is_bytes() {
    let text = made(&format!("{MOVED}\n{}", quantized("m", "ys")), "0.5");
    assert!(!text.contains("quantize"), "{text}");
    assert!(text.contains("tensor<?x8x8x3xui8>"), "{text}");
    assert!(text.contains("tensor<?x192xui8>"), "{text}");
}

#[test]
fn what_is_quantised_as_it_was_stays_as_it_is() {
    let text = made(&quantized("f", "ys"), "0.5");
    assert!(!text.contains("quantize"), "{text}");
    assert!(text.contains("tfrt.return %arg0"), "{text}");
}

#[test]
fn concatenations_and_largest_elements_are_of_bytes() {
    let joined = r#"%m = "onnx.Concat"(%f, %f) {axis = 1 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
    let pooled = r#"%p = "onnx.MaxPool"(%f) {kernel_shape = [2 : i64, 2 : i64]} : (tensor<*xf32>) -> tensor<*xf32>"#;
    let relu = r#"%m = "onnx.Relu"(%p) : (tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&format!("{joined}\n{}", quantized("m", "ys")), "0.5");
    assert!(!text.contains("quantize"), "{text}");
    assert!(text.contains("tensor<?x6x8x8xui8>"), "{text}");
    // 0 is 7: a relu changes smaller ones.
    let text = made(
        &format!("{pooled}\n{relu}\n{}", quantized("m", "ys")),
        "0.5",
    );
    assert!(text.contains("quantize"), "{text}");
    let text = made(&format!("{pooled}\n{}", quantized("p", "ys")), "0.5");
    assert!(!text.contains("quantize"), "{text}");
    assert!(text.contains("tensor<?x3x7x7xui8>"), "{text}");
}

#[test]
fn other_scales_and_other_operations_are_left_as_they_are() {
    for (value, scale, step) in [
        ("m", "other", "0.5"),
        // A product with such a scale is infinite.
        ("m", "ys", "1.0e38"),
        ("m", "ys", "0x7FC00000"),
        ("m", "ys", "0.0"),
    ] {
        let text = made(&format!("{MOVED}\n{}", quantized(value, scale)), step);
        assert!(text.contains("graph.dequantize"), "{text}");
        assert!(text.contains("graph.quantize"), "{text}");
    }
    let body = r#"%m = "onnx.Neg"(%f) : (tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&format!("{body}\n{}", quantized("m", "ys")), "0.5");
    assert!(text.contains("graph.quantize"), "{text}");
}
