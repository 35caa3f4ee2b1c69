use expect_test::expect;

use crate::passes::testing::{check, run};

/// Tests that types of arguments are joined over all calls of a function, and types of results inferred for each
/// call.
#[test]
fn types_go_into_functions_and_come_out_of_them() {
    check(
        "legalize,graph-infer",
        r#"func.func @main(%x: tensor<?x4xf32>, %v: tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) attributes {
             model.input_names = ["x", "v"], model.output_names = ["y", "z"], model.input_dims = [["N", 4], [2, 4]]} {
             %y = "graph.call"(%x) {callee = @twice} : (tensor<?x4xf32>) -> tensor<*xf32>
             %z = "graph.call"(%v) {callee = @twice} : (tensor<2x4xf32>) -> tensor<*xf32>
             tfrt.return %y, %z : tensor<*xf32>, tensor<*xf32>
           }
           func.func @twice(%a: tensor<*xf32>) -> tensor<*xf32> {
             %b = "graph.call"(%a) {callee = @inner} : (tensor<*xf32>) -> tensor<*xf32>
             %c = "graph.add"(%b, %a) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %c : tensor<*xf32>
           }
           func.func @inner(%a: tensor<*xf32>) -> tensor<*xf32> {
             %b = "graph.tanh"(%a) : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %b : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<2x4xf32>) -> (tensor<?x4xf32>, tensor<2x4xf32>) attributes {model.input_dims = [["N", 4], [2, 4]], model.input_names = ["x", "v"], model.output_names = ["y", "z"]} {
              %0 = "graph.call"(%arg0) {callee = @twice, model.shapes = [["N", 4]]} : (tensor<?x4xf32>) -> tensor<?x4xf32>
              %1 = "graph.call"(%arg1) {callee = @twice} : (tensor<2x4xf32>) -> tensor<2x4xf32>
              tfrt.return %0, %1 : tensor<?x4xf32>, tensor<2x4xf32>
            }
            func.func @twice(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
              %0 = "graph.call"(%arg0) {callee = @inner} : (tensor<?x4xf32>) -> tensor<?x4xf32>
              %1 = "graph.add"(%0, %arg0) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
              tfrt.return %1 : tensor<?x4xf32>
            }
            func.func @inner(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
              %0 = "graph.tanh"(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
              tfrt.return %0 : tensor<?x4xf32>
            }
        "#]],
    );
}

