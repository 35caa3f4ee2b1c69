//! Numbers as C prints them.

use std::fmt;

/// A float as `%f` prints it: six decimals, exactly rounded; `inf`, `-inf`, `nan`, `-nan`.
pub(crate) struct Fixed(pub(crate) f64);

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match not_a_number(self.0) {
            Some(text) => f.write_str(text),
            None => write!(f, "{:.6}", self.0),
        }
    }
}

/// A float as `%e` prints it: `1.500000e+00`.
pub(crate) struct Exponential(pub(crate) f64);

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = not_a_number(self.0) {
            return f.write_str(text);
        }
        let text = format!("{:.6e}", self.0);
        let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        write!(f, "{digits}e{sign}{exponent:0>2}")
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
}
