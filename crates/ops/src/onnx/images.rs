//! Rows on images: regions and samples of them, detection, decoding.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::unknown_dims;
use crate::infer::{Infer, InferCall, InferError};
use crate::structure::dims_of;
use crate::windows::Windows;

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.GridSample",
        "Elements of an image at given coordinates, interpolated.",
    )
    .inputs(&[ValueDef::var("X", "T1"), ValueDef::var("grid", "T2")])
    .results(&[ValueDef::var("Y", "T1")])
    .attrs(&[
        AttrDef::int("align_corners", 0),
        AttrDef::text("mode", "linear"),
        AttrDef::text("padding_mode", "zeros"),
    ])
    .infer(Infer::By(grid_sample)),
    OpDef::new(
        "onnx.ImageDecoder",
        "The image that a file of PNG, JPEG and the like is.",
    )
    .inputs(&[ValueDef::set("encoded_stream", &[DType::Ui8])])
    .results(&[ValueDef::set("image", &[DType::Ui8]).data_dependent()])
    .attrs(&[AttrDef::text("pixel_format", "RGB")])
    .infer(Infer::By(image_decoder)),
    OpDef::new(
        "onnx.MaxRoiPool",
        "The largest element of each part of given regions of an image.",
    )
    .inputs(&[ValueDef::var("X", "T"), ValueDef::var("rois", "T")])
    .results(&[ValueDef::var("Y", "T")])
    .attrs(&[
        AttrDef::new("pooled_shape", AttrKind::Ints).required(),
        AttrDef::float("spatial_scale", 1.0),
    ])
    .infer(Infer::By(max_roi_pool)),
    OpDef::new(
        "onnx.MaxUnpool",
        "Elements put back to where a pool took them from; the rest is 0.",
    )
    .inputs(&[
        ValueDef::var("X", "T1"),
        ValueDef::set("I", &[DType::I64]),
        ValueDef::set("output_shape", &[DType::I64]).optional(),
    ])
    .results(&[ValueDef::var("output", "T1").by_values()])
    .attrs(&[
        AttrDef::new("kernel_shape", AttrKind::Ints).required(),
        AttrDef::new("pads", AttrKind::Ints),
        AttrDef::new("strides", AttrKind::Ints),
    ])
    .infer(Infer::By(max_unpool)),
    OpDef::new(
        "onnx.NonMaxSuppression",
        "Boxes with the highest scores, without those that overlap a better one too much.",
    )
    .inputs(&[
        ValueDef::set("boxes", &[DType::F32]),
        ValueDef::set("scores", &[DType::F32]),
        ValueDef::set("max_output_boxes_per_class", &[DType::I64]).optional(),
        ValueDef::set("iou_threshold", &[DType::F32]).optional(),
        ValueDef::set("score_threshold", &[DType::F32]).optional(),
    ])
    .results(&[ValueDef::set("selected_indices", &[DType::I64]).data_dependent()])
    .attrs(&[AttrDef::int("center_point_box", 0)])
    .infer(Infer::By(non_max_suppression)),
    OpDef::new(
        "onnx.RoiAlign",
        "Parts of given regions of an image, interpolated.",
    )
    .inputs(&[
        ValueDef::var("X", "T1"),
        ValueDef::var("rois", "T1"),
        ValueDef::set("batch_indices", &[DType::I64]),
    ])
    .results(&[ValueDef::var("Y", "T1")])
    .attrs(&[
        AttrDef::text("coordinate_transformation_mode", "half_pixel"),
        AttrDef::text("mode", "avg"),
        AttrDef::int("output_height", 1),
        AttrDef::int("output_width", 1),
        AttrDef::int("sampling_ratio", 0),
        AttrDef::float("spatial_scale", 1.0),
    ])
    .infer(Infer::By(roi_align)),
];

fn grid_sample(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, grid) = (call.input(0), call.input(1));
    let dims = grid.dims.as_deref().and_then(|grid| {
        let spatial = grid.get(1..grid.len().checked_sub(1)?)?;
        let mut dims = Dims::from_iter([x.dim(0), x.dim(1)]);
        dims.extend(spatial.iter().cloned());
        Some(dims)
    });
    let dtype = x.dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn image_decoder(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let channels = if call.attrs.text("pixel_format") == "Grayscale" {
        1
    } else {
        3
    };
    let dims = Dims::from_iter([Dim::Unknown, Dim::Unknown, Dim::Known(channels)]);
    call.give(0, Some(DType::Ui8), Some(dims));
    Ok(())
}

/// Returns the extents of regions: (regions, channels, height, width).
fn regions(call: &mut InferCall<'_>, spatial: [Option<i64>; 2]) {
    let x = call.input(0);
    let mut dims = Dims::from_iter([call.input(1).dim(0), x.dim(1)]);
    dims.extend(spatial.map(|extent| extent.map_or(Dim::Unknown, Dim::Known)));
    let dtype = x.dtype;
    call.give(0, dtype, Some(dims));
}

fn max_roi_pool(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let shape = call.attrs.ints("pooled_shape");
    let extent = |at: usize| shape.as_ref().and_then(|shape| shape.get(at).copied());
    let spatial = [extent(0), extent(1)];
    regions(call, spatial);
    Ok(())
}

fn roi_align(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let spatial = ["output_height", "output_width"].map(|name| call.attrs.int(name));
    regions(call, spatial);
    Ok(())
}

fn max_unpool(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let stated = if call.has(2) {
        dims_of(call.input(2))
    } else {
        None
    };
    if let (Some(dims), Some(stated)) = (&x.dims, &stated)
        && dims.len() != stated.len()
    {
        let (expected, found) = (dims.len(), stated.len());
        return Err(call.error(format_args!("expected {expected} extents, found {found}")));
    }
    let dims = match (call.has(2), x.dims) {
        (true, dims) => stated.or_else(|| dims.map(|dims| unknown_dims(dims.len()))),
        (false, None) => None,
        (false, Some(dims)) if dims.len() < 2 => {
            return Err(call.error(format_args!(
                "expected at least 2 dimensions, found {}",
                dims.len()
            )));
        }
        (false, Some(dims)) => {
            let kernel = call.attrs.ints("kernel_shape").unwrap_or_default();
            let n = dims.len() - 2;
            if kernel.len() != n {
                return Err(call.error(format_args!(
                    "expected a window of {n} dimensions, found {}",
                    kernel.len()
                )));
            }
            let kernel: Dims = kernel.iter().map(|extent| Dim::Known(*extent)).collect();
            let spatial = Windows::new(call, &kernel)?.transposed(&dims[2..], &[]);
            Some(dims[..2].iter().cloned().chain(spatial).collect())
        }
    };
    call.give(0, x.dtype, dims);
    Ok(())
}

fn non_max_suppression(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(
        0,
        Some(DType::I64),
        Some(Dims::from_iter([Dim::Unknown, Dim::Known(3)])),
    );
    Ok(())
}
