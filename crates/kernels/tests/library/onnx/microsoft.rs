//! Operators of ONNX Runtime's domain `com.microsoft` that have kernels of their own; numbers are ONNX Runtime's.

use super::op;

const ROWS: &str = "[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0], \
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]] 2x16xf32";
const TWO: &str = "[[[0, 37, 74, 111]], [[148, 185, 222, 3]]] 2x1x4xui8";
const FOUR: &str =
    "[[[0, 37, 74, 111, 148, 185, 222, 3]], [[40, 77, 114, 151, 188, 225, 6, 43]]] 2x1x8xui8";
const EIGHT: &str = "[[[0, 37, 74, 111, 148, 185, 222, 3, 40, 77, 114, 151, 188, 225, 6, 43]], \
    [[80, 117, 154, 191, 228, 9, 46, 83, 120, 157, 194, 231, 12, 49, 86, 123]]] 2x1x16xui8";
const SCALES: &str = "[[0.5], [0.25]] 2x1xf32";

fn attributes(bits: i64) -> String {
    format!("\"K\", 16 : i64, \"N\", 2 : i64, \"bits\", {bits} : i64, \"block_size\", 16 : i64")
}

#[test]
fn columns_of_a_few_bits_are_unpacked() {
    for (bits, codes, plain, moved) in [
        (2, TWO, "-20.0, 7.25, -7.0, -2.0", "-19.0, 6.25, 2.0, -7.0"),
        (4, FOUR, "-6.0, 6.0, -11.5, -4.75", "-5.0, 5.0, 45.5, 14.25"),
        (
            8,
            EIGHT,
            "176.0, -40.0, -212.0, -42.0",
            "177.0, -41.0, 805.0, 457.0",
        ),
    ] {
        let trial = || op("microsoft.MatMulNBits").of(ROWS).of(codes).of(SCALES);
        let plain = format!("f32 [2, 2] [{plain}]");
        trial().with(attributes(bits)).gives(&[&plain]);
        let moved = format!("f32 [2, 2] [{moved}]");
        let trial = trial().of("[[1], [3]] 2x1xui8").of("");
        trial
            .of("[1.0, -1.0] 2xf32")
            .with(attributes(bits))
            .gives(&[&moved]);
    }
}

#[test]
fn what_is_not_as_large_as_it_is_said_to_be_is_refused() {
    let trial = |codes: &str| op("microsoft.MatMulNBits").of(ROWS).of(codes).of(SCALES);
    trial(TWO).with(attributes(4)).fails(
        "microsoft.MatMulNBits: operand 1 is expected to have extents [2, 1, 8], found [2, 1, 4]",
    );
    trial(FOUR)
        .with(attributes(3))
        .fails("microsoft.MatMulNBits: attribute 'bits' is expected to be 2, 4 or 8, found 3");
    trial(FOUR)
        .of("[1] 1xui8")
        .with(attributes(4))
        .fails("microsoft.MatMulNBits: operand 3 is expected to have extents [2, 1], found [1]");
    let wide = "\"K\", 32 : i64, \"N\", 2 : i64, \"block_size\", 16 : i64";
    trial(EIGHT)
        .of("")
        .with(wide)
        .fails("microsoft.MatMulNBits: operand 2 is expected to have extents [2, 2], found [2, 1]");
    trial(FOUR)
        .of("")
        .of("[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0] 16xi32")
        .with(attributes(4))
        .fails("microsoft.MatMulNBits: operand 4 has the block 1 at [7], expected one of 1");
    let odd = "\"K\", 16 : i64, \"N\", 2 : i64, \"block_size\", 24 : i64";
    trial(FOUR).with(odd).fails(
        "microsoft.MatMulNBits: attribute 'block_size' is expected to be a power of 2, at least 16, found 24",
    );
}

#[test]
fn inverses_are_those_of_squares() {
    op("microsoft.Inverse")
        .of("[[4.0, 7.0], [2.0, 6.0]] 2x2xf64")
        .gives(&["f64 [2, 2] [0.6, -0.7, -0.2, 0.4]"]);
    op("microsoft.Inverse")
        .of("[[[0.0, 2.0], [4.0, 0.0]]] 1x2x2xf32")
        .gives(&["f32 [1, 2, 2] [0.0, 0.25, 0.5, 0.0]"]);
    op("microsoft.Inverse")
        .of("[[1.0, 2.0]] 1x2xf32")
        .fails("microsoft.Inverse: operand 0 is no tensor of squares: [1, 2]");
}
