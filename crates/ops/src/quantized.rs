//! Rows of quantised numbers: small integers with a scale and a zero point.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::infer::{Infer, InferCall, InferError};
use crate::products::dot_dims;

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
    OpDef::new(
        "quantized_dot",
        "The product of matrices of quantised numbers, quantised again: exact sums, plus a bias in their steps, times a factor in `f32`, rounded once.",
    )
    .inputs(&[
        ValueDef::set("a", BYTES),
        ValueDef::set("a_scale", FLOATS),
        ValueDef::set("a_zero", BYTES),
        ValueDef::set("b", BYTES),
        ValueDef::set("b_scale", FLOATS),
        ValueDef::set("b_zero", BYTES),
        ValueDef::set("y_scale", FLOATS),
        ValueDef::set("y_zero", BYTES),
        ValueDef::set("bias", &[DType::I32]).optional(),
    ])
    .results(&[ValueDef::any("y")])
    .infer(Infer::By(quantized_dot)),
    OpDef::new(
        "integer_dot",
        "The product of matrices of bytes without their zero points: exact sums, times the scales, plus a bias.",
    )
    .inputs(&[
        ValueDef::set("a", BYTES),
        ValueDef::set("a_scale", FLOATS),
        ValueDef::set("a_zero", BYTES).optional(),
        ValueDef::set("b", BYTES),
        ValueDef::set("b_scale", FLOATS),
        ValueDef::set("b_zero", BYTES).optional(),
        ValueDef::set("bias", FLOATS).optional(),
    ])
    .results(&[ValueDef::set("y", FLOATS)])
    .infer(Infer::By(integer_dot)),
];

/// The types of quantised matrices.
const BYTES: &[DType] = &[DType::Ui8, DType::I8];
/// The type of scales.
const FLOATS: &[DType] = &[DType::F32];

/// Expects scales and zero points to fit a tensor: one for all of it, or one for each index along `axis`. Those of
/// blocks are left to the kernel.
fn expect_scales(call: &InferCall<'_>) -> Result<(), InferError> {
    let (x, scale) = (call.input(0), call.input(1));
    let (Some(scales), 0) = (&scale.dims, call.attrs.int("block_size").unwrap_or(0)) else {
        return Ok(());
    };
    let Some(n_scales) = scale.n_elements().value() else {
        return Ok(());
    };
    if call.has(2)
        && let Some(n_zeros) = call.input(2).n_elements().value()
        && n_zeros != 0
        && n_zeros != n_scales
    {
        return Err(call.error(format_args!(
            "expected as many zero points as scales, found {n_zeros} and {n_scales}"
        )));
    }
    let Some(dims) = x.dims.as_ref().filter(|_| n_scales != 1) else {
        return Ok(());
    };
    let axis = call.axis(call.attrs.int("axis").unwrap_or(1), dims.len())?;
    match dims[axis].value() {
        _ if scales.len() != 1 => Err(call.error(format_args!(
            "expected one scale or a list of scales, found {} dimensions",
            scales.len()
        ))),
        Some(size) if size != n_scales => Err(call.error(format_args!(
            "expected {size} scales, one for each index along dimension {axis}, found {n_scales}"
        ))),
        _ => Ok(()),
    }
}

fn quantize(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_scales(call)?;
    let dtype = match call.has(2) {
        true => call.input(2).dtype,
        false => call.attrs.dtype("to").or(Some(DType::Ui8)),
    };
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}

fn dequantize(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_scales(call)?;
    if let (true, Some(zero), Some(own)) = (call.has(2), call.input(2).dtype, call.input(0).dtype)
        && zero != own
    {
        return Err(call.error(format_args!("expected zero points of {own}, found {zero}")));
    }
    let dtype = call.attrs.dtype("to").or(call.input(1).dtype);
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}

fn quantized_dot(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = dot_dims(call, [call.input(0), call.input(3)], [false; 2])?;
    let dtype = call.input(7).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn integer_dot(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = dot_dims(call, [call.input(0), call.input(3)], [false; 2])?;
    call.give(0, Some(DType::F32), dims);
    Ok(())
}
