//! Tests of forms that other passes look for.

use expect_test::{Expect, expect};

use crate::passes::testing::run;

#[test]
fn states_that_no_turn_changes_come_from_outside() {
    // The weight `%v` goes through a loop in a loop, and through a choice.
    let body = r#"
  %w = "onnx.Constant"() {value = dense<1.0> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %n = "onnx.Constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %none = "graph.none"() : () -> none
  %y, %last = "onnx.Loop"(%n, %none, %x, %w) ({
  ^bb0(%turn: tensor<i64>, %go: tensor<i1>, %s: tensor<2x4xf32>, %v: tensor<*xf32>):
    %t, %u = "onnx.Loop"(%n, %none, %s, %v) ({
    ^bb0(%inner_turn: tensor<i64>, %inner_go: tensor<i1>, %a: tensor<2x4xf32>, %b: tensor<*xf32>):
      %p = "graph.dot"(%a, %b) : (tensor<2x4xf32>, tensor<*xf32>) -> tensor<2x4xf32>
      %same = "onnx.Identity"(%b) : (tensor<*xf32>) -> tensor<*xf32>
      "graph.yield"(%inner_go, %p, %same) : (tensor<i1>, tensor<2x4xf32>, tensor<*xf32>) -> ()
    }) : (tensor<i64>, none, tensor<2x4xf32>, tensor<*xf32>) -> (tensor<2x4xf32>, tensor<*xf32>)
    %c = "onnx.If"(%go) ({
      "graph.yield"(%u) : (tensor<*xf32>) -> ()
    }, {
      "graph.yield"(%u) : (tensor<*xf32>) -> ()
    }) : (tensor<i1>) -> tensor<*xf32>
    "graph.yield"(%go, %t, %c) : (tensor<i1>, tensor<2x4xf32>, tensor<*xf32>) -> ()
  }) : (tensor<i64>, none, tensor<2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<*xf32>)"#;
    check(
        "2x4xf32",
        "[2 : i64, 4 : i64]",
        body,
        "2x4xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
            %1 = "onnx.Constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
            %2 = "graph.none"() : () -> none
            %3:2 = "onnx.Loop"(%1, %2, %arg0, %0) ({
            %4:2 = "onnx.Loop"(%1, %2, %arg3, %0) ({
            %6 = "graph.dot"(%arg7, %0) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
            %5 = "onnx.If"(%arg2) ({"#]],
    );
}

#[test]
fn loops_without_an_end_stay() {
    let body = r#"
  %none = "graph.none"() : () -> none
  %y = "onnx.Loop"(%none, %none, %x) ({
  ^bb0(%turn: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>):
    "graph.yield"(%go, %s) : (tensor<i1>, tensor<4xf32>) -> ()
  }) : (none, none, tensor<4xf32>) -> tensor<4xf32>"#;
    check(
        "4xf32",
        "[4 : i64]",
        body,
        "4xf32",
        expect![[r#"
        %0 = "graph.none"() : () -> none
        %1 = "onnx.Loop"(%0, %0, %arg0) ({"#]],
    );
}

/// Compares what is left of operations on `%x`, whose extents have names, with those expected: a line for each.
fn check(input: &str, dims: &str, body: &str, output: &str, expected: Expect) {
    let text = format!(
        "func.func @main(%x: tensor<{input}>) -> tensor<{output}> attributes {{model.input_names = [\"x\"], \
         model.output_names = [\"y\"], model.input_dims = [{dims}]}} {{\n{body}\n  tfrt.return %y : tensor<{output}>\n}}\n"
    );
    let text = run("graph-infer,graph-simplify", &text);
    let lines = text.lines().filter(|line| line.contains(" = \""));
    let lines: Vec<String> = lines
        .map(|line| {
            // Extents are in the types.
            let line = match (line.find("model.shapes = "), line.find("]]")) {
                (Some(begin), Some(end)) => format!("{}{}", &line[..begin], &line[end + 2..]),
                _ => line.to_owned(),
            };
            line.trim().replace("{, ", "{").replace(" {}", "")
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

fn einsum(equation: &str, input: &str, dims: &str, other: &str, output: &str, expected: Expect) {
    let body = format!(
        "  %w = \"onnx.Constant\"() {{value = dense<1.0> : tensor<{other}>}} : () -> tensor<{other}>\n  \
         %y = \"onnx.Einsum\"(%x, %w) {{equation = \"{equation}\"}} : (tensor<{input}>, tensor<{other}>) -> tensor<{output}>"
    );
    check(input, dims, &body, output, expected);
}

#[test]
fn equations_of_two_operands_are_products() {
    // A projection to heads.
    einsum(
        "abc,cde->abde",
        "?x?x8xf32",
        r#"["B", "S", 8 : i64]"#,
        "8x2x4xf32",
        "?x?x2x4xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
            %1 = "graph.dot"(%arg0, %0) : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
            %2 = "onnx.Constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
            %3 = "graph.reshape"(%1, %2) : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>"#]],
    );
    // The same, of dimensions of which nothing is known.
    einsum(
        "abc,cde->abde",
        "?x?x8xf32",
        r#"["", "", 8 : i64]"#,
        "8x2x4xf32",
        "?x?x2x4xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
            %1 = "graph.dot"(%arg0, %0) : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
            %2 = "onnx.Constant"() {value = dense<[0, 0, 2, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
            %3 = "graph.reshape"(%1, %2) : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>"#]],
    );
    // A projection from heads.
    einsum(
        "abcd,cde->abe",
        "?x?x2x4xf32",
        r#"["", "", 2 : i64, 4 : i64]"#,
        "2x4x8xf32",
        "?x?x8xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<[0, 0, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
            %1 = "graph.reshape"(%arg0, %0) : (tensor<?x?x2x4xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
            %2 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
            %3 = "graph.dot"(%1, %2) : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>"#]],
    );
    // Scores of attention, and a result in another order.
    einsum(
        "btnh,bsnh->bnts",
        "3x5x2x4xf32",
        "[3 : i64, 5 : i64, 2 : i64, 4 : i64]",
        "3x6x2x4xf32",
        "3x2x5x6xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<3x6x2x4xf32>} : () -> tensor<3x6x2x4xf32>
            %1 = "graph.transpose"(%arg0) {perm = [0, 2, 1, 3]} : (tensor<3x5x2x4xf32>) -> tensor<3x2x5x4xf32>
            %2 = "graph.transpose"(%0) {perm = [0, 2, 3, 1]} : (tensor<3x6x2x4xf32>) -> tensor<3x2x4x6xf32>
            %3 = "graph.dot"(%1, %2) : (tensor<3x2x5x4xf32>, tensor<3x2x4x6xf32>) -> tensor<3x2x5x6xf32>"#]],
    );
    // Constants are packed on the right.
    let body = r#"  %w = "onnx.Constant"() {value = dense<1.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %y = "onnx.Einsum"(%w, %x) {equation = "oi,...i->...o"} : (tensor<4x8xf32>, tensor<?x7x8xf32>) -> tensor<?x7x4xf32>"#;
    check(
        "?x7x8xf32",
        r#"["B", 7 : i64, 8 : i64]"#,
        body,
        "?x7x4xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
            %1 = "graph.transpose"(%0) {perm = [1, 0]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
            %2 = "graph.dot"(%arg0, %1) : (tensor<?x7x8xf32>, tensor<8x4xf32>) -> tensor<?x7x4xf32>"#]],
    );
}

#[test]
fn equations_without_sums_of_products_multiply() {
    einsum(
        "bi,j->bij",
        "?x3xf32",
        r#"["B", 3 : i64]"#,
        "5xf32",
        "?x3x5xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
            %1 = "onnx.Unsqueeze"(%arg0, %0) : (tensor<?x3xf32>, tensor<1xi64>) -> tensor<?x3x1xf32>
            %2 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<1x1x5xf32>} : () -> tensor<1x1x5xf32>
            %3 = "graph.mul"(%1, %2) : (tensor<?x3x1xf32>, tensor<1x1x5xf32>) -> tensor<?x3x5xf32>"#]],
    );
    einsum(
        "bij,k->bk",
        "?x3x2xf32",
        r#"["B", 3 : i64, 2 : i64]"#,
        "5xf32",
        "?x5xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
            %1 = "graph.reduce"(%arg0, %0) {keep = 0, kind = "sum", } : (tensor<?x3x2xf32>, tensor<2xi64>) -> tensor<?xf32>
            %2 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
            %3 = "onnx.Unsqueeze"(%1, %2) : (tensor<?xf32>, tensor<1xi64>) -> tensor<?x1xf32>
            %4 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<1x5xf32>} : () -> tensor<1x5xf32>
            %5 = "graph.mul"(%3, %4) : (tensor<?x1xf32>, tensor<1x5xf32>) -> tensor<?x5xf32>"#]],
    );
}

#[test]
fn equations_whose_sums_may_repeat_an_extent_of_1_stay() {
    einsum(
        "bi,io->bo",
        "?x?xf32",
        r#"["B", "I"]"#,
        "3x4xf32",
        "?x4xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
            %1 = "onnx.Einsum"(%arg0, %0) {equation = "bi,io->bo", } : (tensor<?x?xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>"#]],
    );
    einsum(
        "ii,io->o",
        "3x3xf32",
        "[3 : i64, 3 : i64]",
        "3x4xf32",
        "4xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
            %1 = "onnx.Einsum"(%arg0, %0) {equation = "ii,io->o"} : (tensor<3x3xf32>, tensor<3x4xf32>) -> tensor<4xf32>"#]],
    );
}

#[test]
fn equations_of_one_operand_are_sums_and_transpositions() {
    let body = r#"  %y = "onnx.Einsum"(%x) {equation = "abc->ca"} : (tensor<?x3x4xf32>) -> tensor<4x?xf32>"#;
    check(
        "?x3x4xf32",
        r#"["B", 3 : i64, 4 : i64]"#,
        body,
        "4x?xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
            %1 = "graph.reduce"(%arg0, %0) {keep = 0, kind = "sum", } : (tensor<?x3x4xf32>, tensor<1xi64>) -> tensor<?x4xf32>
            %2 = "graph.transpose"(%1) {perm = [1, 0]} : (tensor<?x4xf32>) -> tensor<4x?xf32>"#]],
    );
}

#[test]
fn products_of_tensors_need_no_matrix() {
    let body = r#"
  %w = "onnx.Constant"() {value = dense<1.0> : tensor<8x6xf32>} : () -> tensor<8x6xf32>
  %b = "onnx.Constant"() {value = dense<2.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %s = "graph.shape"(%x) : (tensor<?x5x8xf32>) -> tensor<3xi64>
  %i = "onnx.Constant"() {value = dense<[0, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %n = "onnx.Constant"() {value = dense<[6]> : tensor<1xi64>} : () -> tensor<1xi64>
  %h = "onnx.Constant"() {value = dense<[0, 0, 2, 3]> : tensor<4xi64>} : () -> tensor<4xi64>
  %flat = "onnx.Constant"() {value = dense<[-1, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
  %free = "graph.gather"(%s, %i) {axis = 0 : i64} : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
  %to = "graph.concat"(%free, %n) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %m = "graph.reshape"(%x, %flat) : (tensor<?x5x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %p = "graph.dot"(%m, %w) : (tensor<?x8xf32>, tensor<8x6xf32>) -> tensor<?x6xf32>
  %t = "graph.reshape"(%p, %to) : (tensor<?x6xf32>, tensor<3xi64>) -> tensor<?x5x6xf32>
  %heads = "graph.reshape"(%t, %h) : (tensor<?x5x6xf32>, tensor<4xi64>) -> tensor<?x5x2x3xf32>
  %y = "graph.add"(%heads, %b) : (tensor<?x5x2x3xf32>, tensor<2x3xf32>) -> tensor<?x5x2x3xf32>"#;
    check(
        "?x5x8xf32",
        r#"["B", 5 : i64, 8 : i64]"#,
        body,
        "?x5x2x3xf32",
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x6xf32>} : () -> tensor<8x6xf32>
            %1 = "graph.dot"(%arg0, %0) : (tensor<?x5x8xf32>, tensor<8x6xf32>) -> tensor<?x5x6xf32>
            %2 = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<6xf32>} : () -> tensor<6xf32>
            %3 = "graph.add"(%1, %2) : (tensor<?x5x6xf32>, tensor<6xf32>) -> tensor<?x5x6xf32>
            %4 = "onnx.Constant"() {value = dense<[0, 5, 2, 3]> : tensor<4xi64>} : () -> tensor<4xi64>
            %5 = "graph.reshape"(%3, %4) : (tensor<?x5x6xf32>, tensor<4xi64>) -> tensor<?x5x2x3xf32>"#]],
    );
}
