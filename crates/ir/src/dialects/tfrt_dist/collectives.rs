//! Collectives: all members of a group take part, or all fail.

use super::{CONTEXT, TASK, TENSOR, with_two_tasks};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, String, UI64},
};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    for (names, dtype) in [
        (
            [
                "tfrt_dist.cpu.allreduce.i32",
                "tfrt_dist.cpu.broadcast.i32",
                "tfrt_dist.cpu.allgather_fixed_shape.i32",
                "tfrt_dist.cpu.allgather_any_shape.i32",
            ],
            "i32",
        ),
        (
            [
                "tfrt_dist.cpu.allreduce.f32",
                "tfrt_dist.cpu.broadcast.f32",
                "tfrt_dist.cpu.allgather_fixed_shape.f32",
                "tfrt_dist.cpu.allgather_any_shape.f32",
            ],
            "f32",
        ),
    ] {
        let [reduce, broadcast, fixed, any] = names;
        all.extend([
            all_reduce(reduce, dtype),
            broadcast_of(broadcast, dtype),
            gather(fixed, dtype),
            gather_any(any, dtype),
        ]);
    }
    all
}

fn all_reduce(name: &'static str, dtype: &str) -> OpDef {
    let example = on_both(
        dtype,
        "2",
        &format!(
            "%d0 = {name} %ctx#0, %group, %key, %a, %a, %f0 {{reduction_fn = \"sum\"}}
%d1 = {name} %ctx#1, %group, %key, %b, %b, %f1 {{reduction_fn = \"sum\"}}
%all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
%printed = tfrt_dht.print_tensor %b, %all"
        ),
    );
    member(
        name,
        "Reduces a tensor over the members of a group, who all get the result",
    )
    .details(
        "All members fail, or none. The result is written to `out`, which may be `in`. The order of additions depends on the number of members \
         alone. A mean of integers is that of the wrapped sum, rounded towards zero; a minimum of NaN is NaN.",
    )
    .operand("in", TENSOR)
    .operand("out", TENSOR)
    .operand("chain", Chain)
    .attribute(
        "reduction_fn",
        AttributeKind::String,
        "`sum`, `min`, `max` or `mean`",
    )
    .result("done", Chain)
    .fails(
        "InvalidArgument",
        "unexpected reduction_name in AllReduce: expected sum, min, max or mean, found 'NAME'",
        "the function of a member is none",
    )
    .reads(3)
    .writes(4)
    .outside()
    .example(example)
    .prints(match dtype {
        "i32" => "DenseHostTensor dtype = i32, shape = [2], values = [12, 12]",
        _ => "DenseHostTensor dtype = f32, shape = [2], values = [1.200000e+01, 1.200000e+01]",
    })
}

fn broadcast_of(name: &'static str, dtype: &str) -> OpDef {
    let example = on_both(
        dtype,
        "2",
        &format!(
            "%lead = tfrt_dist.get_task_handle %ctx#0 {{task_name = \"/job:worker/task:0\"}}
%also = tfrt_dist.get_task_handle %ctx#1 {{task_name = \"/job:worker/task:0\"}}
%d0 = {name} %ctx#0, %group, %key, %a, %lead, %f0
%d1 = {name} %ctx#1, %group, %key, %b, %also, %f1
%all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
%printed = tfrt_dht.print_tensor %b, %all"
        ),
    );
    member(name, "Writes one member's tensor into that of each other")
        .details("All members fail, or none.")
        .operand("tensor", TENSOR)
        .operand("sender", TASK)
        .operand("chain", Chain)
        .result("done", Chain)
        .reads(3)
        .writes(3)
        .outside()
        .example(example)
        .prints(match dtype {
            "i32" => "DenseHostTensor dtype = i32, shape = [2], values = [5, 5]",
            _ => "DenseHostTensor dtype = f32, shape = [2], values = [5.000000e+00, 5.000000e+00]",
        })
}

