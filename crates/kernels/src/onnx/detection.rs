//! Boxes and regions in pictures.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::boxes::{BoundingBox, NonMaxSuppression, suppress};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::sample::{RoiAlign, roi_align_into};

use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.MaxRoiPool", largest_of_regions),
    ("onnx.NonMaxSuppression", suppression),
    ("onnx.RoiAlign", align),
];

/// Bytes for each box that is kept: three numbers in a list that doubles.
const BYTES_PER_KEPT: usize = 3 * 2 * size_of::<i64>();

/// `NonMaxSuppression`: batch, class and box of each box that is kept.
fn suppression(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (of_boxes, of_scores) = (node.inputs.extents(0, 3)?, node.inputs.extents(1, 3)?);
    let (boxes, scores) = (node.inputs.numbers(0)?, node.inputs.numbers(1)?);
    let &[batch, classes, n] = &of_scores[..] else {
        return Err(node.inputs.error(1, "is expected to have three dimensions"));
    };
    if of_boxes[..] != [batch, n, 4] {
        return Err(node.error(format_args!(
            "boxes of extents {of_boxes:?} don't fit scores of {of_scores:?}"
        )));
    }
    let most = if node.inputs.has(2) {
        node.inputs.integer(2)?
    } else {
        0
    };
    let suppression = NonMaxSuppression {
        most: usize::try_from(most).unwrap_or(0),
        overlap: if node.inputs.has(3) {
            node.inputs.number(3)?
        } else {
            0.0
        },
        score: if node.inputs.has(4) {
            Some(node.inputs.number(4)?)
        } else {
            None
        },
    };
    let by_middles = node.attributes.flag("center_point_box", false)?;
    let sides = boxes.chunks_exact(4).map(|one| {
        let four = [one[0], one[1], one[2], one[3]];
        if by_middles {
            BoundingBox::of_middle(four)
        } else {
            BoundingBox::of_corners(four)
        }
    });
    let sides: Vec<BoundingBox> = sides.collect();
    let mut kept = Vec::new();
    for (image, sides) in sides.chunks(n.max(1)).enumerate() {
        for class in 0..classes {
            if let Some(reason) = node.execution.request().cancellation() {
                return Err(reason.clone());
            }
            let scores = &scores[(image * classes + class) * n..][..n];
            let found = suppress(&suppression, sides, scores);
            node.workspace.reserve(found.len(), BYTES_PER_KEPT)?;
            for index in found {
                kept.extend(
                    [image, class, index].map(|one| i64::try_from(one).unwrap_or(i64::MAX)),
                );
            }
        }
    }
    Ok(node.tensor_of(&[kept.len() / 3, 3], &kept)?.into())
}

/// Returns the number of cells of regions along one dimension.
fn cells(node: &NodeCall<'_>, name: &str) -> Result<usize, Error> {
    node.attributes.size_or(name, 1)
}

