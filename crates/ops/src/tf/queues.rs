//! Library rows of TensorFlow's queues: tuples of tensors that some put in and others take out, as resources.

use tfrt_bef::DType;

use super::variables::RESOURCE;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::Dims;
use crate::infer::{Infer, InferCall, InferError};

const QUEUE: ValueDef = ValueDef::set("handle", RESOURCE);
const COMPONENTS: ValueDef = ValueDef::any("components").rest(1);
const N: ValueDef = ValueDef::set("n", &[DType::I32]);
const TYPES: AttrDef = AttrDef::new("component_types", AttrKind::Types).required();
const TIMEOUT: AttrDef = AttrDef::int("timeout_ms", -1);
const LOOKS: Traits = Traits::READS.with(Traits::WAITS);
const CHANGES: Traits = LOOKS.with(Traits::WRITES);

/// `queue!("tf.QueueSizeV2", "A number.", [operands], [results], [attributes], traits, infer)` makes a row.
macro_rules! queue {
    ($name:literal, $summary:literal, [$($input:expr),*], [$($result:expr),*], [$($attr:expr),*], $traits:expr, $infer:ident) => {
        OpDef::new($name, $summary)
            .inputs(&[$($input),*])
            .results(&[$($result),*])
            .attrs(&[$($attr),*])
            .traits($traits)
            .infer(Infer::By($infer))
            .cost(Cost::PerElement(0))
    };
}

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.FIFOQueueV2", "A handle of the queue of this name; without a name a new queue, which dies with its last handle. It holds tuples of tensors of these types, and of these shapes if they are stated; `capacity` of them at most, if that is 0 or more.")
        .inputs(&[])
        .results(&[QUEUE])
        .attrs(&[
            TYPES,
            AttrDef::new("shapes", AttrKind::Shapes),
            AttrDef::int("capacity", -1),
            AttrDef::text("container", ""),
            AttrDef::text("shared_name", ""),
        ])
        .impure()
        .infer(Infer::By(handle))
        .cost(Cost::PerElement(0)),
    queue!("tf.QueueCloseV2", "Closes a queue to those who put in, behind those who wait to; or, if `cancel_pending_enqueues` is 1, now: these are refused. What is in it can still be taken out.", [QUEUE], [], [AttrDef::int("cancel_pending_enqueues", 0)], CHANGES, nothing),
    queue!("tf.QueueDequeueManyV2", "Takes `n` tuples out of a queue, as they come, and stacks them.", [QUEUE, N], [COMPONENTS.data_dependent()], [TYPES.result_count(), TIMEOUT], CHANGES, taken),
    queue!("tf.QueueDequeueUpToV2", "Takes `n` tuples out of a queue, as they come, and stacks them; of a queue that is closed what there is left.", [QUEUE, N], [COMPONENTS.data_dependent()], [TYPES.result_count(), TIMEOUT], CHANGES, taken),
    queue!("tf.QueueDequeueV2", "Takes a tuple of tensors out of a queue, as soon as one is there.", [QUEUE], [COMPONENTS.data_dependent()], [TYPES.result_count(), TIMEOUT], CHANGES, taken),
    queue!("tf.QueueEnqueueManyV2", "Puts the slices of tensors along their first dimension into a queue, as there is room.", [QUEUE, COMPONENTS], [], [TIMEOUT], CHANGES, nothing),
    queue!("tf.QueueEnqueueV2", "Puts a tuple of tensors into a queue, as soon as there is room.", [QUEUE, COMPONENTS], [], [TIMEOUT], CHANGES, nothing),
    queue!("tf.QueueIsClosedV2", "Whether a queue is closed.", [QUEUE], [ValueDef::set("is_closed", &[DType::I1])], [], LOOKS, is_closed),
    queue!("tf.QueueSizeV2", "The number of tuples in a queue.", [QUEUE], [ValueDef::set("size", &[DType::I32])], [], LOOKS, size),
];

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn handle(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::Resource), Some(Dims::new()));
    Ok(())
}

fn is_closed(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I1), Some(Dims::new()));
    Ok(())
}

fn size(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I32), Some(Dims::new()));
    Ok(())
}

fn taken(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let types = call.attrs.dtypes("component_types").unwrap_or_default();
    for (index, dtype) in types.into_iter().enumerate().take(call.out.len()) {
        call.give(index, Some(dtype), None);
    }
    Ok(())
}
