//! Rows of quantised numbers: small integers with a scale and a zero point.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "quantize",
        "Each element divided by a scale, rounded, plus the zero point, as a small integer.",
    )
    .inputs(&[
        ValueDef::any("x"),
        ValueDef::any("scale"),
        ValueDef::any("zero").optional(),
    ])
    .results(&[ValueDef::any("y")])
    .attrs(&[
        AttrDef::int("axis", 1),
        AttrDef::int("block_size", 0),
        AttrDef::new("to", AttrKind::Type),
        AttrDef::new("precision", AttrKind::Type),
        AttrDef::int("saturate", 1),
    ])
    .infer(Infer::By(quantize))
    .cost(Cost::PerElement(4)),
    OpDef::new(
        "dequantize",
        "Each element less the zero point, times a scale.",
    )
    .inputs(&[
        ValueDef::any("x"),
        ValueDef::any("scale"),
        ValueDef::any("zero").optional(),
    ])
    .results(&[ValueDef::any("y")])
    .attrs(&[
        AttrDef::int("axis", 1),
        AttrDef::int("block_size", 0),
        AttrDef::new("to", AttrKind::Type),
    ])
    .infer(Infer::By(dequantize))
    .cost(Cost::PerElement(2)),
];

fn quantize(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = match call.has(2) {
        true => call.input(2).dtype,
        false => call.attrs.dtype("to").or(Some(DType::Ui8)),
    };
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}

fn dequantize(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("to").or(call.input(1).dtype);
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}
