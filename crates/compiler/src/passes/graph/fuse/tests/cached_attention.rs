//! Tests of attention to keys and values of a cache, and of what looks like it.

use expect_test::expect;

use crate::passes::testing::run;

const WIDE: &str = "tensor<*xf32>";

/// Attention of four heads to two of a cache, as exporters write it.
const ATTENTION: [&str; 15] = [
    "nk Concat pk k {axis = -2 : i64}",
    "nv Concat pv v {axis = 2 : i64}",
    "k1 Unsqueeze nk two",
    "k2 Expand k1 twice",
    "k3 Reshape k2 apart",
    "v1 Unsqueeze nv two",
    "v2 Expand v1 twice",
    "v3 Reshape v2 apart",
    "q1 Mul q half",
    "k4 Transpose k3 {perm = [0, 1, 3, 2]}",
    "k5 Mul k4 half",
    "s MatMul q1 k5",
    "a Add s mask",
    "p Softmax a {axis = -1 : i64}",
    "y MatMul p v3",
];

/// Returns what is left of operations, a line each: a result, a name, operands, and attributes.
fn fused(lines: &[&str]) -> String {
    let types = [
        ("q", "tensor<?x4x?x8xf32>"),
        ("k", "tensor<?x2x?x8xf32>"),
        ("v", "tensor<?x2x?x8xf32>"),
        ("pk", "tensor<?x2x?x8xf32>"),
        ("pv", "tensor<?x2x?x8xf32>"),
        ("mask", "tensor<?x1x?x?xf32>"),
        ("seen", "tensor<1x1x?x?xi1>"),
        ("least", "tensor<f32>"),
        ("half", "tensor<f32>"),
        ("two", "tensor<1xi64>"),
        ("first", "tensor<1xi64>"),
        ("twice", "tensor<5xi64>"),
        ("apart", "tensor<4xi64>"),
    ];
    let ty = |name: &&str| {
        types
            .iter()
            .find(|(own, _)| own == name)
            .map_or(WIDE, |(_, ty)| ty)
    };
    let line = |line: &&str| {
        let (line, attributes) = line.split_once(" {").unwrap_or((line, "}"));
        let words: Vec<&str> = line.split(' ').collect();
        let operands: Vec<String> = words[2..].iter().map(|word| format!("%{word}")).collect();
        let types: Vec<&str> = words[2..].iter().map(ty).collect();
        let (operands, types) = (operands.join(", "), types.join(", "));
        let (result, name) = (words[0], words[1]);
        format!("%{result} = \"onnx.{name}\"({operands}) {{{attributes} : ({types}) -> {WIDE}\n")
    };
    let lines: Vec<String> = lines.iter().map(line).collect();
    let arguments: Vec<String> = types[..7]
        .iter()
        .map(|(name, ty)| format!("%{name}: {ty}"))
        .collect();
    let text = format!(
        r#"module attributes {{onnx.opset = 17 : i64}} {{
func.func @main({}) -> ({WIDE}, {WIDE}, {WIDE}) attributes {{
    model.input_names = ["q", "k", "v", "pk", "pv", "mask", "seen"], model.output_names = ["y", "nk", "nv"],
    model.input_dims = [["B", 4 : i64, "S", 8 : i64], ["B", 2 : i64, "S", 8 : i64], ["B", 2 : i64, "S", 8 : i64],
                        ["B", 2 : i64, "P", 8 : i64], ["B", 2 : i64, "P", 8 : i64], ["B", 1 : i64, "S", "P + S"], [1 : i64, 1 : i64, "S", "P + S"]]}} {{
%least = "onnx.Constant"() {{value = dense<-3.40282347e+38> : tensor<f32>}} : () -> tensor<f32>
%half = "onnx.Constant"() {{value = dense<0.5> : tensor<f32>}} : () -> tensor<f32>
%two = "onnx.Constant"() {{value = dense<2> : tensor<1xi64>}} : () -> tensor<1xi64>
%first = "onnx.Constant"() {{value = dense<1> : tensor<1xi64>}} : () -> tensor<1xi64>
%twice = "onnx.Constant"() {{value = dense<[1, 1, 2, 1, 1]> : tensor<5xi64>}} : () -> tensor<5xi64>
%apart = "onnx.Constant"() {{value = dense<[0, 4, -1, 8]> : tensor<4xi64>}} : () -> tensor<4xi64>
{}tfrt.return %y, %nk, %nv : {WIDE}, {WIDE}, {WIDE}
}}
}}"#,
        arguments.join(", "),
        lines.concat()
    );
    let text = run("onnx-to-graph,graph-infer,graph-fuse", &text);
    let lines = text.lines().map(str::trim);
    let kept: Vec<&str> = lines.filter(|line| line.starts_with('%')).collect();
    kept.join("\n")
}

