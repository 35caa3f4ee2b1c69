//! Comparisons of tensors, exact or within a tolerance.

use super::{Element, TENSOR, used_by_others, with_tensor, wrong_type};
use crate::dialect::{OpDef, ValueKind::*};
use crate::dialects::{OPERANDS, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    let with_form = [
        "tfrt_dht.tensor_equal.ui8",
        "tfrt_dht.tensor_equal.ui16",
        "tfrt_dht.tensor_equal.ui32",
        "tfrt_dht.tensor_equal.ui64",
        "tfrt_dht.tensor_equal.i32",
        "tfrt_dht.tensor_equal.i64",
        "tfrt_dht.tensor_equal.f32",
        "tfrt_dht.tensor_equal.bool",
        "tfrt_dht.tensor_equal.complex64",
        "tfrt_dht.tensor_equal.complex128",
    ];
    all.extend(with_form.map(|name| equal_with_form(OpDef::new(name))));
    let others = [
        "tfrt_dht.tensor_equal.i8",
        "tfrt_dht.tensor_equal.f64",
        "tfrt_dht.tensor_equal.f16",
        "tfrt_dht.tensor_equal.bf16",
    ];
    all.extend(others.map(|name| equal(kernel(name))));
    all.extend(ALL_CLOSE.map(all_close));
    all
}

/// Completes the entry of an operation that compares two tensors.
fn compares(definition: OpDef) -> OpDef {
    let definition = definition
        .operand("lhs", TENSOR)
        .operand("rhs", TENSOR)
        .operand("chain", Chain)
        .result("same", I1)
        .result("done", Chain)
        .reads(0)
        .reads(1);
    used_by_others(wrong_type(definition))
}

fn equal(definition: OpDef) -> OpDef {
    compares(definition)
        .summary("Whether two tensors have the same shape and the same elements")
        .details(
            "Floats are compared as IEEE 754 has it: 0 is -0, and what is no number equals nothing.",
        )
}

fn equal_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    let one = Element::of(name).list();
    let what = format!(
        "%set = tfrt_dht.set_tensor_with_constant_values.{ty} %t, %chain {one}
%same, %compared = {name} %t, %t, %set
%done = tfrt.print.i1 %same, %compared",
        ty = Element::of(name).name
    );
    equal(definition)
        .format(OPERANDS)
        .example(with_tensor(name, &what))
        .prints("int1 = 1")
}

fn all_close(name: &'static str) -> OpDef {
    compares(kernel(name))
        .summary("Whether two tensors have the same shape and nearly the same elements")
        .details(
            "Two floats, or parts of complex numbers, are near if they differ by no more than the \
             distance between 1 and the next float, times the size of their sum, times the number in \
             the name (2 where there is none), or by less than the smallest normal float. All others \
             are compared exactly.",
        )
}

const ALL_CLOSE: [&str; 70] = [
    "tfrt_dht.tensor_allclose.ui8",
    "tfrt_dht.tensor_allclose.ui16",
    "tfrt_dht.tensor_allclose.ui32",
    "tfrt_dht.tensor_allclose.ui64",
    "tfrt_dht.tensor_allclose.i32",
    "tfrt_dht.tensor_allclose.i64",
    "tfrt_dht.tensor_allclose.f32",
    "tfrt_dht.tensor_allclose.bool",
    "tfrt_dht.tensor_allclose.complex64",
    "tfrt_dht.tensor_allclose.complex128",
    "tfrt_dht.tensor_allclose.i8",
    "tfrt_dht.tensor_allclose.f64",
    "tfrt_dht.tensor_allclose.f16",
    "tfrt_dht.tensor_allclose.bf16",
    "tfrt_dht.tensor_allclose.3ulp.ui8",
    "tfrt_dht.tensor_allclose.3ulp.ui16",
    "tfrt_dht.tensor_allclose.3ulp.ui32",
    "tfrt_dht.tensor_allclose.3ulp.ui64",
    "tfrt_dht.tensor_allclose.3ulp.i32",
    "tfrt_dht.tensor_allclose.3ulp.i64",
    "tfrt_dht.tensor_allclose.3ulp.f32",
    "tfrt_dht.tensor_allclose.3ulp.bool",
    "tfrt_dht.tensor_allclose.3ulp.complex64",
    "tfrt_dht.tensor_allclose.3ulp.complex128",
    "tfrt_dht.tensor_allclose.3ulp.i8",
    "tfrt_dht.tensor_allclose.3ulp.f64",
    "tfrt_dht.tensor_allclose.3ulp.f16",
    "tfrt_dht.tensor_allclose.3ulp.bf16",
    "tfrt_dht.tensor_allclose.1000ulp.ui8",
    "tfrt_dht.tensor_allclose.1000ulp.ui16",
    "tfrt_dht.tensor_allclose.1000ulp.ui32",
    "tfrt_dht.tensor_allclose.1000ulp.ui64",
    "tfrt_dht.tensor_allclose.1000ulp.i32",
    "tfrt_dht.tensor_allclose.1000ulp.i64",
    "tfrt_dht.tensor_allclose.1000ulp.f32",
    "tfrt_dht.tensor_allclose.1000ulp.bool",
    "tfrt_dht.tensor_allclose.1000ulp.complex64",
    "tfrt_dht.tensor_allclose.1000ulp.complex128",
    "tfrt_dht.tensor_allclose.1000ulp.i8",
    "tfrt_dht.tensor_allclose.1000ulp.f64",
    "tfrt_dht.tensor_allclose.1000ulp.f16",
    "tfrt_dht.tensor_allclose.1000ulp.bf16",
    "tfrt_dht.tensor_allclose.2000ulp.ui8",
    "tfrt_dht.tensor_allclose.2000ulp.ui16",
    "tfrt_dht.tensor_allclose.2000ulp.ui32",
    "tfrt_dht.tensor_allclose.2000ulp.ui64",
    "tfrt_dht.tensor_allclose.2000ulp.i32",
    "tfrt_dht.tensor_allclose.2000ulp.i64",
    "tfrt_dht.tensor_allclose.2000ulp.f32",
    "tfrt_dht.tensor_allclose.2000ulp.bool",
    "tfrt_dht.tensor_allclose.2000ulp.complex64",
    "tfrt_dht.tensor_allclose.2000ulp.complex128",
    "tfrt_dht.tensor_allclose.2000ulp.i8",
    "tfrt_dht.tensor_allclose.2000ulp.f64",
    "tfrt_dht.tensor_allclose.2000ulp.f16",
    "tfrt_dht.tensor_allclose.2000ulp.bf16",
    "tfrt_dht.tensor_allclose.100000ulp.ui8",
    "tfrt_dht.tensor_allclose.100000ulp.ui16",
    "tfrt_dht.tensor_allclose.100000ulp.ui32",
    "tfrt_dht.tensor_allclose.100000ulp.ui64",
    "tfrt_dht.tensor_allclose.100000ulp.i32",
    "tfrt_dht.tensor_allclose.100000ulp.i64",
    "tfrt_dht.tensor_allclose.100000ulp.f32",
    "tfrt_dht.tensor_allclose.100000ulp.bool",
    "tfrt_dht.tensor_allclose.100000ulp.complex64",
    "tfrt_dht.tensor_allclose.100000ulp.complex128",
    "tfrt_dht.tensor_allclose.100000ulp.i8",
    "tfrt_dht.tensor_allclose.100000ulp.f64",
    "tfrt_dht.tensor_allclose.100000ulp.f16",
    "tfrt_dht.tensor_allclose.100000ulp.bf16",
];
