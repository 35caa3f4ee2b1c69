//! Epilogue of sums in vectors.

use pulp::Simd;

use super::tile::within;
use super::{BlockEpilogue, Residual, multiply_add};

/// Loads a slice that is no longer than a vector, padded with zeros.
#[inline(always)]
pub(crate) fn load<S: Simd>(simd: S, elements: &[f32]) -> S::f32s {
    match elements.len() == S::F32_LANES {
        true => S::as_simd_f32s(elements).0[0],
        false => simd.partial_load_f32s(elements),
    }
}

/// Stores as many elements of a vector as the slice has.
#[inline(always)]
pub(crate) fn store<S: Simd>(simd: S, to: &mut [f32], value: S::f32s) {
    match to.len() == S::F32_LANES {
        true => S::as_mut_simd_f32s(to).0[0] = value,
        false => simd.partial_store_f32s(to, value),
    }
}

/// Epilogue of single sums, in vectors.
#[derive(Clone, Copy)]
pub(crate) struct VectorEpilogue<'f, S: Simd> {
    simd: S,
    block_epilogue: &'f BlockEpilogue<'f>,
    is_bounded: bool,
}

impl<'f, S: Simd> VectorEpilogue<'f, S> {
    /// Makes the vector epilogue of a block.
    #[inline(always)]
    pub(crate) fn new(simd: S, block_epilogue: &'f BlockEpilogue<'f>) -> Self {
        VectorEpilogue {
            simd,
            block_epilogue,
            is_bounded: block_epilogue.least > f32::NEG_INFINITY
                || block_epilogue.greatest < f32::INFINITY,
        }
    }

    /// Returns factors and summands of some columns, if there are any.
    #[inline(always)]
    pub(crate) fn per_column(&self, column: usize, width: usize) -> Option<[S::f32s; 2]> {
        let BlockEpilogue { scale, shift, .. } = *self.block_epilogue;
        if scale.is_none() && shift.is_none() {
            return None;
        }
        let of = |list: Option<&[f32]>, otherwise: f32| match list {
            Some(list) => load(self.simd, &list[column..][..width]),
            None => self.simd.splat_f32s(otherwise),
        };
        Some([of(scale, 1.0), of(shift, 0.0)])
    }

    /// Applies the epilogue to the sums that go to `out`, at a row and a column of the block.
    #[inline(always)]
    pub(crate) fn apply(
        &self,
        sum: S::f32s,
        per_column: Option<[S::f32s; 2]>,
        (row, column): (usize, usize),
        out: &[f32],
    ) -> S::f32s {
        let (simd, block_epilogue) = (self.simd, self.block_epilogue);
        let sum = match per_column {
            Some([scale, shift]) => multiply_add(simd, sum, scale, shift),
            None => sum,
        };
        let sum = match block_epilogue.residual {
            Residual::None => sum,
            Residual::Result(factor) => {
                multiply_add(simd, load(simd, out), simd.splat_f32s(factor), sum)
            }
            Residual::Rows(rows, apart) => {
                let added = &rows[row * apart + column..][..out.len()];
                simd.add_f32s(sum, load(simd, added))
            }
        };
        if !self.is_bounded {
            return sum;
        }
        let (least, greatest) = (
            simd.splat_f32s(block_epilogue.least),
            simd.splat_f32s(block_epilogue.greatest),
        );
        within(simd, sum, least, greatest)
    }
}
