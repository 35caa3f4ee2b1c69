//! `tfrt_sht` and `tfrt_sht_sync`: tensors of strings.

use super::kernel;
use super::tfrt_dht::TENSOR;
use crate::dialect::{AttributeKind, OpDef, Traits, ValueKind::I64};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![create("tfrt_sht.create_tensor")]
}

pub(super) fn synchronous_definitions() -> Vec<OpDef> {
    vec![
        create("tfrt_sht_sync.create_tensor").traits(&[Traits::SYNC]),
        of_shape("tfrt_sht_sync.create_uninitialized_tensor")
            .summary("A tensor of empty strings")
            .traits(&[Traits::SYNC]),
    ]
}

fn of_shape(name: &'static str) -> OpDef {
    kernel(name)
        .attribute(
            "shape",
            AttributeKind::Array(I64),
            "the extents, outermost first",
        )
        .result("tensor", TENSOR)
        .fails(
            "ResourceExhausted",
            "Cannot allocate tensor of str SHAPE",
            "there are more strings than the host allows, or than 2^24",
        )
        .allocates()
}

fn create(name: &'static str) -> OpDef {
    of_shape(name)
        .summary("A tensor of strings")
        .attribute(
            "values",
            AttributeKind::Any,
            "the strings in row-major order, `[\"a\", \"b\"]`",
        )
        .fails(
            "InvalidArgument",
            "Shape mismatch: N strings for a tensor of shape SHAPE",
            "these are not as many as the shape has elements",
        )
        .fails(
            "InvalidArgument",
            "value I is no string",
            "something else is in the list",
        )
}
