//! Tests of products of integers.

use crate::passes::testing::run;

/// Returns what becomes of a graph of two inputs of bytes and one of floats.
fn made(body: &str) -> String {
    let text = format!(
        r#"func.func @main(%x: tensor<?x8xui8>, %k: tensor<?x8x5xi8>, %f: tensor<?x8xf32>) -> tensor<*xf32> attributes {{
               model.input_names = ["x", "k", "f"], model.output_names = ["y"], model.input_dims = [["N", 8 : i64], ["B", 8 : i64, 5 : i64], ["N", 8 : i64]]}} {{
             %w = "onnx.Constant"() {{value = dense<3> : tensor<8x4xi8>}} : () -> tensor<8x4xi8>
             %t = "onnx.Constant"() {{value = dense<3> : tensor<4x8xi8>}} : () -> tensor<4x8xi8>
             %c = "onnx.Constant"() {{value = dense<70> : tensor<4xi32>}} : () -> tensor<4xi32>
             %d = "onnx.Constant"() {{value = dense<0.5> : tensor<4xf32>}} : () -> tensor<4xf32>
             %xs = "onnx.Constant"() {{value = dense<0.5> : tensor<f32>}} : () -> tensor<f32>
             %xz = "onnx.Constant"() {{value = dense<7> : tensor<ui8>}} : () -> tensor<ui8>
             %ws = "onnx.Constant"() {{value = dense<0.25> : tensor<f32>}} : () -> tensor<f32>
             %wss = "onnx.Constant"() {{value = dense<0.25> : tensor<4xf32>}} : () -> tensor<4xf32>
             %wss3 = "onnx.Constant"() {{value = dense<0.25> : tensor<3xf32>}} : () -> tensor<3xf32>
             %wz = "onnx.Constant"() {{value = dense<0> : tensor<i8>}} : () -> tensor<i8>
             %wzs = "onnx.Constant"() {{value = dense<0> : tensor<4xi8>}} : () -> tensor<4xi8>
             %ys = "onnx.Constant"() {{value = dense<64.0> : tensor<f32>}} : () -> tensor<f32>
             %yz = "onnx.Constant"() {{value = dense<0> : tensor<ui8>}} : () -> tensor<ui8>
             {body}
             tfrt.return %y : tensor<*xf32>
           }}"#
    );
    run(
        "onnx-upgrade,onnx-to-graph,graph-infer,graph-quantize,graph-infer",
        &text,
    )
}

const X: &str = r#"%xf = "onnx.DequantizeLinear"(%x, %xs, %xz) : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>"#;
const W: &str = r#"%wf = "onnx.DequantizeLinear"(%w, %ws, %wz) : (tensor<8x4xi8>, tensor<f32>, tensor<i8>) -> tensor<*xf32>"#;
const COLUMNS: &str = r#"%wf = "onnx.DequantizeLinear"(%w, %wss, %wzs) {axis = 1 : i64} : (tensor<8x4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<*xf32>"#;
const DOT: &str =
    r#"%m = "onnx.MatMul"(%xf, %wf) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
