//! Sums, differences, products, quotients and conversions of scalars.

use super::with_two;
use crate::dialect::{
    OpDef, Traits,
    ValueKind::{self, F32, F64, I32, I64},
};
use crate::dialects::{OPERANDS, kernel};

const WRAPS: &str = "What does not fit wraps around.";
const IEEE: &str = "As IEEE 754 has it, rounded to the nearest, ties to even.";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        add("tfrt.add.i32", I32)
            .details(WRAPS)
            .example(sum("i32", "2147483647", "1"))
            .prints("int32 = -2147483648"),
        add("tfrt.add.i64", I64)
            .details(WRAPS)
            .example(sum("i64", "40", "2"))
            .prints("int64 = 42"),
        add("tfrt.add.f32", F32)
            .details(IEEE)
            .example(sum("f32", "1.5", "0.25"))
            .prints("f32 = 1.750000"),
        add("tfrt.add.f64", F64)
            .details(IEEE)
            .example(sum("f64", "1.5", "0.25"))
            .prints("f64 = 1.750000"),
        binary(kernel("tfrt.add_s.i32"), I32, "sum")
            .summary("The sum")
            .details("As `tfrt.add.i32`; the original has it for functions marked `tfrt.sync`.")
            .traits(&[Traits::SYNC, Traits::COMMUTATIVE]),
        binary(kernel("tfrt.add_s.i64"), I64, "sum")
            .summary("The sum")
            .details("As `tfrt.add.i64`; the original has it for functions marked `tfrt.sync`.")
            .traits(&[Traits::SYNC, Traits::COMMUTATIVE]),
        minus("tfrt.minus.i32", I32),
        minus("tfrt.minus.i64", I64),
        mul("tfrt.mul.i32", I32, "i32")
            .details(WRAPS)
            .prints("int32 = -42"),
        mul("tfrt.mul.i64", I64, "i64")
            .details(WRAPS)
            .prints("int64 = -42"),
        mul("tfrt.mul_s.i32", I32, "i32")
            .prints("int32 = -42")
            .details("As `tfrt.mul.i32`; the original has it for functions marked `tfrt.sync`.")
            .traits(&[Traits::SYNC]),
        mul("tfrt.mul_s.i64", I64, "i64")
            .prints("int64 = -42")
            .details("As `tfrt.mul.i64`; the original has it for functions marked `tfrt.sync`.")
            .traits(&[Traits::SYNC]),
        multiply("tfrt.multiply.f32", F32),
        multiply("tfrt.multiply.f64", F64),
        div("tfrt.div.i32", I32, "i32").prints("int32 = -3\nint32 = -1"),
        div("tfrt.div.i64", I64, "i64").prints("int64 = -3\nint64 = -1"),
        quotient("tfrt.div.f32", F32),
        quotient("tfrt.div.f64", F64),
        to_float("tfrt.cast.i64_to_f32", F32),
        to_float("tfrt.cast.i64_to_f64", F64),
        to_integer("tfrt.cast.f32_to_i64", F32),
        to_integer("tfrt.cast.f64_to_i64", F64),
    ]
}

/// Completes the entry of an operation on two values of one type that has no effect.
fn binary(definition: OpDef, kind: ValueKind, result: &'static str) -> OpDef {
    definition
        .operand("lhs", kind)
        .operand("rhs", kind)
        .result(result, kind)
        .pure()
}

fn add(name: &'static str, kind: ValueKind) -> OpDef {
    binary(OpDef::new(name), kind, "sum")
        .summary("The sum")
        .traits(&[Traits::COMMUTATIVE])
        .format(OPERANDS)
}

fn sum(ty: &str, a: &str, b: &str) -> String {
    let what = format!("%sum = tfrt.add.{ty} %a, %b\n%done = tfrt.print.{ty} %sum, %chain");
    with_two(ty, a, b, &what)
}

fn minus(name: &'static str, kind: ValueKind) -> OpDef {
    binary(kernel(name), kind, "difference")
        .summary("The difference")
        .details(WRAPS)
}

fn mul(name: &'static str, kind: ValueKind, ty: &str) -> OpDef {
    let what = format!("%product = {name} %a, %b\n%done = tfrt.print.{ty} %product, %chain");
    binary(OpDef::new(name), kind, "product")
        .summary("The product")
        .traits(&[Traits::COMMUTATIVE])
        .format(OPERANDS)
        .example(with_two(ty, "6", "-7", &what))
}

fn multiply(name: &'static str, kind: ValueKind) -> OpDef {
    binary(kernel(name), kind, "product")
        .summary("The product")
        .details(IEEE)
        .traits(&[Traits::COMMUTATIVE])
}

fn div(name: &'static str, kind: ValueKind, ty: &str) -> OpDef {
    let what = format!(
        "%quotient, %remainder = {name} %a, %b
%c0 = tfrt.print.{ty} %quotient, %chain
%c1 = tfrt.print.{ty} %remainder, %c0"
    );
    OpDef::new(name)
        .summary("The quotient, rounded towards zero, and the remainder")
        .details(
            "The remainder has the sign of the dividend. The least number divided by -1 is \
             itself, with a remainder of 0.",
        )
        .operand("lhs", kind)
        .operand("rhs", kind)
        .result("quotient", kind)
        .result("remainder", kind)
        .fails(
            "Unknown",
            "Divide by zero",
            "`rhs` is 0; both results are the error",
        )
        .pure()
        .format(OPERANDS)
        .example(with_two(ty, "-7", "2", &what))
}

fn quotient(name: &'static str, kind: ValueKind) -> OpDef {
    binary(kernel(name), kind, "quotient")
        .summary("The quotient")
        .details(IEEE)
        .fails("Unknown", "Divide by zero", "`rhs` is 0 or -0")
}

fn to_float(name: &'static str, kind: ValueKind) -> OpDef {
    kernel(name)
        .summary("The nearest float")
        .details("Of two that are equally near, the one with an even last digit.")
        .operand("integer", I64)
        .result("float", kind)
        .pure()
}

fn to_integer(name: &'static str, kind: ValueKind) -> OpDef {
    kernel(name)
        .summary("The integer part, rounded towards zero")
        .details("What is too large becomes the nearest `i64`, and what is no number becomes 0.")
        .operand("float", kind)
        .result("integer", I64)
        .pure()
}
