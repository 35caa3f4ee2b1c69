//! Rows of pointwise operations that `graph` spells out, or has in another form.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, ElementFamily, OpDef, PointwiseFn, Traits, ValueDef};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};
use crate::names::onnx::dtype;

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "onnx.BitCast",
        "The bits of its operand as elements of another type.",
    )
    .inputs(&[ValueDef::var("input", "T1")])
    .results(&[ValueDef::var("output", "T2")])
    .attrs(&[AttrDef::new("to", AttrKind::Int).required()])
    .infer(Infer::By(bit_cast))
    .traits(Traits::VIEW),
    OpDef::new(
        "onnx.BitShift",
        "The bits of the first integer, moved up or down (`direction`) by the second.",
    )
    .inputs(&[ValueDef::var("X", "T"), ValueDef::var("Y", "T")])
    .results(&[ValueDef::var("Z", "T")])
    .attrs(&[AttrDef::new("direction", AttrKind::Text).required()])
    .infer(Infer::Broadcast)
    .pointwise(PointwiseFn::ByText(
        "direction",
        &[("LEFT", "shift_left"), ("RIGHT", "shift_right")],
    ))
    .elements(ElementFamily::Unsigned),
    OpDef::new(
        "onnx.CastLike",
        "The elements of the first operand in the type of the second.",
    )
    .inputs(&[
        ValueDef::var("input", "T1"),
        ValueDef::var("target_type", "T2"),
    ])
    .results(&[ValueDef::var("output", "T2")])
    .attrs(&[
        AttrDef::text("round_mode", "up"),
        AttrDef::int("saturate", 1),
    ])
    .infer(Infer::By(cast_like))
    .traits(Traits::IN_PLACE),
    OpDef::new(
        "onnx.Celu",
        "max(0, x) + min(0, `alpha` * (exp(x / `alpha`) - 1)).",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::var("Y", "T")])
    .attrs(&[AttrDef::float("alpha", 1.0)])
    .pointwise(PointwiseFn::Is("celu"))
    .elements(ElementFamily::Float),
    OpDef::new(
        "onnx.Clip",
        "Each element, at least `min` and at most `max`.",
    )
    .inputs(&[
        ValueDef::var("input", "T"),
        ValueDef::var("min", "T").optional(),
        ValueDef::var("max", "T").optional(),
    ])
    .results(&[ValueDef::var("output", "T")])
    .pointwise(PointwiseFn::OfRow)
    .elements(ElementFamily::Real),
    OpDef::new(
        "onnx.Dropout",
        "Its operand; in training with some elements replaced by 0, and the others made larger.",
    )
    .inputs(&[
        ValueDef::var("data", "T"),
        ValueDef::var("ratio", "T1").optional(),
        ValueDef::set("training_mode", &[DType::I1]).optional(),
    ])
    .results(&[
        ValueDef::var("output", "T"),
        ValueDef::set("mask", &[DType::I1]).optional(),
    ])
    .attrs(&[AttrDef::new("seed", AttrKind::Int)])
    .infer(Infer::By(dropout))
    .traits(Traits::RANDOM),
    OpDef::new("onnx.HardSwish", "x * max(0, min(1, x / 6 + 0.5)).")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::var("Y", "T")])
        .pointwise(PointwiseFn::Is("hard_swish"))
        .elements(ElementFamily::Float),
    OpDef::new("onnx.Max", "The largest of the operands' elements.")
        .inputs(&[ValueDef::var("data_0", "T").rest(1)])
        .results(&[ValueDef::var("max", "T")])
        .infer(Infer::By(extreme))
        .pointwise(PointwiseFn::Fold("max"))
        .traits(Traits::COMMUTATIVE)
        .elements(ElementFamily::Real),
    OpDef::new("onnx.Mean", "The mean of the operands' elements.")
        .inputs(&[ValueDef::var("data_0", "T").rest(1)])
        .results(&[ValueDef::var("mean", "T")])
        .infer(Infer::Broadcast)
        .pointwise(PointwiseFn::Mean)
        .traits(Traits::COMMUTATIVE)
        .elements(ElementFamily::Float),
    OpDef::new("onnx.Min", "The smallest of the operands' elements.")
        .inputs(&[ValueDef::var("data_0", "T").rest(1)])
        .results(&[ValueDef::var("min", "T")])
        .infer(Infer::By(extreme))
        .pointwise(PointwiseFn::Fold("min"))
        .traits(Traits::COMMUTATIVE)
        .elements(ElementFamily::Real),
    OpDef::new("onnx.Mish", "x * tanh(log(1 + exp(x))).")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::var("Y", "T")])
        .pointwise(PointwiseFn::Is("mish"))
        .elements(ElementFamily::Float),
    OpDef::new("onnx.PRelu", "Each element, or below 0 that times `slope`.")
        .inputs(&[ValueDef::var("X", "T"), ValueDef::var("slope", "T")])
        .results(&[ValueDef::var("Y", "T")])
        .pointwise(PointwiseFn::Is("prelu"))
        .elements(ElementFamily::Real),
    OpDef::new(
        "onnx.Selu",
        "`gamma` * x, or below 0 `gamma` * `alpha` * (exp(x) - 1).",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::var("Y", "T")])
    .attrs(&[
        AttrDef::float("alpha", 1.6732632),
        AttrDef::float("gamma", 1.050701),
    ])
    .pointwise(PointwiseFn::Is("selu"))
    .elements(ElementFamily::Float),
    OpDef::new(
        "onnx.Shrink",
        "x - `bias` above `lambd`, x + `bias` below -`lambd`, else 0.",
    )
    .inputs(&[ValueDef::var("input", "T")])
    .results(&[ValueDef::var("output", "T")])
    .attrs(&[AttrDef::float("lambd", 0.5), AttrDef::float("bias", 0.0)])
    .pointwise(PointwiseFn::Is("shrink"))
    .elements(ElementFamily::Real),
    OpDef::new("onnx.Softsign", "x / (1 + |x|).")
        .inputs(&[ValueDef::var("input", "T")])
        .results(&[ValueDef::var("output", "T")])
        .pointwise(PointwiseFn::Is("softsign"))
        .elements(ElementFamily::Float),
    OpDef::new("onnx.Sum", "The sum of the operands' elements.")
        .inputs(&[ValueDef::var("data_0", "T").rest(1)])
        .results(&[ValueDef::var("sum", "T")])
        .infer(Infer::By(sum))
        .pointwise(PointwiseFn::Fold("add"))
        .traits(Traits::COMMUTATIVE)
        .elements(ElementFamily::Real),
    OpDef::new("onnx.Swish", "x * sigmoid(`alpha` * x).")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::var("Y", "T")])
        .attrs(&[AttrDef::float("alpha", 1.0)])
        .pointwise(PointwiseFn::Is("swish"))
        .elements(ElementFamily::Float),
    OpDef::new("onnx.ThresholdedRelu", "x above `alpha`, else 0.")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::var("Y", "T")])
        .attrs(&[AttrDef::float("alpha", 1.0)])
        .pointwise(PointwiseFn::Is("thresholded_relu"))
        .elements(ElementFamily::Float),
];

