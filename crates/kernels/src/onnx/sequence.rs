//! Sequences of tensors, and optional values.

use tfrt_host::memory::MemoryReservation;
use tfrt_host::{AnyAsyncValue, Error};
use tfrt_tensor::math::layout_copy::{LayoutCopy, stack_extents, stack_into};
use tfrt_tensor::{Dims, Optional, Sequence, Tensor};

use super::opaque::{OpaqueTensors, extents, reshaped};
use super::shape::to_i64;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.ConcatFromSequence", concat_from_sequence),
    ("onnx.Optional", optional),
    ("onnx.OptionalGetElement", optional_get_element),
    ("onnx.OptionalHasElement", optional_has_element),
    ("onnx.SequenceAt", sequence_at),
    ("onnx.SequenceConstruct", sequence_construct),
    ("onnx.SequenceEmpty", sequence_empty),
    ("onnx.SequenceErase", sequence_erase),
    ("onnx.SequenceInsert", sequence_insert),
    ("onnx.SequenceLength", sequence_length),
    ("onnx.SplitToSequence", split_to_sequence),
];

/// `SequenceConstruct(xs..)`
fn sequence_construct(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let tensors = (0..node.inputs.len()).map(|index| node.inputs.tensor(index).cloned());
    let tensors: Vec<Tensor> = tensors.collect::<Result<_, _>>()?;
    if let Some(pair) = tensors
        .windows(2)
        .find(|pair| !same_type(&pair[0], &pair[1]))
    {
        return Err(unlike(node, &pair[0], &pair[1]));
    }
    let aside = aside(node, tensors.len())?;
    Ok(Sequence::set_aside(tensors, aside).into())
}

/// `SequenceEmpty()`
fn sequence_empty(_: &NodeCall<'_>) -> Result<Outputs, Error> {
    Ok(Sequence::default().into())
}

/// `SequenceLength(sequence)`
fn sequence_length(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let len = to_i64(node.inputs.sequence(0)?.tensors().len());
    Ok(node.tensor_of(&[], &[len])?.into())
}

/// `SequenceAt(sequence, position)`: positions below 0 count from the end.
fn sequence_at(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let tensors = node.inputs.sequence(0)?.tensors();
    let position = place(node, node.inputs.integer(1)?, tensors.len(), tensors.len())?;
    Ok(tensors[position].clone().into())
}

/// `SequenceInsert(sequence, tensor, position)`: appends without a position.
fn sequence_insert(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let tensors = node.inputs.sequence(0)?.tensors();
    let aside = aside(node, tensors.len() + 1)?;
    let mut tensors = tensors.to_vec();
    let tensor = node.inputs.tensor(1)?;
    if let Some(first) = tensors.first().filter(|first| !same_type(first, tensor)) {
        return Err(unlike(node, first, tensor));
    }
    let position = match node.inputs.has(2) {
        true => place(
            node,
            node.inputs.integer(2)?,
            tensors.len(),
            tensors.len() + 1,
        )?,
        false => tensors.len(),
    };
    tensors.insert(position, tensor.clone());
    Ok(Sequence::set_aside(tensors, aside).into())
}

/// `SequenceErase(sequence, position)`: erases the last tensor without a position.
fn sequence_erase(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let tensors = node.inputs.sequence(0)?.tensors();
    let aside = aside(node, tensors.len() + 1)?;
    let mut tensors = tensors.to_vec();
    let position = if node.inputs.has(1) {
        node.inputs.integer(1)?
    } else {
        -1
    };
    let position = place(node, position, tensors.len(), tensors.len())?;
    tensors.remove(position);
    Ok(Sequence::set_aside(tensors, aside).into())
}

/// Returns a position of a sequence of `len` tensors, counted from the end if it is below 0, which must be less than
/// `end`.
fn place(node: &NodeCall<'_>, position: i64, len: usize, end: usize) -> Result<usize, Error> {
    let from_start = if position < 0 {
        position.saturating_add(to_i64(len))
    } else {
        position
    };
    let place = usize::try_from(from_start)
        .ok()
        .filter(|place| *place < end);
    place.ok_or_else(|| {
        node.error(format_args!(
            "position {position} is none of a sequence of {len} tensors"
        ))
    })
}

/// `ConcatFromSequence(sequence)`, attributes `axis`, `new_axis`.
fn concat_from_sequence(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let tensors: Vec<&Tensor> = node.inputs.sequence(0)?.tensors().iter().collect();
    let axis = node
        .attributes
        .integer("axis")?
        .ok_or_else(|| node.attributes.missing("axis"))?;
    if !node.attributes.flag("new_axis", false)? {
        return node.joined(&tensors, axis);
    }
    let axis = node.axis(
        axis,
        tensors.first().map_or(0, |first| extents(first).len()) + 1,
    )?;
    node.stacked(&tensors, axis)
}

