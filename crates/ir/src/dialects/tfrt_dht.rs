//! `tfrt_dht`: dense tensors in memory of the host, and the buffers behind them.
//!
//! Names end in the type of the elements and, where that matters, in the number of dimensions. Those
//! that the original has operations for have a form of their own; the others are known as kernels.

pub(super) mod buffers;
pub(super) mod comparison;
pub(super) mod creation;
pub(super) mod filling;

use crate::dialect::{
    OpDef,
    ValueKind::{self, BF16, F16, F32, F64, I1, I8, I32, I64, UI8, UI16, UI32, UI64},
};

pub(super) const TENSOR: ValueKind = ValueKind::Dialect("!t.tensor");
pub(super) const BUFFER: ValueKind = ValueKind::Dialect("!ht.host_buffer");
pub(super) const SHAPE: ValueKind = ValueKind::Dialect("!ts.shape");

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(creation::definitions());
    all.extend(filling::definitions());
    all.extend(comparison::definitions());
    all.extend(buffers::definitions());
    all
}

/// A type of elements, as names of operations have it.
#[derive(Clone, Copy)]
pub(super) struct Element {
    /// The spelling in names of operations.
    pub(super) name: &'static str,
    /// The kind of attribute for one element, or for each of the two parts of one.
    pub(super) attribute: ValueKind,
    /// Whether an element is two parts, the real and the imaginary one.
    pub(super) is_complex: bool,
    /// The value 1 as an attribute.
    pub(super) one: &'static str,
    /// The printed form of a tensor of one 1.
    pub(super) printed_one: &'static str,
}

const ELEMENTS: [Element; 14] = [
    real(
        "ui8",
        UI8,
        "1 : ui8",
        "DenseHostTensor dtype = u8, shape = [1], values = [1]",
    ),
    real(
        "ui16",
        UI16,
        "1 : ui16",
        "DenseHostTensor dtype = u16, shape = [1], values = [1]",
    ),
    real(
        "ui32",
        UI32,
        "1 : ui32",
        "DenseHostTensor dtype = u32, shape = [1], values = [1]",
    ),
    real(
        "ui64",
        UI64,
        "1 : ui64",
        "DenseHostTensor dtype = u64, shape = [1], values = [1]",
    ),
    real(
        "i8",
        I8,
        "1 : i8",
        "DenseHostTensor dtype = i8, shape = [1], values = [1]",
    ),
    real(
        "i32",
        I32,
        "1 : i32",
        "DenseHostTensor dtype = i32, shape = [1], values = [1]",
    ),
    real(
        "i64",
        I64,
        "1 : i64",
        "DenseHostTensor dtype = i64, shape = [1], values = [1]",
    ),
    real(
        "f16",
        F16,
        "1.0 : f16",
        "DenseHostTensor dtype = f16, shape = [1], values = [fp16(15360)]",
    ),
    real(
        "bf16",
        BF16,
        "1.0 : bf16",
        "DenseHostTensor dtype = bf16, shape = [1], values = [bf16(16256)]",
    ),
    real(
        "f32",
        F32,
        "1.0 : f32",
        "DenseHostTensor dtype = f32, shape = [1], values = [1.000000e+00]",
    ),
    real(
        "f64",
        F64,
        "1.0 : f64",
        "DenseHostTensor dtype = f64, shape = [1], values = [1.000000e+00]",
    ),
    real(
        "bool",
        I1,
        "true",
        "DenseHostTensor dtype = i1, shape = [1], values = [1]",
    ),
    Element {
        name: "complex64",
        attribute: F32,
        is_complex: true,
        one: "[1.0 : f32, 0.0 : f32]",
        printed_one: "DenseHostTensor dtype = complex64, shape = [1], values = \
                      [(1.000000e+00,0.000000e+00)]",
    },
    Element {
        name: "complex128",
        attribute: F64,
        is_complex: true,
        one: "[1.0 : f64, 0.0 : f64]",
        printed_one: "DenseHostTensor dtype = complex128, shape = [1], values = \
                      [(1.000000e+00,0.000000e+00)]",
    },
];

const fn real(
    name: &'static str,
    attribute: ValueKind,
    one: &'static str,
    printed_one: &'static str,
) -> Element {
    Element {
        name,
        attribute,
        is_complex: false,
        one,
        printed_one,
    }
}

impl Element {
    /// Returns the type that the name of an operation says.
    pub(super) fn of(operation: &str) -> Element {
        let mut parts = operation.split('.');
        let named = parts.find_map(|part| ELEMENTS.iter().find(|element| element.name == part));
        *named.expect("names in the tables have a type")
    }

    /// Returns attributes for a list of one 1.
    pub(super) fn list(self) -> String {
        match self.is_complex {
            true => self.one.to_owned(),
            false => format!("[{}]", self.one),
        }
    }
}

/// Returns the body of an example: a tensor `%t` of one element, and what is done with it and `%chain`.
pub(super) fn with_tensor(name: &str, what: &str) -> String {
    let ty = Element::of(name).name;
    format!(
        "%chain = tfrt.new.chain
%t = tfrt_dht.create_uninitialized_tensor.{ty}.1 [1 : i64]
{what}"
    )
}

/// Adds the effect and errors of operations that write a tensor.
pub(super) fn writes_tensor(definition: OpDef) -> OpDef {
    used_by_others(wrong_type(definition)).writes(0)
}

/// Adds the error of operations that take a tensor of one type.
pub(super) fn wrong_type(definition: OpDef) -> OpDef {
    definition.fails(
        "InvalidArgument",
        "expected a tensor of TYPE, found one of TYPE SHAPE",
        "the elements are of another type; that it is no dense tensor at all is told likewise",
    )
}

/// Adds the error of operations that meet others on a buffer.
pub(super) fn used_by_others(definition: OpDef) -> OpDef {
    definition.fails(
        "FailedPrecondition",
        "the buffer is being WRITTEN by another kernel at the same time",
        "no chain orders the two",
    )
}

/// Adds the errors of operations that take memory for a tensor.
pub(super) fn takes_memory(definition: OpDef) -> OpDef {
    definition
        .fails(
            "ResourceExhausted",
            "Cannot allocate tensor of TYPE SHAPE",
            "the host has no memory left for it",
        )
        .fails(
            "ResourceExhausted",
            "a tensor of TYPE SHAPE does not fit any memory",
            "no machine has so much",
        )
        .fails(
            "InvalidArgument",
            "the extent of dimension N is EXTENT: expected 0 or more",
            "an extent is below 0",
        )
}
