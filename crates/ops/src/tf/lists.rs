//! Library rows of TensorFlow's lists of tensors: values of type `variant`, which an operation makes anew.
//!
//! The operand `element_shape` is a list of extents, -1 for an unknown one, or the number -1 for an unknown rank.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const VARIANT: &[DType] = &[DType::Variant];
const INT: &[DType] = &[DType::I32];
const INDEX: &[DType] = &[DType::I32, DType::I64];
const LIST: ValueDef = ValueDef::set("input_handle", VARIANT);
const OUT: ValueDef = ValueDef::set("output_handle", VARIANT);
const TENSOR: ValueDef = ValueDef::any("tensor");
const SHAPE: ValueDef = ValueDef::set("element_shape", INDEX);
const INDICES: ValueDef = ValueDef::set("indices", INT);
const NUMBER: ValueDef = ValueDef::set("num_elements", INT);
const DTYPE: AttrDef = AttrDef::new("element_dtype", AttrKind::Type);
const SHAPE_TYPE: AttrDef = AttrDef::dtype("shape_type", DType::I32);

/// `list!("tf.TensorListSetItem", "A list.", [operands], [results], [attributes], infer)` makes a row.
macro_rules! list {
    ($name:literal, $summary:literal, [$($input:expr),*], [$($result:expr),*], [$($attr:expr),*], $infer:ident) => {
        OpDef::new($name, $summary)
            .inputs(&[$($input),*])
            .results(&[$($result),*])
            .attrs(&[$($attr),*])
            .infer(Infer::By($infer))
            .cost(Cost::PerElement(1))
    };
}

pub(crate) const OPS: &[OpDef] = &[
    list!(
        "tf.EmptyTensorList",
        "A list without tensors, of at most `max_num_elements` if that is not -1.",
        [SHAPE, ValueDef::set("max_num_elements", INT)],
        [OUT],
        [DTYPE.required(), SHAPE_TYPE],
        handle
    ),
    list!(
        "tf.TensorListConcat",
        "The tensors of a list one after the other along their first dimension, and the extent of each there.",
        [LIST],
        [
            TENSOR.data_dependent(),
            ValueDef::set("lengths", INDEX).data_dependent()
        ],
        [DTYPE, AttrDef::new("element_shape", AttrKind::Ints)],
        joined
    ),
    list!(
        "tf.TensorListConcatLists",
        "The tensors of one list, then those of another.",
        [
            ValueDef::set("input_a", VARIANT),
            ValueDef::set("input_b", VARIANT)
        ],
        [OUT],
        [DTYPE],
        handle
    ),
    list!(
        "tf.TensorListConcatV2",
        "The tensors of a list one after the other along their first dimension, and the extent of each there; those that are not set are zeros, of the extents that `leading_dims` says.",
        [LIST, SHAPE, ValueDef::set("leading_dims", INDEX)],
        [
            TENSOR.data_dependent(),
            ValueDef::set("lengths", INDEX).data_dependent()
        ],
        [DTYPE, SHAPE_TYPE],
        joined
    ),
    list!(
        "tf.TensorListElementShape",
        "What is known of the extents of a list's tensors, -1 for what is not.",
        [LIST],
        [ValueDef::set("element_shape", INDEX).data_dependent()],
        [SHAPE_TYPE],
        shape
    ),
    list!(
        "tf.TensorListFromTensor",
        "The parts of a tensor along its first dimension, as a list.",
        [TENSOR, SHAPE],
        [OUT],
        [DTYPE, SHAPE_TYPE],
        handle
    ),
    list!(
        "tf.TensorListGather",
        "The tensors of a list at some indices, one after the other along a new dimension.",
        [LIST, INDICES, SHAPE],
        [ValueDef::any("values").data_dependent()],
        [DTYPE],
        item
    ),
    list!(
        "tf.TensorListGetItem",
        "The tensor of a list at an index; zeros if it is not set.",
        [LIST, ValueDef::set("index", INT), SHAPE],
        [ValueDef::any("item").data_dependent()],
        [DTYPE],
        item
    ),
    list!(
        "tf.TensorListLength",
        "The number of tensors in a list.",
        [LIST],
        [ValueDef::set("length", INT)],
        [],
        length
    ),
    list!(
        "tf.TensorListPopBack",
        "A list without its last tensor, and that.",
        [LIST, SHAPE],
        [OUT, TENSOR.data_dependent()],
        [DTYPE],
        popped
    ),
    list!(
        "tf.TensorListPushBack",
        "A list with a tensor more at its end.",
        [LIST, TENSOR],
        [OUT],
        [DTYPE],
        handle
    ),
    list!(
        "tf.TensorListReserve",
        "A list of tensors that are not set.",
        [SHAPE, NUMBER],
        [OUT],
        [DTYPE.required(), SHAPE_TYPE],
        handle
    ),
    list!(
        "tf.TensorListResize",
        "A list of another length: without its last tensors, or with more that are not set.",
        [LIST, ValueDef::set("size", INT)],
        [OUT],
        [],
        handle
    ),
    list!(
        "tf.TensorListScatter",
        "The parts of a tensor along its first dimension, as a list in which each is at an index of its own.",
        [TENSOR, INDICES, SHAPE],
        [OUT],
        [DTYPE, SHAPE_TYPE],
        handle
    ),
    list!(
        "tf.TensorListScatterIntoExistingList",
        "A list whose tensors at some indices are the parts of a tensor along its first dimension.",
        [LIST, TENSOR, INDICES],
        [OUT],
        [DTYPE],
        handle
    ),
    list!(
        "tf.TensorListScatterV2",
        "The parts of a tensor along its first dimension, as a list of `num_elements`, or of as many as needed if that is -1, in which each is at an index of its own.",
        [TENSOR, INDICES, SHAPE, NUMBER],
        [OUT],
        [DTYPE, SHAPE_TYPE],
        handle
    ),
    list!(
        "tf.TensorListSetItem",
        "A list whose tensor at an index is another one.",
        [LIST, ValueDef::set("index", INT), ValueDef::any("item")],
        [OUT],
        [DTYPE, AttrDef::int("resize_if_index_out_of_bounds", 0)],
        handle
    ),
    list!(
        "tf.TensorListSplit",
        "Parts of a tensor along its first dimension, of the lengths that are given, as a list.",
        [TENSOR, SHAPE, ValueDef::set("lengths", INDEX)],
        [OUT],
        [DTYPE, SHAPE_TYPE],
        handle
    ),
    list!(
        "tf.TensorListStack",
        "The tensors of a list one after the other along a new dimension; those that are not set are zeros.",
        [LIST, SHAPE],
        [TENSOR.data_dependent()],
        [DTYPE, AttrDef::int("num_elements", -1)],
        item
    ),
];

fn handle(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::Variant), Some(Dims::new()));
    Ok(())
}

fn item(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("element_dtype");
    call.give(0, dtype, None);
    Ok(())
}

fn popped(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("element_dtype");
    call.give(0, Some(DType::Variant), Some(Dims::new()));
    call.give(1, dtype, None);
    Ok(())
}

fn joined(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("element_dtype");
    call.give(0, dtype, None);
    call.give(
        1,
        Some(DType::I64),
        Some([Dim::Unknown].into_iter().collect()),
    );
    Ok(())
}

fn length(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I32), Some(Dims::new()));
    Ok(())
}

fn shape(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("shape_type");
    call.give(0, dtype, None);
    Ok(())
}
