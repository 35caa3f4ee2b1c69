//! Rows on boxes in images: the best of those that overlap, and crops of images.

use tfrt_bef::DType;

use super::text;
use crate::def::{AttrDef, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const SINGLE: &[DType] = &[DType::F32];
const INDEX: &[DType] = &[DType::I32, DType::I64];
const NARROW: &[DType] = &[DType::I32];
const BOXES: ValueDef = ValueDef::set("boxes", SINGLE);
const SUPPRESSION: &[ValueDef] = &[
    BOXES,
    ValueDef::set("scores", SINGLE),
    ValueDef::set("max_output_size", INDEX),
    ValueDef::set("iou_threshold", SINGLE),
    ValueDef::set("score_threshold", SINGLE).optional(),
];

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.CropAndResize", "For each box `[y1, x1, y2, x2]`, 0 to 1 from side to side, what it holds of the image that `box_ind` numbers, as an image of `crop_size`, by the nearest elements or between them (`method`). Outside of images is `extrapolation_value`.")
        .inputs(&[
            ValueDef::var("image", "T"),
            BOXES,
            ValueDef::set("box_ind", INDEX),
            ValueDef::set("crop_size", INDEX),
        ])
        .results(&[ValueDef::set("crops", SINGLE).by_values()])
        .attrs(&[AttrDef::text("method", "bilinear"), AttrDef::float("extrapolation_value", 0.0)])
        .infer(Infer::By(crops)),
    OpDef::new("tf.NonMaxSuppressionV3", "Which boxes `[y1, x1, y2, x2]` have the highest scores, above a threshold, without those that share more with a better one, of all that both cover, than another threshold.")
        .inputs(SUPPRESSION)
        .results(&[ValueDef::set("selected", NARROW).data_dependent()])
        .infer(Infer::By(selected)),
    OpDef::new("tf.NonMaxSuppressionV4", "As `tf.NonMaxSuppressionV3`, filled up with 0 to as many as there may be if asked for; and how many are selected.")
        .inputs(SUPPRESSION)
        .results(&[ValueDef::set("selected", NARROW).data_dependent(), ValueDef::set("n", NARROW)])
        .attrs(&[AttrDef::int("pad_to_max_output_size", 0)])
        .infer(Infer::By(selected)),
];

/// Returns an error if an operand is no list of boxes.
fn expect_boxes(call: &InferCall<'_>, index: usize) -> Result<(), InferError> {
    match call.input(index).dims.as_deref() {
        Some([_, four]) if four.value().is_none_or(|four| four == 4) => Ok(()),
        None => Ok(()),
        Some(_) => {
            let found = text(call.input(index));
            Err(call.error(format_args!(
                "operand {index}: expected boxes of 4 numbers, found {found}"
            )))
        }
    }
}

/// Returns an error if there is not a number for each box.
fn expect_each(call: &InferCall<'_>, boxes: usize, index: usize) -> Result<(), InferError> {
    call.expect_rank(index, 1)?;
    match (
        call.input(boxes).dim(0).value(),
        call.input(index).dim(0).value(),
    ) {
        (Some(n), Some(found)) if n != found => Err(call.error(format_args!(
            "operand {index}: expected a number for each of {n} boxes, found {found}"
        ))),
        _ => Ok(()),
    }
}

fn crops(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 4)?;
    expect_boxes(call, 1)?;
    expect_each(call, 1, 2)?;
    match call.attrs.text("method") {
        "" | "bilinear" | "nearest" => (),
        found => {
            let found = found.escape_debug();
            return Err(call.error(format_args!(
                "expected attribute 'method' to be bilinear or nearest, found '{found}'"
            )));
        }
    }
    let [height, width] = match call.input(3).numbers().as_deref() {
        Some(&[height, width]) if height > 0 && width > 0 => [height, width].map(Dim::Known),
        Some(found) => {
            return Err(call.error(format_args!(
                "expected a height and a width above 0, found {found:?}"
            )));
        }
        None => [const { Dim::Unknown }; 2],
    };
    let dims = [call.input(1).dim(0), height, width, call.input(0).dim(3)];
    call.give(0, Some(DType::F32), Some(dims.into_iter().collect()));
    Ok(())
}

fn selected(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_boxes(call, 0)?;
    expect_each(call, 0, 1)?;
    for index in 2..5 {
        if call.has(index)
            && call
                .input(index)
                .n_elements()
                .value()
                .is_some_and(|n| n != 1)
        {
            let found = text(call.input(index));
            return Err(call.error(format_args!(
                "operand {index}: expected one number, found {found}"
            )));
        }
    }
    let most = call.input(2).number();
    if let Some(most) = most.filter(|most| *most < 0) {
        return Err(call.error(format_args!("expected to select 0 or more, found {most}")));
    }
    let is_padded = call.attrs.flag("pad_to_max_output_size");
    let n = most.filter(|_| is_padded).map_or(Dim::Unknown, Dim::Known);
    call.give(0, Some(DType::I32), Some([n].into_iter().collect()));
    call.give(1, Some(DType::I32), Some(Dims::new()));
    Ok(())
}
