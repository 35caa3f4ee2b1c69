//! The kernels of the dialects `tfrt` and `tfrt_test`, and, with the feature `tensor`, of those of tensors.
//!
//! A kernel is a plain function; a family of kernels is a file with a `register` at its top that
//! names every one of them. [`register_all`] calls these, and nothing registers itself.
//!
//! | Family | Kernels |
//! | --- | --- |
//! | [`mod@tfrt`] | constants, arithmetic, chains, printing, control flow, parallel loops |
//! | [`mod@test`] | kernels that print, wait, fail and misbehave on purpose |
//! | `tensor` | shapes, dense and sparse tensors, tensors of strings, files of them |
//! | `onnx` | the operations of ONNX |
//! | `graph` | what the compiler makes of them where it knows better |
//! | `rows` | what runs rows of the table of operations, for eager calls |
//!
//! # Examples
//!
//! ```
//! use tfrt_host::kernel::KernelRegistry;
//!
//! let mut registry = KernelRegistry::new();
//! tfrt_kernels::register_all(&mut registry);
//! let signature = registry.get("tfrt.add.i32").unwrap().signature();
//! assert_eq!(signature.to_string(), "(i32, i32) -> i32");
//! ```

#![deny(unsafe_code)]

use tfrt_host::kernel::KernelRegistry;

#[cfg(feature = "tensor")]
pub mod graph;
#[cfg(feature = "tensor")]
pub mod onnx;
mod operands;
#[cfg(feature = "tensor")]
pub mod rows;
#[cfg(feature = "tensor")]
pub mod tensor;
pub mod test;
pub mod text;
pub mod tfrt;

/// Adds every kernel and native function of this crate.
///
/// # Panics
///
/// If the registry has one of them already.
pub fn register_all(registry: &mut KernelRegistry) {
    registry.add_built_in(|registry| {
        tfrt::register(registry);
        test::register(registry);
        #[cfg(feature = "tensor")]
        tensor::register(registry);
    });
}
