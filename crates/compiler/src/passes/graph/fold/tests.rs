//! Tests of graphs of which much is known when they are compiled.

use expect_test::expect;

use crate::passes::testing::check;

#[test]
fn constants_are_written_with_the_shape_that_they_are_used_with() {
    check(
        "onnx-upgrade,onnx-to-graph,graph-infer,graph-fold",
        r#"module attributes {onnx.opset = 9 : i64} {
           func.func @main(%x: tensor<2x3x4x4xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[2 : i64, 3 : i64, 4 : i64, 4 : i64]]} {
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
            func.func @main(%arg0: tensor<2x3x4x4xf32>) -> tensor<2x3x16xf32> attributes {model.input_dims = [[2, 3, 4, 4]], model.input_names = ["x"], model.output_names = ["y"]} {
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

#[test]
fn extents_that_are_known_are_constants() {
    let text = |dims: &str, ty: &str, stated: &str| {
        format!(
            r#"module attributes {{onnx.opset = 17 : i64}} {{
           func.func @main(%x: {ty}, %z: tensor<*xf32>) -> tensor<*xf32> attributes {{
               model.input_names = ["x", "z"], model.output_names = ["y"], model.input_dims = [{dims}, unit]}} {{
             %at = "onnx.Constant"() {{value = dense<[1, 0]> : tensor<2xi64>}} : () -> tensor<2xi64>
             %rest = "onnx.Constant"() {{value = dense<-1> : tensor<1xi64>}} : () -> tensor<1xi64>
             %a = "onnx.Relu"(%z) : (tensor<*xf32>) -> {stated}
             %s = "onnx.Shape"(%x) : ({ty}) -> tensor<*xi64>
             %t = "onnx.Shape"(%a) : ({stated}) -> tensor<*xi64>
             %g = "onnx.Gather"(%s, %at) : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
             %to = "onnx.Concat"(%g, %rest) {{axis = 0 : i64}} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
             %r = "onnx.Reshape"(%x, %to) : ({ty}, tensor<*xi64>) -> tensor<*xf32>
             %y = "onnx.Expand"(%r, %t) : (tensor<*xf32>, tensor<*xi64>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }} }}"#
        )
    };
    let passes = "onnx-upgrade,onnx-to-graph,graph-infer,graph-fold";
    let shown = crate::passes::testing::run(
        passes,
        &text("[2, 3, 4]", "tensor<2x3x4xf32>", "tensor<*xf32>"),
    );
    assert!(shown.contains("dense<[3, 2, -1]>"), "{shown}");
    assert_eq!(shown.matches("graph.shape").count(), 1, "{shown}");
    assert!(!shown.contains("graph.gather"), "{shown}");
    // Extents that any call may have; what a model states of what it calculates may be wrong.
    let shown = crate::passes::testing::run(
        passes,
        &text("[\"N\", 3, 4]", "tensor<?x3x4xf32>", "tensor<1x1x1xf32>"),
    );
    assert_eq!(shown.matches("graph.shape").count(), 2, "{shown}");
}

#[test]
fn a_function_gives_the_type_of_the_value_that_takes_a_results_place() {
    check(
        "graph-fold",
        r#"func.func @main(%x: tensor<?xf32>) -> tensor<4xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
             %y = "graph.cast"(%x) {to = f32} : (tensor<?xf32>) -> tensor<4xf32>
             tfrt.return %y : tensor<4xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
              tfrt.return %arg0 : tensor<?xf32>
            }
        "#]],
    );
}
