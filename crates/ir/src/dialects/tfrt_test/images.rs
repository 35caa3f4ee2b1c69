//! Operations on images and on messages of protocol buffers. Programs may hold them;
//! their kernels are not part of this runtime.

use crate::dialect::{
    Execution, OpDef,
    ValueKind::{self, I64},
};
use crate::dialects::OPERANDS;

const TENSOR: ValueKind = ValueKind::Dialect("!t.tensor");
const EXAMPLE: ValueKind = ValueKind::Dialect("!proto.example");

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        operation("tfrt_test.decode_jpeg")
            .summary("Decodes an image")
            .operand("data", ValueKind::String)
            .result("image", TENSOR)
            .allocates()
            .example(function(
                "%data: !tfrt.string",
                "!t.tensor",
                "%image = tfrt_test.decode_jpeg %data",
            )),
        operation("tfrt_test.resize_bilinear")
            .summary("Scales an image to a height and a width")
            .operand("image", TENSOR)
            .operand("height", I64)
            .operand("width", I64)
            .result("scaled", TENSOR)
            .reads(0)
            .allocates()
            .example(function(
                "%image: !t.tensor, %height: i64, %width: i64",
                "!t.tensor",
                "%scaled = tfrt_test.resize_bilinear %image, %height, %width",
            )),
        operation("tfrt_test.parse_example_from_bytes")
            .summary("Parses an example message")
            .operand("data", ValueKind::String)
            .result("message", EXAMPLE)
            .allocates()
            .example(function(
                "%data: !tfrt.string",
                "!proto.example",
                "%message = tfrt_test.parse_example_from_bytes %data",
            )),
        operation("tfrt_test.get_bytes_field_from_example")
            .summary("Reads a field of bytes")
            .operand("example", EXAMPLE)
            .operand("key", ValueKind::String)
            .result("bytes", ValueKind::String)
            .reads(0)
            .example(function(
                "%example: !proto.example, %key: !tfrt.string",
                "!tfrt.string",
                "%bytes = tfrt_test.get_bytes_field_from_example %example, %key",
            )),
        operation("tfrt_test.get_int64_field_from_example")
            .summary("Reads a field of integers")
            .operand("example", EXAMPLE)
            .operand("key", ValueKind::String)
            .result("integer", I64)
            .reads(0)
            .example(function(
                "%example: !proto.example, %key: !tfrt.string",
                "i64",
                "%integer = tfrt_test.get_int64_field_from_example %example, %key",
            )),
    ]
}

fn operation(name: &'static str) -> OpDef {
    OpDef::new(name)
        .execution(Execution::Elsewhere)
        .format(OPERANDS)
}

/// A function that gives what the operation in it gives.
fn function(arguments: &str, result_type: &str, operation: &str) -> String {
    let result = operation.split(' ').next().unwrap_or_default();
    format!(
        "func.func @read({arguments}) -> {result_type} {{
  {operation}
  tfrt.return {result} : {result_type}
}}
"
    )
}
