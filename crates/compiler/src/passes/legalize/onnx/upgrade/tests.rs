use expect_test::{Expect, expect};

use crate::passes::testing;

/// Upgrades a function that returns the result of an operation on `%x`, and shows it without its frame.
fn check(version: i64, operation: &str, expected: Expect) {
    let text = format!(
        "module attributes {{onnx.opset = {version} : i64}} {{
           func.func @main(%x: tensor<?x4xf32>, %s: tensor<4xf32>) -> tensor<*xf32> {{
             {operation} -> tensor<*xf32>
             return %y : tensor<*xf32>
           }}
         }}"
    );
    let text = testing::run("onnx-upgrade", &text);
    let shown = text
        .lines()
        .filter(|line| line.contains("onnx.") && !line.contains("module"));
    let shown: Vec<&str> = shown.map(str::trim).collect();
    expected.assert_eq(&shown.join("\n"));
}

#[test]
fn attributes_become_operands() {
    check(
        11,
        r#"%y = "onnx.Squeeze"(%x) {axes = [0, 2]} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<[0, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
            %1 = "onnx.Squeeze"(%arg0, %0) {onnx.opset = 13} : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<*xf32>"#]],
    );
    check(
        17,
        r#"%y = "onnx.ReduceMean"(%x) {axes = [1], keepdims = 0} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
            %1 = "onnx.ReduceMean"(%arg0, %0) {keepdims = 0, onnx.opset = 18} : (tensor<?x4xf32>, tensor<1xi64>) -> tensor<*xf32>"#]],
    );
    check(
        9,
        r#"%y = "onnx.Slice"(%x) {ends = [9], starts = [1]} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
            %1 = "onnx.Constant"() {value = dense<9> : tensor<1xi64>} : () -> tensor<1xi64>
            %2 = "onnx.Slice"(%arg0, %0, %1) {onnx.opset = 13} : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>"#]],
    );
    check(
        9,
        r#"%y = "onnx.Pad"(%x) {mode = "constant", pads = [0, 0, 1, 1], value = 1.5 : f32} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<[0, 0, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
            %1 = "onnx.Constant"() {value = dense<1.500000e+00> : tensor<f32>} : () -> tensor<f32>
            %2 = "onnx.Pad"(%arg0, %0, %1) {mode = "constant", onnx.opset = 13} : (tensor<?x4xf32>, tensor<4xi64>, tensor<f32>) -> tensor<*xf32>"#]],
    );
    check(
        9,
        r#"%y = "onnx.Clip"(%x) {max = 6.0 : f32} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %1 = "onnx.Constant"() {value = dense<6.000000e+00> : tensor<f32>} : () -> tensor<f32>
            %2 = "onnx.Clip"(%arg0, %0, %1) {onnx.opset = 13} : (tensor<?x4xf32>, none, tensor<f32>) -> tensor<*xf32>"#]],
    );
    check(
        17,
        r#"%y = "onnx.DFT"(%x) {inverse = 1} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %1 = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
            %2 = "onnx.DFT"(%arg0, %0, %1) {inverse = 1, onnx.opset = 20} : (tensor<?x4xf32>, none, tensor<i64>) -> tensor<*xf32>"#]],
    );
}

