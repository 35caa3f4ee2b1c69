//! Attributes of ops as values, for tests.

use super::ATTRIBUTES;
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, F32, I1, I32, I64},
};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("corert.create_op_attrs")
            .summary("A set of attributes that has none yet")
            .result("set", ATTRIBUTES)
            .allocates(),
        sets("corert.op_attrs_set.bool", AttributeKind::Number(I1)),
        sets("corert.op_attrs_set.i32", AttributeKind::Number(I32)),
        sets("corert.op_attrs_set.f32", AttributeKind::Number(F32)),
        sets_any("corert.op_attrs_set.dtype", "a type, as `i32`", "i32"),
        sets_any(
            "corert.op_attrs_set.dense",
            "elements, a `dense<...>`",
            "dense<1> : tensor<i32>",
        ),
        sets_any(
            "corert.op_attrs_set.aggregate",
            "an array of attributes of different kinds",
            "[1 : i32, \"text\"]",
        ),
        sets_any(
            "corert.op_attrs_set.shape",
            "a shape, a `#corert.shape<...>`",
            "#corert.shape<2x?>",
        ),
        sets("corert.op_attrs_set.str", AttributeKind::String),
        sets("corert.op_attrs_set_array.i32", AttributeKind::Array(I32)),
        sets("corert.op_attrs_set_array.i64", AttributeKind::Array(I64)),
        sets("corert.op_attrs_set_array.f32", AttributeKind::Array(F32)),
    ]
}

fn sets(name: &'static str, kind: AttributeKind) -> OpDef {
    setter(name).attribute("value", kind, "its value")
}

fn sets_any(name: &'static str, meaning: &'static str, value: &str) -> OpDef {
    setter(name)
        .attribute("value", AttributeKind::Any, meaning)
        .generic(format!(
            "%done = \"{name}\"(%set, %chain) {{key = \"text\", value = {value}}} : \
             (!corert.opattrs, !tfrt.chain) -> !tfrt.chain"
        ))
}

fn setter(name: &'static str) -> OpDef {
    kernel(name)
        .summary("Adds an attribute to a set")
        .details("A name that is there already keeps its value.")
        .operand("set", ATTRIBUTES)
        .operand("chain", Chain)
        .attribute("key", AttributeKind::String, "its name")
        .result("done", Chain)
        .writes(0)
}
