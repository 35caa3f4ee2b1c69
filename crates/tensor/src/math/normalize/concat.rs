//! Concatenation and per-channel affine of `f32` images with channels last, in one pass: the normalization before a
//! layer of a dense block, whose input grows by each layer before it.

use std::ops::Range;

use pulp::{Simd, WithSimd};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::DenseHostTensor;
use crate::dense::expect_dtype;
use crate::math::layout_copy::concat_extents;
use crate::math::packed_gemm::vectors::{VectorEpilogue, load, store};
use crate::math::packed_gemm::{
    Activation, BlockEpilogue, InstructionSet, TensorAddend, TensorEpilogue, fill,
};
use crate::math::row_blocks::RowBlocks;

/// Cost of an element that is read from memory, in operations on cached elements.
const OPERATIONS_PER_ELEMENT: usize = 8;

/// Concatenates tensors along their last dimension, multiplies by factors, adds summands, and applies an activation,
/// on the workers of the request's queue if there is much to do. Product and sum are rounded once.
///
/// # Shapes
///
/// `parts` of one shape but for the last dimension; `factors` and `summands` `[n]`, `out` as the parts with `n`, the
/// sum of their last extents.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or elements no `f32`s; the result fails with
/// `FailedPrecondition` if somebody else uses `out`, or with the reason of the request's cancellation.
pub fn concat_affine_into(
    execution: &ExecutionContext,
    parts: &[&DenseHostTensor],
    [factors, summands]: [&DenseHostTensor; 2],
    activation: Activation,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let shapes: Vec<_> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let rank = shapes.first().map_or(0, |shape| shape.len());
    let wanted = concat_extents(&shapes, rank.saturating_sub(1))?;
    let found = out.shape().to_dims();
    if wanted != found {
        let message = format!("expected a result of shape {wanted:?}, found {found:?}");
        return Err(Error::invalid_argument(message));
    }
    for part in parts {
        expect_dtype::<f32>(part.metadata())?;
    }
    let epilogue = TensorEpilogue {
        scale: Some(factors.clone()),
        shift: Some(summands.clone()),
        added: TensorAddend::Nothing,
        activation,
        then: None,
    };
    let n = wanted.last().copied().unwrap_or(0);
    epilogue.check(n, out.n_elements())?;
    let n_rows = out.n_elements() / n.max(1);
    let lines = RowBlocks::new(n_rows, n, n.saturating_mul(OPERATIONS_PER_ELEMENT));
    let lens: Vec<usize> = shapes.iter().map(|shape| shape[rank - 1]).collect();
    let parts: Vec<DenseHostTensor> = parts.iter().map(|part| (*part).clone()).collect();
    fill(
        execution,
        out,
        n,
        lines,
        epilogue,
        move |block, epilogue, out, _| {
            let readings = parts.iter().map(DenseHostTensor::read);
            let readings = readings.collect::<Result<Vec<_>, _>>()?;
            let elements = readings.iter().map(|reading| reading.elements::<f32>());
            let elements = elements.collect::<Result<Vec<_>, _>>()?;
            let rows = ConcatRows {
                parts: elements.into_iter().zip(lens.iter().copied()).collect(),
                rows: block.rows.clone(),
                block_epilogue: epilogue.for_block(0..n, n),
                out,
            };
            InstructionSet::best().processor().vectorize(rows);
            Ok(())
        },
    )
}

/// Rows of a concatenation, to be written.
struct ConcatRows<'r> {
    /// Elements of each part, and their number in a row.
    parts: Vec<(&'r [f32], usize)>,
    rows: Range<usize>,
    block_epilogue: BlockEpilogue<'r>,
    /// Outputs to write, from the first row on.
    out: &'r mut [f32],
}

impl WithSimd for ConcatRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let finish = VectorEpilogue::new(simd, &self.block_epilogue);
        let n: usize = self.parts.iter().map(|(_, len)| len).sum();
        for (number, out) in self.rows.zip(self.out.chunks_exact_mut(n.max(1))) {
            let mut column = 0;
            for &(elements, len) in &self.parts {
                let row = &elements[number * len..][..len];
                let out = &mut out[column..][..len];
                for (x, out) in row.chunks(S::F32_LANES).zip(out.chunks_mut(S::F32_LANES)) {
                    let per_column = finish.per_column(column, x.len());
                    let value = finish.apply(load(simd, x), per_column, (0, 0), out);
                    store(simd, out, value);
                    column += x.len();
                }
            }
        }
    }
}
