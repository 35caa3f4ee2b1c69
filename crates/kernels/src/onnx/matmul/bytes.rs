//! Products of bytes, whose right-hand sides are packed: once, if they are constants.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::byte_gemm::{MAX_DEPTH, PackedBytes, byte_product_into};

use super::{PendingSums, Shapes, as_integers, as_quantized};
use crate::onnx::prepare::{PrepareRow, PreparedKernel, erase};
use crate::onnx::quantize::numbers;
use crate::onnx::{NodeCall, Outputs};

/// The nodes whose right-hand sides are packed.
pub(super) const PREPARE_INTEGERS: PrepareRow = PrepareRow {
    op: "onnx.MatMulInteger",
    inputs: &[1, 3],
    types: &[DType::Ui8, DType::I8],
    takes_attributes: false,
    make: |node| Ok(packed(node, 1, 3)?.map(|packed| erase(Integers(Arc::new(packed))))),
    restore: None,
};

/// The nodes of quantised numbers whose right-hand sides are packed.
pub(super) const PREPARE_QUANTIZED: PrepareRow = PrepareRow {
    op: "onnx.QLinearMatMul",
    inputs: &[3, 5],
    types: &[DType::Ui8, DType::I8],
    takes_attributes: false,
    make: |node| Ok(packed(node, 3, 5)?.map(|packed| erase(Quantized(Arc::new(packed))))),
    restore: None,
};

/// `MatMulInteger` with a packed right-hand side.
#[derive(Debug)]
struct Integers(Arc<PackedBytes>);

impl PreparedKernel for Integers {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let sums = sums(node, (0, 2), self.0.clone())?;
        as_integers(node, sums)
    }
}

/// `QLinearMatMul` with a packed right-hand side.
#[derive(Debug)]
struct Quantized(Arc<PackedBytes>);

impl PreparedKernel for Quantized {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let sums = sums(node, (0, 2), self.0.clone())?;
        as_quantized(node, sums)
    }
}

/// Packs a right-hand side with its zero points, if it is a matrix of bytes whose sums have 32 bits.
pub(super) fn packed(
    node: &NodeCall<'_>,
    index: usize,
    zeros: usize,
) -> Result<Option<PackedBytes>, Error> {
    let b = node.inputs.dense(index)?;
    let extents = b.shape().to_dims();
    let zeros = whole(&numbers(node, zeros)?);
    match (&extents[..], b.dtype()) {
        (&[depth, n_columns], DType::Ui8 | DType::I8)
            if depth <= MAX_DEPTH && [0, 1, n_columns].contains(&zeros.len()) =>
        {
            let packed = PackedBytes::new(b, &zeros).map_err(|error| node.with_name(&error))?;
            Ok(Some(packed))
        }
        _ => Ok(None),
    }
}

/// Makes the exact sums of rows, which are operand `index` with the zero points `zeros`, and a packed right-hand side.
pub(super) fn sums(
    node: &NodeCall<'_>,
    (index, zeros): (usize, usize),
    packed: Arc<PackedBytes>,
) -> Result<PendingSums, Error> {
    let a = node.inputs.dense(index)?;
    if !matches!(a.dtype(), DType::Ui8 | DType::I8) {
        return Err(node.inputs.unsupported(index, a.dtype()));
    }
    let extents = a.shape().to_dims();
    let shapes = Shapes::of(node, &extents, &packed.extents())?;
    if shapes.factors[0].last() != Some(&packed.extents()[0]) {
        let message = format_args!(
            "is expected to have rows of {} elements, found extents {extents:?}",
            packed.extents()[0]
        );
        return Err(node.inputs.error(index, message));
    }
    let [before @ .., n_rows, _] = &shapes.factors[0][..] else {
        return Err(node.inputs.error(index, "is expected to have a dimension"));
    };
    let zero_points = whole(&numbers(node, zeros)?);
    let zero_points = match zero_points.len() {
        0 | 1 => zero_points,
        n if n == *n_rows => zero_points.repeat(before.iter().product()),
        n => {
            let message = format_args!("is expected to have an element or {n_rows}, found {n}");
            return Err(node.inputs.error(zeros, message));
        }
    };
    let out = node.output(DType::I32, &shapes.result)?;
    let chain = byte_product_into(node.execution, (a, zero_points), packed, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok((out, chain))
}

/// Returns zero points, which are bytes, as integers.
#[expect(clippy::cast_possible_truncation, reason = "they are bytes")]
fn whole(list: &[f64]) -> Vec<i32> {
    list.iter().map(|one| *one as i32).collect()
}
