//! `tfrt_test`: operations that stall, count, measure and print for tests.

use super::checks;
use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{self, *},
};

const TENSOR: ValueKind = ValueKind::Dialect("!t.tensor");
const EXAMPLE: ValueKind = ValueKind::Dialect("!proto.example");
const OPERANDS: &str = "operands attr-dict";

const ATOMIC: ValueKind = ValueKind::Dialect("!test.atomic.i32");

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = operations();
    all.extend(
        kernels()
            .into_iter()
            .map(|kernel| kernel.traits(&[Traits::KERNEL_ONLY])),
    );
    all
}

fn operations() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt_test.do.async")
            .summary("Runs a region as a task of its own")
            .nested()
            .rest("operands")
            .any_results()
            .regions(1)
            .traits(&[
                Traits::ISOLATED,
                Traits::SINGLE_BLOCK,
                Traits::SHADOWS_OPERANDS,
            ])
            .format("operands attributes : types  region")
            .verify(checks::do_async),
        OpDef::new("tfrt_test.benchmark")
            .summary("Measures a region that returns one value")
            .nested()
            .rest("operands")
            .results(&[Chain])
            .attribute("name", AttributeKind::String)
            .attribute("duration_secs", AttributeKind::Typed(I32))
            .attribute("max_count", AttributeKind::Typed(I32))
            .unchecked("num_warmup_runs", AttributeKind::Typed(I32))
            .regions(1)
            .traits(&[
                Traits::ISOLATED,
                Traits::SINGLE_BLOCK,
                Traits::SHADOWS_OPERANDS,
            ])
            .format("$name(typed-operands) settings region")
            .verify(checks::benchmark),
        OpDef::new("tfrt_test.sync_benchmark")
            .summary("Measures a synchronous function that returns nothing")
            .rest("operands")
            .unchecked("target_fn", AttributeKind::FlatSymbol)
            .attribute("duration_secs", AttributeKind::Typed(I32))
            .attribute("max_count", AttributeKind::Typed(I32))
            .unchecked("num_warmup_runs", AttributeKind::Typed(I32))
            .traits(&[Traits::SYNC])
            .format("$target_fn(typed-operands) settings")
            .verify(checks::sync_benchmark),
        count3("tfrt_test.count3.i32", I32),
        count3("tfrt_test.count3.i64", I64),
        OpDef::new("tfrt_test.get_string")
            .summary("A string")
            .no_effects()
            .attribute("value", AttributeKind::String)
            .results(&[ValueKind::String])
            .format("attr-dict"),
        OpDef::new("tfrt_test.get_string_sync")
            .summary("A string")
            .no_effects()
            .attribute("value", AttributeKind::String)
            .results(&[ValueKind::String])
            .traits(&[Traits::SYNC])
            .format("attr-dict"),
        OpDef::new("tfrt_test.test_cost")
            .summary("Prints its number; states a cost for the assignment of streams")
            .outside()
            .rest("operands")
            .results(&[I32])
            .attribute("id", AttributeKind::Typed(I64))
            .unchecked("_tfrt_cost", AttributeKind::Typed(I64))
            .format("operands attr-dict : type(operands)")
            .verify(checks::test_cost),
        OpDef::new("tfrt_test.decode_jpeg")
            .summary("Decodes an image")
            .operand("data", ValueKind::String)
            .results(&[TENSOR])
            .format(OPERANDS),
        OpDef::new("tfrt_test.resize_bilinear")
            .summary("Scales an image to a height and a width")
            .operand("image", TENSOR)
            .operand("height", I64)
            .operand("width", I64)
            .results(&[TENSOR])
            .format(OPERANDS),
        OpDef::new("tfrt_test.parse_example_from_bytes")
            .summary("Parses an example message")
            .operand("data", ValueKind::String)
            .results(&[EXAMPLE])
            .format(OPERANDS),
        OpDef::new("tfrt_test.get_bytes_field_from_example")
            .summary("Reads a field of bytes")
            .operand("example", EXAMPLE)
            .operand("key", ValueKind::String)
            .results(&[ValueKind::String])
            .format(OPERANDS),
        OpDef::new("tfrt_test.get_int64_field_from_example")
            .summary("Reads a field of integers")
            .operand("example", EXAMPLE)
            .operand("key", ValueKind::String)
            .results(&[I64])
            .format(OPERANDS),
    ]
}

