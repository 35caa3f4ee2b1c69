//! Tests of patterns that exporters write as many operations, and of others that look like them.

use expect_test::expect;

use crate::passes::testing::run;

/// Writes operations, a line each: a result, a name, operands, and attributes.
///
/// Values are as wide as anything, but for `x` and constants, whose types are told.
fn operations(lines: &[&str], types: &[(&str, &str)]) -> String {
    let line = |line: &&str| {
        let (line, attributes) = line.split_once(" {").unwrap_or((line, "}"));
        let words: Vec<&str> = line.split(' ').collect();
        let operands: Vec<String> = words[2..].iter().map(|word| format!("%{word}")).collect();
        let ty = |word: &&str| {
            let known = types.iter().find(|(name, _)| name == word);
            format!("tensor<{}>", known.map_or("*xf32", |(_, ty)| ty))
        };
        let types: Vec<String> = words[2..].iter().map(ty).collect();
        format!(
            "%{} = \"onnx.{}\"({}) {{{attributes} : ({}) -> tensor<*xf32>\n",
            words[0],
            words[1],
            operands.join(", "),
            types.join(", ")
        )
    };
    lines.iter().map(line).collect()
}

fn constant(name: &str, value: &str, ty: &str) -> String {
    let ty = format!("tensor<{ty}>");
    format!("%{name} = \"onnx.Constant\"() {{value = dense<{value}> : {ty}}} : () -> {ty}\n")
}

/// Returns the operations that are left of those on two rows of four that make `y`.
fn rows(lines: &[&str]) -> String {
    rows_of([2, 4], lines)
}

/// Returns the operations that are left of those on a matrix that make `y`.
fn rows_of([n, width]: [usize; 2], lines: &[&str]) -> String {
    let x = format!("{n}x{width}xf32");
    let constants = [
        ("one", "1.0", "f32"),
        ("half", "0.5", "f32"),
        ("two", "2.0", "f32"),
        ("three", "3.0", "f32"),
        ("root", "1.41421354", "f32"),
        ("inverse", "0.707106769", "f32"),
        ("rate", "0.797884583", "f32"),
        ("cubic", "0.044715", "f32"),
        ("epsilon", "1.0e-5", "f32"),
        ("least", "0xFF800000", "f32"),
        ("column", "[2, 1]", "2xi64"),
        ("whole", "[2, 4]", "2xi64"),
        ("last", "-1", "1xi64"),
        ("first", "0", "1xi64"),
        ("scale", "[1.0, 2.0, 3.0, 4.0]", "4xf32"),
        ("shift", "[4.0, 3.0, 2.0, 1.0]", "4xf32"),
        ("ones", "[[1.0]]", "1x1xf32"),
        ("deep", "[[[1.0]]]", "1x1x1xf32"),
    ];
    let mut types: Vec<(&str, &str)> = vec![("x", &x)];
    types.extend(constants.map(|(name, _, ty)| (name, ty)));
    let written = constants.map(|(name, value, ty)| constant(name, value, ty));
    let text = format!(
        "func.func @main(%x: tensor<{x}>) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], \
         model.output_names = [\"y\"], model.input_dims = [[{n} : i64, {width} : i64]]}} {{\n{}{}tfrt.return %y : tensor<*xf32>\n}}",
        written.concat(),
        operations(lines, &types)
    );
    run("onnx-to-graph,graph-infer,graph-fuse", &text)
}

#[test]
fn gelu_is_found_in_any_order_of_factors() {
    let orders: [&[&str]; 4] = [
        &[
            "d Div x root",
            "e Erf d",
            "s Add e one",
            "m Mul x s",
            "y Mul m half",
        ],
        &[
            "d Mul inverse x",
            "e Erf d",
            "s Add one e",
            "m Mul half s",
            "y Mul m x",
        ],
        &[
            "d Div x root",
            "e Erf d",
            "s Add e one",
            "m Mul x s",
            "y Div m two",
        ],
        &[
            "h Mul x half",
            "d Div x root",
            "e Erf d",
            "s Add e ones",
            "y Mul h s",
        ],
    ];
    for order in orders {
        let found = rows(order);
        assert!(found.contains("[\"gelu a0\"]"), "{found}");
    }
    let orders: [&[&str]; 3] = [
        &[
            "p Pow x three",
            "c Mul p cubic",
            "a Add x c",
            "r Mul a rate",
            "t Tanh r",
            "s Add t one",
            "m Mul x s",
            "y Mul m half",
        ],
        &[
            "q Mul x x",
            "p Mul q x",
            "c Mul cubic p",
            "a Add c x",
            "r Mul rate a",
            "t Tanh r",
            "s Add one t",
            "m Mul half x",
            "y Mul m s",
        ],
        &[
            "q Mul x x",
            "c Mul cubic q",
            "a Add c one",
            "r Mul rate x",
            "i Mul r a",
            "t Tanh i",
            "s Add one t",
            "m Mul half x",
            "y Mul m s",
        ],
    ];
    for order in orders {
        let found = rows(order);
        assert!(found.contains("[\"gelu_tanh a0\"]"), "{found}");
    }
}

