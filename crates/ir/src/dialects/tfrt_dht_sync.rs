//! `tfrt_dht_sync`: the operations of `tfrt_dht` for functions marked synchronous: their order is
//! that of the text, and so there are no chains.

use super::kernel;
use super::tfrt_dht::{
    BUFFER, Element, SHAPE, TENSOR,
    buffers::{allocate, get_shape, makes_tensor, prints_tensor, slice},
    creation::{uninitialized, uninitialized_with_form},
    filling::{fills_from, with_values},
    takes_memory, writes_tensor,
};
use crate::dialect::{AttributeKind, OpDef, Traits, ValueKind::I64};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        prints_tensor(OpDef::new("tfrt_dht_sync.print_tensor").operand("tensor", TENSOR))
            .format(OPERANDS)
            .example(
                "%tensor = tfrt_dht_sync.create_uninitialized_tensor.i32.1 [2 : i64]
tfrt_dht_sync.print_tensor %tensor",
            )
            .prints("DenseHostTensor dtype = i32, shape = [2], values = [0, 0]"),
        get_shape(OpDef::new("tfrt_dht_sync.get_tensor_shape")),
        allocate(OpDef::new("tfrt_dht_sync.allocate_buffer")),
        slice(
            OpDef::new("tfrt_dht_sync.get_buffer_slice"),
            "tfrt_dht_sync.allocate_buffer",
        ),
    ];
    all.extend(CREATE_WITH_FORM.map(|name| uninitialized_with_form(OpDef::new(name))));
    all.extend(CREATE.map(|name| uninitialized(kernel(name))));
    all.extend(CREATE_DENSE.map(dense));
    all.extend(CREATE_FROM_SCALAR.map(from_scalar));
    let with_form = [
        "tfrt_dht_sync.make_tensor.ui8",
        "tfrt_dht_sync.make_tensor.ui16",
        "tfrt_dht_sync.make_tensor.ui32",
        "tfrt_dht_sync.make_tensor.ui64",
        "tfrt_dht_sync.make_tensor.i32",
        "tfrt_dht_sync.make_tensor.i64",
        "tfrt_dht_sync.make_tensor.f32",
        "tfrt_dht_sync.make_tensor.bool",
        "tfrt_dht_sync.make_tensor.complex64",
        "tfrt_dht_sync.make_tensor.complex128",
    ];
    all.extend(with_form.map(|name| make_with_form(OpDef::new(name))));
    let others = [
        "tfrt_dht_sync.make_tensor.i8",
        "tfrt_dht_sync.make_tensor.f64",
        "tfrt_dht_sync.make_tensor.f16",
        "tfrt_dht_sync.make_tensor.bf16",
    ];
    all.extend(others.map(|name| make(kernel(name))));
    let with_form = [
        "tfrt_dht_sync.set_tensor_with_constant_values.ui8",
        "tfrt_dht_sync.set_tensor_with_constant_values.ui16",
        "tfrt_dht_sync.set_tensor_with_constant_values.ui32",
        "tfrt_dht_sync.set_tensor_with_constant_values.ui64",
        "tfrt_dht_sync.set_tensor_with_constant_values.i32",
        "tfrt_dht_sync.set_tensor_with_constant_values.i64",
        "tfrt_dht_sync.set_tensor_with_constant_values.f32",
        "tfrt_dht_sync.set_tensor_with_constant_values.bool",
        "tfrt_dht_sync.set_tensor_with_constant_values.complex64",
        "tfrt_dht_sync.set_tensor_with_constant_values.complex128",
    ];
    all.extend(with_form.map(|name| set_with_form(OpDef::new(name))));
    let others = [
        "tfrt_dht_sync.set_tensor_with_constant_values.i8",
        "tfrt_dht_sync.set_tensor_with_constant_values.f64",
        "tfrt_dht_sync.set_tensor_with_constant_values.f16",
        "tfrt_dht_sync.set_tensor_with_constant_values.bf16",
    ];
    all.extend(others.map(|name| set(kernel(name))));
    all.into_iter()
        .map(|definition| definition.traits(&[Traits::SYNC]))
        .collect()
}

fn make(definition: OpDef) -> OpDef {
    let definition = definition
        .operand("buffer", BUFFER)
        .operand("shape", SHAPE)
        .result("tensor", TENSOR);
    makes_tensor(definition)
}

fn make_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    make(definition).format(OPERANDS).example(format!(
        "%n = tfrt.constant.i64 0
%alignment = tfrt.constant.i64 8
%buffer = tfrt_dht_sync.allocate_buffer %n, %alignment
%shape = ts_sync.build_shape [0 : i64]
%tensor = {name} %buffer, %shape"
    ))
}

fn set(definition: OpDef) -> OpDef {
    let definition = definition
        .summary("Writes a list of values to the elements")
        .operand("tensor", TENSOR);
    writes_tensor(with_values(definition))
}

