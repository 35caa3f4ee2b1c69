//! Kernels that create, concatenate, cut and transpose tensors.

use smallvec::{SmallVec, smallvec};
use tfrt_host::{AsyncValue, Chain, DType, Error};
use tfrt_ops::axis_of;
use tfrt_ops::tf::{StridedAxis, strided_axes};
use tfrt_tensor::math::layout_copy::{
    LayoutCopy, Slice, concat_extents, concat_into, one_hot_into,
};
use tfrt_tensor::math::number::Number;
use tfrt_tensor::op::{Formats, Output, Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::resource::TensorList;
use tfrt_tensor::{
    DenseHostTensor, Dims, ScalarHostTensor, Tensor, TensorMetadata, TensorShape, to_bytes,
    with_number,
};

use super::of_call;
use crate::onnx::OpaqueTensors;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("concat", |call| {
        let parts: Vec<Tensor> = tensors(call)?;
        let axis = call.attrs.int("axis").unwrap_or(0);
        // Numbers become a list.
        match parts.first().map_or(0, |part| part.metadata().shape.rank()) {
            0 => {
                let lists = parts.iter().map(|part| reshaped(part, &[1]));
                joined(call, &lists.collect::<Result<Vec<_>, _>>()?, axis)
            }
            _ => joined(call, &parts, axis),
        }
    })
    .formats(Formats::STRING),
    TensorKernel::new("identity", |call| same(call)).formats(Formats::ALL),
    TensorKernel::new("onnx.Size", |call| {
        // What has more elements has no memory, but may be one number.
        let n = call.tensor(0)?.metadata().shape.n_elements();
        let n = n.and_then(|n| i64::try_from(n).ok());
        of_i64(call, &[], &[n.unwrap_or(i64::MAX)])
    })
    .formats(Formats::ALL),
    TensorKernel::new("shape", shape).formats(Formats::ALL),
    TensorKernel::new("tf.Const", |call| same(call)).formats(Formats::ALL),
    TensorKernel::new("tf.Fill", fill),
    TensorKernel::new("tf.OneHot", one_hot),
    TensorKernel::new("tf.OnesLike", |call| like(call, true)).formats(Formats::ALL),
    TensorKernel::new("tf.Pack", pack).formats(Formats::STRING),
    TensorKernel::new("tf.ReverseV2", reverse).formats(Formats::STRING),
    TensorKernel::new("tf.StridedSlice", strided_slice).formats(Formats::STRING),
    TensorKernel::new("tf.Unpack", unpack).formats(Formats::STRING),
    TensorKernel::new("tf.ZerosLike", |call| like(call, false)).formats(Formats::ALL),
];

fn tensors(call: &TensorCall<'_>) -> Result<Vec<Tensor>, Error> {
    (0..call.n_inputs())
        .map(|index| call.tensor(index).cloned())
        .collect()
}

pub(super) fn extents(tensor: &Tensor) -> Dims {
    tensor.metadata().shape.to_dims()
}

/// Reshapes a tensor.
pub(super) fn reshaped(tensor: &Tensor, extents: &[usize]) -> Result<Tensor, Error> {
    let shape = TensorShape::new(extents)?;
    match tensor {
        Tensor::String(strings) => Ok(strings.reshape(shape)?.into()),
        tensor => Ok(tensor.as_dense()?.reshape(shape)?.into()),
    }
}

/// Returns the index of an axis.
pub(super) fn axis_in(call: &TensorCall<'_>, axis: i64, rank: usize) -> Result<usize, Error> {
    axis_of(axis, rank).ok_or_else(|| {
        call.error(format_args!(
            "expected an axis of {rank} dimensions, found {axis}"
        ))
    })
}

/// Concatenates tensors of one type, which differ in the extent of one dimension alone.
fn joined(call: &TensorCall<'_>, parts: &[Tensor], axis: i64) -> Result<Outputs, Error> {
    let shapes: Vec<Dims> = parts.iter().map(extents).collect();
    let axis = axis_in(call, axis, shapes.first().map_or(0, |shape| shape.len()))?;
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let extents = call.named(concat_extents(&shapes, axis))?;
    let parts: Vec<&Tensor> = parts.iter().collect();
    let opaque = call.named(OpaqueTensors::of(call.execution, &parts))?;
    let out = opaque.output_in(call.execution, &extents)?;
    let parts: Vec<&DenseHostTensor> = opaque.tensors.iter().collect();
    let chain = concat_into(call.execution, &parts, axis, &out)?;
    Ok(smallvec![finished(&opaque, out, chain)?])
}

