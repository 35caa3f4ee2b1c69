//! Tests of graphs and the programs that they become.

use expect_test::expect;

use crate::passes::testing::check;

#[test]
fn operations_become_kernels_and_constants_a_function() {
    check(
        "graph-lower",
        r#"module attributes {onnx.opset = 13 : i64, onnx.opset.ai.onnx.ml = 3 : i64} {
             func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x?xf32>, tensor<?x?xi64>) attributes {
                 model.input_names = ["x"], model.output_names = ["top", "places"], model.input_dims = [["N", 4 : i64]]} {
               %k = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
               %n = "graph.none"() : () -> none
               %c = "onnx.Clip"(%x, %n, %k) : (tensor<?x4xf32>, none, tensor<1xi64>) -> tensor<?x4xf32>
               %m = "onnx.ml.Scaler"(%c) {offset = [0.5 : f32]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
               %v, %i = "onnx.TopK"(%m, %k) {axis = -1 : i64, largest = 1 : i64}
                   : (tensor<?x4xf32>, tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>)
               tfrt.return %v, %i : tensor<?x?xf32>, tensor<?x?xi64>
             }
           }"#,
        expect![[r#"
            func.func private @main.constants() -> !t.tensor {
              %0 = "cpu.onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor) -> (!t.tensor, !t.tensor) attributes {model.inputs = [["x", tensor<?x4xf32>, ["N", 4]]], model.outputs = [["top", tensor<?x?xf32>, ["", ""]], ["places", tensor<?x?xi64>, ["", ""]]]} {
              %0 = "cpu.onnx.NoValue"() : () -> !t.none
              %1 = "cpu.onnx.Clip"(%arg0, %0, %arg1) {attributes = [], opset = 13} : (!t.tensor, !t.none, !t.tensor) -> !t.tensor
              %2 = "cpu.onnx.ml.Scaler"(%1) {attributes = ["offset", [5.000000e-01 : f32]], opset = 3} : (!t.tensor) -> !t.tensor
              %3:2 = "cpu.onnx.TopK"(%2, %arg1) {attributes = ["axis", -1, "largest", 1], opset = 13} : (!t.tensor, !t.tensor) -> (!t.tensor, !t.tensor)
              tfrt.return %3#0, %3#1 : !t.tensor, !t.tensor
            }
        "#]],
    );
}

#[test]
fn regions_become_functions_that_get_what_they_use() {
    check(
        "graph-lower",
        r#"func.func @main(%p: tensor<i1>, %n: tensor<i64>, %x: tensor<3xf32>) -> tensor<*xf32> {
             %s = "onnx.SequenceEmpty"() {onnx.opset = 17 : i64} : () -> !onnx.sequence<tensor<*xf32>>
             %y = "onnx.If"(%p) ({
               %one = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
               %a = "onnx.Add"(%x, %one) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
               "graph.yield"(%a) : (tensor<3xf32>) -> ()
             }, {
               %l:2 = "onnx.Loop"(%n, %p, %s) ({
               ^bb0(%turn: tensor<i64>, %go: tensor<i1>, %all: !onnx.sequence<tensor<*xf32>>):
                 %more = "onnx.SequenceInsert"(%all, %x)
                     : (!onnx.sequence<tensor<*xf32>>, tensor<3xf32>) -> !onnx.sequence<tensor<*xf32>>
                 "graph.yield"(%go, %more, %x) : (tensor<i1>, !onnx.sequence<tensor<*xf32>>, tensor<3xf32>) -> ()
               }) : (tensor<i64>, tensor<i1>, !onnx.sequence<tensor<*xf32>>)
                   -> (!onnx.sequence<tensor<*xf32>>, tensor<*xf32>)
               "graph.yield"(%l#1) : (tensor<*xf32>) -> ()
             }) : (tensor<i1>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> !t.tensor {
              %0 = "cpu.onnx.Constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor, %arg3: !t.tensor) -> !t.tensor attributes {model.inputs = [["input0", tensor<i1>, []], ["input1", tensor<i64>, []], ["input2", tensor<3xf32>, [3]]], model.outputs = [["output0", tensor<*xf32>, unit]]} {
              %0 = "cpu.onnx.SequenceEmpty"() {attributes = [], opset = 17} : () -> !t.sequence
              %1 = "cpu.onnx.If"(%arg0, %arg2, %arg3, %arg1, %arg0, %0) {attributes = ["captured", 5], else_branch = @main.if0.else_branch, opset = 1, then_branch = @main.if0.then_branch} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.sequence) -> !t.tensor
              tfrt.return %1 : !t.tensor
            }
            func.func private @main.if0.else_branch(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor, %arg3: !t.tensor, %arg4: !t.sequence) -> !t.tensor {
              %0 = "cpu.onnx.Add"(%arg0, %arg1) {attributes = [], opset = 1} : (!t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
            func.func private @main.if0.then_branch(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor, %arg3: !t.tensor, %arg4: !t.sequence) -> !t.tensor {
              %0:2 = "cpu.onnx.Loop"(%arg2, %arg3, %arg4, %arg0) {attributes = ["captured", 1, "yields", ["tensor<i1>", "!onnx.sequence<tensor<*xf32>>", "tensor<3xf32>"]], body = @main.loop1.body, opset = 1} : (!t.tensor, !t.tensor, !t.sequence, !t.tensor) -> (!t.sequence, !t.tensor)
              tfrt.return %0#1 : !t.tensor
            }
            func.func private @main.loop1.body(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.sequence, %arg3: !t.tensor) -> (!t.tensor, !t.sequence, !t.tensor) {
              %0 = "cpu.onnx.SequenceInsert"(%arg2, %arg3) {attributes = [], opset = 1} : (!t.sequence, !t.tensor) -> !t.sequence
              tfrt.return %arg1, %0, %arg3 : !t.tensor, !t.sequence, !t.tensor
            }
        "#]],
    );
}

#[test]
fn elements_that_files_do_not_know_are_bytes() {
    check(
        "graph-lower",
        r#"func.func @main() -> (tensor<3xi4>, tensor<2x!onnx.string>) {
             %a = "onnx.Constant"() {value = dense<[1, -1, 7]> : tensor<3xi4>} : () -> tensor<3xi4>
             %b = "onnx.Constant"() {value = ["a", "b"], shape = [2 : i64]} : () -> tensor<2x!onnx.string>
             tfrt.return %a, %b : tensor<3xi4>, tensor<2x!onnx.string>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> (!t.tensor, !t.tensor) {
              %0 = "cpu.onnx.Constant"() {value = dense<[1, -1, 7]> : tensor<3xi4>} : () -> !t.tensor
              %1 = "cpu.onnx.Constant"() {shape = [2], value = ["a", "b"]} : () -> !t.tensor
              tfrt.return %0, %1 : !t.tensor, !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor) -> (!t.tensor, !t.tensor) attributes {model.inputs = [], model.outputs = [["output0", tensor<3xi4>, [3]], ["output1", tensor<2x!onnx.string>, [2]]]} {
              tfrt.return %arg0, %arg1 : !t.tensor, !t.tensor
            }
        "#]],
    );
}
