//! Results as text, in the form of the original's `bef_executor`.
//!
//! A value of a type that is not known here is shown as `!its.type value`.

use std::fmt::Write;
use std::io;

use tfrt_host::{AnyAsyncValue, Error};
use tfrt_kernels::text::Exponential;

/// Returns `'main' returned 42,!tfrt.chain value`, without a line feed; `None` if there are no
/// results.
///
/// # Examples
///
/// ```
/// use tfrt_host::AnyAsyncValue;
/// use tfrt_run::report::result_line;
///
/// let results = [AnyAsyncValue::new(42), AnyAsyncValue::new(1.5f64)];
/// let line = result_line("f", ["i32", "f64"], &results, false);
/// assert_eq!(line.unwrap(), "'f' returned 42,1.500000e+00");
/// ```
pub fn result_line<'a>(
    function: &str,
    types: impl IntoIterator<Item = &'a str>,
    results: &[AnyAsyncValue],
    with_codes: bool,
) -> Option<String> {
    let mut line = format!("'{function}' returned ");
    for (index, (result, type_name)) in results.iter().zip(types).enumerate() {
        if index > 0 {
            line.push(',');
        }
        match result.error() {
            Some(error) => line.push_str(&error_text(error, with_codes)),
            None => line.push_str(&value_text(type_name, result)),
        }
    }
    (!results.is_empty()).then_some(line)
}

/// Returns `'f' returned <<error: MESSAGE>>`, the line of a synchronous function that fails.
pub fn failure_line(function: &str, error: &Error) -> String {
    format!("'{function}' returned {}", error_text(error, false))
}

/// Returns `<<error: MESSAGE>>` or `<<error: MESSAGE, code: CODE>>`; the message of another task's error begins with its name.
pub fn error_text(error: &Error, with_code: bool) -> String {
    let mut text = format!("<<error: {error}");
    if with_code {
        write!(text, ", code: {}", error.code().name()).expect("a String takes all text");
    }
    text.push_str(">>");
    text
}

/// Returns the value as the result line shows it; the declared type decides how.
pub fn value_text(type_name: &str, value: &AnyAsyncValue) -> String {
    let known = match type_name {
        "i1" => value.get::<bool>().map(|bit| u8::from(*bit).to_string()),
        "i32" => value.get::<i32>().map(ToString::to_string),
        "i64" => value.get::<i64>().map(ToString::to_string),
        "f32" => value.get::<f32>().map(|float| exponent(f64::from(*float))),
        "f64" => value.get::<f64>().map(|float| exponent(*float)),
        _ => None,
    };
    known.unwrap_or_else(|| format!("{type_name} value"))
}

/// Treats a broken pipe as success: where the reader of our output has seen enough and closed the
/// pipe, the work goes on in silence, and ends as it would have.
///
/// # Errors
///
/// All others.
pub fn unless_unread(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Returns the message of an I/O error without Rust's `(os error N)`.
pub fn error_message(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(code) = error.raw_os_error() {
        let suffix = format!(" (os error {code})");
        let len = text.strip_suffix(&suffix).map_or(text.len(), str::len);
        text.truncate(len);
    }
    text
}

/// Returns a float as `%e` of C prints it.
fn exponent(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float < 0.0 { "-INF" } else { "INF" }.to_owned();
    }
    Exponential(float).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_look_as_in_c() {
        let cases = [
            (1.5, "1.500000e+00"),
            (-1.5e10, "-1.500000e+10"),
            (0.1, "1.000000e-01"),
            (0.0, "0.000000e+00"),
            (-0.0, "-0.000000e+00"),
            (1e-300, "1.000000e-300"),
            (1e100, "1.000000e+100"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-INF"),
            (f64::from(0.1f32), "1.000000e-01"),
        ];
        for (float, text) in cases {
            assert_eq!(exponent(float), text);
        }
    }

    #[test]
    fn values_of_unknown_or_wrong_type_show_the_declared_type() {
        let value = AnyAsyncValue::new(3i8);
        assert_eq!(value_text("i8", &value), "i8 value");
        assert_eq!(value_text("i32", &value), "i32 value");
        assert_eq!(
            result_line("f", ["!t.tensor"], &[value], false).unwrap(),
            "'f' returned !t.tensor value"
        );
    }

    #[test]
    fn error_shows_its_code_when_asked() {
        let error = AnyAsyncValue::from_error(Error::unknown("bad"));
        let line = |codes| result_line("f", ["i32"], std::slice::from_ref(&error), codes).unwrap();
        assert_eq!(line(false), "'f' returned <<error: bad>>");
        assert_eq!(line(true), "'f' returned <<error: bad, code: Unknown>>");
        let task = tfrt_async::ClusterTask {
            job: "worker".to_owned(),
            task: 1,
        };
        let error = Error::unknown("bad").with_task(task);
        let text = error_text(&error, false);
        assert_eq!(text, "<<error: /job:worker/task:1: bad>>");
    }

    #[test]
    fn function_without_results_says_nothing() {
        assert_eq!(result_line("f", [], &[], false), None);
    }
}
