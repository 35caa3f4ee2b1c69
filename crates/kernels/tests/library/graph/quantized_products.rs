//! Tests that products of quantised numbers give with integers what they give as they are written, but for a step where
//! results are quantised.

use super::quantized::{bytes, splat};
use super::{Opened, numbers, open};

const ANY: &str = "tensor<*xf32>";

/// Returns a line that quantises a value, and one that dequantises it to `%NAMEf`.
fn through(name: &str, value: &str, kind: &str) -> String {
    format!(
        "%{name}q = \"onnx.QuantizeLinear\"(%{value}, %{name}s, %{name}z) : ({ANY}, tensor<f32>, tensor<{kind}>) -> tensor<*x{kind}>
         %{name}f = \"onnx.DequantizeLinear\"(%{name}q, %{name}s, %{name}z) : (tensor<*x{kind}>, tensor<f32>, tensor<{kind}>) -> {ANY}\n"
    )
}

/// Returns lines that make the scale and the zero point of a name.
fn scale(name: &str, scale: &str, zero: i32, kind: &str) -> String {
    splat(&format!("{name}s"), scale, "tensor<f32>")
        + &splat(
            &format!("{name}z"),
            &zero.to_string(),
            &format!("tensor<{kind}>"),
        )
}

/// Returns a graph of a batch of matrices of 24 columns.
fn graph(body: &str) -> String {
    format!(
        "func.func @main(%x: tensor<?x?x24xf32>) -> {ANY} attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[\"B\", \"N\", 24 : i64]]}} {{
           %u = \"onnx.Identity\"(%x) : (tensor<?x?x24xf32>) -> {ANY}
           {body}
           tfrt.return %y : {ANY}
         }}"
    )
}

/// Runs both, and expects results that are near each other, most of them equal.
fn expect_near([fast, plain]: [&Opened; 2], shape: &[usize], most: f32) {
    let x: Vec<f32> = numbers(3, shape.iter().product());
    let (found, wanted) = (fast.run(shape, &x), plain.run(shape, &x));
    assert_eq!(found.0, wanted.0);
    let pairs = || found.1.iter().zip(&wanted.1);
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= most;
    assert!(pairs().all(is_near), "{:?} {:?}", found.1, wanted.1);
    let n_apart = pairs()
        .filter(|(a, b)| (*a - *b).abs() > most / 2.0)
        .count();
    assert!(
        n_apart * 50 <= found.1.len() + 49,
        "{n_apart} of {}",
        found.1.len()
    );
    assert!(wanted.1.len() < 40 || wanted.1.iter().any(|y| *y != wanted.1[0]));
}

/// Returns a constant matrix of `columns` as `%wf`, with a scale for each column.
fn weights(columns: usize, kind: &str, zero: i32) -> String {
    bytes("w", 5, &format!("24x{columns}x"), 24 * columns, kind)
        + &splat("ws", "0.0078125", &format!("tensor<{columns}xf32>"))
        + &splat(
            "wz",
            &zero.to_string(),
            &format!("tensor<{columns}x{kind}>"),
        )
        + &format!(
            "%wf = \"onnx.DequantizeLinear\"(%w, %ws, %wz) {{axis = 1 : i64}} : (tensor<24x{columns}x{kind}>, tensor<{columns}xf32>, tensor<{columns}x{kind}>) -> {ANY}\n"
        )
}

const KINDS: [([&str; 2], [i32; 2]); 3] = [
    (["ui8", "i8"], [100, 0]),
    (["ui8", "ui8"], [128, 130]),
    (["i8", "i8"], [-3, 2]),
];