/// Returns a result that was made of opaque tensors.
fn finished(
    opaque: &OpaqueTensors,
    out: DenseHostTensor,
    chain: AsyncValue<Chain>,
) -> Result<Output, Error> {
    if let Some(Err(error)) = chain.get() {
        return Err(error.clone());
    }
    let value = opaque.finish(out, chain)?;
    if let Some(tensor) = value.get::<Tensor>() {
        return Ok(Output::Ready(tensor.clone()));
    }
    let later = value.downcast::<Tensor>();
    later
        .map(Output::Later)
        .map_err(|_| Error::internal("what was moved is a tensor"))
}

/// Moves the elements of a tensor, and reshapes the result.
pub(super) fn moved(
    call: &TensorCall<'_>,
    x: &Tensor,
    movement: &LayoutCopy,
    extents: &[usize],
) -> Result<Output, Error> {
    if let Tensor::Dense(dense) = x {
        let out = call.allocate(movement.metadata(dense.metadata())?)?;
        let chain = movement.run_into(call.execution, dense, &out)?;
        return made(out.reshape(TensorShape::new(extents)?)?, chain);
    }
    let opaque = call.named(OpaqueTensors::of(call.execution, &[x]))?;
    let out = opaque.output_in(call.execution, movement.extents())?;
    let chain = movement.run_into(call.execution, &opaque.tensors[0], &out)?;
    finished(&opaque, out.reshape(TensorShape::new(extents)?)?, chain)
}

/// Returns the integers of an operand, in their order.
pub(super) fn integers(call: &TensorCall<'_>, index: usize) -> Result<SmallVec<[i64; 8]>, Error> {
    let tensor = call.dense(index)?;
    let reading = tensor.read()?;
    match tensor.dtype() {
        DType::I32 => Ok(reading
            .elements::<i32>()?
            .iter()
            .map(|one| i64::from(*one))
            .collect()),
        DType::I64 => Ok(SmallVec::from_slice(reading.elements::<i64>()?)),
        dtype => Err(call.error(format_args!(
            "operand {index}: expected integers of 32 or 64 bits, found {dtype}"
        ))),
    }
}

/// Returns the operand.
fn same(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    Ok(smallvec![call.tensor(0)?.clone().into()])
}

fn of_i64(call: &TensorCall<'_>, extents: &[usize], list: &[i64]) -> Result<Outputs, Error> {
    let allocator = call.execution.host().allocator();
    Ok(smallvec![
        DenseHostTensor::from_slice(allocator, extents, list)?.into()
    ])
}

/// Returns the extents of a tensor, or some of them.
fn shape(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let found = extents(call.tensor(0)?);
    let rank = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let place = |name: &str, default: i64| {
        let place = call.attrs.int(name).unwrap_or(default);
        let from_start = if place < 0 {
            place.saturating_add(rank)
        } else {
            place
        };
        usize::try_from(from_start.clamp(0, rank)).unwrap_or(0)
    };
    let part = found
        .get(place("start", 0)..place("end", rank))
        .unwrap_or(&[]);
    // An extent of a shape fits 63 bits.
    let part: SmallVec<[i64; 6]> = part.iter().map(|extent| *extent as i64).collect();
    of_i64(call, &[part.len()], &part)
}

/// Makes a tensor of ones, or zeros.
fn like(call: &mut TensorCall<'_>, ones: bool) -> Result<Outputs, Error> {
    let metadata = call.tensor(0)?.metadata().clone();
    let dtype = metadata.dtype;
    if dtype == DType::Variant && !ones {
        let list = TensorList::of(call.tensor(0)?)?;
        return Ok(smallvec![zeros_like(call, list)?.into_tensor().into()]);
    }
    if dtype == DType::I1 {
        let made = ScalarHostTensor::from_element_bytes(metadata, &[u8::from(ones)]);
        return Ok(made.into_iter().map(Output::from).collect());
    }
    with_number!(dtype, T => {
        let element = if ones { <T as Number>::ONE } else { <T as tfrt_tensor::Element>::ZERO };
        let made = ScalarHostTensor::from_element_bytes(metadata, to_bytes(&[element]));
        Ok(made.into_iter().map(Output::from).collect())
    }, else Err(unsupported(call.name, dtype)))
}

/// Returns a list of zeros of the types and extents of another; what is not set stays so.
fn zeros_like(call: &TensorCall<'_>, list: &TensorList) -> Result<TensorList, Error> {
    let zeros = |tensor: &Tensor| match tensor {
        Tensor::Object(_) => Ok(zeros_like(call, TensorList::of(tensor)?)?.into_tensor()),
        tensor => {
            let allocator = call.execution.host().allocator();
            let metadata = tensor.metadata().clone();
            Ok(DenseHostTensor::zeroed(allocator, metadata)?.into())
        }
    };
    let elements = list.elements.iter();
    let elements: Result<_, Error> = elements
        .map(|tensor| tensor.as_ref().map(zeros).transpose())
        .collect();
    Ok(TensorList {
        elements: elements?,
        ..TensorList::new(list.dtype, list.shape.clone())
    })
}

