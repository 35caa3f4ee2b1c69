//! `tfrt-run` with the kernels of tests too: an example of a small command with kernels of one's
//! own. `cargo xtask size` checks with it that panics are isolated.

use std::process::ExitCode;

fn main() -> ExitCode {
    tfrt_run::command::main(tfrt_kernels::register_all)
}
