//! Rows of derivatives and steps of optimizers: the domain `ai.onnx.preview.training`.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.training.Adagrad",
        "A step of Adagrad: new weights and sums of squares.",
    )
    .inputs(&[
        ValueDef::var("R", "T1"),
        ValueDef::set("T", &[DType::I64]),
        ValueDef::any("inputs").rest(1),
    ])
    .results(&[ValueDef::any("outputs").rest(1)])
    .attrs(&[
        AttrDef::float("decay_factor", 0.0),
        AttrDef::float("epsilon", 1e-06),
        AttrDef::float("norm_coefficient", 0.0),
    ])
    .infer(Infer::By(optimizer)),
    OpDef::new(
        "onnx.training.Adam",
        "A step of Adam: new weights and moments.",
    )
    .inputs(&[
        ValueDef::var("R", "T1"),
        ValueDef::set("T", &[DType::I64]),
        ValueDef::any("inputs").rest(1),
    ])
    .results(&[ValueDef::any("outputs").rest(1)])
    .attrs(&[
        AttrDef::float("alpha", 0.9),
        AttrDef::float("beta", 0.999),
        AttrDef::float("epsilon", 1e-06),
        AttrDef::float("norm_coefficient", 0.0),
        AttrDef::float("norm_coefficient_post", 0.0),
    ])
    .infer(Infer::By(optimizer)),
    OpDef::new(
        "onnx.training.Gradient",
        "The derivatives of a result by some values.",
    )
    .inputs(&[ValueDef::any("Inputs").rest(1)])
    .results(&[ValueDef::any("Outputs").rest(1).data_dependent()])
    .attrs(&[
        AttrDef::new("xs", AttrKind::Texts).required(),
        AttrDef::new("y", AttrKind::Text).required(),
        AttrDef::new("zs", AttrKind::Texts),
    ])
    .infer(Infer::By(nothing)),
    OpDef::new(
        "onnx.training.Momentum",
        "A step of gradient descent with momentum: new weights and velocities.",
    )
    .inputs(&[
        ValueDef::var("R", "T1"),
        ValueDef::set("T", &[DType::I64]),
        ValueDef::any("inputs").rest(1),
    ])
    .results(&[ValueDef::any("outputs").rest(1)])
    .attrs(&[
        AttrDef::new("alpha", AttrKind::Float).required(),
        AttrDef::new("beta", AttrKind::Float).required(),
        AttrDef::new("mode", AttrKind::Text).required(),
        AttrDef::new("norm_coefficient", AttrKind::Float).required(),
    ])
    .infer(Infer::By(optimizer)),
];

/// Infers nothing: the results are known when the operands have values.
fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

/// Infers a step of an optimizer. Operands are the rate, the count, then weights, gradients, and the optimizer's
/// state for each; results are new weights and new state.
fn optimizer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let n_results = call.out.len();
    let kinds = if call.op.name == "onnx.training.Adam" {
        4
    } else {
        3
    };
    let n = call.inputs.len().saturating_sub(2) / kinds;
    for index in 0..n_results {
        let from = if index < n { 2 + index } else { 2 + n + index };
        let Fact { dtype, dims, .. } = call.input(from).clone();
        call.give(index, dtype, dims);
    }
    Ok(())
}
