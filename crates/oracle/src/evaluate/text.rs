//! The text of numbers, as C and LLVM write them.

use crate::value::{Datum, Value};

/// Returns a result as the command prints it, of a declared type.
pub(super) fn result(value: &Value, ty: &str) -> String {
    let datum = match value {
        Ok(datum) => datum,
        Err(failure) => return format!("<<error: {}>>", failure.message),
    };
    match datum {
        Datum::I1(bit) => u8::from(*bit).to_string(),
        Datum::I32(number) => number.to_string(),
        Datum::I64(number) => number.to_string(),
        Datum::F32(number) => exponent(f64::from(*number)),
        Datum::F64(number) => exponent(*number),
        _ => format!("{ty} value"),
    }
}

/// Writes as `%f` of C does: six decimals.
pub(super) fn fixed(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_nan() {
        return format!("{sign}nan");
    }
    if number.is_infinite() {
        return format!("{sign}inf");
    }
    format!("{number:.6}")
}

/// Writes as LLVM's streams do: `1.500000e+00`.
fn exponent(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-INF" } else { "INF" }.to_owned();
    }
    let text = format!("{number:.6e}");
    let (digits, power) = text.split_once('e').expect("the format has an exponent");
    match power.strip_prefix('-') {
        Some(power) => format!("{digits}e-{power:0>2}"),
        None => format!("{digits}e+{power:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_have_a_sign_and_two_digits() {
        assert_eq!(exponent(1.5), "1.500000e+00");
        assert_eq!(exponent(-1.5e10), "-1.500000e+10");
        assert_eq!(exponent(0.1), "1.000000e-01");
        assert_eq!(exponent(1e300), "1.000000e+300");
        assert_eq!(exponent(-0.0), "-0.000000e+00");
    }

    #[test]
    fn fixed_has_six_decimals() {
        assert_eq!(fixed(0.1_f32.into()), "0.100000");
        assert_eq!(fixed(f64::NEG_INFINITY), "-inf");
    }
}
