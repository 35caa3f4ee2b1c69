//! Convolutions of bytes whose sums become bytes while they are near: images in, images out, channels last.
//!
//! The exact sum of a window, with a bias, is rounded to an `f32`, multiplied by the factor of its filter, and rounded to an
//! integer, ties to even; the zero point is added, and the result saturated. All instructions give the same bits.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::super::Convolution;
use super::{ByteConvolution, PackedByteFilter, Scratch, range};
use crate::math::{parallel, vectorized};
use crate::{DType, DenseHostTensor};

/// The numbers by which the sums of each filter become bytes of a type.
#[derive(Debug)]
pub struct ByteEpilogue {
    /// For each filter the number that its sums are multiplied by.
    factors: Vec<f32>,
    /// For each filter the number that is added to its sums.
    bias: Vec<i32>,
    zero: i32,
    dtype: DType,
}

impl ByteEpilogue {
    /// Makes an epilogue for some number of filters, of which each has a factor and a summand; the result has the type and
    /// the zero point of `to`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many summands as factors, the type is none of bytes, or the zero point is not of
    /// the type.
    pub fn new(factors: Vec<f32>, bias: Vec<i32>, to: (DType, i32)) -> Result<ByteEpilogue, Error> {
        let (dtype, zero) = to;
        let (least, largest) = range(dtype)?;
        if factors.len() != bias.len() || !(least..=largest).contains(&f64::from(zero)) {
            let (n_factors, n_summands) = (factors.len(), bias.len());
            return Err(Error::invalid_argument(format!(
                "{n_factors} factors, {n_summands} summands and the zero point {zero} of {dtype} don't fit together"
            )));
        }
        Ok(ByteEpilogue {
            factors,
            bias,
            zero,
            dtype,
        })
    }

    /// Returns the type of the results.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Makes bytes of the sums of whole outputs.
    fn run(&self, sums: &[i32], out: &mut [u8]) {
        let n_filters = self.factors.len().max(1);
        let least = if self.dtype == DType::I8 { -128 } else { 0 };
        // Differences of bytes are exact.
        let (least, largest) = (least - self.zero, least + 255 - self.zero);
        #[expect(clippy::cast_precision_loss, reason = "they have 9 bits")]
        let (least, largest) = (least as f32, largest as f32);
        let rows = sums
            .chunks_exact(n_filters)
            .zip(out.chunks_exact_mut(n_filters));
        vectorized(
            #[inline(always)]
            || {
                for (sums, out) in rows {
                    let by = self.factors.iter().zip(&self.bias);
                    for ((out, sum), (factor, bias)) in out.iter_mut().zip(sums).zip(by) {
                        #[expect(clippy::cast_precision_loss, reason = "they are rounded")]
                        let value = sum.wrapping_add(*bias) as f32 * factor;
                        let value = if value > least { value } else { least };
                        let value = if value < largest { value } else { largest };
                        *out = nearest(value, self.zero);
                    }
                }
            },
        );
    }
}

/// The least number whose neighbours of `f32` are 1 apart on both sides, and a half more of it.
const ROUNDER: f32 = 12_582_912.0;

/// Returns the lowest byte of the integer nearest to a number of few bits, ties to even, plus a zero point.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lowest bits of a number in the range of either type are the byte"
)]
fn nearest(value: f32, zero: i32) -> u8 {
    // The sum has no bits behind the point; those above are the integer.
    let integer = (value + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
    integer.wrapping_add(zero.cast_unsigned()) as u8
}

/// Convolves images of `u8` or `i8` with a zero point, which is also around the images, into images of bytes.
///
/// # Shapes
///
/// `x`: `[batch, spatial.., channels]`; `out`: `[batch, output.., filters]`, of the epilogue's type.
///
/// # Errors
///
/// `InvalidArgument` if extents, groups or types are not those of the filter or of the epilogue, and the errors of
/// [`parallel::fill_bytes`].
pub fn convolve_requantized_into(
    execution: &ExecutionContext,
    convolution: &Convolution,
    images: (&DenseHostTensor, i32),
    filter: Arc<PackedByteFilter>,
    by: Arc<ByteEpilogue>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let checked = ByteConvolution::new(convolution, images, filter, &out.shape().to_dims())?;
    let n_filters = checked.plan.filters;
    if by.factors.len() != n_filters || by.dtype != out.dtype() {
        let (n, dtype) = (by.factors.len(), by.dtype);
        return Err(Error::invalid_argument(format!(
            "{n} factors to {dtype} don't fit {n_filters} filters and a result of {}",
            out.dtype()
        )));
    }
    let block = checked.block();
    let chunk = checked.chunk_len();
    let x = images.0.clone();
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        let (mut scratch, mut sums) = (Scratch::default(), Vec::new());
        let mut output = first / n_filters;
        for part in part.chunks_mut(block) {
            sums.resize(part.len(), 0);
            checked.sums(reading.bytes(), output, &mut sums, &mut scratch);
            by.run(&sums, part);
            output += part.len() / n_filters;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_rounded_to_even_and_saturated() {
        let made = |dtype, zero, factor: f32, sums: &[i32]| {
            let by = ByteEpilogue::new(vec![factor], vec![1], (dtype, zero)).unwrap();
            let mut out = vec![7; sums.len()];
            by.run(sums, &mut out);
            out
        };
        let sums = [0, 1, 2, 4, 508, 509, 511, -2, -4, i32::MAX - 1, i32::MIN];
        let wanted = [0, 1, 2, 2, 254, 255, 255, 0, 0, 255, 0];
        assert_eq!(made(DType::Ui8, 0, 0.5, &sums), wanted);
        let wanted = [125, 126, 127, 127, 127, 127, 127, 125, 123, 127, 128];
        let wanted = wanted.map(|byte: u8| byte.cast_signed());
        let found = made(DType::I8, 125, 0.5, &sums);
        let found: Vec<i8> = found.iter().map(|byte| byte.cast_signed()).collect();
        assert_eq!(found, wanted);
        assert_eq!(
            made(DType::Ui8, 3, f32::INFINITY, &[-1, 0, -2]),
            [0, 255, 0]
        );
    }

    #[test]
    fn epilogues_that_do_not_fit_are_told() {
        let refused = |n: usize, to| {
            let error = ByteEpilogue::new(vec![1.0; n], vec![0], to).unwrap_err();
            error.message().to_owned()
        };
        assert_eq!(
            refused(2, (DType::Ui8, 0)),
            "2 factors, 1 summands and the zero point 0 of u8 don't fit together"
        );
        assert!(refused(1, (DType::Ui8, -1)).contains("zero point -1 of u8"));
        assert!(refused(1, (DType::F32, 0)).contains("expected ui8 or i8"));
    }
}