#[test]
fn attention_reads_a_cache_where_it_lies() {
    expect![[r#"
        %0 = "graph.concat"(%arg3, %arg1) {axis = -2, model.shapes = [["B", 2, "S+P", 8]]} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
        %1 = "graph.concat"(%arg4, %arg2) {axis = 2, model.shapes = [["B", 2, "S+P", 8]]} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
        %2 = "graph.attention"(%arg0, %0, %1, %arg5) {model.shapes = [["B", 4, "S", 8]], scale = 2.500000e-01 : f32} : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x1x?x?xf32>) -> tensor<?x4x?x8xf32>"#]].assert_eq(&fused(&ATTENTION));
    // As many heads of keys as of queries: none is repeated.
    let alike = [
        "nk Concat pk k {axis = 2 : i64}",
        "nv Concat pv v {axis = 2 : i64}",
        "t Transpose nk {perm = [0, 1, 3, 2]}",
        "s MatMul k t",
        "p Softmax s {axis = 3 : i64}",
        "y MatMul p nv",
    ];
    let found = fused(&alike);
    assert!(found.contains("graph.attention"), "{found}");
}

#[test]
fn scores_that_are_replaced_are_masked() {
    let causal = [
        "nk Concat pk k {axis = 2 : i64}",
        "nv Concat pv v {axis = 2 : i64}",
        "t Transpose nk {perm = [0, 1, 3, 2]}",
        "s MatMul k t",
        "d Mul s half",
        "w Where seen d least",
        "a Add w mask",
        "p Softmax a {axis = 3 : i64}",
        "y MatMul p nv",
    ];
    expect![[r#"
        %0 = "onnx.Constant"() {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
        %1 = "graph.concat"(%arg3, %arg1) {axis = 2, model.shapes = [["B", 2, "S+P", 8]]} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
        %2 = "graph.concat"(%arg4, %arg2) {axis = 2, model.shapes = [["B", 2, "S+P", 8]]} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
        %3 = "graph.select"(%arg6, %arg5, %0) : (tensor<1x1x?x?xi1>, tensor<?x1x?x?xf32>, tensor<f32>) -> tensor<?x?x?x?xf32>
        %4 = "graph.attention"(%arg1, %1, %2, %3) {model.shapes = [["B", 2, "S", 8]], scale = 5.000000e-01 : f32} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x?x?x?xf32>) -> tensor<?x2x?x8xf32>"#]].assert_eq(&fused(&causal));
    let mut unmasked = causal;
    (unmasked[6], unmasked[7]) = ("a Neg mask", "p Softmax w {axis = 3 : i64}");
    let found = fused(&unmasked);
    assert!(
        found.contains("graph.attention\"(%arg1, %0, %1, %arg6)"),
        "{found}"
    );
    let mut little = causal;
    little[5] = "w Where seen d half";
    let found = fused(&little);
    assert!(!found.contains("graph.attention"), "{found}");
}

#[test]
fn what_is_not_quite_attention_to_a_cache_stays() {
    let changes = [
        // No cache, or one of another dimension.
        (0, "nk Neg k"),
        (1, "nv Concat pv v {axis = 0 : i64}"),
        // Heads that are repeated in another order.
        (2, "k1 Unsqueeze nk first"),
        (6, "v2 Neg v1"),
        (9, "k4 Transpose k3 {perm = [0, 3, 1, 2]}"),
        (10, "k5 Mul k4 k4"),
        (12, "a Sub s mask"),
        (13, "p Softmax a {axis = 2 : i64}"),
    ];
    for (place, line) in changes {
        let mut lines = ATTENTION.to_vec();
        lines[place] = line;
        let found = fused(&lines);
        assert!(!found.contains("graph.attention"), "{place}: {found}");
    }
    // Weights that somebody else wants, too.
    let mut lines = ATTENTION.to_vec();
    lines[14] = "z MatMul p v3";
    lines.extend(["u Neg p", "w MatMul u v3", "y Add z w"]);
    let found = fused(&lines);
    assert!(!found.contains("graph.attention"), "{found}");
}
