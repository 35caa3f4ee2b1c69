//! Writing all elements of a tensor in place.

use super::{Element, TENSOR, with_tensor, writes_tensor};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, *},
};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    let with_form = [
        "tfrt_dht.fill_tensor_with_constant.ui8",
        "tfrt_dht.fill_tensor_with_constant.ui16",
        "tfrt_dht.fill_tensor_with_constant.ui32",
        "tfrt_dht.fill_tensor_with_constant.ui64",
        "tfrt_dht.fill_tensor_with_constant.i32",
        "tfrt_dht.fill_tensor_with_constant.i64",
        "tfrt_dht.fill_tensor_with_constant.f32",
        "tfrt_dht.fill_tensor_with_constant.bool",
        "tfrt_dht.fill_tensor_with_constant.complex64",
        "tfrt_dht.fill_tensor_with_constant.complex128",
    ];
    all.extend(with_form.map(|name| fill_with_form(OpDef::new(name))));
    let others = [
        "tfrt_dht.fill_tensor_with_constant.i8",
        "tfrt_dht.fill_tensor_with_constant.f64",
        "tfrt_dht.fill_tensor_with_constant.f16",
        "tfrt_dht.fill_tensor_with_constant.bf16",
    ];
    all.extend(others.map(|name| fill(kernel(name))));
    let with_form = [
        "tfrt_dht.set_tensor_with_constant_values.ui8",
        "tfrt_dht.set_tensor_with_constant_values.ui16",
        "tfrt_dht.set_tensor_with_constant_values.ui32",
        "tfrt_dht.set_tensor_with_constant_values.ui64",
        "tfrt_dht.set_tensor_with_constant_values.i32",
        "tfrt_dht.set_tensor_with_constant_values.i64",
        "tfrt_dht.set_tensor_with_constant_values.f32",
        "tfrt_dht.set_tensor_with_constant_values.bool",
        "tfrt_dht.set_tensor_with_constant_values.complex64",
        "tfrt_dht.set_tensor_with_constant_values.complex128",
    ];
    all.extend(with_form.map(|name| set_with_form(OpDef::new(name))));
    let others = [
        "tfrt_dht.set_tensor_with_constant_values.i8",
        "tfrt_dht.set_tensor_with_constant_values.f64",
        "tfrt_dht.set_tensor_with_constant_values.f16",
        "tfrt_dht.set_tensor_with_constant_values.bf16",
    ];
    all.extend(others.map(|name| set(kernel(name))));
    let operands = [
        "tfrt_dht.set_tensor_with_values.ui8",
        "tfrt_dht.set_tensor_with_values.ui16",
        "tfrt_dht.set_tensor_with_values.ui32",
        "tfrt_dht.set_tensor_with_values.ui64",
        "tfrt_dht.set_tensor_with_values.i32",
        "tfrt_dht.set_tensor_with_values.i64",
        "tfrt_dht.set_tensor_with_values.f32",
        "tfrt_dht.set_tensor_with_values.bool",
        "tfrt_dht.set_tensor_with_values.complex64",
        "tfrt_dht.set_tensor_with_values.complex128",
        "tfrt_dht.set_tensor_with_values.i8",
        "tfrt_dht.set_tensor_with_values.f64",
        "tfrt_dht.set_tensor_with_values.f16",
        "tfrt_dht.set_tensor_with_values.bf16",
    ];
    all.extend(operands.map(set_from_operands));
    all
}

/// Completes the entry of an operation that takes one value for all elements.
pub(in crate::dialects) fn fills_from(definition: OpDef) -> OpDef {
    let element = Element::of(definition.name());
    let (kind, meaning) = match element.is_complex {
        true => (
            AttributeKind::Array(element.attribute),
            "the value: its real part, its imaginary part",
        ),
        false => (AttributeKind::Number(element.attribute), "the value"),
    };
    let definition = definition.attribute("value", kind, meaning);
    match element.is_complex {
        true => definition.fails(
            "InvalidArgument",
            "a complex value is two numbers, found N",
            "the list is longer or shorter",
        ),
        false => definition,
    }
}

fn fill(definition: OpDef) -> OpDef {
    let definition = definition
        .summary("Writes one value to all elements")
        .operand("tensor", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain);
    writes_tensor(fills_from(definition))
}

fn fill_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    let element = Element::of(name);
    let what = format!(
        "%filled = {name} %t, %chain {}
%done = tfrt_dht.print_tensor %t, %filled",
        element.one
    );
    fill(definition)
        .format("operands $value attr-dict")
        .example(with_tensor(name, &what))
        .prints(element.printed_one)
}

/// Adds the attribute of the elements' values.
pub(in crate::dialects) fn with_values(definition: OpDef) -> OpDef {
    let element = Element::of(definition.name());
    let meaning = match element.is_complex {
        true => "for each element its real part and its imaginary part, in row-major order",
        false => "the elements in row-major order",
    };
    let definition =
        definition.attribute("values", AttributeKind::Array(element.attribute), meaning);
    match element.is_complex {
        true => definition.fails(
            "InvalidArgument",
            "Incorrect number of real and imaginary values for the complex tensor: N, but expected M",
            "there are not two for each element",
        ),
        false => wrong_count(definition),
    }
}

fn wrong_count(definition: OpDef) -> OpDef {
    definition.fails(
        "InvalidArgument",
        "Incorrect number of values for the tensor: N, but expected M",
        "there is not one for each element",
    )
}

fn set(definition: OpDef) -> OpDef {
    let definition = definition
        .summary("Writes a list of values to the elements")
        .operand("tensor", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain);
    writes_tensor(with_values(definition))
}

fn set_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    let element = Element::of(name);
    let what = format!(
        "%set = {name} %t, %chain {}
%done = tfrt_dht.print_tensor %t, %set",
        element.list()
    );
    set(definition)
        .format("operands $values attr-dict")
        .example(with_tensor(name, &what))
        .prints(element.printed_one)
}

fn set_from_operands(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary("Writes operands to the elements, in row-major order")
        .operand("tensor", TENSOR)
        .operand("chain", Chain)
        .rest_of("values", value_of(Element::of(name)))
        .result("done", Chain)
        .fails(
            "InvalidArgument",
            "variadic operand INDEX: expected TYPE, found TYPE",
            "an operand behind the chain has another type than the elements",
        );
    writes_tensor(wrong_count(definition))
}

/// Returns the type of a value that is one element.
fn value_of(element: Element) -> ValueKind {
    match element.name {
        "complex64" => Complex64,
        "complex128" => Complex128,
        _ => element.attribute,
    }
}
