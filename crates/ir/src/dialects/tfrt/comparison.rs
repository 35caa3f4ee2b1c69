//! Comparisons, minima and conjunctions of scalars.

use super::with_two;
use crate::dialect::{
    OpDef, Traits,
    ValueKind::{self, *},
};
use crate::dialects::{OPERANDS, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    let conjunction = "%both = tfrt.and.i1 %a, %b\n%done = tfrt.print.i1 %both, %chain";
    vec![
        equal("tfrt.equal.i32", I32, "i32"),
        equal("tfrt.equal.i64", I64, "i64"),
        less("tfrt.lessequal.i32", I32),
        less("tfrt.lessequal.i64", I64),
        least("tfrt.minimum.f32", F32),
        least("tfrt.minimum.f64", F64),
        OpDef::new("tfrt.and.i1")
            .summary("Whether both are true")
            .operand("lhs", I1)
            .operand("rhs", I1)
            .result("both", I1)
            .pure()
            .traits(&[Traits::COMMUTATIVE])
            .format(OPERANDS)
            .example(with_two("i1", "true", "false", conjunction))
            .prints("int1 = 0"),
    ]
}

fn equal(name: &'static str, kind: ValueKind, ty: &str) -> OpDef {
    let what = format!("%equal = {name} %a, %b\n%done = tfrt.print.i1 %equal, %chain");
    OpDef::new(name)
        .summary("Whether both are equal")
        .operand("lhs", kind)
        .operand("rhs", kind)
        .result("equal", I1)
        .pure()
        .traits(&[Traits::COMMUTATIVE])
        .format(OPERANDS)
        .example(with_two(ty, "3", "3", &what))
        .prints("int1 = 1")
}

fn less(name: &'static str, kind: ValueKind) -> OpDef {
    kernel(name)
        .summary("Whether the first is less than the second or equal, both taken with a sign")
        .operand("lhs", kind)
        .operand("rhs", kind)
        .result("less_or_equal", I1)
        .pure()
}

fn least(name: &'static str, kind: ValueKind) -> OpDef {
    kernel(name)
        .summary("The smaller of both")
        .details(
            "That is the first, unless the second is less: so of two that are equal, as 0 and \
             -0, and if either is no number.",
        )
        .operand("lhs", kind)
        .operand("rhs", kind)
        .result("minimum", kind)
        .pure()
}