fn gather(name: &'static str, dtype: &str) -> OpDef {
    let example = on_both(
        dtype,
        "1",
        &format!(
            "%axis = tfrt.constant.ui64 0
%o0 = tfrt_dht.create_uninitialized_tensor.{dtype}.1 [2 : i64]
%o1 = tfrt_dht.create_uninitialized_tensor.{dtype}.1 [2 : i64]
%d0 = {name} %ctx#0, %group, %key, %a, %o0, %axis, %f0
%d1 = {name} %ctx#1, %group, %key, %b, %o1, %axis, %f1
%all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
%printed = tfrt_dht.print_tensor %o1, %all"
        ),
    );
    member(
        name,
        "Joins the tensors of all members, which have one shape, along an axis",
    )
    .details("All members fail, or none. They are joined in the order of the members, and written to `out`.")
    .operand("in", TENSOR)
    .operand("out", TENSOR)
    .operand("axis", UI64)
    .operand("chain", Chain)
    .result("done", Chain)
    .reads(3)
    .writes(4)
    .outside()
    .example(example)
    .prints(joined(dtype))
}

fn gather_any(name: &'static str, dtype: &str) -> OpDef {
    let example = on_both(
        dtype,
        "1",
        &format!(
            "%axis = tfrt.constant.ui64 0
%d0, %j0 = {name} %ctx#0, %group, %key, %a, %axis, %f0
%d1, %j1 = {name} %ctx#1, %group, %key, %b, %axis, %f1
%all = tfrt.merge.chains %d0, %d1 : !tfrt.chain, !tfrt.chain
%printed = tfrt_dht.print_tensor %j1, %all"
        ),
    );
    member(
        name,
        "Joins the tensors of all members along an axis, where extents may differ",
    )
    .details("All members fail, or none. They are joined in the order of the members.")
    .operand("in", TENSOR)
    .operand("axis", UI64)
    .operand("chain", Chain)
    .result("done", Chain)
    .result("joined", TENSOR)
    .reads(3)
    .outside()
    .example(example)
    .prints(joined(dtype))
}

fn member(name: &'static str, summary: &'static str) -> OpDef {
    OpDef::new(name)
        .summary(summary)
        .operand("context", CONTEXT)
        .operand("group", String)
        .operand("instance", String)
        .fails(
            "InvalidArgument",
            "the members of the group do not agree: TASK has THIS, and TASK THAT",
            "members call different operations, or have tensors that don't go together",
        )
        .fails(
            "InvalidArgument",
            "The current task TASK is not part of the collective group NAME",
            "the task is none of the members; this fails for it alone",
        )
        .fails(
            "AlreadyExists",
            "there was a collective 'INSTANCE' of group 'NAME' already",
            "the task has used the name before; this fails for it alone",
        )
        .asynchronous()
        .format(OPERANDS)
}

/// Returns an example in which two tasks have tensors `%a` and `%b` of so many elements, filled behind `%f0` and `%f1`.
fn on_both(dtype: &str, len: &str, calls: &str) -> std::string::String {
    let (five, seven) = match dtype {
        "i32" => ("5 : i32", "7 : i32"),
        _ => ("5.0 : f32", "7.0 : f32"),
    };
    with_two_tasks(&format!(
        "%group = tfrt_test.get_string {{value = \"all\"}}
%key = tfrt_test.get_string {{value = \"key\"}}
%a = tfrt_dht.create_uninitialized_tensor.{dtype}.1 [{len} : i64]
%f0 = tfrt_dht.fill_tensor_with_constant.{dtype} %a, %ch {five}
%b = tfrt_dht.create_uninitialized_tensor.{dtype}.1 [{len} : i64]
%f1 = tfrt_dht.fill_tensor_with_constant.{dtype} %b, %ch {seven}
{calls}"
    ))
}

fn joined(dtype: &str) -> &'static str {
    match dtype {
        "i32" => "DenseHostTensor dtype = i32, shape = [2], values = [5, 7]",
        _ => "DenseHostTensor dtype = f32, shape = [2], values = [5.000000e+00, 7.000000e+00]",
    }
}