fn cast_like(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let y = crate::pointwise::cast_fact(call.input(0), call.input(1).dtype);
    call.set(0, y);
    Ok(())
}

fn folded(call: &mut InferCall<'_>, name: &str) -> Result<(), InferError> {
    let dims = call.broadcast()?;
    let values = match call.inputs {
        [Some(left), Some(right)] => crate::pointwise::calculate(name, false, left, right),
        [Some(only)] => only.values.clone(),
        _ => None,
    };
    let dtype = call.inputs.iter().flatten().find_map(|input| input.dtype);
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(dtype, dims)
        },
    );
    Ok(())
}

fn extreme(call: &mut InferCall<'_>) -> Result<(), InferError> {
    folded(
        call,
        if call.op.name == "onnx.Max" {
            "max"
        } else {
            "min"
        },
    )
}

fn sum(call: &mut InferCall<'_>) -> Result<(), InferError> {
    folded(call, "add")
}

fn dropout(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let Fact { dtype, dims, .. } = call.input(0).clone();
    call.give(0, dtype, dims.clone());
    call.give(1, Some(DType::I1), dims);
    Ok(())
}

fn bit_cast(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let to = call.attrs.int("to").and_then(dtype);
    let dims = call.input(0).dims.clone();
    call.give(0, to, dims);
    Ok(())
}
