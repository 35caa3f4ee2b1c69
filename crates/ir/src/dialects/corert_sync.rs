//! `corert_sync`: the operations of `corert` for functions marked synchronous: their order is that
//! of the text, and so there are no chains.

use super::corert::{
    HANDLE, HANDLER, const_dense, create_dense, executes, gets_handler, prints_handle,
    registers_handler,
};
use super::{checks, kernel};
use crate::dialect::{OpDef, Traits};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        execute(),
        gets_handler(OpDef::new("corert_sync.get_op_handler"))
            .format("$op_handler_name attr-dict")
            .example(synchronous("%handler = corert_sync.get_op_handler \"cpu\"")),
        registers_handler(OpDef::new("corert_sync.register_op_handler")).example(synchronous(
            "%null = \"corert.create_null_op_handler\"() : () -> !corert.ophandler
  corert_sync.register_op_handler %null \"null\"",
        )),
        const_dense(OpDef::new("corert_sync.const_dense_tensor")),
        prints_handle(kernel("corert_sync.print_tensorhandle").operand("handle", HANDLE)),
    ];
    all.extend(CREATE_DENSE.map(|name| create_dense(OpDef::new(name))));
    let synchronous = |definition: OpDef| definition.traits(&[Traits::SYNC]);
    all.into_iter().map(synchronous).collect()
}

const CREATE_DENSE: [&str; 13] = [
    "corert_sync.create_dense_tensor.ui8",
    "corert_sync.create_dense_tensor.ui16",
    "corert_sync.create_dense_tensor.ui32",
    "corert_sync.create_dense_tensor.ui64",
    "corert_sync.create_dense_tensor.i1",
    "corert_sync.create_dense_tensor.i8",
    "corert_sync.create_dense_tensor.i16",
    "corert_sync.create_dense_tensor.i32",
    "corert_sync.create_dense_tensor.i64",
    "corert_sync.create_dense_tensor.bf16",
    "corert_sync.create_dense_tensor.f16",
    "corert_sync.create_dense_tensor.f32",
    "corert_sync.create_dense_tensor.f64",
];

fn execute() -> OpDef {
    let definition = OpDef::new("corert_sync.executeop")
        .summary("Executes an op, and waits for its results")
        .details(
            "The braces behind the operands hold the op's attributes. In generic form they are the \
             attribute `op_attrs`, an array of `[\"key\", value]`, whose order is kept. The number \
             behind the colon says how many results there are; none if it is left out.",
        )
        .operand("handler", HANDLER)
        .rest_of("operands", HANDLE);
    executes(definition)
        .outside()
        .format("(operand) $op_name(operands) {op_attrs} count")
        .verify(checks::core_runtime::executed)
        .example(synchronous(
            "%cpu = corert_sync.get_op_handler \"cpu\"
  %one = corert_sync.executeop(%cpu) \"tfrt_test.create_dense_tensor\"() {shape = [1], values = [1 : i32]} : 1",
        ))
        .generic(
            "%results = \"corert_sync.executeop\"(%handler, %operands) {op_attrs = [], op_name = \
             \"tfrt_test.relu\"} : (!corert.ophandler, !corert.tensorhandle) -> !corert.tensorhandle",
        )
}

fn synchronous(lines: &str) -> String {
    format!("func.func @first() attributes {{tfrt.sync}} {{\n  {lines}\n  tfrt.return\n}}\n")
}