#[test]
fn products_of_integers_are_a_step_from_what_is_written() {
    for (kinds, zeros) in KINDS {
        for columns in [1, 7, 40] {
            let least = if kinds[0] == "i8" { -128 } else { 0 };
            let bias = splat("b", "0.75", &format!("tensor<{columns}xf32>"));
            let body = scale("x", "0.0078125", zeros[0], kinds[0])
                + &scale("r", "0.03125", least, kinds[0])
                + &weights(columns, kinds[1], zeros[1])
                + &bias
                + &through("x", "u", kinds[0])
                + &format!(
                    "%m = \"onnx.MatMul\"(%xf, %wf) : ({ANY}, {ANY}) -> {ANY}
                     %p = \"onnx.Add\"(%m, %b) : ({ANY}, tensor<{columns}xf32>) -> {ANY}
                     %a = \"onnx.Relu\"(%p) : ({ANY}) -> {ANY}\n"
                )
                + &through("r", "a", kinds[0])
                + &format!("%y = \"onnx.Identity\"(%rf) : ({ANY}) -> {ANY}");
            let body = graph(&body);
            let (fast, plain) = (open(&body, true), open(&body, false));
            assert!(
                fast.text.contains("cpu.graph.quantized_dot"),
                "{}",
                fast.text
            );
            for shape in [[1, 1, 24], [2, 5, 24], [3, 70, 24]] {
                expect_near([&fast, &plain], &shape, 0.03125);
            }
            assert_eq!(fast.run(&[0, 3, 24], &[]).1, plain.run(&[0, 3, 24], &[]).1);
        }
    }
}

#[test]
fn products_whose_results_stay_floats_are_near_what_is_written() {
    for (kinds, zeros) in KINDS {
        let body = scale("x", "0.0078125", zeros[0], kinds[0])
            + &weights(19, kinds[1], zeros[1])
            + &splat("b", "0.75", "tensor<19xf32>")
            + &through("x", "u", kinds[0])
            + &format!(
                "%m = \"onnx.MatMul\"(%xf, %wf) : ({ANY}, {ANY}) -> {ANY}
                 %y = \"onnx.Add\"(%b, %m) : (tensor<19xf32>, {ANY}) -> {ANY}"
            );
        let body = graph(&body);
        let (fast, plain) = (open(&body, true), open(&body, false));
        assert!(fast.text.contains("cpu.graph.integer_dot"), "{}", fast.text);
        expect_near([&fast, &plain], &[2, 9, 24], 1e-4);
    }
}

#[test]
fn products_of_two_tensors_are_of_integers() {
    for (kinds, zeros) in KINDS {
        let scores = scale("x", "0.0078125", zeros[0], kinds[0])
            + &scale("k", "0.0078125", zeros[1], kinds[1])
            + &through("x", "u", kinds[0])
            + &format!("%t = \"onnx.Transpose\"(%u) {{perm = [0, 2, 1]}} : ({ANY}) -> {ANY}\n")
            + &through("k", "t", kinds[1])
            + &format!("%m = \"onnx.MatMul\"(%xf, %kf) : ({ANY}, {ANY}) -> {ANY}\n");
        let floats = format!("%y = \"onnx.Abs\"(%m) : ({ANY}) -> {ANY}");
        let body = graph(&format!("{scores}{floats}"));
        let (fast, plain) = (open(&body, true), open(&body, false));
        assert!(fast.text.contains("cpu.graph.integer_dot"), "{}", fast.text);
        expect_near([&fast, &plain], &[2, 9, 24], 1e-4);
        let zero = if kinds[0] == "i8" { 1 } else { 128 };
        let quantised = scale("r", "0.0625", zero, kinds[0])
            + &through("r", "m", kinds[0])
            + &format!("%y = \"onnx.Identity\"(%rf) : ({ANY}) -> {ANY}");
        let body = graph(&format!("{scores}{quantised}"));
        let (fast, plain) = (open(&body, true), open(&body, false));
        assert!(
            fast.text.contains("cpu.graph.quantized_dot"),
            "{}",
            fast.text
        );
        for shape in [[1, 1, 24], [2, 9, 24], [3, 33, 24]] {
            expect_near([&fast, &plain], &shape, 0.0625);
        }
    }
}

