//! Kernels on strings. Results are bounded, so that a loop that doubles a string ends in an error.

#![allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]

use std::fs::{self, File};
use std::io::Read;

use tfrt_host::kernel::{Attr, KernelRegistry, Owned};
use tfrt_host::{Chain, Error, HostContext};

use super::format;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.get_string", get)
        .add("tfrt_test.get_string_sync", get)
        .add("tfrt_test.print_string", print)
        .add("tfrt_test.append_string", append)
        .add("tfrt_test.string_equal", |a: &String, b: &String| a == b)
        .add("tfrt_test.read_string_from_file", read_file)
        .add("tfrt_test.format_string", format_integer);
}

/// The most bytes of a string, whatever the host allows.
const MAX_BYTES: usize = 1 << 30;

/// Returns the most bytes of a string in a program of this host.
fn max_bytes(host: &HostContext) -> usize {
    host.limits().max_memory.unwrap_or(MAX_BYTES).min(MAX_BYTES)
}

fn too_long(host: &HostContext) -> Error {
    let limit = max_bytes(host);
    Error::resource_exhausted(format!("a string exceeds the limit of {limit} bytes"))
}

/// `%s = tfrt_test.get_string {value = "hi"}`
fn get(value: Attr<&str>) -> String {
    (*value).to_owned()
}

/// `%c1 = "tfrt_test.print_string"(%s, %c0)`
fn print(string: &String, host: &HostContext) -> Chain {
    host.output().print(format_args!("string = {string}"));
    Chain
}

/// `%c = "tfrt_test.append_string"(%a, %b)`
fn append(
    Owned(mut start): Owned<String>,
    end: &String,
    host: &HostContext,
) -> Result<String, Error> {
    if start.len() + end.len() > max_bytes(host) {
        return Err(too_long(host));
    }
    start.push_str(end);
    Ok(start)
}

/// `%s = "tfrt_test.read_string_from_file"(%path)`
fn read_file(path: &String, host: &HostContext) -> Result<String, Error> {
    let failed = |reason: &dyn std::fmt::Display| {
        Error::unknown(format!("failed to read from file {path}")).with_note(reason.to_string())
    };
    let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        // A pipe might never end, nor even be opened.
        return Err(failed(&"it is not a regular file"));
    }
    let limit = max_bytes(host) as u64;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|error| failed(&error))?;
    if bytes.len() as u64 > limit {
        return Err(too_long(host));
    }
    String::from_utf8(bytes).map_err(|error| failed(&error.utf8_error()))
}

/// `%s = "tfrt_test.format_string"(%format, %i)`: as C's `printf` with one integer.
fn format_integer(format: &String, value: i32, host: &HostContext) -> Result<String, Error> {
    match format::integer(format, value, max_bytes(host)) {
        Ok(text) => Ok(text),
        Err(format::FormatError::TooLong) => Err(too_long(host)),
        Err(format::FormatError::Malformed(reason)) => Err(Error::invalid_argument(format!(
            "can't format one integer by '{}': {reason}",
            format.escape_debug()
        ))),
    }
}