#[test]
fn what_is_not_quite_gelu_stays() {
    let others: [&[&str]; 7] = [
        // Another number, in each place.
        &[
            "d Div x two",
            "e Erf d",
            "s Add e one",
            "m Mul x s",
            "y Mul m half",
        ],
        &[
            "d Div x root",
            "e Erf d",
            "s Add e half",
            "m Mul x s",
            "y Mul m half",
        ],
        &[
            "d Div x root",
            "e Erf d",
            "s Add e one",
            "m Mul x s",
            "y Mul m one",
        ],
        // Another value.
        &[
            "z Neg x",
            "d Div z root",
            "e Erf d",
            "s Add e one",
            "m Mul x s",
            "y Mul m half",
        ],
        // Somebody else looks at what comes between.
        &[
            "d Div x root",
            "e Erf d",
            "s Add e one",
            "m Mul x s",
            "g Mul m half",
            "y Add g e",
        ],
        // A number that gives the result another dimension.
        &[
            "d Div x root",
            "e Erf d",
            "s Add e deep",
            "m Mul x s",
            "y Mul m half",
        ],
        &[
            "p Pow x two",
            "c Mul p cubic",
            "a Add x c",
            "r Mul a rate",
            "t Tanh r",
            "s Add t one",
            "m Mul x s",
            "y Mul m half",
        ],
    ];
    for other in others {
        let found = rows(other);
        assert!(!found.contains("Gelu"), "{found}");
    }
}

const NORM: [&str; 9] = [
    "m ReduceMean x last",
    "d Sub x m",
    "q Pow d two",
    "v ReduceMean q last",
    "e Add v epsilon",
    "r Sqrt e",
    "n Div d r",
    "z Mul n scale",
    "y Add shift z",
];

