//! Numbers of `f32` as integers of 8 and 16 bits, and back, in vectors: neighbours that share a scale at a time.
//!
//! A quotient of two `f32`, rounded to `f32`, is the same whether it is calculated in 32 or in 64 bits, and so is the
//! product of one with an integer of 17 bits. So the bits are those of the general way.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::QuantParams;
use crate::math::elementwise::expect_same;
use crate::math::number::Real;
use crate::math::{parallel, vectorized};
use crate::{DType, DenseHostTensor, Element};

/// The shortest run of neighbours that share a scale for which vectors are worth it.
const SHORTEST: usize = 8;

/// Returns whether these parameters lead from `floats` to `integers`, and are such as vectors are written for.
pub(super) fn takes(
    params: &QuantParams,
    floats: &DenseHostTensor,
    integers: &DenseHostTensor,
) -> bool {
    let is_single = |list: &[f64]| list.iter().all(|one| f64::from(single(*one)) == *one);
    let is_narrow = matches!(
        integers.dtype(),
        DType::Ui8 | DType::I8 | DType::Ui16 | DType::I16
    );
    floats.dtype() == DType::F32
        && is_narrow
        && params.n_alike(0) >= SHORTEST
        && is_single(&params.scales)
        && params
            .zeros
            .iter()
            .all(|zero| zero.abs() <= 65535.0 && zero.trunc() == *zero)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it is asked whether it is the same"
)]
fn single(number: f64) -> f32 {
    number as f32
}

/// Quantises in vectors.
pub(super) fn quantize_into(
    execution: &ExecutionContext,
    params: QuantParams,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    match out.dtype() {
        DType::Ui8 => narrowed::<u8>(execution, params, x, out),
        DType::I8 => narrowed::<i8>(execution, params, x, out),
        DType::Ui16 => narrowed::<u16>(execution, params, x, out),
        _ => narrowed::<i16>(execution, params, x, out),
    }
}

/// Dequantises in vectors.
pub(super) fn dequantize_into(
    execution: &ExecutionContext,
    params: QuantParams,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    match x.dtype() {
        DType::Ui8 => widened::<u8>(execution, params, x, out),
        DType::I8 => widened::<i8>(execution, params, x, out),
        DType::Ui16 => widened::<u16>(execution, params, x, out),
        _ => widened::<i16>(execution, params, x, out),
    }
}

/// An integer of 8 or 16 bits.
pub(super) trait Narrow: Element + Real + Into<f32> {
    const LEAST: f32;
    const LARGEST: f32;

    /// Takes the low bits.
    fn from_bits(bits: u32) -> Self;
}

/// `narrow!(u8)` implements [`Narrow`] by a conversion `as u8`.
macro_rules! narrow {
    ($($type:ty),*) => {$(
        impl Narrow for $type {
            const LEAST: f32 = <$type>::MIN as f32;
            const LARGEST: f32 = <$type>::MAX as f32;

            #[inline(always)]
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                reason = "the low bits are what is asked for"
            )]
            fn from_bits(bits: u32) -> Self {
                bits as $type
            }
        }
    )*};
}

narrow!(u8, i8, u16, i16);

/// Saturates a whole number; what is no number becomes 0.
#[inline(always)]
pub(super) fn saturated<Q: Narrow>(whole: f32) -> Q {
    /// A sum of this and a small whole number has that in its low bits.
    const WHOLE: f32 = 12_582_912.0;
    // Each is one instruction, unlike conversions that ask for what is no number.
    let whole = if whole.is_nan() { 0.0 } else { whole };
    let whole = if whole > Q::LEAST { whole } else { Q::LEAST };
    let whole = if whole < Q::LARGEST {
        whole
    } else {
        Q::LARGEST
    };
    Q::from_bits((whole + WHOLE).to_bits())
}

fn narrowed<Q: Narrow>(
    execution: &ExecutionContext,
    params: QuantParams,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_same(x.shape(), out.shape())?;
    let x = x.clone();
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(2, 1),
        move |first, out: &mut [Q]| {
            let reading = x.read()?;
            let x = &reading.elements::<f32>()?[first..][..out.len()];
            each_run(&params, first, out.len(), |run, scale, zero| {
                let pairs = out[run.clone()].iter_mut().zip(&x[run]);
                vectorized(
                    #[inline(always)]
                    || {
                        for (out, x) in pairs {
                            let whole = (x / scale).round_ties_even() + zero;
                            *out = saturated(whole);
                        }
                    },
                );
            });
            Ok(())
        },
    )
}

