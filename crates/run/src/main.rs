//! The command `tfrt-run`: the runtime and its basic kernels, for small devices.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "a listed module")]
mod backtrace;

use std::process::ExitCode;

fn main() -> ExitCode {
    tfrt_run::command::main(tfrt_kernels::tfrt::register)
}
