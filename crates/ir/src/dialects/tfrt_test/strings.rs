//! Operations on strings. Their lengths are bounded: by the host's limit on memory, and by a
//! gibibyte.

use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{self, *},
};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        get("tfrt_test.get_string"),
        get("tfrt_test.get_string_sync")
            .details("The same as `tfrt_test.get_string`, for functions marked `tfrt.sync`.")
            .traits(&[Traits::SYNC]),
        kernel("tfrt_test.print_string")
            .summary("Prints `string = TEXT`")
            .operand("string", ValueKind::String)
            .result("done", Chain)
            .outside(),
        bounded(kernel("tfrt_test.append_string"))
            .summary("Both strings, one behind the other")
            .operand("start", ValueKind::String)
            .operand("end", ValueKind::String)
            .result("whole", ValueKind::String)
            .no_effects(),
        kernel("tfrt_test.string_equal")
            .summary("Whether both are equal, byte for byte")
            .operand("lhs", ValueKind::String)
            .operand("rhs", ValueKind::String)
            .result("equal", I1)
            .no_effects(),
        bounded(kernel("tfrt_test.read_string_from_file"))
            .summary("What a regular file holds, as UTF-8")
            .details("The kernel keeps its thread while it reads.")
            .operand("path", ValueKind::String)
            .result("text", ValueKind::String)
            .fails(
                "Unknown",
                "failed to read from file PATH",
                "it cannot be read, is no regular file, or is not UTF-8; a note says which",
            )
            .outside(),
        bounded(kernel("tfrt_test.format_string"))
            .summary("One integer, formatted as C's `printf` does")
            .details(
                "The format may have one conversion, by one of `d i u x X o c`, with flags, \
                 width and precision; `%%` is a percent sign.",
            )
            .operand("format", ValueKind::String)
            .operand("number", I32)
            .result("text", ValueKind::String)
            .fails(
                "InvalidArgument",
                "can't format one integer by 'FORMAT': REASON",
                "C leaves the format undefined, or it needs other arguments",
            )
            .no_effects(),
    ]
}

fn get(name: &'static str) -> OpDef {
    OpDef::new(name)
        .summary("A string")
        .no_effects()
        .attribute("value", AttributeKind::String, "the string")
        .result("string", ValueKind::String)
        .format("attr-dict")
        .example(format!(
            "%string = {name} {{value = \"hi\"}}\n\
             %done = \"tfrt_test.print_string\"(%string) : (!tfrt.string) -> !tfrt.chain"
        ))
        .prints("string = hi")
}

fn bounded(definition: OpDef) -> OpDef {
    definition.fails(
        "ResourceExhausted",
        "a string exceeds the limit of N bytes",
        "the result would be longer than the host allows, or than a gibibyte",
    )
}
