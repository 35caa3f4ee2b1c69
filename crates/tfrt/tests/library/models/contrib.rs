//! Operators of ONNX Runtime's domain `com.microsoft`, with results that ONNX Runtime gave.

use tfrt::tensor::{DenseHostTensor, StringHostTensor, Tensor, TensorShape};
use tfrt::{Model, Runtime};

/// Compares the result of a model of one input, of a type and with elements, with numbers.
#[track_caller]
fn check((ty, elements): (&str, &[f32]), operations: &str, wanted: &[f32]) {
    let found = call((ty, elements), operations).unwrap();
    assert_eq!(found.len(), wanted.len(), "{found:?}");
    let largest = wanted
        .iter()
        .fold(1.0, |most: f32, one| most.max(one.abs()));
    for (found, wanted) in found.iter().zip(wanted) {
        let away = (found - wanted).abs();
        assert!(away <= 1e-5 * largest, "{found} is not {wanted}");
    }
}

/// Calls a model; gives the elements of `%y`, or what is wrong.
fn call((ty, elements): (&str, &[f32]), operations: &str) -> Result<Vec<f32>, String> {
    let runtime = Runtime::new();
    let text = format!(
        r#"module attributes {{onnx.opset = 21 : i64, onnx.opset.com.microsoft = 1 : i64}} {{
  func.func @main(%x: {ty}) -> tensor<*xf32>
      attributes {{model.input_names = ["x"], model.output_names = ["y"]}} {{
    {operations}
    func.return %y : tensor<*xf32>
  }}
}}
"#
    );
    let extents = ty.trim_start_matches("tensor<").trim_end_matches("xf32>");
    let extents: Vec<usize> = extents.split('x').map(|one| one.parse().unwrap()).collect();
    let allocator = runtime.host().allocator();
    let x = DenseHostTensor::from_slice(allocator, &extents, elements).unwrap();
    let program = runtime.compile("model.mlir", &text).unwrap();
    // What constants alone decide is found out when the model is opened.
    let model = Model::from_program(program, &runtime).map_err(|error| error.to_string())?;
    let outputs = model.call(&runtime.context(), (Tensor::from(x),));
    let outputs = outputs.wait().map_err(|error| error.to_string())?;
    Ok(outputs.tensor("y").unwrap().to_vec::<f32>().unwrap())
}

#[test]
fn products_are_turned_scaled_and_activated() {
    check(
        ("tensor<2x3xf32>", &[0.25, -0.5, -1.5, -2.0, -2.0, -2.0]),
        r#"%c1 = "onnx.Constant"() {value = dense<[[-1.5, 2.0], [-1.25, 0.75], [1.0, -1.25], [-1.0, -0.25]]> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
           %y = "onnx.microsoft.FusedMatMul"(%x, %c1) {alpha = 0.5 : f32, transA = 1 : i64, transB = 1 : i64} : (tensor<2x3xf32>, tensor<4x2xf32>) -> (tensor<*xf32>)"#,
        &[
            -2.1875, -0.90625, 1.375, 0.125, -1.625, -0.4375, 1.0, 0.5, -0.875, 0.1875, 0.5, 1.0,
        ],
    );
    check(
        (
            "tensor<1x1x3x3xf32>",
            &[-1.0, 2.0, -1.25, 1.75, 1.25, 1.5, -1.75, -0.5, 0.5],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[[0.0, 0.75], [0.75, 0.75]]]]> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
           %c2 = "onnx.Constant"() {value = dense<[-1.75]> : tensor<1xf32>} : () -> tensor<1xf32>
           %c3 = "onnx.Constant"() {value = dense<[[[[2.0, 0.25], [1.75, -1.0]]]]> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
           %y = "onnx.microsoft.FusedConv"(%x, %c1, %c2, %c3) {activation = "Relu"} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>, tensor<1xf32>, tensor<1x1x2x2xf32>) -> (tensor<*xf32>)"#,
        &[4.0, 0.0, 0.0, 0.0],
    );
}

/// A product with a turned factor is no attention, though the rest looks like one.
#[test]
fn factors_of_attention_may_be_turned() {
    let rows: [(&str, &str, [f32; 8]); 3] = [
        (
            "{transA = 1 : i64}",
            "{}",
            [
                0.805675, 1.0546, 1.99422, 0.250482, 0.760522, 1.41582, 0.954065, 0.337161,
            ],
        ),
        (
            "{transB = 1 : i64}",
            "{}",
            [
                0.966759, -0.234072, 1.87374, 0.260522, 0.875, 0.5, -0.772425, 0.481035,
            ],
        ),
        (
            "{}",
            "{transB = 1 : i64}",
            [
                0.66595, 0.917025, 1.99539, -0.996053, -0.415021, 1.45751, 0.323654, 0.436868,
            ],
        ),
    ];
    for (of_scores, of_values, wanted) in rows {
        let operations = format!(
            r#"%apart = "onnx.Constant"() {{value = dense<[1, 2, 2, 2]> : tensor<4xi64>}} : () -> tensor<4xi64>
           %joined = "onnx.Constant"() {{value = dense<[1, 2, 4]> : tensor<3xi64>}} : () -> tensor<3xi64>
           %r = "onnx.Reshape"(%x, %apart) : (tensor<1x2x4xf32>, tensor<4xi64>) -> tensor<1x2x2x2xf32>
           %q = "onnx.Transpose"(%r) {{perm = [0, 2, 1, 3]}} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
           %k = "onnx.Transpose"(%r) {{perm = [0, 2, 3, 1]}} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
           %s = "onnx.microsoft.FusedMatMul"(%q, %k) {of_scores} : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
           %p = "onnx.Softmax"(%s) {{axis = -1 : i64}} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
           %m = "onnx.microsoft.FusedMatMul"(%p, %q) {of_values} : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
           %t = "onnx.Transpose"(%m) {{perm = [0, 2, 1, 3]}} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
           %y = "onnx.Reshape"(%t, %joined) : (tensor<1x2x2x2xf32>, tensor<3xi64>) -> tensor<*xf32>"#
        );
        let x = [1.0, -0.5, 2.0, 0.25, 0.75, 1.5, -1.0, 0.5];
        check(("tensor<1x2x4xf32>", &x), &operations, &wanted);
    }
}

