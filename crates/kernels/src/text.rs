//! Floats as text: written as in C, read as in Rust.
//!
//! The digits come from the standard library, or where size counts more (`build.rs`) from C's.

use std::fmt;

#[cfg(not(all(tfrt_for_size, unix)))]
#[path = "text/rust.rs"]
mod digits;

#[cfg(all(tfrt_for_size, unix))]
#[allow(unsafe_code, reason = "a listed module")]
#[path = "text/c.rs"]
mod digits;

/// Reads an `f32` as [`str::parse`] does.
pub fn read_f32(text: &str) -> Option<f32> {
    digits::read_f32(text)
}

/// Reads an `f64` as [`str::parse`] does.
pub fn read_f64(text: &str) -> Option<f64> {
    digits::read_f64(text)
}

/// A float as `%f` prints it: six decimals, exactly rounded; `inf`, `-inf`, `nan`, `-nan`.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub f64);

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match not_a_number(self.0) {
            Some(text) => f.write_str(text),
            None => f.write_str(&digits::fixed(self.0)),
        }
    }
}

/// A float as `%e` prints it: `1.500000e+00`.
#[derive(Clone, Copy, Debug)]
pub struct Exponential(pub f64);

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match not_a_number(self.0) {
            Some(text) => f.write_str(text),
            None => f.write_str(&digits::exponential(self.0)),
        }
    }
}

fn not_a_number(value: f64) -> Option<&'static str> {
    match (value.is_nan(), value.is_finite(), value.is_sign_negative()) {
        (true, _, true) => Some("-nan"),
        (true, _, false) => Some("nan"),
        (_, false, true) => Some("-inf"),
        (_, false, false) => Some("inf"),
        (_, true, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_floats_have_six_decimals() {
        let cases = [
            (0.1, "0.100000"),
            (-0.0, "-0.000000"),
            (15600.0, "15600.000000"),
            (0.0000005, "0.000000"),
            (2.5e-6, "0.000003"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN.copysign(1.0), "nan"),
            (f64::NAN.copysign(-1.0), "-nan"),
            (1e22, "10000000000000000000000.000000"),
        ];
        for (value, text) in cases {
            assert_eq!(Fixed(value).to_string(), text);
        }
    }

    #[test]
    fn exponential_floats_have_two_digits_of_exponent_or_more() {
        let cases = [
            (1.5, "1.500000e+00"),
            (-1.5e10, "-1.500000e+10"),
            (0.1, "1.000000e-01"),
            (1e-300, "1.000000e-300"),
            (0.0, "0.000000e+00"),
            (f64::NAN.copysign(1.0), "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(Exponential(value).to_string(), text);
        }
    }

    #[test]
    fn floats_are_read_as_rust_reads_them() {
        let good = [
            "0",
            "-0",
            "1.5",
            "+1e3",
            ".5",
            "5.",
            "1E-400",
            "1e400",
            "0.1",
            "inf",
            "-Infinity",
            "NaN",
            "16777217",
            "2.2250738585072011e-308",
            "179769313486231580793728971405301e277",
        ];
        for text in good {
            let expected: (f32, f64) = (text.parse().unwrap(), text.parse().unwrap());
            let read = (read_f32(text).unwrap(), read_f64(text).unwrap());
            assert_eq!(read.0.to_bits(), expected.0.to_bits(), "{text}");
            assert_eq!(read.1.to_bits(), expected.1.to_bits(), "{text}");
        }
        for text in [
            "", " 1", "1 ", "0x1", "1e", ".", "e5", "+-1", "nan(1)", "infin", "1\0", "1,5",
        ] {
            assert_eq!((read_f32(text), read_f64(text)), (None, None), "{text}");
        }
    }
}
