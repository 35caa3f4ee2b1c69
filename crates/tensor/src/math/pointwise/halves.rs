//! Floats of 16 bits as `f32`, and back: by the same operations for each, so that loops become vectors.
//!
//! The results are those of the processor's instructions and of the crate `half`: rounded to nearest, ties to even;
//! what is no number keeps its sign and the upper bits of its payload, and is quiet.

use super::f16c;
use super::table::{seen, seen_mut};
use crate::math::vectorized;
use crate::{BF16, DType};

/// Converts halves to `f32`.
pub(in crate::math) fn widen(dtype: DType, x: &[u8], out: &mut [u8]) {
    match dtype {
        DType::F16 => {
            let (x, out) = (seen(x), seen_mut(out));
            let n_done = f16c::widen(x, out);
            vectorized(
                #[inline(always)]
                || {
                    for (out, x) in out[n_done..].iter_mut().zip(&x[n_done..]) {
                        *out = of_f16(*x);
                    }
                },
            );
        }
        _ => vectorized(
            #[inline(always)]
            || {
                for (out, x) in seen_mut::<f32>(out).iter_mut().zip(seen::<BF16>(x)) {
                    *out = f32::from_bits(u32::from(x.0) << 16);
                }
            },
        ),
    }
}

/// Rounds `f32` to halves.
pub(in crate::math) fn narrow(dtype: DType, x: &[u8], out: &mut [u8]) {
    match dtype {
        DType::F16 => {
            let (x, out) = (seen(x), seen_mut(out));
            let n_done = f16c::narrow(x, out);
            vectorized(
                #[inline(always)]
                || {
                    for (out, x) in out[n_done..].iter_mut().zip(&x[n_done..]) {
                        *out = to_f16(*x);
                    }
                },
            );
        }
        _ => vectorized(
            #[inline(always)]
            || {
                for (out, x) in seen_mut::<BF16>(out).iter_mut().zip(seen::<f32>(x)) {
                    *out = BF16(to_bf16(*x));
                }
            },
        ),
    }
}

/// Selects one of two numbers, both calculated: a branch would keep a loop from being vectorized.
#[inline(always)]
fn choose(condition: bool, yes: u32, no: u32) -> u32 {
    let mask = u32::from(condition).wrapping_neg();
    (yes & mask) | (no & !mask)
}

#[inline(always)]
fn of_f16(half: u16) -> f32 {
    const LEAST_NORMAL: u32 = 0x400 << 13;
    const INFINITY: u32 = 0x7c00 << 13;
    /// Difference of the exponents' biases.
    const EXPONENT: u32 = (127 - 15) << 23;
    let bits = u32::from(half);
    let size = (bits & 0x7fff) << 13;
    // Of a number below the normal ones: its bits behind those of 2^-14, from which that is taken away.
    let small = f32::from_bits(size.wrapping_add(EXPONENT + (1 << 23))) - f32::from_bits(113 << 23);
    let normal = size.wrapping_add(EXPONENT);
    let none = choose(size > INFINITY, 0x7fc0_0000, 0x7f80_0000) | (size & 0x007f_ffff);
    let wide = choose(size < LEAST_NORMAL, small.to_bits(), normal);
    let wide = choose(size >= INFINITY, none, wide);
    f32::from_bits(wide | (bits & 0x8000) << 16)
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "what is above is 0")]
fn to_f16(value: f32) -> u16 {
    const INFINITY: u32 = 0x7f80_0000;
    /// Bits of 2^16, from which on all is infinite.
    const TOO_LARGE: u32 = (127 + 16) << 23;
    const LEAST_NORMAL: u32 = (127 - 14) << 23;
    /// Number that leaves the rounded bits of a subnormal in the lowest bits, when added.
    const ROUNDER: u32 = (127 - 15 + 23 - 10 + 1) << 23;
    let bits = value.to_bits();
    let size = bits & 0x7fff_ffff;
    let small = (f32::from_bits(size) + f32::from_bits(ROUNDER))
        .to_bits()
        .wrapping_sub(ROUNDER);
    let is_odd = (size >> 13) & 1;
    let normal = size
        .wrapping_sub((127 - 15) << 23)
        .wrapping_add(0xfff + is_odd)
        >> 13;
    let none = choose(size > INFINITY, 0x7e00 | ((size >> 13) & 0x3ff), 0x7c00);
    let half = choose(size < LEAST_NORMAL, small, normal);
    let half = choose(size >= TOO_LARGE, none, half);
    (half | (bits & 0x8000_0000) >> 16) as u16
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "what is above is 0")]
fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let is_odd = (bits >> 16) & 1;
    let rounded = bits.wrapping_add(0x7fff + is_odd) >> 16;
    let quiet = (bits >> 16) | 0x40;
    choose(bits & 0x7fff_ffff > 0x7f80_0000, quiet, rounded) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{to_bytes, to_bytes_mut};

    #[test]
    fn halves_are_widened_as_the_processor_does() {
        for bits in 0..=u16::MAX {
            let wanted = half::f16::from_bits(bits).to_f32();
            assert_eq!(of_f16(bits).to_bits(), wanted.to_bits(), "{bits:#x}");
            let mut out = [0.0; 9];
            widen(DType::F16, to_bytes(&[bits; 9]), to_bytes_mut(&mut out));
            assert_eq!(out.map(f32::to_bits), [wanted.to_bits(); 9], "{bits:#x}");
        }
    }

    #[test]
    fn halves_are_rounded_as_the_processor_does() {
        // Each exponent with the bits that decide: the last that stays, the first that goes, and whether one follows.
        let fractions = (0..1 << 8)
            .map(|high: u32| high << 12)
            .chain((0..1 << 8).map(|middle| middle << 9))
            .chain((0..64).map(|bit| 0x7f_ffff >> (bit % 23)));
        for fraction in fractions {
            for upper in 0..512_u32 {
                for more in [0, 1, 0x7ff] {
                    let value = f32::from_bits(upper << 23 | (fraction ^ more) & 0x7f_ffff);
                    let wanted = half::f16::from_f32(value).to_bits();
                    assert_eq!(to_f16(value), wanted, "{:#x}", value.to_bits());
                    let mut out = [0_u16; 9];
                    narrow(DType::F16, to_bytes(&[value; 9]), to_bytes_mut(&mut out));
                    assert_eq!(out, [wanted; 9], "{:#x}", value.to_bits());
                    let wanted = half::bf16::from_f32(value).to_bits();
                    assert_eq!(to_bf16(value), wanted, "{:#x}", value.to_bits());
                }
            }
        }
    }
}
