//! Tests of products as Flax and Keras write them, with biases of several dimensions.

use expect_test::{Expect, expect};

use crate::passes::testing::statements;

/// Checks what a function becomes, but for its constants: `%x` has three dimensions, `%h` four, and `%r` is returned.
fn check(body: &str, result: &str, expected: Expect) {
    let text = format!(
        r#"func.func @main(%x: tensor<2x3x4xf32>, %h: tensor<2x3x2x2xf32>) -> {result} attributes {{
               model.input_names = ["x", "h"], model.output_names = ["r"],
               model.input_dims = [[2 : i64, 3 : i64, 4 : i64], [2 : i64, 3 : i64, 2 : i64, 2 : i64]]}} {{
             {body}
             func.return %r : {result}
           }}"#
    );
    let passes =
        "legalize,graph-infer,graph-fold,graph-infer,graph-simplify,graph-layout,graph-fuse";
    expected.assert_eq(&statements(passes, &text));
}

#[test]
fn biases_of_heads_go_into_the_product_before_these_are_split() {
    check(
        "%w = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
                                        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]> : tensor<4x6xf32>
         %heads = stablehlo.reshape %w : (tensor<4x6xf32>) -> tensor<4x3x2xf32>
         %b = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
         %wide = stablehlo.broadcast_in_dim %b, dims = [2, 3] : (tensor<3x2xf32>) -> tensor<2x3x3x2xf32>
         %y = stablehlo.dot_general %x, %heads, contracting_dims = [2] x [0] : (tensor<2x3x4xf32>, tensor<4x3x2xf32>) -> tensor<2x3x3x2xf32>
         %r = stablehlo.add %y, %wide : tensor<2x3x3x2xf32>",
        "tensor<2x3x3x2xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]]> : tensor<4x6xf32>} : () -> tensor<4x6xf32>
            %1 = "graph.none"() : () -> none
            %2 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]> : tensor<6xf32>} : () -> tensor<6xf32>
            %3 = "cpu.fused.matmul"(%arg0, %0, %2, %1) {epilogue = [], transposed = 0} : (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6xf32>, none) -> tensor<2x3x6xf32>
            %4 = "onnx.Constant"() {value = dense<[2, 3, 3, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
            %5 = "graph.reshape"(%3, %4) : (tensor<2x3x6xf32>, tensor<4xi64>) -> tensor<2x3x3x2xf32>
            tfrt.return %5 : tensor<2x3x3x2xf32>
        "#]],
    );
}

#[test]
fn a_product_of_heads_takes_a_bias_a_residual_and_an_activation() {
    check(
        "%w = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]> : tensor<4x4xf32>
         %heads = stablehlo.reshape %w : (tensor<4x4xf32>) -> tensor<2x2x4xf32>
         %b = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
         %line = stablehlo.reshape %b : (tensor<4xf32>) -> tensor<1x1x4xf32>
         %wide = stablehlo.broadcast_in_dim %line, dims = [0, 1, 2] : (tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
         %y = stablehlo.dot_general %h, %heads, contracting_dims = [2, 3] x [0, 1] : (tensor<2x3x2x2xf32>, tensor<2x2x4xf32>) -> tensor<2x3x4xf32>
         %s = stablehlo.add %y, %wide : tensor<2x3x4xf32>
         %t = stablehlo.add %x, %s : tensor<2x3x4xf32>
         %r = stablehlo.tanh %t : tensor<2x3x4xf32>",
        "tensor<2x3x4xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[2, 3, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
            %1 = "graph.reshape"(%arg1, %0) {allow_zero = 1} : (tensor<2x3x2x2xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
            %2 = "onnx.Constant"() {value = dense<[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]]> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
            %3 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
            %4 = "cpu.fused.matmul"(%1, %2, %3, %arg0) {epilogue = ["tanh a0"], transposed = 0} : (tensor<2x3x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
            tfrt.return %4 : tensor<2x3x4xf32>
        "#]],
    );
}

#[test]
fn a_product_along_two_dimensions_of_a_batch_multiplies_one_row_by_one_column() {
    check(
        "%y = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [1, 2] x [1, 2] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2xf32>
         %r = stablehlo.tanh %y : tensor<2xf32>",
        "tensor<2xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[2, 1, 12]> : tensor<3xi64>} : () -> tensor<3xi64>
            %1 = "graph.reshape"(%arg0, %0) {allow_zero = 1} : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<2x1x12xf32>
            %2 = "onnx.Constant"() {onnx.opset = 27, value = dense<[2, 12, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
            %3 = "graph.reshape"(%arg0, %2) {allow_zero = 1} : (tensor<2x3x4xf32>, tensor<3xi64>) -> tensor<2x12x1xf32>
            %4 = "graph.dot"(%1, %3) : (tensor<2x1x12xf32>, tensor<2x12x1xf32>) -> tensor<2x1x1xf32>
            %5 = "onnx.Constant"() {onnx.opset = 27, value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
            %6 = "graph.reshape"(%4, %5) {allow_zero = 1} : (tensor<2x1x1xf32>, tensor<1xi64>) -> tensor<2xf32>
            %7 = "cpu.fused.elementwise"(%6) {inputs = 1, steps = ["tanh a0"]} : (tensor<2xf32>) -> tensor<2xf32>
            tfrt.return %7 : tensor<2xf32>
        "#]],
    );
}
