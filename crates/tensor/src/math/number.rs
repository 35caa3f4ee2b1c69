//! [`Number`], [`Real`]: arithmetic of elements of every type.

use crate::{BF16, Complex, Element, F16};

/// Elements that can be added and multiplied.
///
/// Integers wrap around. Half-precision numbers are calculated with as `f32` and rounded, to nearest, ties to
/// even.
pub trait Number: Element {
    /// Accumulator type for sums of many elements, wide enough that no step loses what the result can hold: 64 bits
    /// for integers, `f32` for half-precision numbers, else the type itself.
    type Wide: Number;

    /// The number 1.
    const ONE: Self;

    /// Returns the sum.
    fn plus(self, other: Self) -> Self;
    /// Returns the difference.
    fn minus(self, other: Self) -> Self;
    /// Returns the product.
    fn times(self, other: Self) -> Self;
    /// Returns the quotient; of integers, rounded towards zero, and 0 where the divisor is 0.
    fn over(self, other: Self) -> Self;
    /// Returns the number with the other sign.
    fn negated(self) -> Self;
    /// Returns the number in the type of sums.
    fn widened(self) -> Self::Wide;
    /// Converts back from the accumulator type: integers wrap around, floats are rounded.
    fn narrowed(wide: Self::Wide) -> Self;
}

/// Numbers with an order.
pub trait Real: Number {
    /// The least number, or minus infinity.
    const LOWEST: Self;
    /// The greatest number, or infinity.
    const HIGHEST: Self;

    /// Returns whether this number is less than the other; false if one of them is no number.
    fn less(self, other: Self) -> bool;
    /// Returns whether the two are the same number; false if one of them is no number.
    fn same(self, other: Self) -> bool;
    /// Returns the smaller number; what is no number, if one of them is none.
    fn least(self, other: Self) -> Self;
    /// Returns the larger number; what is no number, if one of them is none.
    fn greatest(self, other: Self) -> Self;
    /// Returns the size.
    fn magnitude(self) -> Self;
    /// Returns the sign as a number: -1, 0 or 1; a zero or NaN is returned itself.
    fn signum(self) -> Self;
    /// Returns the remainder of a division, with the sign of the dividend; 0 for integers where the divisor is 0.
    fn remainder(self, other: Self) -> Self;
    /// Returns the quotient, rounded down; 0 for integers where the divisor is 0.
    fn floored(self, other: Self) -> Self;
    /// Returns a sum divided by the number of its terms; of integers, rounded towards zero.
    fn mean(sum: Self::Wide, n: usize) -> Self;
    /// As an `f64`: exact for all but large 64-bit integers.
    fn to_f64(self) -> f64;
    /// Converts from an `f64`: floats are rounded to nearest, integers towards zero and to their range; what is no
    /// number becomes 0.
    fn from_f64(value: f64) -> Self;
}

/// Floats of any width.
pub trait Floating: Real {
    /// Returns the root of a sum.
    fn root(sum: Self::Wide) -> Self;
    /// Applies a function of an `f32` or `f64`, whichever is as exact.
    fn map(self, narrow: impl Fn(f32) -> f32, wide: impl Fn(f64) -> f64) -> Self;
    /// Applies a function of two numbers, of an `f32` or `f64`, whichever is as exact.
    fn map2(
        self,
        other: Self,
        narrow: impl Fn(f32, f32) -> f32,
        wide: impl Fn(f64, f64) -> f64,
    ) -> Self;
}

/// `integers!(u8, u64, |x| x, x.min(1))` implements [`Number`] and [`Real`] by the `wrapping_` functions.
macro_rules! integers {
    ($($type:ty, $wide:ty, |$x:ident| $magnitude:expr, $signum:expr;)*) => {$(
        impl Number for $type {
            type Wide = $wide;
            const ONE: Self = 1;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn over(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }

            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }

            #[inline(always)]
            fn widened(self) -> $wide {
                self.into()
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the contract says so")]
            fn narrowed(wide: $wide) -> Self {
                wide as $type
            }
        }

        impl Real for $type {
            const LOWEST: Self = Self::MIN;
            const HIGHEST: Self = Self::MAX;

            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn same(self, other: Self) -> bool {
                self == other
            }

            #[inline(always)]
            fn least(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                let $x = self;
                $magnitude
            }

            #[inline(always)]
            fn signum(self) -> Self {
                let $x = self;
                $signum
            }

            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }

            #[inline(always)]
            fn floored(self, other: Self) -> Self {
                let (quotient, rest) = (self.over(other), self.remainder(other));
                let is_below = rest != 0 && (rest < Self::ZERO) != (other < Self::ZERO);
                quotient.wrapping_sub(Self::from(is_below))
            }

            #[inline(always)]
            fn mean(sum: $wide, n: usize) -> Self {
                let n = <$wide>::try_from(n).unwrap_or(<$wide>::MAX);
                Self::narrowed(sum.over(n))
            }

            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "the contract says so")]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the contract says so")]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
        }
    )*};
}

