//! Constants: an attribute becomes a value.

use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{self, *},
};
use crate::dialects::kernel;

const FOR_SYNCHRONOUS: &str = "The same as the `tfrt.constant` of the type; the original has it \
                               for functions marked `tfrt.sync`, which here take either.";
const INTEGER: &str = "A decimal number with or without a sign, or a hexadecimal one. What does not \
                       fit the type is refused; the upper half of the unsigned range counts as \
                       fitting a signless type.";
const UNSIGNED: &str = "A number without a sign, decimal or hexadecimal; what does not fit the type \
                        is refused.";
const FLOAT: &str = "A decimal number with a point, rounded to the nearest, or the bits as a \
                     hexadecimal number. Infinities and what is no number have only the latter.";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        constant("tfrt.constant.i1", I1, "true").details("`true`, `false`, `1` or `0`."),
        constant("tfrt.constant.i32", I32, "-4").details(INTEGER),
        constant("tfrt.constant.i64", I64, "0x10").details(INTEGER),
        constant("tfrt.constant.ui32", UI32, "7").details(UNSIGNED),
        constant("tfrt.constant.ui64", UI64, "8").details(UNSIGNED),
        constant("tfrt.constant.bf16", BF16, "1.0").details(FLOAT),
        constant("tfrt.constant.f16", F16, "1.5").details(FLOAT),
        constant("tfrt.constant.f32", F32, "0x7F800000").details(FLOAT),
        constant("tfrt.constant.f64", F64, "2.0").details(FLOAT),
        complex("tfrt.constant.complex64", F32, Complex64),
        complex("tfrt.constant.complex128", F64, Complex128),
        synchronous(constant("tfrt.constant_s.i64", I64, "4")),
        synchronous(constant("tfrt.constant_s.f16", F16, "1.5")),
        synchronous(constant("tfrt.constant_s.f32", F32, "0.5")),
        synchronous(constant("tfrt.constant_s.f64", F64, "2.0")),
        synchronous(value(kernel("tfrt.constant_s.i32"), I32)),
        synchronous(value(kernel("tfrt.constant_s.bf16"), BF16)),
    ]
}

fn value(definition: OpDef, kind: ValueKind) -> OpDef {
    definition
        .summary("A constant")
        .attribute("value", AttributeKind::Typed(kind), "the constant")
        .result("constant", kind)
        .pure()
}

fn constant(name: &'static str, kind: ValueKind, literal: &str) -> OpDef {
    value(OpDef::new(name), kind)
        .format("$value attr-dict")
        .example(format!("%constant = {name} {literal}"))
}

fn synchronous(definition: OpDef) -> OpDef {
    definition.details(FOR_SYNCHRONOUS).traits(&[Traits::SYNC])
}

fn complex(name: &'static str, part: ValueKind, kind: ValueKind) -> OpDef {
    OpDef::new(name)
        .summary("A complex constant: real part, imaginary part")
        .details(
            "A kernel gets its attributes in the order of their names: the imaginary part first.",
        )
        .attribute(
            "imaginary",
            AttributeKind::Typed(part),
            "the imaginary part",
        )
        .attribute("real", AttributeKind::Typed(part), "the real part")
        .result("constant", kind)
        .pure()
        .format("$real, $imaginary attr-dict")
        .example(format!("%constant = {name} 1.0, -2.0"))
}
