//! `tfrt_test`: operations that stall, count, measure and print for tests.

use super::checks;
use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{self, *},
};

const TENSOR: ValueKind = ValueKind::Dialect("!t.tensor");
const EXAMPLE: ValueKind = ValueKind::Dialect("!proto.example");
const OPERANDS: &str = "operands attr-dict";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt_test.do.async")
            .summary("Runs a region as a task of its own")
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
            .attribute("value", AttributeKind::String)
            .results(&[ValueKind::String])
            .format("attr-dict"),
        OpDef::new("tfrt_test.get_string_sync")
            .summary("A string")
            .attribute("value", AttributeKind::String)
            .results(&[ValueKind::String])
            .traits(&[Traits::SYNC])
            .format("attr-dict"),
        OpDef::new("tfrt_test.test_cost")
            .summary("Prints its number; states a cost for the assignment of streams")
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
