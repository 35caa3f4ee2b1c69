//! Floating-point formats: reading decimals with one rounding, and widening.
//!
//! Formats narrower than `f64` other than `f32` are read through `f64`. Rounding
//! twice goes wrong only when the first rounding lands exactly between two
//! neighbours in the narrow format; then the decimal is compared with that
//! midpoint, digit by digit.

use std::cmp::Ordering;

use crate::types::FloatKind;

/// The bit layout of a format of at most 64 bits.
#[derive(Clone, Copy)]
struct Layout {
    exponent_bits: u32,
    /// The number of fraction bits, without the hidden one.
    fraction_bits: u32,
    bias: i32,
    special: Special,
}

/// The codes of a format that are not finite numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// The largest exponent encodes infinities and NaN.
    LargestExponent,
    /// All bits but the sign set encode NaN; there is no infinity.
    AllOnes,
    /// The code of -0 is NaN; there is no infinity.
    NegativeZero,
    /// None: values that are too large become the largest number.
    Nothing,
}

fn layout(kind: FloatKind) -> Layout {
    use Special::{AllOnes, LargestExponent, NegativeZero, Nothing};
    let (exponent_bits, fraction_bits, bias, special) = match kind {
        FloatKind::F4E2M1FN => (2, 1, 1, Nothing),
        FloatKind::F6E2M3FN => (2, 3, 1, Nothing),
        FloatKind::F6E3M2FN => (3, 2, 3, Nothing),
        FloatKind::F8E3M4 => (3, 4, 3, LargestExponent),
        FloatKind::F8E4M3 => (4, 3, 7, LargestExponent),
        FloatKind::F8E4M3B11FNUZ => (4, 3, 11, NegativeZero),
        FloatKind::F8E5M2 => (5, 2, 15, LargestExponent),
        FloatKind::F8E5M2FNUZ => (5, 2, 16, NegativeZero),
        FloatKind::F8E4M3FN => (4, 3, 7, AllOnes),
        FloatKind::F8E4M3FNUZ => (4, 3, 8, NegativeZero),
        // Its numbers are no sums: `powers` reads and writes them.
        FloatKind::F8E8M0FNU => (8, 0, powers::BIAS, AllOnes),
        FloatKind::F16 => (5, 10, 15, LargestExponent),
        FloatKind::BF16 => (8, 7, 127, LargestExponent),
        FloatKind::TF32 => (8, 10, 127, LargestExponent),
        FloatKind::F32 => (8, 23, 127, LargestExponent),
        FloatKind::F64 | FloatKind::F80 | FloatKind::F128 => (11, 52, 1023, LargestExponent),
    };
    Layout {
        exponent_bits,
        fraction_bits,
        bias,
        special,
    }
}

impl Layout {
    /// Returns the code, without a sign, of values that are too large.
    fn overflow(self) -> u64 {
        let ones = (1_u64 << (self.exponent_bits + self.fraction_bits)) - 1;
        match self.special {
            Special::LargestExponent => ones >> self.fraction_bits << self.fraction_bits,
            Special::AllOnes | Special::Nothing => ones,
            Special::NegativeZero => ones + 1,
        }
    }
}

/// `f8E8M0FNU`: a byte that is the exponent of a power of two.
mod powers {
    pub(super) const BIAS: i32 = 127;

    /// The code of NaN.
    const NO_NUMBER: u64 = 0xff;

    /// Returns the power nearest to a value that is not below 0, the greater of two as near.
    pub(super) fn narrow(value: f64) -> u64 {
        let exponent = (value.to_bits() >> 52) & 0x7ff;
        // A fraction of a half or more is nearer to the next power.
        let up = (value.to_bits() >> 51) & 1;
        let biased = (exponent + up + u64::from(BIAS.unsigned_abs())).saturating_sub(1023);
        biased.min(NO_NUMBER)
    }

    pub(super) fn to_f64(bits: u64) -> f64 {
        match i32::try_from(bits & NO_NUMBER) {
            Ok(exponent) if exponent < 0xff => 2_f64.powi(exponent - BIAS),
            _ => f64::NAN,
        }
    }
}

/// Returns whether constants of a format are supported.
pub(crate) fn is_supported(kind: FloatKind) -> bool {
    !matches!(kind, FloatKind::F80 | FloatKind::F128)
}

/// Reads a decimal literal as the nearest value, ties to even.
///
/// `text` is a literal that the lexer accepted: digits, a dot, digits, maybe an
/// exponent. Too large values become infinities.
pub(crate) fn parse(text: &str, kind: FloatKind) -> u64 {
    match kind {
        FloatKind::F32 => u64::from(text.parse::<f32>().map_or(0, f32::to_bits)),
        FloatKind::F64 | FloatKind::F80 | FloatKind::F128 => {
            text.parse::<f64>().map_or(0, f64::to_bits)
        }
        FloatKind::F8E8M0FNU => powers::narrow(text.parse().unwrap_or(0.0)),
        _ => narrow(text.parse().unwrap_or(0.0), layout(kind), |midpoint| {
            compare_decimal(text, midpoint)
        }),
    }
}

