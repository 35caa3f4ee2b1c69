//! Kernels of rows on tensors: what [`tfrt_ops`] has of TensorFlow, training and tests, and rows of graphs whose kernels
//! of ONNX are not general enough, or not short enough for eager calls.
//!
//! A kernel is a [`TensorKernel`]. Families are files, each with its list.

use std::collections::HashMap;
use std::sync::LazyLock;

use tfrt_host::Error;
use tfrt_ops::{InferError, OpDef};
use tfrt_tensor::op::{RowKernel, TensorCall, TensorKernel};

mod detection;
mod diagonals;
mod images;
mod numbers;
mod places;
mod product;
mod ragged;
mod search;
mod segments;
mod strings;
mod tensors;
mod test;
mod training;
mod volumes;

use tensors::integers;

/// All families, each the list of its kernels.
const KERNELS: &[&[TensorKernel]] = &[
    detection::KERNELS,
    diagonals::KERNELS,
    images::KERNELS,
    numbers::KERNELS,
    places::KERNELS,
    product::KERNELS,
    ragged::KERNELS,
    search::KERNELS,
    segments::KERNELS,
    strings::KERNELS,
    tensors::KERNELS,
    test::KERNELS,
    training::KERNELS,
    volumes::KERNELS,
];

static BY_NAME: LazyLock<HashMap<&'static str, TensorKernel>> =
    LazyLock::new(|| kernels().map(|kernel| (kernel.op, *kernel)).collect());

/// Returns all kernels of this module.
pub fn kernels() -> impl Iterator<Item = &'static TensorKernel> {
    KERNELS.iter().copied().flatten()
}

/// Returns what runs a row on the processor, if there is a kernel for some of its kinds.
pub fn find(op: &'static OpDef) -> Option<RowKernel> {
    match BY_NAME.get(op.name) {
        Some(kernel) => Some(RowKernel::Tensors(*kernel)),
        None => crate::onnx::kernel_of(op).map(RowKernel::Values),
    }
}

/// Says what of a call's attributes is wrong.
fn of_call<'a>(call: &'a TensorCall<'_>) -> impl FnOnce(InferError) -> Error + 'a {
    |error| call.error(format_args!("{error}"))
}
