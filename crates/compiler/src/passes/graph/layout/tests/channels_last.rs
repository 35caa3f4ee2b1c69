//! Tests of networks whose images lie with channels last in the module: those of Flax, and of JAX without it.

use expect_test::{Expect, expect};

use crate::passes::testing::statements;

/// Checks what a function becomes, but for its constants: `%x` has 2 channels, `%y` is a convolution of it of 4 channels,
/// `%c` four numbers as they are broadcast to it, and `%r` is returned.
fn check(body: &str, expected: Expect) {
    let text = format!(
        r#"func.func @main(%x: tensor<2x8x8x2xf32>) -> tensor<2x8x8x4xf32> attributes {{
               model.input_names = ["x"], model.output_names = ["r"], model.input_dims = [[2 : i64, 8 : i64, 8 : i64, 2 : i64]]}} {{
             %w = stablehlo.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]], [[[5.0]], [[6.0]]], [[[7.0]], [[8.0]]]]> : tensor<4x2x1x1xf32>
             %list = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
             %four = stablehlo.reshape %list : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
             %c = stablehlo.broadcast_in_dim %four, dims = [0, 1, 2, 3] : (tensor<1x1x1x4xf32>) -> tensor<2x8x8x4xf32>
             %none = stablehlo.constant dense<0.0> : tensor<f32>
             %zeros = stablehlo.broadcast_in_dim %none, dims = [] : (tensor<f32>) -> tensor<2x8x8x4xf32>
             %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f],
                 window = {{stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}}
                 {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
                 : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>) -> tensor<2x8x8x4xf32>
             {body}
             func.return %r : tensor<2x8x8x4xf32>
           }}"#
    );
    let passes = "legalize,graph-infer,graph-fold,graph-infer,graph-simplify,graph-layout,graph-fold,graph-fuse,graph-fold";
    expected.assert_eq(&statements(passes, &text));
}

#[test]
fn a_bias_and_what_is_behind_it_go_into_the_convolution() {
    check(
        "%b = stablehlo.add %y, %c : tensor<2x8x8x4xf32>
         %r = stablehlo.maximum %b, %zeros : tensor<2x8x8x4xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "graph.none"() : () -> none
            %2 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
            %3 = "cpu.fused.conv"(%arg0, %0, %2, %1, %1, %1, %1, %1) {dilations = [1, 1], epilogue = ["max a0 0e0"], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, tensor<4xf32>, none, none, none, none, none) -> tensor<2x8x8x4xf32>
            tfrt.return %3 : tensor<2x8x8x4xf32>
        "#]],
    );
}

#[test]
fn a_normalisation_spelled_out_goes_into_the_convolution() {
    check(
        "%a = stablehlo.subtract %y, %c : tensor<2x8x8x4xf32>
         %b = stablehlo.divide %a, %c : tensor<2x8x8x4xf32>
         %d = stablehlo.multiply %b, %c : tensor<2x8x8x4xf32>
         %r = stablehlo.add %c, %d : tensor<2x8x8x4xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "graph.none"() : () -> none
            %2 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
            %3 = "cpu.fused.elementwise"(%2) {inputs = 1, steps = ["neg a0"]} : (tensor<4xf32>) -> tensor<4xf32>
            %4 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
            %5 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
            %6 = "cpu.fused.elementwise"(%4, %2) {inputs = 2, steps = ["div a0 a1", "mul s0 a1"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
            %7 = "cpu.fused.elementwise"(%5, %2) {inputs = 2, steps = ["mul a0 a1", "add s0 a1"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
            %8 = "cpu.fused.conv"(%arg0, %0, %3, %1, %6, %7, %5, %4) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, tensor<4xf32>, none, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x8x8x4xf32>
            tfrt.return %8 : tensor<2x8x8x4xf32>
        "#]],
    );
}

#[test]
fn a_convolution_that_somebody_else_uses_stays_as_it_is() {
    check(
        "%a = stablehlo.add %y, %c : tensor<2x8x8x4xf32>
         %r = stablehlo.multiply %a, %y : tensor<2x8x8x4xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "onnx.Constant"() {value = dense<[[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]]]]> : tensor<1x1x1x4xf32>} : () -> tensor<1x1x1x4xf32>
            %2 = "graph.none"() : () -> none
            %3 = "cpu.fused.conv"(%arg0, %0, %2, %2, %2, %2, %2, %2) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, none, none, none, none, none, none) -> tensor<2x8x8x4xf32>
            %4 = "cpu.fused.elementwise"(%3, %1) {inputs = 2, steps = ["add a0 a1", "mul s0 a0"]} : (tensor<2x8x8x4xf32>, tensor<1x1x1x4xf32>) -> tensor<2x8x8x4xf32>
            tfrt.return %4 : tensor<2x8x8x4xf32>
        "#]],
    );
}

#[test]
fn numbers_along_another_dimension_are_no_bias() {
    check(
        "%e = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
         %f = stablehlo.broadcast_in_dim %e, dims = [2] : (tensor<8xf32>) -> tensor<2x8x8x4xf32>
         %r = stablehlo.add %y, %f : tensor<2x8x8x4xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "graph.none"() : () -> none
            %2 = "cpu.fused.conv"(%arg0, %0, %1, %1, %1, %1, %1, %1) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, none, none, none, none, none, none) -> tensor<2x8x8x4xf32>
            %3 = "onnx.Constant"() {value = dense<[[1.000000e+00], [2.000000e+00], [3.000000e+00], [4.000000e+00], [5.000000e+00], [6.000000e+00], [7.000000e+00], [8.000000e+00]]> : tensor<8x1xf32>} : () -> tensor<8x1xf32>
            %4 = "cpu.fused.elementwise"(%2, %3) {inputs = 2, steps = ["add a0 a1"]} : (tensor<2x8x8x4xf32>, tensor<8x1xf32>) -> tensor<2x8x8x4xf32>
            tfrt.return %4 : tensor<2x8x8x4xf32>
        "#]],
    );
}

