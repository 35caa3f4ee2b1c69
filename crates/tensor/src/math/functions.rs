//! Functions of one number, written so that the compiler vectorizes loops over them: no branches, no tables, no
//! calls.
//!
//! | Function | Computed by | Error in `f32`, at most |
//! | --- | --- | --- |
//! | [`exp`](Float::exp), [`expm1`](Float::expm1) | 2^n times 1 + r + r² P(r), with `|r| <= ln 2 / 2` | 2 ulp, 3 ulp |
//! | [`ln`](Float::ln), [`ln_1p`](Float::ln_1p) | n ln 2 + the series of 2 artanh((m - 1) / (m + 1)), with `m` near 1 | 2 ulp, 3 ulp |
//! | [`sigmoid`](Float::sigmoid) | from `exp` | 4 ulp |
//! | [`softplus`](Float::softplus) | from `exp`, e + e² Q(e) | 4 ulp |
//! | [`tanh`](Float::tanh), [`erf`](Float::erf) | x P(x²) / Q(x²), up to where they round to 1 | 6 ulp |
//!
//! The polynomials P and Q are fits of ours: of all of these degrees they have the least largest relative error
//! (3.1e-9, 2.1e-8, 2.0e-8 and 3.3e-8; found by least squares with weights renewed from the errors).
//!
//! Products and sums are fused where one is added to the other, on every processor, so that the bits are the
//! same everywhere. Those without such an instruction (x86 before 2013) are slow at these functions.
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
    /// Returns e^x for an x of at most 0; results below the normal numbers may be 0.
    fn exp_below_0(self) -> Self;
    /// e^x - 1, exact near 0
    fn expm1(self) -> Self;
    /// Returns the natural logarithm
    fn ln(self) -> Self;
    /// Returns the natural logarithm of 1 + x, exact near 0
    fn ln_1p(self) -> Self;
    /// Returns the hyperbolic tangent
    fn tanh(self) -> Self;
    /// 1 / (1 + e^-x)
    fn sigmoid(self) -> Self;
    /// ln (1 + e^x), without overflow; results below the normal numbers may be 0
    fn softplus(self) -> Self;
    /// Returns the error function.
    fn erf(self) -> Self;
}

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts: the first ends in zeros, so that a small multiple of it is exact.
const LN_2_HIGH: f32 = 0.693_359_375;
const LN_2_LOW: f32 = -2.121_944_4e-4;
const TWO_TO_MINUS_64: f32 = 1.0 / (u64::MAX as f32);
/// Number that rounds a small float to a whole number when added, which then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// Above this e^x is infinite.
const EXP_MAX: f32 = 88.722_84;
/// Below this e^x is 0.
const EXP_MIN: f32 = -104.5;
/// Below this e^x is smaller than the normal numbers.
const EXP_MIN_NORMAL: f32 = -87.0;
/// Argument at which the power of two nearest to e^x is 2^-127.
const EXP_NO_POWER: f32 = -88.0;

/// x as n ln 2 + r, and e^r.
struct ReducedArgument {
    /// e^r - 1
    fraction: f32,
    /// n
    n: f32,
    /// A float that holds n in its lowest bits.
    n_in_bits: f32,
}

#[inline(always)]
fn reduce_exp(x: f32) -> ReducedArgument {
    let n_in_bits = x.mul_add(LOG2_E, ROUNDER);
    let n = n_in_bits - ROUNDER;
    let r = n.mul_add(-LN_2_HIGH, x);
    let r = n.mul_add(-LN_2_LOW, r);
    // By pairs, so that one product waits for fewer others.
    let square = r * r;
    let [a, b] = [
        r.mul_add(0.166_665_204, 0.499_999_934),
        r.mul_add(0.008_368_745_13, 0.041_668_390_8),
    ];
    let series = square.mul_add(square.mul_add(0.001_381_453_99, b), a);
    ReducedArgument {
        fraction: square.mul_add(series, r),
        n,
        n_in_bits,
    }
}

