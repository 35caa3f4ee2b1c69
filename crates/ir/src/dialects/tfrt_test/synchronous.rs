//! Operations for functions marked synchronous, and operations that run such
//! functions.

use crate::dialect::{AttributeKind, OpDef, Traits, ValueKind::*};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        sum("tfrt_test.sync_sum"),
        sum("tfrt_test.sync_sum2"),
        kernel("tfrt_test.sync_sum_attributes")
            .summary("The sum of its attributes")
            .details("What does not fit wraps around.")
            .more_attributes("an `i32` to add")
            .result("sum", I32)
            .fails(
                "InvalidArgument",
                "attribute INDEX can't be read as i32",
                "an attribute is something else",
            )
            .traits(&[Traits::SYNC])
            .no_effects(),
        runs(
            one(kernel("tfrt_test.invoke_sync_function.i32_i32.i32")),
            IN_THIS,
        ),
        runs(
            two(kernel("tfrt_test.invoke_sync_function.i32_i32.i32_i32")),
            IN_THIS,
        ),
        runs(
            one(kernel("tfrt_test.sync_function_runner.i32_i32.i32")),
            OF_ITS_OWN,
        ),
        runs(
            two(kernel("tfrt_test.sync_function_runner.i32_i32.i32_i32")),
            OF_ITS_OWN,
        ),
    ]
}

const IN_THIS: &str = "It runs in this request, on the stack of the kernel. Its errors become the \
                       kernel's results.";
const OF_ITS_OWN: &str = "It runs on the stack of the kernel, in a request of its own that shares \
                          resources with this one and nothing else. Its errors become the \
                          kernel's results.";

fn sum(name: &'static str) -> OpDef {
    kernel(name)
        .summary("The sum of any number of operands")
        .details("What does not fit wraps around.")
        .operand("first", I32)
        .rest_of("others", I32)
        .result("sum", I32)
        .fails(
            "InvalidArgument",
            "variadic operand INDEX: expected i32, found TYPE",
            "an operand behind the first has another type",
        )
        .traits(&[Traits::SYNC])
        .no_effects()
}

fn one(definition: OpDef) -> OpDef {
    definition
        .summary("Runs a synchronous function of two numbers for one")
        .operand("lhs", I32)
        .operand("rhs", I32)
        .result("result", I32)
}

fn two(definition: OpDef) -> OpDef {
    definition
        .summary("Runs a synchronous function of two numbers for two")
        .operand("lhs", I32)
        .operand("rhs", I32)
        .result("first", I32)
        .result("second", I32)
}

fn runs(definition: OpDef, details: &'static str) -> OpDef {
    definition
        .details(details)
        .attribute("fn", AttributeKind::FlatSymbol, "the function")
        .fails(
            "InvalidArgument",
            "'NAME' is not a synchronous function",
            "the function is not marked `tfrt.sync`",
        )
        .fails(
            "InvalidArgument",
            "expected N results, found M",
            "the function gives more or fewer",
        )
        .everything()
}
