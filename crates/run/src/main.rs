//! The command `tfrt-run`: the runtime and its basic kernels, for small devices.

#![cfg_attr(unix, no_main)]
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "a listed module")]
mod backtrace;
#[cfg(unix)]
#[allow(unsafe_code, reason = "a listed module")]
mod entry;

#[cfg(not(unix))]
fn main() -> std::process::ExitCode {
    tfrt_run::command::main(tfrt_kernels::tfrt::register)
}
