//! Pictures: of other extents, looked at in other places, and what is found in them.

use super::op;

#[test]
fn extents_and_factors() {
    let x = "[[[0.0, 4.0]]] 1x1x2xf32";
    let by = |scales: &str, attributes| op("Resize").of(x).of("").of(scales).with(attributes);
    by("[1.0, 1.0, 2.0] 3xf32", "\"mode\", \"linear\"")
        .gives(&["f32 [1, 1, 4] [0.0, 1.0, 3.0, 4.0]"]);
    by("[1.0, 1.0, 1.5] 3xf32", "\"mode\", \"nearest\"").gives(&["f32 [1, 1, 3] [0.0, 0.0, 4.0]"]);
    by("[2.0] 1xf32", "\"mode\", \"linear\", \"axes\", [2 : i64], \"coordinate_transformation_mode\", \"align_corners\"")
        .gives(&["f32 [1, 1, 4] [0.0, 1.3333, 2.6667, 4.0]"]);
    op("Resize")
        .of("[true, false] 2xi1")
        .of("")
        .of("")
        .of("[4] 1xi64")
        .gives(&["i1 [4] [1, 1, 0, 0]"]);
    op("Resize").of(x).of("[0.5, 1.5] 2xf32").of("").of("[3] 1xi64")
        .with("\"mode\", \"linear\", \"axes\", [2 : i64], \"coordinate_transformation_mode\", \"tf_crop_and_resize\", \"extrapolation_value\", 7.0 : f32")
        .gives(&["f32 [1, 1, 3] [2.0, 4.0, 7.0]"]);
    op("Upsample")
        .of(x)
        .of("[1.0, 1.0, 2.0] 3xf32")
        .opset(9)
        .gives(&["f32 [1, 1, 4] [0.0, 0.0, 4.0, 4.0]"]);
    by("[1.0, 1.0] 2xf32", "").fails("Resize: operand 2 is expected to have 3 elements, found 2");
    by("[1.0, 1.0, 1.0e30] 3xf32", "")
        .fails("Resize: 2000000030094932400000000000000 is no extent");
}

#[test]
fn grids() {
    let x = "[[[[1.0, 2.0], [3.0, 4.0]]]] 1x1x2x2xf32";
    let grid = "[[[[0.0, 0.0], [1.0, -1.0]]]] 1x1x2x2xf32";
    op("GridSample")
        .of(x)
        .of(grid)
        .with("\"align_corners\", 1 : i64")
        .gives(&["f32 [1, 1, 1, 2] [2.5, 2.0]"]);
    op("GridSample")
        .of(x)
        .of(grid)
        .with("\"padding_mode\", \"border\", \"mode\", \"nearest\"")
        .gives(&["f32 [1, 1, 1, 2] [1.0, 2.0]"]);
    op("AffineGrid")
        .of("[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]] 1x2x3xf32")
        .of("[1, 1, 1, 2] 4xi64")
        .gives(&["f32 [1, 1, 2, 2] [-0.5, 0.5, 0.5, 0.5]"]);
}

#[test]
fn boxes_and_regions() {
    let boxes = "[[[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 10.0, 1.0, 11.0]]] 1x3x4xf32";
    op("NonMaxSuppression")
        .of(boxes)
        .of("[[[0.9, 0.95, 0.1]]] 1x1x3xf32")
        .of("[9] 1xi64")
        .of("[0.5] 1xf32")
        .gives(&["i64 [2, 3] [0, 0, 1, 0, 0, 2]"]);
    let x = "[[[[1.0, 2.0], [3.0, 4.0]]]] 1x1x2x2xf32";
    op("RoiAlign")
        .of(x)
        .of("[[0.0, 0.0, 2.0, 2.0]] 1x4xf32")
        .of("[0] 1xi64")
        .gives(&["f32 [1, 1, 1, 1] [2.5]"]);
    op("RoiAlign")
        .of(x)
        .of("[[0.0, 0.0, 2.0, 2.0]] 1x4xf32")
        .of("[1] 1xi64")
        .fails("RoiAlign: 1 regions of [1, 1, 2, 2] can't be seen as [1, 1, 1, 1]");
    op("MaxRoiPool")
        .of(x)
        .of("[[0.0, 0.0, 0.0, 0.0, 1.0]] 1x5xf32")
        .with("\"pooled_shape\", [1 : i64, 1 : i64]")
        .gives(&["f32 [1, 1, 1, 1] [3.0]"]);
}
