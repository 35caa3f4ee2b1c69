//! Tests of products and chains, before and after fusion.

use expect_test::expect;

use crate::passes::testing::{check, run};

mod cached_attention;
mod folded_norms;
mod patterns;
mod products;

#[test]
fn layers_become_one_product_each() {
    check(
        "onnx-to-graph,graph-infer,graph-fuse,graph-lower",
        r#"func.func @main(%x: tensor<?x8xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 8 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
             %b = "onnx.Constant"() {value = dense<0.5> : tensor<8xf32>} : () -> tensor<8xf32>
             %h = "onnx.Gemm"(%x, %w, %b) {transB = 1 : i64}
                 : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<*xf32>
             %r = "onnx.Relu"(%h) : (tensor<*xf32>) -> tensor<*xf32>
             %m = "onnx.MatMul"(%r, %w) : (tensor<*xf32>, tensor<8x8xf32>) -> tensor<*xf32>
             %n = "onnx.Add"(%b, %m) : (tensor<8xf32>, tensor<*xf32>) -> tensor<*xf32>
             %y = "onnx.Add"(%n, %r) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> (!t.tensor, !t.tensor) {
              %0 = "cpu.onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x8xf32>} : () -> !t.tensor
              %1 = "cpu.onnx.Constant"() {value = dense<5.000000e-01> : tensor<8xf32>} : () -> !t.tensor
              tfrt.return %0, %1 : !t.tensor, !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor) -> !t.tensor attributes {model.inputs = [["x", tensor<?x8xf32>, ["N", 8]]], model.outputs = [["y", tensor<?x8xf32>, ["", 8]]]} {
              %0 = "cpu.onnx.NoValue"() : () -> !t.none
              %1 = "cpu.fused.matmul"(%arg0, %arg1, %arg2, %0) {epilogue = ["relu a0"], transposed = 1} : (!t.tensor, !t.tensor, !t.tensor, !t.none) -> !t.tensor
              %2 = "cpu.fused.matmul"(%1, %arg1, %arg2, %1) {epilogue = [], transposed = 0} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %2 : !t.tensor
            }
        "#]],
    );
}

