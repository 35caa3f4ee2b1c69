use expect_test::expect;

use crate::passes::testing::check;

/// Tests that what waits for the host is of another section, that short sections stay as they are, and that constants are
/// told apart from what each call brings.
#[test]
fn sections_end_where_the_host_is_asked() {
    let add = |n: usize, first: &str, from: &str| {
        let line = |i: usize| {
            let (own, before) = (
                format!("%{from}{i}"),
                format!("%{from}{}", i.wrapping_sub(1)),
            );
            let before = if i == 0 { first } else { &before };
            format!(
                "{own} = \"graph.add\"({before}, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n"
            )
        };
        (0..n).map(line).collect::<String>()
    };
    let text = format!(
        r#"func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
             attributes {{model.input_names = ["x"], model.output_names = ["y", "z"]}} {{
             %two = "onnx.Constant"() {{value = dense<2.0> : tensor<f32>}} : () -> tensor<f32>
             {}
             %t = "graph.tanh"(%a8) : (tensor<4xf32>) -> tensor<4xf32>
             {}
             tfrt.return %a8, %b1 : tensor<4xf32>, tensor<4xf32>
           }}"#,
        add(9, "%x", "a"),
        add(2, "%t", "b"),
    );
    check(
        "graph-place,graph-section,graph-lower",
        &text,
        expect![[r#"
            func.func private @main.constants() -> !t.tensor {
              %0 = "cpu.onnx.Constant"() {value = dense<2.000000e+00> : tensor<f32>} : () -> !t.tensor
              %1 = "cpu.graph.copy"(%0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              tfrt.return %1 : !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor) -> (!t.tensor, !t.tensor) attributes {model.inputs = [["x", tensor<4xf32>, [4]]], model.outputs = [["y", tensor<4xf32>, [4]], ["z", tensor<4xf32>, [4]]]} {
              %0 = "cpu.graph.copy"(%arg0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %1 = "fake.graph.section"(%0, %arg1) {callee = @main.section0, device = "FAKE:0", fixed = [1]} : (!t.tensor, !t.tensor) -> !t.tensor
              %2 = "cpu.graph.copy"(%1) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              %3 = "cpu.graph.tanh"(%2) {attributes = []} : (!t.tensor) -> !t.tensor
              %4 = "cpu.graph.copy"(%3) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
              %5 = "fake.graph.add"(%4, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %6 = "fake.graph.add"(%5, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %7 = "cpu.graph.copy"(%6) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
              tfrt.return %2, %7 : !t.tensor, !t.tensor
            }
            func.func private @main.section0(%arg0: !t.tensor, %arg1: !t.tensor) -> !t.tensor {
              %0 = "fake.graph.add"(%arg0, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %1 = "fake.graph.add"(%0, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %2 = "fake.graph.add"(%1, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %3 = "fake.graph.add"(%2, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %4 = "fake.graph.add"(%3, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %5 = "fake.graph.add"(%4, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %6 = "fake.graph.add"(%5, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %7 = "fake.graph.add"(%6, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              %8 = "fake.graph.add"(%7, %arg1) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %8 : !t.tensor
            }
        "#]],
    );
}
