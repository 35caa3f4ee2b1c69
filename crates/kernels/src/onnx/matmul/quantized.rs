//! Products of quantised numbers that are scaled once: `quantized_dot` and `integer_dot`, which `graph-quantize` makes.
//!
//! A right-hand side that is a constant matrix is packed once. Any other is packed by each call, matrix by matrix.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::math::byte_gemm::{MAX_DEPTH, PackedBytes};
use tfrt_tensor::math::byte_product::{
    ColumnScales, ProductScale, byte_matrices_into, byte_product_scaled_into,
};
use tfrt_tensor::math::conv::{
    ByteEpilogue, Convolution, PackedByteFilter, convolve_requantized_into,
};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DType, DenseHostTensor, Dims, TensorMetadata, TensorShape};

use super::Shapes;
use crate::onnx::prepare::{PrepareRow, PreparedKernel, erase};
use crate::onnx::quantized_operands::{epilogue, integers, of_columns, one, only};
use crate::onnx::{NodeCall, Outputs};

/// The nodes whose right-hand sides are packed, with all scales and zero points.
pub(super) const PREPARE_BYTES: PrepareRow = PrepareRow {
    op: "quantized_dot",
    inputs: &[1, 2, 3, 4, 5, 6, 7, 8],
    types: &[],
    takes_attributes: false,
    make: |node| match node.inputs.dense(3)?.shape().rank() {
        2 => Ok(Some(erase(ToBytes::of(node)?))),
        _ => Ok(None),
    },
    restore: None,
};

/// The nodes whose right-hand sides are packed, with their scales and biases.
pub(super) const PREPARE_FLOATS: PrepareRow = PrepareRow {
    op: "integer_dot",
    inputs: &[3, 4, 5, 6],
    types: &[DType::Ui8, DType::I8],
    takes_attributes: false,
    make: |node| match node.inputs.dense(3)?.shape().rank() {
        2 => Ok(Some(erase(ToFloats::of(node)?))),
        _ => Ok(None),
    },
    restore: None,
};

/// The constants of a product of bytes that becomes bytes.
#[derive(Debug)]
struct ToBytes {
    /// The columns as filters that look at one element.
    filter: Arc<PackedByteFilter>,
    epilogue: Arc<ByteEpilogue>,
    extents: [usize; 2],
    zero: i32,
}

impl PreparedKernel for ToBytes {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        ToBytes::run(&self, node)
    }
}

impl ToBytes {
    fn of(node: &NodeCall<'_>) -> Result<ToBytes, Error> {
        let b = node.inputs.dense(3)?;
        let [depth, columns] = matrix(node, 3)?;
        let epilogue = epilogue(node, columns)?;
        let turned = turned(node, b, [depth, columns])?;
        let filter = PackedByteFilter::new(&turned, &integers(node, 5)?, 1)
            .map_err(|error| node.with_name(&error))?;
        Ok(ToBytes {
            filter: Arc::new(filter),
            epilogue: Arc::new(epilogue),
            extents: [depth, columns],
            zero: one(node, 2)?,
        })
    }

    fn run(&self, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let [depth, columns] = self.extents;
        let (a, result) = rows(node, self.extents)?;
        let n_rows = a.n_elements().checked_div(depth).unwrap_or(0);
        let out = node.output(self.epilogue.dtype(), &result)?;
        if out.n_elements() == 0 {
            return Ok(Outputs::new().and_tensor(out));
        }
        // Rows are an image of one line, which is not empty.
        let reshaped = |tensor: &DenseHostTensor, extents: [usize; 3]| {
            tensor.reshape(TensorShape::new(&extents)?)
        };
        let image = reshaped(a, [1, n_rows, depth])?;
        let written = reshaped(&out, [1, n_rows, columns])?;
        let chain = convolve_requantized_into(
            node.execution,
            &Convolution::new(&[Window::new(1, 1, Padding::Valid)]),
            (&image, self.zero),
            self.filter.clone(),
            self.epilogue.clone(),
            &written,
        )
        .map_err(|error| node.with_name(&error))?;
        Ok(Outputs::later(out, chain))
    }
}

/// The constants of a product of bytes that becomes `f32`.
#[derive(Debug)]
struct ToFloats {
    packed: Arc<PackedBytes>,
    scales: Arc<ColumnScales>,
}

impl PreparedKernel for ToFloats {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        ToFloats::run(&self, node)
    }
}

impl ToFloats {
    fn of(node: &NodeCall<'_>) -> Result<ToFloats, Error> {
        let [_, columns] = matrix(node, 3)?;
        let bias = match node.inputs.has(6) {
            true => of_columns(node, 6, columns, singles(node, 6)?)?,
            false => Vec::new(),
        };
        let packed = PackedBytes::new(node.inputs.dense(3)?, &integers(node, 5)?)
            .map_err(|error| node.with_name(&error))?;
        Ok(ToFloats {
            packed: Arc::new(packed),
            scales: Arc::new(ColumnScales {
                factors: of_columns(node, 4, columns, singles(node, 4)?)?,
                bias,
            }),
        })
    }

    fn run(&self, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let (a, result) = rows(node, self.packed.extents())?;
        let out = node.output(DType::F32, &result)?;
        let zero = optional(node, 2)?;
        let by = (self.scales.clone(), single(node, 1)?);
        let chain =
            byte_product_scaled_into(node.execution, (a, zero), self.packed.clone(), by, &out)
                .map_err(|error| node.with_name(&error))?;
        Ok(Outputs::later(out, chain))
    }
}

