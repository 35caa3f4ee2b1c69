//! Calls of functions, and the return that ends them.

use crate::dialect::{
    AttributeKind::{FlatSymbol, FlatSymbols},
    OpDef, Traits,
    ValueKind::*,
};
use crate::dialects::checks;

/// Functions for examples.
const TWICE: &str = "func.func @twice(%x: i32) -> i32 {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
";
const SAME: &str = "func.func @same(%x: i32) -> i32 {
  tfrt.return %x : i32
}
";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![call(), cond(), case(), once(), tfrt_return()]
}

fn call() -> OpDef {
    OpDef::new("tfrt.call")
        .summary("Calls a function")
        .details(
            "The function begins when all operands are there; each result is there when the \
             function has it, be it before or after others. Calls nest as deep as the host allows, \
             a million by default, on a stack of constant depth.",
        )
        .calls()
        .nested()
        .rest("operands")
        .any_results("results")
        .unchecked("callee", FlatSymbol, "the function")
        .fails(
            "ResourceExhausted",
            "call depth exceeds the limit of N",
            "calls nest too deep",
        )
        .format("$callee(operands) attr-dict : functional-type")
        .verify(checks::call)
        .example(format!(
            "{TWICE}func.func @main() {{
  %chain = tfrt.new.chain
  %x = tfrt.constant.i32 21
  %y = tfrt.call @twice(%x) : (i32) -> i32
  %done = tfrt.print.i32 %y, %chain
  tfrt.return
}}
"
        ))
        .prints("int32 = 42")
}

fn cond() -> OpDef {
    OpDef::new("tfrt.cond")
        .summary("Calls one of two functions")
        .details(
            "As `tfrt.if`, with functions for regions. The attributes are named so that the \
             function for true comes first in the order of names.",
        )
        .calls()
        .nested()
        .operand("condition", I1)
        .rest("operands")
        .any_results("results")
        .unchecked(
            "a_true_fn",
            FlatSymbol,
            "the function for a condition that holds",
        )
        .unchecked(
            "b_false_fn",
            FlatSymbol,
            "the function for one that does not",
        )
        .format("operand $a_true_fn $b_false_fn (operands) attr-dict : types")
        .verify(checks::cond)
        .example(format!(
            "{TWICE}{SAME}func.func @main() {{
  %chain = tfrt.new.chain
  %condition = tfrt.constant.i1 false
  %x = tfrt.constant.i32 21
  %y = tfrt.cond %condition @twice @same (%x) : (i32) -> (i32)
  %done = tfrt.print.i32 %y, %chain
  tfrt.return
}}
"
        ))
        .prints("int32 = 21")
}

fn case() -> OpDef {
    OpDef::new("tfrt.case")
        .summary("Calls the function of a number")
        .details("Functions are numbered from 0.")
        .calls()
        .nested()
        .operand("branch index", I32)
        .rest("operands")
        .any_results("results")
        .attribute("branches", FlatSymbols, "the functions")
        .fails(
            "InvalidArgument",
            "branch_index invalid. branch index: I # branches: N",
            "the index is negative or not below the number of functions; all results are the \
             error",
        )
        .format("operand $branches (operands) attr-dict : types")
        .example(format!(
            "{TWICE}{SAME}func.func @main() {{
  %chain = tfrt.new.chain
  %index = tfrt.constant.i32 0
  %x = tfrt.constant.i32 21
  %y = tfrt.case %index [@twice, @same] (%x) : (i32) -> (i32)
  %done = tfrt.print.i32 %y, %chain
  tfrt.return
}}
"
        ))
        .prints("int32 = 42")
}

fn once() -> OpDef {
    OpDef::new("tfrt.once")
        .summary("Calls a function the first time, and gives the same results ever after")
        .details(
            "Ever after is: in all requests that share a resource context, for all \
             operations that name the function, whatever their operands. Who comes while the \
             first execution runs gets its results when they are there. If the first request is \
             cancelled before the function has run, the results are that error.",
        )
        .calls()
        .nested()
        .rest("operands")
        .any_results("results")
        .attribute("function", FlatSymbol, "the function")
        .fails(
            "Unknown",
            "tfrt.once requires resource context",
            "the request has none; the host's diagnostic handler is not told",
        )
        .format("$function(operands) attr-dict : types")
        .example(format!(
            "{TWICE}func.func @main() {{
  %x = tfrt.constant.i32 21
  %y = tfrt.once @twice(%x) : (i32) -> (i32)
  tfrt.return
}}
"
        ))
}

fn tfrt_return() -> OpDef {
    OpDef::new("tfrt.return")
        .summary("Ends a function or a region, and gives its results")
        .structure()
        .no_effects()
        .rest("operands")
        .traits(&[Traits::TERMINATOR])
        .format("attr-dict operands[ : type(operands)]")
        .verify(checks::tfrt_return)
        .example(
            "func.func @both(%x: i32, %y: f32) -> (i32, f32) {
  tfrt.return %x, %y : i32, f32
}
func.func @main() {
  tfrt.return
}
",
        )
}
