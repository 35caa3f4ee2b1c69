//! Normalisation of dense tensors, on the workers of a queue.
//!
//! Half-precision numbers are calculated with as `f32`, and rounded once.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Affine, by_root_mean_square, by_variance};
use crate::math::Family;
use crate::math::number::{Floating, Real};
use crate::math::parallel;
use crate::math::rows::{chunk_len, is_streamed};
use crate::with_floating;
use crate::{DenseHostTensor, TensorView, TensorViewMut};

/// The divisor of normalized rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNorm {
    /// Layer norm: the mean is subtracted, then divided by the root of the variance.
    Variance,
    /// The root of the mean of the squares.
    RootMeanSquare,
}

/// Applies [`rows`](super::rows) or [`rows_root_mean_square`](super::rows_root_mean_square) to dense tensors.
///
/// # Shapes
///
/// `x` and `out` are alike; rows are of so many elements as `scale` and `shift` have, or of `row`, one behind the
/// other.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if the types differ, and those of [`parallel::fill`].
pub fn rows_into(
    execution: &ExecutionContext,
    kind: (RowNorm, usize, f64),
    x: &DenseHostTensor,
    lists: [Option<&DenseHostTensor>; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => rows_of::<T>(execution, kind, x, lists, out), else Err(Family::Floats.lacks(dtype)))
}

fn rows_of<T: Floating<Wide: Floating<Wide = T::Wide>>>(
    execution: &ExecutionContext,
    (norm, row, epsilon): (RowNorm, usize, f64),
    x: &DenseHostTensor,
    [scale, shift]: [Option<&DenseHostTensor>; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for tensor in [Some(x), scale, shift].into_iter().flatten() {
        tensor.metadata().expect_dtype(T::DTYPE)?;
    }
    crate::math::elementwise::expect_same(x.shape(), out.shape())?;
    let fits = [scale, shift]
        .into_iter()
        .flatten()
        .all(|list| list.n_elements() == row);
    if !fits || row == 0 || !x.n_elements().is_multiple_of(row) {
        if x.n_elements() == 0 && fits {
            return Ok(AsyncValue::available(Chain));
        }
        let message =
            format!("expected rows of {row} elements, with a factor and a summand for each");
        return Err(Error::invalid_argument(message));
    }
    let (x, scale, shift) = (x.clone(), scale.cloned(), shift.cloned());
    let is_wide = T::DTYPE == <T::Wide as crate::Element>::DTYPE;
    let is_streamed = is_wide && is_streamed::<T>(out.n_elements(), row);
    parallel::fill(
        execution,
        out,
        chunk_len(is_streamed, 8, row),
        move |first, part: &mut [T]| {
            let reading = x.read()?;
            let x = &reading.elements::<T>()?[first..first + part.len()];
            let (scale, shift) = (scale.as_ref(), shift.as_ref());
            let (scale, shift) = (
                scale.map(DenseHostTensor::read),
                shift.map(DenseHostTensor::read),
            );
            let (scale, shift) = (scale.transpose()?, shift.transpose()?);
            let scale = scale.as_ref().map(|one| one.elements::<T>()).transpose()?;
            let shift = shift.as_ref().map(|one| one.elements::<T>()).transpose()?;
            if is_wide {
                return make(
                    (norm, is_streamed),
                    row,
                    T::from_f64(epsilon),
                    x,
                    Affine { scale, shift },
                    part,
                );
            }
            let widened = |list: &[T]| {
                list.iter()
                    .map(|one| one.widened())
                    .collect::<Vec<T::Wide>>()
            };
            let (scale, shift) = (scale.map(widened), shift.map(widened));
            let (affine, x) = (
                Affine {
                    scale: scale.as_deref(),
                    shift: shift.as_deref(),
                },
                widened(x),
            );
            let mut wide = x.clone();
            make(
                (norm, false),
                row,
                T::Wide::from_f64(epsilon),
                &x,
                affine,
                &mut wide,
            )?;
            for (out, wide) in part.iter_mut().zip(wide) {
                *out = T::narrowed(wide);
            }
            Ok(())
        },
    )
}

fn make<T: Floating>(
    (norm, is_streamed): (RowNorm, bool),
    row: usize,
    epsilon: T,
    x: &[T],
    affine: Affine<'_, T>,
    out: &mut [T],
) -> Result<(), Error> {
    let extents = [x.len() / row, row];
    let x = TensorView::new(x, &extents)?;
    let mut out = TensorViewMut::new(out, &extents)?;
    match norm {
        RowNorm::Variance => by_variance(&x, epsilon, affine, is_streamed, &mut out),
        RowNorm::RootMeanSquare => by_root_mean_square(&x, epsilon, affine, is_streamed, &mut out),
    }
}

/// Returns the mean of each row, and 1 / the root of its variance.
///
/// # Errors
///
/// `InvalidArgument` if the elements are no `T`s, or not so many whole rows.
pub fn row_moments(
    x: &DenseHostTensor,
    row: usize,
    epsilon: f64,
) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => row_moments_of::<T>(x, row, epsilon), else Err(Family::Floats.lacks(dtype)))
}

