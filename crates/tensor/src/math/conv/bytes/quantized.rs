//! Quantisation of sums of convolutions, from channels last to channels first.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::DenseHostTensor;
use crate::math::byte_gemm::range;
use crate::math::conv::channels_first;
use crate::math::{parallel, vectorized};

/// The numbers by which sums of a convolution become bytes: `(sum + bias) / scale`, rounded to integers, ties to even,
/// plus `zero`, saturated.
#[derive(Clone, Debug)]
pub struct Requantize {
    /// A scale, or one for each filter.
    pub scales: Vec<f64>,
    /// Nothing, or a summand for each filter, which is an integer of 32 bits.
    pub bias: Vec<f64>,
    /// The zero point of the results.
    pub zero: f64,
}

impl Requantize {
    /// Checks that sums can become a result, as [`requantize_into`] does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if extents or types, or the numbers of scales or summands, don't fit.
    pub fn check(&self, sums: &DenseHostTensor, out: &DenseHostTensor) -> Result<(), Error> {
        let (from, to) = (sums.shape().to_dims(), out.shape().to_dims());
        crate::dense::expect_dtype::<i32>(sums.metadata())?;
        range(out.dtype())?;
        let n_filters = from.last().copied().unwrap_or(0);
        let fits = from.len() > 1
            && channels_first::channels_first(&from) == to
            && [1, n_filters].contains(&self.scales.len())
            && [0, n_filters].contains(&self.bias.len());
        if fits {
            return Ok(());
        }
        let (n_scales, n_summands) = (self.scales.len(), self.bias.len());
        Err(Error::invalid_argument(format!(
            "sums of extents {from:?} with {n_scales} scales and {n_summands} summands don't fit a result of extents \
             {to:?}"
        )))
    }
}

/// Quantises sums of convolutions with channels last to images with channels first.
///
/// # Shapes
///
/// `sums`: `[batch, output.., filters]`, of `i32`; `out`: `[batch, filters, output..]`, of `u8` or `i8`.
///
/// # Errors
///
/// Those of [`Requantize::check`] and of [`parallel::fill_bytes`].
pub fn requantize_into(
    execution: &ExecutionContext,
    by: Requantize,
    sums: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    by.check(sums, out)?;
    let from = sums.shape().to_dims();
    let n_filters = from[from.len() - 1];
    let (least, largest) = range(out.dtype())?;
    let n_places: usize = from[1..from.len() - 1].iter().product();
    let sums = sums.clone();
    let chunk = parallel::chunk_len(4, n_places.saturating_mul(TOGETHER));
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = sums.read()?;
        let sums = reading.elements::<i32>()?;
        let mut row = first / n_places;
        let mut rest = part;
        while !rest.is_empty() {
            let (image, filter) = (row / n_filters, row % n_filters);
            let n = TOGETHER.min(n_filters - filter).min(rest.len() / n_places);
            let (rows, behind) = rest.split_at_mut(n * n_places);
            let one = |index: usize| {
                let filter = filter + index.min(n - 1);
                let scale = by.scales.get(filter).or(by.scales.first());
                let bias = by.bias.get(filter).copied().unwrap_or(0.0);
                (scale.copied().unwrap_or(1.0), bias)
            };
            let filters: [(f64, f64); TOGETHER] = std::array::from_fn(one);
            let (scales, biases) = (filters.map(|one| one.0), filters.map(|one| one.1));
            let start = image * n_places * n_filters + filter;
            vectorized(
                #[inline(always)]
                || {
                    for place in 0..n_places {
                        let sums = &sums[start + place * n_filters..][..n];
                        let mut wide = [0.0; TOGETHER];
                        for (wide, sum) in wide.iter_mut().zip(sums) {
                            *wide = f64::from(*sum);
                        }
                        for ((wide, scale), bias) in wide.iter_mut().zip(scales).zip(biases) {
                            let quotient = (*wide + bias) / scale;
                            *wide = (quotient.round_ties_even() + by.zero).clamp(least, largest);
                        }
                        for (index, wide) in wide.iter().enumerate().take(n) {
                            rows[index * n_places + place] = byte(*wide);
                        }
                    }
                },
            );
            row += n;
            rest = behind;
        }
        Ok(())
    })
}

/// Number of filters whose sums, neighbours in memory, are quantised together.
const TOGETHER: usize = 16;

/// Returns the byte of a number of the range of `u8` or of `i8`; 0 for what is no number.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the lowest bits of a number in the range of either type are the byte"
)]
fn byte(value: f64) -> u8 {
    value as i32 as u8
}
