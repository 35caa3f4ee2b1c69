//! What is known when a graph is compiled.

use expect_test::expect;

use crate::passes::testing::check;

#[test]
fn constants_are_written_with_the_shape_that_they_are_used_with() {
    check(
        "onnx-upgrade,onnx-to-graph,onnx-shapes,onnx-fold",
        r#"module attributes {onnx.opset = 9 : i64} {
           func.func @main(%x: tensor<2x3x4x4xf32>) -> tensor<*xf32> attributes {
               onnx.inputs = ["x"], onnx.outputs = ["y"], onnx.input_dims = [[2 : i64, 3 : i64, 4 : i64, 4 : i64]]} {
             %b = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
             %h = "onnx.Constant"() {value = dense<0.5> : tensor<6xf32>} : () -> tensor<6xf32>
             %to = "onnx.Constant"() {value = dense<[2, -1, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
             %n = "onnx.Constant"() {value = dense<[0, 0, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
             %u = "onnx.Unsqueeze"(%b) {axes = [1 : i64]} : (tensor<3xf32>) -> tensor<*xf32>
             %v = "onnx.Unsqueeze"(%u) {axes = [2 : i64]} : (tensor<*xf32>) -> tensor<*xf32>
             %r = "onnx.Reshape"(%h, %to) : (tensor<6xf32>, tensor<4xi64>) -> tensor<*xf32>
             %y = "onnx.Mul"(%x, %v) : (tensor<2x3x4x4xf32>, tensor<*xf32>) -> tensor<*xf32>
             %z = "onnx.Add"(%y, %r) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %f = "onnx.Reshape"(%z, %n) : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
             tfrt.return %f : tensor<*xf32>
           } }"#,
        expect![[r#"
            module attributes {onnx.opset = 9} {
            func.func @main(%arg0: tensor<2x3x4x4xf32>) -> tensor<2x3x16xf32> attributes {onnx.input_dims = [[2, 3, 4, 4]], onnx.inputs = ["x"], onnx.outputs = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<[0, 0, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
              %1 = "onnx.Constant"() {value = dense<[[[1.000000e+00]], [[2.000000e+00]], [[3.000000e+00]]]> : tensor<3x1x1xf32>} : () -> tensor<3x1x1xf32>
              %2 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<2x3x1x1xf32>} : () -> tensor<2x3x1x1xf32>
              %3 = "graph.mul"(%arg0, %1) : (tensor<2x3x4x4xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
              %4 = "graph.add"(%3, %2) : (tensor<2x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x4x4xf32>
              %5 = "graph.reshape"(%4, %0) : (tensor<2x3x4x4xf32>, tensor<3xi64>) -> tensor<2x3x16xf32>
              tfrt.return %5 : tensor<2x3x16xf32>
            }
        "#]],
    );
}