#[test]
fn sums_are_normalised() {
    check(
        (
            "tensor<1x2x4xf32>",
            &[-0.5, 1.5, -1.25, -1.75, -0.5, 0.75, -1.5, 1.5],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[-0.75, -1.25, 0.25, 1.75], [1.75, 1.5, -0.75, -2.0]]]> : tensor<1x2x4xf32>} : () -> tensor<1x2x4xf32>
           %c2 = "onnx.Constant"() {value = dense<[1.25, 1.0, 1.25, -2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
           %c3 = "onnx.Constant"() {value = dense<[-2.0, 0.0, -0.75, -0.25]> : tensor<4xf32>} : () -> tensor<4xf32>
           %c4 = "onnx.Constant"() {value = dense<[1.75, -1.25, 0.0, -0.75]> : tensor<4xf32>} : () -> tensor<4xf32>
           %y = "onnx.microsoft.SkipLayerNormalization"(%x, %c1, %c2, %c3, %c4) {epsilon = 0.001 : f32} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<*xf32>)"#,
        &[
            0.132949, -0.702619, -1.62827, 0.352245, -0.234115, 0.429955, -2.20877, 1.10129,
        ],
    );
    check(
        (
            "tensor<1x2x4xf32>",
            &[-0.75, 1.25, -1.5, -0.75, -1.5, -1.5, -1.0, 0.75],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[0.25, -0.25, -1.5, 1.25], [1.25, -1.0, -1.75, -0.75]]]> : tensor<1x2x4xf32>} : () -> tensor<1x2x4xf32>
           %c2 = "onnx.Constant"() {value = dense<[-1.5, 1.25, 0.0, 0.0]> : tensor<4xf32>} : () -> tensor<4xf32>
           %y = "onnx.microsoft.SkipSimplifiedLayerNormalization"(%x, %c1, %c2) {epsilon = 0.001 : f32} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<4xf32>) -> (tensor<*xf32>)"#,
        &[0.462822, 0.77137, -0.0, 0.0, 0.201318, -1.67765, -0.0, 0.0],
    );
}

#[test]
fn activations_are_those_of_transformers() {
    check(
        ("tensor<4xf32>", &[-1.0, 0.0, 2.0, -1.0]),
        r#"%y = "onnx.microsoft.QuickGelu"(%x) {} : (tensor<4xf32>) -> (tensor<*xf32>)"#,
        &[-0.154204, 0.0, 1.93566, -0.154204],
    );
    check(
        ("tensor<4xf32>", &[1.25, -2.0, -0.75, 1.75]),
        r#"%c1 = "onnx.Constant"() {value = dense<[1.5, -1.75, 1.5, 1.5]> : tensor<4xf32>} : () -> tensor<4xf32>
           %y = "onnx.microsoft.FastGelu"(%x, %c1) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<*xf32>)"#,
        &[2.74228, -0.000219271, 0.579961, 3.24843],
    );
    check(
        ("tensor<4xf32>", &[-0.25, -0.5, 2.0, 2.0]),
        r#"%c1 = "onnx.Constant"() {value = dense<[0.75, -0.5, -1.25, 1.75]> : tensor<4xf32>} : () -> tensor<4xf32>
           %y = "onnx.microsoft.BiasGelu"(%x, %c1) {} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<*xf32>)"#,
        &[0.345731, -0.158655, 0.580029, 3.74967],
    );
}

