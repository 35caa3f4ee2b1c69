//! Collectives: all members of a group take part, or all fail.

use super::{CONTEXT, TASK, TENSOR, with_two_tasks};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, Chain, String, UI64},
};
use crate::dialects::OPERANDS;

/// The line that prints a tensor of two elements, by their type: `by_type!(dtype, "5, 7", ..)` is
/// `"DenseHostTensor dtype = i32, shape = [2], values = [5, 7]"` for `"i32"`.
macro_rules! by_type {
    ($dtype:expr, $integers:literal, $floats:literal, $f16:literal, $bf16:literal) => {
        by_type!(
            $dtype, "i32" $integers, "i64" $integers, "f16" $f16, "bf16" $bf16, "f64" $floats,
            "f32" $floats
        )
    };
    ($dtype:expr, $($name:literal $values:literal),*) => {
        match $dtype {
            $($name => concat!("DenseHostTensor dtype = ", $name, ", shape = [2], values = [", $values, "]"),)*
            _ => unreachable!("collectives have these types"),
        }
    };
}

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
        (
            [
                "tfrt_dist.cpu.allreduce.i64",
                "tfrt_dist.cpu.broadcast.i64",
                "tfrt_dist.cpu.allgather_fixed_shape.i64",
                "tfrt_dist.cpu.allgather_any_shape.i64",
            ],
            "i64",
        ),
        (
            [
                "tfrt_dist.cpu.allreduce.f64",
                "tfrt_dist.cpu.broadcast.f64",
                "tfrt_dist.cpu.allgather_fixed_shape.f64",
                "tfrt_dist.cpu.allgather_any_shape.f64",
            ],
            "f64",
        ),
        (
            [
                "tfrt_dist.cpu.allreduce.f16",
                "tfrt_dist.cpu.broadcast.f16",
                "tfrt_dist.cpu.allgather_fixed_shape.f16",
                "tfrt_dist.cpu.allgather_any_shape.f16",
            ],
            "f16",
        ),
        (
            [
                "tfrt_dist.cpu.allreduce.bf16",
                "tfrt_dist.cpu.broadcast.bf16",
                "tfrt_dist.cpu.allgather_fixed_shape.bf16",
                "tfrt_dist.cpu.allgather_any_shape.bf16",
            ],
            "bf16",
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
        "All members fail, or none. The result is written to `out`, which may be `in`. Each member has one leaf, its tensor, or with `leaves` some \
         of these: then `in` has one more dimension in front, of the member's leaves, which are a run of all, and `out` has not. The order of \
         additions is that of one tree over the leaves, whoever has them. A mean is divided by the number of leaves, that of integers is of the \
         wrapped sum, rounded towards zero; a minimum of NaN is NaN.",
    )
    .operand("in", TENSOR)
    .operand("out", TENSOR)
    .operand("chain", Chain)
    .optional(
        "leaves",
        AttributeKind::Number(ValueKind::I64),
        "the number of leaves of all members, 1 or more",
    )
    .optional(
        "order",
        AttributeKind::String,
        "`tree`, which is what holds without it, or `ring`, whose bits depend on the number of members",
    )
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
    .fails(
        "InvalidArgument",
        "expected `in` of shape SHAPE, the N of M leaves that member I of J has, found SHAPE",
        "a member has not the leaves that are its own",
    )
    .reads(3)
    .writes(4)
    .outside()
    .example(example)
    .prints(by_type!(dtype, "12, 12", "1.200000e+01, 1.200000e+01", "fp16(18944), fp16(18944)", "bf16(16704), bf16(16704)"))
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
        .prints(by_type!(
            dtype,
            "5, 5",
            "5.000000e+00, 5.000000e+00",
            "fp16(17664), fp16(17664)",
            "bf16(16544), bf16(16544)"
        ))
}

fn gather(name: &'static str, dtype: &str) -> OpDef {
    let made = uninitialized(dtype, "2");
    let example = on_both(
        dtype,
        "1",
        &format!(
            "%axis = tfrt.constant.ui64 0
%o0 = {made}
%o1 = {made}
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

/// Returns whether the operations that make and fill tensors of a type have forms of their own.
fn has_forms(dtype: &str) -> bool {
    matches!(dtype, "i32" | "f32")
}

/// Returns an operation that makes a tensor of so many elements.
fn uninitialized(dtype: &str, len: &str) -> std::string::String {
    match has_forms(dtype) {
        true => format!("tfrt_dht.create_uninitialized_tensor.{dtype}.1 [{len} : i64]"),
        false => format!(
            "\"tfrt_dht.create_uninitialized_tensor.{dtype}.1\"() {{shape = [{len} : i64]}} : () -> !t.tensor"
        ),
    }
}

/// Returns an example in which two tasks have tensors `%a` and `%b` of so many elements, filled behind `%f0` and `%f1`.
fn on_both(dtype: &str, len: &str, calls: &str) -> std::string::String {
    let point = if dtype.starts_with('i') { "" } else { ".0" };
    let made = uninitialized(dtype, len);
    let fill = |result, tensor, number: i32| match has_forms(dtype) {
        true => format!(
            "%{result} = tfrt_dht.fill_tensor_with_constant.{dtype} %{tensor}, %ch {number}{point} : {dtype}"
        ),
        false => format!(
            "%{result} = \"tfrt_dht.fill_tensor_with_constant.{dtype}\"(%{tensor}, %ch) {{value = {number}{point} : {dtype}}} : (!t.tensor, !tfrt.chain) -> !tfrt.chain"
        ),
    };
    let (filled_a, filled_b) = (fill("f0", "a", 5), fill("f1", "b", 7));
    with_two_tasks(&format!(
        "%group = tfrt_test.get_string {{value = \"all\"}}
%key = tfrt_test.get_string {{value = \"key\"}}
%a = {made}
{filled_a}
%b = {made}
{filled_b}
{calls}"
    ))
}

fn joined(dtype: &str) -> &'static str {
    by_type!(
        dtype,
        "5, 7",
        "5.000000e+00, 7.000000e+00",
        "fp16(17664), fp16(18176)",
        "bf16(16544), bf16(16608)"
    )
}