#[test]
fn a_difference_from_a_constant_stays_behind_the_convolution() {
    check(
        "%r = stablehlo.subtract %c, %y : tensor<2x8x8x4xf32>",
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "onnx.Constant"() {value = dense<[[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]]]]> : tensor<1x1x1x4xf32>} : () -> tensor<1x1x1x4xf32>
            %2 = "graph.none"() : () -> none
            %3 = "cpu.fused.conv"(%arg0, %0, %2, %2, %2, %2, %2, %2) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, none, none, none, none, none, none) -> tensor<2x8x8x4xf32>
            %4 = "cpu.fused.elementwise"(%1, %3) {inputs = 2, steps = ["sub a0 a1"]} : (tensor<1x1x1x4xf32>, tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32>
            tfrt.return %4 : tensor<2x8x8x4xf32>
        "#]],
    );
}

/// Sums of three by three elements of `x`, of so many images and channels, by the name `sum`.
fn sums(sum: &str, x: &str, [n, channels]: [usize; 2]) -> String {
    format!(
        r#"%{sum} = "stablehlo.reduce_window"(%{x}, %none) <{{
               padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>,
               window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}}> ({{
             ^bb0(%left: tensor<f32>, %right: tensor<f32>):
               %next = stablehlo.add %left, %right : tensor<f32>
               stablehlo.return %next : tensor<f32>
             }}) : (tensor<{n}x8x8x{channels}xf32>, tensor<f32>) -> tensor<{n}x8x8x{channels}xf32>
"#
    )
}

#[test]
fn a_sum_of_windows_divided_by_their_elements_is_a_mean() {
    let sums = sums("sum", "y", [2, 4]);
    check(
        &format!(
            "{sums}
             %nine = stablehlo.constant dense<9.0> : tensor<2x8x8x4xf32>
             %r = stablehlo.divide %sum, %nine : tensor<2x8x8x4xf32>"
        ),
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "graph.none"() : () -> none
            %2 = "cpu.fused.conv"(%arg0, %0, %1, %1, %1, %1, %1, %1) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, none, none, none, none, none, none) -> tensor<2x8x8x4xf32>
            %3 = "cpu.fused.pool"(%2) {dilations = [1, 1], kernel = [3, 3], kind = "mean_with_padding", pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32>
            tfrt.return %3 : tensor<2x8x8x4xf32>
        "#]],
    );
}

#[test]
fn a_sum_of_windows_divided_by_one_of_ones_is_a_mean_without_padding() {
    let (sums, counts) = (sums("sum", "y", [2, 4]), sums("count", "ones", [1, 1]));
    check(
        &format!(
            "{sums}
             %one = stablehlo.constant dense<1.0> : tensor<f32>
             %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<1x8x8x1xf32>
             {counts}
             %wide = stablehlo.broadcast_in_dim %count, dims = [0, 1, 2, 3] : (tensor<1x8x8x1xf32>) -> tensor<2x8x8x4xf32>
             %r = stablehlo.divide %sum, %wide : tensor<2x8x8x4xf32>"
        ),
        expect![[r#"
            %0 = "onnx.Constant"() {onnx.opset = 27, value = dense<[[[[1.000000e+00]], [[2.000000e+00]]], [[[3.000000e+00]], [[4.000000e+00]]], [[[5.000000e+00]], [[6.000000e+00]]], [[[7.000000e+00]], [[8.000000e+00]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
            %1 = "graph.none"() : () -> none
            %2 = "cpu.fused.conv"(%arg0, %0, %1, %1, %1, %1, %1, %1) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<2x8x8x2xf32>, tensor<4x2x1x1xf32>, none, none, none, none, none, none) -> tensor<2x8x8x4xf32>
            %3 = "cpu.fused.pool"(%2) {dilations = [1, 1], kernel = [3, 3], kind = "mean", pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32>
            tfrt.return %3 : tensor<2x8x8x4xf32>
        "#]],
    );
}
