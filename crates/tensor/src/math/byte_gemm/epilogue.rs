//! Sums of products of bytes that become bytes while they are near.
//!
//! The exact sum, with a bias, is rounded to an `f32`, multiplied by the factor of its column, and rounded to an integer,
//! ties to even; the zero point is added, and the result saturated. All instructions give the same bits.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i, __m512, __m512i};
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use pulp::cast;
#[cfg(target_arch = "x86_64")]
use pulp::x86::V4;
use tfrt_host::Error;

#[cfg(target_arch = "x86_64")]
use super::quads::{COLUMNS, Finish, WIDTH};
use crate::DType;
#[cfg(target_arch = "x86_64")]
use crate::math::packed_gemm::InstructionSet;
use crate::math::vectorized;

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

    /// Returns the number of factors, one for each column.
    pub(crate) fn n_columns(&self) -> usize {
        self.factors.len()
    }

    /// Returns the numbers that the sums of columns are multiplied by.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn factors(&self, columns: Range<usize>) -> &[f32] {
        &self.factors[columns]
    }

    /// Returns the numbers that are added to the sums of columns.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn bias(&self, columns: Range<usize>) -> &[i32] {
        &self.bias[columns]
    }

    /// Makes bytes of rows of sums, of columns from one on, each row into its place in rows of all columns.
    pub(crate) fn run(&self, first: usize, (sums, width): (&[i32], usize), out: &mut [u8]) {
        let factors = &self.factors[first..][..width];
        let bias = &self.bias[first..][..width];
        let range = self.range();
        let rows = out.chunks_exact_mut(self.factors.len().max(1));
        vectorized(
            #[inline(always)]
            || {
                for (out, sums) in rows.zip(sums.chunks_exact(width.max(1))) {
                    let by = factors.iter().zip(bias);
                    for ((out, sum), (factor, bias)) in out[first..].iter_mut().zip(sums).zip(by) {
                        *out = range.byte(sum.wrapping_add(*bias), *factor);
                    }
                }
            },
        );
    }

    /// Returns the numbers that all results are bounded by.
    pub(crate) fn range(&self) -> ByteRange {
        let least = if self.dtype == DType::I8 { -128 } else { 0 };
        // Differences of bytes are exact.
        let (least, largest) = (least - self.zero, least + 255 - self.zero);
        #[expect(clippy::cast_precision_loss, reason = "they have 9 bits")]
        let (least, largest) = (least as f32, largest as f32);
        ByteRange {
            least,
            largest,
            zero: self.zero,
            is_signed: self.dtype == DType::I8,
        }
    }
}

/// The bounds of results before the zero point is added, and that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteRange {
    least: f32,
    largest: f32,
    zero: i32,
    is_signed: bool,
}

impl ByteRange {
    /// Returns the bounds, the zero point of unsigned bytes, and the bits that differ between them and the results.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn unsigned(self) -> (f32, f32, i32, i8) {
        match self.is_signed {
            true => (self.least, self.largest, self.zero + 128, -128),
            false => (self.least, self.largest, self.zero, 0),
        }
    }

    /// Makes a byte of a sum.
    #[inline(always)]
    pub(crate) fn byte(self, sum: i32, factor: f32) -> u8 {
        #[expect(clippy::cast_precision_loss, reason = "they are rounded")]
        let value = sum as f32 * factor;
        let value = if value > self.least {
            value
        } else {
            self.least
        };
        let value = if value < self.largest {
            value
        } else {
            self.largest
        };
        nearest(value, self.zero)
    }
}

/// Rows of bytes that are made of tiles of sums.
#[cfg(target_arch = "x86_64")]
pub(super) struct ByteRows<'a> {
    simd: Option<V4>,
    by: &'a ByteEpilogue,
    /// The column of the epilogue that the product's first one is.
    first: usize,
    out: &'a mut [u8],
}

