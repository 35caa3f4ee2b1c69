//! Prints scalars, one line each.

use std::fmt;

use tfrt_host::kernel::{Complex, F16, KernelRegistry};
use tfrt_host::{Chain, HostContext};

use crate::text::Fixed;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.print.i1", |value: bool, host: &HostContext| {
            line(host, "int1", u8::from(value))
        })
        .add("tfrt.print.i32", |value: i32, host: &HostContext| {
            line(host, "int32", value)
        })
        .add("tfrt.print.i64", |value: i64, host: &HostContext| {
            line(host, "int64", value)
        })
        .add("tfrt.print.f16", |value: F16, host: &HostContext| {
            line(host, "f16", value.0)
        })
        .add("tfrt.print.f32", |value: f32, host: &HostContext| {
            line(host, "f32", Fixed(value.into()))
        })
        .add("tfrt.print.f64", |value: f64, host: &HostContext| {
            line(host, "f64", Fixed(value))
        })
        .add("tfrt.print.complex64", print_complex64)
        .add("tfrt.print.complex128", print_complex128);
}

/// `%c1 = "tfrt.print.complex64"(%x, %c0)`
fn print_complex64(value: Complex<f32>, host: &HostContext) -> Chain {
    line(host, "complex64", parts(value))
}

/// `%c1 = "tfrt.print.complex128"(%x, %c0)`
fn print_complex128(value: Complex<f64>, host: &HostContext) -> Chain {
    line(host, "complex128", parts(value))
}

/// Writes `R+Ii`, with a `+` whatever the sign of the imaginary part.
fn parts<T: Into<f64>>(value: Complex<T>) -> String {
    let (real, imaginary) = (Fixed(value.real.into()), Fixed(value.imaginary.into()));
    format!("{real}+{imaginary}i")
}

/// Prints `KIND = VALUE`.
fn line(host: &HostContext, kind: &str, value: impl fmt::Display) -> Chain {
    host.output().print(format_args!("{kind} = {value}"));
    Chain
}
