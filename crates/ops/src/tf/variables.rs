//! Library rows of TensorFlow's resource variables: handles, reads, assignments, and changes of rows.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::Dim;
use crate::infer::{Infer, InferCall, InferError};

/// The type of handles of resources.
pub(super) const RESOURCE: &[DType] = &[DType::Resource];
const INDEX: &[DType] = &[DType::I32, DType::I64];
const VARIABLE: ValueDef = ValueDef::set("resource", RESOURCE);
const REF: ValueDef = ValueDef::set("ref", RESOURCE);
const INDICES: ValueDef = ValueDef::set("indices", INDEX);
const UPDATES: ValueDef = ValueDef::any("updates");
const DTYPE: AttrDef = AttrDef::new("dtype", AttrKind::Type);
const LOCKING: AttrDef = AttrDef::int("use_locking", 1);
const POLICY: AttrDef =
    AttrDef::text("bad_indices_policy", "").one_of(&["", "DEFAULT", "ERROR", "IGNORE"]);
const CHANGES: Traits = Traits::READS.with(Traits::WRITES);

/// `change!("tf.AssignAddVariableOp", "Adds.", [operands], [attributes])` makes a row without results that changes a
/// variable.
macro_rules! change {
    ($name:literal, $summary:literal, $inputs:expr, $attrs:expr) => {
        OpDef::new($name, $summary)
            .inputs($inputs)
            .results(&[])
            .attrs($attrs)
            .traits(CHANGES)
            .infer(Infer::By(nothing))
    };
}

const VALUE: ValueDef = ValueDef::any("value");
const SCATTER: &[ValueDef] = &[VARIABLE, INDICES, UPDATES];
const SCATTER_ND: &[ValueDef] = &[REF, INDICES, UPDATES];

