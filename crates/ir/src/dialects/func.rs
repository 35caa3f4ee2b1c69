//! `func`: functions, and the call and return that code inside compiled
//! modules uses.

use super::checks;
use crate::dialect::{AttributeKind, OpDef, Traits};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![function(), call(), func_return()]
}

fn function() -> OpDef {
    OpDef::new("func.func")
        .summary("A function, or the declaration of a native one")
        .details(
            "A function with a body is a graph of kernels: each runs when its operands are \
             there. Marked `tfrt.sync` its operations run in the order of the text, and all \
             results are there when it returns. Marked `tfrt.native` it has no body, is private, \
             and runs the native function that is registered under its name. `tfrt.cost_threshold`, \
             `tfrt.upper_cost_threshold` (`i64`, in the unit of `_tfrt_cost`) and \
             `tfrt.merge_inter_dependent_streams` (`i1`) set how its streams are assigned. \
             Older programs may write `func` instead of `func.func`.",
        )
        .structure()
        .no_effects()
        .attribute("sym_name", AttributeKind::String, "its name")
        .attribute(
            "function_type",
            AttributeKind::FunctionType,
            "the types of its arguments and results",
        )
        .optional(
            "sym_visibility",
            AttributeKind::String,
            "`public`, `private` or `nested`; `public` if absent",
        )
        .optional(
            "arg_attrs",
            AttributeKind::Dictionaries,
            "of each argument those of its attributes that belong to dialects",
        )
        .optional(
            "res_attrs",
            AttributeKind::Dictionaries,
            "of each result those of its attributes that belong to dialects",
        )
        .regions(1)
        .traits(&[Traits::ISOLATED, Traits::SYMBOL])
        .format("function")
        .verify(checks::function)
        .example(
            "func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
func.func @twice(%x: i32) -> i32 attributes {tfrt.sync} {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
func.func @main() {
  tfrt.return
}
",
        )
        .generic(
            "\"func.func\"() ({
^bb0(%x: i32):
  \"tfrt.return\"(%x) : (i32) -> ()
}) {function_type = (i32) -> i32, sym_name = \"same\"} : () -> ()",
        )
}

fn call() -> OpDef {
    OpDef::new("func.call")
        .summary("Calls a function inside a compiled module")
        .structure()
        .everything()
        .rest("operands")
        .any_results("results")
        .attribute("callee", AttributeKind::FlatSymbol, "the function")
        .format("$callee(operands) attr-dict : functional-type")
        .verify(checks::call)
        .example(
            "module @m attributes {tfrt.compiled} {
  func.func @same(%x: f32) -> f32 {
    func.return %x : f32
  }
  func.func @code(%x: f32) -> f32 {
    %y = func.call @same(%x) : (f32) -> f32
    func.return %y : f32
  }
}
func.func @main() {
  tfrt.return
}
",
        )
}

fn func_return() -> OpDef {
    OpDef::new("func.return")
        .summary("Ends a function inside a compiled module")
        .structure()
        .no_effects()
        .rest("operands")
        .traits(&[Traits::TERMINATOR])
        .format("attr-dict operands[ : type(operands)]")
        .verify(checks::func_return)
        .example(
            "module @m attributes {tfrt.compiled} {
  func.func @same(%x: f32) -> f32 {
    func.return %x : f32
  }
}
func.func @main() {
  tfrt.return
}
",
        )
}
