//! Tests of shapes that are inferred in graphs.

use expect_test::expect;

use crate::passes::testing::check;

#[test]
fn windows_and_products_keep_symbols() {
    check(
        "graph-infer",
        r#"func.func @main(%x: tensor<?x3x?x224xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 3 : i64, "H", 224 : i64]]} {
             %w = "onnx.Constant"() {value = dense<1.0> : tensor<64x3x7x7xf32>} : () -> tensor<64x3x7x7xf32>
             %y = "onnx.Conv"(%x, %w) {pads = [3 : i64, 3 : i64, 3 : i64, 3 : i64], strides = [2 : i64, 2 : i64]}
                 : (tensor<?x3x?x224xf32>, tensor<64x3x7x7xf32>) -> tensor<*xf32>
             %z = "onnx.Relu"(%y) : (tensor<*xf32>) -> tensor<*xf32>
             %p = "onnx.GlobalAveragePool"(%z) : (tensor<*xf32>) -> tensor<*xf32>
             %f = "onnx.Flatten"(%p) : (tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %f : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?x3x?x224xf32>) -> tensor<?x64xf32> attributes {model.input_dims = [["N", 3, "H", 224]], model.input_names = ["x"], model.output_names = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<1.000000e+00> : tensor<64x3x7x7xf32>} : () -> tensor<64x3x7x7xf32>
              %1 = "onnx.Conv"(%arg0, %0) {model.shapes = [["N", 64, "floor((H-1)/2)+1", 112]], pads = [3, 3, 3, 3], strides = [2, 2]} : (tensor<?x3x?x224xf32>, tensor<64x3x7x7xf32>) -> tensor<?x64x?x112xf32>
              %2 = "onnx.Relu"(%1) {model.shapes = [["N", 64, "floor((H-1)/2)+1", 112]]} : (tensor<?x64x?x112xf32>) -> tensor<?x64x?x112xf32>
              %3 = "onnx.GlobalAveragePool"(%2) {model.shapes = [["N", 64, 1, 1]]} : (tensor<?x64x?x112xf32>) -> tensor<?x64x1x1xf32>
              %4 = "onnx.Flatten"(%3) {model.shapes = [["N", 64]]} : (tensor<?x64x1x1xf32>) -> tensor<?x64xf32>
              tfrt.return %4 : tensor<?x64xf32>
            }
        "#]],
    );
}

