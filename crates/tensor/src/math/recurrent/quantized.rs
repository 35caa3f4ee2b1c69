//! Matrices of bytes that stand for numbers, which multiply rows of `f32` that become bytes, too.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::math::byte_gemm::{LeftRows, PackedBytes};
use crate::math::{parallel, vectorized};
use crate::{DType, DenseHostTensor};

/// A matrix of `u8` or `i8` with zero points and scales, packed: `[rows, columns]`. Clones share the elements.
#[derive(Clone, Debug)]
pub struct ByteMatrix {
    packed: Arc<PackedBytes>,
    /// The number that a byte is, for all columns or for each.
    scales: Arc<[f32]>,
}

impl ByteMatrix {
    /// Packs a matrix with a scale and a zero point, or with as many as columns.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if bytes, scales or zero points are not as many, or bytes of another type; and those of
    /// [`PackedBytes::new`].
    pub fn new(
        [n_rows, n_columns]: [usize; 2],
        (dtype, bytes): (DType, &[u8]),
        scales: &[f32],
        zeros: &[i32],
    ) -> Result<ByteMatrix, Error> {
        if n_rows.checked_mul(n_columns) != Some(bytes.len())
            || ![1, n_columns].contains(&scales.len())
        {
            return Err(super::misfit());
        }
        Ok(ByteMatrix {
            packed: Arc::new(PackedBytes::of_bytes(
                [n_rows, n_columns],
                dtype,
                bytes,
                zeros,
            )?),
            scales: scales.into(),
        })
    }

    /// Returns the extents: rows and columns.
    pub fn extents(&self) -> [usize; 2] {
        self.packed.extents()
    }

    /// Adds the products of rows, which become bytes with one scale and zero point for all of them, to `out`.
    pub(super) fn add_products(&self, x: &[f32], scratch: &mut ByteScratch, out: &mut [f32]) {
        let scale = scratch.quantize(x);
        self.add_products_of(&scratch.codes, scale, &mut scratch.sums, out);
    }

    /// Adds the products of rows that are bytes already.
    fn add_products_of(
        &self,
        codes: &[u8],
        (scale, zero): (f32, i32),
        sums: &mut Vec<i32>,
        out: &mut [f32],
    ) {
        let [depth, n_columns] = self.extents();
        let Some(n_rows) = out.len().checked_div(n_columns).filter(|n| *n > 0) else {
            return;
        };
        let rows = LeftRows {
            bytes: codes,
            depth,
            less: OF_CODES,
            zeros: &[zero],
        };
        sums.resize(out.len(), 0);
        rows.multiply(n_rows, &self.packed, 0, sums);
        let rows = out
            .chunks_exact_mut(n_columns)
            .zip(sums.chunks_exact(n_columns));
        for (out, sums) in rows {
            #[expect(clippy::cast_precision_loss, reason = "the sum is rounded")]
            match self.scales[..] {
                [own] => {
                    for (out, sum) in out.iter_mut().zip(sums) {
                        *out += *sum as f32 * (scale * own);
                    }
                }
                _ => {
                    for ((out, sum), own) in out.iter_mut().zip(sums).zip(&*self.scales) {
                        *out += *sum as f32 * (scale * own);
                    }
                }
            }
        }
    }

    /// Multiplies rows, which become bytes with one scale and zero point for all of them, and adds a bias.
    ///
    /// # Shapes
    ///
    /// `x: [n, rows]`, `bias: [columns]`, `out: [n, columns]`, all of `f32`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not, and those of [`parallel::fill`].
    pub(super) fn project_into(
        &self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        bias: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let [depth, n_columns] = self.extents();
        let n_rows = out.n_elements().checked_div(n_columns).unwrap_or(0);
        let fits = n_rows.checked_mul(depth) == Some(x.n_elements())
            && n_rows.checked_mul(n_columns) == Some(out.n_elements())
            && bias.n_elements() == n_columns;
        if !fits {
            return Err(super::misfit());
        }
        let mut scratch = ByteScratch::default();
        let scale = scratch.quantize(x.read()?.elements::<f32>()?);
        let (codes, matrix, bias) = (scratch.codes, self.clone(), bias.clone());
        let chunk = parallel::chunk_len(depth / 16, n_columns.saturating_mul(4));
        parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
            let bias = bias.read()?;
            let bias = bias.elements::<f32>()?;
            for row in part.chunks_exact_mut(n_columns) {
                row.copy_from_slice(bias);
            }
            let codes = &codes[first / n_columns * depth..];
            matrix.add_products_of(codes, scale, &mut Vec::new(), part);
            Ok(())
        })
    }
}

/// The number that codes, which are `u8`, are above signed bytes.
const OF_CODES: i32 = 128;

/// Lists that are used again for each product.
#[derive(Debug, Default)]
pub(super) struct ByteScratch {
    codes: Vec<u8>,
    sums: Vec<i32>,
}

impl ByteScratch {
    /// Makes numbers integers from 0 to 255, one of which stands for 0; returns the number that one is, and that
    /// integer.
    fn quantize(&mut self, x: &[f32]) -> (f32, i32) {
        const MOST: f32 = 255.0;
        let least = x.iter().copied().fold(0.0, f32::min);
        let most = x.iter().copied().fold(0.0, f32::max);
        let scale = match (most - least) / MOST {
            0.0 => 1.0,
            scale => scale,
        };
        let zero = (-least / scale).round_ties_even().clamp(0.0, MOST);
        let codes = &mut self.codes;
        codes.clear();
        codes.resize(x.len(), 0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 0 to 255"
        )]
        vectorized(
            #[inline(always)]
            || {
                for (code, x) in codes.iter_mut().zip(x) {
                    *code = ((x / scale).round_ties_even() + zero).clamp(0.0, MOST) as i32 as u8;
                }
            },
        );
        #[expect(clippy::cast_possible_truncation, reason = "it is from 0 to 255")]
        let zero = zero as i32;
        (scale, zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_byte_and_the_ends_are_reached() {
        let mut scratch = ByteScratch::default();
        assert_eq!(scratch.quantize(&[0.0, 0.0]), (1.0, 0));
        assert_eq!(scratch.codes, [0, 0]);
        assert_eq!(scratch.quantize(&[-1.0, 0.0, 254.0]), (1.0, 1));
        assert_eq!(scratch.codes, [0, 1, 255]);
    }

    #[test]
    fn columns_have_scales() {
        let product = |scales: &[f32], zeros: &[i32]| {
            let matrix = ByteMatrix::new([2, 2], (DType::Ui8, &[1, 2, 3, 4]), scales, zeros);
            let mut out = [0.5, 0.25];
            let matrix = matrix.unwrap();
            matrix.add_products(&[255.0, 1.0], &mut ByteScratch::default(), &mut out);
            out
        };
        assert_eq!(product(&[1.0], &[0]), [258.5, 514.25]);
        assert_eq!(product(&[1.0, 2.0], &[0, 0]), [258.5, 1028.25]);
        assert_eq!(product(&[1.0, 2.0], &[0, 1]), [258.5, 516.25]);
    }
}
