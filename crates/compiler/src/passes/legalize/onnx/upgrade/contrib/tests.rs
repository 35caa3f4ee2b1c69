//! Operators of `com.microsoft` as text, before and after; and those that are refused.

use expect_test::{Expect, expect};

use crate::passes::testing;

/// Expands an operation that gives `%y`, and shows what stands for it.
fn check(arguments: &str, operation: &str, expected: Expect) {
    let text = testing::run("onnx-upgrade", &function(arguments, operation));
    let shown = text
        .lines()
        .filter(|line| line.contains("onnx.") || line.contains("graph."))
        .filter(|line| !line.contains("module"));
    let shown: Vec<&str> = shown.map(str::trim).collect();
    expected.assert_eq(&shown.join("\n"));
}

/// Expands an operation that is wrong.
fn refuse(arguments: &str, operation: &str, expected: Expect) {
    let text = testing::run("onnx-upgrade", &function(arguments, operation));
    expected.assert_eq(text.lines().next().unwrap_or_default());
}

fn function(arguments: &str, operation: &str) -> String {
    format!(
        "module attributes {{onnx.opset = 21 : i64, onnx.opset.com.microsoft = 1 : i64}} {{
           func.func @main({arguments}) -> tensor<*xf32> {{
             {operation}
             return %y : tensor<*xf32>
           }}
         }}"
    )
}