/// Tests that constants of functions, and operations on them, are calculated once, for the model; calls pass them on.
#[test]
fn what_functions_know_ahead_is_made_by_the_model() {
    check(
        "legalize,graph-prepare,graph-lower",
        r#"func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> attributes {
             model.input_names = ["x", "p"], model.output_names = ["y"]} {
             %0 = "graph.call"(%x) {callee = @scaled} : (tensor<4xf32>) -> tensor<4xf32>
             %y = "graph.if"(%p) ({
               %1 = "graph.call"(%0) {callee = @scaled} : (tensor<4xf32>) -> tensor<4xf32>
               "graph.yield"(%1) : (tensor<4xf32>) -> ()
             }, {
               "graph.yield"(%0) : (tensor<4xf32>) -> ()
             }) : (tensor<i1>) -> tensor<4xf32>
             tfrt.return %y : tensor<4xf32>
           }
           func.func @scaled(%a: tensor<4xf32>) -> tensor<4xf32> {
             %two = "graph.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
             %four = "graph.mul"(%two, %two) : (tensor<f32>, tensor<f32>) -> tensor<f32>
             %b = "graph.mul"(%a, %four) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
             %c = "graph.call"(%b) {callee = @shifted} : (tensor<4xf32>) -> tensor<4xf32>
             tfrt.return %c : tensor<4xf32>
           }
           func.func @shifted(%a: tensor<4xf32>) -> tensor<4xf32> {
             %one = "graph.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
             %b = "graph.add"(%a, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
             tfrt.return %b : tensor<4xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> (!t.tensor, !t.tensor) {
              %0 = "cpu.onnx.Constant"() {value = dense<2.000000e+00> : tensor<f32>} : () -> !t.tensor
              %1 = "cpu.graph.mul"(%0, %0) {attributes = []} : (!t.tensor, !t.tensor) -> !t.tensor
              %2 = "cpu.onnx.Constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> !t.tensor
              tfrt.return %1, %2 : !t.tensor, !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor, %arg3: !t.tensor) -> !t.tensor attributes {model.inputs = [["x", tensor<4xf32>, [4]], ["p", tensor<i1>, []]], model.outputs = [["y", tensor<4xf32>, [4]]]} {
              %0 = tfrt.call @scaled(%arg0, %arg2, %arg3) : (!t.tensor, !t.tensor, !t.tensor) -> !t.tensor
              %1 = "cpu.onnx.If"(%arg1, %0, %arg2, %arg3) {attributes = ["captured", 3], else_branch = @main.if0.else_branch, opset = 27, then_branch = @main.if0.then_branch} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %1 : !t.tensor
            }
            func.func private @main.if0.else_branch(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor) -> !t.tensor {
              tfrt.return %arg0 : !t.tensor
            }
            func.func private @main.if0.then_branch(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor) -> !t.tensor {
              %0 = tfrt.call @scaled(%arg0, %arg1, %arg2) : (!t.tensor, !t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
            func.func private @scaled(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor) -> !t.tensor {
              %0 = "cpu.graph.mul"(%arg0, %arg1) {attributes = []} : (!t.tensor, !t.tensor) -> !t.tensor
              %1 = tfrt.call @shifted(%0, %arg2) : (!t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %1 : !t.tensor
            }
            func.func private @shifted(%arg0: !t.tensor, %arg1: !t.tensor) -> !t.tensor {
              %0 = "cpu.graph.add"(%arg0, %arg1) {attributes = []} : (!t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
        "#]],
    );
}

/// Tests that a function that calls itself compiles like any other; the depth of its calls is known when it runs.
#[test]
fn functions_may_call_one_another_in_circles() {
    check(
        "legalize,graph-infer,graph-fold,graph-infer,graph-layout,graph-fuse,graph-prepare,graph-lower",
        r#"func.func @main(%x: tensor<3xf32>) -> tensor<*xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
             %y = "graph.call"(%x) {callee = @even} : (tensor<3xf32>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }
           func.func @even(%a: tensor<*xf32>) -> tensor<*xf32> {
             %one = "graph.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
             %b = "graph.sub"(%a, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
             %c = "graph.call"(%b) {callee = @odd} : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %c : tensor<*xf32>
           }
           func.func @odd(%a: tensor<*xf32>) -> tensor<*xf32> {
             %c = "graph.call"(%a) {callee = @even} : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %c : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> !graph.prepared {
              %0 = "cpu.graph.prepare"() {attributes = ["inputs", 1, "steps", ["sub a0 1e0"]], op = "fused.elementwise", opset = 27} : () -> !graph.prepared
              tfrt.return %0 : !graph.prepared
            }
            func.func @main(%arg0: !t.tensor, %arg1: !graph.prepared) -> !t.tensor attributes {model.inputs = [["x", tensor<3xf32>, [3]]], model.outputs = [["y", tensor<*xf32>, unit]]} {
              %0 = tfrt.call @even(%arg0, %arg1) : (!t.tensor, !graph.prepared) -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
            func.func private @even(%arg0: !t.tensor, %arg1: !graph.prepared) -> !t.tensor {
              %0 = "cpu.fused.elementwise"(%arg0, %arg1) : (!t.tensor, !graph.prepared) -> !t.tensor
              %1 = tfrt.call @odd(%0, %arg1) : (!t.tensor, !graph.prepared) -> !t.tensor
              tfrt.return %1 : !t.tensor
            }
            func.func private @odd(%arg0: !t.tensor, %arg1: !graph.prepared) -> !t.tensor {
              %0 = tfrt.call @even(%arg0, %arg1) : (!t.tensor, !graph.prepared) -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
        "#]],
    );
}

#[test]
fn what_calls_and_functions_disagree_about_is_told() {
    let text = |call: &str, types: &str, attributes: &str| {
        format!(
            r#"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {{model.input_names = ["x"], model.output_names = ["y"]}} {{
                 %y = "graph.call"{call} : {types}
                 tfrt.return %x : tensor<4xf32>
               }}
               func.func @f(%a: tensor<4xi64>) -> tensor<4xf32> {attributes} {{
                 %b = "graph.cast"(%a) {{to = f32}} : (tensor<4xi64>) -> tensor<4xf32>
                 tfrt.return %b : tensor<4xf32>
               }}"#
        )
    };
    let types = "(tensor<4xf32>) -> tensor<4xf32>";
    for (call, types, attributes, expected) in [
        (
            "(%x)",
            types,
            "",
            "'graph.call' op requires attribute 'callee'",
        ),
        (
            "(%x) {callee = @g}",
            types,
            "",
            "'graph.call' op calls '@g', which is no function of one block",
        ),
        (
            "(%x) {callee = @f}",
            types,
            "",
            "'graph.call' op has tensor<4xf32> as operand 0, '@f' has tensor<4xi64>",
        ),
        (
            "(%x, %x) {callee = @f}",
            "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            "",
            "'graph.call' op has 2 operands, '@f' has 1 of them",
        ),
        (
            "(%x) {callee = @f}",
            types,
            r#"attributes {model.input_names = ["a"]}"#,
            "'graph.call' op calls '@f', which is a model itself: its values have names",
        ),
        (
            "(%x) {callee = @main}",
            types,
            "",
            "'graph.call' op calls '@main', which is a model itself: its values have names",
        ),
    ] {
        let text = text(call, types, attributes);
        let told = run("legalize", &text);
        assert!(told.contains(expected), "{call}: {told}");
    }
}

#[test]
fn calls_of_functions_with_effects_stay_and_others_go() {
    let text = |body: &str| {
        format!(
            r#"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {{model.input_names = ["x"], model.output_names = ["y"]}} {{
                 %y = "graph.call"(%x) {{callee = @f}} : (tensor<4xf32>) -> tensor<4xf32>
                 tfrt.return %x : tensor<4xf32>
               }}
               func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
                 %b = "graph.call"(%a) {{callee = @g}} : (tensor<4xf32>) -> tensor<4xf32>
                 tfrt.return %b : tensor<4xf32>
               }}
               func.func @g(%a: tensor<4xf32>) -> tensor<4xf32> {{
                 %b = "{body}"(%a) : (tensor<4xf32>) -> tensor<4xf32>
                 tfrt.return %b : tensor<4xf32>
               }}"#
        )
    };
    for (body, n_calls) in [("graph.relu", 1), ("my.note", 2)] {
        let found = run("graph-fold", &text(body));
        assert_eq!(
            found.matches("graph.call").count(),
            n_calls,
            "{body}: {found}"
        );
    }
}

/// Tests that inference of a chain of functions, each of which calls the next one many times, takes bounded time.
#[test]
fn calls_within_calls_are_not_followed_for_ever() {
    let mut text =
        r#"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {model.input_names = ["x"]} {
        %y = "graph.call"(%x) {callee = @f0} : (tensor<4xf32>) -> tensor<4xf32>
        tfrt.return %y : tensor<4xf32>
      }"#
        .to_owned();
    for n in 0..30 {
        let next = (n + 1) % 30;
        let call =
            format!(r#""graph.call"(%a) {{callee = @f{next}}} : (tensor<4xf32>) -> tensor<4xf32>"#);
        let calls: Vec<String> = (0..100).map(|at| format!("%b{at} = {call}\n")).collect();
        text += &format!(
            "func.func @f{n}(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{}tfrt.return %b0 : tensor<4xf32>\n}}\n",
            calls.concat()
        );
    }
    let found = run("legalize,graph-infer,graph-fold,graph-lower", &text);
    assert!(found.contains("tfrt.call"), "{found}");
}
