//! Tests of reductions, conversions, quantisation.

use super::op;

#[test]
fn dimensions_are_operands_or_attributes() {
    let x = "[[1.0, 2.0], [3.0, 4.0]] 2x2xf32";
    op("ReduceSum").of(x).gives(&["f32 [1, 1] [10.0]"]);
    op("ReduceSum")
        .of(x)
        .of("-1 i64")
        .with("\"keepdims\", 0 : i64")
        .gives(&["f32 [2] [3.0, 7.0]"]);
    op("ReduceMean")
        .of(x)
        .opset(13)
        .with("\"axes\", [0 : i64]")
        .gives(&["f32 [1, 2] [2.0, 3.0]"]);
    op("ReduceSum")
        .of(x)
        .with("\"noop_with_empty_axes\", 1 : i64")
        .gives(&["f32 [2, 2] [1.0, 2.0, 3.0, 4.0]"]);
    op("ReduceLogSumExp").of(x).gives(&["f32 [1, 1] [4.4402]"]);
    op("ReduceL2").of("[3, 4] 2xi32").gives(&["i32 [1] [5]"]);
    op("ReduceMin")
        .of("[true, false] 2xi1")
        .gives(&["i1 [1] [0]"]);
    op("ReduceMean")
        .of("[] 0xf32")
        .of("0 i64")
        .gives(&["f32 [1] [nan]"]);
    op("ReduceSum")
        .of(x)
        .of("2 i64")
        .fails("reduce: axis 2 is none of a tensor of 2 dimensions");
}

#[test]
fn positions_of_extrema() {
    let x = "[[5, 1, 5], [2, 2, 1]] 2x3xi32";
    op("ArgMax")
        .of(x)
        .with("\"axis\", 1 : i64")
        .gives(&["i64 [2, 1] [0, 0]"]);
    op("ArgMax")
        .of(x)
        .with("\"axis\", 1 : i64, \"keepdims\", 0 : i64, \"select_last_index\", 1 : i64")
        .gives(&["i64 [2] [2, 1]"]);
    op("ArgMin").of(x).gives(&["i64 [1, 3] [1, 0, 1]"]);
}

#[test]
fn conversions() {
    op("Cast")
        .of("[1.9, -1.9] 2xf32")
        .with("\"to\", 6 : i64")
        .gives(&["i32 [2] [1, -1]"]);
    op("Cast")
        .of("[1.0, 500.0] 2xf32")
        .with("\"to\", 17 : i64")
        .gives(&["f8e4m3fn [2] [1.0, 448.0]"]);
    op("Cast")
        .of("[1.5, 2.0] 2xf32")
        .with("\"to\", 8 : i64")
        .gives(&["str [2] [\"1.5\", \"2.0\"]"]);
    op("CastLike")
        .of("[0, 7] 2xi64")
        .of("true i1")
        .gives(&["i1 [2] [0, 1]"]);
    op("Cast")
        .of("1 i32")
        .with("\"to\", 99 : i64")
        .fails("cast: attribute 'to' is no known type: 99");
}

#[test]
fn quantisation_by_one_scale_several_or_blocks() {
    let x = "[[0.0, 1.0, 2.0, 3.0]] 1x4xf32";
    op("QuantizeLinear")
        .of(x)
        .of("0.5 f32")
        .of("1 ui8")
        .gives(&["u8 [1, 4] [1, 3, 5, 7]"]);
    op("QuantizeLinear")
        .of(x)
        .of("[[1.0, 2.0]] 1x2xf32")
        .with("\"block_size\", 2 : i64, \"output_dtype\", 22 : i64")
        .gives(&["i4 [1, 4] [0, 1, 1, 2]"]);
    op("DequantizeLinear")
        .of("[[-8], [7]] 2x1xi8")
        .of("[0.5, 2.0] 2xf32")
        .with("\"axis\", 0 : i64")
        .gives(&["f32 [2, 1] [-4.0, 14.0]"]);
    op("DynamicQuantizeLinear")
        .of("[0.0, 255.0, -255.0] 3xf32")
        .results(3)
        .gives(&["u8 [3] [128, 255, 0]", "f32 [] [2.0]", "u8 [] [128]"]);
}
