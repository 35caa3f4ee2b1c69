//! Tests that patterns which exporters write as many operations give what their kernels give.

use super::{assert_near, constant, numbers, open};

/// Runs a graph as it is written, and as it is recognised by its kernel, for several extents.
fn assert_recognised(body: &str, kernel: &str, shapes: &[&[usize]]) {
    let (fused, plain) = (open(body, true), open(body, false));
    assert!(fused.text.contains(kernel), "{}", fused.text);
    assert!(!plain.text.contains(kernel), "{}", plain.text);
    for shape in shapes {
        let x = numbers(11, shape.iter().product());
        let ((found_shape, found), (wanted_shape, wanted)) =
            (fused.run(shape, &x), plain.run(shape, &x));
        assert_eq!(found_shape, wanted_shape);
        assert_near(&found, &wanted);
    }
}

#[test]
fn gelu_behind_a_product_is_what_it_is_written_of() {
    let number = |name: &str, value: &str| {
        format!(
            "%{name} = \"onnx.Constant\"() {{value = dense<{value}> : tensor<f32>}} : () -> tensor<f32>\n"
        )
    };
    let two = "(tensor<*xf32>, tensor<f32>) -> tensor<*xf32>";
    let all = "(tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>";
    let erf = format!(
        "%d = \"onnx.Div\"(%h, %root) : {two}
         %e = \"onnx.Erf\"(%d) : (tensor<*xf32>) -> tensor<*xf32>
         %s = \"onnx.Add\"(%e, %one) : {two}"
    );
    let tanh = format!(
        "%q = \"onnx.Mul\"(%h, %h) : {all}
         %p = \"onnx.Mul\"(%q, %h) : {all}
         %c = \"onnx.Mul\"(%p, %cubic) : {two}
         %a = \"onnx.Add\"(%h, %c) : {all}
         %r = \"onnx.Mul\"(%a, %rate) : {two}
         %e = \"onnx.Tanh\"(%r) : (tensor<*xf32>) -> tensor<*xf32>
         %s = \"onnx.Add\"(%e, %one) : {two}"
    );
    for (lines, activation) in [
        (erf, "epilogue = [\"gelu a0\"]"),
        (tanh, "epilogue = [\"gelu_tanh a0\"]"),
    ] {
        let body = format!(
            "func.func @main(%x: tensor<?x8xf32>) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
               {}{}{}{}{}{}
               %h = \"onnx.MatMul\"(%x, %w) : (tensor<?x8xf32>, tensor<8x48xf32>) -> tensor<*xf32>
               {lines}
               %m = \"onnx.Mul\"(%h, %s) : {all}
               %y = \"onnx.Mul\"(%m, %half) : {two}
               tfrt.return %y : tensor<*xf32>
             }}",
            constant("w", 1, &[8, 48], false),
            number("one", "1.0"),
            number("half", "0.5"),
            number("root", "1.41421354"),
            number("cubic", "0.044715"),
            number("rate", "0.797884583"),
        );
        assert_recognised(&body, activation, &[&[1, 8], &[5, 8], &[700, 8], &[0, 8]]);
    }
}

#[test]
fn layer_normalization_is_what_it_is_written_of() {
    let all = "(tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>";
    let body = format!(
        "func.func @main(%x: tensor<?x24xf32>) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
           {}{}
           %axes = \"onnx.Constant\"() {{value = dense<-1> : tensor<1xi64>}} : () -> tensor<1xi64>
           %two = \"onnx.Constant\"() {{value = dense<2.0> : tensor<f32>}} : () -> tensor<f32>
           %small = \"onnx.Constant\"() {{value = dense<1.0e-5> : tensor<f32>}} : () -> tensor<f32>
           %m = \"onnx.ReduceMean\"(%x, %axes) {{onnx.opset = 18 : i64}} : (tensor<?x24xf32>, tensor<1xi64>) -> tensor<*xf32>
           %d = \"onnx.Sub\"(%x, %m) : (tensor<?x24xf32>, tensor<*xf32>) -> tensor<*xf32>
           %q = \"onnx.Pow\"(%d, %two) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
           %v = \"onnx.ReduceMean\"(%q, %axes) {{onnx.opset = 18 : i64}} : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
           %e = \"onnx.Add\"(%v, %small) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
           %r = \"onnx.Sqrt\"(%e) : (tensor<*xf32>) -> tensor<*xf32>
           %n = \"onnx.Div\"(%d, %r) : {all}
           %z = \"onnx.Mul\"(%n, %w) : (tensor<*xf32>, tensor<24xf32>) -> tensor<*xf32>
           %y = \"onnx.Add\"(%z, %b) : (tensor<*xf32>, tensor<24xf32>) -> tensor<*xf32>
           tfrt.return %y : tensor<*xf32>
         }}",
        constant("w", 1, &[24], false),
        constant("b", 2, &[24], false),
    );
    assert_recognised(&body, "cpu.graph.norm", &[&[1, 24], &[40, 24]]);
}

