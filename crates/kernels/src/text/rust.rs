//! Floats as text by the standard library.

/// Writes a finite float as `%.6f`.
pub fn fixed(value: f64) -> String {
    format!("{value:.6}")
}

/// Writes a finite float as `%.6e`.
pub fn exponential(value: f64) -> String {
    let text = format!("{value:.6e}");
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

pub fn read_f32(text: &str) -> Option<f32> {
    text.parse().ok()
}

pub fn read_f64(text: &str) -> Option<f64> {
    text.parse().ok()
}
