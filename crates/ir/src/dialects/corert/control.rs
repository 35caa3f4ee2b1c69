//! Functions that are called as a tensor says.

use super::{HANDLE, with_handler};
use crate::dialect::{AttributeKind::FlatSymbol, OpDef, ValueKind::Chain};
use crate::dialects::checks;

const TRUTH: &str = "A tensor of one number holds if the number is not 0, a tensor of strings if its \
    first string is not empty. If the tensor is an error, so are all results; the first of them, \
    the chain, when all operands are there.";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![cond(), while_loop()]
}

/// Adds the error of a condition, and the effects of the functions that it chooses from.
fn reads_truth(definition: OpDef) -> OpDef {
    definition
        .fails(
            "InvalidArgument",
            "expected a condition of one number or of strings, found a tensor of TYPE SHAPE",
            "the tensor is something else",
        )
        .everything()
}

fn cond() -> OpDef {
    let definition = OpDef::new("corert.cond")
        .summary("Calls one of two functions, as a tensor says")
        .details(TRUTH)
        .operand("condition", HANDLE)
        .operand("chain", Chain)
        .rest("operands")
        .result("done", Chain)
        .any_results("results")
        .unchecked(
            "a_true_fn",
            FlatSymbol,
            "the function for a condition that holds; it takes and gives a chain first",
        )
        .unchecked(
            "b_false_fn",
            FlatSymbol,
            "the function for one that does not",
        );
    reads_truth(definition)
        .calls()
        .format("operand $a_true_fn $b_false_fn (operands) attr-dict : types?")
        .verify(checks::core_runtime::cond)
        .example(with_handler(
            "func.func @first(%chain: !tfrt.chain, %x: !corert.tensorhandle, %y: !corert.tensorhandle) -> \
             (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %chain, %x : !tfrt.chain, !corert.tensorhandle
}
func.func @second(%chain: !tfrt.chain, %x: !corert.tensorhandle, %y: !corert.tensorhandle) -> \
             (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %chain, %y : !tfrt.chain, !corert.tensorhandle
}
",
            "%one = corert.const_dense_tensor dense<1> : tensor<i32>
%two = corert.const_dense_tensor dense<2> : tensor<i32>
%called, %x = corert.cond %one @first @second (%chain, %one, %two) : (!corert.tensorhandle, !corert.tensorhandle) -> (!corert.tensorhandle)
%done = \"corert.print_tensorhandle\"(%x, %called) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain",
        ))
        .prints("DenseHostTensor dtype = i32, shape = [], values = [1]")
        .generic(
            "%done, %results = \"corert.cond\"(%condition, %chain, %operands) {a_true_fn = @a_true_fn, b_false_fn = @b_false_fn} : \
             (!corert.tensorhandle, !tfrt.chain, i32) -> (!tfrt.chain, i32)",
        )
}

fn while_loop() -> OpDef {
    let definition = OpDef::new("corert.while")
        .summary("Calls a function with its own results while a tensor says so")
        .details(
            "The condition's function takes the loop's values, and gives a chain and a tensor; the \
             body takes them, and gives the next ones. A tensor of one number holds if the number is \
             not 0, a tensor of strings if its first string is not empty. When the chain or the \
             tensor of a condition is an error, so are all results; the first of them, the chain, \
             when all values are there. Turns take no stack.",
        )
        .operand("chain", Chain)
        .rest("operands")
        .result("done", Chain)
        .any_results("results")
        .unchecked(
            "a_cond_fn",
            FlatSymbol,
            "the condition, with as many results as the body, as the original asks for",
        )
        .unchecked("b_body_fn", FlatSymbol, "the body");
    reads_truth(definition)
        .calls()
        .format("$a_cond_fn $b_body_fn (operands) attr-dict : types?")
        .verify(checks::core_runtime::while_loop)
        .example(with_handler(
            "func.func @more(%chain: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %chain, %x : !tfrt.chain, !corert.tensorhandle
}
func.func @up(%chain: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %chain \"cpu\"
  %one = corert.const_dense_tensor dense<1> : tensor<i32>
  %next = corert.executeop(%cpu) \"tfrt_test.add\"(%x, %one) : 1
  tfrt.return %chain, %next : !tfrt.chain, !corert.tensorhandle
}
",
            "%start = corert.const_dense_tensor dense<-3> : tensor<i32>
%called, %end = corert.while @more @up (%chain, %start) : (!corert.tensorhandle) -> (!corert.tensorhandle)
%done = \"corert.print_tensorhandle\"(%end, %called) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain",
        ))
        .prints("DenseHostTensor dtype = i32, shape = [], values = [0]")
        .generic(
            "%done, %results = \"corert.while\"(%chain, %operands) {a_cond_fn = @a_cond_fn, b_body_fn = @b_body_fn} : \
             (!tfrt.chain, i32) -> (!tfrt.chain, i32)",
        )
}