#[test]
fn scales_become_those_of_resize() {
    check(
        7,
        r#"%y = "onnx.Upsample"(%x) {mode = "nearest", scales = [1.0 : f32, 2.0 : f32]} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %1 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
            %2 = "onnx.Resize"(%arg0, %0, %1) {coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor", onnx.opset = 13} : (tensor<?x4xf32>, none, tensor<2xf32>) -> tensor<*xf32>"#]],
    );
    check(
        10,
        r#"%y = "onnx.Resize"(%x, %s) {mode = "linear"} : (tensor<?x4xf32>, tensor<4xf32>)"#,
        expect![[
            r#"%1 = "onnx.Resize"(%arg0, %0, %arg1) {coordinate_transformation_mode = "asymmetric", mode = "linear", nearest_mode = "floor", onnx.opset = 13} : (tensor<?x4xf32>, none, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
}

#[test]
fn what_only_trains_is_dropped() {
    check(
        7,
        r#"%y = "onnx.Dropout"(%x) {ratio = 0.5 : f32} : (tensor<?x4xf32>)"#,
        expect![[
            r#"%0 = "onnx.Identity"(%arg0) {onnx.opset = 13} : (tensor<?x4xf32>) -> tensor<*xf32>"#
        ]],
    );
    check(
        7,
        r#"%y = "onnx.BatchNormalization"(%x, %s, %s, %s, %s) {epsilon = 0.5 : f32, spatial = 1}
               : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)"#,
        expect![[
            r#"%0 = "onnx.BatchNormalization"(%arg0, %arg1, %arg1, %arg1, %arg1) {epsilon = 5.000000e-01 : f32, onnx.opset = 15} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
}

#[test]
fn softmax_of_several_dimensions_is_that_of_a_matrix() {
    check(
        12,
        r#"%y = "onnx.Softmax"(%x) : (tensor<?x4xf32>)"#,
        expect![[
            r#"%0 = "onnx.Softmax"(%arg0) {axis = -1, onnx.opset = 18} : (tensor<?x4xf32>) -> tensor<*xf32>"#
        ]],
    );
    check(
        11,
        r#"%y = "onnx.LogSoftmax"(%x) {axis = 0} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Shape"(%arg0) {onnx.opset = 18} : (tensor<?x4xf32>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.Flatten"(%arg0) {axis = 0, onnx.opset = 18} : (tensor<?x4xf32>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.LogSoftmax"(%1) {axis = -1, onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %3 = "onnx.Reshape"(%2, %0) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
}

#[test]
fn what_is_new_or_means_something_else_stays() {
    check(
        13,
        r#"%y = "onnx.Softmax"(%x) {axis = 1} : (tensor<?x4xf32>)"#,
        expect![[r#"%0 = "onnx.Softmax"(%arg0) {axis = 1} : (tensor<?x4xf32>) -> tensor<*xf32>"#]],
    );
    check(
        18,
        r#"%y = "onnx.ReduceMean"(%x) {keepdims = 0} : (tensor<?x4xf32>)"#,
        expect![[
            r#"%0 = "onnx.ReduceMean"(%arg0) {keepdims = 0} : (tensor<?x4xf32>) -> tensor<*xf32>"#
        ]],
    );
    check(
        8,
        r#"%y = "onnx.BatchNormalization"(%x, %s, %s, %s, %s) {spatial = 0}
               : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)"#,
        expect![[
            r#"%0 = "onnx.BatchNormalization"(%arg0, %arg1, %arg1, %arg1, %arg1) {spatial = 0} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
    check(
        10,
        r#"%y = "onnx.RoiAlign"(%x, %s, %s) : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>)"#,
        expect![[
            r#"%0 = "onnx.RoiAlign"(%arg0, %arg1, %arg1) {coordinate_transformation_mode = "output_half_pixel", onnx.opset = 16} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
}

#[test]
fn attention_with_graphs_becomes_operations() {
    let of = "tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>";
    let text = format!(
        "module attributes {{onnx.opset = 26 : i64}} {{
           func.func @main(%x: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {{
             %y = \"onnx.preview.FlexAttention\"(%x, %x, %x) ({{
             ^bb0(%scores: tensor<*xf32>):
               %t = \"onnx.Tanh\"(%scores) : (tensor<*xf32>) -> tensor<*xf32>
               \"graph.yield\"(%t) : (tensor<*xf32>) -> ()
             }}) {{onnx.regions = [\"score_mod\"], scale = 0.5 : f32}} : ({of}) -> tensor<1x2x3x4xf32>
             return %y : tensor<1x2x3x4xf32>
           }}
         }}"
    );
    let names = |text: &str| {
        let names = text.split("\"onnx.").skip(1);
        let names = names.filter_map(|rest| rest.split_once('"').map(|(name, _)| name));
        names.collect::<Vec<_>>().join(" ")
    };
    let expanded = testing::run("onnx-upgrade", &text);
    expect!["Constant Mul Transpose MatMul Tanh Softmax MatMul"].assert_eq(&names(&expanded));
    // Heads that share keys, and elements that are not precise enough.
    let keys = "tensor<1x1x3x4xf32>";
    let shared = text
        .replace("(%x, %x, %x)", "(%x, %k, %k)")
        .replace(
            "@main(%x: tensor<1x2x3x4xf32>)",
            &format!("@main(%x: tensor<1x2x3x4xf32>, %k: {keys})"),
        )
        .replace(of, &format!("tensor<1x2x3x4xf32>, {keys}, {keys}"))
        .replace("xf32>", "xf16>")
        .replace("tensor<*xf16>", "tensor<*xf32>");
    let expanded = testing::run("onnx-upgrade", &shared);
    expect!["Constant CastLike Mul Shape Shape Shape Shape Div Concat Reshape Constant Unsqueeze Transpose MatMul Shape Shape Concat Reshape Cast Tanh Softmax Cast Shape Shape Shape Shape Shape Div Concat Reshape Constant Unsqueeze MatMul Shape Shape Concat Reshape CastLike"].assert_eq(&names(&expanded));
    // Without the name of its graph it stays, and can't be lowered.
    let nameless = text.replace("onnx.regions = [\"score_mod\"], ", "");
    let refused = testing::run("onnx-upgrade,graph-lower", &nameless);
    assert!(
        refused.contains("has graphs inside, and no kernel runs it"),
        "{refused}"
    );
}

#[test]
fn learned_models_become_operations_where_these_are_the_same() {
    check(
        17,
        r#"%y = "onnx.ml.Scaler"(%x) {scale = [2.0 : f32]} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<1xf32>} : () -> tensor<1xf32>
            %1 = "onnx.Mul"(%arg0, %0) {onnx.opset = 18} : (tensor<?x4xf32>, tensor<1xf32>) -> tensor<*xf32>"#]],
    );
    // Without offset and scale it passes on its operand, whose type stays.
    let passed = testing::run(
        "onnx-upgrade",
        r#"func.func @main(%x: tensor<?x4xf32>) -> tensor<*xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
             %y = "onnx.ml.Scaler"(%x) : (tensor<?x4xf32>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }"#,
    );
    assert!(
        passed.starts_with("func.func @main(%arg0: tensor<?x4xf32>)"),
        "{passed}"
    );
    // Errors for what is unknown are none that other operations have.
    check(
        17,
        r#"%y = "onnx.ml.OneHotEncoder"(%x) {cats_int64s = [1], zeros = 0} : (tensor<?x4xf32>)"#,
        expect![[r#"
            %0 = "onnx.ml.OneHotEncoder"(%arg0) {cats_int64s = [1], zeros = 0} : (tensor<?x4xf32>) -> tensor<*xf32>"#]],
    );
}

#[test]
fn what_is_wrong_with_learned_models_is_told() {
    let told = |operation: &str, wanted: &str| {
        let text = format!(
            r#"func.func @main(%x: tensor<?x4xf32>) -> tensor<*xf32> {{
              %y = "onnx.ml.{operation} : (tensor<?x4xf32>) -> tensor<*xf32>
              return %y : tensor<*xf32>
            }}"#
        );
        let found = testing::run("onnx-upgrade", &text);
        assert!(found.contains(wanted), "{found}");
    };
    told(
        r#"Normalizer"(%x) {norm = "L9"}"#,
        "'onnx.ml.Normalizer' op attribute 'norm' is expected to be 'MAX', 'L1' or 'L2', found 'L9'",
    );
    told(
        r#"Imputer"(%x) {replaced_value_int64 = 3}"#,
        "attribute 'imputed_value_floats' is expected to have elements, or 'imputed_value_int64s'",
    );
    told(
        r#"Imputer"(%x) {imputed_value_floats = [1.0 : f32, 2.0 : f32]}"#,
        "attribute 'imputed_value_floats' is expected to have 1 element or 4, found 2",
    );
    told(
        r#"Imputer"(%x) {imputed_value_int64s = [1, 2, 3]}"#,
        "attribute 'imputed_value_int64s' is expected to have 1 element or 4, found 3",
    );
    told(
        r#"LinearRegressor"(%x) {coefficients = [1.0 : f32], targets = -1}"#,
        "attribute 'targets' is expected to be at least 1, found -1",
    );
    told(
        r#"LinearRegressor"(%x) {coefficients = [1.0 : f32], targets = 2}"#,
        "attribute 'coefficients' is expected to have as many elements for each of 2 targets, found 1",
    );
    told(
        r#"LinearRegressor"(%x) {coefficients = [1.0 : f32], intercepts = [1.0 : f32, 2.0 : f32]}"#,
        "attribute 'intercepts' is expected to have 1 elements, found 2",
    );
    told(
        r#"LinearRegressor"(%x) {coefficients = [1.0 : f32], post_transform = "CUBE"}"#,
        "attribute 'post_transform' is expected to be 'NONE', 'LOGISTIC' or 'SOFTMAX', found 'CUBE'",
    );
    for name in ["PROBIT", "SOFTMAX_ZERO"] {
        told(
            &format!(
                r#"LinearRegressor"(%x) {{coefficients = [1.0 : f32], post_transform = "{name}"}}"#
            ),
            &format!("attribute 'post_transform' is '{name}', which is not supported"),
        );
    }
    told(
        r#"FeatureVectorizer"(%x) {inputdimensions = [1, 2]}"#,
        "attribute 'inputdimensions' is expected to have 1 elements, found 2",
    );
}

/// Tests operands before version 7 that begin at an axis of the first operand.
#[test]
fn operands_that_begin_at_an_axis_get_dimensions_behind() {
    check(
        6,
        r#"%y = "onnx.Add"(%x, %s) {axis = 0, broadcast = 1} : (tensor<?x4xf32>, tensor<4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Shape"(%arg1) {onnx.opset = 18} : (tensor<4xf32>) -> tensor<*x!onnx.unknown>
            %1 = "onnx.Shape"(%arg0) {onnx.opset = 18} : (tensor<?x4xf32>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.Shape"(%1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %3 = "onnx.Shape"(%arg1) {onnx.opset = 18} : (tensor<4xf32>) -> tensor<*x!onnx.unknown>
            %4 = "onnx.Shape"(%3) {onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %5 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
            %6 = "onnx.Sub"(%2, %4) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %7 = "onnx.Sub"(%6, %5) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<1xi64>) -> tensor<*x!onnx.unknown>
            %8 = "onnx.ConstantOfShape"(%7) {onnx.opset = 18, value = dense<1> : tensor<1xi64>} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %9 = "onnx.Concat"(%0, %8) {axis = 0, onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %10 = "onnx.Reshape"(%arg1, %9) {onnx.opset = 18} : (tensor<4xf32>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %11 = "onnx.Add"(%arg0, %10) {onnx.opset = 7} : (tensor<?x4xf32>, tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
    check(
        6,
        r#"%y = "onnx.Sub"(%x, %s) {broadcast = 1} : (tensor<?x4xf32>, tensor<4xf32>)"#,
        expect![[
            r#"%0 = "onnx.Sub"(%arg0, %arg1) {onnx.opset = 7} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
    // What they mean together is not said.
    check(
        6,
        r#"%y = "onnx.Mul"(%x, %s) {axis = -1, broadcast = 1} : (tensor<?x4xf32>, tensor<4xf32>)"#,
        expect![[
            r#"%0 = "onnx.Mul"(%arg0, %arg1) {axis = -1, broadcast = 1} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<*xf32>"#
        ]],
    );
    check(
        6,
        r#"%y = "onnx.PRelu"(%x, %s) : (tensor<?x4xf32>, tensor<4xf32>)"#,
        expect![[r#"
            %0 = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
            %1 = "onnx.Shape"(%arg0) {onnx.opset = 18} : (tensor<?x4xf32>) -> tensor<*x!onnx.unknown>
            %2 = "onnx.Shape"(%1) {onnx.opset = 18} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %3 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
            %4 = "onnx.Sub"(%2, %3) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<1xi64>) -> tensor<*x!onnx.unknown>
            %5 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
            %6 = "onnx.Max"(%4, %5) {onnx.opset = 18} : (tensor<*x!onnx.unknown>, tensor<1xi64>) -> tensor<*x!onnx.unknown>
            %7 = "onnx.ConstantOfShape"(%6) {onnx.opset = 18, value = dense<1> : tensor<1xi64>} : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %8 = "onnx.Concat"(%0, %7) {axis = 0, onnx.opset = 18} : (tensor<1xi64>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %9 = "onnx.Reshape"(%arg1, %8) {onnx.opset = 18} : (tensor<4xf32>, tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
            %10 = "onnx.PRelu"(%arg0, %9) {onnx.opset = 7} : (tensor<?x4xf32>, tensor<*x!onnx.unknown>) -> tensor<*xf32>"#]],
    );
}

/// Tests that the first `Resize` takes the element above where it makes a picture smaller.
#[test]
fn the_first_resize_takes_the_element_above_of_smaller_pictures() {
    for scales in ["[1.0, 2.0]", "[1.0, 0.5]", "[2.0, 0.5]"] {
        let operation = format!(
            r#"%z = "onnx.Constant"() {{value = dense<{scales}> : tensor<2xf32>}} : () -> tensor<2xf32>
               %y = "onnx.Resize"(%x, %z) : (tensor<?x4xf32>, tensor<2xf32>)"#
        );
        let expected = match scales {
            "[1.0, 2.0]" => expect![[r#"
                %0 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>} : () -> tensor<2xf32>
                %2 = "onnx.Resize"(%arg0, %1, %0) {coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor", onnx.opset = 13} : (tensor<?x4xf32>, none, tensor<2xf32>) -> tensor<*xf32>"#]],
            "[1.0, 0.5]" => expect![[r#"
                %0 = "onnx.Constant"() {value = dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf32>} : () -> tensor<2xf32>
                %2 = "onnx.Resize"(%arg0, %1, %0) {coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "ceil", onnx.opset = 13} : (tensor<?x4xf32>, none, tensor<2xf32>) -> tensor<*xf32>"#]],
            _ => expect![[r#"
                %0 = "onnx.Constant"() {value = dense<[2.000000e+00, 5.000000e-01]> : tensor<2xf32>} : () -> tensor<2xf32>
                %1 = "onnx.Resize"(%arg0, %0) : (tensor<?x4xf32>, tensor<2xf32>) -> tensor<*xf32>"#]],
        };
        check(10, &operation, expected);
    }
}
