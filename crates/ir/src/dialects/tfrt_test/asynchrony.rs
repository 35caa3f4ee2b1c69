//! Operations whose results come later: from tasks, from blocking tasks, and after a
//! while.

use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{self, *},
};
use crate::dialects::{checks, kernel};

const REFUSED: &str = "Failed to enqueue blocking work. Maximum number of pending blocking tasks \
                       reached.";

pub(super) fn definitions() -> Vec<OpDef> {
    let constant = |name, kind| {
        kernel(name)
            .summary("A constant, made by a task")
            .asynchronous()
            .attribute("value", AttributeKind::Typed(kind), "the constant")
            .result("constant", kind)
            .no_effects()
    };
    let copy = |name, kind: ValueKind| {
        kernel(name)
            .operand("value", kind)
            .result("copy", kind)
            .no_effects()
    };
    let slow = |name, kind| {
        copy(name, kind)
            .summary("The value, after one to ten milliseconds")
            .details(
                "A task sleeps so long, which it must not do outside of tests; how long is chosen \
                 at random.",
            )
            .asynchronous()
    };
    let blocking = |name, kind| {
        copy(name, kind)
            .summary("The value, after one to ten milliseconds")
            .details(
                "The kernel keeps the thread that it is called on, which a kernel must not do \
                 outside of tests; how long is chosen at random.",
            )
    };
    let task = "The value, copied by a task";
    vec![
        do_async(),
        constant("tfrt_test.async_constant.i1", I1),
        constant("tfrt_test.async_constant.i32", I32),
        kernel("tfrt_test.async_add.i32")
            .summary("The sum, made by a task")
            .details("What does not fit wraps around.")
            .asynchronous()
            .operand("lhs", I32)
            .operand("rhs", I32)
            .result("sum", I32)
            .no_effects(),
        copy("tfrt_test.async_copy.i32", I32)
            .summary(task)
            .asynchronous(),
        copy("tfrt_test.async_copy_2.i32", I32)
            .summary(task)
            .asynchronous(),
        slow("tfrt_test.async_copy.with_delay.i32", I32),
        slow("tfrt_test.async_copy.with_delay.i64", I64),
        blocking("tfrt_test.copy.with_delay.i32", I32),
        blocking("tfrt_test.copy.with_delay.i64", I64),
        kernel("tfrt_test.as_chain")
            .summary("A chain that is there when all operands are")
            .details("The same as `tfrt.merge.chains`.")
            .rest("operands")
            .result("done", Chain)
            .no_effects(),
        quiesce(),
        kernel("tfrt_test.usleep")
            .summary("Sleeps in a blocking task, then prints `Slept for N microseconds`")
            .details(
                "Nothing waits for that, unless the host does. A negative time is none. If the \
                 queue takes no more blocking tasks, a line in the log says so.",
            )
            .operand("microseconds", I32)
            .outside(),
        kernel("tfrt_test.blocking.usleep")
            .summary("Sleeps in a blocking task, then prints `Slept for N microseconds`")
            .details("The chain is there when that is done. A negative time is none.")
            .asynchronous()
            .operand("microseconds", I32)
            .result("done", Chain)
            .fails(
                "ResourceExhausted",
                REFUSED,
                "the queue takes no more blocking tasks; the log says so too",
            )
            .outside(),
    ]
}

fn do_async() -> OpDef {
    OpDef::new("tfrt_test.do.async")
        .summary("Runs a region as a task of its own")
        .calls()
        .nested()
        .rest("operands")
        .any_results("results")
        .regions(1)
        .traits(&[
            Traits::ISOLATED,
            Traits::SINGLE_BLOCK,
            Traits::SHADOWS_OPERANDS,
        ])
        .format("operands attributes : types  region")
        .verify(checks::do_async)
        .example(
            "%chain = tfrt.new.chain
%x = tfrt.constant.i32 21
%y = tfrt_test.do.async %x : (i32) -> (i32) {
  %twice = tfrt.add.i32 %x, %x
  tfrt.return %twice : i32
}
%done = tfrt.print.i32 %y, %chain",
        )
        .prints("int32 = 42")
        .generic(
            "%results = \"tfrt_test.do.async\"(%operands) ({
^bb0(%x: i32):
  \"tfrt.return\"(%x) : (i32) -> ()
}) : (i32) -> i32",
        )
}

fn quiesce() -> OpDef {
    kernel("tfrt_test.quiesce")
        .summary("Waits until no other task is left")
        .details(
            "It keeps its thread meanwhile, which a kernel must not do outside of tests, and is \
             refused where that cannot end.",
        )
        .operand("chain", Chain)
        .result("done", Chain)
        .fails(
            "FailedPrecondition",
            "REASON",
            "the queue refuses to wait, as on one of its own workers",
        )
        .outside()
}
