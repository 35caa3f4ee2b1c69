//! A plugin in Rust, on TensorFlow's C API: an operation of its own, `ExampleScale` (`scale.rs`), and an optimizer on
//! variables, `ResourceApplyAdam` (`adam.rs`). It runs in tfrt and in TensorFlow.
//!
//! A plugin declares the functions that it uses (`api.rs`); whoever loads it has them. `TF_InitKernel` is called once.

#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a registration is one thing, in several calls"
)]

mod adam;
mod api;
mod scale;

use api::Status;

/// Defines the operation and registers the kernels. Whoever loads the library calls this once.
// SAFETY: no other library of the process is asked for this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InitKernel() {
    let status = Status::new();
    scale::register(&status);
    adam::register(&status);
}
