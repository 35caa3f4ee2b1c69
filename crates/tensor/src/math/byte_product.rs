//! Products of bytes whose exact sums become numbers while they are near: `f32`, or bytes again.
//!
//! A sum is rounded to an `f32` and multiplied by a factor of its column. Then a summand of the column is added, or the
//! number is rounded to an integer, ties to even, plus a zero point, and saturated. All instructions give the same bits.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::byte_gemm::{self, LeftRows, MAX_DEPTH, PackedBytes};
use super::elementwise::broadcast_extents;
use super::parallel::{self, Parts};
use super::vectorized;
use crate::{DType, DenseHostTensor};

/// The numbers by which the sums of each column become an `f32`.
#[derive(Clone, Debug)]
pub struct ColumnScales {
    /// For each column the number that its sums are multiplied by.
    pub factors: Vec<f32>,
    /// For each column the number that is added then; empty for none.
    pub bias: Vec<f32>,
}

/// Multiplies rows of `u8` or `i8`, `[rows, depth]`, with a zero point, by packed columns, into `f32`, `[rows, columns]`:
/// the sum times the product of `scale` and the column's factor, plus its bias.
///
/// # Errors
///
/// `InvalidArgument` if extents or types are not that, and the errors of [`parallel::fill`].
pub fn byte_product_scaled_into(
    execution: &ExecutionContext,
    (a, zero): (&DenseHostTensor, i32),
    b: Arc<PackedBytes>,
    (by, scale): (Arc<ColumnScales>, f32),
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let less = byte_gemm::bias(a.dtype())?;
    let [depth, n_columns] = b.extents();
    let n_rows = out.n_elements().checked_div(n_columns).unwrap_or(0);
    let fits = n_rows.checked_mul(depth) == Some(a.n_elements())
        && n_rows.checked_mul(n_columns) == Some(out.n_elements())
        && by.factors.len() == n_columns
        && [0, n_columns].contains(&by.bias.len())
        && byte_gemm::are_bytes(&[zero]);
    if !fits {
        return Err(Error::invalid_argument(format!(
            "rows of extents {} with the zero point {zero}, a matrix of {depth} rows and {n_columns} columns with {} factors \
             and {} summands, and a result of {} don't fit together",
            a.shape(),
            by.factors.len(),
            by.bias.len(),
            out.shape()
        )));
    }
    // Whole rows, or of one row whole panels.
    let unit = match n_rows {
        ..=1 => 16,
        _ => n_columns.saturating_mul(b.part_rows()),
    };
    let parts = Parts::even(out.n_elements(), unit, b.operations(), usize::MAX);
    let a = a.clone();
    parallel::fill_parts(execution, out, parts, move |first, part: &mut [f32]| {
        let reading = a.read()?;
        let (row, column) = (first / n_columns, first % n_columns);
        let n_rows = part.len().div_ceil(n_columns);
        let width = part.len() / n_rows;
        // Sums of few rows stay near.
        let group = (NEAR / width).max(1).next_multiple_of(32);
        let mut sums = Vec::new();
        for (index, part) in part.chunks_mut(group * width).enumerate() {
            sums.clear();
            sums.resize(part.len(), 0);
            let rows = LeftRows {
                bytes: &reading.bytes()[(row + index * group) * depth..],
                depth,
                less,
                zeros: &[zero],
            };
            rows.multiply(part.len() / width, &b, column, &mut sums);
            let columns = column..column + width;
            let bias = by.bias.get(columns.clone()).unwrap_or_default();
            scale_rows(&sums, (&by.factors[columns], bias), scale, part);
        }
        Ok(())
    })
}

/// Number of sums that are made before they become numbers: they fit the second cache.
const NEAR: usize = 1 << 16;