#[test]
fn activations_stand_behind_a_bias_and_a_product() {
    check(
        "%x: tensor<?x4xf32>, %b: tensor<4xf32>",
        r#"%y = "onnx.microsoft.BiasGelu"(%x, %b) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "onnx.Add"(%arg0, %arg1) {onnx.opset = 18} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.Gelu"(%0) {onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
    check(
        "%x: tensor<?x4xf16>, %b: tensor<4xf16>",
        r#"%0 = "onnx.microsoft.FastGelu"(%x, %b) : (tensor<?x4xf16>, tensor<4xf16>) -> tensor<*xf16>
           %y = "onnx.Cast"(%0) {to = 1} : (tensor<*xf16>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "onnx.Cast"(%arg0) {onnx.opset = 18, to = 1} : (tensor<?x4xf16>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.Cast"(%arg1) {onnx.opset = 18, to = 1} : (tensor<4xf16>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.Add"(%0, %1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %3 = "onnx.Gelu"(%2) {approximate = "tanh", onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %4 = "onnx.CastLike"(%3, %arg0) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<?x4xf16>) -> tensor<*xf16>
            %5 = "onnx.Cast"(%4) {to = 1} : (tensor<*xf16>) -> tensor<*xf32>"#]],
    );
    check(
        "%x: tensor<?x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>",
        r#"%y = "onnx.microsoft.FusedGemm"(%x, %w, %b) {activation = "LeakyRelu", activation_alpha = 0.5 : f32, transB = 1}
             : (tensor<?x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "onnx.Gemm"(%arg0, %arg1, %arg2) {onnx.opset = 18, transB = 1} : (tensor<?x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.LeakyRelu"(%0) {alpha = 5.000000e-01 : f32, onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
    check(
        "%x: tensor<?x4xf32>, %w: tensor<5x4xf32>",
        r#"%y = "onnx.microsoft.FusedMatMul"(%x, %w) {alpha = 0.5 : f32, transB = 1}
             : (tensor<?x4xf32>, tensor<5x4xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "graph.dot"(%arg0, %arg1) {transpose_a = 0, transpose_b = 1} : (tensor<?x4xf32>, tensor<5x4xf32>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.Constant"() {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
            %2 = "onnx.Mul"(%0, %1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<f32>) -> tensor<*xf32>"#]],
    );
}

#[test]
fn sums_are_normalised_and_given_if_they_are_asked_for() {
    check(
        "%x: tensor<?x4xf32>, %g: tensor<4xf32>",
        r#"%n = "graph.none"() : () -> none
           %0, %1, %2, %3 = "onnx.microsoft.SkipLayerNormalization"(%x, %x, %g, %n, %g)
             : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>, none, tensor<4xf32>)
             -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
           %y = "onnx.Add"(%0, %3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "graph.none"() : () -> none
            %1 = "onnx.Add"(%arg0, %arg0) {onnx.opset = 18} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.Add"(%1, %arg1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<4xf32>) -> tensor<*xf32>
            %3 = "graph.norm"(%2, %arg1) {epsilon = 1.000000e-12 : f32, kind = "layer"} : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
            %4 = "onnx.Add"(%3, %2) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>"#]],
    );
    check(
        "%x: tensor<?x4xf32>, %g: tensor<4xf32>",
        r#"%y = "onnx.SimplifiedLayerNormalization"(%x, %g) {epsilon = 0.5 : f32}
             : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<*xf32>"#,
        expect![[
            r#"%0 = "graph.norm"(%arg0, %arg1) {axis = -1, epsilon = 5.000000e-01 : f32, kind = "rms"} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
}

#[test]
fn numbers_are_taken_from_small_integers_and_given_as_such() {
    check(
        "%x: tensor<?x4xui8>, %s: tensor<f32>, %z: tensor<ui8>",
        r#"%0 = "onnx.microsoft.QLinearMul"(%x, %s, %z, %x, %s, %z, %s, %z)
             : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>, tensor<?x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>)
             -> tensor<*xui8>
           %y = "onnx.Cast"(%0) {to = 1} : (tensor<*xui8>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "onnx.DequantizeLinear"(%arg0, %arg1, %arg2) {onnx.opset = 18} : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.DequantizeLinear"(%arg0, %arg1, %arg2) {onnx.opset = 18} : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.Mul"(%0, %1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %3 = "onnx.QuantizeLinear"(%2, %arg1, %arg2) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
            %4 = "onnx.Cast"(%3) {to = 1} : (tensor<*xui8>) -> tensor<*xf32>"#]],
    );
    check(
        "%x: tensor<?x4xf32>, %w: tensor<4x5xi8>, %s: tensor<f32>",
        r#"%y = "onnx.microsoft.DynamicQuantizeMatMul"(%x, %w, %s)
             : (tensor<?x4xf32>, tensor<4x5xi8>, tensor<f32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0:3 = "onnx.DynamicQuantizeLinear"(%arg0) {onnx.opset = 18} : (tensor<?x4xf32>) -> (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>)
            %1 = "onnx.Mul"(%0#1, %arg2) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<f32>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.MatMulInteger"(%0#0, %arg1, %0#2) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<4x5xi8>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %3 = "onnx.Cast"(%2) {onnx.opset = 18, to = 1} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %4 = "onnx.Mul"(%3, %1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
}

#[test]
fn heads_are_of_one_row() {
    check(
        "%x: tensor<2x3x4xf32>, %w: tensor<4x12xf32>, %m: tensor<2x3xi32>",
        r#"%n = "graph.none"() : () -> none
           %y = "onnx.microsoft.Attention"(%x, %w, %n, %m) {num_heads = 2, unidirectional = 1}
             : (tensor<2x3x4xf32>, tensor<4x12xf32>, none, tensor<2x3xi32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "graph.none"() : () -> none
            %1 = "onnx.MatMul"(%arg0, %arg1) {onnx.opset = 18} : (tensor<2x3x4xf32>, tensor<4x12xf32>) -> tensor<*x!onnx.unknown>
            %2:3 = "graph.split"(%1) {axis = -1, n = 3} : (tensor<*x!onnx.unknown>) -> (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>)
            %3 = "onnx.Shape"(%1) {end = 2, onnx.opset = 18, start = 1} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %4 = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
            %5 = "onnx.CastLike"(%4, %arg2) {onnx.opset = 18} : (tensor<i64>, tensor<2x3xi32>) -> tensor<*x!onnx.unknown>
            %6 = "onnx.Greater"(%arg2, %5) {onnx.opset = 18} : (tensor<2x3xi32>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %7 = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
            %8 = "onnx.Unsqueeze"(%6, %7) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<2xi64>) -> tensor<*x!onnx.unknown>
            %9 = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
            %10 = "onnx.CastLike"(%9, %1) {onnx.opset = 18} : (tensor<f32>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %11 = "onnx.Constant"() {value = dense<-1.000000e+04> : tensor<f32>} : () -> tensor<f32>
            %12 = "onnx.CastLike"(%11, %1) {onnx.opset = 18} : (tensor<f32>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %13 = "onnx.Where"(%8, %10, %12) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %14 = "graph.attention"(%2#0, %2#1, %2#2, %13) {is_causal = 1, kv_num_heads = 2, q_num_heads = 2} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let x = "%x: tensor<2x3x4xf32>, %l: tensor<2xi32>, %t: tensor<i32>";
    for (operation, expected) in [
        (
            r#"%y = "onnx.microsoft.MultiHeadAttention"(%x, %x, %x) {num_heads = 3}
                 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<*xf32>"#,
            expect![
                "test.mlir:3:19: error: 'onnx.microsoft.MultiHeadAttention' op attribute 'num_heads' is expected to divide 4, the width of 'query', found 3 [TF0516]"
            ],
        ),
        (
            r#"%n = "graph.none"() : () -> none
               %y = "onnx.microsoft.GroupQueryAttention"(%x, %x, %x, %n, %n, %l, %t) {kv_num_heads = 3, num_heads = 4}
                 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, none, none, tensor<2xi32>, tensor<i32>)
                 -> tensor<*xf32>"#,
            expect![
                "test.mlir:4:21: error: 'onnx.microsoft.GroupQueryAttention' op attribute 'kv_num_heads' is expected to divide 'num_heads', found 3 and 4 [TF0516]"
            ],
        ),
        (
            r#"%y = "onnx.microsoft.SkipLayerNormalization"(%x, %l, %x)
                 : (tensor<2x3x4xf32>, tensor<2xi32>, tensor<2x3x4xf32>) -> tensor<*xf32>"#,
            expect![
                "test.mlir:3:19: error: 'onnx.microsoft.SkipLayerNormalization' op expected a skip as wide as the input tensor<2x3x4xf32>, found tensor<2xi32> [TF0516]"
            ],
        ),
        (
            r#"%y = "onnx.microsoft.FusedConv"(%x, %x) {activation = "Swash"}
                 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<*xf32>"#,
            expect![
                "test.mlir:3:19: error: 'onnx.microsoft.FusedConv' op attribute 'activation' is no known one, found 'Swash' [TF0516]"
            ],
        ),
        (
            r#"%y = "onnx.ext.com.microsoft.nchwc.Conv"(%x, %x)
                 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<*xf32>"#,
            expect![
                "test.mlir:3:19: error: 'onnx.ext.com.microsoft.nchwc.Conv' op 'com.microsoft.nchwc.Conv' is laid out for one machine by ONNX Runtime's optimisation level 'all'; save the model at level 'extended' or 'basic' [TF0516]"
            ],
        ),
    ] {
        refuse(x, operation, expected);
    }
}

#[test]
fn ranks_follow_from_what_others_become() {
    // The mask's is found when all else has been replaced.
    let text = function(
        "%x: tensor<2x3x4xf32>, %w: tensor<4x12xf32>, %m: tensor<2x3xi64>",
        r#"%n = "graph.none"() : () -> none
           %g = "onnx.microsoft.Gelu"(%x) : (tensor<2x3x4xf32>) -> tensor<*xf32>
           %k = "onnx.Cast"(%m) {to = 6} : (tensor<2x3xi64>) -> tensor<*xi32>
           %y = "onnx.microsoft.Attention"(%g, %w, %n, %k) {num_heads = 2}
             : (tensor<*xf32>, tensor<4x12xf32>, none, tensor<*xi32>) -> tensor<*xf32>"#,
    );
    let text = testing::run("onnx-upgrade", &text);
    assert!(
        text.contains("graph.attention") && !text.contains("microsoft.A"),
        "{text}"
    );
    refuse(
        "%x: tensor<2x3x4xf32>, %w: tensor<4x12xf32>, %m: tensor<*xi32>",
        r#"%n = "graph.none"() : () -> none
           %y = "onnx.microsoft.Attention"(%x, %w, %n, %m) {num_heads = 2}
             : (tensor<2x3x4xf32>, tensor<4x12xf32>, none, tensor<*xi32>) -> tensor<*xf32>"#,
        expect![
            "test.mlir:4:17: error: 'onnx.microsoft.Attention' op expected 'mask_index' to be of known rank, found tensor<*xi32> [TF0516]"
        ],
    );
}