fn align(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents, regions) = (
        x.dtype(),
        node.inputs.extents(0, 4)?,
        node.inputs.extents(1, 2)?,
    );
    if regions[1] != 4 {
        return Err(node.inputs.error(
            1,
            format_args!("is expected to have rows of 4 numbers, found {regions:?}"),
        ));
    }
    let images: Option<Vec<usize>> = node
        .inputs
        .integers(2)?
        .iter()
        .map(|one| usize::try_from(*one).ok())
        .collect();
    let images = images.ok_or_else(|| node.inputs.error(2, "has a negative number"))?;
    let mode = node.attributes.string_or("mode", "avg")?;
    // Half pixels are the default since version 16.
    let default = if node.opset < 16 {
        "output_half_pixel"
    } else {
        "half_pixel"
    };
    let options = RoiAlign {
        scale: node.attributes.float_or("spatial_scale", 1.0)?.into(),
        ratio: node.attributes.size_or("sampling_ratio", 0)?,
        half_pixel: node
            .attributes
            .string_or("coordinate_transformation_mode", default)?
            == "half_pixel",
        takes_largest: mode == "max",
    };
    if !matches!(mode, "avg" | "max") {
        let message = format_args!(
            "is expected to be 'avg' or 'max', found '{}'",
            mode.escape_debug()
        );
        return Err(node.attributes.error("mode", message));
    }
    let list = node.inputs.numbers(1)?;
    let list = list
        .chunks_exact(4)
        .map(|one| [one[0], one[1], one[2], one[3]])
        .collect();
    let output = [
        regions[0],
        extents[1],
        cells(node, "output_height")?,
        cells(node, "output_width")?,
    ];
    let out = node.output(dtype, &output)?;
    node.inputs.expect(0, Family::Floats)?;
    let chain = roi_align_into(node.execution, options, x, list, images, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

/// `MaxRoiPool`: the largest elements of the cells of regions, each given by its image and two corners.
fn largest_of_regions(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents, regions) = (
        x.dtype(),
        node.inputs.extents(0, 4)?,
        node.inputs.extents(1, 2)?,
    );
    let scale = f64::from(node.attributes.float_or("spatial_scale", 1.0)?);
    let shape = node
        .attributes
        .integers("pooled_shape")?
        .ok_or_else(|| node.attributes.missing("pooled_shape"))?;
    let cells: Option<Vec<usize>> = shape
        .iter()
        .map(|one| usize::try_from(*one).ok().filter(|one| *one > 0))
        .collect();
    let Some(&[rows, columns]) = cells.as_deref() else {
        return Err(node
            .attributes
            .error("pooled_shape", "is expected to have two numbers above 0"));
    };
    if regions[1] != 5 {
        return Err(node.inputs.error(
            1,
            format_args!("is expected to have rows of 5 numbers, found {regions:?}"),
        ));
    }
    let (batch, channels, height, width) = (extents[0], extents[1], extents[2], extents[3]);
    let list = node.inputs.numbers(1)?;
    let out = node.output(dtype, &[regions[0], channels, rows, columns])?;
    with_floating!(dtype, T => {
        let reading = x.read()?;
        let elements = reading.elements::<T>()?;
        let mut writing = out.write()?;
        let results = writing.elements_mut::<T>()?;
        for (region, row) in list.chunks_exact(5).enumerate() {
            let corner = |index: usize| (row[index] * scale).round();
            let [left, upper, right, lower] = [1, 2, 3, 4].map(corner);
            let (h, w) = ((lower - upper + 1.0).max(1.0), (right - left + 1.0).max(1.0));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                reason = "it is clamped to the picture")]
            let range = |start: f64, span: f64, cell: usize, n: usize, extent: usize| {
                let size = span / n as f64;
                let first = (start + (cell as f64 * size).floor()).clamp(0.0, extent as f64) as usize;
                let last = (start + ((cell + 1) as f64 * size).ceil()).clamp(0.0, extent as f64) as usize;
                first..last
            };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is below 0 is none")]
            let image = Some(row[0]).filter(|image| *image >= 0.0).map_or(usize::MAX, |image| image as usize);
            if image >= batch {
                return Err(node.inputs.error(1, format_args!("has no image of {batch}: {}", row[0])));
            }
            for channel in 0..channels {
                let start = (image * channels + channel) * height * width;
                for cell in 0..rows * columns {
                    let lines = range(upper, h, cell / columns, rows, height);
                    let mut best: Option<T> = None;
                    for line in lines {
                        for place in range(left, w, cell % columns, columns, width) {
                            let one = elements[start + line * width + place];
                            best = Some(best.map_or(one, |best| best.greatest(one)));
                        }
                    }
                    results[(region * channels + channel) * rows * columns + cell] = best.unwrap_or(T::from_f64(0.0));
                }
            }
        }
        drop(writing);
        Ok(out.into())
    }, else Err(node.inputs.unsupported(0, dtype)))
}