#[test]
fn layer_normalization_is_found() {
    expect![[r#"
        func.func @main(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {model.input_dims = [[2, 4]], model.input_names = ["x"], model.output_names = ["y"]} {
          %0 = "onnx.Constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
          %1 = "onnx.Constant"() {value = dense<[4.000000e+00, 3.000000e+00, 2.000000e+00, 1.000000e+00]> : tensor<4xf32>} : () -> tensor<4xf32>
          %2 = "graph.norm"(%arg0, %0, %1) {axis = -1, epsilon = 1.000000e-05 : f32, kind = "layer"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
          tfrt.return %2 : tensor<2x4xf32>
        }
    "#]]
    .assert_eq(&rows(&NORM));
    let mut product = NORM;
    product[2] = "q Mul d d";
    assert!(rows(&product).contains("graph.norm"));
    let unshifted = [&NORM[..7], &["y Mul scale n"]].concat();
    assert!(rows(&unshifted).contains("graph.norm"));
}

const SOFTMAX: [&str; 5] = [
    "m ReduceMax x last",
    "d Sub x m",
    "e Exp d",
    "s ReduceSum e last",
    "y Div e s",
];

#[test]
fn softmax_is_found() {
    expect![[r#"
        func.func @main(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {model.input_dims = [[2, 4]], model.input_names = ["x"], model.output_names = ["y"]} {
          %0 = "graph.softmax"(%arg0) {axis = -1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
          tfrt.return %0 : tensor<2x4xf32>
        }
    "#]]
    .assert_eq(&rows(&SOFTMAX));
    // As JAX writes it: the least number once more, and rows that are spread by themselves.
    let spread = [
        "l ReduceMax x last {keepdims = 0 : i64}",
        "n Max least l",
        "m Reshape n column",
        "d Sub x m",
        "e Exp d",
        "r ReduceSum e last {keepdims = 0 : i64}",
        "t Reshape r column",
        "s Expand t whole",
        "y Div e s",
    ];
    let found = rows(&spread);
    assert!(
        found.contains("graph.softmax") && !found.contains("exp"),
        "{found}"
    );
}

#[test]
fn what_is_not_quite_softmax_stays() {
    let changes: [(usize, &str); 7] = [
        (0, "m ReduceMin x last"),
        (0, "m ReduceMax x first"),
        (1, "d Sub m x"),
        (2, "e Sinh d"),
        (3, "s ReduceSum e first"),
        (3, "s ReduceSum d last"),
        (4, "y Div s e"),
    ];
    for (place, line) in changes {
        let mut lines = SOFTMAX;
        lines[place] = line;
        let found = rows(&lines);
        assert!(!found.contains("graph.softmax"), "{place}: {found}");
    }
    // Sums without their dimension divide the columns of a square.
    for (place, line) in [
        (0, "m ReduceMax x last {keepdims = 0 : i64}"),
        (3, "s ReduceSum e last {keepdims = 0 : i64}"),
    ] {
        let mut lines = SOFTMAX;
        lines[place] = line;
        let found = rows_of([4, 4], &lines);
        assert!(!found.contains("graph.softmax"), "{place}: {found}");
    }
    // Somebody else looks at the exponentials.
    let used = [&SOFTMAX[..4], &["q Div e s", "y Add q e"]].concat();
    assert!(!rows(&used).contains("graph.softmax"));
}

#[test]
fn what_is_not_quite_layer_normalization_stays() {
    let changes: [(usize, &str); 9] = [
        (0, "m ReduceMean x first"),
        (0, "m ReduceMean x last {keepdims = 0 : i64}"),
        (1, "d Sub m x"),
        (2, "q Pow d three"),
        (3, "v ReduceMean q first"),
        (4, "e Add v scale"),
        (6, "n Div r d"),
        (7, "z Mul n half"),
        (8, "y Add m z"),
    ];
    for (place, line) in changes {
        let mut lines = NORM;
        lines[place] = line;
        let found = rows(&lines);
        let is_shifted = (place, 8) == (8, place);
        // Without its own shift it is one all the same, but the mean has another user.
        assert!(
            !found.contains("graph.norm"),
            "{place} {is_shifted}: {found}"
        );
    }
    let mut shared = NORM.to_vec();
    shared[8] = "w Add shift z";
    shared.push("y Add w d");
    assert!(!rows(&shared).contains("LayerNormalization"));
}

const ATTENTION: [&str; 16] = [
    "q MatMul x w",
    "k MatMul x w2",
    "v MatMul x w3",
    "qh Reshape q apart",
    "kh Reshape k apart",
    "vh Reshape v apart",
    "qt Transpose qh {perm = [0, 2, 1, 3]}",
    "kt Transpose kh {perm = [0, 2, 3, 1]}",
    "vt Transpose vh {perm = [0, 2, 1, 3]}",
    "s MatMul qt kt",
    "d Div s two",
    "a Add d mask",
    "p Softmax a {axis = -1 : i64}",
    "m MatMul p vt",
    "t Transpose m {perm = [0, 2, 1, 3]}",
    "y Reshape t joined",
];

fn attention(lines: &[&str]) -> String {
    let constants = [
        ("two", "2.0", "f32"),
        ("w", "1.0", "8x8xf32"),
        ("w2", "2.0", "8x8xf32"),
        ("w3", "3.0", "8x8xf32"),
        ("apart", "[0, 0, 2, 4]", "4xi64"),
        ("four", "[0, 0, 4, 2]", "4xi64"),
        ("joined", "[0, 0, 8]", "3xi64"),
        ("rows", "[1, -1, 8]", "3xi64"),
    ];
    let mut types: Vec<(&str, &str)> = vec![
        ("x", "?x?x8xf32"),
        ("mask", "?x1x1x?xf32"),
        ("large", "3x1x1x1xf32"),
    ];
    types.extend(constants.map(|(name, _, ty)| (name, ty)));
    let written = constants.map(|(name, value, ty)| constant(name, value, ty));
    let integers = |line: &str| line.replace("0, 2, 1, 3]", "0 : i64, 2 : i64, 1 : i64, 3 : i64]");
    let lines: Vec<String> = lines
        .iter()
        .map(|line| integers(line).replace("0, 2, 3, 1]", "0 : i64, 2 : i64, 3 : i64, 1 : i64]"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = format!(
        "module attributes {{onnx.opset = 17 : i64}} {{\nfunc.func @main(%x: tensor<?x?x8xf32>, %mask: \
         tensor<?x1x1x?xf32>, %large: tensor<3x1x1x1xf32>) -> tensor<*xf32> attributes {{model.input_names = [\"x\", \
         \"mask\", \"large\"], model.output_names = [\"y\"], model.input_dims = [[\"B\", \"S\", 8 : i64], [\"B\", 1 : i64, \
         1 : i64, \"S\"], [3 : i64, 1 : i64, 1 : i64, 1 : i64]]}} {{\n{}{}tfrt.return %y : tensor<*xf32>\n}}\n}}",
        written.concat(),
        operations(&lines, &types)
    );
    run("onnx-to-graph,graph-infer,graph-fuse", &text)
}

#[test]
fn attention_takes_heads_where_they_lie() {
    expect![[r#"
        module attributes {onnx.opset = 17} {
        func.func @main(%arg0: tensor<?x?x8xf32>, %arg1: tensor<?x1x1x?xf32>, %arg2: tensor<3x1x1x1xf32>) -> tensor<?x?x8xf32> attributes {model.input_dims = [["B", "S", 8], ["B", 1, 1, "S"], [3, 1, 1, 1]], model.input_names = ["x", "mask", "large"], model.output_names = ["y"]} {
          %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
          %1 = "onnx.Constant"() {value = dense<2.000000e+00> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
          %2 = "onnx.Constant"() {value = dense<3.000000e+00> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
          %3 = "graph.none"() : () -> none
          %4 = "cpu.fused.matmul"(%arg0, %0, %3, %3) {epilogue = [], model.shapes = [["B", "S", 8]], transposed = 0} : (tensor<?x?x8xf32>, tensor<8x8xf32>, none, none) -> tensor<?x?x8xf32>
          %5 = "graph.none"() : () -> none
          %6 = "cpu.fused.matmul"(%arg0, %1, %5, %5) {epilogue = [], model.shapes = [["B", "S", 8]], transposed = 0} : (tensor<?x?x8xf32>, tensor<8x8xf32>, none, none) -> tensor<?x?x8xf32>
          %7 = "graph.none"() : () -> none
          %8 = "cpu.fused.matmul"(%arg0, %2, %7, %7) {epilogue = [], model.shapes = [["B", "S", 8]], transposed = 0} : (tensor<?x?x8xf32>, tensor<8x8xf32>, none, none) -> tensor<?x?x8xf32>
          %9 = "cpu.fused.attention"(%4, %6, %8, %arg1) {heads = 2, model.shapes = [["B", "S", 8]], scale = 5.000000e-01 : f32} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x1x?xf32>) -> tensor<?x?x8xf32>
          tfrt.return %9 : tensor<?x?x8xf32>
        }
    "#]]
    .assert_eq(&attention(&ATTENTION));
    let mut unmasked = ATTENTION;
    (unmasked[11], unmasked[12]) = ("a Neg x", "p Softmax d {axis = 3 : i64}");
    assert!(attention(&unmasked).contains("cpu.fused.attention"));
}

#[test]
fn what_is_not_quite_attention_stays() {
    let changes: [(usize, &str); 7] = [
        (4, "kh Reshape k four"),
        (7, "kt Transpose kh {perm = [0, 2, 1, 3]}"),
        (8, "vt Transpose kh {perm = [0, 2, 3, 1]}"),
        (10, "d Div s mask"),
        (11, "a Add d large"),
        (12, "p Softmax a {axis = 2 : i64}"),
        (14, "t Transpose m {perm = [0, 2, 3, 1]}"),
    ];
    let mut shared = ATTENTION.to_vec();
    shared[15] = "z Reshape t joined";
    shared.extend(["u ReduceSum p", "y Add z u"]);
    assert!(!attention(&shared).contains("cpu.fused.attention"));
    for (place, line) in changes {
        let mut lines = ATTENTION;
        lines[place] = line;
        let found = attention(&lines);
        assert!(!found.contains("cpu.fused.attention"), "{place}: {found}");
    }
}

#[test]
fn attention_whose_heads_stay_apart_is_one_kernel_and_a_view() {
    let mut lines = ATTENTION;
    lines[15] = "y Reshape t rows";
    let found = attention(&lines);
    let kernels = [
        "cpu.fused.attention",
        "softmax",
        "graph.transpose",
        "graph.dot",
    ];
    let is_there = kernels.map(|name| found.contains(name));
    assert_eq!(is_there, [true, false, false, false], "{found}");
}
