//! Operations on tensors for tests.

use crate::dialect::{AttributeKind, OpDef, Traits, ValueKind::Chain};
use crate::dialects::kernel;
use crate::dialects::tfrt_dht::{TENSOR, used_by_others, wrong_type};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        constant("tfrt_test.const_dense_attr"),
        constant("tfrt_test.sync.const_dense_attr").traits(&[Traits::SYNC]),
        slice("tfrt_test.slice_inplace.f32.3"),
        slice("tfrt_test.slice_inplace.i32.3"),
        slice("tfrt_test.slice_inplace.i64.3"),
    ]
}

fn constant(name: &'static str) -> OpDef {
    kernel(name)
        .summary("A dense tensor of the elements of an attribute")
        .attribute("value", AttributeKind::Any, "the elements, a `dense<...>`")
        .result("tensor", TENSOR)
        .fails(
            "InvalidArgument",
            "error creating DenseHostTensor: attribute 'value' is no dense elements",
            "it is something else",
        )
        .fails(
            "ResourceExhausted",
            "Cannot allocate tensor of TYPE SHAPE",
            "the host has no memory left for it",
        )
        .allocates()
}

fn slice(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary("Copies the part of a tensor that begins at some coordinates and is as large as another")
        .operand("input", TENSOR)
        .operand("begin", TENSOR)
        .operand("chain", Chain)
        .operand("output", TENSOR)
        .result("done", Chain)
        .fails(
            "InvalidArgument",
            "the size of 'begin_index' should match the input tensor rank",
            "there is not one coordinate, an `i64`, for each of the three dimensions",
        )
        .fails(
            "InvalidArgument",
            "a slice of shape SHAPE from COORDINATES on is not in a tensor of shape SHAPE",
            "it leads out of the input",
        )
        .reads(0)
        .reads(1)
        .writes(3);
    used_by_others(wrong_type(definition))
}
