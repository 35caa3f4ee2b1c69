//! Texts that are too large for `tests/broken/`, or too small to be wrong.

use super::{Case, rejected};

/// Returns a function without results around `body`.
fn main(body: &str) -> String {
    format!("func.func @main() {{\n{body}}}\n")
}

pub fn cases() -> Vec<Case> {
    [sizes(), nested()].concat()
}

/// Nothing, and a lot.
fn sizes() -> Vec<Case> {
    vec![
        Case::line("empty file", "run FILE", 0).file(""),
        Case::line("blank file", "run FILE", 0).file(" \r\n\t\n// nothing\n"),
        rejected(
            "2^40 elements in three characters",
            main(
                "  \"tfrt.new.chain\"() {v = dense<1> : tensor<1099511627776xi32>} : () -> !tfrt.chain\n  tfrt.return\n",
            ),
            "error: ",
        ),
        rejected(
            "100,000 errors",
            "foo\n".repeat(100_000),
            "input.mlir:1:1: error: custom op 'foo' is unknown [TF0118]",
        ),
        Case::line("line of 20 million characters", "run FILE", 0).file(main(&format!(
            "  // {}\n  tfrt.return\n",
            "x".repeat(20_000_000)
        ))),
    ]
}

/// Returns cases of texts that nest 100,000 deep.
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
