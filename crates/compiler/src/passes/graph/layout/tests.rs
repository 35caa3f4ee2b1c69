//! Tests of networks of convolutions, with channels first and last.

mod channels_last;

use expect_test::expect;

use crate::passes::testing::{check, run};

#[test]
fn convolutions_stay_in_their_layout_until_somebody_cares() {
    check(
        "onnx-to-graph,graph-infer,graph-layout,graph-fuse",
        r#"func.func @main(%x: tensor<?x3x8x8xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 3 : i64, 8 : i64, 8 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<16x3x3x3xf32>} : () -> tensor<16x3x3x3xf32>
             %v = "onnx.Constant"() {value = dense<1.0> : tensor<16x16x1x1xf32>} : () -> tensor<16x16x1x1xf32>
             %s = "onnx.Constant"() {value = dense<1.0> : tensor<16xf32>} : () -> tensor<16xf32>
             %b = "onnx.Constant"() {value = dense<0.0> : tensor<16xf32>} : () -> tensor<16xf32>
             %a0 = "onnx.Conv"(%x, %w) {pads = [1 : i64, 1 : i64, 1 : i64, 1 : i64]}
                 : (tensor<?x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<*xf32>
             %a1 = "onnx.BatchNormalization"(%a0, %s, %b, %b, %s) {epsilon = 1.0e-5 : f32}
                 : (tensor<*xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<*xf32>
             %a2 = "onnx.Relu"(%a1) : (tensor<*xf32>) -> tensor<*xf32>
             %b0 = "onnx.Conv"(%a2, %v, %b) : (tensor<*xf32>, tensor<16x16x1x1xf32>, tensor<16xf32>) -> tensor<*xf32>
             %b1 = "onnx.Add"(%a2, %b0) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %b2 = "onnx.Relu"(%b1) : (tensor<*xf32>) -> tensor<*xf32>
             %c = "onnx.Concat"(%a2, %b2) {axis = 1 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %p = "onnx.MaxPool"(%c) {kernel_shape = [2 : i64, 2 : i64], strides = [2 : i64, 2 : i64]}
                 : (tensor<*xf32>) -> tensor<*xf32>
             %g = "onnx.GlobalAveragePool"(%p) : (tensor<*xf32>) -> tensor<*xf32>
             %f = "onnx.Flatten"(%g) : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %f : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?x3x8x8xf32>) -> tensor<?x32xf32> attributes {model.input_dims = [["N", 3, 8, 8]], model.input_names = ["x"], model.output_names = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<16x3x3x3xf32>} : () -> tensor<16x3x3x3xf32>
              %1 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<16x16x1x1xf32>} : () -> tensor<16x16x1x1xf32>
              %2 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<16xf32>} : () -> tensor<16xf32>
              %3 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<16xf32>} : () -> tensor<16xf32>
              %4 = "graph.transpose"(%arg0) {perm = [0, 2, 3, 1]} : (tensor<?x3x8x8xf32>) -> tensor<?x8x8x3xf32>
              %5 = "graph.none"() : () -> none
              %6 = "cpu.fused.conv"(%4, %0, %5, %5, %2, %3, %3, %2) {dilations = [1, 1], epilogue = ["relu a0"], epsilon = 1.000000e-05 : f32, groups = 1, model.shapes = [["N", 8, 8, 16]], pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<?x8x8x3xf32>, tensor<16x3x3x3xf32>, none, none, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x8x8x16xf32>
              %7 = "graph.none"() : () -> none
              %8 = "cpu.fused.conv"(%6, %1, %3, %6, %7, %7, %7, %7) {dilations = [1, 1], epilogue = ["relu a0"], epsilon = 0.000000e+00 : f32, groups = 1, model.shapes = [["N", 8, 8, 16]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x8x8x16xf32>, tensor<16x16x1x1xf32>, tensor<16xf32>, tensor<?x8x8x16xf32>, none, none, none, none) -> tensor<?x8x8x16xf32>
              %9 = "graph.concat"(%6, %8) {axis = 3, model.shapes = [["N", 8, 8, 32]]} : (tensor<?x8x8x16xf32>, tensor<?x8x8x16xf32>) -> tensor<?x8x8x32xf32>
              %10 = "cpu.fused.pool"(%9) {dilations = [1, 1], kernel = [2, 2], kind = "max", model.shapes = [["N", 4, 4, 32]], pads = [0, 0, 0, 0], strides = [2, 2]} : (tensor<?x8x8x32xf32>) -> tensor<?x4x4x32xf32>
              %11 = "cpu.fused.pool"(%10) {dilations = [1, 1], kernel = [0, 0], kind = "mean", model.shapes = [["N", 1, 1, 32]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x4x4x32xf32>) -> tensor<?x1x1x32xf32>
              %12 = "onnx.Constant"() {value = dense<[0, 32, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
              %13 = "graph.reshape"(%11, %12) : (tensor<?x1x1x32xf32>, tensor<4xi64>) -> tensor<?x32x1x1xf32>
              %14 = "onnx.Flatten"(%13) {model.shapes = [["N", 32]]} : (tensor<?x32x1x1xf32>) -> tensor<?x32xf32>
              tfrt.return %14 : tensor<?x32xf32>
            }
        "#]],
    );
}

#[test]
fn windows_that_reach_beyond_the_image_are_padding() {
    // Of 8 by 9 they reach one row beyond, and no column. Where padding counts, what is beyond it does not.
    let text = run(
        "onnx-to-graph,graph-infer,graph-layout",
        r#"func.func @main(%x: tensor<?x3x8x9xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) attributes {
               model.input_names = ["x"], model.output_names = ["y", "z", "u"], model.input_dims = [["N", 3 : i64, 8 : i64, 9 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
             %a = "onnx.Conv"(%x, %w) : (tensor<?x3x8x9xf32>, tensor<16x3x1x1xf32>) -> tensor<*xf32>
             %p = "onnx.MaxPool"(%a) {kernel_shape = [3 : i64, 3 : i64], strides = [2 : i64, 2 : i64], ceil_mode = 1 : i64}
                 : (tensor<*xf32>) -> tensor<*xf32>
             %q = "onnx.AveragePool"(%a) {kernel_shape = [3 : i64, 3 : i64], strides = [2 : i64, 2 : i64], ceil_mode = 1 : i64}
                 : (tensor<*xf32>) -> tensor<*xf32>
             %r = "onnx.AveragePool"(%a) {kernel_shape = [3 : i64, 3 : i64], strides = [2 : i64, 2 : i64], ceil_mode = 1 : i64,
                 count_include_pad = 1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %p, %q, %r : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
           }"#,
    );
    for kind in ["max", "mean"] {
        let pool = format!(
            "{{dilations = [1, 1], kernel = [3, 3], kind = \"{kind}\", model.shapes = [[\"N\", 4, 4, 16]], pads = [0, 0, 1, 0], strides = [2, 2]}}"
        );
        assert!(text.contains(&pool), "{text}");
    }
    assert_eq!(text.matches("cpu.fused.pool").count(), 2, "{text}");
}

#[test]
fn factors_and_summands_go_into_the_filter_before_them_or_become_one_of_each() {
    check(
        "onnx-upgrade,onnx-to-graph,graph-infer,graph-fold,graph-infer,graph-layout,graph-fuse",
        r#"module attributes {onnx.opset = 9 : i64} {
           func.func @main(%x: tensor<?x2x8x8xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 2 : i64, 8 : i64, 8 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
             %v = "onnx.Constant"() {value = dense<2.0> : tensor<4x4x1x1xf32>} : () -> tensor<4x4x1x1xf32>
             %m = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
             %s = "onnx.Constant"() {value = dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>} : () -> tensor<4xf32>
             %half = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
             %m3 = "onnx.Unsqueeze"(%m) {axes = [1 : i64, 2 : i64]} : (tensor<4xf32>) -> tensor<*xf32>
             %s3 = "onnx.Unsqueeze"(%s) {axes = [1 : i64, 2 : i64]} : (tensor<4xf32>) -> tensor<*xf32>
             %a0 = "onnx.Conv"(%x, %w, %s)
                 : (tensor<?x2x8x8xf32>, tensor<4x2x1x1xf32>, tensor<4xf32>) -> tensor<*xf32>
             %a1 = "onnx.Mul"(%a0, %m3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %a2 = "onnx.Sub"(%a1, %half) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
             %b0 = "onnx.Conv"(%a2, %v) : (tensor<*xf32>, tensor<4x4x1x1xf32>) -> tensor<*xf32>
             %b1 = "onnx.BatchNormalization"(%b0, %m, %s, %m, %m) {epsilon = 1.0e-3 : f32}
                 : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
             %b2 = "onnx.Mul"(%m3, %b1) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %b3 = "onnx.Add"(%b2, %s3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %c0 = "onnx.MaxPool"(%b3) {kernel_shape = [2 : i64, 2 : i64], strides = [2 : i64, 2 : i64]}
                 : (tensor<*xf32>) -> tensor<*xf32>
             %c1 = "onnx.BatchNormalization"(%c0, %m, %s, %m, %m) {epsilon = 1.0e-5 : f32}
                 : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
             %c2 = "onnx.Mul"(%c1, %m3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %c3 = "onnx.Add"(%c2, %s3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %c4 = "onnx.Relu"(%c3) : (tensor<*xf32>) -> tensor<*xf32>
             %y = "onnx.GlobalAveragePool"(%c4) : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           } }"#,
        expect![[r#"
            module attributes {onnx.opset = 9} {
            func.func @main(%arg0: tensor<?x2x8x8xf32>) -> tensor<?x4x1x1xf32> attributes {model.input_dims = [["N", 2, 8, 8]], model.input_names = ["x"], model.output_names = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
              %1 = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<4x4x1x1xf32>} : () -> tensor<4x4x1x1xf32>
              %2 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %3 = "onnx.Constant"() {value = dense<[5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %4 = "graph.transpose"(%arg0) {perm = [0, 2, 3, 1]} : (tensor<?x2x8x8xf32>) -> tensor<?x8x8x2xf32>
              %5 = "graph.none"() : () -> none
              %6 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %7 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
              %8 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
              %9 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<4xf32>} : () -> tensor<4xf32>
              %10 = "cpu.fused.elementwise"(%9, %7) {inputs = 2, steps = ["neg a0", "add a1 s0"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %11 = "cpu.fused.conv"(%4, %0, %3, %5, %6, %10, %7, %8) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, model.shapes = [["N", 8, 8, 4]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x8x8x2xf32>, tensor<4x2x1x1xf32>, tensor<4xf32>, none, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x8x8x4xf32>
              %12 = "graph.none"() : () -> none
              %13 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %14 = "cpu.fused.elementwise"(%2, %13) {inputs = 2, steps = ["mul a0 a1"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %15 = "onnx.Constant"() {value = dense<[5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %16 = "cpu.fused.elementwise"(%3, %13, %15) {inputs = 3, steps = ["mul a0 a1", "add s0 a2"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %17 = "cpu.fused.conv"(%11, %1, %12, %12, %14, %16, %2, %2) {dilations = [1, 1], epilogue = [], epsilon = 1.000000e-03 : f32, groups = 1, model.shapes = [["N", 8, 8, 4]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x8x8x4xf32>, tensor<4x4x1x1xf32>, none, none, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x8x8x4xf32>
              %18 = "cpu.fused.pool"(%17) {dilations = [1, 1], kernel = [2, 2], kind = "max", model.shapes = [["N", 4, 4, 4]], pads = [0, 0, 0, 0], strides = [2, 2]} : (tensor<?x8x8x4xf32>) -> tensor<?x4x4x4xf32>
              %19 = "onnx.Constant"() {value = dense<1.000000e-05> : tensor<4xf32>} : () -> tensor<4xf32>
              %20 = "cpu.fused.elementwise"(%2, %19) {inputs = 2, steps = ["add a0 a1", "sqrt s0", "div a0 s1"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %21 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %22 = "cpu.fused.elementwise"(%20, %21) {inputs = 2, steps = ["mul a0 a1"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %23 = "onnx.Constant"() {value = dense<[5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
              %24 = "cpu.fused.elementwise"(%2, %20, %3, %21, %23) {inputs = 5, steps = ["mul a0 a1", "sub a2 s0", "mul s1 a3", "add s2 a4"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %25 = "cpu.fused.scale"(%22, %24, %18) {activation = "relu", model.shapes = [["N", 4, 4, 4]]} : (tensor<4xf32>, tensor<4xf32>, tensor<?x4x4x4xf32>) -> tensor<?x4x4x4xf32>
              %26 = "cpu.fused.pool"(%25) {dilations = [1, 1], kernel = [0, 0], kind = "mean", model.shapes = [["N", 1, 1, 4]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x4x4x4xf32>) -> tensor<?x1x1x4xf32>
              %27 = "onnx.Constant"() {value = dense<[0, 4, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
              %28 = "graph.reshape"(%26, %27) : (tensor<?x1x1x4xf32>, tensor<4xi64>) -> tensor<?x4x1x1xf32>
              tfrt.return %28 : tensor<?x4x1x1xf32>
            }
        "#]],
    );
}

#[test]
fn channels_are_dealt_out_and_divided_where_they_lie() {
    check(
        "onnx-to-graph,graph-infer,graph-layout",
        r#"func.func @main(%x: tensor<1x4x2x2xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[1 : i64, 4 : i64, 2 : i64, 2 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<6x2x1x1xf32>} : () -> tensor<6x2x1x1xf32>
             %s = "onnx.Constant"() {value = dense<[1, 2, 3, 2, 2]> : tensor<5xi64>} : () -> tensor<5xi64>
             %j = "onnx.Constant"() {value = dense<[1, 6, 2, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
             %a = "onnx.Conv"(%x, %w) {group = 2 : i64}
                 : (tensor<1x4x2x2xf32>, tensor<6x2x1x1xf32>) -> tensor<*xf32>
             %n = "onnx.LRN"(%a) {alpha = 1.0e-3 : f32, size = 3 : i64} : (tensor<*xf32>) -> tensor<*xf32>
             %b = "onnx.Reshape"(%n, %s) : (tensor<*xf32>, tensor<5xi64>) -> tensor<*xf32>
             %c = "onnx.Transpose"(%b) {perm = [0 : i64, 2 : i64, 1 : i64, 3 : i64, 4 : i64]}
                 : (tensor<*xf32>) -> tensor<*xf32>
             %d = "onnx.Reshape"(%c, %j) : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
             %y = "onnx.GlobalMaxPool"(%d) : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<1x4x2x2xf32>) -> tensor<1x6x1x1xf32> attributes {model.input_dims = [[1, 4, 2, 2]], model.input_names = ["x"], model.output_names = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<6x2x1x1xf32>} : () -> tensor<6x2x1x1xf32>
              %1 = "graph.transpose"(%arg0) {perm = [0, 2, 3, 1]} : (tensor<1x4x2x2xf32>) -> tensor<1x2x2x4xf32>
              %2 = "graph.none"() : () -> none
              %3 = "cpu.fused.conv"(%1, %0, %2, %2, %2, %2, %2, %2) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 2, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<1x2x2x4xf32>, tensor<6x2x1x1xf32>, none, none, none, none, none, none) -> tensor<1x2x2x6xf32>
              %4 = "cpu.fused.near"(%3) {alpha = 1.000000e-03 : f32, beta = 7.500000e-01 : f32, bias = 1.000000e+00 : f32, size = 3} : (tensor<1x2x2x6xf32>) -> tensor<1x2x2x6xf32>
              %5 = "cpu.fused.shuffle"(%4) {groups = 2} : (tensor<1x2x2x6xf32>) -> tensor<1x2x2x6xf32>
              %6 = "cpu.fused.pool"(%5) {dilations = [1, 1], kernel = [0, 0], kind = "max", pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<1x2x2x6xf32>) -> tensor<1x1x1x6xf32>
              %7 = "onnx.Constant"() {value = dense<[0, 6, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
              %8 = "graph.reshape"(%6, %7) : (tensor<1x1x1x6xf32>, tensor<4xi64>) -> tensor<1x6x1x1xf32>
              tfrt.return %8 : tensor<1x6x1x1xf32>
            }
        "#]],
    );
}

#[test]
fn activations_of_any_kind_keep_channels_last() {
    let activations = [
        "%h = \"onnx.HardSwish\"(%a) : (T) -> T",
        "%g = \"onnx.HardSigmoid\"(%a) {alpha = 0.166666667 : f32} : (T) -> T
         %h = \"onnx.Mul\"(%a, %g) : (T, T) -> T",
        "%h = \"onnx.Mish\"(%a) : (T) -> T",
        "%h = \"onnx.Swish\"(%a) : (T) -> T",
        "%g = \"onnx.Sin\"(%a) : (T) -> T
         %h = \"onnx.PRelu\"(%g, %p) : (T, tensor<8x1x1xf32>) -> T",
        "%n = \"onnx.IsNaN\"(%a) : (T) -> B
         %h = \"onnx.Where\"(%n, %zero, %a) : (B, tensor<f32>, T) -> T",
        "%n = \"onnx.Cast\"(%a) {to = 10 : i64} : (T) -> tensor<*xf16>
         %g = \"onnx.Celu\"(%n) : (tensor<*xf16>) -> tensor<*xf16>
         %h = \"onnx.Cast\"(%g) {to = 1 : i64} : (tensor<*xf16>) -> T",
    ];
    for activation in activations {
        let text = format!(
            "func.func @main(%x: tensor<1x8x8x8xf32>) -> T attributes {{
                 model.input_names = [\"x\"], model.output_names = [\"y\"],
                 model.input_dims = [[1 : i64, 8 : i64, 8 : i64, 8 : i64]]}} {{
               %w = \"onnx.Constant\"() {{value = dense<1.0> : tensor<8x8x1x1xf32>}} : () -> tensor<8x8x1x1xf32>
               %p = \"onnx.Constant\"() {{value = dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]], [[6.0]], [[7.0]], [[8.0]]]> : tensor<8x1x1xf32>}} : () -> tensor<8x1x1xf32>
               %zero = \"onnx.Constant\"() {{value = dense<0.0> : tensor<f32>}} : () -> tensor<f32>
               %a = \"onnx.Conv\"(%x, %w) : (tensor<1x8x8x8xf32>, tensor<8x8x1x1xf32>) -> T
               {activation}
               %y = \"onnx.Conv\"(%h, %w) : (T, tensor<8x8x1x1xf32>) -> T
               tfrt.return %y : T
             }}"
        );
        let text = text
            .replace("B)", "tensor<*xi1>)")
            .replace("(B", "(tensor<*xi1>");
        let text = text.replace("-> B", "-> tensor<*xi1>");
        let text = text
            .replace("T)", "tensor<*xf32>)")
            .replace("T,", "tensor<*xf32>,");
        let text = text
            .replace("-> T", "-> tensor<*xf32>")
            .replace(": T", ": tensor<*xf32>");
        let text = text.replace("(T", "(tensor<*xf32>");
        let found = run("onnx-to-graph,graph-infer,graph-layout,graph-fuse", &text);
        let count = |word: &str| found.matches(word).count();
        // One where the image comes in, one where it ends.
        assert_eq!(count("\"graph.transpose\""), 2, "{found}");
        // An activation of one operand is done by the convolution before it.
        let is_of_two = activation.contains("PRelu");
        assert_eq!(
            count("\"cpu.fused.elementwise\""),
            usize::from(is_of_two),
            "{found}"
        );
        assert_eq!(count("epilogue = [\""), usize::from(!is_of_two), "{found}");
    }
}