/// Returns the code of a value below 0, given that of the value without its sign; `None` if the
/// format has no sign.
pub(crate) fn negate(bits: u64, kind: FloatKind) -> Option<u64> {
    let has_negative_zero = layout(kind).special != Special::NegativeZero;
    match bits {
        _ if !kind.is_signed() => None,
        0 if !has_negative_zero => Some(0),
        _ => Some(bits | 1 << (kind.width() - 1)),
    }
}

/// Returns the code of the number of a format that is nearest to a value, ties to even.
pub(crate) fn nearest(value: f64, kind: FloatKind) -> u64 {
    let magnitude = value.abs();
    let bits = match kind {
        #[expect(clippy::cast_possible_truncation, reason = "it is rounded")]
        FloatKind::F32 => return u64::from((value as f32).to_bits()),
        FloatKind::F64 | FloatKind::F80 | FloatKind::F128 => return value.to_bits(),
        _ if value.is_nan() => return no_number(kind),
        FloatKind::F8E8M0FNU => powers::narrow(magnitude),
        _ => narrow(magnitude, layout(kind), |_| Ordering::Equal),
    };
    match value.is_sign_negative() {
        true => negate(bits, kind).unwrap_or_else(|| no_number(kind)),
        false => bits,
    }
}

/// Returns the code of NaN, or that of -0 if the format has none.
fn no_number(kind: FloatKind) -> u64 {
    let layout = layout(kind);
    match layout.special {
        Special::LargestExponent => layout.overflow() | 1 << (layout.fraction_bits - 1),
        Special::AllOnes => layout.overflow(),
        Special::NegativeZero | Special::Nothing => 1 << (kind.width() - 1),
    }
}

/// Rounds a value that is not below 0 and finite or infinite to a narrow
/// format; `order` says on which side of a midpoint the exact value lies.
fn narrow(value: f64, layout: Layout, order: impl Fn(f64) -> Ordering) -> u64 {
    let (fraction_bits, bias) = (layout.fraction_bits, layout.bias);
    if value == 0.0 {
        return 0;
    }
    if value.is_infinite() {
        return layout.overflow();
    }
    let bits = value.to_bits();
    let exponent = i32::try_from(bits >> 52).expect("has 11 bits") - 1023;
    if exponent < -1022 {
        // Subnormal in f64: far below half of the smallest narrow value.
        return 0;
    }
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    // The result counts units of 2^(unit): the last bit of its fraction.
    let unit = (exponent - fraction_bits.cast_signed()).max(1 - bias - fraction_bits.cast_signed());
    let shift = unit - (exponent - 52);
    if shift > 54 {
        return 0;
    }
    let kept = significand >> shift;
    let dropped = significand & ((1 << shift) - 1);
    let half = 1_u64 << (shift - 1);
    let up = match dropped.cmp(&half) {
        Ordering::Equal => match order(value) {
            Ordering::Equal => kept & 1 == 1,
            side => side == Ordering::Greater,
        },
        side => side == Ordering::Greater,
    };
    let units = kept + u64::from(up);
    // A normal result has its hidden bit set, which adds one to the exponent.
    let biased = u64::try_from((unit + bias + fraction_bits.cast_signed() - 1).max(0))
        .expect("is not below 0");
    let result = (biased << fraction_bits) + units;
    result.min(layout.overflow())
}

/// Compares a decimal literal with a value, exactly.
fn compare_decimal(text: &str, value: f64) -> Ordering {
    // A double has at most 1,074 digits behind the point.
    let exact = format!("{value:.1074}");
    let (left, left_point) = digits(text);
    let (right, right_point) = digits(&exact);
    left_point.cmp(&right_point).then_with(|| {
        let longest = left.len().max(right.len());
        let padded = |digits: Vec<u8>| digits.into_iter().chain(std::iter::repeat(b'0'));
        padded(left).take(longest).cmp(padded(right).take(longest))
    })
}

/// Returns the digits of a positive decimal from the first that is not 0, and
/// the place of the decimal point relative to them.
fn digits(text: &str) -> (Vec<u8>, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let leading = all.iter().take_while(|&&digit| digit == b'0').count();
    let len = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
    // Exponents that do not fit belong to zero and infinity, which are no
    // midpoints.
    let point = len(whole.len()) - len(leading) + exponent.parse::<i64>().unwrap_or(0);
    (all[leading..].to_vec(), point)
}

