//! Quantised images: convolutions whose filters are packed when a model is opened, and sums.

use std::sync::Arc;

use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::TensorShape;
use tfrt_tensor::math::conv::{
    ByteEpilogue, Convolution, PackedByteFilter, convolve_requantized_into,
};
use tfrt_tensor::math::quantize::{QuantizedSum, quantized_sum_into};
use tfrt_tensor::op::PreparedState;

use crate::onnx::quantized_operands::{epilogue, integers, one};
use crate::onnx::{NodeCall, PrepareRow, state};

use super::{TensorResult, WindowAttributes, dense, made, memory};

/// The nodes whose filters are packed, with all scales and zero points.
pub(super) const PREPARE: [PrepareRow; 1] = [PrepareRow {
    op: "fused.qconv",
    inputs: &[1, 2, 3, 4, 5, 6, 7, 8],
    types: &[],
    takes_attributes: false,
    make: |node| Ok(Some(Arc::new(Quantized::of(node)?))),
    restore: None,
}];

/// The constants of a convolution of quantised images.
#[derive(Debug)]
struct Quantized {
    filter: Arc<PackedByteFilter>,
    epilogue: Arc<ByteEpilogue>,
    /// Extents of the filter with its filters last, `[rows, columns, channels / groups, filters]`.
    extents: [usize; 4],
    groups: usize,
    /// The zero point of images.
    zero: i32,
}

/// Files keep the constants.
impl PreparedState for Quantized {}

impl Quantized {
    /// Reads the constants of a node, in the order of `QLinearConv`: scale and zero point of images, filter with scales and
    /// zero points, scale and zero point of results, bias.
    fn of(node: &NodeCall<'_>) -> Result<Quantized, Error> {
        let filter = node.inputs.dense(3)?;
        let shape = filter.shape().to_dims();
        let &[filters, channels, rows, columns] = &shape[..] else {
            let message = format_args!(
                "is expected to be [filters, channels, rows, columns], found {shape:?}"
            );
            return Err(node.inputs.error(3, message));
        };
        let groups = node.attributes.size_or("groups", 1)?;
        let epilogue = epilogue(node, filters)?;
        let zeros = integers(node, 5)?;
        let packed = PackedByteFilter::new(filter, &zeros, groups);
        Ok(Quantized {
            filter: Arc::new(packed.map_err(|error| node.with_name(&error))?),
            epilogue: Arc::new(epilogue),
            extents: [rows, columns, channels, filters],
            groups,
            zero: one(node, 2)?,
        })
    }
}

/// `%y = "cpu.fused.qconv"(%x, %p) {dilations = [1, 1], groups = 1 : i64, pads = [1, 1, 1, 1], strides = [1, 1]}`
///
/// # Shapes
///
/// `x: [n, h, w, c]`, `y: [n, oh, ow, f]`, both of bytes.
pub(super) fn convolve(
    operands: Operands<'_>,
    dilations: Attr<&[i64]>,
    _groups: Attr<i64>,
    pads: Attr<&[i64]>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> TensorResult {
    let (quantized, operands) = state::<Quantized>(&operands)?;
    let x = dense(operands, 0)?;
    let placement = WindowAttributes {
        dilations: &dilations,
        pads: &pads,
        strides: &strides,
    };
    let mut convolution = Convolution::new(&placement.windows(&quantized.extents[..2])?);
    convolution.groups = quantized.groups;
    let extents = convolution.output_extents(&x.shape().to_dims(), &quantized.extents)?;
    let dtype = quantized.epilogue.dtype();
    let out = memory::output_of(execution, dtype, TensorShape::new(&extents)?)?;
    let chain = convolve_requantized_into(
        execution,
        &convolution,
        (x, quantized.zero),
        quantized.filter.clone(),
        quantized.epilogue.clone(),
        &out,
    )?;
    Ok(made(out, chain))
}

/// `%y = "cpu.fused.qadd"(%a, %b) {scale_a = 0.5 : f32, scale_b = 0.5 : f32, scale_y = 0.75 : f32, zeros = [128, 128, 0]}`
///
/// The sum of two quantised tensors, with the bits of dequantising both, adding, and quantising.
///
/// # Shapes
///
/// `a`, `b`, `y`: alike, of `u8` or of `i8`.
pub(super) fn add(
    operands: Operands<'_>,
    scale_a: Attr<f32>,
    scale_b: Attr<f32>,
    scale_y: Attr<f32>,
    zeros: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> TensorResult {
    let (a, b) = (dense(&operands, 0)?, dense(&operands, 1)?);
    let list: Option<Vec<i16>> = zeros.iter().map(|one| i16::try_from(*one).ok()).collect();
    let Some(zeros) = list.and_then(|list| <[i16; 3]>::try_from(list).ok()) else {
        let message = format!("expected three zero points of bytes, found {:?}", *zeros);
        return Err(Error::invalid_argument(message));
    };
    let by = QuantizedSum {
        scales: [*scale_a, *scale_b, *scale_y],
        zeros,
    };
    let out = memory::output_of(execution, a.dtype(), a.shape().clone())?;
    let chain = quantized_sum_into(execution, by, [a, b], &out)?;
    Ok(made(out, chain))
}
