//! `tfrt-run` with the kernels of tests too: how one makes a small command with kernels of one's
//! own, and what `cargo xtask size` shows panics to.

use std::process::ExitCode;

fn main() -> ExitCode {
    tfrt_run::command::main(tfrt_kernels::register_all)
}