#[test]
fn products_of_numbers_that_a_call_quantises_have_the_bits_of_what_is_written() {
    for each in [true, false] {
        let (scales, ty) = match each {
            true => ("0.0123", "tensor<19xf32>"),
            false => ("0.0123", "tensor<f32>"),
        };
        let body = bytes("w", 5, "24x19x", 24 * 19, "i8")
            + &splat("ws", scales, ty)
            + &splat("b", "0.3", "tensor<19xf32>")
            + &format!(
                "%q, %s, %z = \"onnx.DynamicQuantizeLinear\"(%u) : ({ANY}) -> (tensor<*xui8>, tensor<f32>, tensor<ui8>)
                 %i = \"onnx.MatMulInteger\"(%q, %w, %z) : (tensor<*xui8>, tensor<24x19xi8>, tensor<ui8>) -> tensor<*xi32>
                 %n = \"onnx.Cast\"(%i) {{to = 1 : i64}} : (tensor<*xi32>) -> {ANY}
                 %f = \"onnx.Mul\"(%s, %ws) : (tensor<f32>, {ty}) -> {ANY}
                 %m = \"onnx.Mul\"(%n, %f) : ({ANY}, {ANY}) -> {ANY}
                 %y = \"onnx.Add\"(%m, %b) : ({ANY}, tensor<19xf32>) -> {ANY}"
            );
        let body = graph(&body);
        let (fast, plain) = (open(&body, true), open(&body, false));
        assert!(fast.text.contains("cpu.graph.integer_dot"), "{}", fast.text);
        for shape in [[1, 1, 24], [2, 9, 24], [1, 130, 24]] {
            let x = numbers(9, shape.iter().product());
            assert_eq!(fast.run(&shape, &x), plain.run(&shape, &x));
        }
        // What is infinite gives the bits of what is written, too.
        let mut x = numbers(9, 48);
        x[7] = f32::INFINITY;
        let [found, wanted] = [&fast, &plain].map(|model| model.run(&[1, 2, 24], &x).1);
        let bits = |list: Vec<f32>| list.into_iter().map(f32::is_nan).collect::<Vec<_>>();
        assert_eq!(bits(found), bits(wanted));
    }
}

