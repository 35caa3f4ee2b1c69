//! Library rows of TensorFlow's arrays of tensors: resources to which loops write a tensor in each turn.
//!
//! The operand and result `flow` is a number without meaning, by which programs order what they do with an array.

use tfrt_bef::DType;

use super::variables::RESOURCE;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const INT: &[DType] = &[DType::I32];
const INDEX: &[DType] = &[DType::I32, DType::I64];
const HANDLE: ValueDef = ValueDef::set("handle", RESOURCE);
const FLOW_IN: ValueDef = ValueDef::set("flow_in", &[DType::F32]);
const FLOW_OUT: ValueDef = ValueDef::set("flow_out", &[DType::F32]);
const VALUE: ValueDef = ValueDef::any("value");
const DTYPE: AttrDef = AttrDef::new("dtype", AttrKind::Type);
const BOTH: Traits = Traits::READS.with(Traits::WRITES);

/// `array!("tf.TensorArrayReadV3", "A tensor.", [operands], [results], [attributes], infer)` makes a row.
macro_rules! array {
    ($name:literal, $summary:literal, [$($input:expr),*], [$($result:expr),*], [$($attr:expr),*], $infer:ident) => {
        OpDef::new($name, $summary)
            .inputs(&[$($input),*])
            .results(&[$($result),*])
            .attrs(&[$($attr),*])
            .traits(BOTH)
            .infer(Infer::By($infer))
            .cost(Cost::PerElement(1))
    };
}

pub(crate) const OPS: &[OpDef] = &[
    array!(
        "tf.TensorArrayCloseV3",
        "Lets go of the tensors of an array.",
        [HANDLE],
        [],
        [],
        nothing
    ),
    array!(
        "tf.TensorArrayConcatV3",
        "The tensors of an array one after the other along their first dimension, and the extent of each there.",
        [HANDLE, FLOW_IN],
        [
            VALUE.data_dependent(),
            ValueDef::set("lengths", INDEX).data_dependent()
        ],
        [DTYPE, AttrDef::new("element_shape_except0", AttrKind::Ints)],
        joined
    ),
    array!(
        "tf.TensorArrayGatherV3",
        "The tensors of an array at some indices, one after the other along a new dimension.",
        [HANDLE, ValueDef::set("indices", INT), FLOW_IN],
        [VALUE.data_dependent()],
        [DTYPE, AttrDef::new("element_shape", AttrKind::Ints)],
        read
    ),
    array!(
        "tf.TensorArrayGradV3",
        "The array of the gradients of another one for a source, in which tensors that are written at one index are added.",
        [HANDLE, FLOW_IN],
        [ValueDef::set("grad_handle", RESOURCE), FLOW_OUT],
        [AttrDef::new("source", AttrKind::Text).required()],
        made
    ),
    array!(
        "tf.TensorArrayReadV3",
        "The tensor of an array at an index, which is let go of if the array clears what was read.",
        [HANDLE, ValueDef::set("index", INT), FLOW_IN],
        [VALUE.data_dependent()],
        [DTYPE],
        read
    ),
    array!(
        "tf.TensorArrayScatterV3",
        "Writes the parts of a tensor along its first dimension at some indices of an array.",
        [HANDLE, ValueDef::set("indices", INT), VALUE, FLOW_IN],
        [FLOW_OUT],
        [],
        flow
    ),
    array!(
        "tf.TensorArraySizeV3",
        "The number of tensors of an array.",
        [HANDLE, FLOW_IN],
        [ValueDef::set("size", INT)],
        [],
        size
    ),
    array!(
        "tf.TensorArraySplitV3",
        "Writes parts of a tensor along its first dimension, of the lengths that are given, to an array.",
        [HANDLE, VALUE, ValueDef::set("lengths", INDEX), FLOW_IN],
        [FLOW_OUT],
        [],
        flow
    ),
    OpDef::new(
        "tf.TensorArrayV3",
        "A new array of `size` tensors that are not written.",
    )
    .inputs(&[ValueDef::set("size", INT)])
    .results(&[HANDLE, ValueDef::set("flow", &[DType::F32])])
    .attrs(&[
        DTYPE.required(),
        AttrDef::new("element_shape", AttrKind::Ints),
        AttrDef::int("dynamic_size", 0),
        AttrDef::int("clear_after_read", 1),
        AttrDef::int("identical_element_shapes", 0),
        AttrDef::text("tensor_array_name", ""),
    ])
    .impure()
    .infer(Infer::By(made))
    .cost(Cost::PerElement(0)),
    array!(
        "tf.TensorArrayWriteV3",
        "Writes a tensor at an index of an array.",
        [HANDLE, ValueDef::set("index", INT), VALUE, FLOW_IN],
        [FLOW_OUT],
        [],
        flow
    ),
];

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn made(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::Resource), Some(Dims::new()));
    call.give(1, Some(DType::F32), Some(Dims::new()));
    Ok(())
}

fn flow(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::F32), Some(Dims::new()));
    Ok(())
}

fn size(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I32), Some(Dims::new()));
    Ok(())
}

fn read(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("dtype");
    call.give(0, dtype, None);
    Ok(())
}

fn joined(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("dtype");
    call.give(0, dtype, None);
    call.give(
        1,
        Some(DType::I64),
        Some([Dim::Unknown].into_iter().collect()),
    );
    Ok(())
}