#[test]
fn attention_is_what_it_is_written_of() {
    let one = "(tensor<*xf32>) -> tensor<*xf32>";
    let all = "(tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>";
    let parted = |name: &str, order: &str| {
        format!(
            "%{name} = \"onnx.MatMul\"(%x, %{name}w) : (tensor<?x?x24xf32>, tensor<24x24xf32>) -> tensor<*xf32>
             %{name}h = \"onnx.Reshape\"(%{name}, %apart) : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
             %{name}t = \"onnx.Transpose\"(%{name}h) {{perm = [{order}]}} : {one}\n"
        )
    };
    let heads = "0 : i64, 2 : i64, 1 : i64, 3 : i64";
    let body = format!(
        "func.func @main(%x: tensor<?x?x24xf32>) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"],
             model.input_dims = [[\"B\", \"S\", 24 : i64]]}} {{
           {}{}{}
           %apart = \"onnx.Constant\"() {{value = dense<[0, 0, 3, 8]> : tensor<4xi64>}} : () -> tensor<4xi64>
           %joined = \"onnx.Constant\"() {{value = dense<[0, 0, 24]> : tensor<3xi64>}} : () -> tensor<3xi64>
           %root = \"onnx.Constant\"() {{value = dense<2.8> : tensor<f32>}} : () -> tensor<f32>
           %axes = \"onnx.Constant\"() {{value = dense<[1, 2]> : tensor<2xi64>}} : () -> tensor<2xi64>
           %last = \"onnx.Constant\"() {{value = dense<-1> : tensor<1xi64>}} : () -> tensor<1xi64>
           %sums = \"onnx.ReduceSum\"(%x, %last) {{keepdims = 0 : i64}} : (tensor<?x?x24xf32>, tensor<1xi64>) -> tensor<*xf32>
           %mask = \"onnx.Unsqueeze\"(%sums, %axes) : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
           {}{}{}
           %s = \"onnx.MatMul\"(%qt, %kt) : {all}
           %d = \"onnx.Div\"(%s, %root) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
           %a = \"onnx.Add\"(%d, %mask) : {all}
           %p = \"onnx.Softmax\"(%a) {{axis = -1 : i64}} : {one}
           %m = \"onnx.MatMul\"(%p, %vt) : {all}
           %t = \"onnx.Transpose\"(%m) {{perm = [{heads}]}} : {one}
           %y = \"onnx.Reshape\"(%t, %joined) : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
           tfrt.return %y : tensor<*xf32>
         }}",
        constant("qw", 1, &[24, 24], false),
        constant("kw", 2, &[24, 24], false),
        constant("vw", 3, &[24, 24], false),
        parted("q", heads),
        parted("k", "0 : i64, 2 : i64, 3 : i64, 1 : i64"),
        parted("v", heads),
    );
    assert_recognised(
        &body,
        "cpu.fused.attention",
        &[&[1, 1, 24], &[2, 7, 24], &[3, 130, 24]],
    );
}

#[test]
fn factors_and_norms_of_columns_are_folded_into_the_matrix() {
    for (transposed, shape) in [(0, [8, 48]), (1, [48, 8])] {
        let body = format!(
            "func.func @main(%x: tensor<?x8xf32>) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
               {}{}{}{}{}{}
               %g = \"onnx.Gemm\"(%x, %w, %b) {{transB = {transposed} : i64}}
                   : (tensor<?x8xf32>, tensor<{}x{}xf32>, tensor<48xf32>) -> tensor<*xf32>
               %f = \"onnx.Mul\"(%g, %s) : (tensor<*xf32>, tensor<48xf32>) -> tensor<*xf32>
               %a = \"onnx.Add\"(%t, %f) : (tensor<48xf32>, tensor<*xf32>) -> tensor<*xf32>
               %n = \"onnx.BatchNormalization\"(%a, %s, %t, %m, %v) : (tensor<*xf32>, tensor<48xf32>,
                   tensor<48xf32>, tensor<48xf32>, tensor<48xf32>) -> tensor<*xf32>
               %y = \"onnx.Relu\"(%n) : (tensor<*xf32>) -> tensor<*xf32>
               tfrt.return %y : tensor<*xf32>
             }}",
            constant("w", 1, &shape, false),
            constant("b", 2, &[48], false),
            constant("s", 3, &[48], true),
            constant("t", 4, &[48], false),
            constant("m", 5, &[48], false),
            constant("v", 6, &[48], true),
            shape[0],
            shape[1],
        );
        let shapes: [&[usize]; 2] = [&[1, 8], &[5, 8]];
        assert_recognised(&body, "epilogue = [\"relu a0\"]", &shapes);
        let text = open(&body, true).text;
        let main = text.split("@main(").nth(1).unwrap();
        assert!(
            !main.contains("norm") && !main.contains("elementwise"),
            "{main}"
        );
    }
}
