//! Tests of pointwise operations.

use super::op;

#[test]
fn functions_of_one_element() {
    let x = "[-1.5, 0.5, 2.0] 3xf32";
    op("Relu").of(x).gives(&["f32 [3] [0.0, 0.5, 2.0]"]);
    op("Abs").of(x).gives(&["f32 [3] [1.5, 0.5, 2.0]"]);
    op("Asinh")
        .of(x)
        .gives(&["f32 [3] [-1.1948, 0.4812, 1.4436]"]);
    op("BitwiseNot")
        .of("[0, 5] 2xui8")
        .gives(&["u8 [2] [255, 250]"]);
    op("Not").of("[true, false] 2xi1").gives(&["i1 [2] [0, 1]"]);
    op("Neg").of("[1, -5] 2xi8").gives(&["i8 [2] [-1, 5]"]);
    op("IsInf")
        .of("[0x7F800000, 0xFF800000, 1.0] 3xf32")
        .with("\"detect_negative\", 0 : i64")
        .gives(&["i1 [3] [1, 0, 0]"]);
}

#[test]
fn functions_of_two_and_more() {
    let (column, row) = ("[[10], [20]] 2x1xi32", "[1, 2, 3] 3xi32");
    op("Add")
        .of(column)
        .of(row)
        .gives(&["i32 [2, 3] [11, 12, 13, 21, 22, 23]"]);
    op("Max")
        .of(column)
        .of(row)
        .of("[[15, 0, 30]] 1x3xi32")
        .gives(&["i32 [2, 3] [15, 10, 30, 20, 20, 30]"]);
    op("Mean")
        .of("[1.0, 2.0] 2xf32")
        .of("[2.0, 5.0] 2xf32")
        .gives(&["f32 [2] [1.5, 3.5]"]);
    op("Sum")
        .of("[1.0, 2.0] 2xf64")
        .gives(&["f64 [2] [1.0, 2.0]"]);
    op("Equal")
        .of("[true, false] 2xi1")
        .of("[true, true] 2xi1")
        .gives(&["i1 [2] [1, 0]"]);
    op("LessOrEqual")
        .of(column)
        .of("[10, 11] 2xi32")
        .gives(&["i1 [2, 2] [1, 1, 0, 0]"]);
    op("BitwiseXor")
        .of("[6, 3] 2xi16")
        .of("5 i16")
        .gives(&["i16 [2] [3, 6]"]);
    op("Where")
        .of("[true, false] 2xi1")
        .of("[1, 2] 2xi4")
        .of("-3 i4")
        .gives(&["i4 [2] [1, -3]"]);
}

#[test]
fn remainders_have_the_sign_that_is_asked_for() {
    let (x, y) = ("[-7, 7, -6] 3xi32", "[3, -3, 3] 3xi32");
    op("Mod").of(x).of(y).gives(&["i32 [3] [2, -2, 0]"]);
    op("Mod")
        .of(x)
        .of(y)
        .with("\"fmod\", 1 : i64")
        .gives(&["i32 [3] [-1, 1, 0]"]);
    op("Mod").of("5 i32").of("0 i32").gives(&["i32 [] [0]"]);
}

#[test]
fn exponents_may_be_of_another_type() {
    op("Pow")
        .of("[2, 3] 2xi32")
        .of("[3.0, 2.0] 2xf32")
        .gives(&["i32 [2] [8, 9]"]);
    op("Pow")
        .of("[2.0, 3.0] 2xf32")
        .of("[3, 2] 2xi64")
        .gives(&["f32 [2] [8.0, 9.0]"]);
    op("Pow")
        .of("[2, 3] 2xi64")
        .of("[[3], [40]] 2x1xi64")
        .gives(&["i64 [2, 2] [8, 27, 1099511627776, -6289078614652622815]"]);
    op("Pow")
        .of("[2.0, 3.0] 2xf32")
        .of("2.0 f32")
        .gives(&["f32 [2] [4.0, 9.0]"]);
    op("Pow")
        .of("[2, 1] 2xi32")
        .of("-1 i32")
        .gives(&["i32 [2] [0, 1]"]);
}

#[test]
fn limits_are_operands_or_attributes() {
    let x = "[-1.0, 0.5, 9.0] 3xf32";
    op("Clip")
        .of(x)
        .of("0.0 f32")
        .gives(&["f32 [3] [0.0, 0.5, 9.0]"]);
    op("Clip")
        .of(x)
        .of("")
        .of("3.0 f32")
        .gives(&["f32 [3] [-1.0, 0.5, 3.0]"]);
    op("Clip")
        .of(x)
        .opset(6)
        .with("\"max\", 2.0 : f32")
        .gives(&["f32 [3] [-1.0, 0.5, 2.0]"]);
}

#[test]
fn activations_have_parameters() {
    let x = "[-2.0, 0.0, 2.0] 3xf32";
    op("Elu")
        .of(x)
        .with("\"alpha\", 2.0 : f32")
        .gives(&["f32 [3] [-1.7293, 0.0, 2.0]"]);
    op("Celu").of(x).gives(&["f32 [3] [-0.8647, 0.0, 2.0]"]);
    op("HardSwish")
        .of(x)
        .gives(&["f32 [3] [-0.3333, 0.0, 1.6667]"]);
    op("Gelu").of(x).gives(&["f32 [3] [-0.0455, 0.0, 1.9545]"]);
    op("Gelu")
        .of(x)
        .with("\"approximate\", \"tanh\"")
        .gives(&["f32 [3] [-0.0454, 0.0, 1.9546]"]);
    op("PRelu")
        .of(x)
        .of("0.5 f32")
        .gives(&["f32 [3] [-1.0, 0.0, 2.0]"]);
    op("Shrink")
        .of("[-2, 0, 2] 3xi32")
        .with("\"lambd\", 1.0 : f32, \"bias\", 1.0 : f32")
        .gives(&["i32 [3] [-1, 0, 1]"]);
    op("Swish")
        .of(x)
        .with("\"alpha\", 2.0 : f32")
        .gives(&["f32 [3] [-0.036, 0.0, 1.964]"]);
}