/// Returns the value of a polynomial, by Horner's rule; the coefficient of the highest power is the last.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut value = coefficients[N - 1];
    for coefficient in coefficients.iter().rev().skip(1) {
        value = value.mul_add(x, *coefficient);
    }
    value
}

/// Returns 2^n for a whole n of at most 127 in size.
#[inline(always)]
fn power_of_two(n: f32) -> f32 {
    // Adding n to 1.5 * 2^23 puts it into the lowest bits; shifted, it is the exponent.
    let bits = (n + (ROUNDER + 127.0)).to_bits();
    f32::from_bits(bits << 23)
}

/// Clamps to a size; what is no number stays so.
#[inline(always)]
fn within(x: f32, limit: f32) -> f32 {
    choose(x.abs() > limit, limit.copysign(x), x)
}

/// Selects one of two floats, both calculated: a branch would keep a loop from being vectorized.
#[inline(always)]
fn choose(condition: bool, yes: f32, no: f32) -> f32 {
    let mask = u32::from(condition).wrapping_neg();
    f32::from_bits((yes.to_bits() & mask) | (no.to_bits() & !mask))
}

/// Returns the logarithm of a normal number above 0 and a little more, and n ln 2.
#[inline(always)]
fn logarithm(x: f32, more: f32, n: f32) -> f32 {
    // The exponent of x / sqrt(1/2), so that the rest lies between sqrt(1/2) and sqrt(2).
    let offset = x.to_bits().wrapping_sub(0x3f35_04f3);
    let exponent = offset.cast_signed() >> 23;
    let mantissa = f32::from_bits((offset & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    #[allow(clippy::cast_precision_loss, reason = "exponents are small")]
    let exponent = exponent as f32;
    // The least power is that of -127, which counts as 0, as what is more than so great a number does.
    let f = more.mul_add(power_of_two((-exponent).max(-127.0)), mantissa - 1.0);
    let s = f / (2.0 + f);
    let t = s * s;
    let series = polynomial(t, [2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0]);
    let n = n + exponent;
    // ln m = 2 s + s t series, and 2 s = f - s f: the first term is exact.
    let square = 0.5 * f * f;
    let rest = s * t.mul_add(series, square);
    n.mul_add(LN_2_HIGH, f - (square - n.mul_add(LN_2_LOW, rest)))
}

impl Float for f32 {
    #[inline(always)]
    fn exp(self) -> f32 {
        let x = if self < EXP_MIN { EXP_MIN } else { self };
        let ReducedArgument {
            fraction,
            n_in_bits,
            ..
        } = reduce_exp(x);
        // n is added to the exponent; where that has no room for it 64 more, which are taken away again.
        let is_small = x < EXP_MIN_NORMAL;
        let exponent = (n_in_bits.to_bits() << 23).wrapping_add(u32::from(is_small) * (64 << 23));
        let value = f32::from_bits((1.0 + fraction).to_bits().wrapping_add(exponent));
        let value = value * choose(is_small, TWO_TO_MINUS_64, 1.0);
        let value = choose(x > EXP_MAX, f32::INFINITY, value);
        choose(x.is_nan(), x, value)
    }

    #[inline(always)]
    fn exp_below_0(self) -> f32 {
        let x = if self < EXP_NO_POWER {
            EXP_NO_POWER
        } else {
            self
        };
        let ReducedArgument {
            fraction,
            n_in_bits,
            ..
        } = reduce_exp(x);
        // An n of -127 makes a power whose bits are those of 0, and so is the result.
        let power = f32::from_bits(n_in_bits.to_bits().wrapping_add(127) << 23);
        fraction.mul_add(power, power)
    }

    #[inline(always)]
    fn expm1(self) -> f32 {
        let x = self.clamp(-20.0, 89.0);
        let ReducedArgument { fraction, n, .. } = reduce_exp(x);
        let half = (n * 0.5 + ROUNDER) - ROUNDER;
        let (a, b) = (power_of_two(half), power_of_two(n - half));
        // 2^n (1 + f) - 1 = 2^n f + (2^n - 1), where the second is exact for small n.
        let value = fraction * a * b + (a * b - 1.0);
        let large = (1.0 + fraction) * a * b;
        let value = choose(n > 100.0, large, value);
        let value = choose(self > 89.0, f32::INFINITY, value);
        // Keeps the sign of 0, and what is no number.
        choose((self == 0.0) | self.is_nan(), self, value)
    }

    #[inline(always)]
    fn ln(self) -> f32 {
        // Subnormal numbers are scaled to be normal.
        let is_small = self < f32::MIN_POSITIVE;
        let x = choose(is_small, self * 8_388_608.0, self);
        let value = logarithm(x, 0.0, choose(is_small, -23.0, 0.0));
        let value = choose(self == 0.0, f32::NEG_INFINITY, value);
        let value = choose(self < 0.0, f32::NAN, value);
        choose((self == f32::INFINITY) | self.is_nan(), self, value)
    }

    #[inline(always)]
    fn ln_1p(self) -> f32 {
        let sum = 1.0 + self;
        let value = logarithm(sum, self - (sum - 1.0), 0.0);
        let value = choose(sum == 0.0, f32::NEG_INFINITY, value);
        let value = choose(sum < 0.0, f32::NAN, value);
        let is_itself = (self == 0.0) | (self == f32::INFINITY) | self.is_nan();
        choose(is_itself, self, value)
    }

    #[inline(always)]
    fn tanh(self) -> f32 {
        // Beyond 9.02 the nearest float is 1.
        let x = within(self, 9.02);
        let t = x * x;
        let numerator = polynomial(
            t,
            [
                1.0,
                0.133_797_467,
                0.003_494_066_4,
                2.058_393_87e-5,
                1.331_958_37e-8,
            ],
        );
        let denominator = polynomial(
            t,
            [
                1.0,
                0.467_130_601,
                0.025_871_198_6,
                3.283_142e-4,
                7.762_254_77e-7,
            ],
        );
        within(x * numerator / denominator, 1.0)
    }

    #[inline(always)]
    fn sigmoid(self) -> f32 {
        let e = Float::exp(-self.abs());
        let positive = 1.0 / (1.0 + e);
        choose(self < 0.0, e * positive, positive)
    }

    #[inline(always)]
    fn softplus(self) -> f32 {
        let e = Float::exp_below_0(-self.abs());
        // ln (1 + e) = e + e² Q(e), for an e of 0 to 1: no quotient.
        let series = polynomial(
            e,
            [
                -0.499_996_479,
                0.333_213_219,
                -0.248_571_576,
                0.191_536_306,
                -0.137_537_494,
                0.079_203_902,
                -0.030_065_398,
                0.005_364_724_7,
            ],
        );
        self.max(0.0) + (e * e).mul_add(series, e)
    }

    #[inline(always)]
    fn erf(self) -> f32 {
        // Beyond 3.93 the nearest float is 1.
        let x = within(self, 3.93);
        let t = x * x;
        let numerator = polynomial(
            t,
            [
                1.128_379_11,
                0.190_776_199,
                0.052_789_051_1,
                0.003_779_213_64,
                2.847_882e-4,
                2.041_882_68e-6,
            ],
        );
        let denominator = polynomial(
            t,
            [
                1.0,
                0.502_403_736,
                0.114_254_162,
                0.014_996_662_7,
                0.001_165_094_79,
                3.800_208_65e-5,
            ],
        );
        within(x * numerator / denominator, 1.0)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self)
    }

    #[inline(always)]
    fn exp_below_0(self) -> f64 {
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
    fn ln_1p(self) -> f64 {
        f64::ln_1p(self)
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
    fn softplus(self) -> f64 {
        self.max(0.0) + f64::ln_1p(f64::exp(-self.abs()))
    }

    #[inline(always)]
    fn erf(self) -> f64 {
        libm::erf(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Float;

    /// Returns the error of `found` in units of the last place of `exact`.
    fn error_ulps(found: f32, exact: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, reason = "it is what is wanted")]
        let nearest = exact as f32;
        if found == nearest || (found.is_nan() && nearest.is_nan()) {
            return 0.0;
        }
        if !found.is_finite() || !nearest.is_finite() {
            return f64::INFINITY;
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
        check(Float::exp_below_0, f64::exp, (-87.0, 0.0), 2.0);
        check(Float::expm1, f64::exp_m1, (-18.0, 88.0), 3.0);
        check(Float::expm1, f64::exp_m1, (-0.5, 0.5), 3.0);
        check(Float::ln, f64::ln, (1e-38, 1e-3), 2.0);
        check(Float::ln, f64::ln, (0.001, 3.0), 2.0);
        check(Float::ln, f64::ln, (1.0, 1e38), 2.0);
        check(Float::ln, f64::ln, (1e38, 3.4e38), 2.0);
        check(Float::ln_1p, f64::ln_1p, (-0.999, 3.0), 3.0);
        check(Float::ln_1p, f64::ln_1p, (-1e-3, 1e-3), 3.0);
        check(Float::ln_1p, f64::ln_1p, (1.0, 1e38), 3.0);
        check(Float::ln_1p, f64::ln_1p, (1e38, 3.4e38), 3.0);
        check(Float::tanh, f64::tanh, (-12.0, 12.0), 6.0);
        check(Float::tanh, f64::tanh, (-0.1, 0.1), 4.0);
        check(
            Float::sigmoid,
            |x| 1.0 / (1.0 + (-x).exp()),
            (-80.0, 80.0),
            4.0,
        );
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        check(Float::softplus, softplus, (-87.0, 87.0), 4.0);
        check(Float::softplus, softplus, (-1.0, 1.0), 4.0);
        check(Float::erf, libm::erf, (-5.0, 5.0), 6.0);
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
        assert_eq!(Float::exp_below_0(-inf), 0.0);
        assert_eq!(Float::exp_below_0(0.0_f32), 1.0);
        assert_eq!(Float::expm1(-inf), -1.0);
        assert_eq!(Float::expm1(inf), inf);
        assert!(Float::expm1(-0.0_f32).is_sign_negative());
        assert_eq!(Float::expm1(1e-30_f32), 1e-30);
        assert_eq!(Float::ln(0.0_f32), -inf);
        assert_eq!(Float::ln(inf), inf);
        assert!(Float::ln(-1.0_f32).is_nan());
        assert!(error_ulps(Float::ln(1e-45_f32), f64::from(1e-45_f32).ln()) <= 2.0);
        assert_eq!(Float::ln(1.0_f32), 0.0);
        assert_eq!(Float::ln_1p(inf), inf);
        assert_eq!(Float::ln_1p(-1.0_f32), -inf);
        assert!(Float::ln_1p(-1.5_f32).is_nan());
        assert!(Float::ln_1p(-0.0_f32).is_sign_negative());
        assert_eq!(Float::ln_1p(1e-30_f32), 1e-30);
        assert_eq!((Float::tanh(inf), Float::tanh(-inf)), (1.0, -1.0));
        assert!(Float::tanh(-0.0_f32).is_sign_negative());
        assert_eq!((Float::sigmoid(inf), Float::sigmoid(-inf)), (1.0, 0.0));
        assert_eq!((Float::softplus(inf), Float::softplus(-inf)), (inf, 0.0));
        assert_eq!((Float::erf(inf), Float::erf(-inf)), (1.0, -1.0));
        for function in [
            Float::exp,
            Float::exp_below_0,
            Float::expm1,
            Float::ln,
            Float::ln_1p,
            Float::tanh,
            Float::sigmoid,
            Float::softplus,
            Float::erf,
        ] {
            let function: fn(f32) -> f32 = function;
            assert!(function(nan).is_nan());
        }
    }
}
