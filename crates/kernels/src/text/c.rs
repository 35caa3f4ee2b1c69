//! Floats as text by the C library, which is linked anyway: the standard library's tables for floats are a tenth of a
//! small program.
//!
//! Nobody sets a locale here, so it is the one of C.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

unsafe extern "C" {
    fn snprintf(to: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
    fn strtof(text: *const c_char, end: *mut *mut c_char) -> f32;
    fn strtod(text: *const c_char, end: *mut *mut c_char) -> f64;
}

/// The size of a buffer that holds the longest float: a sign, 309 digits, a point, six decimals and a NUL.
const MAX_BYTES: usize = 320;

/// Writes a finite float as `%.6f`.
pub fn fixed(value: f64) -> String {
    format(c"%.6f", value)
}

/// Writes a finite float as `%.6e`.
pub fn exponential(value: f64) -> String {
    format(c"%.6e", value)
}

fn format(format: &'static CStr, value: f64) -> String {
    let mut text = [0u8; MAX_BYTES];
    // SAFETY: the text has that size, and both formats take one `double`.
    unsafe { snprintf(text.as_mut_ptr().cast(), MAX_BYTES, format.as_ptr(), value) };
    let text = CStr::from_bytes_until_nul(&text);
    let text = text.ok().and_then(|text| text.to_str().ok());
    text.expect("a float is written in ASCII, with a NUL")
        .to_owned()
}

pub fn read_f32(text: &str) -> Option<f32> {
    let text = checked(text)?;
    let mut end = ptr::null_mut();
    // SAFETY: the text ends in a NUL, and `end` is ours.
    let value = unsafe { strtof(text.as_ptr().cast(), &raw mut end) };
    is_last(&text, end).then_some(value)
}

pub fn read_f64(text: &str) -> Option<f64> {
    let text = checked(text)?;
    let mut end = ptr::null_mut();
    // SAFETY: as above.
    let value = unsafe { strtod(text.as_ptr().cast(), &raw mut end) };
    is_last(&text, end).then_some(value)
}

/// Returns the text with a NUL, unless C reads it and Rust does not: with blanks in front, hexadecimal, or no number
/// in particular.
fn checked(text: &str) -> Option<String> {
    let is_decimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let name = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_name = |known: &&str| name.eq_ignore_ascii_case(known);
    let is_named = ["inf", "infinity", "nan"].iter().any(is_name);
    let is_checked = !text.is_empty() && (is_named || text.bytes().all(is_decimal));
    is_checked.then(|| format!("{text}\0"))
}

/// Returns whether reading has ended at the NUL.
fn is_last(text: &str, end: *mut c_char) -> bool {
    end.addr() - text.as_ptr().addr() == text.len() - 1
}
