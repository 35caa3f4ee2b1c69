//! Kernels that show their surroundings: operands, attributes, location and thread.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Rest, Results, ScalarAttr};
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, HostContext, Value};

use crate::operands;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.print_hello", print_hello)
        .add("tfrt_test.print_bool", print_bool)
        .add("tfrt_test.print_debug_info", print_debug_info)
        .add("tfrt_test.test_cost", test_cost)
        .add("tfrt_test.logging", logging)
        .add("tfrt_test.identity", |_: Chain, rest: Rest| Results(rest.0))
        .add("tfrt_test.multi_arg_result", |all: Rest| Results(all.0))
        .add("tfrt_test.make_indirect", make_indirect)
        .add("tfrt_test.get_uniqueness", get_uniqueness)
        .add("tfrt_test.count3.i32", |x: i32| {
            (x.wrapping_add(1), x.wrapping_add(2), x.wrapping_add(3))
        })
        .add("tfrt_test.count3.i64", |x: i64| {
            (x.wrapping_add(1), x.wrapping_add(2), x.wrapping_add(3))
        })
        .add("tfrt_test.sum", sum)
        .add("tfrt_test.sum_array_attr.i32", sum_array::<i32>)
        .add("tfrt_test.sum_array_attr.i64", sum_array::<i64>)
        .add("tfrt_test.flat", flat)
        .add("tfrt_test.get_thread_id", |_: Chain| thread_id())
        .add("tfrt_test.unique_loc", unique_location)
        .add("tfrt_test.async_value_get", async_value_get)
        .add("tfrt_test.async_value_ref", async_value_ref);
}

/// `%c1 = "tfrt_test.print_hello"(%c0)`
fn print_hello(host: &HostContext) -> Chain {
    host.output().print("hello host executor!");
    Chain
}

/// `%c1 = "tfrt_test.print_bool"(%c0, %b)`
fn print_bool(chain: Chain, value: bool, host: &HostContext) -> Chain {
    host.output().print(value);
    chain
}

/// `%c1 = "tfrt_test.print_debug_info"(%c0) loc("name")`
fn print_debug_info(context: &ExecutionContext) -> Chain {
    let output = context.host().output();
    match context.debug_name() {
        Some(name) => output.print(name),
        None => output.print("Kernel has no debug info"),
    }
    Chain
}

/// `%r = tfrt_test.test_cost %a {id = 1 : i64, _tfrt_cost = 100 : i64} : i32`: the cost is for the
/// compiler alone.
fn test_cost(_: Rest, id: Attr<i64>, host: &HostContext) -> i32 {
    host.output().print(format_args!("id: {}", *id));
    0
}

/// `%c1 = "tfrt_test.logging"(%s, %c0)`
#[allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]
fn logging(message: &String, host: &HostContext) -> Chain {
    let log = |letter: char, source: fmt::Arguments<'_>| {
        host.output().log(format_args!(
            "{letter} tfrt_test.logging] from {source}: {message}"
        ));
    };
    let levels = ["INFO", "WARNING", "ERROR"];
    for level in levels {
        log(first(level), format_args!("TFRT_LOG({level})"));
    }
    for level in levels {
        log(first(level), format_args!("TFRT_LOG_IF({level}, true)"));
    }
    Chain
}

fn first(level: &str) -> char {
    level.chars().next().expect("a level has a name")
}

/// `%y = "tfrt_test.make_indirect"(%x)`: a promised value that is forwarded to the operand.
fn make_indirect(operands: Rest) -> Results {
    let indirect = |operand| {
        let (promise, value) = AnyAsyncValue::pending();
        promise.forward(operand);
        value
    };
    Results(operands.0.into_iter().map(indirect).collect())
}

/// `%b = "tfrt_test.get_uniqueness"(%x)`: whether nobody else holds the operand. Small values are in registers, where
/// copies can't be told apart: they are never unique.
fn get_uniqueness(operands: Rest) -> Results {
    let unique = operands.iter().map(|operand| operand.is_unique());
    Results(unique.map(AnyAsyncValue::new).collect())
}

/// `%s = "tfrt_test.sum"(%a, %b, %c)`
pub(super) fn sum(first: i32, rest: Rest) -> Result<i32, Error> {
    let rest = operands::copies::<i32>(&rest)?;
    Ok(rest.into_iter().fold(first, i32::wrapping_add))
}

/// `%s = "tfrt_test.sum_array_attr.i32"() {a = "1", b = [2 : i32, 3 : i32]}`: the text, the array,
/// the request's data of the type, and its resource `val`.
fn sum_array<T>(
    initial: Attr<&str>,
    array: Attr<&[T]>,
    context: &ExecutionContext,
) -> Result<T, Error>
where
    T: Value + ScalarAttr + Into<i64> + TryFrom<i64>,
{
    let request = context.request();
    let missing = |what: &str| Error::failed_precondition(format!("the request has no {what}"));
    let name = T::NAME;
    let no_integer = || Error::unknown(format!("Cannot convert {} to target int", *initial));
    let initial = parse_integer(*initial)
        .filter(|initial| T::try_from(*initial).is_ok())
        .ok_or_else(no_integer)?;
    let data = request
        .data::<T>()
        .ok_or_else(|| missing(&format!("data of type {name}")))?;
    let resource = request
        .resources()
        .and_then(|resources| resources.get::<T>("val"))
        .ok_or_else(|| missing(&format!("resource 'val' of type {name}")))?;
    let sum = array
        .iter()
        .chain([&*data, &*resource])
        .fold(initial, |sum, item| sum.wrapping_add((*item).into()));
    T::try_from(sum).map_err(|_| Error::new(OUT_OF_RANGE, format!("{sum} exceeds {name}")))
}