integers! {
    u8, u64, |x| x, x.min(1);
    u16, u64, |x| x, x.min(1);
    u32, u64, |x| x, x.min(1);
    u64, u64, |x| x, x.min(1);
    i8, i64, |x| x.wrapping_abs(), x.signum();
    i16, i64, |x| x.wrapping_abs(), x.signum();
    i32, i64, |x| x.wrapping_abs(), x.signum();
    i64, i64, |x| x.wrapping_abs(), x.signum();
}

/// `floats!(f32)` implements [`Number`] and [`Real`] by the operators.
macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            type Wide = $type;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn over(self, other: Self) -> Self {
                self / other
            }

            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }

            #[inline(always)]
            fn widened(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrowed(wide: Self) -> Self {
                wide
            }
        }

        impl Real for $type {
            const LOWEST: Self = <$type>::NEG_INFINITY;
            const HIGHEST: Self = <$type>::INFINITY;

            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn same(self, other: Self) -> bool {
                #[allow(clippy::float_cmp, reason = "it is what is asked")]
                let is_same = self == other;
                is_same
            }

            #[inline(always)]
            fn least(self, other: Self) -> Self {
                let value = if self < other { self } else { other };
                if self.is_nan() { self } else { value }
            }

            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                let value = if self > other { self } else { other };
                if self.is_nan() { self } else { value }
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }

            #[inline(always)]
            fn signum(self) -> Self {
                let value = <$type>::copysign(1.0, self);
                if self == 0.0 || self.is_nan() { self } else { value }
            }

            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                self % other
            }

            #[inline(always)]
            fn floored(self, other: Self) -> Self {
                (self / other).floor()
            }

            #[inline(always)]
            #[allow(clippy::cast_precision_loss, reason = "a number of 2^24 terms is rounded")]
            fn mean(sum: Self, n: usize) -> Self {
                sum / n as $type
            }

            #[inline(always)]
            #[allow(clippy::cast_lossless, reason = "one of the two needs no cast")]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the contract says so")]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
        }
    )*};
}

floats!(f32, f64);

impl Floating for f32 {
    #[inline(always)]
    fn root(sum: f32) -> Self {
        sum.sqrt()
    }

    #[inline(always)]
    fn map(self, narrow: impl Fn(f32) -> f32, _: impl Fn(f64) -> f64) -> Self {
        narrow(self)
    }

    #[inline(always)]
    fn map2(
        self,
        other: Self,
        narrow: impl Fn(f32, f32) -> f32,
        _: impl Fn(f64, f64) -> f64,
    ) -> Self {
        narrow(self, other)
    }
}

impl Floating for f64 {
    #[inline(always)]
    fn root(sum: f64) -> Self {
        sum.sqrt()
    }

    #[inline(always)]
    fn map(self, _: impl Fn(f32) -> f32, wide: impl Fn(f64) -> f64) -> Self {
        wide(self)
    }

    #[inline(always)]
    fn map2(
        self,
        other: Self,
        _: impl Fn(f32, f32) -> f32,
        wide: impl Fn(f64, f64) -> f64,
    ) -> Self {
        wide(self, other)
    }
}

/// A half-precision number as an `f32`, and back.
trait Half: Element {
    fn widen(self) -> f32;
    fn narrow(value: f32) -> Self;
    fn round(value: f64) -> Self;
}

/// Rounds a number to an `f32` so that a second rounding, to fewer bits, gives the same as one of the number itself: towards
/// zero, and with the last bit set if that lost something.
#[allow(clippy::cast_possible_truncation, reason = "it is rounded")]
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back == value || value.is_nan() || near.is_infinite() {
        return near;
    }
    let towards_zero = near.to_bits() - u32::from(back.abs() > value.abs());
    f32::from_bits(towards_zero | 1)
}

impl Half for F16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        half::f16::from_bits(self.0).to_f32()
    }

    #[inline(always)]
    fn narrow(value: f32) -> F16 {
        F16(half::f16::from_f32(value).to_bits())
    }

    fn round(value: f64) -> F16 {
        Half::narrow(to_odd(value))
    }
}

impl Half for BF16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    fn narrow(value: f32) -> BF16 {
        BF16(half::bf16::from_f32(value).to_bits())
    }

    fn round(value: f64) -> BF16 {
        Half::narrow(to_odd(value))
    }
}