/// Widens to `f64` without loss.
pub(crate) fn to_f64(bits: u64, kind: FloatKind) -> f64 {
    match kind {
        FloatKind::F32 => {
            return f64::from(f32::from_bits(
                u32::try_from(bits & 0xffff_ffff).unwrap_or(0),
            ));
        }
        FloatKind::F64 | FloatKind::F80 | FloatKind::F128 => return f64::from_bits(bits),
        FloatKind::F8E8M0FNU => return powers::to_f64(bits),
        _ => {}
    }
    let Layout {
        exponent_bits,
        fraction_bits,
        bias,
        special,
    } = layout(kind);
    let max_exponent = (1_u64 << exponent_bits) - 1;
    let fraction_mask = (1_u64 << fraction_bits) - 1;
    let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let exponent = bits >> fraction_bits & max_exponent;
    let fraction = bits & fraction_mask;
    let at_most = exponent == max_exponent;
    match special {
        Special::LargestExponent if at_most && fraction == 0 => return sign * f64::INFINITY,
        Special::LargestExponent if at_most => return f64::NAN,
        Special::AllOnes if at_most && fraction == fraction_mask => return f64::NAN,
        Special::NegativeZero if bits == 1 << (exponent_bits + fraction_bits) => return f64::NAN,
        _ => {}
    }
    let (significand, power) = match exponent {
        0 => (fraction, 1),
        _ => (
            fraction | 1 << fraction_bits,
            i32::try_from(exponent).expect("has 8 bits"),
        ),
    };
    let scale = 2_f64.powi(power - bias - fraction_bits.cast_signed());
    // Both factors are exact, and so is their product.
    sign * f64::from(u32::try_from(significand).expect("has 11 bits")) * scale
}

/// Returns the decimal digits that tell any two values of a format apart, as
/// MLIR counts them.
fn precision(kind: FloatKind) -> usize {
    let significand_bits = layout(kind).fraction_bits + 1;
    2 + (significand_bits * 59 / 196) as usize
}

/// Writes a value as MLIR does: six digits in scientific notation if they are
/// exact, else as many as are needed, else the bits in hexadecimal.
pub(crate) fn format(bits: u64, kind: FloatKind) -> String {
    let value = to_f64(bits, kind);
    if value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let magnitude = value.abs();
        let magnitude_bits = match kind.is_signed() {
            true => bits & !(1 << (kind.width() - 1).min(63)),
            false => bits,
        };
        let short = scientific(&format!("{magnitude:.5e}"), 6);
        if parse(&short, kind) == magnitude_bits {
            return format!("{sign}{short}");
        }
        let long = plain(
            &format!("{magnitude:.*e}", precision(kind) - 1),
            precision(kind),
        );
        if long.contains('.') && parse(&long, kind) == magnitude_bits {
            return format!("{sign}{long}");
        }
    }
    format!(
        "0x{bits:0width$X}",
        width = kind.width().div_ceil(4) as usize
    )
}

/// Splits `1.2345e6` into digits without trailing zeros and an exponent of the
/// first digit.
fn split_scientific(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let trimmed = digits.trim_end_matches('0');
    let digits = if trimmed.is_empty() { "0" } else { trimmed };
    (digits.to_owned(), exponent.parse().unwrap_or(0))
}

/// Writes digits as `d.dddddde+xx` with `n_fraction` digits behind the point.
fn scientific(text: &str, n_fraction: usize) -> String {
    let (digits, exponent) = split_scientific(text);
    let (first, rest) = digits.split_at(1);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}.{rest:0<n_fraction$}e{sign}{:02}", exponent.abs())
}

/// Writes digits without an exponent if that takes few zeros.
fn plain(text: &str, precision: usize) -> String {
    const MAX_PADDING: i32 = 3;
    let (digits, first_exponent) = split_scientific(text);
    let n_digits = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let size = |number: i32| usize::try_from(number).unwrap_or(0);
    let last_exponent = first_exponent - (n_digits - 1);
    let is_scientific = if last_exponent >= 0 {
        last_exponent > MAX_PADDING || size(n_digits + last_exponent) > precision
    } else {
        first_exponent < -MAX_PADDING
    };
    if is_scientific {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let sign = if first_exponent < 0 { '-' } else { '+' };
        return format!("{first}.{rest}E{sign}{}", first_exponent.abs());
    }
    if last_exponent >= 0 {
        return format!("{digits}{}", "0".repeat(size(last_exponent)));
    }
    if first_exponent >= 0 {
        let (whole, fraction) = digits.split_at(size(first_exponent) + 1);
        return format!("{whole}.{fraction}");
    }
    format!("0.{}{digits}", "0".repeat(size(-first_exponent - 1)))
}
