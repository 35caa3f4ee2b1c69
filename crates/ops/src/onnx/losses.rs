//! Rows of losses.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::Dims;
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.NegativeLogLikelihoodLoss",
        "The negative logarithm of the probability of each target, weighted, and reduced.",
    )
    .inputs(&[
        ValueDef::var("input", "T"),
        ValueDef::set("target", &[DType::I32, DType::I64]),
        ValueDef::var("weight", "T").optional(),
    ])
    .results(&[ValueDef::var("loss", "T")])
    .attrs(&[
        AttrDef::new("ignore_index", AttrKind::Int),
        AttrDef::text("reduction", "mean"),
    ])
    .infer(Infer::By(likelihood)),
    OpDef::new(
        "onnx.SoftmaxCrossEntropyLoss",
        "The negative logarithm of the softmax at each label, weighted, and reduced.",
    )
    .inputs(&[
        ValueDef::var("scores", "T"),
        ValueDef::set("labels", &[DType::I32, DType::I64]),
        ValueDef::var("weights", "T").optional(),
    ])
    .results(&[
        ValueDef::var("output", "T"),
        ValueDef::var("log_prob", "T").optional(),
    ])
    .attrs(&[
        AttrDef::new("ignore_index", AttrKind::Int),
        AttrDef::text("reduction", "mean"),
    ])
    .infer(Infer::By(cross_entropy)),
];

/// Returns the extents of a loss: those of the targets, or none if it is reduced.
fn loss(call: &mut InferCall<'_>) {
    let dims = match call.attrs.text("reduction") {
        "none" => call.input(1).dims.clone(),
        _ => Some(Dims::new()),
    };
    let dtype = call.input(0).dtype;
    call.give(0, dtype, dims);
}

fn likelihood(call: &mut InferCall<'_>) -> Result<(), InferError> {
    loss(call);
    Ok(())
}

fn cross_entropy(call: &mut InferCall<'_>) -> Result<(), InferError> {
    loss(call);
    let Fact { dtype, dims, .. } = call.input(0).clone();
    call.give(1, dtype, dims);
    Ok(())
}