/// `halves!(F16 0x3c00, 0x7c00)` implements all of the above for `F16` through `f32`; the numbers are the bits
/// of 1 and of infinity.
macro_rules! halves {
    ($($type:ident, $one:expr, $infinity:expr;)*) => {$(
        impl Number for $type {
            type Wide = f32;
            const ONE: Self = $type($one);

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                Half::narrow(self.widen() + other.widen())
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                Half::narrow(self.widen() - other.widen())
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Half::narrow(self.widen() * other.widen())
            }

            #[inline(always)]
            fn over(self, other: Self) -> Self {
                Half::narrow(self.widen() / other.widen())
            }

            #[inline(always)]
            fn negated(self) -> Self {
                $type(self.0 ^ 0x8000)
            }

            #[inline(always)]
            fn widened(self) -> f32 {
                self.widen()
            }

            #[inline(always)]
            fn narrowed(wide: f32) -> Self {
                Half::narrow(wide)
            }
        }

        impl Real for $type {
            const LOWEST: Self = $type($infinity | 0x8000);
            const HIGHEST: Self = $type($infinity);

            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self.widen() < other.widen()
            }

            #[inline(always)]
            fn same(self, other: Self) -> bool {
                self.widen().same(other.widen())
            }

            #[inline(always)]
            fn least(self, other: Self) -> Self {
                Half::narrow(self.widen().least(other.widen()))
            }

            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                Half::narrow(self.widen().greatest(other.widen()))
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                $type(self.0 & 0x7fff)
            }

            #[inline(always)]
            fn signum(self) -> Self {
                Half::narrow(Real::signum(self.widen()))
            }

            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                Half::narrow(self.widen() % other.widen())
            }

            #[inline(always)]
            fn floored(self, other: Self) -> Self {
                Half::narrow((self.widen() / other.widen()).floor())
            }

            #[inline(always)]
            #[allow(clippy::cast_precision_loss, reason = "a number of 2^24 terms is rounded")]
            fn mean(sum: f32, n: usize) -> Self {
                Half::narrow(sum / n as f32)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.widen().into()
            }

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Half::round(value)
            }
        }

        impl Floating for $type {
            #[inline(always)]
            fn root(sum: f32) -> Self {
                Half::narrow(sum.sqrt())
            }

            #[inline(always)]
            fn map(self, narrow: impl Fn(f32) -> f32, _: impl Fn(f64) -> f64) -> Self {
                Half::narrow(narrow(self.widen()))
            }

            #[inline(always)]
            fn map2(
                self,
                other: Self,
                narrow: impl Fn(f32, f32) -> f32,
                _: impl Fn(f64, f64) -> f64,
            ) -> Self {
                Half::narrow(narrow(self.widen(), other.widen()))
            }
        }
    )*};
}

halves! {
    F16, 0x3c00, 0x7c00;
    BF16, 0x3f80, 0x7f80;
}

/// `complex!(f32)` implements [`Number`] for complex numbers of `f32`s.
macro_rules! complex {
    ($($part:ty),*) => {$(
        impl Number for Complex<$part> {
            type Wide = Self;
            const ONE: Self = Complex { real: 1.0, imaginary: 0.0 };

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                Complex {
                    real: self.real + other.real,
                    imaginary: self.imaginary + other.imaginary,
                }
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                Complex {
                    real: self.real - other.real,
                    imaginary: self.imaginary - other.imaginary,
                }
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Complex {
                    real: self.real * other.real - self.imaginary * other.imaginary,
                    imaginary: self.real * other.imaginary + self.imaginary * other.real,
                }
            }

            /// Divides by Smith's method, which does not overflow where the result does not.
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                let (c, d) = (other.real, other.imaginary);
                if c.abs() >= d.abs() {
                    let ratio = d / c;
                    let scale = c + d * ratio;
                    return Complex {
                        real: (self.real + self.imaginary * ratio) / scale,
                        imaginary: (self.imaginary - self.real * ratio) / scale,
                    };
                }
                let ratio = c / d;
                let scale = c * ratio + d;
                Complex {
                    real: (self.real * ratio + self.imaginary) / scale,
                    imaginary: (self.imaginary * ratio - self.real) / scale,
                }
            }

            #[inline(always)]
            fn negated(self) -> Self {
                Complex { real: -self.real, imaginary: -self.imaginary }
            }

            #[inline(always)]
            fn widened(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrowed(wide: Self) -> Self {
                wide
            }
        }
    )*};
}

complex!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers a hair from the middle between two halves, which an `f32` takes for the middle; the bits are numpy's and those
    /// of ml_dtypes.
    #[test]
    fn halves_of_an_f64_are_rounded_once() {
        let hair = 1.0 + f64::EPSILON;
        for (value, f16, bf16) in [
            (1.000_488_281_25, 0x3c00, 0x3f80),
            (1.000_488_281_25 * hair, 0x3c01, 0x3f80),
            (-1.000_488_281_25 * hair, 0xbc01, 0xbf80),
            (1.001_464_843_75 / hair, 0x3c01, 0x3f80),
            (1.003_906_25, 0x3c04, 0x3f80),
            (1.003_906_25 * hair, 0x3c04, 0x3f81),
            (65_520.0 / hair, 0x7bff, 0x4780),
            (65_520.0, 0x7c00, 0x4780),
            (2_f64.powi(-25) * hair, 0x0001, 0x3300),
            (2_f64.powi(-25), 0x0000, 0x3300),
            (1e-310, 0x0000, 0x0000),
            (-1e-310, 0x8000, 0x8000),
            (1e300, 0x7c00, 0x7f80),
            (f64::NEG_INFINITY, 0xfc00, 0xff80),
        ] {
            assert_eq!(F16::from_f64(value).0, f16, "{value:?}");
            assert_eq!(BF16::from_f64(value).0, bf16, "{value:?}");
        }
        assert!(F16::from_f64(f64::NAN).widened().is_nan());
        assert!(BF16::from_f64(f64::NAN).widened().is_nan());
    }
}