/// Makes numbers of the sums of whole rows.
fn scale_rows(sums: &[i32], (factors, bias): (&[f32], &[f32]), scale: f32, out: &mut [f32]) {
    let width = factors.len().max(1);
    let rows = sums.chunks_exact(width).zip(out.chunks_exact_mut(width));
    vectorized(
        #[inline(always)]
        || {
            for (sums, out) in rows {
                if bias.is_empty() {
                    for ((out, sum), factor) in out.iter_mut().zip(sums).zip(factors) {
                        *out = float(*sum) * (scale * factor);
                    }
                } else {
                    let by = factors.iter().zip(bias);
                    for ((out, sum), (factor, bias)) in out.iter_mut().zip(sums).zip(by) {
                        *out = float(*sum) * (scale * factor) + bias;
                    }
                }
            }
        },
    );
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "sums are rounded")]
fn float(sum: i32) -> f32 {
    sum as f32
}

/// The numbers by which products of two tensors of bytes become a result.
#[derive(Clone, Copy, Debug)]
pub struct ProductScale {
    /// The zero points of both tensors.
    pub zeros: [i32; 2],
    /// The number that sums are multiplied by.
    pub factor: f32,
    /// The zero point of a result of bytes.
    pub zero: i32,
}

/// Multiplies matrices of bytes, `[.., rows, depth]` by `[.., depth, columns]`, whose leading dimensions are broadcast, into
/// `[.., rows, columns]` of `f32`, `u8` or `i8`.
///
/// # Errors
///
/// `InvalidArgument` if extents or types are not that, or the depth is above [`MAX_DEPTH`], and the errors of
/// [`parallel::fill`].
pub fn byte_matrices_into(
    execution: &ExecutionContext,
    factors: [&DenseHostTensor; 2],
    by: ProductScale,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let batch = Batch::new(factors, by.zeros, &out.shape().to_dims())?;
    let [rows, depth, columns] = batch.extents;
    let n_each = rows.saturating_mul(columns);
    // A product takes all of a matrix, whose packing takes part of it.
    let chunk = parallel::chunk_len(depth / 16, n_each);
    let [a, b] = factors.map(DenseHostTensor::clone);
    let dtype = out.dtype();
    match dtype {
        DType::F32 => parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
            let (a, b) = (a.read()?, b.read()?);
            batch.each(
                [a.bytes(), b.bytes()],
                first / n_each.max(1),
                n_each,
                part,
                |sums, part| {
                    vectorized(
                        #[inline(always)]
                        || {
                            for (out, sum) in part.iter_mut().zip(sums) {
                                *out = float(*sum) * by.factor;
                            }
                        },
                    );
                },
            )
        }),
        DType::Ui8 | DType::I8 => {
            let least = if dtype == DType::I8 { -128 } else { 0 };
            if !(least..=least + 255).contains(&by.zero) {
                let zero = by.zero;
                return Err(Error::invalid_argument(format!(
                    "the zero point {zero} is no {dtype}"
                )));
            }
            parallel::fill_bytes(execution, out, chunk, move |first, part| {
                let (a, b) = (a.read()?, b.read()?);
                batch.each(
                    [a.bytes(), b.bytes()],
                    first / n_each.max(1),
                    n_each,
                    part,
                    |sums, part| {
                        requantize(sums, (by.factor, by.zero, least), part);
                    },
                )
            })
        }
        _ => Err(Error::invalid_argument(format!(
            "products of bytes can't become {dtype}: expected f32, ui8 or i8"
        ))),
    }
}

/// Makes bytes of sums, of a type whose least number is `least`.
fn requantize(sums: &[i32], (factor, zero, least): (f32, i32, i32), out: &mut [u8]) {
    /// Its neighbours of `f32` are 1 apart, so that a sum of few bits is rounded to an integer, ties to even.
    const ROUNDER: f32 = 12_582_912.0;
    let [least, largest] = [least - zero, least + 255 - zero].map(float);
    vectorized(
        #[inline(always)]
        || {
            for (out, sum) in out.iter_mut().zip(sums) {
                let value = float(*sum) * factor;
                let value = if value > least { value } else { least };
                let value = if value < largest { value } else { largest };
                let whole = (value + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the lowest bits are the byte"
                )]
                let byte = whole.wrapping_add(zero.cast_unsigned()) as u8;
                *out = byte;
            }
        },
    );
}