fn count3(name: &'static str, kind: ValueKind) -> OpDef {
    OpDef::new(name)
        .summary("The three values that follow")
        .operand("value", kind)
        .results(&[kind, kind, kind])
        .pure()
        .format(OPERANDS)
}

/// Kernels that the original has no operation for: only the generic form can
/// write them.
fn kernels() -> Vec<OpDef> {
    let constant = |name, kind| {
        OpDef::new(name)
            .summary("A constant, made by a task")
            .attribute("value", AttributeKind::Typed(kind))
            .results(&[kind])
            .no_effects()
    };
    let copy = |name, kind| {
        OpDef::new(name)
            .operand("value", kind)
            .results(&[kind])
            .no_effects()
    };
    let slow = "The value, some milliseconds later";
    vec![
        OpDef::new("tfrt_test.atomic.create.i32")
            .summary("A new counter that stands at 0")
            .results(&[ATOMIC])
            .allocates(),
        OpDef::new("tfrt_test.atomic.inc.i32")
            .summary("Adds 1 to a counter")
            .operand("counter", ATOMIC)
            .results(&[Chain])
            .writes(0),
        OpDef::new("tfrt_test.atomic.add.i32")
            .summary("Adds to a counter")
            .operand("counter", ATOMIC)
            .operand("number", I32)
            .results(&[Chain])
            .writes(0),
        OpDef::new("tfrt_test.atomic.get.i32")
            .summary("Where a counter stands")
            .operand("counter", ATOMIC)
            .results(&[I32, Chain])
            .reads(0),
        constant("tfrt_test.async_constant.i1", I1),
        constant("tfrt_test.async_constant.i32", I32),
        OpDef::new("tfrt_test.async_add.i32")
            .summary("The sum, made by a task; wraps")
            .operand("lhs", I32)
            .operand("rhs", I32)
            .results(&[I32])
            .no_effects(),
        copy("tfrt_test.async_copy.i32", I32).summary("The value, copied by a task"),
        copy("tfrt_test.async_copy_2.i32", I32).summary("The value, copied by a task"),
        copy("tfrt_test.async_copy.with_delay.i32", I32).summary(slow),
        copy("tfrt_test.async_copy.with_delay.i64", I64).summary(slow),
        copy("tfrt_test.copy.with_delay.i32", I32).summary(slow),
        copy("tfrt_test.copy.with_delay.i64", I64).summary(slow),
        OpDef::new("tfrt_test.print_hello")
            .summary("Prints a greeting")
            .results(&[Chain])
            .outside(),
        OpDef::new("tfrt_test.print_bool")
            .summary("Prints a value after the chain")
            .operand("chain", Chain)
            .operand("value", I1)
            .results(&[Chain])
            .outside(),
        OpDef::new("tfrt_test.print_debug_info")
            .summary("Prints the name in its location")
            .results(&[Chain])
            .outside(),
        OpDef::new("tfrt_test.print_string")
            .summary("Prints a string")
            .operand("string", ValueKind::String)
            .results(&[Chain])
            .outside(),
        OpDef::new("tfrt_test.append_string")
            .summary("Both strings, one behind the other")
            .operand("start", ValueKind::String)
            .operand("end", ValueKind::String)
            .results(&[ValueKind::String])
            .no_effects(),
        OpDef::new("tfrt_test.string_equal")
            .summary("Whether both are equal")
            .operand("lhs", ValueKind::String)
            .operand("rhs", ValueKind::String)
            .results(&[I1])
            .no_effects(),
        OpDef::new("tfrt_test.sum")
            .summary("The sum of any number of operands; wraps")
            .operand("first", I32)
            .rest("others")
            .results(&[I32])
            .no_effects(),
    ]
}