#[test]
fn positions_turn_pairs() {
    check(
        (
            "tensor<1x2x4xf32>",
            &[-1.0, 0.25, 0.75, -1.0, -0.75, 1.0, -1.25, 0.75],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
           %c2 = "onnx.Constant"() {value = dense<[[2.0, 0.75], [0.5, -0.25], [2.0, -1.25], [-0.5, 0.5]]> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
           %c3 = "onnx.Constant"() {value = dense<[[0.75, -1.75], [-1.5, 0.75], [1.5, 0.5], [1.75, -0.5]]> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
           %y = "onnx.microsoft.RotaryEmbedding"(%x, %c1, %c2, %c3) {} : (tensor<1x2x4xf32>, tensor<1xi64>, tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<*xf32>)"#,
        &[0.625, 0.6875, 1.875, 0.4375, 0.375, -1.625, -3.625, -0.4375],
    );
    check(
        (
            "tensor<1x2x4xf32>",
            &[-0.75, 1.25, -2.0, -1.25, -1.25, -0.5, -1.5, 1.25],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[3, 0]]> : tensor<1x2xi64>} : () -> tensor<1x2xi64>
           %c2 = "onnx.Constant"() {value = dense<[[1.5], [-0.5], [-2.0], [1.0]]> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
           %c3 = "onnx.Constant"() {value = dense<[[-1.75], [0.5], [-1.5], [1.75]]> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
           %y = "onnx.microsoft.RotaryEmbedding"(%x, %c1, %c2, %c3) {interleaved = 1 : i64, num_heads = 2 : i64} : (tensor<1x2x4xf32>, tensor<1x2xi64>, tensor<4x1xf32>, tensor<4x1xf32>) -> (tensor<*xf32>)"#,
        &[-2.9375, -0.0625, 0.1875, -4.75, -2.75, 1.4375, -0.0625, 4.5],
    );
}

#[test]
fn masks_of_all_forms_are_seen() {
    check(
        ("tensor<1x2x2xf32>", &[0.75, 2.0, 0.5, 1.0]),
        r#"%c1 = "onnx.Constant"() {value = dense<[[-0.5, 1.25, -1.75, -1.5, -0.5, 1.0], [0.0, 1.5, 2.0, -0.5, -0.25, 0.25]]> : tensor<2x6xf32>} : () -> tensor<2x6xf32>
           %c2 = "onnx.Constant"() {value = dense<[0.5, 0.0, 0.5, 2.0, 1.0, -0.75]> : tensor<6xf32>} : () -> tensor<6xf32>
           %c3 = "onnx.Constant"() {value = dense<[[1, 1, 0]]> : tensor<1x3xi32>} : () -> tensor<1x3xi32>
           %c4 = "onnx.Constant"() {value = dense<[[[[[-0.25]], [[-0.5]]]], [[[[-1.5]], [[-2.0]]]]]> : tensor<2x1x2x1x1xf32>} : () -> tensor<2x1x2x1x1xf32>
           %y, %r1 = "onnx.microsoft.Attention"(%x, %c1, %c2, %c3, %c4) {num_heads = 2 : i64, unidirectional = 1 : i64} : (tensor<1x2x2xf32>, tensor<2x6xf32>, tensor<6xf32>, tensor<1x3xi32>, tensor<2x1x2x1x1xf32>) -> (tensor<*xf32>, tensor<*xf32>)"#,
        &[-0.515577, 0.035132, -0.358389, -0.276736],
    );
    check(
        ("tensor<1x2x2xf32>", &[1.25, -0.25, -0.75, 0.5]),
        r#"%c1 = "onnx.Constant"() {value = dense<[[0.25, 1.75, 0.5, 1.75, 0.25, -0.75], [-0.75, 2.0, 0.25, -1.25, 1.5, 1.25]]> : tensor<2x6xf32>} : () -> tensor<2x6xf32>
           %c2 = "onnx.Constant"() {value = dense<[-2.0, -1.5, 0.75, -0.5, -0.75, -1.75]> : tensor<6xf32>} : () -> tensor<6xf32>
           %c3 = "onnx.Constant"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
           %y = "onnx.microsoft.Attention"(%x, %c1, %c2, %c3) {num_heads = 1 : i64} : (tensor<1x2x2xf32>, tensor<2x6xf32>, tensor<6xf32>, tensor<1xi32>) -> (tensor<*xf32>)"#,
        &[-0.8125, -3.0, -0.8125, -3.0],
    );
    check(
        ("tensor<1x2x2xf32>", &[-1.25, 1.5, 1.5, 1.5]),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[0.25, -1.5], [-0.75, 0.0], [2.0, -1.0]]]> : tensor<1x3x2xf32>} : () -> tensor<1x3x2xf32>
           %c2 = "onnx.Constant"() {value = dense<[[[0.25, 0.0], [0.0, 0.25], [0.75, -1.75]]]> : tensor<1x3x2xf32>} : () -> tensor<1x3x2xf32>
           %c3 = "onnx.Constant"() {value = dense<[2.0, 1.5, 1.25, -1.0, -0.25, -0.25]> : tensor<6xf32>} : () -> tensor<6xf32>
           %y = "onnx.microsoft.MultiHeadAttention"(%x, %c1, %c2, %c3) {num_heads = 2 : i64} : (tensor<1x2x2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<6xf32>) -> (tensor<*xf32>)"#,
        &[0.335331, -0.0964764, 0.498859, -0.0964764],
    );
}

#[test]
fn caches_have_room_and_sinks() {
    check(
        (
            "tensor<1x1x32xf32>",
            &[
                -0.75, -2.0, 1.0, -2.0, 1.0, -1.25, 0.5, -0.75, -1.0, 1.75, 0.0, 1.75, -1.25, 0.0,
                -0.75, -0.25, -2.0, 0.75, -0.75, 1.5, -1.25, -0.75, -2.0, 1.25, 0.25, -0.5, 1.75,
                0.5, 2.0, 1.0, 0.25, 0.0,
            ],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[-1.25, 0.75, 1.25, 0.75, -0.25, -2.0, 1.0, -2.0, 1.25, -1.5, -0.75, -1.25, 0.25, -1.25, -1.0, -2.0]]]> : tensor<1x1x16xf32>} : () -> tensor<1x1x16xf32>
           %c2 = "onnx.Constant"() {value = dense<[[[2.0, -1.25, -1.25, 0.5, -1.5, 1.75, 1.25, -0.75, -0.5, -0.5, 1.0, -0.25, -1.0, 0.75, -1.5, 1.25]]]> : tensor<1x1x16xf32>} : () -> tensor<1x1x16xf32>
           %c3 = "onnx.Constant"() {value = dense<[[[[-0.25, 1.75, -1.0, -0.5, 1.5, 1.0, -2.0, -0.75, -2.0, 1.5, -0.25, -1.25, 1.0, 1.5, -1.75, 0.0], [-0.5, 1.0, 1.75, 0.25, 1.0, -0.75, 0.25, 0.0, 1.0, -2.0, -1.0, -2.0, 2.0, 0.25, 0.0, 0.0], [-2.0, 1.5, 1.5, -2.0, 0.5, 0.25, -0.5, 0.0, 1.5, 0.5, 0.0, 1.0, 0.75, 0.0, 1.5, 0.25], [0.5, 0.0, 0.5, 0.5, 1.75, -1.0, -0.5, 0.25, -0.75, 0.75, 1.5, -1.25, -2.0, 2.0, 0.0, 1.0]]]]> : tensor<1x1x4x16xf32>} : () -> tensor<1x1x4x16xf32>
           %c4 = "onnx.Constant"() {value = dense<[[[[1.0, 2.0, -2.0, -1.0, 2.0, -0.25, -0.5, -1.0, -2.0, -2.0, 2.0, -2.0, -1.5, -1.0, -1.0, 1.5], [-0.75, -1.5, -0.5, 0.75, -0.25, -1.0, -1.5, -1.75, 0.0, -1.25, 0.25, 0.75, -0.5, 0.0, -2.0, 0.25], [-1.25, -0.25, -1.75, -1.0, -0.25, 0.0, -2.0, 1.75, -0.25, -1.25, -1.25, 1.0, -0.25, -1.0, -0.25, -1.25], [-1.5, -0.75, 2.0, -1.75, 0.25, 1.75, -0.25, -0.5, 0.25, -1.5, 0.75, -2.0, 0.25, -1.75, -2.0, -1.25]]]]> : tensor<1x1x4x16xf32>} : () -> tensor<1x1x4x16xf32>
           %c5 = "onnx.Constant"() {value = dense<[2]> : tensor<1xi32>} : () -> tensor<1xi32>
           %c6 = "onnx.Constant"() {value = dense<[3]> : tensor<1xi32>} : () -> tensor<1xi32>
           %y, %r1, %r2 = "onnx.microsoft.GroupQueryAttention"(%x, %c1, %c2, %c3, %c4, %c5, %c6) {kv_num_heads = 1 : i64, num_heads = 2 : i64} : (tensor<1x1x32xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>, tensor<1x1x4x16xf32>, tensor<1x1x4x16xf32>, tensor<1xi32>, tensor<1xi32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"#,
        &[
            1.29935, 0.370303, -1.57442, -0.238208, 0.353551, 0.545294, 0.171308, -0.947504,
            -1.22034, -1.3097, 1.45044, -1.0606, -1.21628, -0.185712, -1.28372, 1.30452, 0.473204,
            0.132854, -1.29941, -0.0857973, 0.581084, -0.232257, -0.618392, -1.25344, -0.988403,
            -1.47537, 1.16328, -0.65748, -1.03294, -0.339239, -1.46706, 0.974289,
        ],
    );
    check(
        (
            "tensor<1x1x32xf32>",
            &[
                -0.75, -2.0, 1.0, -2.0, 1.0, -1.25, 0.5, -0.75, -1.0, 1.75, 0.0, 1.75, -1.25, 0.0,
                -0.75, -0.25, -2.0, 0.75, -0.75, 1.5, -1.25, -0.75, -2.0, 1.25, 0.25, -0.5, 1.75,
                0.5, 2.0, 1.0, 0.25, 0.0,
            ],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[-1.25, 0.75, 1.25, 0.75, -0.25, -2.0, 1.0, -2.0, 1.25, -1.5, -0.75, -1.25, 0.25, -1.25, -1.0, -2.0]]]> : tensor<1x1x16xf32>} : () -> tensor<1x1x16xf32>
           %c2 = "onnx.Constant"() {value = dense<[[[2.0, -1.25, -1.25, 0.5, -1.5, 1.75, 1.25, -0.75, -0.5, -0.5, 1.0, -0.25, -1.0, 0.75, -1.5, 1.25]]]> : tensor<1x1x16xf32>} : () -> tensor<1x1x16xf32>
           %c3 = "onnx.Constant"() {value = dense<[[[[-0.25, 1.75, -1.0, -0.5, 1.5, 1.0, -2.0, -0.75, -2.0, 1.5, -0.25, -1.25, 1.0, 1.5, -1.75, 0.0], [-0.5, 1.0, 1.75, 0.25, 1.0, -0.75, 0.25, 0.0, 1.0, -2.0, -1.0, -2.0, 2.0, 0.25, 0.0, 0.0], [-2.0, 1.5, 1.5, -2.0, 0.5, 0.25, -0.5, 0.0, 1.5, 0.5, 0.0, 1.0, 0.75, 0.0, 1.5, 0.25], [0.5, 0.0, 0.5, 0.5, 1.75, -1.0, -0.5, 0.25, -0.75, 0.75, 1.5, -1.25, -2.0, 2.0, 0.0, 1.0]]]]> : tensor<1x1x4x16xf32>} : () -> tensor<1x1x4x16xf32>
           %c4 = "onnx.Constant"() {value = dense<[[[[1.0, 2.0, -2.0, -1.0, 2.0, -0.25, -0.5, -1.0, -2.0, -2.0, 2.0, -2.0, -1.5, -1.0, -1.0, 1.5], [-0.75, -1.5, -0.5, 0.75, -0.25, -1.0, -1.5, -1.75, 0.0, -1.25, 0.25, 0.75, -0.5, 0.0, -2.0, 0.25], [-1.25, -0.25, -1.75, -1.0, -0.25, 0.0, -2.0, 1.75, -0.25, -1.25, -1.25, 1.0, -0.25, -1.0, -0.25, -1.25], [-1.5, -0.75, 2.0, -1.75, 0.25, 1.75, -0.25, -0.5, 0.25, -1.5, 0.75, -2.0, 0.25, -1.75, -2.0, -1.25]]]]> : tensor<1x1x4x16xf32>} : () -> tensor<1x1x4x16xf32>
           %c5 = "onnx.Constant"() {value = dense<[2]> : tensor<1xi32>} : () -> tensor<1xi32>
           %c6 = "onnx.Constant"() {value = dense<[3]> : tensor<1xi32>} : () -> tensor<1xi32>
           %c7 = "onnx.Constant"() {value = dense<[[1.0, -0.25, -0.25, 0.5, -1.75, 2.0, 0.0, 1.75], [1.0, -1.0, -0.75, 0.5, 1.5, 1.75, 0.0, -1.75], [2.0, 1.5, 1.0, -0.5, -1.5, 1.25, -1.25, -0.75], [1.5, 0.5, -0.75, 0.0, 0.5, -1.75, -1.0, 1.0]]> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
           %c8 = "onnx.Constant"() {value = dense<[[0.5, 1.25, 1.0, 0.0, -0.75, -0.5, -1.25, 2.0], [-2.0, -0.5, -1.75, 1.5, 0.75, -0.25, 1.25, -0.5], [-0.25, -0.5, 1.0, -1.75, 0.25, -1.0, 2.0, -1.25], [-0.5, -1.75, 0.0, 0.25, 1.0, -0.25, -1.0, -2.0]]> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
           %y, %r1, %r2 = "onnx.microsoft.GroupQueryAttention"(%x, %c1, %c2, %c3, %c4, %c5, %c6, %c7, %c8) {do_rotary = 1 : i64, kv_num_heads = 1 : i64, local_window_size = 2 : i64, num_heads = 2 : i64, softcap = 2.0 : f32} : (tensor<1x1x32xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>, tensor<1x1x4x16xf32>, tensor<1x1x4x16xf32>, tensor<1xi32>, tensor<1xi32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"#,
        &[
            0.970873, -1.34356, -0.969329, 0.593557, -1.03221, 0.720872, 0.220873, -1.12423,
            -0.312886, -0.780671, 0.719329, 0.124228, -0.812886, 0.469329, -1.68711, 0.875772,
            -0.183416, -1.44849, -0.654523, 0.698492, -0.507538, -0.433416, -0.933416, -1.54397,
            -0.103015, -1.09548, 0.404523, 0.543969, -0.603015, 0.154523, -1.89698, 0.456031,
        ],
    );
    check(
        (
            "tensor<1x1x32xf32>",
            &[
                -0.75, -2.0, 1.0, -2.0, 1.0, -1.25, 0.5, -0.75, -1.0, 1.75, 0.0, 1.75, -1.25, 0.0,
                -0.75, -0.25, -2.0, 0.75, -0.75, 1.5, -1.25, -0.75, -2.0, 1.25, 0.25, -0.5, 1.75,
                0.5, 2.0, 1.0, 0.25, 0.0,
            ],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[-1.25, 0.75, 1.25, 0.75, -0.25, -2.0, 1.0, -2.0, 1.25, -1.5, -0.75, -1.25, 0.25, -1.25, -1.0, -2.0]]]> : tensor<1x1x16xf32>} : () -> tensor<1x1x16xf32>
           %c2 = "onnx.Constant"() {value = dense<[[[2.0, -1.25, -1.25, 0.5, -1.5, 1.75, 1.25, -0.75, -0.5, -0.5, 1.0, -0.25, -1.0, 0.75, -1.5, 1.25]]]> : tensor<1x1x16xf32>} : () -> tensor<1x1x16xf32>
           %c3 = "onnx.Constant"() {value = dense<[[[[-0.25, 1.75, -1.0, -0.5, 1.5, 1.0, -2.0, -0.75, -2.0, 1.5, -0.25, -1.25, 1.0, 1.5, -1.75, 0.0], [-0.5, 1.0, 1.75, 0.25, 1.0, -0.75, 0.25, 0.0, 1.0, -2.0, -1.0, -2.0, 2.0, 0.25, 0.0, 0.0], [-2.0, 1.5, 1.5, -2.0, 0.5, 0.25, -0.5, 0.0, 1.5, 0.5, 0.0, 1.0, 0.75, 0.0, 1.5, 0.25], [0.5, 0.0, 0.5, 0.5, 1.75, -1.0, -0.5, 0.25, -0.75, 0.75, 1.5, -1.25, -2.0, 2.0, 0.0, 1.0]]]]> : tensor<1x1x4x16xf32>} : () -> tensor<1x1x4x16xf32>
           %c4 = "onnx.Constant"() {value = dense<[[[[1.0, 2.0, -2.0, -1.0, 2.0, -0.25, -0.5, -1.0, -2.0, -2.0, 2.0, -2.0, -1.5, -1.0, -1.0, 1.5], [-0.75, -1.5, -0.5, 0.75, -0.25, -1.0, -1.5, -1.75, 0.0, -1.25, 0.25, 0.75, -0.5, 0.0, -2.0, 0.25], [-1.25, -0.25, -1.75, -1.0, -0.25, 0.0, -2.0, 1.75, -0.25, -1.25, -1.25, 1.0, -0.25, -1.0, -0.25, -1.25], [-1.5, -0.75, 2.0, -1.75, 0.25, 1.75, -0.25, -0.5, 0.25, -1.5, 0.75, -2.0, 0.25, -1.75, -2.0, -1.25]]]]> : tensor<1x1x4x16xf32>} : () -> tensor<1x1x4x16xf32>
           %c5 = "onnx.Constant"() {value = dense<[2]> : tensor<1xi32>} : () -> tensor<1xi32>
           %c6 = "onnx.Constant"() {value = dense<[3]> : tensor<1xi32>} : () -> tensor<1xi32>
           %n7 = "graph.none"() : () -> none
           %n8 = "graph.none"() : () -> none
           %n9 = "graph.none"() : () -> none
           %n10 = "graph.none"() : () -> none
           %c11 = "onnx.Constant"() {value = dense<[1.75, -1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
           %y, %r1, %r2 = "onnx.microsoft.GroupQueryAttention"(%x, %c1, %c2, %c3, %c4, %c5, %c6, %n7, %n8, %n9, %n10, %c11) {kv_num_heads = 1 : i64, num_heads = 2 : i64} : (tensor<1x1x32xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>, tensor<1x1x4x16xf32>, tensor<1x1x4x16xf32>, tensor<1xi32>, tensor<1xi32>, none, none, none, none, tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"#,
        &[
            0.275024, 0.0783795, -0.333248, -0.05042, 0.0748339, 0.115419, 0.0362596, -0.200552,
            -0.2583, -0.277215, 0.307004, -0.224491, -0.257442, -0.0393084, -0.271716, 0.27612,
            0.451528, 0.126768, -1.23989, -0.0818672, 0.554466, -0.221618, -0.590065, -1.19603,
            -0.943128, -1.40779, 1.10999, -0.627364, -0.985627, -0.3237, -1.39986, 0.92966,
        ],
    );
}

#[test]
fn weights_of_small_integers_recur() {
    check(
        (
            "tensor<2x2x2xf32>",
            &[1.0, -2.0, 0.5, 0.25, 0.0, 3.0, 1.0, 1.0],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[0, 29, 58, 87], [116, 145, 174, 203]]]> : tensor<1x2x4xui8>} : () -> tensor<1x2x4xui8>
           %c2 = "onnx.Constant"() {value = dense<[[[0, 71, 142, 213]]]> : tensor<1x1x4xui8>} : () -> tensor<1x1x4xui8>
           %n3 = "graph.none"() : () -> none
           %n4 = "graph.none"() : () -> none
           %n5 = "graph.none"() : () -> none
           %n6 = "graph.none"() : () -> none
           %n7 = "graph.none"() : () -> none
           %c8 = "onnx.Constant"() {value = dense<[0.01]> : tensor<1xf32>} : () -> tensor<1xf32>
           %c9 = "onnx.Constant"() {value = dense<[128]> : tensor<1xui8>} : () -> tensor<1xui8>
           %c10 = "onnx.Constant"() {value = dense<[0.02]> : tensor<1xf32>} : () -> tensor<1xf32>
           %c11 = "onnx.Constant"() {value = dense<[100]> : tensor<1xui8>} : () -> tensor<1xui8>
           %y, %r1, %r2 = "onnx.microsoft.DynamicQuantizeLSTM"(%x, %c1, %c2, %n3, %n4, %n5, %n6, %n7, %c8, %c9, %c10, %c11) {hidden_size = 1 : i64} : (tensor<2x2x2xf32>, tensor<1x2x4xui8>, tensor<1x1x4xui8>, none, none, none, none, none, tensor<1xf32>, tensor<1xui8>, tensor<1xf32>, tensor<1xui8>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"#,
        &[-0.0512158, -0.00231484, 0.140373, 0.0187859],
    );
    check(
        (
            "tensor<2x2x2xf32>",
            &[1.0, -2.0, 0.5, 0.25, 0.0, 3.0, 1.0, 1.0],
        ),
        r#"%c1 = "onnx.Constant"() {value = dense<[[[0, 29, 58, 87], [116, 145, 174, 203]]]> : tensor<1x2x4xui8>} : () -> tensor<1x2x4xui8>
           %c2 = "onnx.Constant"() {value = dense<[[[0, 71, 142, 213]]]> : tensor<1x1x4xui8>} : () -> tensor<1x1x4xui8>
           %n3 = "graph.none"() : () -> none
           %c4 = "onnx.Constant"() {value = dense<[2, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
           %n5 = "graph.none"() : () -> none
           %n6 = "graph.none"() : () -> none
           %n7 = "graph.none"() : () -> none
           %c8 = "onnx.Constant"() {value = dense<[0.01]> : tensor<1xf32>} : () -> tensor<1xf32>
           %c9 = "onnx.Constant"() {value = dense<[128]> : tensor<1xui8>} : () -> tensor<1xui8>
           %c10 = "onnx.Constant"() {value = dense<[0.02]> : tensor<1xf32>} : () -> tensor<1xf32>
           %c11 = "onnx.Constant"() {value = dense<[100]> : tensor<1xui8>} : () -> tensor<1xui8>
           %y, %r1, %r2 = "onnx.microsoft.DynamicQuantizeLSTM"(%x, %c1, %c2, %n3, %c4, %n5, %n6, %n7, %c8, %c9, %c10, %c11) {hidden_size = 1 : i64} : (tensor<2x2x2xf32>, tensor<1x2x4xui8>, tensor<1x1x4xui8>, none, tensor<2xi32>, none, none, none, tensor<1xf32>, tensor<1xui8>, tensor<1xf32>, tensor<1xui8>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"#,
        &[-0.0512158, -0.00231484, 0.140373, 0.0],
    );
}

#[test]
fn products_of_bytes_become_floats() {
    check(
        ("tensor<2x2xf32>", &[1.25, 1.75, -0.75, -1.5]),
        r#"%c1 = "onnx.Constant"() {value = dense<[[0, 60], [120, 180]]> : tensor<2x2xui8>} : () -> tensor<2x2xui8>
           %c2 = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
           %c3 = "onnx.Constant"() {value = dense<100> : tensor<ui8>} : () -> tensor<ui8>
           %c4 = "onnx.Constant"() {value = dense<[0.75, -0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
           %y = "onnx.microsoft.DynamicQuantizeMatMul"(%x, %c1, %c2, %c3, %c4) {} : (tensor<2x2xf32>, tensor<2x2xui8>, tensor<f32>, tensor<ui8>, tensor<2xf32>) -> (tensor<*xf32>)"#,
        &[-44.2402, 44.3627, 23.3088, -45.6176],
    );
}

#[test]
fn the_best_experts_are_asked() {
    check(
        ("tensor<2x2xf32>", &[-2.0, 2.0, 1.75, -1.75]),
        r#"%c1 = "onnx.Constant"() {value = dense<[[1.0, -0.5, -1.75], [1.25, 1.5, -2.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
           %c2 = "onnx.Constant"() {value = dense<[[[-1.75, -1.75], [2.0, 1.75]], [[1.5, 0.75], [-1.75, -1.0]], [[0.0, 0.0], [-1.75, -1.0]]]> : tensor<3x2x2xf32>} : () -> tensor<3x2x2xf32>
           %c3 = "onnx.Constant"() {value = dense<[[0.75, 1.75], [-1.75, 2.0], [-0.75, -1.75]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
           %c4 = "onnx.Constant"() {value = dense<[[[1.75, 0.0], [0.75, -1.25]], [[1.75, -0.5], [-0.5, 1.0]], [[1.0, 1.0], [-1.25, -1.25]]]> : tensor<3x2x2xf32>} : () -> tensor<3x2x2xf32>
           %y = "onnx.microsoft.MoE"(%x, %c1, %c2, %c3, %c4) {activation_type = "silu", k = 2 : i64, normalize_routing_weights = 1 : i64} : (tensor<2x2xf32>, tensor<2x3xf32>, tensor<3x2x2xf32>, tensor<3x2xf32>, tensor<3x2x2xf32>) -> (tensor<*xf32>)"#,
        &[0.380189, -0.0497861, 0.0928279, -0.603712],
    );
}

/// Calls `Tokenizer` on texts of a type; gives the extents and the tokens, or what is wrong.
fn tokens(ty: &str, texts: &[&[u8]], attributes: &str) -> Result<String, String> {
    let runtime = Runtime::new();
    let text = format!(
        r#"module attributes {{onnx.opset = 21 : i64, onnx.opset.com.microsoft = 1 : i64}} {{
  func.func @main(%x: tensor<{ty}x!onnx.string>) -> tensor<*x!onnx.string>
      attributes {{model.input_names = ["x"], model.output_names = ["y"]}} {{
    %y = "onnx.microsoft.Tokenizer"(%x) {{{attributes}, pad_value = "~"}} : (tensor<{ty}x!onnx.string>) -> tensor<*x!onnx.string>
    func.return %y : tensor<*x!onnx.string>
  }}
}}
"#
    );
    let shape: Vec<usize> = ty.split('x').map(|one| one.parse().unwrap()).collect();
    let texts = texts.iter().map(|text| text.to_vec()).collect();
    let x = StringHostTensor::new(TensorShape::new(&shape).unwrap(), texts).unwrap();
    let program = runtime.compile("model.mlir", &text).unwrap();
    let model = Model::from_program(program, &runtime).map_err(|error| error.to_string())?;
    let outputs = model.call(&runtime.context(), (Tensor::from(x),)).wait();
    let outputs = outputs.map_err(|error| error.to_string())?;
    let y = outputs.tensor("y").unwrap();
    let words = y.strings().unwrap().iter();
    let words = words.map(|word| String::from_utf8_lossy(word));
    let words = words.map(|word| word.replace('\u{2}', "<").replace('\u{3}', ">"));
    let words: Vec<String> = words.collect();
    Ok(format!("{} {}", y.shape(), words.join("|")))
}

#[test]
fn texts_are_cut_into_tokens() {
    let texts: [&[u8]; 2] = [b"ab cd, abc", "h\u{e9} 12".as_bytes()];
    let plain = "mark = 0 : i64, mincharnum = 1 : i64";
    for (attributes, wanted) in [
        (r#"tokenexp = "[a-z]+""#, "[2, 3] ab|cd|abc|h|~|~"),
        (r#"tokenexp = "a|ab""#, "[2, 2] ab|ab|~|~"),
        (r#"tokenexp = "\\pL+|\\d""#, "[2, 3] ab|cd|abc|h\u{e9}|1|2"),
        (
            r#"separators = [" ", "[,;]"]"#,
            "[2, 3] ab|cd|abc|h\u{e9}|12|~",
        ),
        (r#"tokenexp = "x""#, "[2, 0] "),
    ] {
        let found = tokens("2", &texts, &format!("{plain}, {attributes}"));
        assert_eq!(found.as_deref(), Ok(wanted), "{attributes}");
    }
    let marked = "mark = 1 : i64, mincharnum = 1 : i64";
    let found = tokens(
        "1x2",
        &[b"ab", b"c"],
        &format!(r#"{marked}, tokenexp = ".""#),
    );
    assert_eq!(found.as_deref(), Ok("[1, 2, 4] <|a|b|>|<|c|>|~"));
    let found = tokens(
        "1x2",
        &[b"ab", b"c"],
        &format!(r#"{marked}, separators = [""]"#),
    );
    assert_eq!(found.as_deref(), Ok("[1, 2, 4] <|a|b|>|<|c|>|~"));
    let long = r#"mark = 0 : i64, mincharnum = 2 : i64, tokenexp = "[a-z]+""#;
    let found = tokens("1", &[b"ab c def"], long);
    assert_eq!(found.as_deref(), Ok("[1, 2] ab|def"));
}

#[test]
fn what_is_no_text_or_no_pattern_is_refused() {
    let plain = "mark = 0 : i64, mincharnum = 1 : i64";
    let refused = |attributes: &str| tokens("1", &[b"caf\xe9"], attributes).unwrap_err();
    for (attributes, wanted) in [
        (
            format!(r#"{plain}, tokenexp = "a""#),
            "operand 0 is expected to have texts in UTF-8, found others in element 0, at byte 3",
        ),
        (
            format!(r#"{plain}, tokenexp = "(a""#),
            "attribute 'tokenexp' has '(a', which is no pattern: unclosed group",
        ),
        (
            format!(r#"{plain}, separators = ["a", "[b"]"#),
            "attribute 'separators' has '[b', which is no pattern: unclosed character class",
        ),
        (
            plain.to_owned(),
            "attribute 'tokenexp' or 'separators' is expected to have a pattern",
        ),
        (
            r#"mark = 0 : i64, mincharnum = 0 : i64, tokenexp = "a""#.to_owned(),
            "attribute 'mincharnum' is expected to be at least 1, found 0",
        ),
        (
            r#"mark = 0 : i64, mincharnum = 2 : i64, tokenexp = ".""#.to_owned(),
            "attribute 'mincharnum' is expected to be 1 where each character is a token, found 2",
        ),
    ] {
        let found = refused(&attributes);
        assert!(found.contains(wanted), "{found}");
    }
}

/// Returns what is wrong with one step of `GroupQueryAttention`, of buffers with room for four keys, one head of keys, and
/// two of queries of 16 elements.
fn step(lengths: i32, total: i32, position: Option<i64>) -> Result<Vec<f32>, String> {
    let ones = |ty: &str| {
        format!(r#""onnx.Constant"() {{value = dense<1.0> : tensor<{ty}>}} : () -> tensor<{ty}>"#)
    };
    let position = position.map_or_else(String::new, |position| {
        format!(r#"%places = "onnx.Constant"() {{value = dense<[[{position}]]> : tensor<1x1xi64>}} : () -> tensor<1x1xi64>"#)
    });
    let (name, ty, rotary) = match position.is_empty() {
        true => ("", "", 0),
        false => (
            ", %table, %table, %places",
            ", tensor<4x8xf32>, tensor<4x8xf32>, tensor<1x1xi64>",
            1,
        ),
    };
    let operations = format!(
        r#"%kv = {}
           %past = {}
           %table = {}
           {position}
           %lengths = "onnx.Constant"() {{value = dense<[{lengths}]> : tensor<1xi32>}} : () -> tensor<1xi32>
           %total = "onnx.Constant"() {{value = dense<[{total}]> : tensor<1xi32>}} : () -> tensor<1xi32>
           %y, %r1, %r2 = "onnx.microsoft.GroupQueryAttention"(%x, %kv, %kv, %past, %past, %lengths, %total{name}) {{do_rotary = {rotary} : i64, kv_num_heads = 1 : i64, num_heads = 2 : i64}} : (tensor<1x1x32xf32>, tensor<1x1x16xf32>, tensor<1x1x16xf32>, tensor<1x1x4x16xf32>, tensor<1x1x4x16xf32>, tensor<1xi32>, tensor<1xi32>{ty}) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)"#,
        ones("1x1x16xf32"),
        ones("1x1x4x16xf32"),
        ones("4x8xf32"),
    );
    call(("tensor<1x1x32xf32>", &[1.0; 32]), &operations)
}

#[test]
fn lengths_and_positions_stay_within_their_buffers() {
    assert!(step(2, 3, Some(3)).is_ok());
    // What is beyond the room makes a larger buffer.
    assert!(step(4, 5, None).is_ok());
    for (lengths, total, position, wanted) in [
        (
            2,
            i32::MAX,
            None,
            "the position at [0] is 2147483647: expected one of 6 positions",
        ),
        (
            9,
            10,
            None,
            "the position at [0] is 10: expected one of 6 positions",
        ),
        (
            9,
            3,
            None,
            "1 elements from 9 on do not fit a dimension of extent 4",
        ),
        (
            -3,
            3,
            None,
            "1 elements from -3 on do not fit a dimension of extent 4",
        ),
        (
            2,
            3,
            Some(4),
            "has the position 4, expected one of the 4 of a table of shape [4, 8]",
        ),
        (
            2,
            3,
            Some(-1),
            "has the position -1, expected one of the 4 of a table of shape [4, 8]",
        ),
    ] {
        let found = step(lengths, total, position).unwrap_err();
        assert!(found.contains(wanted), "{found}");
    }
}

#[test]
fn masks_and_tables_that_do_not_fit_are_named_with_their_extents() {
    let found = call(
        ("tensor<1x2x2xf32>", &[1.0; 4]),
        r#"%c1 = "onnx.Constant"() {value = dense<1.0> : tensor<2x6xf32>} : () -> tensor<2x6xf32>
           %c2 = "onnx.Constant"() {value = dense<1.0> : tensor<6xf32>} : () -> tensor<6xf32>
           %c3 = "onnx.Constant"() {value = dense<1> : tensor<1x5xi32>} : () -> tensor<1x5xi32>
           %y = "onnx.microsoft.Attention"(%x, %c1, %c2, %c3) {num_heads = 1 : i64} : (tensor<1x2x2xf32>, tensor<2x6xf32>, tensor<6xf32>, tensor<1x5xi32>) -> (tensor<*xf32>)"#,
    );
    let found = found.unwrap_err();
    let wanted =
        "queries [1, 1, 2, 2], keys [1, 1, 2, 2], and a mask [1, 1, 1, 5] don't fit together";
    assert!(found.contains(wanted), "{found}");
    let found = call(
        ("tensor<1x2x8xf32>", &[1.0; 16]),
        r#"%c1 = "onnx.Constant"() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
           %c2 = "onnx.Constant"() {value = dense<1.0> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
           %c3 = "onnx.Constant"() {value = dense<1.0> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
           %y = "onnx.microsoft.RotaryEmbedding"(%x, %c1, %c2, %c3) : (tensor<1x2x8xf32>, tensor<1xi64>, tensor<4x4xf32>, tensor<3x4xf32>) -> (tensor<*xf32>)"#,
    );
    let found = found.unwrap_err();
    assert!(
        found.contains("found [4, 4] and [3, 4], and 2 positions"),
        "{found}"
    );
}

#[test]
fn means_in_the_middle_between_two_steps_are_even() {
    // Calculated with scaled numbers, they are rounded elsewhere: to 163, 109 and 129.
    check(
        (
            "tensor<1x3x2x2xf32>",
            &[
                173.0, 196.0, 227.0, 54.0, 156.0, 27.0, 93.0, 162.0, 188.0, 98.0, 75.0, 157.0,
            ],
        ),
        r#"%b = "onnx.Cast"(%x) {to = 2 : i64} : (tensor<1x3x2x2xf32>) -> tensor<*xui8>
           %s = "onnx.Constant"() {value = dense<0.0537> : tensor<f32>} : () -> tensor<f32>
           %z = "onnx.Constant"() {value = dense<120> : tensor<ui8>} : () -> tensor<ui8>
           %m = "onnx.microsoft.QLinearAveragePool"(%b, %s, %z, %s, %z) {kernel_shape = [2, 2]} : (tensor<*xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
           %y = "onnx.Cast"(%m) {to = 1 : i64} : (tensor<*xui8>) -> (tensor<*xf32>)"#,
        &[162.0, 110.0, 130.0],
    );
}

#[test]
fn channels_of_small_integers_may_come_last() {
    let x: (&str, &[f32]) = (
        "tensor<1x2x2x2xf32>",
        &[10.0, 200.0, 35.0, 90.0, 120.0, 7.0, 255.0, 64.0],
    );
    check(
        x,
        r#"%b = "onnx.Cast"(%x) {to = 2 : i64} : (tensor<1x2x2x2xf32>) -> tensor<*xui8>
           %s = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
           %z = "onnx.Constant"() {value = dense<100> : tensor<ui8>} : () -> tensor<ui8>
           %w = "onnx.Constant"() {value = dense<[[[[3]], [[-2]]], [[[1]], [[5]]], [[[-4]], [[7]]]]> : tensor<3x2x1x1xi8>} : () -> tensor<3x2x1x1xi8>
           %ws = "onnx.Constant"() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
           %wz = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
           %ys = "onnx.Constant"() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
           %yz = "onnx.Constant"() {value = dense<90> : tensor<ui8>} : () -> tensor<ui8>
           %a = "onnx.Constant"() {value = dense<[8, -16, 100]> : tensor<3xi32>} : () -> tensor<3xi32>
           %c = "onnx.microsoft.QLinearConv"(%b, %s, %z, %w, %ws, %wz, %ys, %yz, %a) {channels_last = 1 : i64} : (tensor<*xui8>, tensor<f32>, tensor<ui8>, tensor<3x2x1x1xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>, tensor<3xi32>) -> tensor<*xui8>
           %y = "onnx.Cast"(%c) {to = 1 : i64} : (tensor<*xui8>) -> (tensor<*xf32>)"#,
        &[
            76.0, 102.0, 126.0, 85.0, 86.0, 99.0, 98.0, 76.0, 70.0, 107.0, 89.0, 66.0,
        ],
    );
    check(
        x,
        r#"%b = "onnx.Cast"(%x) {to = 2 : i64} : (tensor<1x2x2x2xf32>) -> tensor<*xui8>
           %m = "onnx.microsoft.NhwcMaxPool"(%b) {kernel_shape = [2, 1]} : (tensor<*xui8>) -> tensor<*xui8>
           %y = "onnx.Cast"(%m) {to = 1 : i64} : (tensor<*xui8>) -> (tensor<*xf32>)"#,
        &[120.0, 200.0, 255.0, 90.0],
    );
}
