//! Networks of convolutions, with their channels first and last.

use expect_test::expect;

use crate::passes::testing::check;

#[test]
fn convolutions_stay_in_their_layout_until_somebody_cares() {
    check(
        "onnx-shapes,onnx-layout,onnx-fuse",
        r#"func.func @main(%x: tensor<?x3x8x8xf32>) -> tensor<*xf32> attributes {
               onnx.inputs = ["x"], onnx.outputs = ["y"], onnx.input_dims = [["N", 3 : i64, 8 : i64, 8 : i64]]} {
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
            func.func @main(%arg0: tensor<?x3x8x8xf32>) -> tensor<?x32xf32> attributes {onnx.input_dims = [["N", 3, 8, 8]], onnx.inputs = ["x"], onnx.outputs = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<16x3x3x3xf32>} : () -> tensor<16x3x3x3xf32>
              %1 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<16x16x1x1xf32>} : () -> tensor<16x16x1x1xf32>
              %2 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<16xf32>} : () -> tensor<16xf32>
              %3 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<16xf32>} : () -> tensor<16xf32>
              %4 = "onnx.Transpose"(%arg0) {onnx.opset = 13, perm = [0, 2, 3, 1]} : (tensor<?x3x8x8xf32>) -> tensor<?x8x8x3xf32>
              %5 = "cpu.pack.conv"(%0, %2, %3, %3, %2) {dilations = [1, 1], epsilon = 1.000000e-05 : f32, groups = 1, strides = [1, 1]} : (tensor<16x3x3x3xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> !cpu.graph.filter
              %6 = "cpu.graph.conv"(%4, %5) {activation = "relu", dilations = [1, 1], onnx.shapes = [["N", 8, 8, 16]], pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<?x8x8x3xf32>, !cpu.graph.filter) -> tensor<?x8x8x16xf32>
              %7 = "cpu.pack.conv"(%1, %3) {dilations = [1, 1], epsilon = 0.000000e+00 : f32, groups = 1, strides = [1, 1]} : (tensor<16x16x1x1xf32>, tensor<16xf32>) -> !cpu.graph.filter
              %8 = "cpu.graph.conv"(%6, %7, %6) {activation = "relu", dilations = [1, 1], onnx.shapes = [["N", 8, 8, 16]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x8x8x16xf32>, !cpu.graph.filter, tensor<?x8x8x16xf32>) -> tensor<?x8x8x16xf32>
              %9 = "onnx.Concat"(%6, %8) {axis = 3, onnx.shapes = [["N", 8, 8, 32]]} : (tensor<?x8x8x16xf32>, tensor<?x8x8x16xf32>) -> tensor<?x8x8x32xf32>
              %10 = "cpu.graph.pool"(%9) {dilations = [1, 1], kernel = [2, 2], kind = "max", onnx.shapes = [["N", 4, 4, 32]], pads = [0, 0, 0, 0], strides = [2, 2]} : (tensor<?x8x8x32xf32>) -> tensor<?x4x4x32xf32>
              %11 = "cpu.graph.pool"(%10) {dilations = [1, 1], kernel = [0, 0], kind = "mean", onnx.shapes = [["N", 1, 1, 32]], pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<?x4x4x32xf32>) -> tensor<?x1x1x32xf32>
              %12 = "onnx.Constant"() {value = dense<[0, 32, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
              %13 = "onnx.Reshape"(%11, %12) {onnx.opset = 13} : (tensor<?x1x1x32xf32>, tensor<4xi64>) -> tensor<?x32x1x1xf32>
              %14 = "onnx.Flatten"(%13) {onnx.shapes = [["N", 32]]} : (tensor<?x32x1x1xf32>) -> tensor<?x32xf32>
              tfrt.return %14 : tensor<?x32xf32>
            }
        "#]],
    );
}
