//! Tensors that are made from nothing.

use super::{TENSOR, takes_memory};
use crate::dialect::{AttributeKind, OpDef, ValueKind::I64};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    let with_form = WITH_FORM.map(|name| uninitialized_with_form(OpDef::new(name)));
    let others = OTHERS.map(|name| uninitialized(kernel(name)));
    with_form.into_iter().chain(others).collect()
}

/// Completes the entry of an operation that makes a tensor and has a form of its own.
pub(in crate::dialects) fn uninitialized_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    let example = format!("%tensor = {name} [{}]", some_extents(name));
    uninitialized(definition)
        .format("$shape attr-dict")
        .example(example)
}

pub(in crate::dialects) fn uninitialized(definition: OpDef) -> OpDef {
    let name = definition.name();
    let definition = definition
        .summary("A tensor whose elements are still to be written")
        .details(
            "Until then they are 0. The number at the end of the name is that of dimensions as the author \
             sees it; what counts is the shape, as in the original. Two tensors are never the same, so that \
             this is not merged with its like.",
        )
        .attribute(
            "shape",
            AttributeKind::Array(I64),
            "the extents, outermost first",
        )
        .result("tensor", TENSOR)
        .allocates()
        .generic(format!(
            "%tensor = \"{name}\"() {{shape = [{}]}} : () -> !t.tensor",
            some_extents(name)
        ));
    takes_memory(definition)
}

/// Returns as many extents as the name of an operation says.
fn some_extents(name: &str) -> String {
    let rank = name.rsplit('.').next().and_then(|rank| rank.parse().ok());
    vec!["2 : i64"; rank.unwrap_or(0)].join(", ")
}

const WITH_FORM: [&str; 50] = [
    "tfrt_dht.create_uninitialized_tensor.ui8.0",
    "tfrt_dht.create_uninitialized_tensor.ui8.1",
    "tfrt_dht.create_uninitialized_tensor.ui8.2",
    "tfrt_dht.create_uninitialized_tensor.ui8.3",
    "tfrt_dht.create_uninitialized_tensor.ui8.4",
    "tfrt_dht.create_uninitialized_tensor.ui16.0",
    "tfrt_dht.create_uninitialized_tensor.ui16.1",
    "tfrt_dht.create_uninitialized_tensor.ui16.2",
    "tfrt_dht.create_uninitialized_tensor.ui16.3",
    "tfrt_dht.create_uninitialized_tensor.ui16.4",
    "tfrt_dht.create_uninitialized_tensor.ui32.0",
    "tfrt_dht.create_uninitialized_tensor.ui32.1",
    "tfrt_dht.create_uninitialized_tensor.ui32.2",
    "tfrt_dht.create_uninitialized_tensor.ui32.3",
    "tfrt_dht.create_uninitialized_tensor.ui32.4",
    "tfrt_dht.create_uninitialized_tensor.ui64.0",
    "tfrt_dht.create_uninitialized_tensor.ui64.1",
    "tfrt_dht.create_uninitialized_tensor.ui64.2",
    "tfrt_dht.create_uninitialized_tensor.ui64.3",
    "tfrt_dht.create_uninitialized_tensor.ui64.4",
    "tfrt_dht.create_uninitialized_tensor.i32.0",
    "tfrt_dht.create_uninitialized_tensor.i32.1",
    "tfrt_dht.create_uninitialized_tensor.i32.2",
    "tfrt_dht.create_uninitialized_tensor.i32.3",
    "tfrt_dht.create_uninitialized_tensor.i32.4",
    "tfrt_dht.create_uninitialized_tensor.i64.0",
    "tfrt_dht.create_uninitialized_tensor.i64.1",
    "tfrt_dht.create_uninitialized_tensor.i64.2",
    "tfrt_dht.create_uninitialized_tensor.i64.3",
    "tfrt_dht.create_uninitialized_tensor.i64.4",
    "tfrt_dht.create_uninitialized_tensor.f32.0",
    "tfrt_dht.create_uninitialized_tensor.f32.1",
    "tfrt_dht.create_uninitialized_tensor.f32.2",
    "tfrt_dht.create_uninitialized_tensor.f32.3",
    "tfrt_dht.create_uninitialized_tensor.f32.4",
    "tfrt_dht.create_uninitialized_tensor.bool.0",
    "tfrt_dht.create_uninitialized_tensor.bool.1",
    "tfrt_dht.create_uninitialized_tensor.bool.2",
    "tfrt_dht.create_uninitialized_tensor.bool.3",
    "tfrt_dht.create_uninitialized_tensor.bool.4",
    "tfrt_dht.create_uninitialized_tensor.complex64.0",
    "tfrt_dht.create_uninitialized_tensor.complex64.1",
    "tfrt_dht.create_uninitialized_tensor.complex64.2",
    "tfrt_dht.create_uninitialized_tensor.complex64.3",
    "tfrt_dht.create_uninitialized_tensor.complex64.4",
    "tfrt_dht.create_uninitialized_tensor.complex128.0",
    "tfrt_dht.create_uninitialized_tensor.complex128.1",
    "tfrt_dht.create_uninitialized_tensor.complex128.2",
    "tfrt_dht.create_uninitialized_tensor.complex128.3",
    "tfrt_dht.create_uninitialized_tensor.complex128.4",
];

