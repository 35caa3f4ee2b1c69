//! Collectives: all members of a group take part, or all fail.

use super::{CONTEXT, TASK, TENSOR};
use crate::dialect::{
    AttributeKind, Execution, OpDef,
    ValueKind::{Chain, String, UI64},
};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    for names in [
        [
            "tfrt_dist.cpu.allreduce.i32",
            "tfrt_dist.cpu.broadcast.i32",
            "tfrt_dist.cpu.allgather_fixed_shape.i32",
            "tfrt_dist.cpu.allgather_any_shape.i32",
        ],
        [
            "tfrt_dist.cpu.allreduce.f32",
            "tfrt_dist.cpu.broadcast.f32",
            "tfrt_dist.cpu.allgather_fixed_shape.f32",
            "tfrt_dist.cpu.allgather_any_shape.f32",
        ],
    ] {
        let [reduce, broadcast, fixed, any] = names;
        all.push(
            member(reduce)
                .summary("Reduces a tensor over the members of a group, who all get the result")
                .details("The result is written to `out`, which may be `in`.")
                .operand("in", TENSOR)
                .operand("out", TENSOR)
                .operand("chain", Chain)
                .attribute(
                    "reduction_fn",
                    AttributeKind::String,
                    "`sum`, `min`, `max` or `mean`",
                )
                .result("done", Chain)
                .reads(3)
                .writes(4)
                .outside(),
        );
        all.push(
            member(broadcast)
                .summary("Writes one member's tensor into that of each other")
                .operand("tensor", TENSOR)
                .operand("sender", TASK)
                .operand("chain", Chain)
                .result("done", Chain)
                .writes(3)
                .outside(),
        );
        all.push(
            member(fixed)
                .summary("Joins the tensors of all members, which have one shape, along an axis")
                .operand("in", TENSOR)
                .operand("out", TENSOR)
                .operand("axis", UI64)
                .operand("chain", Chain)
                .result("done", Chain)
                .reads(3)
                .writes(4)
                .outside(),
        );
        all.push(
            member(any)
                .summary("Joins the tensors of all members along an axis, where extents may differ")
                .operand("in", TENSOR)
                .operand("axis", UI64)
                .operand("chain", Chain)
                .result("done", Chain)
                .result("joined", TENSOR)
                .reads(3)
                .outside(),
        );
    }
    all
}

fn member(name: &'static str) -> OpDef {
    kernel(name)
        .execution(Execution::Elsewhere)
        .operand("context", CONTEXT)
        .operand("group", String)
        .operand("instance", String)
}
