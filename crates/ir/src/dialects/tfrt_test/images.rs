//! Operations on images and on messages of protocol buffers.

use crate::dialect::{
    OpDef,
    ValueKind::{self, I64},
};
use crate::dialects::tfrt_dht::{TENSOR, takes_memory, wrong_type};
use crate::dialects::{OPERANDS, kernel};

const EXAMPLE: ValueKind = ValueKind::Dialect("!proto.example");

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.read_bytes_from_file")
            .summary("What a regular file holds, a character for each byte")
            .details("The original has no kernel of this name: its strings hold bytes.")
            .operand("path", ValueKind::String)
            .result("data", ValueKind::String)
            .asynchronous()
            .fails(
                "Unknown",
                "failed to read from file PATH",
                "it cannot be read, or is no regular file; a note says which",
            )
            .fails(
                "ResourceExhausted",
                "a file exceeds the limit of N bytes",
                "it is longer than half the memory that the host allows",
            )
            .outside(),
        takes_memory(of_bytes(operation("tfrt_test.decode_jpeg")))
            .summary("Decodes a JPEG image")
            .details("To elements u8 `[height, width, 3]`: red, green, blue.")
            .operand("data", ValueKind::String)
            .result("image", TENSOR)
            .asynchronous()
            .fails(
                INVALID,
                "image does not have jpeg format",
                "the data does not begin as such images do",
            )
            .fails(
                INVALID,
                "failed to decode jpeg",
                "the image is damaged; a note says how",
            )
            .allocates()
            .example(function(
                "%data: !tfrt.string",
                "!t.tensor",
                "%image = tfrt_test.decode_jpeg %data",
            )),
        takes_memory(wrong_type(operation("tfrt_test.resize_bilinear")))
            .summary("Scales an image to a height and a width")
            .details(
                "From u8 `[h, w, channels]` to f32 `[height, width, channels]`, by the two nearest pixels along each \
                 side; the first pixels of both lie on each other.",
            )
            .asynchronous()
            .fails(
                INVALID,
                "resize_bilinear expects an image of 3 dimensions, found shape SHAPE",
                "the tensor is no image",
            )
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
        of_bytes(operation("tfrt_test.parse_example_from_bytes"))
            .summary("Parses an example message")
            .fails(
                INVALID,
                "failed to parse example.proto from string",
                "the message is damaged",
            )
            .operand("data", ValueKind::String)
            .result("message", EXAMPLE)
            .allocates()
            .example(function(
                "%data: !tfrt.string",
                "!proto.example",
                "%message = tfrt_test.parse_example_from_bytes %data",
            )),
        of_one_value(operation("tfrt_test.get_bytes_field_from_example"))
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
        of_one_value(operation("tfrt_test.get_int64_field_from_example"))
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

const INVALID: &str = "InvalidArgument";

fn operation(name: &'static str) -> OpDef {
    OpDef::new(name).format(OPERANDS)
}

/// Adds the error of operations on strings of bytes.
fn of_bytes(definition: OpDef) -> OpDef {
    definition.fails(
        INVALID,
        "expected a string of bytes, found characters that are none",
        "a character is beyond U+00FF; see `tfrt_test.read_bytes_from_file`",
    )
}

/// Adds the errors of operations that look for a value.
fn of_one_value(definition: OpDef) -> OpDef {
    definition
        .fails(
            "NotFound",
            "key KEY is not found in the proto",
            "the message has no such field",
        )
        .fails(
            INVALID,
            "expected one value for key KEY, found N",
            "the field has none, or several",
        )
        .fails(
            INVALID,
            "expected KIND for key KEY, found values of another kind",
            "the field is of another kind",
        )
}

/// Returns a function that gives what the operation in it gives.
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