#[test]
fn chains_become_programs() {
    check(
        "onnx-to-graph,graph-infer,graph-fuse,graph-lower",
        r#"func.func @main(%x: tensor<?x4xf32>, %n: tensor<4xi64>) -> (tensor<*xf32>, tensor<*xf32>) attributes {
               model.input_names = ["x", "n"], model.output_names = ["y", "z"], model.input_dims = [["N", 4 : i64], [4 : i64]]} {
             %half = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
             %b = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
             %d = "onnx.Div"(%x, %half) : (tensor<?x4xf32>, tensor<f32>) -> tensor<*xf32>
             %e = "onnx.Erf"(%d) : (tensor<*xf32>) -> tensor<*xf32>
             %a = "onnx.Add"(%e, %b) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
             %m = "onnx.Mul"(%x, %a) : (tensor<?x4xf32>, tensor<*xf32>) -> tensor<*xf32>
             %s = "onnx.Softmax"(%m) : (tensor<*xf32>) -> tensor<*xf32>
             %t = "onnx.Tanh"(%m) : (tensor<*xf32>) -> tensor<*xf32>
             %i = "onnx.Add"(%n, %n) : (tensor<4xi64>, tensor<4xi64>) -> tensor<*xi64>
             %y = "onnx.Sub"(%s, %t) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %y, %s : tensor<*xf32>, tensor<*xf32>
           }"#,
        expect![[r#"
            func.func private @main.constants() -> !t.tensor {
              %0 = "cpu.onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> !t.tensor
              tfrt.return %0 : !t.tensor
            }
            func.func @main(%arg0: !t.tensor, %arg1: !t.tensor, %arg2: !t.tensor) -> (!t.tensor, !t.tensor) attributes {model.inputs = [["x", tensor<?x4xf32>, ["N", 4]], ["n", tensor<4xi64>, [4]]], model.outputs = [["y", tensor<?x4xf32>, ["", 4]], ["z", tensor<?x4xf32>, ["", 4]]]} {
              %0 = "cpu.fused.elementwise"(%arg0, %arg2) {inputs = 2, steps = ["div a0 5e-1", "erf s0", "add s1 a1", "mul a0 s2"]} : (!t.tensor, !t.tensor) -> !t.tensor
              %1 = "cpu.graph.softmax"(%0) {attributes = []} : (!t.tensor) -> !t.tensor
              %2 = "cpu.fused.elementwise"(%0, %1) {inputs = 2, steps = ["tanh a0", "sub a1 s0"]} : (!t.tensor, !t.tensor) -> !t.tensor
              tfrt.return %2, %1 : !t.tensor, !t.tensor
            }
        "#]],
    );
}

#[test]
fn joined_images_are_read_where_they_are() {
    check(
        "onnx-to-graph,graph-infer,graph-layout,graph-fuse",
        r#"func.func @main(%x: tensor<1x32x8x8xf32>) -> (tensor<*xf32>, tensor<*xf32>) attributes {
               model.input_names = ["x"], model.output_names = ["y", "z"], model.input_dims = [[1 : i64, 32 : i64, 8 : i64, 8 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<32x32x1x1xf32>} : () -> tensor<32x32x1x1xf32>
             %v = "onnx.Constant"() {value = dense<2.0> : tensor<8x64x1x1xf32>} : () -> tensor<8x64x1x1xf32>
             %s = "onnx.Constant"() {value = dense<3.0> : tensor<96xf32>} : () -> tensor<96xf32>
             %a = "onnx.Conv"(%x, %w) : (tensor<1x32x8x8xf32>, tensor<32x32x1x1xf32>) -> tensor<*xf32>
             %b = "onnx.Conv"(%a, %w) : (tensor<*xf32>, tensor<32x32x1x1xf32>) -> tensor<*xf32>
             %j = "onnx.Concat"(%a, %b) {axis = 1 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %p = "onnx.MaxPool"(%j) {kernel_shape = [2 : i64, 2 : i64], strides = [2 : i64, 2 : i64]}
                 : (tensor<*xf32>) -> tensor<*xf32>
             %y = "onnx.Conv"(%p, %v) : (tensor<*xf32>, tensor<8x64x1x1xf32>) -> tensor<*xf32>
             %k = "onnx.Concat"(%a, %b) {axis = 1 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %l = "onnx.Concat"(%k, %a) {axis = 1 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             %n = "onnx.BatchNormalization"(%l, %s, %s, %s, %s)
                 : (tensor<*xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xf32>) -> tensor<*xf32>
             %z = "onnx.Relu"(%n) : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %y, %z : tensor<*xf32>, tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<1x32x8x8xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x96x8x8xf32>) attributes {model.input_dims = [[1, 32, 8, 8]], model.input_names = ["x"], model.output_names = ["y", "z"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<32x32x1x1xf32>} : () -> tensor<32x32x1x1xf32>
              %1 = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<8x64x1x1xf32>} : () -> tensor<8x64x1x1xf32>
              %2 = "onnx.Constant"() {value = dense<3.000000e+00> : tensor<96xf32>} : () -> tensor<96xf32>
              %3 = "graph.transpose"(%arg0) {perm = [0, 2, 3, 1]} : (tensor<1x32x8x8xf32>) -> tensor<1x8x8x32xf32>
              %4 = "graph.none"() : () -> none
              %5 = "cpu.fused.conv"(%3, %0, %4, %4, %4, %4, %4, %4) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<1x8x8x32xf32>, tensor<32x32x1x1xf32>, none, none, none, none, none, none) -> tensor<1x8x8x32xf32>
              %6 = "graph.none"() : () -> none
              %7 = "cpu.fused.conv"(%5, %0, %6, %6, %6, %6, %6, %6) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : (tensor<1x8x8x32xf32>, tensor<32x32x1x1xf32>, none, none, none, none, none, none) -> tensor<1x8x8x32xf32>
              %8 = "cpu.fused.pool"(%5) {dilations = [1, 1], kernel = [2, 2], kind = "max", pads = [0, 0, 0, 0], strides = [2, 2]} : (tensor<1x8x8x32xf32>) -> tensor<1x4x4x32xf32>
              %9 = "cpu.fused.pool"(%7) {dilations = [1, 1], kernel = [2, 2], kind = "max", pads = [0, 0, 0, 0], strides = [2, 2]} : (tensor<1x8x8x32xf32>) -> tensor<1x4x4x32xf32>
              %10 = "graph.none"() : () -> none
              %11 = "cpu.fused.joined"(%1, %10, %10, %10, %10, %10, %8, %9) {dilations = [1, 1], epilogue = [], epsilon = 0.000000e+00 : f32, groups = 1, strides = [1, 1]} : (tensor<8x64x1x1xf32>, none, none, none, none, none, tensor<1x4x4x32xf32>, tensor<1x4x4x32xf32>) -> tensor<1x4x4x8xf32>
              %12 = "onnx.Constant"() {value = dense<1.000000e-05> : tensor<96xf32>} : () -> tensor<96xf32>
              %13 = "cpu.fused.elementwise"(%2, %12) {inputs = 2, steps = ["add a0 a1", "sqrt s0", "div a0 s1"]} : (tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
              %14 = "cpu.fused.elementwise"(%2, %13) {inputs = 2, steps = ["mul a0 a1", "sub a0 s0"]} : (tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
              %15 = "cpu.fused.scale"(%13, %14, %5, %7, %5) {activation = "relu"} : (tensor<96xf32>, tensor<96xf32>, tensor<1x8x8x32xf32>, tensor<1x8x8x32xf32>, tensor<1x8x8x32xf32>) -> tensor<1x8x8x96xf32>
              %16 = "graph.transpose"(%11) {perm = [0, 3, 1, 2]} : (tensor<1x4x4x8xf32>) -> tensor<1x8x4x4xf32>
              %17 = "graph.transpose"(%15) {perm = [0, 3, 1, 2]} : (tensor<1x8x8x96xf32>) -> tensor<1x96x8x8xf32>
              tfrt.return %16, %17 : tensor<1x8x4x4xf32>, tensor<1x96x8x8xf32>
            }
        "#]],
    );
}

/// Returns the programs of a graph of `%x` and `%y` of a type, and `%c`, as steps, and the operations that are in
/// none; the last line makes `%r`.
fn programs(ty: &str, lines: &str) -> Vec<String> {
    let (_, made) = lines.rsplit_once("-> ").unwrap();
    let text = format!(
        "func.func @main(%x: tensor<4x{ty}>, %y: tensor<4x{ty}>, %c: tensor<4xi1>) -> {made} attributes {{
             model.input_names = [\"x\", \"y\", \"c\"], model.output_names = [\"r\"],
             model.input_dims = [[4 : i64], [4 : i64], [4 : i64]]}} {{
           {lines}
           tfrt.return %r : {made}
         }}"
    );
    let found = run("onnx-to-graph,graph-fuse", &text);
    assert!(found.starts_with("func.func"), "{found}");
    let operations = found.lines().filter_map(|line| {
        let line = line.trim();
        match line.split_once("steps = ") {
            Some((_, steps)) => Some(steps.split_once('}')?.0.to_owned()),
            None => {
                let is_operation = line.contains("= \"graph.") || line.contains("= \"onnx.");
                let name = line.split('"').nth(1).filter(|_| is_operation)?;
                Some(name.trim_start_matches("graph.").to_owned())
            }
        }
    });
    operations
        .filter(|operation| operation != "onnx.Constant")
        .collect()
}

#[test]
fn operations_become_steps_with_their_types_and_parameters() {
    let found = programs(
        "f16",
        "%two = \"onnx.Constant\"() {value = dense<2.0> : tensor<f16>} : () -> tensor<f16>
         %k = \"onnx.Constant\"() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
         %0 = \"onnx.LeakyRelu\"(%x) {alpha = 0.25 : f32} : (tensor<4xf16>) -> tensor<4xf16>
         %1 = \"onnx.Sum\"(%0, %y, %two) : (tensor<4xf16>, tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
         %2 = \"onnx.Pow\"(%1, %k) : (tensor<4xf16>, tensor<1xi64>) -> tensor<4xf16>
         %3 = \"onnx.Cast\"(%2) {to = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
         %4 = \"onnx.Cast\"(%y) {to = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
         %r = \"onnx.Where\"(%c, %3, %4) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    );
    let steps = "[\"leaky_relu a0 2.5e-1\", \"add s0 a1\", \"add s1 2e0\", \"power_of s2 3e0\", \"cast s3 f32\", \
                 \"cast a1 f32\", \"select a2 s4 s5\"]";
    assert_eq!(found, [steps]);
}

#[test]
fn numbers_leave_a_value_that_says_of_which_type_and_shape_they_are() {
    let found = programs(
        "i64",
        "%k = \"onnx.Constant\"() {value = dense<7> : tensor<i64>} : () -> tensor<i64>
         %l = \"onnx.Constant\"() {value = dense<9007199254740993> : tensor<i64>} : () -> tensor<i64>
         %m = \"onnx.Constant\"() {value = dense<5> : tensor<1xi64>} : () -> tensor<1xi64>
         %n = \"onnx.Constant\"() {value = dense<5> : tensor<1x1xi64>} : () -> tensor<1x1xi64>
         %0 = \"onnx.Where\"(%c, %k, %m) : (tensor<4xi1>, tensor<i64>, tensor<1xi64>) -> tensor<4xi64>
         %1 = \"onnx.Mul\"(%0, %l) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
         %2 = \"onnx.Add\"(%1, %m) : (tensor<4xi64>, tensor<1xi64>) -> tensor<4xi64>
         %3 = \"onnx.Neg\"(%2) : (tensor<4xi64>) -> tensor<4xi64>
         %4 = \"onnx.Add\"(%x, %n) : (tensor<4xi64>, tensor<1x1xi64>) -> tensor<1x4xi64>
         %5 = \"onnx.Neg\"(%4) : (tensor<1x4xi64>) -> tensor<1x4xi64>
         %r = \"onnx.Concat\"(%3, %5) {axis = 0 : i64} : (tensor<4xi64>, tensor<1x4xi64>) -> tensor<*xi64>",
    );
    assert_eq!(
        found,
        [
            // Both are numbers: the first says of which type. No `f64` is the factor.
            "[\"select a0 a1 a2\", \"mul s0 a3\", \"add s1 5e0\", \"neg s2\"]",
            // It gives the result a dimension.
            "[\"add a0 a1\", \"neg s0\"]",
            "concat",
        ]
    );
}

#[test]
fn an_operation_that_nothing_joins_is_a_program_of_f32_alone() {
    let one = |ty: &str, line: &str| programs(ty, line).remove(0);
    let mish = |ty: &str| {
        one(
            ty,
            &format!("%r = \"onnx.Mish\"(%x) : (tensor<4x{ty}>) -> tensor<4x{ty}>"),
        )
    };
    assert_eq!(
        (mish("f32"), mish("f64")),
        ("[\"mish a0\"]".to_owned(), "onnx.Mish".to_owned())
    );
    let less = "%r = \"onnx.Less\"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>";
    assert_eq!(one("f32", less), "lt");
    let identity = "%r = \"onnx.Identity\"(%x) : (tensor<4xf32>) -> tensor<4xf32>";
    assert_eq!(one("f32", identity), "identity");
}

#[test]
fn what_may_fail_or_is_of_other_types_stays_as_it_is() {
    for (line, wanted) in [
        (
            "%r = \"onnx.Gelu\"(%t) {approximate = \"x\"} : (tensor<4xf32>) -> tensor<4xf32>",
            "gelu",
        ),
        (
            "%r = \"onnx.Add\"(%t, %t) {axis = 0 : i64, onnx.opset = 6 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            "onnx.Add",
        ),
        (
            "%r = \"onnx.Clip\"(%t, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            "onnx.Clip",
        ),
        (
            "%r = \"onnx.Cast\"(%t) {to = 8 : i64} : (tensor<4xf32>) -> tensor<4x!onnx.string>",
            "cast",
        ),
        (
            "%r = \"onnx.Cast\"(%t) {to = 17 : i64} : (tensor<4xf32>) -> tensor<4xf8E4M3FN>",
            "cast",
        ),
        // One exponent is calculated with in another way than many.
        (
            "%r = \"onnx.Pow\"(%t, %e) : (tensor<4xf32>, tensor<?xf32>) -> tensor<4xf32>",
            "pow",
        ),
        // It may have more dimensions than the elements.
        (
            "%r = \"onnx.PRelu\"(%t, %e) : (tensor<4xf32>, tensor<?xf32>) -> tensor<?xf32>",
            "onnx.PRelu",
        ),
        (
            "%r = \"onnx.Tanh\"(%u) : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>",
            "tanh",
        ),
    ] {
        let line = format!(
            "%t = \"onnx.Sign\"(%x) : (tensor<4xf32>) -> tensor<4xf32>
             %e = \"onnx.Compress\"(%x, %c) : (tensor<4xf32>, tensor<4xi1>) -> tensor<?xf32>
             %u = \"onnx.ext.a.B\"(%x) : (tensor<4xf32>) -> tensor<*x!onnx.unknown>
             {line}"
        );
        let found = programs("f32", &line);
        assert!(found.iter().any(|one| one == wanted), "{wanted}: {found:?}");
    }
}

#[test]
fn factors_and_norms_of_columns_go_into_the_matrix() {
    check(
        "onnx-to-graph,graph-infer,graph-fuse",
        r#"func.func @main(%x: tensor<?x2xf32>) -> (tensor<*xf32>, tensor<*xf32>) attributes {
               model.input_names = ["x"], model.output_names = ["y", "z"], model.input_dims = [["N", 2 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
             %m = "onnx.MatMul"(%x, %w) : (tensor<?x2xf32>, tensor<2x3xf32>) -> tensor<*xf32>
             %b = "onnx.Constant"() {value = dense<0.5> : tensor<3xf32>} : () -> tensor<3xf32>
             %a = "onnx.Add"(%b, %m) : (tensor<3xf32>, tensor<*xf32>) -> tensor<*xf32>
             %f = "onnx.Constant"() {value = dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>} : () -> tensor<1x3xf32>
             %s = "onnx.Mul"(%a, %f) : (tensor<*xf32>, tensor<1x3xf32>) -> tensor<*xf32>
             %y = "onnx.Add"(%s, %b) : (tensor<*xf32>, tensor<3xf32>) -> tensor<*xf32>
             %v = "onnx.Constant"() {value = dense<1.0> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
             %c = "onnx.Constant"() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
             %g = "onnx.Gemm"(%x, %v) {transB = 1 : i64} : (tensor<?x2xf32>, tensor<4x2xf32>) -> tensor<*xf32>
             %z = "onnx.BatchNormalization"(%g, %c, %c, %c, %c) {epsilon = 0.0 : f32}
                 : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
             tfrt.return %y, %z : tensor<*xf32>, tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?x2xf32>) -> (tensor<?x3xf32>, tensor<?x4xf32>) attributes {model.input_dims = [["N", 2]], model.input_names = ["x"], model.output_names = ["y", "z"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
              %1 = "graph.none"() : () -> none
              %2 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<3xf32>} : () -> tensor<3xf32>
              %3 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>} : () -> tensor<3xf32>
              %4 = "cpu.fused.elementwise"(%0, %3) {inputs = 2, steps = ["mul a0 a1"]} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
              %5 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<3xf32>} : () -> tensor<3xf32>
              %6 = "cpu.fused.elementwise"(%2, %3, %5) {inputs = 3, steps = ["mul a0 a1", "add s0 a2"]} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
              %7 = "cpu.fused.matmul"(%arg0, %4, %6, %1) {epilogue = [], model.shapes = [["N", 3]], transposed = 0} : (tensor<?x2xf32>, tensor<2x3xf32>, tensor<3xf32>, none) -> tensor<?x3xf32>
              %8 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
              %9 = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
              %10 = "graph.none"() : () -> none
              %11 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>
              %12 = "cpu.fused.elementwise"(%9, %11) {inputs = 2, steps = ["add a0 a1", "sqrt s0", "div a0 s1"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %13 = "cpu.fused.elementwise"(%9, %12) {inputs = 2, steps = ["mul a0 a1", "sub a0 s0"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              %14 = "onnx.Constant"() {value = dense<[4, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
              %15 = "graph.reshape"(%12, %14) : (tensor<4xf32>, tensor<2xi64>) -> tensor<4x1xf32>
              %16 = "cpu.fused.elementwise"(%8, %15) {inputs = 2, steps = ["mul a0 a1"]} : (tensor<4x2xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>
              %17 = "cpu.fused.matmul"(%arg0, %16, %13, %10) {epilogue = [], model.shapes = [["N", 4]], transposed = 1} : (tensor<?x2xf32>, tensor<4x2xf32>, tensor<4xf32>, none) -> tensor<?x4xf32>
              tfrt.return %7, %17 : tensor<?x3xf32>, tensor<?x4xf32>
            }
        "#]],
    );
}

#[test]
fn products_stay_whose_columns_are_not_their_own() {
    let text = run(
        "onnx-to-graph,graph-infer,graph-fuse",
        r#"func.func @main(%x: tensor<?x2xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) attributes {
               model.input_names = ["x"], model.output_names = ["y", "z", "m"], model.input_dims = [["N", 2 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
             %f = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
             %m = "onnx.MatMul"(%x, %w) : (tensor<?x2xf32>, tensor<2x3xf32>) -> tensor<*xf32>
             %n = "onnx.MatMul"(%x, %w) : (tensor<?x2xf32>, tensor<2x3xf32>) -> tensor<*xf32>
             %y = "onnx.Mul"(%m, %f) : (tensor<*xf32>, tensor<3xf32>) -> tensor<*xf32>
             %z = "onnx.Mul"(%n, %f) : (tensor<*xf32>, tensor<3xf32>) -> tensor<*xf32>
             tfrt.return %y, %z, %m : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
           }"#,
    );
    assert!(!text.contains("tensor<2x3xf32>, tensor<3xf32>"), "{text}");
}

#[test]
fn a_bias_that_stands_behind_its_product_is_moved_before_it() {
    let found = run(
        "onnx-to-graph,graph-infer,graph-fuse",
        r#"func.func @main(%x: tensor<2x3xf32>) -> tensor<2x4xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[2 : i64, 3 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
             %m = "onnx.MatMul"(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
             %c = "onnx.Constant"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
             %y = "onnx.Add"(%m, %c) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
             tfrt.return %y : tensor<2x4xf32>
           }"#,
    );
    // The verifier runs after each pass.
    assert!(found.starts_with("func.func"), "{found}");
    assert!(!found.contains("graph.add"), "{found}");
}

/// Tests that a factor of `3e30` stays behind its product: a column times it would be infinite, where the sum is not.
#[test]
fn factors_that_are_no_moderate_numbers_stay_behind_the_product() {
    for (factors, is_folded) in [
        ("1.0, 2.0", true),
        ("1.0, 1.0e20", false),
        ("0x7F800000, 1.0", false),
    ] {
        let found = run(
            "onnx-to-graph,graph-infer,graph-fuse",
            &format!(
                r#"func.func @main(%x: tensor<2x3xf32>) -> tensor<2x2xf32> attributes {{
                   model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[2 : i64, 3 : i64]]}} {{
                 %w = "onnx.Constant"() {{value = dense<1.0e30> : tensor<3x2xf32>}} : () -> tensor<3x2xf32>
                 %s = "onnx.Constant"() {{value = dense<[{factors}]> : tensor<2xf32>}} : () -> tensor<2xf32>
                 %m = "onnx.MatMul"(%x, %w) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
                 %y = "onnx.Mul"(%m, %s) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
                 tfrt.return %y : tensor<2x2xf32>
               }}"#
            ),
        );
        assert!(found.starts_with("func.func"), "{found}");
        let (multiplied, made) = (found.find("mul a0 a1"), found.find("cpu.fused.matmul"));
        assert_eq!(multiplied < made, is_folded, "{found}");
    }
}

/// Tests that nodes of one device become a program of it, with constants as numbers, and those of the host one of theirs; a
/// value that others use is made by a program of its own.
#[test]
fn placed_nodes_become_programs_of_their_device() {
    let text = run(
        "graph-place,graph-fuse",
        r#"func.func @main(%x: tensor<2x4xf32>, %b: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
             attributes {model.input_names = ["x", "b"], model.output_names = ["y", "z"]} {
             %two = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
             %0 = "graph.add"(%x, %two) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
             %1 = "graph.add"(%0, %b) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
             %2 = "graph.add"(%1, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
             %3 = "graph.tanh"(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
             %4 = "graph.neg"(%3) : (tensor<2x4xf32>) -> tensor<2x4xf32>
             tfrt.return %2, %4 : tensor<2x4xf32>, tensor<2x4xf32>
           }"#,
    );
    expect![[r#"
        func.func @main(%arg0: tensor<2x4xf32>, %arg1: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {model.input_names = ["x", "b"], model.output_names = ["y", "z"]} {
          %0 = "graph.copy"(%arg0) {device = "FAKE:0"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
          %1 = "graph.copy"(%arg1) {device = "FAKE:0"} : (tensor<4xf32>) -> tensor<4xf32>
          %2 = "graph.pointwise"(%0, %1) {place.device = "FAKE:0", place.kind = "fake", program = "add a0 2e0; add s0 a1", type = f32} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
          %3 = "graph.add"(%2, %2) {place.device = "FAKE:0", place.kind = "fake"} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
          %4 = "graph.copy"(%2) {device = "CPU:0"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
          %5 = "cpu.fused.elementwise"(%4) {inputs = 1, steps = ["tanh a0", "neg s0"]} : (tensor<2x4xf32>) -> tensor<2x4xf32>
          %6 = "graph.copy"(%3) {device = "CPU:0"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
          tfrt.return %6, %5 : tensor<2x4xf32>, tensor<2x4xf32>
        }
    "#]].assert_eq(&text);
}
