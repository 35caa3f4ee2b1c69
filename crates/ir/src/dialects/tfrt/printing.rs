//! Printing scalars, a line each.

use crate::dialect::{
    OpDef,
    ValueKind::{self, *},
};
use crate::dialects::{OPERANDS, kernel};

const FIXED: &str = "Six decimals, exactly rounded; `inf`, `-inf`, `nan`, `-nan`.";
const COMPLEX: &str = "Both parts have six decimals. The `+` is there whatever the sign of the \
                       imaginary part, so that -2 prints as `+-2.000000i`.";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        print("tfrt.print.i1", I1, "true")
            .summary("Prints `int1 = 1` or `int1 = 0`")
            .prints("int1 = 1"),
        print("tfrt.print.i32", I32, "-5")
            .summary("Prints `int32 = N`")
            .prints("int32 = -5"),
        print("tfrt.print.i64", I64, "-5")
            .summary("Prints `int64 = N`")
            .prints("int64 = -5"),
        print("tfrt.print.f32", F32, "0.1")
            .summary("Prints `f32 = X`")
            .details(FIXED)
            .prints("f32 = 0.100000"),
        print("tfrt.print.f64", F64, "0.1")
            .summary("Prints `f64 = X`")
            .details(FIXED)
            .prints("f64 = 0.100000"),
        printer(kernel("tfrt.print.f16"), F16)
            .summary("Prints `f16 = N`, with the bits as a decimal number"),
        printer(kernel("tfrt.print.complex64"), Complex64)
            .summary("Prints `complex64 = R+Ii`")
            .details(COMPLEX),
        printer(kernel("tfrt.print.complex128"), Complex128)
            .summary("Prints `complex128 = R+Ii`")
            .details(COMPLEX),
    ]
}

fn printer(definition: OpDef, kind: ValueKind) -> OpDef {
    definition
        .operand("value", kind)
        .operand("chain", Chain)
        .result("done", Chain)
        .outside()
}

fn print(name: &'static str, kind: ValueKind, literal: &str) -> OpDef {
    let constant = name.replace("print", "constant");
    printer(OpDef::new(name), kind)
        .format(OPERANDS)
        .example(format!(
            "%value = {constant} {literal}\n%chain = tfrt.new.chain\n%done = {name} %value, %chain"
        ))
}