#[test]
fn products_of_other_spellings_are_of_integers() {
    let quantised = format!(
        "%q = \"onnx.QuantizeLinear\"(%u, %xs, %xz) : ({ANY}, tensor<f32>, tensor<ui8>) -> tensor<*xui8>\n"
    );
    let constants = scale("x", "0.0078125", 100, "ui8")
        + &scale("r", "0.03125", 3, "ui8")
        + &bytes("w", 5, "24x7x", 24 * 7, "i8")
        + &bytes("t", 5, "7x24x", 24 * 7, "i8")
        + &splat("ws", "0.0078125", "tensor<7xf32>")
        + &splat("one", "0.0078125", "tensor<f32>")
        + &splat("wz", "0", "tensor<i8>")
        + &splat("c", "700", "tensor<7xi32>")
        + &splat("b", "0.3", "tensor<7xf32>")
        + &quantised;
    let last = format!(
        "%y = \"onnx.DequantizeLinear\"(%r, %rs, %rz) : (tensor<*xui8>, tensor<f32>, tensor<ui8>) -> {ANY}"
    );
    let flat = format!(
        "%to = \"onnx.Constant\"() {{value = dense<[-1, 24]> : tensor<2xi64>}} : () -> tensor<2xi64>
         %m = \"onnx.Reshape\"(%q, %to) : (tensor<*xui8>, tensor<2xi64>) -> tensor<*xui8>
         %r = \"onnx.microsoft.QGemm\"(%m, %xs, %xz, %t, %ws, %wz, %c, %rs, %rz) {{transB = 1 : i64}}
             : (tensor<*xui8>, tensor<f32>, tensor<ui8>, tensor<7x24xi8>, tensor<7xf32>, tensor<i8>, tensor<7xi32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
         {last}"
    );
    let linear = format!(
        "%r = \"onnx.QLinearMatMul\"(%q, %xs, %xz, %w, %ws, %wz, %rs, %rz)
             : (tensor<*xui8>, tensor<f32>, tensor<ui8>, tensor<24x7xi8>, tensor<7xf32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
         {last}"
    );
    let floats = format!(
        "%y = \"onnx.microsoft.MatMulIntegerToFloat\"(%q, %w, %xs, %ws, %xz, %wz, %b)
             : (tensor<*xui8>, tensor<24x7xi8>, tensor<f32>, tensor<7xf32>, tensor<ui8>, tensor<i8>, tensor<7xf32>) -> {ANY}"
    );
    let dynamic = format!(
        "%y = \"onnx.microsoft.DynamicQuantizeMatMul\"(%u, %w, %one, %wz, %b)
             : ({ANY}, tensor<24x7xi8>, tensor<f32>, tensor<i8>, tensor<7xf32>) -> {ANY}"
    );
    for (product, kernel, most) in [
        (&flat, "quantized_dot", 0.03125),
        (&linear, "quantized_dot", 0.03125),
        (&floats, "integer_dot", 0.0),
        (&dynamic, "integer_dot", 0.0),
    ] {
        let body = graph(&format!("{constants}{product}"));
        let (fast, plain) = (open(&body, true), open(&body, false));
        let kernel = format!("cpu.graph.{kernel}");
        assert!(fast.text.contains(&kernel), "{}", fast.text);
        expect_near([&fast, &plain], &[2, 9, 24], most);
    }
}

#[test]
fn branches_are_calculated_with_integers_too() {
    let body = scale("x", "0.0078125", 100, "ui8")
        + &scale("r", "0.03125", 3, "ui8")
        + &weights(7, "i8", 0)
        + &splat("c", "true", "tensor<i1>")
        + &format!(
            "%y = \"onnx.If\"(%c) ({{
               {}
               %m = \"onnx.MatMul\"(%xf, %wf) : ({ANY}, {ANY}) -> {ANY}
               {}
               \"onnx.Return\"(%rf) : ({ANY}) -> ()
             }}, {{
               \"onnx.Return\"(%u) : ({ANY}) -> ()
             }}) : (tensor<i1>) -> {ANY}",
            through("x", "u", "ui8"),
            through("r", "m", "ui8")
        );
    let body = graph(&body);
    let (fast, plain) = (open(&body, true), open(&body, false));
    assert!(
        fast.text.contains("cpu.graph.quantized_dot"),
        "{}",
        fast.text
    );
    expect_near([&fast, &plain], &[2, 9, 24], 0.03125);
}

#[test]
fn what_moves_between_integers_has_the_bits_of_what_is_written() {
    let body = scale("x", "0.0078125", 100, "ui8")
        + &scale("k", "0.0078125", 100, "ui8")
        + &through("x", "u", "ui8")
        + &format!(
            "%axis = \"onnx.Constant\"() {{value = dense<1> : tensor<1xi64>}} : () -> tensor<1xi64>
             %e = \"onnx.Unsqueeze\"(%xf, %axis) : ({ANY}, tensor<1xi64>) -> {ANY}
             %p = \"onnx.MaxPool\"(%e) {{kernel_shape = [3 : i64, 2 : i64], pads = [1 : i64, 0 : i64, 1 : i64, 1 : i64], strides = [1 : i64, 2 : i64]}} : ({ANY}) -> {ANY}
             %t = \"onnx.Transpose\"(%p) {{perm = [0, 3, 1, 2]}} : ({ANY}) -> {ANY}\n"
        )
        + &through("k", "t", "ui8")
        + &format!("%y = \"onnx.Identity\"(%kf) : ({ANY}) -> {ANY}");
    let body = graph(&body);
    let (fast, plain) = (open(&body, true), open(&body, false));
    assert_eq!(
        fast.text.matches("cpu.graph.quantize").count(),
        1,
        "{}",
        fast.text
    );
    expect_near([&fast, &plain], &[2, 9, 24], 0.0);
}
