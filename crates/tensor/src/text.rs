//! Numbers as tensors are printed.

use std::fmt;

/// Maximum number of elements that are printed.
pub(crate) const MAX_PRINTED: usize = 16;

/// Writes a float as C's `%e` does: `1.500000e+00`; `nan`, `INF` and `-INF` for those without digits.
pub(crate) fn exponential(value: f64, f: &mut dyn fmt::Write) -> fmt::Result {
    if value.is_nan() {
        return f.write_str("nan");
    }
    if value.is_infinite() {
        return f.write_str(if value > 0.0 { "INF" } else { "-INF" });
    }
    let text = format!("{value:.6e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    write!(f, "{digits}e{sign}{exponent:0>2}")
}

/// Writes a complex number: `(1.500000e+00,0.000000e+00)`.
pub(crate) fn complex(real: f64, imaginary: f64, f: &mut dyn fmt::Write) -> fmt::Result {
    f.write_char('(')?;
    exponential(real, f)?;
    f.write_char(',')?;
    exponential(imaginary, f)?;
    f.write_char(')')
}

/// Writes a list: `[a, b, c]`.
pub(crate) fn list<T: fmt::Display>(
    items: impl IntoIterator<Item = T>,
    f: &mut dyn fmt::Write,
) -> fmt::Result {
    f.write_char('[')?;
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    f.write_char(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64) -> String {
        let mut text = String::new();
        exponential(value, &mut text).unwrap();
        text
    }

    #[test]
    fn floats_have_six_decimals_and_two_digits_of_exponent_or_more() {
        assert_eq!(printed(1.5), "1.500000e+00");
        assert_eq!(printed(-0.25), "-2.500000e-01");
        assert_eq!(printed(1e-300), "1.000000e-300");
        assert_eq!(printed(f64::NAN), "nan");
        assert_eq!(printed(f64::NEG_INFINITY), "-INF");
    }
}
