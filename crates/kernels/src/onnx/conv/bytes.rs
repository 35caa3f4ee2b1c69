//! `ConvInteger` and `QLinearConv`: convolutions of bytes with exact sums. Constant filters are packed once.
//!
//! Sums have 32 bits, and channels last; filters of so many elements that these are not enough, and what is no byte, go by
//! `f64`, which has all their sums, too.

use std::sync::{Arc, OnceLock};

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::byte_gemm::MAX_DEPTH;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::conv::channels_first::convolve_into;
use tfrt_tensor::math::conv::{
    PackedByteFilter, Requantize, TensorConvEpilogue, convolve_bytes_into, requantize_into,
};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::quantize::{QuantParams, quantize_into};
use tfrt_tensor::{DType, DenseHostTensor, Dims};

use super::{NodeCall, Outputs, described};
use crate::onnx::cast::converted;
use crate::onnx::matmul::centred;
use crate::onnx::outputs::IntoValue;
use crate::onnx::prepare::{PrepareRow, PreparedKernel, erase};
use crate::onnx::quantize::numbers;

/// The nodes whose filters are packed.
pub(super) const PREPARE_INTEGERS: PrepareRow = PrepareRow {
    op: "onnx.ConvInteger",
    inputs: &[1, 3],
    types: &[DType::Ui8, DType::I8],
    takes_attributes: false,
    make: |node| Ok(ByteFilter::of(node, [1, 3])?.map(|filter| erase(Integers(filter)))),
    restore: None,
};

/// The nodes of quantised numbers whose filters are packed.
pub(super) const PREPARE_QUANTIZED: PrepareRow = PrepareRow {
    op: "onnx.QLinearConv",
    inputs: &[3, 5],
    types: &[DType::Ui8, DType::I8],
    takes_attributes: false,
    make: |node| Ok(ByteFilter::of(node, [3, 5])?.map(|filter| erase(Quantized(filter)))),
    restore: None,
};

/// `ConvInteger` with a constant filter.
#[derive(Debug)]
struct Integers(ByteFilter);

impl PreparedKernel for Integers {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        self.0.integers(node)
    }
}

/// `QLinearConv` with a constant filter.
#[derive(Debug)]
struct Quantized(ByteFilter);

impl PreparedKernel for Quantized {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        self.0.quantized(node)
    }
}

/// `ConvInteger`: a convolution of integers, with results of 32 bits
pub(super) fn integers(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    if let Some(filter) = ByteFilter::of(node, [1, 3])? {
        return filter.integers(node);
    }
    let (sums, chain) = wide_sums(node, 1, [2, 3], None)?;
    let out = node.output(DType::I32, &sums.shape().to_dims())?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &sums, &written).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// `QLinearConv`: a convolution of quantised numbers; filters may have a scale and zero point each