const OTHERS: [&str; 34] = [
    "tfrt_dht.create_uninitialized_tensor.ui8.5",
    "tfrt_dht.create_uninitialized_tensor.ui16.5",
    "tfrt_dht.create_uninitialized_tensor.ui32.5",
    "tfrt_dht.create_uninitialized_tensor.ui64.5",
    "tfrt_dht.create_uninitialized_tensor.i32.5",
    "tfrt_dht.create_uninitialized_tensor.i64.5",
    "tfrt_dht.create_uninitialized_tensor.f32.5",
    "tfrt_dht.create_uninitialized_tensor.bool.5",
    "tfrt_dht.create_uninitialized_tensor.complex64.5",
    "tfrt_dht.create_uninitialized_tensor.complex128.5",
    "tfrt_dht.create_uninitialized_tensor.i8.0",
    "tfrt_dht.create_uninitialized_tensor.i8.1",
    "tfrt_dht.create_uninitialized_tensor.i8.2",
    "tfrt_dht.create_uninitialized_tensor.i8.3",
    "tfrt_dht.create_uninitialized_tensor.i8.4",
    "tfrt_dht.create_uninitialized_tensor.i8.5",
    "tfrt_dht.create_uninitialized_tensor.f64.0",
    "tfrt_dht.create_uninitialized_tensor.f64.1",
    "tfrt_dht.create_uninitialized_tensor.f64.2",
    "tfrt_dht.create_uninitialized_tensor.f64.3",
    "tfrt_dht.create_uninitialized_tensor.f64.4",
    "tfrt_dht.create_uninitialized_tensor.f64.5",
    "tfrt_dht.create_uninitialized_tensor.f16.0",
    "tfrt_dht.create_uninitialized_tensor.f16.1",
    "tfrt_dht.create_uninitialized_tensor.f16.2",
    "tfrt_dht.create_uninitialized_tensor.f16.3",
    "tfrt_dht.create_uninitialized_tensor.f16.4",
    "tfrt_dht.create_uninitialized_tensor.f16.5",
    "tfrt_dht.create_uninitialized_tensor.bf16.0",
    "tfrt_dht.create_uninitialized_tensor.bf16.1",
    "tfrt_dht.create_uninitialized_tensor.bf16.2",
    "tfrt_dht.create_uninitialized_tensor.bf16.3",
    "tfrt_dht.create_uninitialized_tensor.bf16.4",
    "tfrt_dht.create_uninitialized_tensor.bf16.5",
];
