//! `com.microsoft.DynamicQuantizeLSTM`: weights are bytes, and inputs and states become bytes as they come.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::recurrent::{ByteMatrix, ByteWeights, PackedLayer};

use super::n_directions;
use super::packed::Layers;
use crate::onnx::prepare::{PrepareRow, PreparedKernel as _, erase};
use crate::onnx::{NodeCall, Outputs};

/// The nodes whose weights, with their scales and zero points, biases and peepholes are prepared.
pub(super) const PREPARE: PrepareRow = PrepareRow {
    op: "onnx.microsoft.DynamicQuantizeLSTM",
    inputs: &[1, 2, 3, 7, 8, 9, 10, 11],
    types: &[DType::Ui8, DType::I8],
    takes_attributes: false,
    make: |node| Ok(Some(erase(pack(node)?))),
    restore: None,
};

/// `DynamicQuantizeLSTM`
pub(super) fn lstm(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    Arc::new(pack(node)?).run(node)
}

/// Packs the weights of a node.
fn pack(node: &NodeCall<'_>) -> Result<Layers, Error> {
    let n_directions = n_directions(node)?;
    let r = node.inputs.extents(2, 3)?;
    let (n_hidden, n_columns) = (r[1], r[1].saturating_mul(4));
    let w = matrices(node, 1, 8, [n_directions, n_columns])?;
    let r = matrices(node, 2, 10, [n_directions, n_columns])?;
    let (b, p) = (
        list(node, 3, n_directions, n_columns.saturating_mul(2))?,
        list(node, 7, n_directions, n_hidden.saturating_mul(3))?,
    );
    let couples = node.attributes.flag("input_forget", false)?;
    let allocator = node.execution.host().allocator();
    let own = |list: &[f32], direction: usize| {
        let len = list.len() / n_directions;
        list[direction * len..][..len].to_vec()
    };
    let layers = w.into_iter().zip(r).enumerate();
    let layers = layers.map(|(direction, (w, r))| {
        let weights = ByteWeights {
            w,
            r,
            b: &own(&b, direction),
            peepholes: &own(&p, direction),
        };
        PackedLayer::of_bytes(allocator, couples, weights).map_err(|error| node.with_name(&error))
    });
    Ok(Layers::new(layers.collect::<Result<_, _>>()?))
}

/// Packs the weights at an index, of each direction, whose scales and zero points are at `of` and behind it.
fn matrices(
    node: &NodeCall<'_>,
    index: usize,
    of: usize,
    [n_directions, n_columns]: [usize; 2],
) -> Result<Vec<ByteMatrix>, Error> {
    let weights = node.inputs.dense(index)?;
    if !matches!(weights.dtype(), DType::Ui8 | DType::I8) {
        return Err(node.inputs.unsupported(index, weights.dtype()));
    }
    let extents = node.inputs.extents(index, 3)?;
    let n_rows = extents[1];
    if extents[..] != [n_directions, n_rows, n_columns] || (index == 2 && n_rows * 4 != n_columns) {
        let message = format_args!(
            "is expected to have {n_directions} directions of {n_columns} columns, found {extents:?}"
        );
        return Err(node.inputs.error(index, message));
    }
    let (scales, zeros) = (node.inputs.numbers(of)?, node.inputs.numbers(of + 1)?);
    for (index, found) in [(of, scales.len()), (of + 1, zeros.len())] {
        if ![n_directions, n_directions * n_columns].contains(&found) {
            let message = format_args!(
                "is expected to have one element for each of {n_directions} directions, or for each of their \
                 {n_columns} columns, found {found}"
            );
            return Err(node.inputs.error(index, message));
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "they are of 32 bits")]
    let scales: Vec<f32> = scales.iter().map(|scale| *scale as f32).collect();
    #[expect(clippy::cast_possible_truncation, reason = "they are bytes")]
    let zeros: Vec<i32> = zeros.iter().map(|zero| *zero as i32).collect();
    let reading = weights.read()?;
    let len = n_rows * n_columns;
    let (n_scales, n_zeros) = (scales.len() / n_directions, zeros.len() / n_directions);
    let matrix = |direction: usize| {
        let bytes = &reading.bytes()[direction * len..][..len];
        let scales = &scales[direction * n_scales..][..n_scales];
        let zeros = &zeros[direction * n_zeros..][..n_zeros];
        ByteMatrix::new([n_rows, n_columns], (weights.dtype(), bytes), scales, zeros)
            .map_err(|error| node.with_name(&error))
    };
    (0..n_directions).map(matrix).collect()
}

/// Returns the numbers of an operand, of which there are so many in each direction; none if it is left out.
fn list(
    node: &NodeCall<'_>,
    index: usize,
    n_directions: usize,
    len: usize,
) -> Result<Vec<f32>, Error> {
    let Some(tensor) = node.inputs.optional_dense(index)? else {
        return Ok(Vec::new());
    };
    if tensor.dtype() != DType::F32 {
        return Err(node.inputs.unsupported(index, tensor.dtype()));
    }
    let (found, wanted) = (tensor.n_elements(), n_directions.saturating_mul(len));
    if found != wanted {
        let message = format_args!("is expected to have {wanted} elements, found {found}");
        return Err(node.inputs.error(index, message));
    }
    Ok(tensor.read()?.elements()?.to_vec())
}