const RELU: &str = r#"%r = "onnx.Relu"(%m) : (tensor<*xf32>) -> tensor<*xf32>"#;
const END: &str = r#"%q = "onnx.QuantizeLinear"(%r, %ys, %yz) : (tensor<*xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
             %y = "onnx.DequantizeLinear"(%q, %ys, %yz) : (tensor<*xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>"#;

/// Returns the names of the operations in a text that are of interest.
fn names(text: &str) -> Vec<&str> {
    let ours = [
        "graph.quantized_dot",
        "graph.integer_dot",
        "graph.dot",
        "onnx.Gemm",
        "onnx.MatMulInteger",
        "graph.quantize",
        "graph.add",
        "graph.relu",
    ];
    let mut found = Vec::new();
    for line in text.lines() {
        let quoted = ours
            .iter()
            .filter(|name| line.contains(&format!("\"{name}\"")));
        found.extend(quoted.copied());
    }
    found
}

#[test]
fn products_between_integers_are_of_integers() {
    for weights in [W, COLUMNS] {
        let text = made(&[X, weights, DOT, RELU, END].join("\n"));
        assert_eq!(names(&text), ["graph.quantized_dot"], "{text}");
        assert!(text.contains("tensor<?x4xui8>"), "{text}");
    }
}

#[test]
fn a_gemm_takes_its_bias_and_a_turned_matrix() {
    let turned = r#"%bs = "onnx.Constant"() {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
             %tf = "onnx.DequantizeLinear"(%t, %wss, %wzs) {axis = 0 : i64} : (tensor<4x8xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<*xf32>"#;
    // Steps of the sums, and floats that become some.
    let steps = r#"%b = "onnx.DequantizeLinear"(%c, %bs) : (tensor<4xi32>, tensor<f32>) -> tensor<*xf32>
             %m = "onnx.Gemm"(%xf, %tf, %b) {transB = 1 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
    let floats = r#"%m = "onnx.Gemm"(%xf, %tf, %d) {transB = 1 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>"#;
    for gemm in [steps, floats] {
        let text = made(&[X, turned, gemm, RELU, END].join("\n"));
        assert_eq!(names(&text), ["graph.quantized_dot"], "{text}");
        assert!(text.contains("perm = [1, 0]"), "{text}");
        let last = r#"%y = "onnx.Relu"(%m) : (tensor<*xf32>) -> tensor<*xf32>"#;
        let text = made(&[X, turned, gemm, last].join("\n"));
        assert_eq!(names(&text), ["graph.integer_dot", "graph.relu"], "{text}");
    }
}

#[test]
fn a_bias_behind_a_product_is_taken() {
    let bias = r#"%m0 = "onnx.MatMul"(%xf, %wf) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %m = "onnx.Add"(%m0, %d) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>"#;
    let text = made(&[X, W, bias, RELU, END].join("\n"));
    assert_eq!(names(&text), ["graph.quantized_dot"], "{text}");
    let last = r#"%y = "onnx.Relu"(%m) : (tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&[X, COLUMNS, bias, last].join("\n"));
    assert_eq!(names(&text), ["graph.integer_dot", "graph.relu"], "{text}");
}

#[test]
fn products_of_tensors_that_calls_make_are_of_integers() {
    let keys = r#"%kf = "onnx.DequantizeLinear"(%k, %ws, %wz) : (tensor<?x8x5xi8>, tensor<f32>, tensor<i8>) -> tensor<*xf32>
             %m = "onnx.MatMul"(%xf, %kf) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&[X, keys, RELU, END].join("\n"));
    assert_eq!(names(&text), ["graph.quantized_dot"], "{text}");
    let last = r#"%y = "onnx.Relu"(%m) : (tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&[X, keys, last].join("\n"));
    assert_eq!(names(&text), ["graph.integer_dot", "graph.relu"], "{text}");
}

#[test]
fn products_of_numbers_that_a_call_quantises_are_of_integers() {
    let body = |scale: &str, bias: &str| {
        format!(
            r#"%q, %s, %z = "onnx.DynamicQuantizeLinear"(%f) : (tensor<?x8xf32>) -> (tensor<*xui8>, tensor<f32>, tensor<ui8>)
             %i = "onnx.MatMulInteger"(%q, %w, %z, %wz) : (tensor<*xui8>, tensor<8x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<*xi32>
             %n = "onnx.Cast"(%i) {{to = 1 : i64}} : (tensor<*xi32>) -> tensor<*xf32>
             {scale}
             %m = "onnx.Mul"(%n, %p) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             {bias}"#
        )
    };
    let all = r#"%p = "onnx.Mul"(%s, %ws) : (tensor<f32>, tensor<f32>) -> tensor<*xf32>"#;
    let each = r#"%p = "onnx.Mul"(%wss, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>"#;
    let biased = r#"%y = "onnx.Add"(%m, %d) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>"#;
    let plain = r#"%y = "onnx.Relu"(%m) : (tensor<*xf32>) -> tensor<*xf32>"#;
    for scale in [all, each] {
        let text = made(&body(scale, biased));
        assert_eq!(names(&text), ["graph.integer_dot"], "{text}");
        let text = made(&body(scale, plain));
        assert_eq!(names(&text), ["graph.integer_dot", "graph.relu"], "{text}");
    }
}

#[test]
fn a_files_own_products_of_quantised_numbers_are_scaled_once() {
    let product = |scale: &str, ty: &str| {
        format!(
            r#"%q = "onnx.QLinearMatMul"(%x, %xs, %xz, %w, {scale}, %wz, %ys, %yz)
                 : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, {ty}, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
             %y = "onnx.DequantizeLinear"(%q, %ys, %yz) : (tensor<*xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>"#
        )
    };
    let text = made(&product("%wss", "tensor<4xf32>"));
    assert_eq!(names(&text), ["graph.quantized_dot"], "{text}");
    // Three scales don't fit four columns: the kernel says so.
    let text = made(&product("%wss3", "tensor<3xf32>"));
    assert!(text.contains("onnx.QLinearMatMul"), "{text}");
}

#[test]
fn products_of_other_forms_stay_as_they_are() {
    let rows = r#"%wf = "onnx.DequantizeLinear"(%t, %wss, %wzs) {axis = 0 : i64} : (tensor<4x8xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<*xf32>
             %m = "onnx.MatMul"(%wf, %xf) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&[X, rows, RELU, END].join("\n"));
    assert!(names(&text).contains(&"graph.dot"), "{text}");
    let scaled = r#"%wf = "onnx.DequantizeLinear"(%w, %ws, %wz) : (tensor<8x4xi8>, tensor<f32>, tensor<i8>) -> tensor<*xf32>
             %m = "onnx.Gemm"(%xf, %wf) {alpha = 0.5 : f32} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
    let text = made(&[X, scaled, RELU, END].join("\n"));
    assert!(names(&text).contains(&"onnx.Gemm"), "{text}");
    // A float that somebody else uses is made; the product is one of integers all the same.
    let shared = r#"%y0 = "onnx.DequantizeLinear"(%q, %ys, %yz) : (tensor<*xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>
             %y = "onnx.Add"(%y0, %m) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#;
    let end = END.replace("%y = ", "%unused = ");
    let text = made(&[X, W, DOT, RELU, &end, shared].join("\n"));
    let wanted = [
        "graph.integer_dot",
        "graph.relu",
        "graph.quantize",
        "graph.add",
    ];
    assert_eq!(names(&text), wanted, "{text}");
}
