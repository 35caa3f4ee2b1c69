//! Tests of operations that move elements, on shapes, and on positions.

use super::op;

const SIX: &str = "[[1,2,3],[4,5,6]] 2x3xi32";

#[test]
fn shapes_are_told_and_changed() {
    op("Reshape")
        .of(SIX)
        .of("[0,-1,1] 3xi64")
        .gives(&["i32 [2, 3, 1] [1, 2, 3, 4, 5, 6]"]);
    op("Reshape")
        .of("[[]] 1x0xi32")
        .of("[0,0] 2xi64")
        .with(r#""allowzero", 1 : i64"#)
        .gives(&["i32 [0, 0] []"]);
    op("Reshape")
        .of(SIX)
        .of("[4,-1] 2xi64")
        .fails("reshape: a tensor of shape [2, 3] can't be seen as one of shape [4, -1]");
    op("Reshape")
        .of(SIX)
        .of("[-1,-1] 2xi64")
        .fails("reshape: expected extents of 0 or more, and one -1 at most, found [-1, -1]");
    op("Flatten")
        .of("[[[1],[2]],[[3],[4]]] 2x2x1xi32")
        .with(r#""axis", 0 : i64"#)
        .gives(&["i32 [1, 4] [1, 2, 3, 4]"]);
    op("Squeeze")
        .of("[[[1],[2]]] 1x2x1xi32")
        .of("[-1] 1xi64")
        .gives(&["i32 [1, 2] [1, 2]"]);
    op("Squeeze")
        .of("[[[1],[2]]] 1x2x1xi32")
        .gives(&["i32 [2] [1, 2]"]);
    op("Squeeze")
        .of("[[1,2]] 1x2xi32")
        .of("[1] 1xi64")
        .fails("Squeeze: dimension 1 of a tensor of shape [1, 2] has not the extent 1");
    op("Unsqueeze")
        .of("[1,2] 2xi32")
        .of("[0,-1] 2xi64")
        .gives(&["i32 [1, 2, 1] [1, 2]"]);
    op("Unsqueeze")
        .of("[1,2] 2xi32")
        .of("[0,-3] 2xi64")
        .fails("Unsqueeze: expected each axis once, found -3 again");
    op("Shape")
        .of(SIX)
        .with(r#""start", -1 : i64"#)
        .gives(&["i64 [1] [3]"]);
    op("Shape")
        .of(SIX)
        .with(r#""end", -9 : i64"#)
        .gives(&["i64 [0] []"]);
    op("Size").of(SIX).gives(&["i64 [] [6]"]);
}

#[test]
fn elements_move() {
    op("Transpose")
        .of(SIX)
        .gives(&["i32 [3, 2] [1, 4, 2, 5, 3, 6]"]);
    op("Transpose")
        .of(SIX)
        .with(r#""perm", [0 : i64, 0 : i64]"#)
        .fails("transpose: expected each axis once, found 0 again");
    // Nothing moves.
    op("Transpose")
        .of("[[[1],[2]]] 1x2x1xi32")
        .with(r#""perm", [2 : i64, 0 : i64, 1 : i64]"#)
        .gives(&["i32 [1, 1, 2] [1, 2]"]);
    op("Expand")
        .of("[[1],[2]] 2x1xi32")
        .of("[2,1,3] 3xi64")
        .gives(&["i32 [2, 2, 3] [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]"]);
    op("Tile")
        .of("[1,2] 2xi32")
        .of("[2] 1xi64")
        .gives(&["i32 [4] [1, 2, 1, 2]"]);
    op("Concat")
        .of("[1,2] 2xi32")
        .of("[3] 1xi32")
        .with(r#""axis", -1 : i64"#)
        .gives(&["i32 [3] [1, 2, 3]"]);
    op("Concat")
        .of("[1,2] 2xi32")
        .of("[3] 1xi64")
        .with(r#""axis", 0 : i64"#)
        .fails("concat: expected tensors of one type, found i32 and i64");
    op("Split")
        .of("[1,2,3] 3xi32")
        .with(r#""num_outputs", 2 : i64"#)
        .results(2)
        .gives(&["i32 [2] [1, 2]", "i32 [1] [3]"]);
    op("Split")
        .of("[1,2,3] 3xi32")
        .of("[1,2] 2xi64")
        .results(3)
        .fails("split: 3 results are asked for, there are 2 parts");
    op("Slice")
        .of(SIX)
        .of("[-1] 1xi64")
        .of("[-100] 1xi64")
        .of("[1] 1xi64")
        .of("[-2] 1xi64")
        .gives(&["i32 [2, 2] [3, 1, 6, 4]"]);
    op("Slice")
        .opset(9)
        .of(SIX)
        .with(r#""ends", [2 : i64], "starts", [1 : i64]"#)
        .gives(&["i32 [1, 3] [4, 5, 6]"]);
    op("Pad")
        .of("[1,2] 2xi32")
        .of("[1,2] 2xi64")
        .of("7 i32")
        .gives(&["i32 [5] [7, 1, 2, 7, 7]"]);
    op("Pad")
        .of("[1,2,3] 3xi32")
        .of("[2,0] 2xi64")
        .with(r#""mode", "reflect""#)
        .gives(&["i32 [5] [3, 2, 1, 2, 3]"]);
    op("Pad")
        .of(SIX)
        .of("[1,0] 2xi64")
        .of("")
        .of("[-1] 1xi64")
        .with(r#""mode", "wrap""#)
        .gives(&["i32 [2, 4] [3, 1, 2, 3, 6, 4, 5, 6]"]);
    op("Pad")
        .opset(2)
        .of("[1.0] 1xf32")
        .with(r#""pads", [0 : i64, 1 : i64], "value", 2.5 : f32"#)
        .gives(&["f32 [2] [1.0, 2.5]"]);
    op("DepthToSpace")
        .of("[[[[1]],[[2]],[[3]],[[4]]]] 1x4x1x1xi32")
        .with(r#""blocksize", 2 : i64"#)
        .gives(&["i32 [1, 1, 2, 2] [1, 2, 3, 4]"]);
    op("SpaceToDepth")
        .of("[[[[1,2],[3,4]]]] 1x1x2x2xi32")
        .with(r#""blocksize", 2 : i64"#)
        .gives(&["i32 [1, 4, 1, 1] [1, 2, 3, 4]"]);
    op("SpaceToDepth")
        .of("[[[[1,2],[3,4]]]] 1x1x2x2xi32")
        .with(r#""blocksize", 0 : i64"#)
        .fails("SpaceToDepth: attribute 'blocksize' is expected to be above 0");
    op("Trilu")
        .of(SIX)
        .of("1 i64")
        .gives(&["i32 [2, 3] [0, 2, 3, 0, 0, 6]"]);
    op("Trilu")
        .of(SIX)
        .of("-1 i64")
        .with(r#""upper", 0 : i64"#)
        .gives(&["i32 [2, 3] [0, 0, 0, 4, 0, 0]"]);
    op("ReverseSequence")
        .of("[[1,2],[3,4],[5,6]] 3x2xi32")
        .of("[2,3] 2xi64")
        .gives(&["i32 [3, 2] [3, 6, 1, 4, 5, 2]"]);
    op("ReverseSequence")
        .of("[[1,2],[3,4],[5,6]] 3x2xi32")
        .of("[2,4] 2xi64")
        .fails("expected lengths of sequences from 0 to 3, found 4");
    op("CenterCropPad")
        .of(SIX)
        .of("[3,2] 2xi64")
        .gives(&["i32 [3, 2] [1, 2, 4, 5, 0, 0]"]);
}

#[test]
fn caches_are_written_behind_what_they_hold() {
    let cache = "[[[1],[2],[3]]] 1x3x1xi32";
    let trial = || op("TensorScatter").of(cache).of("[[[8],[9]]] 1x2x1xi32");
    trial().of("[1] 1xi64").gives(&["i32 [1, 3, 1] [1, 8, 9]"]);
    trial()
        .of("[2] 1xi64")
        .with(r#""mode", "circular""#)
        .gives(&["i32 [1, 3, 1] [9, 2, 8]"]);
    trial()
        .of("[2] 1xi64")
        .fails("2 elements from 2 on do not fit a dimension of extent 3");
    trial()
        .of("[-1] 1xi64")
        .fails("2 elements from -1 on do not fit a dimension of extent 3");
}

#[test]
fn caches_with_room_give_what_they_hold_too() {
    let trial = |starts: &str, total: &str| {
        let trial = op("update_cache").of("[[[[1],[2],[3],[0]]]] 1x1x4x1xi32");
        trial
            .of("[[[[8],[9]]]] 1x1x2x1xi32")
            .of(starts)
            .of(total)
            .results(2)
    };
    trial("[1] 1xi64", "[3] 1xi64").gives(&[
        "i32 [1, 1, 4, 1] [1, 8, 9, 0]",
        "i32 [1, 1, 3, 1] [1, 8, 9]",
    ]);
    // All of it, and more than all.
    trial("[2] 1xi64", "[4] 1xi64").gives(&[
        "i32 [1, 1, 4, 1] [1, 2, 8, 9]",
        "i32 [1, 1, 4, 1] [1, 2, 8, 9]",
    ]);
    trial("[4] 1xi64", "[6] 1xi64").gives(&[
        "i32 [1, 1, 6, 1] [1, 2, 3, 0, 8, 9]",
        "i32 [1, 1, 6, 1] [1, 2, 3, 0, 8, 9]",
    ]);
    trial("[3] 1xi64", "[4] 1xi64")
        .fails("update_cache: 2 elements from 3 on do not fit a dimension of extent 4");
    trial("[-1] 1xi64", "[4] 1xi64")
        .fails("update_cache: 2 elements from -1 on do not fit a dimension of extent 4");
    trial("[0] 1xi64", "[-4] 1xi64")
        .fails("update_cache: operand 3 is expected to be 0 or more, found -4");
    let other = op("update_cache")
        .of(SIX)
        .of(SIX)
        .of("[0] 1xi64")
        .of("[2] 1xi64");
    other.results(2).fails(
        "update_cache: expected a cache and an update of 4 dimensions, found [2, 3] and [2, 3]",
    );
}

#[test]
fn positions_name_elements() {
    op("Gather")
        .of(SIX)
        .of("[[-1,0]] 1x2xi64")
        .with(r#""axis", 1 : i64"#)
        .gives(&["i32 [2, 1, 2] [3, 1, 6, 4]"]);
    op("Gather")
        .of(SIX)
        .of("[2] 1xi32")
        .fails("gather: the position at [0] is 2: expected one of 2 positions, from -2 to 1");
    op("GatherElements")
        .of(SIX)
        .of("[[1,0,0]] 1x3xi32")
        .gives(&["i32 [1, 3] [4, 2, 3]"]);
    op("GatherND")
        .of(SIX)
        .of("[[1,2],[0,0]] 2x2xi64")
        .gives(&["i32 [2] [6, 1]"]);
    op("Compress")
        .of(SIX)
        .of("[true,false,true] 3xi1")
        .with(r#""axis", 1 : i64"#)
        .gives(&["i32 [2, 2] [1, 3, 4, 6]"]);
    op("Compress")
        .of(SIX)
        .of("[false,true] 2xi1")
        .gives(&["i32 [1] [2]"]);
    op("OneHot")
        .of("[1.0,-1.0] 2xf32")
        .of("3 i64")
        .of("[0,7] 2xi8")
        .gives(&["i8 [2, 3] [0, 7, 0, 0, 0, 7]"]);
    op("OneHot")
        .of("[1] 1xi64")
        .of("-3 i64")
        .of("[0,7] 2xi8")
        .fails("one_hot: operand 1 is expected to be 0 or more, found -3");
    op("ml.ArrayFeatureExtractor")
        .of(SIX)
        .of("[2,0] 2xi64")
        .gives(&["i32 [2, 2] [3, 1, 6, 4]"]);
}

#[test]
fn elements_are_written_to_positions() {
    let trial = |reduction: &'static str| {
        op("ScatterElements")
            .of("[1,2,3] 3xi32")
            .of("[1,1] 2xi64")
            .of("[5,-4] 2xi32")
            .with(reduction)
    };
    trial("").gives(&["i32 [3] [1, -4, 3]"]);
    trial(r#""reduction", "add""#).gives(&["i32 [3] [1, 3, 3]"]);
    trial(r#""reduction", "mul""#).gives(&["i32 [3] [1, -40, 3]"]);
    trial(r#""reduction", "max""#).gives(&["i32 [3] [1, 5, 3]"]);
    trial(r#""reduction", "min""#).gives(&["i32 [3] [1, -4, 3]"]);
    trial(r#""reduction", "mean""#).fails(
        "scatter: attribute 'reduction' is expected to be none, add, mul, max or min, found 'mean'",
    );
    op("ScatterND")
        .of("[1,2,3] 3xi32")
        .of("[[2],[0]] 2x1xi64")
        .of("[5,6] 2xi32")
        .gives(&["i32 [3] [6, 2, 5]"]);
}

#[test]
fn what_is_made_of_few_numbers() {
    op("ConstantOfShape")
        .of("[2] 1xi64")
        .gives(&["f32 [2] [0.0, 0.0]"]);
    op("ConstantOfShape")
        .of("[2] 1xi64")
        .with(r#""value", dense<3> : tensor<1xi8>"#)
        .gives(&["i8 [2] [3, 3]"]);
    op("ConstantOfShape")
        .of("[-2] 1xi64")
        .fails("fill: expected sizes of 0 or more, found [-2]");
    op("Range")
        .of("3 i64")
        .of("-4 i64")
        .of("-3 i64")
        .gives(&["i64 [3] [3, 0, -3]"]);
    op("Range")
        .of("1.0 f32")
        .of("2.0 f32")
        .of("0.5 f32")
        .gives(&["f32 [2] [1.0, 1.5]"]);
    op("Range")
        .of("1 i32")
        .of("2 i32")
        .of("0 i32")
        .fails("iota: operand 2 is expected to be other than 0");
    op("EyeLike")
        .of(SIX)
        .with(r#""dtype", 1 : i64, "k", 1 : i64"#)
        .gives(&["f32 [2, 3] [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]"]);
    op("EyeLike")
        .of(SIX)
        .with(r#""k", -9223372036854775808 : i64"#)
        .gives(&["i32 [2, 3] [0, 0, 0, 0, 0, 0]"]);
}

#[test]
fn elements_are_put_in_order() {
    op("TopK")
        .of("[[3,9,1],[4,4,7]] 2x3xi32")
        .of("[2] 1xi64")
        .results(2)
        .gives(&["i32 [2, 2] [9, 3, 7, 4]", "i64 [2, 2] [1, 0, 2, 0]"]);
    op("TopK")
        .of("[3,9,1] 3xi32")
        .of("[4] 1xi64")
        .fails("top_k: expected a k from 0 to 3, found 4");
    op("NonZero")
        .of("[[0.0,-0.0],[1.0,2.0]] 2x2xf32")
        .gives(&["i64 [2, 2] [1, 1, 0, 1]"]);
    op("Unique").of("[3,1,3,2] 4xi32").results(4).gives(&[
        "i32 [3] [1, 2, 3]",
        "i64 [3] [1, 3, 0]",
        "i64 [4] [2, 0, 2, 1]",
        "i64 [3] [1, 1, 2]",
    ]);
    op("Unique")
        .of("[[1,2],[0,1],[1,2]] 3x2xi32")
        .with(r#""axis", 0 : i64, "sorted", 0 : i64"#)
        .gives(&["i32 [2, 2] [1, 2, 0, 1]"]);
    op("CumSum")
        .of("[1,2,3] 3xi32")
        .of("0 i32")
        .with(r#""exclusive", 1 : i64, "reverse", 1 : i64"#)
        .gives(&["i32 [3] [5, 3, 0]"]);
    op("CumProd")
        .of("[1,2,3] 3xi32")
        .of("0 i32")
        .gives(&["i32 [3] [1, 2, 6]"]);
    op("BitShift")
        .of("[1,4] 2xui8")
        .of("[7,9] 2xui8")
        .with(r#""direction", "LEFT""#)
        .gives(&["u8 [2] [128, 0]"]);
}

#[test]
fn patches_lie_over_pictures() {
    op("Col2Im")
        .of("[[[1,2],[3,4]]] 1x2x2xi32")
        .of("[3] 1xi64")
        .of("[2] 1xi64")
        .gives(&["i32 [1, 1, 3] [1, 5, 4]"]);
    op("Col2Im")
        .of("[[[1,2],[3,4]]] 1x2x2xi32")
        .of("[3] 1xi64")
        .of("[2] 1xi64")
        .with(r#""strides", [0 : i64]"#)
        .fails(
            "a patch of 2 elements, 1 apart, does not lie in 3 with (0, 0) around, in steps of 0",
        );
}

#[test]
fn dimensions_are_turned_around() {
    op("reverse")
        .of(SIX)
        .with(r#""axes", [-1 : i64]"#)
        .gives(&["i32 [2, 3] [3, 2, 1, 6, 5, 4]"]);
    op("reverse")
        .of("[(1.0,2.0),(3.0,4.0)] 2xcomplex<f32>")
        .with(r#""axes", [0 : i64]"#)
        .gives(&["complex64 [2] [(3.000000e+00,4.000000e+00), (1.000000e+00,2.000000e+00)]"]);
    op("reverse")
        .of("[true,false,false] 3xi1")
        .with(r#""axes", [0 : i64]"#)
        .gives(&["i1 [3] [0, 0, 1]"]);
    op("reverse")
        .of(SIX)
        .with(r#""axes", []"#)
        .gives(&["i32 [2, 3] [1, 2, 3, 4, 5, 6]"]);
    op("reverse")
        .of("[[]] 1x0xf32")
        .with(r#""axes", [1 : i64]"#)
        .gives(&["f32 [1, 0] []"]);
    op("reverse")
        .of(SIX)
        .with(r#""axes", [1 : i64, -1 : i64]"#)
        .fails("reverse: expected each axis once, found -1 again");
    op("reverse")
        .of(SIX)
        .with(r#""axes", [2 : i64]"#)
        .fails("reverse: axis 2 is none of a tensor of 2 dimensions");
}

#[test]
fn parts_are_replaced() {
    op("update_slice")
        .of(SIX)
        .of("[[7,8]] 1x2xi32")
        .of("[1,1] 2xi64")
        .gives(&["i32 [2, 3] [1, 2, 3, 4, 7, 8]"]);
    // What goes beyond the end, or begins before the tensor, is moved.
    for (starts, wanted) in [
        ("[1,2] 2xi32", "i32 [2, 3] [1, 2, 3, 4, 7, 8]"),
        ("[9,-9] 2xi64", "i32 [2, 3] [1, 2, 3, 7, 8, 6]"),
        (
            "[-9223372036854775808,9223372036854775807] 2xi64",
            "i32 [2, 3] [1, 7, 8, 4, 5, 6]",
        ),
    ] {
        op("update_slice")
            .of(SIX)
            .of("[[7,8]] 1x2xi32")
            .of(starts)
            .gives(&[wanted]);
    }
    // Rows, columns, all, nothing.
    for (update, starts, wanted) in [
        (
            "[[7,8,9]] 1x3xi32",
            "[1,0] 2xi64",
            "i32 [2, 3] [1, 2, 3, 7, 8, 9]",
        ),
        (
            "[[7],[8]] 2x1xi32",
            "[0,1] 2xi64",
            "i32 [2, 3] [1, 7, 3, 4, 8, 6]",
        ),
        (
            "[[6,5,4],[3,2,1]] 2x3xi32",
            "[1,1] 2xi64",
            "i32 [2, 3] [6, 5, 4, 3, 2, 1]",
        ),
        (
            "[[],[]] 2x0xi32",
            "[0,1] 2xi64",
            "i32 [2, 3] [1, 2, 3, 4, 5, 6]",
        ),
    ] {
        op("update_slice")
            .of(SIX)
            .of(update)
            .of(starts)
            .gives(&[wanted]);
    }
    op("update_slice")
        .of("1.5 f64")
        .of("2.5 f64")
        .of("[] 0xi64")
        .gives(&["f64 [] [2.5]"]);
    op("update_slice")
        .of("[[[1,2],[3,4]],[[5,6],[7,8]]] 2x2x2xui8")
        .of("[[[0,9]],[[9,0]]] 2x1x2xui8")
        .of("[0,1,0] 3xi64")
        .gives(&["u8 [2, 2, 2] [1, 2, 0, 9, 5, 6, 9, 0]"]);
    op("update_slice")
        .of(SIX)
        .of("[[1,2,3,4]] 1x4xi32")
        .of("[0,0] 2xi64")
        .fails("update_slice: an update of shape [1, 4] is no part of a tensor of shape [2, 3]");
    op("update_slice")
        .of(SIX)
        .of("[1] 1xi32")
        .of("[0] 1xi64")
        .fails("update_slice: an update of shape [1] is no part of a tensor of shape [2, 3]");
    op("update_slice")
        .of(SIX)
        .of("[[1]] 1x1xi32")
        .of("[0] 1xi64")
        .fails("update_slice: expected a start for each of 2 dimensions, found 1");
    op("update_slice")
        .of(SIX)
        .of("[[1]] 1x1xi64")
        .of("[0,0] 2xi64")
        .fails("update_slice: expected tensors of one type, found i32 and i64");
}

/// Tests the order of NumPy: NaN is behind all numbers, and comes first where the largest does.
#[test]
fn elements_are_sorted() {
    op("sort")
        .of("[[3,1,2],[0,-5,7]] 2x3xi64")
        .gives(&["i64 [2, 3] [1, 2, 3, -5, 0, 7]"]);
    op("sort")
        .of("[[3,1,2],[0,-5,7]] 2x3xi8")
        .with(r#""axis", 0 : i64, "descending", 1 : i64"#)
        .gives(&["i8 [2, 3] [3, 1, 7, 0, -5, 2]"]);
    let floats = "[1.5,0x7FC00000,-0.0,0xFF800000,0.0,-2.0,0x7F800000] 7xf32";
    op("sort")
        .of(floats)
        .gives(&["f32 [7] [-INF, -2.0, 0.0, 0.0, 1.5, INF, nan]"]);
    op("sort")
        .of(floats)
        .with(r#""descending", 1 : i64"#)
        .gives(&["f32 [7] [nan, INF, 1.5, 0.0, 0.0, -2.0, -INF]"]);
    op("sort")
        .of("[2.5,-1.0,0.5] 3xf64")
        .gives(&["f64 [3] [-1.0, 0.5, 2.5]"]);
    op("sort")
        .of("[2.0,-1.0,1.0] 3xf16")
        .gives(&["f16 [3] [fp16(48128), fp16(15360), fp16(16384)]"]);
    op("sort")
        .of("[2.0,-1.0,1.0] 3xbf16")
        .gives(&["bf16 [3] [bf16(49024), bf16(16256), bf16(16384)]"]);
    op("sort")
        .of("[18446744073709551615,0,9223372036854775808] 3xui64")
        .gives(&["u64 [3] [0, 9223372036854775808, 18446744073709551615]"]);
    op("sort")
        .of("[true,false,true,false] 4xi1")
        .gives(&["i1 [4] [0, 0, 1, 1]"]);
    op("sort")
        .of("[[true,false]] 1x2xi1")
        .with(r#""axis", 1 : i64, "descending", 1 : i64"#)
        .gives(&["i1 [1, 2] [1, 0]"]);
    op("sort").of("[[]] 1x0xf32").gives(&["f32 [1, 0] []"]);
    op("sort")
        .of("1.0 f32")
        .fails("sort: axis -1 is none of a tensor of 0 dimensions");
    op("sort")
        .of("[(1.0,0.0)] 1xcomplex<f32>")
        .fails("sort: operand 0 is of complex64, for which the operation is not defined");
}

/// Tests slices as ONNX defines them: backwards, a start before the tensor is its first element.
#[test]
fn slices_begin_at_an_element() {
    for (start, end, step, wanted) in [
        ("-9", "-9", "-1", "i32 [1] [1]"),
        ("-3", "-9", "-1", "i32 [1] [1]"),
        (
            "-9223372036854775808",
            "-9223372036854775808",
            "-2",
            "i32 [1] [1]",
        ),
        ("-9", "0", "-1", "i32 [0] []"),
        ("9", "-9", "-2", "i32 [2] [3, 1]"),
        ("-9", "9", "2", "i32 [2] [1, 3]"),
        ("9", "-9", "-9223372036854775808", "i32 [1] [3]"),
    ] {
        op("Slice")
            .of("[1,2,3] 3xi32")
            .of(&format!("[{start}] 1xi64"))
            .of(&format!("[{end}] 1xi64"))
            .of("")
            .of(&format!("[{step}] 1xi64"))
            .gives(&[wanted]);
    }
    op("Slice")
        .of("[] 0xi32")
        .of("[-9] 1xi64")
        .of("[-9] 1xi64")
        .of("")
        .of("[-1] 1xi64")
        .gives(&["i32 [0] []"]);
}
