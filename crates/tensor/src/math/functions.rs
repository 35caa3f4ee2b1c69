//! Functions of one number, written so that the compiler turns loops over them into vectors: no branches,
//! no tables, no calls.
//!
//! | Function | Computed by | Error in `f32`, at most |
//! | --- | --- | --- |
//! | [`exp`](Float::exp), [`expm1`](Float::expm1) | 2^n times the Taylor series of e^r, with `|r| <= ln 2 / 2` | 2 ulp |
//! | [`ln`](Float::ln) | n ln 2 + the series of 2 artanh((m - 1) / (m + 1)), with `m` near 1 | 2 ulp |
//! | [`tanh`](Float::tanh), [`sigmoid`](Float::sigmoid) | from `expm1` and `exp` | 4 ulp |
//! | [`erf`](Float::erf) | its Maclaurin series below 1; formula 7.1.26 of Abramowitz and Stegun above | 4 ulp |
//!
//! The tests measure these bounds against `f64`. `f64` itself goes through the standard library, and for
//! [`erf`](Float::erf) through `libm`.

#![allow(
    clippy::excessive_precision,
    reason = "coefficients have the digits of their source"
)]

/// A float that the functions are written for.
pub trait Float: Copy {
    /// e^x
    fn exp(self) -> Self;
    /// e^x - 1, exact near 0
    fn expm1(self) -> Self;
    /// The natural logarithm
    fn ln(self) -> Self;
    /// The hyperbolic tangent
    fn tanh(self) -> Self;
    /// 1 / (1 + e^-x)
    fn sigmoid(self) -> Self;
    /// The error function
    fn erf(self) -> Self;
}

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts: the first has zeros at its end, so that a small multiple of it is exact.
const LN_2_HIGH: f32 = 0.693_359_375;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Adding this to a small float rounds it to a whole number, which then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// From a little below this on, e^x is infinite.
const EXP_MAX: f32 = 89.0;
/// From a little above this on, e^x is 0.
const EXP_MIN: f32 = -104.5;

/// Splits x into n and r with x = n ln 2 + r, and returns e^r - 1 and n.
#[inline(always)]
fn reduce_exp(x: f32) -> (f32, f32) {
    let n = x.mul_fast(LOG2_E, ROUNDER) - ROUNDER;
    let r = n.mul_fast(-LN_2_HIGH, x);
    let r = n.mul_fast(-LN_2_LOW, r);
    // The Taylor series without its first term, by Horner's rule: the next term is below 1e-8.
    let mut series = 1.0 / 5_040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0] {
        series = r.mul_fast(series, coefficient);
    }
    ((r * r).mul_fast(series, r), n)
}

/// 2^n for a whole n of at most 127 in size.
#[inline(always)]
fn power_of_two(n: f32) -> f32 {
    // Adding n to 1.5 * 2^23 puts it into the lowest bits; shifted, it is the exponent.
    let bits = (n + (ROUNDER + 127.0)).to_bits();
    f32::from_bits(bits << 23)
}

/// One of two floats, both of which are calculated: a branch would keep a loop from becoming vectors.
#[inline(always)]
fn choose(condition: bool, yes: f32, no: f32) -> f32 {
    let mask = u32::from(condition).wrapping_neg();
    f32::from_bits((yes.to_bits() & mask) | (no.to_bits() & !mask))
}

/// A product and a sum, rounded twice. Fused ones would differ between processors.
trait MulFast {
    fn mul_fast(self, factor: Self, addend: Self) -> Self;
}

impl MulFast for f32 {
    #[inline(always)]
    fn mul_fast(self, factor: f32, addend: f32) -> f32 {
        self * factor + addend
    }
}

impl Float for f32 {
    #[inline(always)]
    fn exp(self) -> f32 {
        // Beyond these bounds the products below are infinite, or 0; what is no number stays none.
        let (fraction, n) = reduce_exp(self.clamp(EXP_MIN, EXP_MAX));
        // In two steps, so that results below the normal numbers are reached.
        let half = (n * 0.5 + ROUNDER) - ROUNDER;
        (1.0 + fraction) * power_of_two(half) * power_of_two(n - half)
    }