#[cfg(target_arch = "x86_64")]
impl<'a> ByteRows<'a> {
    pub(super) fn new(by: &'a ByteEpilogue, first: usize, out: &'a mut [u8]) -> ByteRows<'a> {
        ByteRows {
            simd: match InstructionSet::Avx512.is_available() {
                true => V4::try_new(),
                false => None,
            },
            by,
            first,
            out,
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Finish for ByteRows<'_> {
    fn finish(
        &mut self,
        row: usize,
        columns: Range<usize>,
        sums: &[[i32; WIDTH]],
        added: &[i32; WIDTH],
    ) {
        let width = self.by.factors.len();
        let (first, n) = (self.first + columns.start, columns.len());
        let mut factors = [0.0; WIDTH];
        factors[..n].copy_from_slice(&self.by.factors[first..][..n]);
        let tile = ByteTile {
            sums,
            added,
            factors,
            range: self.by.range(),
            n,
            out: &mut self.out[row * width + first..],
            width,
        };
        match self.simd {
            Some(simd) => simd.vectorize(Wide { simd, tile }),
            None => vectorized(
                #[inline(always)]
                || tile.run(),
            ),
        }
    }
}

/// A tile of sums that become bytes.
#[cfg(target_arch = "x86_64")]
struct ByteTile<'a> {
    sums: &'a [[i32; WIDTH]],
    added: &'a [i32; WIDTH],
    factors: [f32; WIDTH],
    range: ByteRange,
    /// Number of columns.
    n: usize,
    /// The results from the first one on, and the number of those of a row.
    out: &'a mut [u8],
    width: usize,
}

#[cfg(target_arch = "x86_64")]
impl ByteTile<'_> {
    #[inline(always)]
    fn run(self) {
        for (sums, out) in self.sums.iter().zip(self.out.chunks_mut(self.width)) {
            let mut bytes = [0; WIDTH];
            for index in 0..WIDTH {
                let sum = sums[index].wrapping_add(self.added[index]);
                bytes[index] = self.range.byte(sum, self.factors[index]);
            }
            out[..self.n].copy_from_slice(&bytes[..self.n]);
        }
    }
}

/// A tile that is finished in vectors of 512 bits.
#[cfg(target_arch = "x86_64")]
struct Wide<'a> {
    simd: V4,
    tile: ByteTile<'a>,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Wide<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (tile, by) = (self.tile, self.simd.avx512f);
        let range = tile.range;
        let added: [__m512i; 2] = cast(*tile.added);
        let factors: [__m512; 2] = cast(tile.factors);
        let (least, largest) = (
            by._mm512_set1_ps(range.least),
            by._mm512_set1_ps(range.largest),
        );
        let zero = by._mm512_set1_epi32(range.zero);
        for (sums, out) in tile.sums.iter().zip(tile.out.chunks_mut(tile.width)) {
            let sums: [__m512i; 2] = cast(*sums);
            let mut halves = [[0_u8; COLUMNS]; 2];
            for half in 0..2 {
                let sum = by._mm512_add_epi32(sums[half], added[half]);
                let value = by._mm512_mul_ps(by._mm512_cvtepi32_ps(sum), factors[half]);
                // Of what is no number, the second operand is taken.
                let value = by._mm512_min_ps(by._mm512_max_ps(value, least), largest);
                let whole = by._mm512_add_epi32(by._mm512_cvtps_epi32(value), zero);
                halves[half] = cast::<__m128i, _>(by._mm512_cvtepi32_epi8(whole));
            }
            let out = &mut out[..tile.n];
            match out.as_chunks_mut::<COLUMNS>() {
                // Each half is stored as it is made.
                ([first, second], []) => [*first, *second] = halves,
                ([first], []) => *first = halves[0],
                _ => out.copy_from_slice(&halves.as_flattened()[..tile.n]),
            }
        }
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

/// Returns the least and the largest number of a type that sums are quantised to.
pub(crate) fn range(dtype: DType) -> Result<(f64, f64), Error> {
    match dtype {
        DType::Ui8 => Ok((0.0, 255.0)),
        DType::I8 => Ok((-128.0, 127.0)),
        dtype => {
            let message = format!("sums can't be quantised to {dtype}: expected ui8 or i8");
            Err(Error::invalid_argument(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_rounded_to_even_and_saturated() {
        let made = |dtype, zero, factor: f32, sums: &[i32]| {
            let by = ByteEpilogue::new(vec![factor], vec![1], (dtype, zero)).unwrap();
            let mut out = vec![7; sums.len()];
            by.run(0, (sums, 1), &mut out);
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
