use expect_test::expect;

use crate::passes::testing::check;

#[test]
fn constants_of_other_types_stay_as_they_are() {
    check(
        "legalize,graph-prepare",
        r#"func.func @main(%x: tensor<1x2xf16>, %y: tensor<1x2xf32>) -> (tensor<*xf16>, tensor<*xf32>)
             attributes {model.input_names = ["x", "y"], model.output_names = ["a", "b"]} {
             %v = "onnx.Constant"() {value = dense<0.5> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
             %w = "onnx.Constant"() {value = dense<0.5> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
             %a = "graph.dot"(%x, %v) : (tensor<1x2xf16>, tensor<2x2xf16>) -> tensor<*xf16>
             %b = "graph.dot"(%y, %w) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<*xf32>
             tfrt.return %a, %b : tensor<*xf16>, tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<1x2xf16>, %arg1: tensor<1x2xf32>) -> (tensor<*xf16>, tensor<*xf32>) attributes {model.input_names = ["x", "y"], model.output_names = ["a", "b"]} {
              %0 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
              %1 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
              %2 = "graph.none"() : () -> none
              %3 = "graph.prepare"(%2, %0) {op = "dot"} : (none, tensor<2x2xf16>) -> !graph.prepared
              %4 = "graph.dot"(%arg0, %3) : (tensor<1x2xf16>, !graph.prepared) -> tensor<*xf16>
              %5 = "graph.dot"(%arg1, %1) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<*xf32>
              tfrt.return %4, %5 : tensor<*xf16>, tensor<*xf32>
            }
        "#]],
    );
}

/// Tests that a prepared node keeps its device, and that its types tell which of the device's kernels prepares.
#[test]
fn constants_of_placed_nodes_are_prepared_where_they_are() {
    check(
        "legalize,graph-place,graph-prepare,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
             %two = "onnx.Constant"() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
             %0 = "graph.add"(%x, %two) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             %y = "graph.add"(%two, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             tfrt.return %y : tensor<4xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> (!t.tensor, !graph.prepared) {
              %0 = "cpu.onnx.Constant"() {value = dense<2.000000e+00> : tensor<4xf32>} : () -> !t.tensor
              %1 = "cpu.graph.copy"(%0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %2 = "cpu.onnx.NoValue"() : () -> !t.none
              %3 = "fake.graph.prepare"(%2, %1) {attributes = [], device = "FAKE:0", op = "add", types = [1, 1]} : (!t.none, !t.tensor) -> !graph.prepared
              tfrt.return %1, %3 : !t.tensor, !graph.prepared
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !graph.prepared) -> !t.tensor attributes {model.inputs = [["x", tensor<4xf32>, [4]]], model.outputs = [["y", tensor<4xf32>, [4]]]} {
              %0 = "cpu.graph.copy"(%arg0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %1 = "fake.graph.add"(%0, %arg2) {attributes = [], device = "FAKE:0"} : (!t.tensor, !graph.prepared) -> !t.tensor
              %2 = "fake.graph.add"(%arg1, %1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %3 = "cpu.graph.copy"(%2) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              tfrt.return %3 : !t.tensor
            }
        "#]],
    );
}

/// Tests preparation, also of constants in regions; an operand that is no constant stays as it is.
#[test]
fn constants_become_what_kernels_prepare() {
    check(
        "legalize,graph-prepare",
        r#"func.func @main(%x: tensor<5x1x3xf32>, %v: tensor<1x8x2xf32>, %c: tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
             attributes {model.input_names = ["x", "v", "c"], model.output_names = ["a", "b", "d"]} {
             %w = "onnx.Constant"() {value = dense<0.5> : tensor<1x8x3xf32>} : () -> tensor<1x8x3xf32>
             %r = "onnx.Constant"() {value = dense<0.25> : tensor<1x8x2xf32>} : () -> tensor<1x8x2xf32>
             %none = "graph.none"() : () -> none
             %h = "onnx.Constant"() {value = dense<1.0> : tensor<1x1x2xf32>} : () -> tensor<1x1x2xf32>
             %a = "graph.rnn"(%x, %w, %r, %none, %none, %h) {kind = "lstm"} : (tensor<5x1x3xf32>, tensor<1x8x3xf32>, tensor<1x8x2xf32>, none, none, tensor<1x1x2xf32>) -> tensor<*xf32>
             %b = "graph.rnn"(%x, %w, %v) {kind = "lstm"} : (tensor<5x1x3xf32>, tensor<1x8x3xf32>, tensor<1x8x2xf32>) -> tensor<*xf32>
             %d = "graph.if"(%c) ({
               "graph.yield"(%x) : (tensor<5x1x3xf32>) -> ()
             }, {
               %i = "onnx.Constant"() {value = dense<0.125> : tensor<1x8x3xf32>} : () -> tensor<1x8x3xf32>
               %e = "graph.rnn"(%x, %i, %r) {kind = "lstm"} : (tensor<5x1x3xf32>, tensor<1x8x3xf32>, tensor<1x8x2xf32>) -> tensor<*xf32>
               "graph.yield"(%e) : (tensor<*xf32>) -> ()
             }) : (tensor<i1>) -> tensor<*xf32>
             tfrt.return %a, %b, %d : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<5x1x3xf32>, %arg1: tensor<1x8x2xf32>, %arg2: tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) attributes {model.input_names = ["x", "v", "c"], model.output_names = ["a", "b", "d"]} {
              %0 = "onnx.Constant"() {value = dense<1.250000e-01> : tensor<1x8x3xf32>} : () -> tensor<1x8x3xf32>
              %1 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<1x8x3xf32>} : () -> tensor<1x8x3xf32>
              %2 = "onnx.Constant"() {value = dense<2.500000e-01> : tensor<1x8x2xf32>} : () -> tensor<1x8x2xf32>
              %3 = "graph.none"() : () -> none
              %4 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<1x1x2xf32>} : () -> tensor<1x1x2xf32>
              %5 = "graph.none"() : () -> none
              %6 = "graph.prepare"(%5, %1, %2) {kind = "lstm", op = "rnn"} : (none, tensor<1x8x3xf32>, tensor<1x8x2xf32>) -> !graph.prepared
              %7 = "graph.rnn"(%arg0, %3, %4, %6) {kind = "lstm"} : (tensor<5x1x3xf32>, none, tensor<1x1x2xf32>, !graph.prepared) -> tensor<*xf32>
              %8 = "graph.rnn"(%arg0, %1, %arg1) {kind = "lstm"} : (tensor<5x1x3xf32>, tensor<1x8x3xf32>, tensor<1x8x2xf32>) -> tensor<*xf32>
              %9 = "graph.none"() : () -> none
              %10 = "graph.prepare"(%9, %0, %2) {kind = "lstm", op = "rnn"} : (none, tensor<1x8x3xf32>, tensor<1x8x2xf32>) -> !graph.prepared
              %11 = "onnx.If"(%arg2) ({
                %12 = "graph.rnn"(%arg0, %10) {kind = "lstm"} : (tensor<5x1x3xf32>, !graph.prepared) -> tensor<*xf32>
                "graph.yield"(%12) : (tensor<*xf32>) -> ()
              }, {
                "graph.yield"(%arg0) : (tensor<5x1x3xf32>) -> ()
              }) {onnx.opset = 27} : (tensor<i1>) -> tensor<*xf32>
              tfrt.return %7, %8, %11 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
            }
        "#]],
    );
}

/// Tests that weights of products and convolutions are marked, and nothing else.
#[test]
fn factors_of_products_are_rounded_by_the_weights() {
    check(
        "legalize,onnx-upgrade,onnx-to-graph,graph-infer,graph-layout,graph-fuse,graph-prepare,graph-bf16",
        r#"func.func @main(%x: tensor<4x2xf32>, %y: tensor<4x2xf16>) -> (tensor<*xf32>, tensor<*xf16>)
             attributes {model.input_names = ["x", "y"], model.output_names = ["a", "b"]} {
             %v = "onnx.Constant"() {value = dense<0.5> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
             %w = "onnx.Constant"() {value = dense<0.5> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
             %a = "onnx.MatMul"(%x, %v) : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<*xf32>
             %b = "onnx.MatMul"(%y, %w) : (tensor<4x2xf16>, tensor<2x2xf16>) -> tensor<*xf16>
             tfrt.return %a, %b : tensor<*xf32>, tensor<*xf16>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf16>) -> (tensor<4x2xf32>, tensor<4x2xf16>) attributes {model.input_names = ["x", "y"], model.output_names = ["a", "b"]} {
              %0 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
              %1 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
              %2 = "graph.none"() : () -> none
              %3 = "graph.prepare"(%2, %0) {epilogue = [], op = "fused.matmul", precision = "bf16", transposed = 0} : (none, tensor<2x2xf32>) -> !graph.prepared
              %4 = "cpu.fused.matmul"(%arg0, %3) {epilogue = [], transposed = 0} : (tensor<4x2xf32>, !graph.prepared) -> tensor<4x2xf32>
              %5 = "graph.none"() : () -> none
              %6 = "graph.prepare"(%5, %1) {op = "dot"} : (none, tensor<2x2xf16>) -> !graph.prepared
              %7 = "graph.dot"(%arg1, %6) : (tensor<4x2xf16>, !graph.prepared) -> tensor<4x2xf16>
              tfrt.return %4, %7 : tensor<4x2xf32>, tensor<4x2xf16>
            }
        "#]],
    );
}