impl NodeCall<'_> {
    /// Stacks tensors of one shape along a new dimension.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they differ in type or shape, or if there is none.
    fn stacked(&self, tensors: &[&Tensor], axis: usize) -> Result<Outputs, Error> {
        let shapes: Vec<Dims> = tensors.iter().map(|tensor| extents(tensor)).collect();
        let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
        let shape = stack_extents(&shapes, axis).map_err(|error| self.error(error.message()))?;
        let opaque = OpaqueTensors::new(self, tensors)?;
        let out = opaque.output(self, &shape)?;
        let parts: Vec<_> = opaque.tensors.iter().collect();
        let chain = stack_into(self.execution, &parts, axis, &out)?;
        opaque.outputs(out, chain)
    }
}

/// Reserves what tensors of a sequence take beside their elements, since that memory does not come from the host.
fn aside(node: &NodeCall<'_>, n_tensors: usize) -> Result<MemoryReservation, Error> {
    let mut aside = MemoryReservation::new(node.execution.host().allocator());
    if aside.add(n_tensors.saturating_mul(Sequence::BYTES_PER_TENSOR)) {
        return Ok(aside);
    }
    let message = format!("Cannot allocate sequence of {n_tensors} tensors");
    Err(Error::resource_exhausted(message))
}

/// `SplitToSequence(x, split)`, attributes `axis`, `keepdims`: parts of one extent, of several extents, or of extent
/// 1, whose dimension may be dropped.
fn split_to_sequence(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, found.len())?;
    let extent = found[axis];
    let (parts, keeps) = match node.inputs.optional_tensor(1)? {
        None => {
            node.expect_slices(&found, extent)?;
            (vec![1; extent], node.attributes.flag("keepdims", true)?)
        }
        Some(split) if extents(split).is_empty() => {
            let len = node.inputs.integer(1)?;
            let len = usize::try_from(len).ok().filter(|len| *len > 0);
            let len = len.ok_or_else(|| node.inputs.error(1, "is expected to be above 0"))?;
            node.expect_slices(&found, extent / len)?;
            let starts = (0..extent).step_by(len);
            (starts.map(|start| len.min(extent - start)).collect(), true)
        }
        Some(_) => {
            let parts = super::movement::sizes(node, &node.inputs.integers(1)?)?;
            (parts.to_vec(), true)
        }
    };
    let mut rest = found.clone();
    rest.remove(axis);
    let aside = aside(node, parts.len())?;
    let mut values = Vec::with_capacity(parts.len());
    for movement in LayoutCopy::split(&found, axis, &parts)? {
        values.push(node.moved(x, &movement)?);
    }
    node.sequence_of(values, aside, (!keeps).then_some(rest))
}

impl NodeCall<'_> {
    /// Makes a sequence of tensors, available or pending, reshaped if extents are given.
    fn sequence_of(
        &self,
        values: Vec<AnyAsyncValue>,
        aside: MemoryReservation,
        shape: Option<Dims>,
    ) -> Result<Outputs, Error> {
        let collect = move |values: &[AnyAsyncValue]| -> Result<Sequence, Error> {
            let tensor = |value: &AnyAsyncValue| match (value.get::<Tensor>(), &shape) {
                (Some(tensor), None) => Ok(tensor.clone()),
                (Some(tensor), Some(shape)) => reshaped(tensor, shape),
                (None, _) => Err(Error::internal("expected a tensor in a sequence")),
            };
            let tensors = values.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
            Ok(Sequence::set_aside(tensors, aside))
        };
        let mut outputs = Outputs::new();
        let all = tfrt_host::when_all(&values);
        match all.get() {
            Some(Ok(_)) => outputs.push(AnyAsyncValue::new(collect(&values)?)),
            _ => outputs.push(all.try_map(move |_| collect(&values)).into_any()),
        }
        Ok(outputs)
    }
}

fn same_type(a: &Tensor, b: &Tensor) -> bool {
    a.metadata().dtype == b.metadata().dtype
}

fn unlike(node: &NodeCall<'_>, a: &Tensor, b: &Tensor) -> Error {
    let (a, b) = (a.metadata().dtype, b.metadata().dtype);
    node.error(format_args!(
        "a sequence has tensors of one type, found {a} and {b}"
    ))
}

/// `Optional(value)`: an empty optional without an operand.
fn optional(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let Some(value) = node.inputs.any(0) else {
        return Ok(Optional::Nothing.into());
    };
    if let Some(tensor) = value.get::<Tensor>() {
        return Ok(Optional::Tensor(tensor.clone()).into());
    }
    Ok(Optional::Sequence(node.inputs.sequence(0)?.clone()).into())
}

/// `OptionalHasElement(value)`: also of a value that is no optional.
fn optional_has_element(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let has = node
        .inputs
        .any(0)
        .is_some_and(|value| !matches!(value.get::<Optional>(), Some(Optional::Nothing)));
    Ok(node.truth(has)?.into())
}

/// `OptionalGetElement(value)`: also of a value that is no optional.
fn optional_get_element(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let Some(value) = node.inputs.any(0) else {
        return Err(node.error("operand 0 is left out"));
    };
    let mut outputs = Outputs::new();
    match value.get::<Optional>() {
        Some(Optional::Tensor(tensor)) => return Ok(tensor.clone().into()),
        Some(Optional::Sequence(sequence)) => return Ok(sequence.clone().into()),
        Some(Optional::Nothing) => return Err(node.error("the optional value has nothing in it")),
        None => outputs.push(value.clone()),
    }
    Ok(outputs)
}