fn fill(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let shape = TensorShape::from_i64(&integers(call, 0)?);
    let (shape, value) = (call.named(shape)?, call.dense(1)?);
    if value.n_elements() != 1 {
        let found = value.shape();
        return Err(call.error(format_args!(
            "expected a tensor of one element as value, found {found}"
        )));
    }
    let metadata = TensorMetadata::new(value.dtype(), shape);
    let made = ScalarHostTensor::from_element_bytes(metadata, value.read()?.bytes());
    let made = made.ok_or_else(|| unsupported(call.name, value.dtype()))?;
    Ok(smallvec![made.into()])
}

fn pack(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let parts = tensors(call)?;
    let mut extents = parts.first().map(extents).unwrap_or_default();
    let axis = axis_in(call, call.attrs.int("axis").unwrap_or(0), extents.len() + 1)?;
    extents.insert(axis, 1);
    let parts = parts
        .iter()
        .map(|part| call.named(reshaped(part, &extents)));
    let parts: Vec<Tensor> = parts.collect::<Result<_, _>>()?;
    // An axis is less than the largest integer.
    joined(call, &parts, axis as i64)
}

fn unpack(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let found = extents(x);
    let axis = axis_in(call, call.attrs.int("axis").unwrap_or(0), found.len())?;
    let mut part = found.clone();
    part.remove(axis);
    let mut slices: SmallVec<[Slice; 6]> = SmallVec::from_elem(Slice::ALL, found.len());
    let mut parts = Outputs::new();
    // An extent of a shape fits 63 bits.
    for index in 0..found[axis] as i64 {
        slices[axis] = Slice::new(index, index + 1, 1);
        let movement = call.named(LayoutCopy::slice(&found, &slices))?;
        parts.push(moved(call, x, &movement, &part)?);
    }
    Ok(parts)
}

fn one_hot(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let positions = call.dense(0)?.shape().to_dims();
    let (on, off) = (call.dense(2)?, call.dense(3)?);
    let axis = axis_in(
        call,
        call.attrs.int("axis").unwrap_or(-1),
        positions.len() + 1,
    )?;
    let depth = match integers(call, 1)?[..] {
        [depth] => usize::try_from(depth).ok(),
        _ => None,
    };
    let depth = depth.ok_or_else(|| call.error(format_args!("expected a depth of 0 or more")))?;
    let mut extents = positions.clone();
    extents.insert(axis, depth);
    // A negative position is none; counted from behind it would be one.
    let list = integers(call, 0)?.into_iter();
    let list: Vec<i64> = list
        .map(|place| if place < 0 { i64::MAX } else { place })
        .collect();
    let positions =
        DenseHostTensor::from_slice(call.execution.host().allocator(), &positions, &list)?;
    let out = call.allocate(TensorMetadata::new(on.dtype(), TensorShape::new(&extents)?))?;
    let chain = one_hot_into(call.execution, &positions, axis, [off, on], &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn reverse(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let found = extents(x);
    let mut slices: SmallVec<[Slice; 6]> = SmallVec::from_elem(Slice::ALL, found.len());
    for axis in integers(call, 1)? {
        slices[axis_in(call, axis, found.len())?] = Slice::new(i64::MAX, i64::MIN, -1);
    }
    let movement = call.named(LayoutCopy::slice(&found, &slices))?;
    Ok(smallvec![moved(call, x, &movement, &found)?])
}

fn strided_slice(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let found = extents(x);
    // An extent of a shape fits 63 bits.
    let signed: SmallVec<[i64; 6]> = found.iter().map(|extent| *extent as i64).collect();
    let [begin, end, steps] = [integers(call, 1)?, integers(call, 2)?, integers(call, 3)?];
    let axes = strided_axes(&signed, [&begin, &end, &steps], &call.attrs).map_err(of_call(call))?;
    let (mut slices, mut sizes) = (SmallVec::<[Slice; 6]>::new(), Dims::new());
    for axis in axes {
        match axis {
            StridedAxis::New => sizes.push(1),
            StridedAxis::Slice {
                start,
                step,
                n,
                shrinks,
            } => {
                // Where a step down ends before the first element, which as a number is counted from behind.
                let end = start.saturating_add(step.saturating_mul(n));
                slices.push(match n {
                    0 => Slice::new(0, 0, 1),
                    _ if end < 0 => Slice::new(start, i64::MIN, step),
                    _ => Slice::new(start, end, step),
                });
                if !shrinks {
                    sizes.push(usize::try_from(n).unwrap_or(0));
                }
            }
        }
    }
    let movement = call.named(LayoutCopy::slice(&found, &slices))?;
    Ok(smallvec![moved(call, x, &movement, &sizes)?])
}
