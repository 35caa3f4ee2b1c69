//! Ops that are executed by a handler, and ops that are functions.

use super::{HANDLE, HANDLER, OP, with_handler};
use crate::dialect::{AttributeKind, OpDef, ValueKind::Chain};
use crate::dialects::{checks, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        execute(),
        execute_in_order(),
        execute_made(),
        make_composite(),
    ]
}

const ATTRIBUTES: &str = "The braces behind the operands hold the op's attributes, a second pair of \
    braces those that name functions, as strings. In generic form they are the attributes \
    `op_attrs` and `op_func_attrs`, arrays of `[\"key\", value]`, whose order is kept. The number \
    behind the colon says how many results there are; none if it is left out.";

/// Completes the entry of an operation that executes an op whose attributes stand in the program.
pub(in crate::dialects) fn executes(definition: OpDef) -> OpDef {
    with_attributes(definition)
        .attribute("op_name", AttributeKind::String, "the name of the op")
        .fails(
            "Unknown",
            "NAME was not supported by NullOpHandler.",
            "no handler in the chain of handlers has the op",
        )
        .fails(
            "InvalidArgument",
            "MESSAGE",
            "the op's operands or attributes do not fit; all results are the error, and ops that \
             do not need them go on",
        )
}

fn with_attributes(definition: OpDef) -> OpDef {
    definition
        .attribute("op_attrs", AttributeKind::Pairs, "the op's attributes")
        .any_results_of("results", HANDLE)
}

fn with_function_attributes(definition: OpDef) -> OpDef {
    definition.attribute(
        "op_func_attrs",
        AttributeKind::Pairs,
        "the op's attributes that name functions; each value is a string",
    )
}

fn execute() -> OpDef {
    let definition = OpDef::new("corert.executeop")
        .summary("Executes an op without side effects")
        .details(ATTRIBUTES)
        .operand("handler", HANDLER)
        .rest_of("operands", HANDLE);
    executes(with_function_attributes(definition))
        .pure()
        .asynchronous()
        .format("(operand) $op_name(operands) {op_attrs} {op_func_attrs} count")
        .verify(checks::core_runtime::executed)
        .example(with_handler(
            "",
            "%two = corert.executeop(%cpu) \"tfrt_test.create_dense_tensor\"() {shape = [1], values = [2 : i32]} : 1
%four = corert.executeop(%cpu) \"tfrt_test.add\"(%two, %two) : 1
%done = \"corert.print_tensorhandle\"(%four, %chain) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain",
        ))
        .prints("DenseHostTensor dtype = i32, shape = [1], values = [4]")
        .generic(
            "%results = \"corert.executeop\"(%handler, %operands) {op_attrs = [[\"axis\", 0 : i32]], op_func_attrs = [], \
             op_name = \"tfrt_test.argmax\"} : (!corert.ophandler, !corert.tensorhandle) -> !corert.tensorhandle",
        )
}

fn execute_in_order() -> OpDef {
    let definition = OpDef::new("corert.executeop.seq")
        .summary("Executes an op in the order that chains say")
        .details(ATTRIBUTES)
        .operand("handler", HANDLER)
        .operand("chain", Chain)
        .result("done", Chain)
        .rest_of("operands", HANDLE);
    executes(with_function_attributes(definition))
        .outside()
        .asynchronous()
        .format("(operand, operand) $op_name(operands) {op_attrs} {op_func_attrs} count")
        .verify(checks::core_runtime::executed)
        .example(with_handler(
            "",
            "%one = corert.executeop(%cpu) \"tfrt_test.create_dense_tensor\"() {shape = [1], values = [1 : i32]} : 1
%done = corert.executeop.seq(%cpu, %chain) \"tfrt_test.print\"(%one)",
        ))
        .prints("DenseHostTensor dtype = i32, shape = [1], values = [1]")
        .generic(
            "%done, %results = \"corert.executeop.seq\"(%handler, %chain, %operands) {op_attrs = [], op_func_attrs = [], \
             op_name = \"tfrt_test.print\"} : (!corert.ophandler, !tfrt.chain, !corert.tensorhandle) -> \
             (!tfrt.chain, !corert.tensorhandle)",
        )
}

fn execute_made() -> OpDef {
    let definition = kernel("corert.execute_crt_op")
        .summary("Executes an op that was made before")
        .details("What the op is a function of is called; its effects are ordered by nothing else.")
        .operand("op", OP)
        .rest_of("operands", HANDLE);
    with_attributes(with_function_attributes(definition))
        .outside()
        .asynchronous()
        .generic(
            "%results = \"corert.execute_crt_op\"(%op, %operands) {op_attrs = [], op_func_attrs = []} : \
             (!corert.op, !corert.tensorhandle) -> !corert.tensorhandle",
        )
}

fn make_composite() -> OpDef {
    kernel("corert.make_composite_op")
        .summary("An op that is a function")
        .details("The function takes a chain and tensor handles, and gives a chain and tensor handles.")
        .attribute("fn", AttributeKind::FlatSymbol, "the function")
        .result("op", OP)
        .fails(
            "InvalidArgument",
            "The function should only takes type [!corert.tensorhandle] as input. But the I-th argument is type [TYPE]",
            "an argument of the function behind the first is something else",
        )
        .fails(
            "InvalidArgument",
            "The function should only returns type [!corert.tensorhandle] as output. But the I-th result is type [TYPE]",
            "a result of the function behind the first is something else",
        )
        .no_effects()
}