fn widened<Q: Narrow>(
    execution: &ExecutionContext,
    params: QuantParams,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_same(x.shape(), out.shape())?;
    let x = x.clone();
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(2, 1),
        move |first, out: &mut [f32]| {
            let reading = x.read()?;
            let x = &reading.elements::<Q>()?[first..][..out.len()];
            each_run(&params, first, out.len(), |run, scale, zero| {
                let pairs = out[run.clone()].iter_mut().zip(&x[run]);
                vectorized(
                    #[inline(always)]
                    || {
                        for (out, x) in pairs {
                            let x: f32 = (*x).into();
                            *out = (x - zero) * scale;
                        }
                    },
                );
            });
            Ok(())
        },
    )
}

/// Calls `body` with each run of neighbours that share a scale, its scale and its zero point, among `n` elements from the
/// `first` on. Runs are counted from there.
fn each_run(
    params: &QuantParams,
    first: usize,
    n: usize,
    mut body: impl FnMut(std::ops::Range<usize>, f32, f32),
) {
    let mut at = 0;
    while at < n {
        let len = params.n_alike(first + at).min(n - at);
        let (scale, zero) = params.of(first + at);
        body(at..at + len, single(scale), single(zero));
        at += len;
    }
}

/// Returns the least and the largest of numbers and 0; what is no number is left out.
pub fn extremes(list: &[f32]) -> (f32, f32) {
    const LANES: usize = 32;
    let (chunks, rest) = list.as_chunks::<LANES>();
    let (least, largest) = vectorized(
        #[inline(always)]
        || {
            let (mut least, mut largest) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            for chunk in chunks {
                for lane in 0..LANES {
                    let x = chunk[lane];
                    // A comparison with what is no number does not hold.
                    least[lane] = if x < least[lane] { x } else { least[lane] };
                    largest[lane] = if x > largest[lane] { x } else { largest[lane] };
                }
            }
            (least, largest)
        },
    );
    let of = |start: &[f32], better: fn(f32, f32) -> f32| {
        start
            .iter()
            .chain(rest)
            .fold(0.0, |best, x| better(best, *x))
    };
    (of(&least, f32::min), of(&largest, f32::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_those_of_all_numbers_and_0() {
        let mut list: Vec<f32> = (0_u8..100).map(|one| f32::from(one) / 4.0 - 3.0).collect();
        assert_eq!(extremes(&list), (-3.0, 21.75));
        list[40] = f32::NAN;
        list[70] = f32::INFINITY;
        assert_eq!(extremes(&list), (-3.0, f32::INFINITY));
        assert_eq!(extremes(&[f32::NAN, 3.0]), (0.0, 3.0));
        assert_eq!(extremes(&[]), (0.0, 0.0));
    }

    #[test]
    fn the_ends_of_ranges_are_reached() {
        let numbers = [
            f32::NAN,
            f32::NEG_INFINITY,
            -70000.0,
            -128.0,
            3.0,
            127.0,
            255.0,
            65535.0,
            1e9,
        ];
        fn all<Q: Narrow>(numbers: &[f32]) -> Vec<f32> {
            numbers.iter().map(|x| saturated::<Q>(*x).into()).collect()
        }
        assert_eq!(
            all::<u8>(&numbers),
            [0.0, 0.0, 0.0, 0.0, 3.0, 127.0, 255.0, 255.0, 255.0]
        );
        assert_eq!(
            all::<i8>(&numbers),
            [0.0, -128.0, -128.0, -128.0, 3.0, 127.0, 127.0, 127.0, 127.0]
        );
        assert_eq!(
            all::<u16>(&numbers),
            [0.0, 0.0, 0.0, 0.0, 3.0, 127.0, 255.0, 65535.0, 65535.0]
        );
        assert_eq!(
            all::<i16>(&numbers),
            [
                0.0, -32768.0, -32768.0, -128.0, 3.0, 127.0, 255.0, 32767.0, 32767.0
            ]
        );
    }

    #[test]
    fn bits_are_those_of_64_bits() {
        let scales = [
            0.1_f32,
            1.0,
            3.7e-3,
            1e30,
            1e-38,
            f32::INFINITY,
            0.0,
            f32::NAN,
        ];
        let numbers = (0..4000_u16).map(|index| {
            let one = f32::from(index) - 2000.0;
            one * one * one * 3.1e-5
        });
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.05, -0.0, 3e38];
        let numbers: Vec<f32> = numbers.chain(special).collect();
        for scale in scales {
            for zero in [0.0_f32, 128.0, 255.0] {
                for x in &numbers {
                    let narrow = {
                        let whole = (x / scale).round_ties_even() + zero;
                        saturated::<u8>(whole)
                    };
                    let quotient = single(f64::from(*x) / f64::from(scale));
                    let whole = f64::from(quotient).round_ties_even() + f64::from(zero);
                    assert_eq!(
                        narrow,
                        <u8 as Real>::from_f64(whole.clamp(0.0, 255.0)),
                        "{x} / {scale}"
                    );
                }
            }
        }
    }
}