pub(super) fn quantized(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    if let Some(filter) = ByteFilter::of(node, [3, 5])? {
        return filter.quantized(node);
    }
    let (sums, chain) = wide_sums(node, 3, [2, 5], Some(8))?;
    let extents = sums.shape().to_dims();
    let Quantization {
        scales,
        zero,
        dtype,
    } = Quantization::of(node)?;
    let (zeros, count) = (vec![zero; scales.len()], [scales.len()]);
    let shape = match scales.len() {
        1 => &[][..],
        _ => &count[..],
    };
    let scaling = QuantParams::new(&extents, Some(1), 0, (shape, scales), zeros)
        .map_err(|error| node.with_name(&error))?;
    let out = node.output(dtype, &extents)?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        let precision = (DType::F64, Casting::default());
        quantize_into(&execution, scaling, precision, &sums, &written).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// The numbers by which a node quantises its sums.
struct Quantization {
    scales: Vec<f64>,
    zero: f64,
    /// The type of the results.
    dtype: DType,
}

impl Quantization {
    fn of(node: &NodeCall<'_>) -> Result<Quantization, Error> {
        let (x_scale, y_scale) = (node.inputs.number(1)?, node.inputs.number(6)?);
        let scales = numbers(node, 4)?;
        let scales = scales.iter().map(|w| y_scale / (x_scale * w)).collect();
        let zero = numbers(node, 7)?.first().copied().unwrap_or(0.0);
        let dtype = match node.inputs.optional_dense(7)? {
            Some(zero) => zero.dtype(),
            None => node.inputs.dense(0)?.dtype(),
        };
        Ok(Quantization {
            scales,
            zero,
            dtype,
        })
    }
}

/// A filter of bytes with its zero points.
#[derive(Debug)]
struct ByteFilter {
    filter: DenseHostTensor,
    zeros: Vec<i32>,
    /// The filter, packed when it is used first: only then the number of groups is known.
    packed: OnceLock<Result<Arc<PackedByteFilter>, Error>>,
}

impl ByteFilter {
    /// Returns the filter of a node, if the sums of its windows have 32 bits.
    fn of(node: &NodeCall<'_>, [index, zeros]: [usize; 2]) -> Result<Option<ByteFilter>, Error> {
        let filter = node.inputs.dense(index)?;
        let extents = filter.shape().to_dims();
        let zeros = numbers(node, zeros)?;
        let depth = extents.iter().skip(1);
        let depth = depth.fold(1_usize, |depth, extent| depth.saturating_mul(*extent));
        let fits = matches!(filter.dtype(), DType::Ui8 | DType::I8)
            && extents.len() >= 3
            && depth <= MAX_DEPTH
            && [0, 1, extents[0]].contains(&zeros.len());
        #[expect(
            clippy::cast_possible_truncation,
            reason = "zero points of bytes are bytes"
        )]
        Ok(fits.then(|| ByteFilter {
            filter: filter.clone(),
            zeros: zeros.iter().map(|zero| *zero as i32).collect(),
            packed: OnceLock::new(),
        }))
    }

    fn integers(&self, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let Sums {
            sums,
            chain,
            extents,
        } = self.sums(node)?;
        let last = sums.shape().to_dims();
        let order: Vec<usize> = [0, last.len() - 1]
            .into_iter()
            .chain(1..last.len() - 1)
            .collect();
        let first = LayoutCopy::transpose(&last, &order)?;
        let out = node.output(DType::I32, &extents)?;
        let (execution, written) = (node.execution.clone(), out.clone());
        let chain =
            chain.and_then_value(move |_| first.run_into(&execution, &sums, &written).into_value());
        Ok(Outputs::later(out, chain))
    }

    fn quantized(&self, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let Quantization {
            scales,
            zero,
            dtype,
        } = Quantization::of(node)?;
        let by = Requantize {
            scales,
            bias: numbers(node, 8)?,
            zero,
        };
        let Sums {
            sums,
            chain,
            extents,
        } = self.sums(node)?;
        let out = node.output(dtype, &extents)?;
        by.check(&sums, &out)
            .map_err(|error| node.with_name(&error))?;
        let (execution, written) = (node.execution.clone(), out.clone());
        let chain = chain
            .and_then_value(move |_| requantize_into(&execution, by, &sums, &written).into_value());
        Ok(Outputs::later(out, chain))
    }

    /// Makes the exact sums of operand 0, whose zero point is operand 2, by the filter.
    fn sums(&self, node: &NodeCall<'_>) -> Result<Sums, Error> {
        let x = node.inputs.dense(0)?;
        if !matches!(x.dtype(), DType::Ui8 | DType::I8) {
            return Err(node.inputs.unsupported(0, x.dtype()));
        }
        let extents = self.filter.shape().to_dims();
        let of_rank = |rank| match extents.len() == rank {
            true => Ok(Dims::from_slice(&extents)),
            false => Err(node.with_name(&Error::invalid_argument(format!(
                "a filter of extents {extents:?} does not fit an image of {rank} dimensions"
            )))),
        };
        let (convolution, output) = described(node, of_rank, "group")?;
        let zero = match numbers(node, 2)?[..] {
            [] => 0,
            #[expect(
                clippy::cast_possible_truncation,
                reason = "zero points of bytes are bytes"
            )]
            [zero] => zero as i32,
            ref zeros => {
                let message =
                    format_args!("is expected to have one element, found {}", zeros.len());
                return Err(node.inputs.error(2, message));
            }
        };
        let pack = || PackedByteFilter::new(&self.filter, &self.zeros, convolution.groups);
        let packed = self.packed.get_or_init(|| pack().map(Arc::new));
        let packed = packed.clone().map_err(|error| node.with_name(&error))?;
        let last = |extents: &[usize]| -> Dims {
            let order = [0].into_iter().chain(2..extents.len()).chain([1]);
            order.map(|dimension| extents[dimension]).collect()
        };
        let given = x.shape().to_dims();
        let order: Vec<usize> = last(&(0..given.len()).collect::<Vec<_>>()).to_vec();
        let images = node.output(x.dtype(), &last(&given))?;
        let sums = node.output(DType::I32, &last(&output))?;
        let chain = LayoutCopy::transpose(&given, &order)?.run_into(node.execution, x, &images)?;
        let (execution, written) = (node.execution.clone(), sums.clone());
        let chain = chain.and_then_value(move |_| {
            let images = (&images, zero);
            convolve_bytes_into(&execution, &convolution, images, packed, &written).into_value()
        });
        Ok(Sums {
            sums,
            chain,
            extents: output,
        })
    }
}

/// Sums of a convolution that are being made.
struct Sums {
    /// `[batch, output.., filters]`.
    sums: DenseHostTensor,
    chain: AsyncValue<Chain>,
    /// The extents of the result, whose channels come first.
    extents: Dims,
}

/// Calculates the exact sums of integers without their zero points in `f64`, with a bias of integers.
fn wide_sums(
    node: &NodeCall<'_>,
    filter_index: usize,
    zeros: [usize; 2],
    bias: Option<usize>,
) -> Result<(DenseHostTensor, AsyncValue<Chain>), Error> {
    let (x, filter) = (node.inputs.dense(0)?, node.inputs.dense(filter_index)?);
    let extents = |rank| node.inputs.extents(filter_index, rank);
    let (convolution, output) = described(node, extents, "group")?;
    let (x, x_chain) = centred(node, x, numbers(node, zeros[0])?, 1)?;
    let (filter, filter_chain) = centred(node, filter, numbers(node, zeros[1])?, 0)?;
    let bias = match bias {
        Some(index) => node.inputs.optional_dense(index)?,
        None => None,
    };
    let (shift, shift_chain) = match bias {
        Some(bias) => {
            let (shift, chain) = converted(node, bias, DType::F64)?;
            (Some(shift), chain)
        }
        None => (None, AsyncValue::available(Chain)),
    };
    let sums = node.output(DType::F64, &output)?;
    let (execution, written) = (node.execution.clone(), sums.clone());
    let ready = x_chain
        .and_then_value(move |_| filter_chain)
        .and_then_value(move |_| shift_chain);
    let chain = ready.and_then_value(move |_| {
        let after = TensorConvEpilogue {
            shift,
            ..TensorConvEpilogue::default()
        };
        convolve_into(&execution, &convolution, [&x, &filter], after, &written).into_value()
    });
    Ok((sums, chain))
}