fn row_moments_of<T: Real>(
    x: &DenseHostTensor,
    row: usize,
    epsilon: f64,
) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let reading = x.read()?;
    let elements = reading.elements::<T>()?;
    let (mut means, mut inverses) = (Vec::new(), Vec::new());
    for row in elements.chunks(row.max(1)) {
        let (mean, variance) = moments(row.iter().map(|one| one.to_f64()), row.len());
        #[allow(clippy::cast_possible_truncation, reason = "what it is kept in")]
        {
            means.push(mean as f32);
            inverses.push((1.0 / (variance + epsilon).sqrt()) as f32);
        }
    }
    Ok((means, inverses))
}

/// Returns the mean and the variance of `n` numbers.
fn moments(numbers: impl Iterator<Item = f64> + Clone, n: usize) -> (f64, f64) {
    #[allow(clippy::cast_precision_loss, reason = "of 2^53 numbers it is rounded")]
    let n = n as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    (
        mean,
        numbers.map(|one| (one - mean) * (one - mean)).sum::<f64>() / n,
    )
}

/// Returns the mean and the variance of each channel of `[batch, channels, ..]`.
///
/// # Errors
///
/// `InvalidArgument` if the elements are no `T`s, or if there are no channels.
pub fn channel_moments(x: &DenseHostTensor) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => channel_moments_of::<T>(x), else Err(Family::Floats.lacks(dtype)))
}

fn channel_moments_of<T: Real>(x: &DenseHostTensor) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let extents = x.shape().to_dims();
    let (Some(channels), Some(batch)) = (extents.get(1).copied(), extents.first().copied()) else {
        let message =
            format!("expected a tensor of shape [batch, channels, ..], found {extents:?}");
        return Err(Error::invalid_argument(message));
    };
    let reading = x.read()?;
    let elements = reading.elements::<T>()?;
    let behind = elements
        .len()
        .checked_div(batch.saturating_mul(channels))
        .unwrap_or(0);
    let of_channel = |channel: usize| {
        let numbers = (0..batch).flat_map(move |image| {
            let start = (image * channels + channel) * behind;
            elements[start..start + behind]
                .iter()
                .map(|one| one.to_f64())
        });
        moments(numbers, batch * behind)
    };
    Ok((0..channels).map(of_channel).unzip())
}

/// Multiplies each channel of `[batch, channels, ..]` by a factor and adds a summand.
///
/// # Errors
///
/// `InvalidArgument` if there is not a factor and a summand for each channel, or if shapes or types differ, and
/// those of [`parallel::fill`].
pub fn channel_affine_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    factors: Vec<f64>,
    summands: Vec<f64>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => channel_affine_of::<T>(execution, x, factors, summands, out), else Err(Family::Floats.lacks(dtype)))
}

fn channel_affine_of<T: Real>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    factors: Vec<f64>,
    summands: Vec<f64>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    crate::math::elementwise::expect_same(x.shape(), out.shape())?;
    let extents = x.shape().to_dims();
    let channels = extents.get(1).copied().unwrap_or(1);
    if factors.len() != channels || summands.len() != channels {
        let (found, other) = (factors.len(), summands.len());
        let message =
            format!("expected {channels} factors and summands, found {found} and {other}");
        return Err(Error::invalid_argument(message));
    }
    // At least 1: of an empty tensor nothing is made.
    let behind = extents
        .iter()
        .skip(2)
        .fold(1_usize, |n, extent| n.saturating_mul(*extent))
        .max(1);
    let x = x.clone();
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(2, 1),
        move |first, part: &mut [T]| {
            let reading = x.read()?;
            let x = &reading.elements::<T>()?[first..first + part.len()];
            let mut done = 0;
            while done < part.len() {
                let at = first + done;
                let len = (behind - at % behind).min(part.len() - done);
                let channel = at / behind % channels;
                let (factor, summand) = (factors[channel], summands[channel]);
                for (out, x) in part[done..done + len].iter_mut().zip(&x[done..done + len]) {
                    *out = T::from_f64(x.to_f64() * factor + summand);
                }
                done += len;
            }
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_definition() {
        assert_eq!(moments([1.0, 3.0, 5.0].into_iter(), 3), (3.0, 8.0 / 3.0));
    }
}