fn set_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    let element = Element::of(name);
    set(definition)
        .format("operands $values attr-dict")
        .example(format!(
            "%t = tfrt_dht_sync.create_uninitialized_tensor.{}.1 [1 : i64]
{name} %t {}
tfrt_dht_sync.print_tensor %t",
            element.name,
            element.list()
        ))
        .prints(element.printed_one)
}

/// Starts the entry of an operation that makes a tensor of a shape.
fn of_shape(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .attribute(
            "shape",
            AttributeKind::Array(I64),
            "the extents, outermost first",
        )
        .result("tensor", TENSOR)
        .allocates();
    takes_memory(definition)
}

fn dense(name: &'static str) -> OpDef {
    with_values(of_shape(name))
        .summary("A dense tensor of a list of elements")
        .details("A list of one element is written everywhere.")
}

fn from_scalar(name: &'static str) -> OpDef {
    fills_from(of_shape(name)).summary("A tensor that has one value everywhere, and keeps it once")
}

const CREATE_WITH_FORM: [&str; 50] = [
    "tfrt_dht_sync.create_uninitialized_tensor.ui8.0",
    "tfrt_dht_sync.create_uninitialized_tensor.ui8.1",
    "tfrt_dht_sync.create_uninitialized_tensor.ui8.2",
    "tfrt_dht_sync.create_uninitialized_tensor.ui8.3",
    "tfrt_dht_sync.create_uninitialized_tensor.ui8.4",
    "tfrt_dht_sync.create_uninitialized_tensor.ui16.0",
    "tfrt_dht_sync.create_uninitialized_tensor.ui16.1",
    "tfrt_dht_sync.create_uninitialized_tensor.ui16.2",
    "tfrt_dht_sync.create_uninitialized_tensor.ui16.3",
    "tfrt_dht_sync.create_uninitialized_tensor.ui16.4",
    "tfrt_dht_sync.create_uninitialized_tensor.ui32.0",
    "tfrt_dht_sync.create_uninitialized_tensor.ui32.1",
    "tfrt_dht_sync.create_uninitialized_tensor.ui32.2",
    "tfrt_dht_sync.create_uninitialized_tensor.ui32.3",
    "tfrt_dht_sync.create_uninitialized_tensor.ui32.4",
    "tfrt_dht_sync.create_uninitialized_tensor.ui64.0",
    "tfrt_dht_sync.create_uninitialized_tensor.ui64.1",
    "tfrt_dht_sync.create_uninitialized_tensor.ui64.2",
    "tfrt_dht_sync.create_uninitialized_tensor.ui64.3",
    "tfrt_dht_sync.create_uninitialized_tensor.ui64.4",
    "tfrt_dht_sync.create_uninitialized_tensor.i32.0",
    "tfrt_dht_sync.create_uninitialized_tensor.i32.1",
    "tfrt_dht_sync.create_uninitialized_tensor.i32.2",
    "tfrt_dht_sync.create_uninitialized_tensor.i32.3",
    "tfrt_dht_sync.create_uninitialized_tensor.i32.4",
    "tfrt_dht_sync.create_uninitialized_tensor.i64.0",
    "tfrt_dht_sync.create_uninitialized_tensor.i64.1",
    "tfrt_dht_sync.create_uninitialized_tensor.i64.2",
    "tfrt_dht_sync.create_uninitialized_tensor.i64.3",
    "tfrt_dht_sync.create_uninitialized_tensor.i64.4",
    "tfrt_dht_sync.create_uninitialized_tensor.f32.0",
    "tfrt_dht_sync.create_uninitialized_tensor.f32.1",
    "tfrt_dht_sync.create_uninitialized_tensor.f32.2",
    "tfrt_dht_sync.create_uninitialized_tensor.f32.3",
    "tfrt_dht_sync.create_uninitialized_tensor.f32.4",
    "tfrt_dht_sync.create_uninitialized_tensor.bool.0",
    "tfrt_dht_sync.create_uninitialized_tensor.bool.1",
    "tfrt_dht_sync.create_uninitialized_tensor.bool.2",
    "tfrt_dht_sync.create_uninitialized_tensor.bool.3",
    "tfrt_dht_sync.create_uninitialized_tensor.bool.4",
    "tfrt_dht_sync.create_uninitialized_tensor.complex64.0",
    "tfrt_dht_sync.create_uninitialized_tensor.complex64.1",
    "tfrt_dht_sync.create_uninitialized_tensor.complex64.2",
    "tfrt_dht_sync.create_uninitialized_tensor.complex64.3",
    "tfrt_dht_sync.create_uninitialized_tensor.complex64.4",
    "tfrt_dht_sync.create_uninitialized_tensor.complex128.0",
    "tfrt_dht_sync.create_uninitialized_tensor.complex128.1",
    "tfrt_dht_sync.create_uninitialized_tensor.complex128.2",
    "tfrt_dht_sync.create_uninitialized_tensor.complex128.3",
    "tfrt_dht_sync.create_uninitialized_tensor.complex128.4",
];

