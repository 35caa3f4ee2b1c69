//! Texts that are no programs, and programs that do not fit the kernels.

use super::{Case, rejected};

/// A function without results around `body`.
fn main(body: &str) -> String {
    format!("func.func @main() {{\n{body}}}\n")
}

/// A function that returns `%x : i32`.
fn returns(body: &str) -> String {
    format!("func.func @main() -> i32 {{\n{body}  tfrt.return %x : i32\n}}\n")
}

pub fn cases() -> Vec<Case> {
    [not_mlir(), nested(), not_a_function(), not_fitting()].concat()
}

/// What the parser refuses.
fn not_mlir() -> Vec<Case> {
    vec![
        Case::line("empty file", "run FILE", 0).file(""),
        Case::line("blank file", "run FILE", 0).file(" \r\n\t\n// nothing\n"),
        rejected(
            "prose",
            "Hello, world.\n",
            "input.mlir:1:1: error: custom op 'Hello' is unknown",
        )
        .stderr("help: write it in generic form"),
        rejected(
            "JSON",
            "{\"a\": 1}\n",
            "input.mlir:1:1: error: expected operation name in quotes",
        ),
        rejected(
            "NUL in a text",
            "func.func @m\0 {}\n",
            "input.mlir:1:13: error: unexpected character",
        ),
        rejected(
            "text that is not UTF-8",
            b"func.func @main() {\n  // caf\xe9\n}\n",
            "input.mlir:2:9: error: expected UTF-8 text, found the byte 0xe9",
        ),
        rejected(
            "UTF-16",
            b"\xff\xfef\0u\0n\0c\0",
            "input.mlir:1:1: error: expected UTF-8 text, found the byte 0xff",
        ),
        rejected(
            "string without an end",
            main("  \"tfrt.ret\n"),
            "input.mlir:2:3: error: expected '\"' in string literal",
        ),
        rejected(
            "region without an end",
            "func.func @main() {\n  tfrt.return\n",
            "error: expected '}' to end a region, found the end of the text",
        )
        .stderr("note: the region begins here"),
        rejected(
            "brace too many",
            main("  tfrt.return\n}\n"),
            "input.mlir:4:1: error: expected ",
        ),
        rejected(
            "attributes without an end",
            "func.func @main() attributes {a = 1\n",
            "error: expected ',' or '}', found the end of the text",
        ),
        rejected(
            "constant out of range",
            returns("  %x = tfrt.constant.i32 99999999999\n"),
            "input.mlir:2:26: error: integer constant out of range for type 'i32'",
        ),
        rejected(
            "elements that do not fill their shape",
            main("  \"a.b\"() {v = dense<[1, 2, 3]> : tensor<2xi32>} : () -> ()\n  tfrt.return\n"),
            "inferred shape of elements literal ([3]) does not match type ([2])",
        ),
        rejected(
            "shape whose product wraps",
            main(
                "  \"a.b\"() {v = dense<1> : tensor<4294967296x4294967296xi32>} : () -> ()\n  tfrt.return\n",
            ),
            "error: ",
        ),
        rejected(
            "2^40 elements in three characters",
            main(
                "  \"tfrt.new.chain\"() {v = dense<1> : tensor<1099511627776xi32>} : () -> !tfrt.chain\n  tfrt.return\n",
            ),
            "error: ",
        ),
        rejected(
            "aliases in a circle",
            "!a = tuple<!b>\n!b = tuple<!a>\n",
            "input.mlir:1:12: error: undefined symbol alias id 'b'",
        ),
        rejected(
            "100,000 errors",
            "foo\n".repeat(100_000),
            "input.mlir:1:1: error: custom op 'foo' is unknown",
        ),
        Case::line("line of 20 million characters", "run FILE", 0).file(main(&format!(
            "  // {}\n  tfrt.return\n",
            "x".repeat(20_000_000)
        ))),
    ]
}