/// Matrices that are multiplied pair by pair.
struct Batch {
    /// Rows, depth and columns.
    extents: [usize; 3],
    /// For each pair the numbers of its matrices.
    pairs: Vec<[usize; 2]>,
    dtypes: [DType; 2],
    zeros: [i32; 2],
}

impl Batch {
    fn new(factors: [&DenseHostTensor; 2], zeros: [i32; 2], out: &[usize]) -> Result<Batch, Error> {
        let [a, b] = factors.map(|factor| factor.shape().to_dims());
        let misfit = || {
            Error::invalid_argument(format!(
                "matrices of bytes of extents {a:?} and {b:?} with the zero points {zeros:?} don't fit a result of extents {out:?}"
            ))
        };
        for factor in factors {
            byte_gemm::bias(factor.dtype())?;
        }
        let ([a_batch @ .., rows, depth], [b_batch @ .., b_depth, columns]) = (&a[..], &b[..])
        else {
            return Err(misfit());
        };
        let mut wanted = broadcast_extents(&[a_batch, b_batch])?;
        let pairs = pairs(&wanted, [a_batch, b_batch]);
        wanted.extend([*rows, *columns]);
        let fits = depth == b_depth
            && *depth <= MAX_DEPTH
            && wanted[..] == *out
            && byte_gemm::are_bytes(&zeros);
        if !fits {
            return Err(misfit());
        }
        Ok(Batch {
            extents: [*rows, *depth, *columns],
            pairs,
            dtypes: factors.map(DenseHostTensor::dtype),
            zeros,
        })
    }

    /// Calls `finish` with the sums of each pair from the `first` on, and its part of the result.
    fn each<T>(
        &self,
        [a, b]: [&[u8]; 2],
        first: usize,
        n_each: usize,
        out: &mut [T],
        finish: impl Fn(&[i32], &mut [T]),
    ) -> Result<(), Error> {
        let [rows, depth, columns] = self.extents;
        let mut sums = vec![0; n_each];
        let mut kept: Option<(usize, PackedBytes)> = None;
        for ([left, right], part) in self.pairs[first..]
            .iter()
            .zip(out.chunks_mut(n_each.max(1)))
        {
            let packed = match kept.take() {
                Some((index, packed)) if index == *right => packed,
                _ => {
                    let bytes = &b[right * depth * columns..][..depth * columns];
                    PackedBytes::of_bytes(
                        [depth, columns],
                        self.dtypes[1],
                        bytes,
                        &self.zeros[1..],
                    )?
                }
            };
            let rows_of = LeftRows {
                bytes: &a[left * rows * depth..],
                depth,
                less: byte_gemm::bias(self.dtypes[0])?,
                zeros: &self.zeros[..1],
            };
            rows_of.multiply(rows, &packed, 0, &mut sums);
            finish(&sums, part);
            kept = Some((*right, packed));
        }
        Ok(())
    }
}

/// Returns for each matrix of a batch the numbers of those of both factors, whose leading dimensions are broadcast to it.
fn pairs(batch: &[usize], factors: [&[usize]; 2]) -> Vec<[usize; 2]> {
    let mut pairs = vec![[0; 2]];
    for (at, extent) in batch.iter().enumerate() {
        let own = factors.map(|factor| {
            let at = (at + factor.len()).checked_sub(batch.len());
            at.map_or(1, |at| factor[at])
        });
        let next = |pair: &[usize; 2], index: usize| {
            std::array::from_fn(|side| match own[side] {
                1 => pair[side],
                extent => pair[side] * extent + index,
            })
        };
        pairs = pairs
            .iter()
            .flat_map(|pair| {
                (0..*extent)
                    .map(|index| next(pair, index))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    pairs
}

#[cfg(test)]
mod tests;