pub(crate) const OPS: &[OpDef] = &[
    change!("tf.AssignAddVariableOp", "Adds a value of the same type and extents to a variable.", &[VARIABLE, VALUE], &[DTYPE]),
    change!("tf.AssignSubVariableOp", "Subtracts a value of the same type and extents from a variable.", &[VARIABLE, VALUE], &[DTYPE]),
    change!("tf.AssignVariableOp", "Replaces the value of a variable; of other extents, too, unless `validate_shape` is 1. The type stays.", &[VARIABLE, VALUE], &[DTYPE, AttrDef::int("validate_shape", 0)])
        .cost(Cost::PerElement(0)),
    change!("tf.DestroyResourceOp", "Lets go of what a resource holds, for all its handles. That there is nothing is an error if `ignore_lookup_error` is 0.", &[VARIABLE], &[AttrDef::int("ignore_lookup_error", 1)])
        .cost(Cost::PerElement(0)),
    change!("tf.DisableCopyOnRead", "Lets reads of a variable share its memory again, after rows of it were changed.", &[VARIABLE], &[])
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.ReadVariableOp", "The value of a variable; later changes don't change it.")
        .inputs(&[VARIABLE])
        .results(&[VALUE.data_dependent()])
        .attrs(&[DTYPE])
        .traits(Traits::READS)
        .infer(Infer::By(read))
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.ResourceCountUpTo", "The value of an integer variable, which is then one more; at `limit` an error.")
        .inputs(&[VARIABLE])
        .results(&[ValueDef::set("output", INDEX)])
        .attrs(&[AttrDef::new("limit", AttrKind::Int).required(), AttrDef::new("T", AttrKind::Type)])
        .traits(CHANGES)
        .infer(Infer::By(count)),
    OpDef::new("tf.ResourceGather", "The rows of a variable at some indices; with `batch_dims` those of each batch.")
        .inputs(&[VARIABLE, INDICES])
        .results(&[ValueDef::any("output").data_dependent()])
        .attrs(&[AttrDef::int("batch_dims", 0), DTYPE])
        .traits(Traits::READS)
        .infer(Infer::By(read)),
    OpDef::new("tf.ResourceGatherNd", "The slices of a variable at some places, each a list of indices.")
        .inputs(&[VARIABLE, INDICES])
        .results(&[ValueDef::any("output").data_dependent()])
        .attrs(&[DTYPE])
        .traits(Traits::READS)
        .infer(Infer::By(read)),
    change!("tf.ResourceScatterAdd", "Adds updates to the rows of a variable at some indices, one after the other.", SCATTER, &[DTYPE]),
    change!("tf.ResourceScatterDiv", "Divides the rows of a variable at some indices by updates, one after the other.", SCATTER, &[DTYPE]),
    change!("tf.ResourceScatterMax", "Makes the rows of a variable at some indices the greater of themselves and updates.", SCATTER, &[DTYPE]),
    change!("tf.ResourceScatterMin", "Makes the rows of a variable at some indices the smaller of themselves and updates.", SCATTER, &[DTYPE]),
    change!("tf.ResourceScatterMul", "Multiplies the rows of a variable at some indices by updates, one after the other.", SCATTER, &[DTYPE]),
    change!("tf.ResourceScatterNdAdd", "Adds updates to the slices of a variable at some places, one after the other.", SCATTER_ND, &[LOCKING, POLICY]),
    change!("tf.ResourceScatterNdMax", "Makes the slices of a variable at some places the greater of themselves and updates.", SCATTER_ND, &[LOCKING, POLICY]),
    change!("tf.ResourceScatterNdMin", "Makes the slices of a variable at some places the smaller of themselves and updates.", SCATTER_ND, &[LOCKING, POLICY]),
    change!("tf.ResourceScatterNdSub", "Subtracts updates from the slices of a variable at some places, one after the other.", SCATTER_ND, &[LOCKING, POLICY]),
    change!("tf.ResourceScatterNdUpdate", "Replaces the slices of a variable at some places, one after the other.", SCATTER_ND, &[LOCKING, POLICY]),
    change!("tf.ResourceScatterSub", "Subtracts updates from the rows of a variable at some indices, one after the other.", SCATTER, &[DTYPE]),
    change!("tf.ResourceScatterUpdate", "Replaces the rows of a variable at some indices, one after the other.", SCATTER, &[DTYPE]),
    change!("tf.ResourceStridedSliceAssign", "Replaces every so many elements of a variable from `begin` to `end` along each dimension, with the masks of `tf.StridedSlice`, by those of a value, which is broadcast.", &[REF, ValueDef::set("begin", INDEX), ValueDef::set("end", INDEX), ValueDef::set("strides", INDEX), VALUE], &[
        AttrDef::int("begin_mask", 0),
        AttrDef::int("end_mask", 0),
        AttrDef::int("ellipsis_mask", 0),
        AttrDef::int("new_axis_mask", 0),
        AttrDef::int("shrink_axis_mask", 0),
    ]),
    OpDef::new("tf.VarHandleOp", "A handle of the variable of this name in a container, which need not hold a value; without a name a new variable, which dies with its last handle.")
        .inputs(&[])
        .results(&[VARIABLE])
        .attrs(&[
            AttrDef::text("container", ""),
            AttrDef::text("shared_name", ""),
            AttrDef::text("debug_name", ""),
            DTYPE,
            AttrDef::new("shape", AttrKind::Ints),
            AttrDef::new("allowed_devices", AttrKind::Texts),
        ])
        .impure()
        .infer(Infer::By(handle))
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.VarIsInitializedOp", "Whether a variable holds a value.")
        .inputs(&[VARIABLE])
        .results(&[ValueDef::set("is_initialized", &[DType::I1])])
        .traits(Traits::READS)
        .infer(Infer::By(is_initialized))
        .cost(Cost::PerElement(0)),
    OpDef::new("tf.VariableShape", "The extents of a variable.")
        .inputs(&[ValueDef::set("input", RESOURCE)])
        .results(&[ValueDef::set("output", INDEX).data_dependent()])
        .attrs(&[AttrDef::dtype("out_type", DType::I32)])
        .traits(Traits::READS)
        .infer(Infer::By(shape))
        .cost(Cost::PerElement(0)),
];

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn handle(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::Resource), Some([].into_iter().collect()));
    Ok(())
}

fn read(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("dtype");
    call.give(0, dtype, None);
    Ok(())
}

fn count(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("T");
    call.give(0, dtype, Some([].into_iter().collect()));
    Ok(())
}

fn is_initialized(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I1), Some([].into_iter().collect()));
    Ok(())
}

fn shape(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.attrs.dtype("out_type");
    if !matches!(dtype, Some(DType::I32 | DType::I64)) {
        return Err(call.error("attribute 'out_type': expected i32 or i64"));
    }
    call.give(0, dtype, Some([Dim::Unknown].into_iter().collect()));
    Ok(())
}
