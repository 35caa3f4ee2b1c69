//! The command `tfrt-run`: the runtime and its basic kernels, for small devices.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tfrt_run::command::main(tfrt_kernels::tfrt::register)
}
