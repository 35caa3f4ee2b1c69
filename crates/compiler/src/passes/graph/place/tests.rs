use expect_test::expect;

use crate::passes::testing::{check, run};

/// Tests that copies are made once on each side; a constant is copied, too, and values that a region uses are on the
/// host.
#[test]
fn nodes_go_where_kernels_are() {
    check(
        "graph-place,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>, %n: tensor<4xi64>, %c: tensor<i1>) -> (tensor<4xf32>, tensor<4xi64>, tensor<4xf32>)
             attributes {model.input_names = ["x", "n", "c"], model.output_names = ["a", "b", "d"]} {
             %two = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
             %0 = "graph.add"(%x, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
             %1 = "graph.add"(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             %2 = "graph.tanh"(%1) : (tensor<4xf32>) -> tensor<4xf32>
             %3 = "graph.add"(%2, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             %m = "graph.add"(%n, %n) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
             %d = "onnx.If"(%c) ({
               "graph.yield"(%1) : (tensor<4xf32>) -> ()
             }, {
               "graph.yield"(%x) : (tensor<4xf32>) -> ()
             }) : (tensor<i1>) -> tensor<4xf32>
             tfrt.return %3, %m, %d : tensor<4xf32>, tensor<4xi64>, tensor<4xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> !t.tensor {
              %0 = "cpu.onnx.Constant"() {value = dense<2.000000e+00> : tensor<f32>} : () -> !t.tensor
              %1 = "cpu.graph.copy"(%0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              tfrt.return %1 : !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor, %arg3: !t.tensor) -> (!t.tensor, !t.tensor, !t.tensor) attributes {model.inputs = [["x", tensor<4xf32>, [4]], ["n", tensor<4xi64>, [4]], ["c", tensor<i1>, []]], model.outputs = [["a", tensor<4xf32>, [4]], ["b", tensor<4xi64>, [4]], ["d", tensor<4xf32>, [4]]]} {
              %0 = "cpu.graph.copy"(%arg0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %1 = "fake.graph.add"(%0, %arg3) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %2 = "fake.graph.add"(%1, %0) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %3 = "cpu.graph.copy"(%2) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              %4 = "cpu.graph.tanh"(%3) {attributes = []} : (!t.tensor) -> !t.tensor
              %5 = "cpu.graph.copy"(%4) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %6 = "fake.graph.add"(%5, %2) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %7 = "cpu.graph.add"(%arg1, %arg1) {attributes = []} : (!t.tensor, !t.tensor) -> !t.tensor
              %8 = "cpu.onnx.If"(%arg2, %3, %arg0) {attributes = ["captured", 2], else_branch = @main.if0.else_branch, opset = 1, then_branch = @main.if0.then_branch} : (!t.tensor, !t.tensor, !t.tensor) -> !t.tensor
              %9 = "cpu.graph.copy"(%6) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              tfrt.return %9, %7, %8 : !t.tensor, !t.tensor, !t.tensor
            }
            func.func private @main.if0.else_branch(%arg0: !t.tensor, %arg1: !t.tensor) -> !t.tensor {
              tfrt.return %arg0 : !t.tensor
            }
            func.func private @main.if0.then_branch(%arg0: !t.tensor, %arg1: !t.tensor) -> !t.tensor {
              tfrt.return %arg1 : !t.tensor
            }
        "#]],
    );
}

/// Tests that what is on the device is not copied for its extents.
#[test]
fn extents_are_asked_for_where_a_tensor_is() {
    let text = run(
        "graph-place,graph-lower",
        r#"func.func @main(%x: tensor<?x4xf32>) -> tensor<2xi64>
             attributes {model.input_names = ["x"], model.output_names = ["y"]} {
             %0 = "graph.add"(%x, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
             %y = "graph.shape"(%0) : (tensor<?x4xf32>) -> tensor<2xi64>
             tfrt.return %y : tensor<2xi64>
           }"#,
    );
    let kernels = text.lines().filter_map(|line| line.split('"').nth(1));
    let kernels: Vec<&str> = kernels.filter(|name| name.contains(".graph.")).collect();
    assert_eq!(
        kernels,
        ["cpu.graph.copy", "fake.graph.add", "cpu.graph.shape"],
        "{text}"
    );
}

/// Tests that a kernel refuses a node by its attributes and by the number of its results, and that a constant that stays in
/// a file is copied when the model is opened.
#[test]
fn what_a_kernel_refuses_stays_on_the_host() {
    let text = run(
        "graph-place,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>)
             attributes {model.input_names = ["x"], model.output_names = ["a", "b", "c", "d"]} {
             %w = "graph.external"() {dims = [4 : i64], element = "f32", file = "w", id = "", offset = 0 : i64} : () -> tensor<4xf32>
             %s = "graph.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             %a = "graph.reduce"(%s) {kind = "sum", keep = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
             %b = "graph.reduce"(%x) {kind = "log_sum_exp", keep = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
             %c = "graph.norm"(%x) {kind = "layer"} : (tensor<4xf32>) -> tensor<4xf32>
             %d, %m = "graph.norm"(%x) {kind = "layer"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<1xf32>)
             tfrt.return %a, %b, %c, %d : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
           }"#,
    );
    let expected = [
        "cpu.onnx.External",
        "cpu.graph.copy",
        // Here the function begins that is called.
        "cpu.graph.copy",
        "fake.graph.add",
        "fake.graph.reduce",
        "cpu.graph.reduce",
        "fake.graph.norm",
        "cpu.graph.norm",
        "cpu.graph.copy",
        "cpu.graph.copy",
    ];
    assert_eq!(kernels_of(&text), expected, "{text}");
}

/// Returns the kernels that a function is lowered to, in their order.
fn kernels_of(text: &str) -> Vec<&str> {
    let kernels = text.lines().filter_map(|line| line.split('"').nth(1));
    kernels
        .filter(|name| name.starts_with("cpu.") || name.starts_with("fake."))
        .collect()
}

/// Tests that extents stay on the host for a kernel that reads them there, and are brought back where they are made on the
/// device.
#[test]
fn extents_are_read_on_the_host() {
    let text = run(
        "graph-place,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>, %n: tensor<2xi64>) -> (tensor<?x?xf32>, tensor<?x?xf32>)
             attributes {model.input_names = ["x", "n"], model.output_names = ["a", "b"]} {
             %a = "graph.reshape"(%x, %n) : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
             %s = "graph.cast"(%x) {to = i64} : (tensor<4xf32>) -> tensor<4xi64>
             %b = "graph.reshape"(%x, %s) : (tensor<4xf32>, tensor<4xi64>) -> tensor<?x?xf32>
             tfrt.return %a, %b : tensor<?x?xf32>, tensor<?x?xf32>
           }"#,
    );
    let expected = [
        "cpu.graph.copy",
        "fake.graph.reshape",
        "fake.graph.cast",
        "cpu.graph.copy",
        "fake.graph.reshape",
        "cpu.graph.copy",
        "cpu.graph.copy",
    ];
    assert_eq!(kernels_of(&text), expected, "{text}");
}

/// Tests that integers of the host are calculated there, and those of the device on it.
#[test]
fn integers_are_calculated_where_they_are() {
    let text = run(
        "graph-place,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>, %n: tensor<2xi32>) -> (tensor<2xi64>, tensor<4xi64>)
             attributes {model.input_names = ["x", "n"], model.output_names = ["a", "b"]} {
             %a = "graph.cast"(%n) {to = i64} : (tensor<2xi32>) -> tensor<2xi64>
             %s = "graph.cast"(%x) {to = i32} : (tensor<4xf32>) -> tensor<4xi32>
             %b = "graph.cast"(%s) {to = i64} : (tensor<4xi32>) -> tensor<4xi64>
             tfrt.return %a, %b : tensor<2xi64>, tensor<4xi64>
           }"#,
    );
    let expected = [
        "cpu.graph.cast",
        "cpu.graph.copy",
        "fake.graph.cast",
        "fake.graph.cast",
        "cpu.graph.copy",
    ];
    assert_eq!(kernels_of(&text), expected, "{text}");
}

/// Tests that operations on a resource stay on the host, in the order of their chain, even if nodes between them are
/// placed on a device.
#[test]
fn resources_and_chains_stay_on_the_host() {
    check(
        "graph-place,graph-prepare,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
             %c, %c0 = "my.make"() : () -> (!my.counter, !tfrt.chain)
             %0 = "graph.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             %c1 = "my.count"(%c, %0, %c0) : (!my.counter, tensor<4xf32>, !tfrt.chain) -> !tfrt.chain
             %1, %c2 = "my.read"(%c, %c1) : (!my.counter, !tfrt.chain) -> (tensor<4xf32>, !tfrt.chain)
             %y = "graph.add"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             tfrt.return %y : tensor<4xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: !t.tensor) -> !t.tensor attributes {model.inputs = [["x", tensor<4xf32>, [4]]], model.outputs = [["y", tensor<4xf32>, [4]]]} {
              %0:2 = "my.make"() : () -> (!my.counter, !tfrt.chain)
              %1 = "cpu.graph.copy"(%arg0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %2 = "fake.graph.add"(%1, %1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %3 = "cpu.graph.copy"(%2) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              %4 = "my.count"(%0#0, %3, %0#1) : (!my.counter, !t.tensor, !tfrt.chain) -> !tfrt.chain
              %5:2 = "my.read"(%0#0, %4) : (!my.counter, !tfrt.chain) -> (!t.tensor, !tfrt.chain)
              %6 = "cpu.graph.copy"(%5#0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %7 = "fake.graph.add"(%6, %2) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %8 = "cpu.graph.copy"(%7) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              tfrt.return %8 : !t.tensor
            }
        "#]],
    );
}
