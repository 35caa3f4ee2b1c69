//! Rows of quantised numbers: small integers with a scale and a zero point.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
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

/// The count of numbers that an operand with scales, zero points or biases has.
#[derive(Clone, Copy)]
pub(crate) enum Count<'a> {
    One,
    /// One for each row, column or filter, of which there are so many.
    Each(&'a Dim, &'static str),
    /// One for all, or one for each.
    OneOrEach(&'a Dim, &'static str),
}

/// Expects operands to have so many numbers. Products of several matrices may have numbers for each of them, which have
/// as many dimensions and are left to the kernel.
pub(crate) fn expect_numbers(
    call: &InferCall<'_>,
    operands: &[usize],
    count: Count<'_>,
) -> Result<(), InferError> {
    for &index in operands {
        let fact = call.input(index);
        let Some(found) = fact.n_elements().value() else {
            continue;
        };
        let (size, what) = match count {
            Count::One => (&Dim::Known(1), ""),
            Count::Each(size, what) | Count::OneOrEach(size, what) => (size, what),
        };
        let is_one_for_all = matches!(count, Count::OneOrEach(..)) && found == 1;
        let is_of_matrices = matches!(what, "row" | "column") && fact.rank() > Some(1);
        let fits = size.value().is_none_or(|size| size == found) && found != 0;
        if fits || is_one_for_all || is_of_matrices {
            continue;
        }
        let name = call.op.inputs.get(index).map_or("", |def| def.name);
        let size = size
            .value()
            .map_or_else(String::new, |size| size.to_string());
        return Err(call.error(match count {
            Count::One => format!("operand {index} ({name}): expected one number, found {found}"),
            Count::Each(..) => format!(
                "operand {index} ({name}): expected {size} numbers, one for each {what}, found {found}"
            ),
            Count::OneOrEach(..) => format!(
                "operand {index} ({name}): expected one number or {size}, one for each {what}, found {found}"
            ),
        }));
    }
    Ok(())
}

/// Expects scales and zero points to fit a tensor: one for all of it, one for each index along `axis`, or one for each of
/// the blocks into which rows along `axis` are cut.
fn expect_scales(call: &InferCall<'_>) -> Result<(), InferError> {
    let (x, scale) = (call.input(0), call.input(1));
    let Some(scales) = &scale.dims else {
        return Ok(());
    };
    let n_scales = scale.n_elements().value();
    if call.has(2)
        && let (Some(n_scales), Some(n_zeros)) = (n_scales, call.input(2).n_elements().value())
        && n_zeros != 0
        && n_zeros != n_scales
    {
        return Err(call.error(format_args!(
            "expected as many zero points as scales, found {n_zeros} and {n_scales}"
        )));
    }
    let block = call.attrs.int("block_size").unwrap_or(0);
    if block < 0 {
        return Err(call.error(format_args!(
            "expected blocks of one element or more, found {block}"
        )));
    }
    // One scale has no axis.
    let is_one = block == 0 && n_scales.is_none_or(|n| n == 1);
    let Some(dims) = x.dims.as_ref().filter(|_| !is_one) else {
        return Ok(());
    };
    let axis = call.axis(call.attrs.int("axis").unwrap_or(1), dims.len())?;
    match block {
        0 => expect_scales_along(call, scales, dims, axis),
        block => expect_scales_of_blocks(call, scales, dims, (axis, block)),
    }
}

/// Expects one scale for each index along a dimension.
fn expect_scales_along(
    call: &InferCall<'_>,
    scales: &Dims,
    dims: &Dims,
    axis: usize,
) -> Result<(), InferError> {
    let [n_scales] = &scales[..] else {
        return Err(call.error(format_args!(
            "expected one scale or a list of scales, found {} dimensions",
            scales.len()
        )));
    };
    match (dims[axis].value(), n_scales.value()) {
        (Some(size), Some(found)) if size != found => Err(call.error(format_args!(
            "expected {size} scales, one for each index along dimension {axis}, found {found}"
        ))),
        _ => Ok(()),
    }
}

/// Expects the extents of a tensor, but along a dimension as many as there are blocks.
fn expect_scales_of_blocks(
    call: &InferCall<'_>,
    scales: &Dims,
    dims: &Dims,
    (axis, block): (usize, i64),
) -> Result<(), InferError> {
    if scales.len() != dims.len() {
        return Err(call.error(format_args!(
            "expected scales of {} dimensions for blocks of {block}, found {}",
            dims.len(),
            scales.len()
        )));
    }
    for (at, (dim, found)) in dims.iter().zip(scales).enumerate() {
        let (Some(size), Some(found)) = (dim.value(), found.value()) else {
            continue;
        };
        let is_cut = at == axis;
        let expected = match is_cut {
            true => size / block + i64::from(size % block != 0),
            false => size,
        };
        if found != expected {
            let blocks = match is_cut {
                true => format!(", the blocks of {block} in {size}"),
                false => String::new(),
            };
            return Err(call.error(format_args!(
                "expected {expected} scales along dimension {at}{blocks}, found {found}"
            )));
        }
    }
    Ok(())
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
