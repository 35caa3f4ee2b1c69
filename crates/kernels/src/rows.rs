//! Kernels of rows on tensors: those of TensorFlow, training and tests, and rows of graphs whose kernels of ONNX are
//! not general enough, or not short enough for eager calls.
//!
//! A kernel is a [`TensorKernel`]. Families are files, each with its list.

use std::collections::HashMap;
use std::sync::LazyLock;

use tfrt_host::Error;
use tfrt_host::kernel::KernelRegistry;
use tfrt_ops::{InferError, OpDef};
use tfrt_tensor::op::{RowKernel, TensorCall, TensorKernel, register_tensors};

mod arrays;
mod detection;
mod diagonals;
mod images;
mod lists;
mod numbers;
mod optimizers;
mod product;
mod queues;
mod ragged;
mod rearrange;
mod search;
mod segments;
mod stablehlo;
mod strings;
mod tables;
mod tensors;
mod test;
mod training;
mod variables;
mod volumes;

use tensors::integers;

/// The families of kernels, each a list.
const KERNELS: &[&[TensorKernel]] = &[
    arrays::KERNELS,
    detection::KERNELS,
    diagonals::KERNELS,
    images::KERNELS,
    lists::KERNELS,
    numbers::KERNELS,
    optimizers::KERNELS,
    rearrange::KERNELS,
    product::KERNELS,
    queues::KERNELS,
    ragged::KERNELS,
    search::KERNELS,
    segments::KERNELS,
    stablehlo::KERNELS,
    strings::KERNELS,
    tables::KERNELS,
    tensors::KERNELS,
    test::KERNELS,
    training::KERNELS,
    variables::KERNELS,
    variables::rows::KERNELS,
    variables::slices::KERNELS,
    volumes::KERNELS,
];

static BY_NAME: LazyLock<HashMap<&'static str, TensorKernel>> =
    LazyLock::new(|| kernels().map(|kernel| (kernel.op, *kernel)).collect());

/// Returns all kernels of this module.
pub fn kernels() -> impl Iterator<Item = &'static TensorKernel> {
    KERNELS.iter().copied().flatten()
}

/// Adds the kernels of programs for library rows of TensorFlow and StableHLO: `cpu.tf.Pack`.
pub fn register(registry: &mut KernelRegistry) {
    let is_library = |op: &str| op.starts_with("tf.") || op.starts_with("stablehlo.");
    register_tensors(registry, kernels().filter(|kernel| is_library(kernel.op)));
}

/// Returns the kernels of a row on the processor, if there are some.
pub fn find(op: &'static OpDef) -> Option<RowKernel> {
    match BY_NAME.get(op.name) {
        Some(kernel) => Some(RowKernel::Tensors(*kernel)),
        None => crate::onnx::kernel_of(op).map(RowKernel::Values),
    }
}

/// Adds the call to an error about its attributes.
fn of_call<'a>(call: &'a TensorCall<'_>) -> impl FnOnce(InferError) -> Error + 'a {
    |error| call.error(format_args!("{error}"))
}