/// What is nested 100,000 deep.
fn nested() -> Vec<Case> {
    const DEPTH: usize = 100_000;
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(DEPTH), close.repeat(DEPTH));
    let deep = |kind, text| rejected(kind, text, "error: nesting is deeper than 256 levels");
    vec![
        deep(
            "regions 100,000 deep",
            main(&nested("\"a.b\"() ({\n", "}) : () -> ()\n")),
        ),
        deep(
            "attributes 100,000 deep",
            format!(
                "func.func @main() attributes {{a = {}}} {{}}\n",
                nested("[", "]")
            ),
        ),
        deep(
            "types 100,000 deep",
            format!(
                "func.func @main(%a: {}i32{}) {{}}\n",
                "tuple<".repeat(DEPTH),
                ">".repeat(DEPTH)
            ),
        ),
        deep(
            "function types 100,000 deep",
            format!("func.func @main(%a: {}) {{}}\n", nested("(", ")")),
        ),
        deep(
            "opaque types 100,000 deep",
            format!("func.func @main(%a: !d.t{}) {{}}\n", nested("<", ">")),
        ),
        deep(
            "locations 100,000 deep",
            main(&format!(
                "  tfrt.return loc({}\"b\"{})\n",
                "callsite(\"a\" at ".repeat(DEPTH),
                ")".repeat(DEPTH)
            )),
        ),
    ]
}

/// What the verifier refuses.
fn not_a_function() -> Vec<Case> {
    vec![
        rejected(
            "use before the definition",
            returns("  %x = tfrt.add.i32 %y, %y\n  %y = tfrt.constant.i32 1\n"),
            "input.mlir:2:8: error: operand #0 does not dominate this use",
        )
        .stderr("note: operand defined here"),
        rejected(
            "value that uses itself",
            returns("  %x = tfrt.add.i32 %x, %x\n"),
            "input.mlir:2:8: error: operand #0 does not dominate this use",
        ),
        rejected(
            "value that nobody defines",
            returns(""),
            "input.mlir:2:15: error: use of undeclared SSA value name",
        ),
        rejected(
            "value that is defined twice",
            returns("  %x = tfrt.constant.i32 1\n  %x = tfrt.constant.i32 2\n"),
            "input.mlir:3:3: error: redefinition of SSA value '%x'",
        ),
        rejected(
            "function that is defined twice",
            main("  tfrt.return\n").repeat(2),
            "input.mlir:4:1: error: redefinition of symbol named 'main'",
        ),
        rejected(
            "function without a return",
            main("  %x = tfrt.constant.i32 1\n"),
            "input.mlir:2:8: error: block with no terminator",
        ),
        rejected("function with an empty body", main(""), "input.mlir:1:"),
        rejected(
            "return in the middle",
            main("  tfrt.return\n  tfrt.return\n"),
            "input.mlir:2:3: error: ",
        ),
        rejected(
            "return of another type",
            "func.func @main() -> i64 {\n  %x = tfrt.constant.i32 1\n  tfrt.return %x : i32\n}\n",
            "type of return operand 0 ('i32') doesn't match function result type ('i64')",
        ),
        rejected(
            "return of too few",
            "func.func @main() -> (i32, i32) {\n  %x = tfrt.constant.i32 1\n  tfrt.return %x : i32\n}\n",
            "'tfrt.return' op has 1 operands, but enclosing function returns 2",
        ),
        rejected(
            "several blocks",
            main("  \"cf.br\"() [^b] : () -> ()\n^b:\n  tfrt.return\n"),
            "input.mlir:2:3: error: ",
        ),
        rejected(
            "function without a body",
            "func.func private @f()\n",
            "input.mlir:1:1: error: external functions are not allowed",
        ),
        rejected(
            "call of nobody",
            returns("  %x = tfrt.call @nobody() : () -> i32\n"),
            "input.mlir:2:8: error: 'tfrt.call' op 'nobody' does not reference a valid function",
        ),
        rejected(
            "call with the wrong types",
            returns("  %y = tfrt.constant.i64 1\n  %x = tfrt.call @main(%y) : (i64) -> i32\n"),
            "input.mlir:3:8: error: ",
        ),
        rejected(
            "repeat of a body that gives too little",
            returns(
                "  %n = tfrt.constant.i32 1\n  %x = tfrt.repeat.i32 %n, %n : i32 {\n    tfrt.return\n  }\n",
            ),
            "error: ",
        ),
    ]
}

