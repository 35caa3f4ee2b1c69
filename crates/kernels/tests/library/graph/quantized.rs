//! Tests that quantised models give with integers what they give as they are written, but for a step in convolutions.

use std::fmt::Write as _;

use super::{numbers, open};

/// Returns a line that makes a constant of bytes.
pub(super) fn bytes(name: &str, seed: u32, extents: &str, n: usize, kind: &str) -> String {
    let mut text = String::new();
    for number in numbers(seed, n) {
        write!(text, "{:02X}", ((number * 127.0) as i32 & 0xff) as u8).unwrap();
    }
    let ty = format!("tensor<{extents}{kind}>");
    format!("%{name} = \"onnx.Constant\"() {{value = dense<\"0x{text}\"> : {ty}}} : () -> {ty}\n")
}

/// Returns a line that makes a constant of one value.
pub(super) fn splat(name: &str, value: &str, ty: &str) -> String {
    format!("%{name} = \"onnx.Constant\"() {{value = dense<{value}> : {ty}}} : () -> {ty}\n")
}

/// A quantised convolution of 3 x 3 of an image of 8 channels, with a relu.
struct Case {
    filters: usize,
    groups: usize,
    /// The types of images and filters.
    kinds: [&'static str; 2],
    /// The zero points of images and filters.
    zeros: [i32; 2],
    stride: usize,
}

/// The step of the results.
const STEP: f32 = 0.5;

impl Case {
    fn body(&self) -> String {
        let Case {
            filters,
            groups,
            kinds: [x, w],
            zeros: [x_zero, w_zero],
            stride,
        } = *self;
        let (own, any) = (8 / groups, "tensor<*xf32>");
        let least = if x == "i8" { "-128" } else { "0" };
        let weights = bytes(
            "w",
            5,
            &format!("{filters}x{own}x3x3x"),
            filters * own * 9,
            w,
        );
        let constants = [
            weights,
            splat("b", "700", &format!("tensor<{filters}xi32>")),
            splat("xs", "0.03125", "tensor<f32>"),
            splat("xz", &x_zero.to_string(), &format!("tensor<{x}>")),
            splat("ws", "0.015625", &format!("tensor<{filters}xf32>")),
            splat("wz", &w_zero.to_string(), &format!("tensor<{filters}x{w}>")),
            splat("bs", "0.00048828125", &format!("tensor<{filters}xf32>")),
            splat("ys", &STEP.to_string(), "tensor<f32>"),
            splat("yz", least, &format!("tensor<{x}>")),
        ];
        format!(
            "func.func @main(%x: tensor<?x8x?x?xf32>) -> {any} attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
               {constants}
               %q = \"onnx.QuantizeLinear\"(%x, %xs, %xz) : (tensor<?x8x?x?xf32>, tensor<f32>, tensor<{x}>) -> tensor<*x{x}>
               %xf = \"onnx.DequantizeLinear\"(%q, %xs, %xz) : (tensor<*x{x}>, tensor<f32>, tensor<{x}>) -> {any}
               %wf = \"onnx.DequantizeLinear\"(%w, %ws, %wz) {{axis = 0 : i64}} : (tensor<{filters}x{own}x3x3x{w}>, tensor<{filters}xf32>, tensor<{filters}x{w}>) -> {any}
               %bf = \"onnx.DequantizeLinear\"(%b, %bs) {{axis = 0 : i64}} : (tensor<{filters}xi32>, tensor<{filters}xf32>) -> {any}
               %c = \"onnx.Conv\"(%xf, %wf, %bf) {{group = {groups} : i64, pads = [1 : i64, 1 : i64, 1 : i64, 1 : i64], strides = [{stride} : i64, {stride} : i64]}}
                   : ({any}, {any}, {any}) -> {any}
               %a = \"onnx.Relu\"(%c) : ({any}) -> {any}
               %r = \"onnx.QuantizeLinear\"(%a, %ys, %yz) : ({any}, tensor<f32>, tensor<{x}>) -> tensor<*x{x}>
               %y = \"onnx.DequantizeLinear\"(%r, %ys, %yz) : (tensor<*x{x}>, tensor<f32>, tensor<{x}>) -> {any}
               tfrt.return %y : {any}
             }}",
            constants = constants.concat()
        )
    }
}