    #[inline(always)]
    fn expm1(self) -> f32 {
        let x = self.clamp(-20.0, EXP_MAX);
        let (fraction, n) = reduce_exp(x);
        let half = (n * 0.5 + ROUNDER) - ROUNDER;
        let (a, b) = (power_of_two(half), power_of_two(n - half));
        // 2^n (1 + f) - 1 = 2^n f + (2^n - 1), where the second is exact for small n.
        let value = fraction * a * b + (a * b - 1.0);
        let large = (1.0 + fraction) * a * b;
        let value = choose(n > 100.0, large, value);
        let value = if self > EXP_MAX { f32::INFINITY } else { value };
        // Keeps the sign of 0, and what is no number.
        if self == 0.0 || self.is_nan() {
            self
        } else {
            value
        }
    }

    #[inline(always)]
    fn ln(self) -> f32 {
        // Subnormal numbers are scaled to be normal.
        let is_small = self < f32::MIN_POSITIVE;
        let x = if is_small { self * 8_388_608.0 } else { self };
        let bits = x.to_bits();
        // The exponent of x / sqrt(1/2), so that the rest lies between sqrt(1/2) and sqrt(2).
        let offset = bits.wrapping_sub(0x3f35_04f3);
        let exponent = offset.cast_signed() >> 23;
        let mantissa = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3));
        #[allow(clippy::cast_precision_loss, reason = "exponents are small")]
        let n = exponent as f32 - if is_small { 23.0 } else { 0.0 };
        let f = mantissa - 1.0;
        let s = f / (2.0 + f);
        let t = s * s;
        let mut series = 2.0 / 11.0;
        for coefficient in [2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0] {
            series = t.mul_fast(series, coefficient);
        }
        // ln m = 2 s + s t series, and 2 s = f - s f: the first term is exact.
        let square = 0.5 * f * f;
        let rest = s * (square + t * series);
        let value = n * LN_2_HIGH + (f - (square - (rest + n * LN_2_LOW)));
        let value = if self == 0.0 {
            f32::NEG_INFINITY
        } else {
            value
        };
        let value = if self < 0.0 { f32::NAN } else { value };
        if self == f32::INFINITY || self.is_nan() {
            self
        } else {
            value
        }
    }

    #[inline(always)]
    fn tanh(self) -> f32 {
        // Beyond 9 the nearest float is 1.
        let magnitude = self.abs().min(10.0);
        let e = Float::expm1(2.0 * magnitude);
        let value = (e / (e + 2.0)).copysign(self);
        if self.is_nan() { self } else { value }
    }

    #[inline(always)]
    fn sigmoid(self) -> f32 {
        let e = Float::exp(-self.abs());
        let positive = 1.0 / (1.0 + e);
        choose(self < 0.0, e * positive, positive)
    }

    #[inline(always)]
    fn erf(self) -> f32 {
        let x = self.abs().min(4.0);
        let t = x * x;
        // 2/sqrt(pi) (x - x^3/3 + x^5/10 - x^7/42 + ...): n-th coefficient (-1)^n / (n! (2 n + 1)).
        let mut series = 1.0 / 76_204_800.0;
        for coefficient in [
            -1.0 / 6_894_720.0,
            1.0 / 685_440.0,
            -1.0 / 75_600.0,
            1.0 / 9_360.0,
            -1.0 / 1_320.0,
            1.0 / 216.0,
            -1.0 / 42.0,
            1.0 / 10.0,
            -1.0 / 3.0,
            1.0,
        ] {
            series = t.mul_fast(series, coefficient);
        }
        let small = std::f32::consts::FRAC_2_SQRT_PI * x * series;
        // 1 - (a1 u + ... + a5 u^5) e^(-x^2) with u = 1 / (1 + p x)
        let u = 1.0 / x.mul_fast(0.327_591_1, 1.0);
        let mut polynomial = 1.061_405_429;
        for coefficient in [-1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592] {
            polynomial = u.mul_fast(polynomial, coefficient);
        }
        let large = 1.0 - u * polynomial * Float::exp(-t);
        let value = choose(x < 1.0, small, large);
        if self.is_nan() {
            self
        } else {
            value.copysign(self)
        }
    }
}

