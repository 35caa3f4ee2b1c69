//! Operations that show what a kernel sees: its operands, attributes, place and
//! thread.

use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, *},
};
use crate::dialects::{OPERANDS, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = printers();
    all.extend(forwarders());
    all.extend(sums());
    all.extend(places());
    all
}

fn printers() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.print_hello")
            .summary("Prints `hello host executor!`")
            .result("done", Chain)
            .outside(),
        kernel("tfrt_test.print_bool")
            .summary("Prints `true` or `false`")
            .operand("chain", Chain)
            .operand("value", I1)
            .result("done", Chain)
            .outside(),
        kernel("tfrt_test.print_debug_info")
            .summary("Prints the name in its location")
            .details("Without one it prints `Kernel has no debug info`.")
            .result("done", Chain)
            .outside(),
        kernel("tfrt_test.logging")
            .summary("Writes six lines with the text to the log")
            .details(
                "They begin with `I`, `W` and `E` for information, warning and error, and name \
                 the macros of the original.",
            )
            .operand("text", ValueKind::String)
            .result("done", Chain)
            .outside(),
    ]
}

fn forwarders() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.identity")
            .summary("The operands behind the chain, as they are")
            .details("There are as many results as operands behind the chain, of their types.")
            .asynchronous()
            .operand("chain", Chain)
            .rest("values")
            .any_results("same")
            .no_effects(),
        kernel("tfrt_test.multi_arg_result")
            .summary("The operands, as they are")
            .details("There are as many results as operands, of their types.")
            .asynchronous()
            .rest("values")
            .any_results("same")
            .no_effects(),
        kernel("tfrt_test.make_indirect")
            .summary("Promised values that were forwarded to the operands")
            .details("There are as many results as operands, of their types.")
            .asynchronous()
            .rest("values")
            .any_results("indirect")
            .no_effects(),
        kernel("tfrt_test.get_uniqueness")
            .summary("Whether nobody else holds an operand, for each of them")
            .details(
                "The results are as many `i1`. Small values lie in registers, where a copy is as \
                 good as any other: they are never unique.",
            )
            .asynchronous()
            .rest("values")
            .any_results("unique")
            .no_effects(),
        kernel("tfrt_test.share_to_two")
            .summary("The operand, twice")
            .details("Both results are the operand, and have its type.")
            .asynchronous()
            .operand("value", Any)
            .result("first", Any)
            .result("second", Any)
            .no_effects(),
    ]
}

fn sums() -> Vec<OpDef> {
    vec![
        count3("tfrt_test.count3.i32", I32, "i32"),
        count3("tfrt_test.count3.i64", I64, "i64"),
        kernel("tfrt_test.sum")
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
            .no_effects(),
        sum_array("tfrt_test.sum_array_attr.i32", I32),
        sum_array("tfrt_test.sum_array_attr.i64", I64),
        kernel("tfrt_test.flat")
            .summary("What stands in an attribute of a certain shape")
            .attribute(
                "value",
                AttributeKind::Any,
                "an array as `[[\"s\", [1 : i32, 0 : i32]], [1.0 : f32]]`",
            )
            .result("text", ValueKind::String)
            .result("first", I32)
            .result("second", I32)
            .result("float", F32)
            .fails(
                "InvalidArgument",
                "expected an attribute like [[\"s\", [1 : i32, 0 : i32]], [1.0 : f32]]",
                "the attribute has another shape",
            )
            .no_effects()
            .generic(
                "%text, %first, %second, %float = \"tfrt_test.flat\"() {value = [[\"s\", [1 : \
                 i32, 0 : i32]], [1.0 : f32]]} : () -> (!tfrt.string, i32, i32, f32)",
            ),
    ]
}

fn count3(name: &'static str, kind: ValueKind, ty: &str) -> OpDef {
    OpDef::new(name)
        .summary("The three values that follow")
        .details("What does not fit wraps around.")
        .operand("value", kind)
        .result("first", kind)
        .result("second", kind)
        .result("third", kind)
        .pure()
        .format(OPERANDS)
        .example(format!(
            "%chain = tfrt.new.chain
%value = tfrt.constant.{ty} 39
%first, %second, %third = {name} %value
%done = tfrt.print.{ty} %third, %chain"
        ))
        .prints(if ty == "i32" {
            "int32 = 42"
        } else {
            "int64 = 42"
        })
}

fn sum_array(name: &'static str, kind: ValueKind) -> OpDef {
    kernel(name)
        .summary("The sum of a text, an array, and what the request holds")
        .details(
            "Added are the number in the text, the elements of the array, the request's data of \
             the result's type, and its resource `val` of that type. The kernel gets its \
             attributes in the order of their names, whatever those are.",
        )
        .attribute(
            "a",
            AttributeKind::String,
            "a number in the notation of C: `12`, `-12`, `0xc`, `0b1100`, `0o14`, `014`",
        )
        .attribute("b", AttributeKind::Array(kind), "further numbers")
        .result("sum", kind)
        .fails(
            "Unknown",
            "Cannot convert TEXT to target int",
            "the text is no number of the type",
        )
        .fails(
            "FailedPrecondition",
            "the request has no data of type TYPE",
            "nobody has put any there",
        )
        .fails(
            "FailedPrecondition",
            "the request has no resource 'val' of type TYPE",
            "nobody has put it there",
        )
        .fails("OutOfRange", "SUM exceeds TYPE", "the sum does not fit")
        .no_effects()
}

fn places() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.get_thread_id")
            .summary("The number of the thread that runs it")
            .details("Threads are numbered from 0 in the order in which they first ask.")
            .operand("chain", Chain)
            .result("number", I32)
            .outside(),
        kernel("tfrt_test.unique_loc")
            .summary("Fails if an operation with another name has the same location")
            .details("Names are remembered by location for the request.")
            .attribute("name", AttributeKind::String, "what to call this location")
            .result("done", Chain)
            .fails(
                "Unknown",
                "duplicate locations N",
                "the location, of that number in the file, has another name already",
            )
            .outside(),
        kernel("tfrt_test.async_value_get")
            .summary("The text `base1:base2:final_class:3`, read out of values")
            .result("text", ValueKind::String)
            .no_effects(),
        kernel("tfrt_test.async_value_ref")
            .summary("A text on values before and after they are resolved")
            .details("It is `available:2;unavailable;(3);available:3;unavailable;available:4`.")
            .result("text", ValueKind::String)
            .no_effects(),
    ]
}
