//! Quantisation: integers or small floats with a scale and a zero point.

use tfrt_host::Error;
use tfrt_tensor::math::cast::Casting;
use tfrt_tensor::math::quantize::{QuantParams, dequantize_into, extremes, quantize_into};
use tfrt_tensor::subbyte::Overflow;
use tfrt_tensor::{DType, DenseHostTensor};

use super::dispatch::to_f64;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("dequantize", dequantize),
    ("onnx.DynamicQuantizeLinear", dynamic),
    ("quantize", quantize),
];

/// Returns the scales and zero points for a tensor, which are operands 1 and 2.
fn scaling(node: &NodeCall<'_>, x: &DenseHostTensor) -> Result<QuantParams, Error> {
    let extents = x.shape().to_dims();
    let scale = node.inputs.dense(1)?;
    let axis = node.attributes.integer_or("axis", 1)?;
    let block = node.attributes.size_or("block_size", 0)?;
    let scales = (&scale.shape().to_dims()[..], node.inputs.numbers(1)?);
    let zeros = match node.inputs.has(2) {
        true => node.inputs.numbers(2)?,
        false => Vec::new(),
    };
    let is_one = scales.1.len() == 1 && block == 0;
    let dimension = if is_one {
        None
    } else {
        Some(node.axis(axis, extents.len())?)
    };
    QuantParams::new(&extents, dimension, block, scales, zeros)
        .map_err(|error| node.with_name(&error))
}

fn quantize(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let zero = node.inputs.optional_dense(2)?.map(DenseHostTensor::dtype);
    let asked = node.attributes.dtype("to")?;
    if let (Some(zero), Some(asked)) = (zero, asked)
        && zero != asked
    {
        return Err(node.inputs.error(
            2,
            format_args!("is of {zero}, the result is to be of {asked}"),
        ));
    }
    let dtype = zero.or(asked).unwrap_or(DType::Ui8);
    let precision = match node.attributes.dtype("precision")? {
        Some(precision) => precision,
        // A quotient of two types is of the wider one.
        None if x.dtype() == node.inputs.dense(1)?.dtype() => x.dtype(),
        None => DType::F32,
    };
    let saturates = node.attributes.flag("saturate", true)?;
    let overflow = if saturates {
        Overflow::Saturate
    } else {
        Overflow::Escape
    };
    let casting = Casting {
        overflow,
        ..Casting::default()
    };
    let out = node.output(dtype, &x.shape().to_dims())?;
    let scaling = scaling(node, x)?;
    let chain = quantize_into(node.execution, scaling, (precision, casting), x, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

fn dequantize(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    if let Some(zero) = node.inputs.optional_dense(2)?
        && zero.dtype() != x.dtype()
    {
        let (found, wanted) = (zero.dtype(), x.dtype());
        return Err(node
            .inputs
            .error(2, format_args!("is of {found}, operand 0 of {wanted}")));
    }
    let asked = node.attributes.dtype("to")?;
    let dtype = asked.unwrap_or(node.inputs.dense(1)?.dtype());
    let out = node.output(dtype, &x.shape().to_dims())?;
    let chain = dequantize_into(node.execution, scaling(node, x)?, x, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

/// `DynamicQuantizeLinear`: quantises to bytes, with a scale that fits all elements and 0.
fn dynamic(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    if x.dtype() != DType::F32 {
        return Err(node.inputs.unsupported(0, x.dtype()));
    }
    let (least, largest) = extremes(x.read()?.elements::<f32>()?);
    let scale = (largest - least) / 255.0;
    let zero = if scale > 0.0 {
        (-least / scale).round_ties_even().clamp(0.0, 255.0)
    } else {
        0.0
    };
    let extents = x.shape().to_dims();
    // Of zeros any scale is right.
    let divisor = if scale > 0.0 { scale } else { 1.0 };
    let scaling = QuantParams::new(
        &extents,
        None,
        0,
        (&[], vec![divisor.into()]),
        vec![zero.into()],
    )?;
    let out = node.output(DType::Ui8, &extents)?;
    let chain = quantize_into(
        node.execution,
        scaling,
        (DType::F32, Casting::default()),
        x,
        &out,
    )?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is clamped and whole"
    )]
    let zero = node.tensor_of(&[], &[zero as u8])?;
    let outputs = Outputs::later(out, chain);
    Ok(outputs
        .and_tensor(node.tensor_of(&[], &[scale])?)
        .and_tensor(zero))
}

/// Returns the numbers of a scale, zero point or bias, as `f64`; none if the operand is left out.
pub(super) fn numbers(node: &NodeCall<'_>, index: usize) -> Result<Vec<f64>, Error> {
    match node.inputs.optional_dense(index)? {
        Some(tensor) if tensor.n_elements() == 0 => Err(node
            .inputs
            .error(index, "is expected to have a number, found none")),
        Some(tensor) => to_f64(tensor).map_err(|_| node.inputs.unsupported(index, tensor.dtype())),
        None => Ok(Vec::new()),
    }
}