#[test]
fn convolutions_of_integers_are_a_step_from_what_is_written() {
    for (filters, groups) in [(24, 1), (8, 8), (16, 2), (1, 1)] {
        for (kinds, zeros) in [
            (["ui8", "i8"], [100, 0]),
            (["ui8", "ui8"], [128, 130]),
            (["i8", "i8"], [-3, 2]),
        ] {
            for stride in [1, 2] {
                let case = Case {
                    filters,
                    groups,
                    kinds,
                    zeros,
                    stride,
                };
                let body = case.body();
                let (fast, plain) = (open(&body, true), open(&body, false));
                assert!(fast.text.contains("cpu.fused.qconv"), "{}", fast.text);
                let shape = [2, 8, 9, 7];
                let x = numbers(3, shape.iter().product());
                let x: Vec<f32> = x.iter().map(|number| number * 3.0).collect();
                let (found, wanted) = (fast.run(&shape, &x), plain.run(&shape, &x));
                assert_eq!(found.0, wanted.0);
                let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= STEP;
                assert!(found.1.iter().zip(&wanted.1).all(is_near));
                let n_apart = found
                    .1
                    .iter()
                    .zip(&wanted.1)
                    .filter(|(a, b)| a != b)
                    .count();
                assert!(
                    n_apart * 50 <= found.1.len(),
                    "{n_apart} of {}",
                    found.1.len()
                );
                assert!(wanted.1.iter().any(|y| *y > 0.0));
                // An image alone gives the same bits.
                let half = x.len() / 2;
                let alone = fast.run(&[1, 8, 9, 7], &x[half..]).1;
                assert_eq!(alone, found.1[found.1.len() / 2..]);
            }
        }
    }
}

#[test]
fn sums_of_integers_have_the_bits_of_what_is_written() {
    for (kind, zeros) in [("ui8", [100, 3, 0]), ("i8", [-3, 100, -128])] {
        let (any, integers) = ("tensor<*xf32>", format!("tensor<*x{kind}>"));
        let numbers_of = |name: &str, scale: &str, zero: i32| {
            let zero = zero.to_string();
            splat(&format!("{name}s"), scale, "tensor<f32>")
                + &splat(&format!("{name}z"), &zero, &format!("tensor<{kind}>"))
        };
        let constants = numbers_of("a", "0.03", zeros[0])
            + &numbers_of("b", "0.011", zeros[1])
            + &numbers_of("y", "0.017", zeros[2]);
        let scaled = format!("({any}, tensor<f32>, tensor<{kind}>) -> {integers}");
        let back = format!("({integers}, tensor<f32>, tensor<{kind}>) -> {any}");
        let body = format!(
            "func.func @main(%x: tensor<?x50xf32>) -> {any} attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[\"N\", 50 : i64]]}} {{
               {constants}
               %v = \"onnx.Neg\"(%x) : (tensor<?x50xf32>) -> {any}
               %w = \"onnx.Exp\"(%x) : (tensor<?x50xf32>) -> {any}
               %qa = \"onnx.QuantizeLinear\"(%v, %as, %az) : {scaled}
               %qb = \"onnx.QuantizeLinear\"(%w, %bs, %bz) : {scaled}
               %fa = \"onnx.DequantizeLinear\"(%qa, %as, %az) : {back}
               %fb = \"onnx.DequantizeLinear\"(%qb, %bs, %bz) : {back}
               %s = \"onnx.Add\"(%fa, %fb) : ({any}, {any}) -> {any}
               %r = \"onnx.Relu\"(%s) : ({any}) -> {any}
               %q = \"onnx.QuantizeLinear\"(%r, %ys, %yz) : {scaled}
               %y = \"onnx.DequantizeLinear\"(%q, %ys, %yz) : {back}
               tfrt.return %y : {any}
             }}"
        );
        let (fast, plain) = (open(&body, true), open(&body, false));
        assert!(fast.text.contains("cpu.fused.qadd"), "{}", fast.text);
        let x: Vec<f32> = numbers(8, 150).iter().map(|x| x * 3.0).collect();
        assert_eq!(fast.run(&[3, 50], &x), plain.run(&[3, 50], &x));
    }
}