/// `quantized_dot`: a product of quantised numbers, quantised again
pub(super) fn to_bytes(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let b = node.inputs.dense(3)?;
    let (rank, is_deep) = (b.shape().rank(), depth(b) > MAX_DEPTH);
    if rank == 2 && !is_deep {
        return ToBytes::of(node)?.run(node);
    }
    if node.inputs.has(8) {
        let message = "is expected to be left out where the right side is no matrix that is packed";
        return Err(node.inputs.error(8, message));
    }
    if is_deep {
        return super::quantized(node);
    }
    let numbers = [1, 4, 6].map(|index| node.inputs.number(index));
    let [a, b, y] = numbers;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "factors are rounded to `f32`"
    )]
    let factor = (a? * b? / y?) as f32;
    let by = ProductScale {
        zeros: [one(node, 2)?, one(node, 5)?],
        factor,
        zero: one(node, 7)?,
    };
    matrices(node, by, node.inputs.dense(7)?.dtype())
}

/// `integer_dot`: a product of bytes without their zero points, times the scales, plus a bias
pub(super) fn to_floats(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    if node.inputs.dense(3)?.shape().rank() == 2 {
        return ToFloats::of(node)?.run(node);
    }
    if node.inputs.has(6) {
        let message = "is expected to be left out where the right side is no matrix";
        return Err(node.inputs.error(6, message));
    }
    let by = ProductScale {
        zeros: [optional(node, 2)?, optional(node, 5)?],
        factor: single(node, 1)? * single(node, 4)?,
        zero: 0,
    };
    matrices(node, by, DType::F32)
}

/// Multiplies matrices pair by pair.
fn matrices(node: &NodeCall<'_>, by: ProductScale, dtype: DType) -> Result<Outputs, Error> {
    let [a, b] = [node.inputs.dense(0)?, node.inputs.dense(3)?];
    let shapes = Shapes::of(node, &a.shape().to_dims(), &b.shape().to_dims())?;
    let out = node.output(dtype, &shapes.result)?;
    let written = super::reshaped(&out, &shapes.product)?;
    let [a, b] = [(a, 0), (b, 1)].map(|(tensor, at)| super::reshaped(tensor, &shapes.factors[at]));
    let chain = byte_matrices_into(node.execution, [&a?, &b?], by, &written)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

/// Returns the rows on the left, which are operand 0, and the extents of their product with a matrix.
fn rows<'a>(
    node: &NodeCall<'a>,
    [depth, columns]: [usize; 2],
) -> Result<(&'a DenseHostTensor, Dims), Error> {
    let a = node.inputs.dense(0)?;
    let mut extents = a.shape().to_dims();
    match extents.last_mut() {
        Some(last) if *last == depth => *last = columns,
        _ => {
            let message = format_args!(
                "is expected to have rows of {depth} elements, found extents {extents:?}"
            );
            return Err(node.inputs.error(0, message));
        }
    }
    Ok((a, extents))
}

/// Returns the extents of an operand that is a matrix.
fn matrix(node: &NodeCall<'_>, index: usize) -> Result<[usize; 2], Error> {
    let extents = node.inputs.extents(index, 2)?;
    Ok([extents[0], extents[1]])
}

/// Returns the number of rows of a tensor's matrices.
fn depth(b: &DenseHostTensor) -> usize {
    let extents = b.shape().to_dims();
    let rank = extents.len();
    rank.checked_sub(2).map_or(0, |at| extents[at])
}

/// Returns a matrix of bytes as filters that look at one element: `[columns, depth, 1]`.
fn turned(
    node: &NodeCall<'_>,
    b: &DenseHostTensor,
    [depth, columns]: [usize; 2],
) -> Result<DenseHostTensor, Error> {
    let reading = b.read()?;
    let bytes = reading.bytes();
    if !matches!(b.dtype(), DType::Ui8 | DType::I8) {
        return Err(node.inputs.unsupported(3, b.dtype()));
    }
    let mut turned = Vec::with_capacity(bytes.len());
    for column in 0..columns {
        turned.extend((0..depth).map(|row| bytes[row * columns + column]));
    }
    let shape = TensorShape::new(&[columns, depth, 1])?;
    let metadata = TensorMetadata::new(b.dtype(), shape);
    DenseHostTensor::from_bytes(node.execution.host().allocator(), metadata, &turned)
}

/// Returns the elements of an operand of `f32`.
fn singles(node: &NodeCall<'_>, index: usize) -> Result<Vec<f32>, Error> {
    let tensor = node.inputs.dense(index)?;
    match tensor.dtype() {
        DType::F32 => Ok(tensor.read()?.elements::<f32>()?.to_vec()),
        dtype => Err(node.inputs.unsupported(index, dtype)),
    }
}

/// Returns the only element of an operand of `f32`.
fn single(node: &NodeCall<'_>, index: usize) -> Result<f32, Error> {
    only(node, index, &singles(node, index)?)
}

/// Returns the only element of an operand of integers, 0 if it is left out.
fn optional(node: &NodeCall<'_>, index: usize) -> Result<i32, Error> {
    match node.inputs.has(index) {
        true => one(node, index),
        false => Ok(0),
    }
}
