//! `--arg`: values for the parameters of functions, read by the parameters' types.

use tfrt_host::{AnyAsyncValue, Chain, Function, Value};
use tfrt_kernels::text::{read_f32, read_f64};

const CHAIN: &str = "!tfrt.chain";

/// Refuses a command line whose arguments fit none of the functions, or not one of those that it
/// names.
///
/// # Errors
///
/// What does not fit, in words.
pub fn check(functions: &[&Function], named: &[String], given: &[String]) -> Result<(), String> {
    let n_given = given.len();
    let times = if n_given == 1 { "time" } else { "times" };
    let misfit = functions.iter().find(|function| {
        named.iter().any(|name| name == function.name())
            && function.n_arguments() > 0
            && !fits(function, n_given)
    });
    if let Some(function) = misfit {
        let types: Vec<&str> = function.argument_types().collect();
        return Err(format!(
            "'{}' takes ({}), but --arg is given {n_given} {times} (chains are given by themselves)",
            function.name(),
            types.join(", "),
        ));
    }
    if n_given == 0 || functions.iter().any(|function| fits(function, n_given)) {
        return Ok(());
    }
    Err(format!(
        "--arg is given {n_given} {times}, but no function takes so many arguments"
    ))
}

/// Returns the arguments to call a function with; `None` if it has parameters and nothing fits
/// them.
///
/// # Errors
///
/// Which text can't be read as a value of its parameter's type.
pub fn for_function(
    function: &Function,
    given: &[String],
) -> Result<Option<Vec<AnyAsyncValue>>, String> {
    if function.n_arguments() == 0 {
        return Ok(Some(Vec::new()));
    }
    if !fits(function, given.len()) {
        return Ok(None);
    }
    let chains_too = function.n_arguments() == given.len();
    let mut given = given.iter();
    let values = function.argument_types().map(|type_name| {
        if type_name == CHAIN && !chains_too {
            return Ok(AnyAsyncValue::new(Chain));
        }
        read(type_name, given.next().expect("their number fits"))
    });
    values.collect::<Result<_, _>>().map(Some)
}

/// Returns whether a number of arguments is that of the parameters, with or without chains.
fn fits(function: &Function, n_given: usize) -> bool {
    let plain = || function.argument_types().filter(|name| *name != CHAIN);
    n_given > 0 && (n_given == function.n_arguments() || n_given == plain().count())
}

/// Reads a value of a type.
fn read(type_name: &str, text: &str) -> Result<AnyAsyncValue, String> {
    let in_range = |value: Option<AnyAsyncValue>| {
        value.ok_or_else(|| expected(type_name, "a number in range", text))
    };
    match type_name {
        "i1" => match text {
            "true" | "1" | "-1" => Ok(AnyAsyncValue::new(true)),
            "false" | "0" => Ok(AnyAsyncValue::new(false)),
            _ => Err(expected(type_name, "true, false, 1 or 0", text)),
        },
        "i8" => in_range(signed(text).and_then(fit::<i8, _>)),
        "i16" => in_range(signed(text).and_then(fit::<i16, _>)),
        "i32" => in_range(signed(text).and_then(fit::<i32, _>)),
        "i64" => in_range(signed(text).map(AnyAsyncValue::new)),
        "ui8" => in_range(unsigned(text).and_then(fit::<u8, _>)),
        "ui16" => in_range(unsigned(text).and_then(fit::<u16, _>)),
        "ui32" => in_range(unsigned(text).and_then(fit::<u32, _>)),
        "ui64" => in_range(unsigned(text).map(AnyAsyncValue::new)),
        "f32" => in_range(read_f32(text).map(AnyAsyncValue::new)),
        "f64" => in_range(read_f64(text).map(AnyAsyncValue::new)),
        "!tfrt.string" => Ok(AnyAsyncValue::new(text.to_owned())),
        CHAIN if text == "chain" => Ok(AnyAsyncValue::new(Chain)),
        CHAIN => Err(expected(type_name, "chain", text)),
        _ => Err(format!(
            "a value of type {type_name} can't be given on the command line"
        )),
    }
}

/// Makes a value of an integer, if its type has one.
fn fit<T: Value + TryFrom<N>, N>(number: N) -> Option<AnyAsyncValue> {
    T::try_from(number).ok().map(AnyAsyncValue::new)
}

fn unsigned(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Reads an integer, decimal or hexadecimal.
fn signed(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let Some(digits) = digits.strip_prefix("0x") else {
        return text.parse().ok();
    };
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = i64::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some(sign * value)
}

fn expected(type_name: &str, what: &str, found: &str) -> String {
    format!("expected {what} for a parameter of type {type_name}, found '{found}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_type() {
        assert_eq!(read("i1", "true").unwrap().get::<bool>(), Some(&true));
        assert_eq!(read("i32", "-7").unwrap().get::<i32>(), Some(&-7));
        assert_eq!(read("i8", "0x7f").unwrap().get::<i8>(), Some(&127));
        assert_eq!(read("f64", "1e3").unwrap().get::<f64>(), Some(&1000.0));
        let string = read("!tfrt.string", "-x").unwrap();
        assert_eq!(string.get::<String>().unwrap(), "-x");
    }

    #[test]
    fn misfits_are_refused_in_words() {
        let cases = [
            (
                "i8",
                "128",
                "expected a number in range for a parameter of type i8, found '128'",
            ),
            (
                "i1",
                "yes",
                "expected true, false, 1 or 0 for a parameter of type i1, found 'yes'",
            ),
            (
                "!t.tensor",
                "1",
                "a value of type !t.tensor can't be given on the command line",
            ),
        ];
        for (type_name, text, message) in cases {
            assert_eq!(read(type_name, text).unwrap_err(), message);
        }
        read("i32", "-0x-1").unwrap_err();
        read("i64", "9223372036854775808").unwrap_err();
    }
}