#[test]
fn shapes_are_followed_as_exporters_write_them() {
    check(
        "graph-infer",
        r#"func.func @main(%x: tensor<?x?x384xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["B", "S", 384 : i64]]} {
             %i0 = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
             %i1 = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
             %axis = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
             %heads = "onnx.Constant"() {value = dense<[12, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
             %s = "onnx.Shape"(%x) : (tensor<?x?x384xf32>) -> tensor<*xi64>
             %b = "onnx.Gather"(%s, %i0) : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
             %b1 = "onnx.Unsqueeze"(%b, %axis) : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
             %l = "onnx.Gather"(%s, %i1) : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
             %l1 = "onnx.Unsqueeze"(%l, %axis) : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
             %to = "onnx.Concat"(%b1, %l1, %heads) {axis = 0 : i64}
                 : (tensor<*xi64>, tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
             %r = "onnx.Reshape"(%x, %to) : (tensor<?x?x384xf32>, tensor<*xi64>) -> tensor<*xf32>
             %t = "onnx.Transpose"(%r) {perm = [0 : i64, 2 : i64, 1 : i64, 3 : i64]} : (tensor<*xf32>) -> tensor<*xf32>
             %k = "onnx.Transpose"(%r) {perm = [0 : i64, 2 : i64, 3 : i64, 1 : i64]} : (tensor<*xf32>) -> tensor<*xf32>
             %m = "onnx.MatMul"(%t, %k) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
             tfrt.return %m : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?x?x384xf32>) -> tensor<?x12x?x?xf32> attributes {model.input_dims = [["B", "S", 384]], model.input_names = ["x"], model.output_names = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
              %1 = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
              %2 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
              %3 = "onnx.Constant"() {value = dense<[12, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
              %4 = "onnx.Shape"(%arg0) : (tensor<?x?x384xf32>) -> tensor<3xi64>
              %5 = "onnx.Gather"(%4, %0) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
              %6 = "onnx.Unsqueeze"(%5, %2) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
              %7 = "onnx.Gather"(%4, %1) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
              %8 = "onnx.Unsqueeze"(%7, %2) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
              %9 = "onnx.Concat"(%6, %8, %3) {axis = 0} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
              %10 = "onnx.Reshape"(%arg0, %9) {model.shapes = [["B", "S", 12, 32]]} : (tensor<?x?x384xf32>, tensor<4xi64>) -> tensor<?x?x12x32xf32>
              %11 = "onnx.Transpose"(%10) {model.shapes = [["B", 12, "S", 32]], perm = [0, 2, 1, 3]} : (tensor<?x?x12x32xf32>) -> tensor<?x12x?x32xf32>
              %12 = "onnx.Transpose"(%10) {model.shapes = [["B", 12, 32, "S"]], perm = [0, 2, 3, 1]} : (tensor<?x?x12x32xf32>) -> tensor<?x12x32x?xf32>
              %13 = "onnx.MatMul"(%11, %12) {model.shapes = [["B", 12, "S", "S"]]} : (tensor<?x12x?x32xf32>, tensor<?x12x32x?xf32>) -> tensor<?x12x?x?xf32>
              tfrt.return %13 : tensor<?x12x?x?xf32>
            }
        "#]],
    );
}

#[test]
fn shapes_are_followed_as_tensorflow_writes_them() {
    check(
        "graph-infer",
        r#"func.func @main(%x: tensor<?x?x384xf32>) -> tensor<*xf32> attributes {
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["B", "S", 384 : i64]]} {
             %0 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
             %1 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
             %h = "onnx.Constant"() {value = dense<12> : tensor<i64>} : () -> tensor<i64>
             %w = "onnx.Constant"() {value = dense<32> : tensor<i64>} : () -> tensor<i64>
             %s = "graph.shape"(%x) : (tensor<?x?x384xf32>) -> tensor<3xi64>
             %b = "tf.StridedSlice"(%s, %0, %1, %1) {shrink_axis_mask = 1 : i64}
                 : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
             %to = "tf.Pack"(%b, %h, %w) : (tensor<*xi64>, tensor<i64>, tensor<i64>) -> tensor<*xi64>
             %y = "graph.reshape"(%x, %to) : (tensor<?x?x384xf32>, tensor<*xi64>) -> tensor<*xf32>
             %00 = "onnx.Constant"() {value = dense<0> : tensor<3xi64>} : () -> tensor<3xi64>
             %11 = "onnx.Constant"() {value = dense<1> : tensor<3xi64>} : () -> tensor<3xi64>
             %first = "tf.StridedSlice"(%x, %00, %00, %11) {begin_mask = 5 : i64, end_mask = 5 : i64, shrink_axis_mask = 2 : i64}
                 : (tensor<?x?x384xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<*xf32>
             %new = "tf.StridedSlice"(%x, %00, %00, %11) {begin_mask = 3 : i64, end_mask = 3 : i64, ellipsis_mask = 1 : i64, new_axis_mask = 2 : i64}
                 : (tensor<?x?x384xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<?x?x384xf32>) -> tensor<?x12x32xf32> attributes {model.input_dims = [["B", "S", 384]], model.input_names = ["x"], model.output_names = ["y"]} {
              %0 = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
              %1 = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
              %2 = "onnx.Constant"() {value = dense<12> : tensor<i64>} : () -> tensor<i64>
              %3 = "onnx.Constant"() {value = dense<32> : tensor<i64>} : () -> tensor<i64>
              %4 = "graph.shape"(%arg0) : (tensor<?x?x384xf32>) -> tensor<3xi64>
              %5 = "tf.StridedSlice"(%4, %0, %1, %1) {shrink_axis_mask = 1} : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
              %6 = "tf.Pack"(%5, %2, %3) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xi64>
              %7 = "graph.reshape"(%arg0, %6) {model.shapes = [["B", 12, 32]]} : (tensor<?x?x384xf32>, tensor<3xi64>) -> tensor<?x12x32xf32>
              %8 = "onnx.Constant"() {value = dense<0> : tensor<3xi64>} : () -> tensor<3xi64>
              %9 = "onnx.Constant"() {value = dense<1> : tensor<3xi64>} : () -> tensor<3xi64>
              %10 = "tf.StridedSlice"(%arg0, %8, %8, %9) {begin_mask = 5, end_mask = 5, model.shapes = [["B", 384]], shrink_axis_mask = 2} : (tensor<?x?x384xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<?x384xf32>
              %11 = "tf.StridedSlice"(%arg0, %8, %8, %9) {begin_mask = 3, ellipsis_mask = 1, end_mask = 3, model.shapes = [["B", "S", 1, ""]], new_axis_mask = 2} : (tensor<?x?x384xf32>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<?x?x1x?xf32>
              tfrt.return %7 : tensor<?x12x32xf32>
            }
        "#]],
    );
}

#[test]
fn ranges_are_as_long_as_what_they_count() {
    let text = r#"func.func @main(%x: tensor<?x?xi64>, %n: tensor<i64>) -> (tensor<*xi64>, tensor<*xi64>) attributes {
               model.input_names = ["x", "n"], model.output_names = ["y", "z"], model.input_dims = [["B", "S"], []]} {
             %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
             %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
             %shape = "onnx.Shape"(%x) : (tensor<?x?xi64>) -> tensor<*xi64>
             %length = "onnx.Gather"(%shape, %one) : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
             %y = "onnx.Range"(%zero, %length, %one) : (tensor<i64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
             %less = "onnx.Range"(%one, %length, %one) : (tensor<i64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
             %z = "onnx.Range"(%zero, %n, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<*xi64>
             %w = "onnx.Add"(%z, %less) : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
             tfrt.return %y, %w : tensor<*xi64>, tensor<*xi64>
           }"#;
    let found = crate::passes::testing::run("graph-infer", text);
    let ranges: Vec<&str> = found
        .lines()
        .filter(|line| line.contains("onnx.Range"))
        .collect();
    assert!(ranges[0].contains("model.shapes = [[\"S\"]]"), "{found}");
    // One less may be less than nothing, and of what a caller says nothing is known.
    for range in &ranges[1..] {
        assert!(!range.contains("model.shapes"), "{found}");
        assert!(range.ends_with("tensor<?xi64>"), "{found}");
    }
}

#[test]
fn names_that_read_like_calculations_are_none() {
    let text = |name: &str| {
        format!(
            r#"func.func @main(%x: tensor<?x4xf32>) -> tensor<*xf32> attributes {{
               model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["{name}", 4 : i64]]}} {{
             %y = "onnx.Relu"(%x) : (tensor<?x4xf32>) -> tensor<*xf32>
             tfrt.return %y : tensor<*xf32>
           }}"#
        )
    };
    let found = |name: &str| crate::passes::testing::run("graph-infer", &text(name));
    assert!(found("batch_size").contains("model.shapes = [[\"batch_size\", 4]]"));
    assert!(found("N+1").contains("model.shapes = [[\"'N+1'\", 4]]"));
    // A long one would stand at each operation.
    assert!(!found(&"n".repeat(1000)).contains("model.shapes"));
}