const OUT_OF_RANGE: tfrt_host::ErrorCode = tfrt_host::ErrorCode::OutOfRange;

/// Reads an integer in the notation of C: `12`, `-12`, `0xc`, `0b1100`, `0o14`, `014`.
fn parse_integer(text: &str) -> Option<i64> {
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", text),
    };
    let lower = magnitude.to_ascii_lowercase();
    let radixes = [("0x", 16), ("0b", 2), ("0o", 8)];
    let prefixed = radixes
        .into_iter()
        .find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, radix)));
    let (digits, radix) = match prefixed {
        Some(prefixed) => prefixed,
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&*lower, 10),
    };
    if !digits.starts_with(|digit: char| digit.is_ascii_hexdigit()) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
}

/// `%s, %i, %j, %f = "tfrt_test.flat"() {value = [["s", [1 : i32, 0 : i32]], [1.0 : f32]]}`
fn flat(value: Attr<AttributeView<'_>>) -> Result<(String, i32, i32, f32), Error> {
    read_flat(*value).ok_or_else(|| {
        Error::invalid_argument(
            "expected an attribute like [[\"s\", [1 : i32, 0 : i32]], [1.0 : f32]]",
        )
    })
}

fn read_flat(value: AttributeView<'_>) -> Option<(String, i32, i32, f32)> {
    let outer = value.aggregate()?;
    let inner = outer.get(0)?.aggregate()?;
    let text = inner.get(0)?.as_str()?.to_owned();
    let &[first, second, ..] = inner.get(1)?.array::<i32>()? else {
        return None;
    };
    let &[number, ..] = outer.get(1)?.array::<f32>()? else {
        return None;
    };
    Some((text, first, second, number))
}

/// Numbers threads in the order in which they ask, from 0.
fn thread_id() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    thread_local! {
        // Ordering: only the number matters.
        static ID: i32 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    ID.with(|id| *id)
}

/// The names that `tfrt_test.unique_loc` has seen in a request, by location.
#[derive(Default)]
struct NamedLocations(Mutex<HashMap<Option<u32>, String>>);

/// `%c = "tfrt_test.unique_loc"() {name = "a"}`: no two names have one location.
fn unique_location(name: Attr<&str>, context: &ExecutionContext) -> Result<Chain, Error> {
    let location = context.location_id();
    let named = context.request().data_or_insert(NamedLocations::default);
    let mut names = named.0.lock().unwrap_or_else(PoisonError::into_inner);
    let first = names.entry(location).or_insert_with(|| (*name).to_owned());
    if first == *name {
        return Ok(Chain);
    }
    let location = location.unwrap_or_default();
    Err(Error::unknown(format!("duplicate locations {location}")))
}

/// `%s = "tfrt_test.async_value_get"()`: reads values after they were set.
fn async_value_get() -> String {
    let strings = ["base1", "base2", "final_class"]
        .map(|text| AsyncValue::available(text.to_owned()).into_any());
    let three = AnyAsyncValue::new(3i32);
    let mut parts: Vec<&str> = strings
        .iter()
        .filter_map(|value| value.get::<String>())
        .map(String::as_str)
        .collect();
    let number = three.get::<i32>().map(i32::to_string).unwrap_or_default();
    parts.push(&number);
    parts.join(":")
}

/// `%s = "tfrt_test.async_value_ref"()`: values before and after they are resolved.
fn async_value_ref() -> String {
    let two = AsyncValue::available(2);
    let (promise_of_three, three) = AsyncValue::pending();
    let (promise_of_four, four) = AsyncValue::pending();
    let mut text = format!("{};{};", state(&two), state(&three));

    let (seen, heard) = std::sync::mpsc::channel();
    three.clone().when_settled(move |three| {
        // The receiver is there as long as this function runs.
        let _ = seen.send(number(&three).unwrap_or_default());
    });
    promise_of_three.resolve(3);
    let continued = heard.try_recv().unwrap_or_default();
    text += &format!("({continued});{};{}", state(&three), state(&four));

    promise_of_four.resolve(4);
    text + ";" + &state(&four)
}

/// Writes `available:3` or `unavailable`.
fn state(value: &AsyncValue<i32>) -> String {
    match number(value) {
        Some(number) => format!("available:{number}"),
        None => "unavailable".to_owned(),
    }
}

fn number(value: &AsyncValue<i32>) -> Option<i32> {
    value.get()?.ok().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn async_values_read_as_the_original_does() {
        assert_eq!(async_value_get(), "base1:base2:final_class:3");
        let expected = "available:2;unavailable;(3);available:3;unavailable;available:4";
        assert_eq!(async_value_ref(), expected);
    }

    #[test]
    fn integers_are_read_in_the_notation_of_c() {
        let cases = [
            ("12", Some(12)),
            ("-12", Some(-12)),
            ("0x1F", Some(31)),
            ("0b101", Some(5)),
            ("0o17", Some(15)),
            ("017", Some(15)),
            ("0", Some(0)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("", None),
            ("-", None),
            ("+1", None),
            ("--1", None),
            ("0x-1", None),
            ("12a", None),
            ("9223372036854775808", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_integer(text), expected, "{text}");
        }
    }

    #[test]
    fn thread_keeps_its_number() {
        assert_eq!(thread_id(), thread_id());
        let other = std::thread::spawn(thread_id).join().unwrap();
        assert_ne!(other, thread_id());
    }
}
