//! Tests of products of matrices, convolutions, pooling.

use super::op;

#[test]
fn products() {
    let (a, b) = ("[[1.0, 2.0], [3.0, 4.0]] 2x2xf32", "[1.0, 10.0] 2xf32");
    op("MatMul").of(a).of(b).gives(&["f32 [2] [21.0, 43.0]"]);
    op("MatMul").of(b).of(b).gives(&["f32 [] [101.0]"]);
    op("Gemm")
        .of(a)
        .of(a)
        .of("1.0 f32")
        .with("\"transB\", 1 : i64, \"beta\", 0.5 : f32")
        .gives(&["f32 [2, 2] [5.5, 11.5, 11.5, 25.5]"]);
    op("MatMulInteger")
        .of("[[1, 3]] 1x2xui8")
        .of("[[2], [3]] 2x1xui8")
        .of("1 ui8")
        .of("2 ui8")
        .gives(&["i32 [1, 1] [2]"]);
    op("Einsum")
        .of(a)
        .of(a)
        .with("\"equation\", \"ij,jk->ki\"")
        .gives(&["f32 [2, 2] [7.0, 15.0, 10.0, 22.0]"]);
    op("Einsum")
        .of(a)
        .with("\"equation\", \"ii\"")
        .gives(&["f32 [] [5.0]"]);
    op("Det").of(a).gives(&["f32 [] [-2.0]"]);
    op("MatMul")
        .of(a)
        .of("[1.0, 2.0, 3.0] 3xf32")
        .fails("dot: MatMul input tensors inner dimension mismatch: [2, 2] vs. [3, 1]");
}

#[test]
fn convolutions() {
    let (x, w) = (
        "[[[1.0, 2.0, 3.0, 4.0]]] 1x1x4xf32",
        "[[[1.0, 1.0]]] 1x1x2xf32",
    );
    op("Conv")
        .of(x)
        .of(w)
        .gives(&["f32 [1, 1, 3] [3.0, 5.0, 7.0]"]);
    op("Conv")
        .of(x)
        .of(w)
        .of("[1.0] 1xf32")
        .with("\"auto_pad\", \"SAME_LOWER\"")
        .gives(&["f32 [1, 1, 4] [2.0, 4.0, 6.0, 8.0]"]);
    op("Conv")
        .of(x)
        .of(w)
        .with("\"dilations\", [2 : i64], \"strides\", [2 : i64]")
        .gives(&["f32 [1, 1, 1] [4.0]"]);
    op("ConvTranspose")
        .of(x)
        .of(w)
        .with("\"strides\", [2 : i64], \"output_shape\", [7 : i64]")
        .gives(&["f32 [1, 1, 7] [1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]"]);
    op("ConvInteger")
        .of("[[[1, 2, 3]]] 1x1x3xui8")
        .of("[[[1, 1]]] 1x1x2xui8")
        .of("1 ui8")
        .gives(&["i32 [1, 1, 2] [1, 3]"]);
    op("Conv").of(x).of(w).with("\"group\", 2 : i64").fails(
        "conv: Dimensions does not match: input channels is 1 and kernel depth is 1, with 1 filters in 2 groups",
    );
    op("Conv")
        .of(x)
        .of(w)
        .with("\"strides\", [0 : i64]")
        .fails("conv: attribute 'strides' is expected to have 1 numbers above 0, found [0]");
}

#[test]
fn convolutions_of_halves_are_rounded_once() {
    // Between 2048 and 4096 halves are 2 apart: 2048 + 1 + 1 is lost if each sum is rounded.
    let rounded = ["f16 [1, 2, 1] [fp16(26625), fp16(26625)]"];
    for (x, filter) in [
        // Each channel a group of its own, and not.
        (
            "[[[2048.0, 1.0], [2048.0, 1.0]]] 1x2x2xf16",
            "[[[1.0, 1.0]], [[1.0, 1.0]]] 2x1x2xf16",
        ),
        (
            "[[[2048.0, 1.0]]] 1x1x2xf16",
            "[[[1.0, 1.0]], [[1.0, 1.0]]] 2x1x2xf16",
        ),
    ] {
        let groups = if x.contains("1x2x2") { 2 } else { 1 };
        op("Conv")
            .of(x)
            .of(filter)
            .of("[1.0, 1.0] 2xf16")
            .with(format!("\"group\", {groups} : i64"))
            .gives(&rounded);
    }
    op("ConvTranspose")
        .of("[[[2048.0, 1.0]]] 1x1x2xf16")
        .of("[[[1.0, 1.0]]] 1x1x2xf16")
        .of("[1.0] 1xf16")
        .gives(&["f16 [1, 1, 3] [fp16(26624), fp16(26625), fp16(16384)]"]);
    let x = "[[[1.0, 1.0]]] 1x1x2xf16";
    op("Conv")
        .of(x)
        .of("[[[1.0]]] 1x1x1xf32")
        .fails("conv: operand 1 is of f32, operand 0 of f16");
    op("Conv")
        .of(x)
        .of("[[[1.0]]] 1x1x1xf16")
        .of("[1.0, 2.0] 2xf16")
        .fails("conv: operand 2 has 2 elements, expected one for each of 1 filters");
}

#[test]
fn pooling() {
    let x = "[[[1.0, 5.0, 2.0, 4.0, 3.0]]] 1x1x5xf32";
    let two = "\"kernel_shape\", [2 : i64], \"strides\", [2 : i64]";
    op("MaxPool")
        .of(x)
        .with(two)
        .results(2)
        .gives(&["f32 [1, 1, 2] [5.0, 4.0]", "i64 [1, 1, 2] [1, 3]"]);
    op("MaxPool")
        .of(x)
        .with("\"kernel_shape\", [2 : i64], \"strides\", [2 : i64], \"ceil_mode\", 1 : i64")
        .gives(&["f32 [1, 1, 3] [5.0, 4.0, 3.0]"]);
    // The first window may reach out of the image as well, by less than a step.
    let small = "[[[1.0, 5.0]]] 1x1x2xf32";
    for (kind, expected) in [("MaxPool", "5.0"), ("AveragePool", "3.0")] {
        op(kind)
            .of(small)
            .with("\"kernel_shape\", [3 : i64], \"strides\", [2 : i64], \"ceil_mode\", 1 : i64")
            .gives(&[&format!("f32 [1, 1, 1] [{expected}]")]);
        op(kind)
            .of(small)
            .with("\"kernel_shape\", [4 : i64], \"strides\", [2 : i64], \"ceil_mode\", 1 : i64")
            .fails("pool: a window over 4 elements is larger than an input of 2 with 0 and 0 around it");
    }
    op("AveragePool").of(x)
        .with("\"kernel_shape\", [2 : i64], \"strides\", [3 : i64], \"pads\", [1 : i64, 0 : i64], \"count_include_pad\", 1 : i64")
        .gives(&["f32 [1, 1, 2] [0.5, 3.0]"]);
    op("LpPool")
        .of(x)
        .with("\"kernel_shape\", [2 : i64], \"p\", 1 : i64")
        .gives(&["f32 [1, 1, 4] [6.0, 7.0, 6.0, 7.0]"]);
    op("GlobalMaxPool").of(x).gives(&["f32 [1, 1, 1] [5.0]"]);
    op("MaxUnpool")
        .of("[[[5.0, 4.0]]] 1x1x2xf32")
        .of("[[[1, 3]]] 1x1x2xi64")
        .with(two)
        .gives(&["f32 [1, 1, 4] [0.0, 5.0, 0.0, 4.0]"]);
}
