//! Tests on pictures: resized, resampled, and searched.

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
    by("[1.0, 1.0] 2xf32", "").fails("resize: operand 2 is expected to have 3 elements, found 2");
    by("[1.0, 1.0, 1.0e30] 3xf32", "")
        .fails("resize: 2000000030094932400000000000000 is no extent");
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

/// Files of a red pixel and a blue one.
const FILES: [(&str, &str); 4] = [
    ("PNM", "\"0x503620322031203235350AFF00000080FF\" 17xui8"),
    (
        "BMP",
        "\"0x424D3E0000000000000036000000280000000200000001000000010018000000000008000000000000000000000000000000000000000000FFFF80000000\" 62xui8",
    ),
    (
        "PNG",
        "\"0x89504E470D0A1A0A0000000D49484452000000020000000108020000007B40E8DD0000000F49444154789C63F8CFC0C0D0F01F000800027F9C45404E0000000049454E44AE426082\" 72xui8",
    ),
    (
        "TIFF",
        "\"0x49492A0008000000090000010400010000000200000001010400010000000100000002010300030000007A00000003010300010000000100000006010300010000000200000011010400010000008000000015010300010000000300000016010400010000000100000017010400010000000600000000000000080008000800FF00000080FF\" 134xui8",
    ),
];

#[test]
fn files_of_pictures() {
    for (_, file) in FILES {
        op("ImageDecoder")
            .of(file)
            .gives(&["u8 [1, 2, 3] [255, 0, 0, 0, 128, 255]"]);
    }
    let (_, file) = FILES[0];
    let decoded = |attributes| op("ImageDecoder").of(file).with(attributes);
    decoded("\"pixel_format\", \"BGR\"").gives(&["u8 [1, 2, 3] [0, 0, 255, 255, 128, 0]"]);
    decoded("\"pixel_format\", \"Grayscale\"").gives(&["u8 [1, 2, 1] [76, 104]"]);
    op("ImageDecoder").of("\"0x0102\" 2xui8").fails(
        "ImageDecoder: the picture can't be decoded: it begins like none of JPEG, JPEG 2000, PNG, WebP, TIFF, \
         BMP and PNM",
    );
}

#[test]
fn pictures_have_the_memory_of_the_host() {
    // The operand has some of it, too.
    op("ImageDecoder")
        .of("\"0x503620333030203330302032353530\" 15xui8")
        .within(1 << 18)
        .fails("ImageDecoder: no memory for a picture of 270000 bytes");
    for (_, file) in FILES {
        op("ImageDecoder")
            .of(file)
            .within(1 << 16)
            .gives(&["u8 [1, 2, 3] [255, 0, 0, 0, 128, 255]"]);
    }
}

/// Tests the coordinates of version 11 alone: half an element is added, and not taken away again.
#[test]
fn pictures_lie_where_older_versions_have_them() {
    let resize = || {
        op("Resize")
            .of("[[1.0,2.0,3.0,4.0],[5.0,6.0,7.0,8.0]] 2x4xf32")
            .of("")
            .of("[1.0,0.5] 2xf32")
    };
    let places = r#""coordinate_transformation_mode", "tf_half_pixel_for_nn""#;
    resize()
        .with(format!(r#"{places}, "nearest_mode", "floor""#))
        .gives(&["f32 [2, 2] [2.0, 4.0, 6.0, 8.0]"]);
    let old = |scales: &str| {
        op("Resize")
            .opset(10)
            .of("[[1.0,2.0,3.0,4.0],[5.0,6.0,7.0,8.0]] 2x4xf32")
            .of(scales)
    };
    old("[0.6,0.6] 2xf32").gives(&["f32 [1, 2] [1.0, 3.0]"]);
    old("[1.0,1.5] 2xf32")
        .gives(&["f32 [2, 6] [1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0, 7.0, 8.0]"]);
    old("[2.0,0.5] 2xf32").fails(
        "Resize: operand 1 makes a picture larger along one dimension and smaller along another: in version 10 that is not supported",
    );
    op("Add")
        .opset(6)
        .of("[[1,2],[3,4]] 2x2xi32")
        .of("[1,2] 2xi32")
        .with(r#""axis", 0 : i64, "broadcast", 1 : i64"#)
        .fails("Add: attribute 'axis' of a version before 7 is not supported here, found 0");
    op("Add")
        .opset(6)
        .of("[1,2] 2xi32")
        .of("[1,2] 2xi32")
        .with(r#""axis", 0 : i64"#)
        .gives(&["i32 [2] [2, 4]"]);
}