/// What does not fit its operation or its kernel.
fn not_fitting() -> Vec<Case> {
    let one = |line: &str| returns(&format!("  %a = tfrt.constant.i32 1\n  {line}\n"));
    vec![
        rejected(
            "unknown kernel",
            one("%x = \"tfrt.ad.i32\"(%a, %a) : (i32, i32) -> i32"),
            "input.mlir:3:8: error: unknown kernel name 'tfrt.ad.i32'",
        )
        .stderr("help: there is a kernel 'tfrt.add.i32'"),
        rejected(
            "unknown operation in pretty form",
            one("%x = tfrt.ad.i32 %a, %a"),
            "input.mlir:3:8: error: custom op 'tfrt.ad.i32' is unknown",
        )
        .stderr("help: there is an operation 'tfrt.add.i32'"),
        rejected(
            "too few operands",
            one("%x = \"tfrt.add.i32\"(%a) : (i32) -> i32"),
            "'tfrt.add.i32' op expected 2 operands, but found 1",
        ),
        rejected(
            "operand of the wrong type",
            returns("  %a = tfrt.constant.i64 1\n  %x = \"tfrt.add.i32\"(%a, %a) : (i64, i64) -> i32\n"),
            "'tfrt.add.i32' op operand #0 must be 32-bit signless integer, but got 'i64'",
        ),
        rejected(
            "type that is not that of the value",
            one("%x = \"tfrt.add.i32\"(%a, %a) : (i64, i64) -> i32"),
            "input.mlir:3:",
        ),
        rejected(
            "too many results",
            main("  %a = tfrt.constant.i32 1\n  %x:2 = \"tfrt.add.i32\"(%a, %a) : (i32, i32) -> (i32, i32)\n  tfrt.return\n"),
            "'tfrt.add.i32' op requires one result",
        ),
        rejected(
            "result of the wrong type",
            main("  %a = tfrt.constant.i32 1\n  %x = \"tfrt.add.i32\"(%a, %a) : (i32, i32) -> i64\n  tfrt.return\n"),
            "'tfrt.add.i32' op result #0 must be 32-bit signless integer, but got 'i64'",
        ),
        rejected(
            "attribute missing",
            returns("  %x = \"tfrt.constant.i32\"() : () -> i32\n"),
            "'tfrt.constant.i32' op requires attribute 'value'",
        ),
        rejected(
            "attribute of the wrong type",
            returns("  %x = \"tfrt.constant.i32\"() {value = \"one\"} : () -> i32\n"),
            "'tfrt.constant.i32' op attribute 'value' failed to satisfy constraint: 32-bit signless integer attribute",
        ),
        rejected(
            "attribute too many",
            returns("  %x = \"tfrt.constant.i32\"() {value = 1 : i32, more = 2 : i32} : () -> i32\n"),
            "error: kernel 'tfrt.constant.i32' takes 1 attributes, but is given 2",
        )
        .stderr("help: its signature is () {i32} -> i32"),
        rejected(
            "kernel with too few operands",
            one("%x = \"tfrt_test.async_add.i32\"() : () -> i32"),
            "kernel 'tfrt_test.async_add.i32' takes 2 operands, but is given 0",
        )
        .stderr("help: its signature is (i32, i32) -> i32"),
        rejected(
            "kernel with operands of the wrong type",
            returns("  %a = tfrt.constant.f32 1.0\n  %x = \"tfrt_test.async_add.i32\"(%a, %a) : (f32, f32) -> i32\n"),
            "kernel 'tfrt_test.async_add.i32' takes (i32, i32), but is given (f32, f32)",
        ),
        rejected(
            "kernel with a result of the wrong type",
            main("  %a = tfrt.constant.i32 1\n  %x = \"tfrt_test.async_copy.i32\"(%a) : (i32) -> f32\n  tfrt.return\n"),
            "kernel 'tfrt_test.async_copy.i32' gives (i32), but (f32) is declared",
        ),
        rejected(
            "kernel with an attribute of the wrong type",
            returns("  %x = \"tfrt_test.async_constant.i32\"() {value = \"s\"} : () -> i32\n"),
            "kernel 'tfrt_test.async_constant.i32' takes i32 as attribute 0 'value', but is given something else",
        ),
        rejected(
            "region missing",
            returns("  %x = \"tfrt_test.do.async\"() : () -> i32\n"),
            "'tfrt_test.do.async' op requires one region",
        ),
        rejected(
            "asynchronous kernel in a synchronous function",
            "func.func @main() -> i32 attributes {tfrt.sync} {\n  %x = \"tfrt_test.async_constant.i32\"() {value = 1 : i32} : () -> i32\n  tfrt.return %x : i32\n}\n",
            "error: ",
        ),
        rejected(
            "many misfits at once",
            main("  \"no.such\"() : () -> ()\n  \"nor.this\"() : () -> ()\n  \"nor.that\"() : () -> ()\n  tfrt.return\n"),
            "input.mlir:2:3: error: unknown kernel name 'no.such'",
        )
        .stderr("input.mlir:3:3: error: unknown kernel name 'nor.this'")
        .stderr("input.mlir:4:3: error: unknown kernel name 'nor.that'"),
    ]
}
