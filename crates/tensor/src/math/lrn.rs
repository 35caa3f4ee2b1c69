//! Local response normalization by neighbouring channels, and normalization by the norm along a dimension.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::elementwise::expect_same;
use super::number::Real;
use super::{parallel, vectorized};
use crate::math::Family;
use crate::with_floating;
use crate::{DenseHostTensor, Element};

/// Options of local response normalization: elements are divided by `(bias + alpha / size * sum of squares of size
/// channels) ^ beta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    /// Number of channels in the sum, with the element's own in the middle; an even number has one more behind.
    pub size: usize,
    /// The factor of the squares.
    pub alpha: f64,
    /// The exponent.
    pub beta: f64,
    /// The summand.
    pub bias: f64,
}

/// Divides each element by a power of the sum of squares of neighbouring channels.
///
/// # Shapes
///
/// `x` and `out`: `[batch, channels, ..]`, alike.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if types differ, and those of [`parallel::fill`].
pub fn lrn_into(
    execution: &ExecutionContext,
    neighbours: Lrn,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => neighbours_of::<T>(execution, neighbours, x, out), else Err(Family::Floats.lacks(dtype)))
}

fn neighbours_of<T: Real>(
    execution: &ExecutionContext,
    neighbours: Lrn,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    expect_same(x.shape(), out.shape())?;
    let extents = x.shape().to_dims();
    let Some(channels) = extents.get(1).copied() else {
        let message =
            format!("expected a tensor of shape [batch, channels, ..], found {extents:?}");
        return Err(Error::invalid_argument(message));
    };
    let Lrn {
        size,
        alpha,
        beta,
        bias,
    } = neighbours;
    // Elements have coordinates only where there is one.
    let behind = extents[2..]
        .iter()
        .fold(1_usize, |n, extent| n.saturating_mul(*extent))
        .max(1);
    let (before, after) = (size.saturating_sub(1) / 2, size / 2);
    #[allow(clippy::cast_precision_loss, reason = "a handful of channels")]
    let factor = alpha / size.max(1) as f64;
    let x = x.clone();
    let chunk = parallel::chunk_len(size.min(channels).saturating_add(32), 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let reading = x.read()?;
        let elements = reading.elements::<T>()?;
        for (index, out) in part.iter_mut().enumerate() {
            let at = first + index;
            let channel = at / behind % channels;
            let around = channel.saturating_sub(before)
                ..channel
                    .saturating_add(after)
                    .saturating_add(1)
                    .min(channels);
            let start = at - channel * behind;
            let squares = around.map(|other| elements[start + other * behind].to_f64().powi(2));
            let divisor = (bias + factor * squares.sum::<f64>()).powf(beta);
            *out = T::from_f64(elements[at].to_f64() / divisor);
        }
        Ok(())
    })
}

/// Calculates [`lrn_into`] of `f32` whose channels come last, in `f32`.
///
/// # Shapes
///
/// `x` and `out`: `[.., channels]`, alike.
///
/// # Errors
///
/// See [`lrn_into`].
pub fn lrn_channels_last_into(
    execution: &ExecutionContext,
    neighbours: Lrn,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(f32::DTYPE)?;
    expect_same(x.shape(), out.shape())?;
    let Some(channels) = x.shape().to_dims().last().copied() else {
        let message = "expected a tensor of shape [.., channels], found a number";
        return Err(Error::invalid_argument(message));
    };
    let size = neighbours.size;
    let around = [size.saturating_sub(1) / 2, size / 2].map(|n| n.min(channels));
    let chunk = parallel::chunk_len(around[0] + around[1] + 16, channels);
    let x = x.clone();
    parallel::fill(execution, out, chunk, move |first, part: &mut [f32]| {
        let reading = x.read()?;
        let x = &reading.elements::<f32>()?[first..][..part.len()];
        let mut memory = vec![0.0; 2 * channels + around[0] + around[1]];
        let (squares, sums) = memory.split_at_mut(channels + around[0] + around[1]);
        for (x, out) in x
            .chunks_exact(channels)
            .zip(part.chunks_exact_mut(channels))
        {
            vectorized(
                #[inline(always)]
                || divide(neighbours, x, [squares, sums], around[0], out),
            );
        }
        Ok(())
    })
}

/// Normalizes the channels of a pixel. The squares have zeros in front and behind.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the elements are no wider")]
fn divide(
    neighbours: Lrn,
    x: &[f32],
    [squares, sums]: [&mut [f32]; 2],
    before: usize,
    out: &mut [f32],
) {
    let Lrn {
        size,
        alpha,
        beta,
        bias,
    } = neighbours;
    #[allow(clippy::cast_precision_loss, reason = "a handful of channels")]
    let factor = (alpha / size.max(1) as f64) as f32;
    let (bias, beta) = (bias as f32, beta as f32);
    for (square, x) in squares[before..].iter_mut().zip(x) {
        *square = x * x;
    }
    sums.fill(0.0);
    for offset in 0..=squares.len() - x.len() {
        for (sum, square) in sums.iter_mut().zip(&squares[offset..]) {
            *sum += square;
        }
    }
    for ((out, x), sum) in out.iter_mut().zip(x).zip(&*sums) {
        let base = bias + factor * sum;
        // The usual exponent, by what processors have instructions for.
        let divisor = match beta {
            0.75 => base.sqrt() * base.sqrt().sqrt(),
            _ => base.powf(beta),
        };
        *out = x / divisor;
    }
}

/// Divides elements by their norm along a dimension: the sum of sizes, or the root of the sum of squares. Where the
/// norm is 0, so are the results.
///
/// # Shapes
///
/// `x` and `out` are alike.
///
/// # Errors
///
/// `InvalidArgument` if they are not, or if there is no such dimension, and those of [`parallel::fill`].
pub fn lp_norm_into(
    execution: &ExecutionContext,
    dimension: usize,
    is_of_squares: bool,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => norm_of::<T>(execution, dimension, is_of_squares, x, out), else Err(Family::Floats.lacks(dtype)))
}

fn norm_of<T: Real>(
    execution: &ExecutionContext,
    dimension: usize,
    is_of_squares: bool,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    expect_same(x.shape(), out.shape())?;
    let extents = x.shape().to_dims();
    let Some(extent) = extents.get(dimension).copied() else {
        let message = format!("there is no dimension {dimension} in extents {extents:?}");
        return Err(Error::invalid_argument(message));
    };
    let stride = x.shape().strides()[dimension].max(1);
    // Whole slabs: in one all rows along the dimension are complete.
    let slab = extent.saturating_mul(stride).max(1);
    let x = x.clone();
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(8, slab),
        move |first, part: &mut [T]| {
            let reading = x.read()?;
            let elements = &reading.elements::<T>()?[first..first + part.len()];
            for start in (0..part.len()).step_by(slab) {
                for inner in start..start + stride {
                    let row = (inner..).step_by(stride).take(extent);
                    let numbers = row.clone().map(|index| elements[index].to_f64());
                    let norm = match is_of_squares {
                        true => numbers.map(|one| one * one).sum::<f64>().sqrt(),
                        false => numbers.map(f64::abs).sum(),
                    };
                    for index in row {
                        let quotient = if norm == 0.0 {
                            0.0
                        } else {
                            elements[index].to_f64() / norm
                        };
                        part[index] = T::from_f64(quotient);
                    }
                }
            }
            Ok(())
        },
    )
}
