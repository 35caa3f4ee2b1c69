//! Floating point formats: reading decimals with one rounding, and widening.
//!
//! Formats narrower than `f64` other than `f32` are read through `f64`. Rounding
//! twice goes wrong only when the first rounding lands exactly between two
//! neighbours in the narrow format; then the decimal is compared with that
//! midpoint, digit by digit.

use std::cmp::Ordering;

use crate::types::FloatKind;

/// How a format of at most 64 bits is laid out.
#[derive(Clone, Copy)]
struct Layout {
    exponent_bits: u32,
    /// Fraction bits, without the hidden one.
    fraction_bits: u32,
    /// Whether the largest exponent stands for infinities and most NaNs.
    infinities: bool,
}

fn layout(kind: FloatKind) -> Layout {
    let (exponent_bits, fraction_bits) = match kind {
        FloatKind::F8E5M2 => (5, 2),
        FloatKind::F8E4M3FN => (4, 3),
        FloatKind::F16 => (5, 10),
        FloatKind::BF16 => (8, 7),
        FloatKind::TF32 => (8, 10),
        FloatKind::F32 => (8, 23),
        FloatKind::F64 | FloatKind::F80 | FloatKind::F128 => (11, 52),
    };
    Layout {
        exponent_bits,
        fraction_bits,
        infinities: kind != FloatKind::F8E4M3FN,
    }
}

/// Returns whether constants of a format can be held.
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
        _ => narrow(text.parse().unwrap_or(0.0), layout(kind), |midpoint| {
            compare_decimal(text, midpoint)
        }),
    }
}

/// Rounds a value that is not below 0 and finite or infinite to a narrow
/// format; `order` says on which side of a midpoint the exact value lies.
fn narrow(value: f64, layout: Layout, order: impl Fn(f64) -> Ordering) -> u64 {
    let Layout {
        exponent_bits,
        fraction_bits,
        infinities,
    } = layout;
    let bias = (1_i32 << (exponent_bits - 1)) - 1;
    let max_exponent = (1_u64 << exponent_bits) - 1;
    let infinity = if infinities {
        max_exponent << fraction_bits
    } else {
        (max_exponent << fraction_bits) | ((1 << fraction_bits) - 1)
    };
    if value == 0.0 {
        return 0;
    }
    if value.is_infinite() {
        return infinity;
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
    result.min(infinity)
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
        _ => {}
    }
    let Layout {
        exponent_bits,
        fraction_bits,
        infinities,
    } = layout(kind);
    let max_exponent = (1_u64 << exponent_bits) - 1;
    let fraction_mask = (1_u64 << fraction_bits) - 1;
    let bias = (1_i32 << (exponent_bits - 1)) - 1;
    let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let exponent = bits >> fraction_bits & max_exponent;
    let fraction = bits & fraction_mask;
    if exponent == max_exponent && (infinities || fraction == fraction_mask) {
        let is_infinite = infinities && fraction == 0;
        return if is_infinite {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
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
        let magnitude_bits = bits & !(1 << (kind.width() - 1).min(63));
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
