//! Handles of tensors whose elements stand in the program.

use super::HANDLE;
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, *},
};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        const_dense(OpDef::new("corert.const_dense_tensor")),
        const_string(),
    ];
    all.extend(NAMES.map(|name| create_dense(OpDef::new(name))));
    all
}

const NAMES: [&str; 15] = [
    "corert.create_dense_tensor.ui8",
    "corert.create_dense_tensor.ui16",
    "corert.create_dense_tensor.ui32",
    "corert.create_dense_tensor.ui64",
    "corert.create_dense_tensor.i1",
    "corert.create_dense_tensor.i8",
    "corert.create_dense_tensor.i16",
    "corert.create_dense_tensor.i32",
    "corert.create_dense_tensor.i64",
    "corert.create_dense_tensor.bf16",
    "corert.create_dense_tensor.f16",
    "corert.create_dense_tensor.f32",
    "corert.create_dense_tensor.f64",
    "corert.create_dense_tensor.complex64",
    "corert.create_dense_tensor.complex128",
];

pub(in crate::dialects) fn const_dense(definition: OpDef) -> OpDef {
    let name = definition.name();
    definition
        .summary("A tensor of the elements of a dense attribute")
        .attribute("value", AttributeKind::Any, "the elements, a `dense<...>`")
        .result("tensor", HANDLE)
        .fails(
            "InvalidArgument",
            "error creating DenseHostTensor: attribute 'value' is no dense elements",
            "it is something else",
        )
        .pure()
        .format("$value attr-dict")
        .example(format!("%tensor = {name} dense<[1, 2]> : tensor<2xi32>"))
        .generic(format!(
            "%tensor = \"{name}\"() {{value = dense<[1, 2]> : tensor<2xi32>}} : () -> \
             !corert.tensorhandle"
        ))
}

fn const_string() -> OpDef {
    OpDef::new("corert.const_string_tensor")
        .summary("A tensor of strings")
        .attribute(
            "shape",
            AttributeKind::Array(I64),
            "the extents, outermost first",
        )
        .attribute(
            "value",
            AttributeKind::Strings,
            "the strings in row-major order, or one for all of them",
        )
        .result("tensor", HANDLE)
        .fails(
            "InvalidArgument",
            "Shape mismatch: N strings for a tensor of shape SHAPE",
            "these are neither one nor as many as the shape has elements",
        )
        .pure()
        .format("attr-dict")
        .example("%tensor = corert.const_string_tensor {shape = [2], value = [\"a\", \"b\"]}")
        .generic(
            "%tensor = \"corert.const_string_tensor\"() {shape = [2], value = [\"a\", \"b\"]} : \
             () -> !corert.tensorhandle",
        )
}

/// Completes the entry of an operation that makes a tensor of elements of the type at the end of
/// its name.
pub(in crate::dialects) fn create_dense(definition: OpDef) -> OpDef {
    let name = definition.name();
    let (kind, elements) = example_elements(name);
    let definition = match name.contains("complex") {
        true => {
            definition.details("The real part of each element is followed by its imaginary part.")
        }
        false => definition,
    };
    definition
        .summary("A dense tensor of a list of elements")
        .attribute(
            "shape",
            AttributeKind::Array(I64),
            "the extents, outermost first",
        )
        .attribute(
            "value",
            AttributeKind::Array(kind),
            "the elements in row-major order",
        )
        .result("tensor", HANDLE)
        .fails(
            "InvalidArgument",
            "Shape mismatch: N values for a tensor of shape SHAPE",
            "these are not as many as the shape has elements",
        )
        .pure()
        .format("attr-dict")
        .example(format!(
            "%tensor = {name} {{shape = [1], value = {elements}}}"
        ))
        .generic(format!(
            "%tensor = \"{name}\"() {{shape = [1], value = {elements}}} : () -> \
             !corert.tensorhandle"
        ))
}

/// Returns the kind of attributes that the elements are written as, and those of a tensor of one
/// element.
fn example_elements(name: &str) -> (ValueKind, &'static str) {
    match name.rsplit('.').next() {
        Some("ui8") => (UI8, "[1 : ui8]"),
        Some("ui16") => (UI16, "[1 : ui16]"),
        Some("ui32") => (UI32, "[1 : ui32]"),
        Some("ui64") => (UI64, "[1 : ui64]"),
        Some("i1") => (I1, "[true]"),
        Some("i8") => (I8, "[1 : i8]"),
        Some("i16") => (I16, "[1 : i16]"),
        Some("i32") => (I32, "[1 : i32]"),
        Some("i64") => (I64, "[1 : i64]"),
        Some("bf16") => (BF16, "[1.0 : bf16]"),
        Some("f16") => (F16, "[1.0 : f16]"),
        Some("f64") => (F64, "[1.0 : f64]"),
        Some("complex64") => (F32, "[1.0 : f32, 0.0 : f32]"),
        Some("complex128") => (F64, "[1.0 : f64, 0.0 : f64]"),
        _ => (F32, "[1.0 : f32]"),
    }
}