const CREATE: [&str; 34] = [
    "tfrt_dht_sync.create_uninitialized_tensor.ui8.5",
    "tfrt_dht_sync.create_uninitialized_tensor.ui16.5",
    "tfrt_dht_sync.create_uninitialized_tensor.ui32.5",
    "tfrt_dht_sync.create_uninitialized_tensor.ui64.5",
    "tfrt_dht_sync.create_uninitialized_tensor.i32.5",
    "tfrt_dht_sync.create_uninitialized_tensor.i64.5",
    "tfrt_dht_sync.create_uninitialized_tensor.f32.5",
    "tfrt_dht_sync.create_uninitialized_tensor.bool.5",
    "tfrt_dht_sync.create_uninitialized_tensor.complex64.5",
    "tfrt_dht_sync.create_uninitialized_tensor.complex128.5",
    "tfrt_dht_sync.create_uninitialized_tensor.i8.0",
    "tfrt_dht_sync.create_uninitialized_tensor.i8.1",
    "tfrt_dht_sync.create_uninitialized_tensor.i8.2",
    "tfrt_dht_sync.create_uninitialized_tensor.i8.3",
    "tfrt_dht_sync.create_uninitialized_tensor.i8.4",
    "tfrt_dht_sync.create_uninitialized_tensor.i8.5",
    "tfrt_dht_sync.create_uninitialized_tensor.f64.0",
    "tfrt_dht_sync.create_uninitialized_tensor.f64.1",
    "tfrt_dht_sync.create_uninitialized_tensor.f64.2",
    "tfrt_dht_sync.create_uninitialized_tensor.f64.3",
    "tfrt_dht_sync.create_uninitialized_tensor.f64.4",
    "tfrt_dht_sync.create_uninitialized_tensor.f64.5",
    "tfrt_dht_sync.create_uninitialized_tensor.f16.0",
    "tfrt_dht_sync.create_uninitialized_tensor.f16.1",
    "tfrt_dht_sync.create_uninitialized_tensor.f16.2",
    "tfrt_dht_sync.create_uninitialized_tensor.f16.3",
    "tfrt_dht_sync.create_uninitialized_tensor.f16.4",
    "tfrt_dht_sync.create_uninitialized_tensor.f16.5",
    "tfrt_dht_sync.create_uninitialized_tensor.bf16.0",
    "tfrt_dht_sync.create_uninitialized_tensor.bf16.1",
    "tfrt_dht_sync.create_uninitialized_tensor.bf16.2",
    "tfrt_dht_sync.create_uninitialized_tensor.bf16.3",
    "tfrt_dht_sync.create_uninitialized_tensor.bf16.4",
    "tfrt_dht_sync.create_uninitialized_tensor.bf16.5",
];

const CREATE_DENSE: [&str; 14] = [
    "tfrt_dht_sync.create_dense_tensor.ui8",
    "tfrt_dht_sync.create_dense_tensor.ui16",
    "tfrt_dht_sync.create_dense_tensor.ui32",
    "tfrt_dht_sync.create_dense_tensor.ui64",
    "tfrt_dht_sync.create_dense_tensor.i32",
    "tfrt_dht_sync.create_dense_tensor.i64",
    "tfrt_dht_sync.create_dense_tensor.f32",
    "tfrt_dht_sync.create_dense_tensor.bool",
    "tfrt_dht_sync.create_dense_tensor.complex64",
    "tfrt_dht_sync.create_dense_tensor.complex128",
    "tfrt_dht_sync.create_dense_tensor.i8",
    "tfrt_dht_sync.create_dense_tensor.f64",
    "tfrt_dht_sync.create_dense_tensor.f16",
    "tfrt_dht_sync.create_dense_tensor.bf16",
];

const CREATE_FROM_SCALAR: [&str; 14] = [
    "tfrt_dht_sync.create_from_scalar.ui8",
    "tfrt_dht_sync.create_from_scalar.ui16",
    "tfrt_dht_sync.create_from_scalar.ui32",
    "tfrt_dht_sync.create_from_scalar.ui64",
    "tfrt_dht_sync.create_from_scalar.i32",
    "tfrt_dht_sync.create_from_scalar.i64",
    "tfrt_dht_sync.create_from_scalar.f32",
    "tfrt_dht_sync.create_from_scalar.bool",
    "tfrt_dht_sync.create_from_scalar.complex64",
    "tfrt_dht_sync.create_from_scalar.complex128",
    "tfrt_dht_sync.create_from_scalar.i8",
    "tfrt_dht_sync.create_from_scalar.f64",
    "tfrt_dht_sync.create_from_scalar.f16",
    "tfrt_dht_sync.create_from_scalar.bf16",
];