impl Float for f64 {
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self)
    }

    #[inline(always)]
    fn expm1(self) -> f64 {
        f64::exp_m1(self)
    }

    #[inline(always)]
    fn ln(self) -> f64 {
        f64::ln(self)
    }

    #[inline(always)]
    fn tanh(self) -> f64 {
        f64::tanh(self)
    }

    #[inline(always)]
    fn sigmoid(self) -> f64 {
        let e = f64::exp(-self.abs());
        let positive = 1.0 / (1.0 + e);
        if self < 0.0 { e * positive } else { positive }
    }

    #[inline(always)]
    fn erf(self) -> f64 {
        libm::erf(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Float;

    /// The error of `found` in units of the last place of `exact`.
    fn error_ulps(found: f32, exact: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, reason = "it is what is wanted")]
        let nearest = exact as f32;
        if found == nearest || (found.is_nan() && nearest.is_nan()) {
            return 0.0;
        }
        let ulp = f64::from(f32::from_bits(nearest.abs().to_bits() + 1)) - f64::from(nearest.abs());
        (f64::from(found) - exact).abs() / ulp
    }

    #[track_caller]
    fn check(own: fn(f32) -> f32, exact: fn(f64) -> f64, range: (f32, f32), max_ulps: f64) {
        let mut worst = (0.0, 0.0);
        let n = 800_000_usize;
        for index in 0..=n {
            #[allow(clippy::cast_precision_loss, reason = "they are samples")]
            let x = range.0 + (range.1 - range.0) * (index as f32 / n as f32);
            let error = error_ulps(own(x), exact(x.into()));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        assert!(worst.0 <= max_ulps, "{} ulp at {}", worst.0, worst.1);
    }

    #[test]
    fn functions_are_near_the_exact_ones() {
        check(Float::exp, f64::exp, (-87.3, 88.7), 2.0);
        check(Float::expm1, f64::exp_m1, (-18.0, 88.0), 3.0);
        check(Float::expm1, f64::exp_m1, (-0.5, 0.5), 3.0);
        check(Float::ln, f64::ln, (1e-38, 1e-3), 2.0);
        check(Float::ln, f64::ln, (0.001, 3.0), 2.0);
        check(Float::ln, f64::ln, (1.0, 1e38), 2.0);
        check(Float::tanh, f64::tanh, (-12.0, 12.0), 4.0);
        check(Float::tanh, f64::tanh, (-0.1, 0.1), 4.0);
        check(
            Float::sigmoid,
            |x| 1.0 / (1.0 + (-x).exp()),
            (-80.0, 80.0),
            4.0,
        );
        check(Float::erf, libm::erf, (-5.0, 5.0), 4.0);
        check(Float::erf, libm::erf, (-0.01, 0.01), 4.0);
    }

    #[test]
    fn special_numbers_give_what_they_should() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        assert_eq!(Float::exp(inf), inf);
        assert_eq!(Float::exp(-inf), 0.0);
        assert_eq!(Float::exp(89.0_f32), inf);
        assert_eq!(Float::exp(-104.0_f32), 0.0);
        assert!(error_ulps(Float::exp(-100.0_f32), (-100.0_f64).exp()) <= 1.0);
        assert_eq!(Float::expm1(-inf), -1.0);
        assert_eq!(Float::expm1(inf), inf);
        assert!(Float::expm1(-0.0_f32).is_sign_negative());
        assert_eq!(Float::expm1(1e-30_f32), 1e-30);
        assert_eq!(Float::ln(0.0_f32), -inf);
        assert_eq!(Float::ln(inf), inf);
        assert!(Float::ln(-1.0_f32).is_nan());
        assert!(error_ulps(Float::ln(1e-45_f32), f64::from(1e-45_f32).ln()) <= 2.0);
        assert_eq!(Float::ln(1.0_f32), 0.0);
        assert_eq!((Float::tanh(inf), Float::tanh(-inf)), (1.0, -1.0));
        assert!(Float::tanh(-0.0_f32).is_sign_negative());
        assert_eq!((Float::sigmoid(inf), Float::sigmoid(-inf)), (1.0, 0.0));
        assert_eq!((Float::erf(inf), Float::erf(-inf)), (1.0, -1.0));
        for function in [
            Float::exp,
            Float::expm1,
            Float::ln,
            Float::tanh,
            Float::sigmoid,
            Float::erf,
        ] {
            let function: fn(f32) -> f32 = function;
            assert!(function(nan).is_nan());
        }
    }
}
