//! Kernels of lists of tensors. A list that was given for good, and that nobody else holds, is changed where it is.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_host::{AnyAsyncValue, DType, Error, HostAllocator};
use tfrt_tensor::math::number::Number;
use tfrt_tensor::op::{Formats, OpCall, Output, Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::resource::TensorList;
use tfrt_tensor::resource::list::{fits, merged};
use tfrt_tensor::{
    DenseHostTensor, PartialTensorShape, StringHostTensor, Tensor, TensorMetadata, TensorShape,
    with_number,
};

use super::tensors::integers;

/// Lists hold tensors of numbers and of strings, and lists.
const HELD: Formats = Formats {
    string: true,
    ..Formats::OBJECT
};

pub(super) const fn kernel(
    op: &'static str,
    run: fn(&mut TensorCall<'_>) -> Result<Outputs, Error>,
) -> TensorKernel {
    TensorKernel::new(op, run).formats(HELD)
}

pub(super) const KERNELS: &[TensorKernel] = &[
    // Of numbers it is the kernel of graphs.
    kernel("onnx.Sum", |call| match call.tensor(0)? {
        Tensor::Object(_) => add_lists(call),
        _ => of_graphs(call),
    }),
    kernel("tf.EmptyTensorList", |call| {
        let max = number(call, 1)?;
        let mut list =
            TensorList::new(stated_type(call, "element_dtype")?, element_shape(call, 0)?);
        list.max_len = usize::try_from(max).ok();
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListConcat", |call| {
        let stated = match call.attrs.ints("element_shape") {
            Some(list) => PartialTensorShape::from_i64(&list)?,
            None => PartialTensorShape::UNRANKED,
        };
        concat(call, &stated, &[])
    }),
    kernel("tf.TensorListConcatLists", |call| {
        let mut list = taken(call, 0)?;
        let other = TensorList::of(call.tensor(1)?)?;
        list.expect_type(other.dtype)?;
        list.shape = merged(&list.shape, &other.shape)?;
        list.elements.extend(other.elements.iter().cloned());
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListConcatV2", |call| {
        let (stated, leading) = (element_shape(call, 1)?, integers(call, 2)?);
        concat(call, &stated, &leading)
    }),
    kernel("tf.TensorListElementShape", |call| {
        let shape = &TensorList::of(call.tensor(0)?)?.shape;
        let list: Option<Vec<i64>> = shape.extents().map(|extents| {
            let of = |extent: Option<u64>| extent.and_then(|extent| i64::try_from(extent).ok());
            extents.map(|extent| of(extent).unwrap_or(-1)).collect()
        });
        let (extents, list) = match list {
            Some(list) => (vec![list.len()], list),
            None => (Vec::new(), vec![-1]),
        };
        let allocator = call.execution.host().allocator();
        let made = match call.attrs.dtype("shape_type") {
            Some(DType::I64) => DenseHostTensor::from_slice(allocator, &extents, &list)?,
            _ => {
                let list: Result<Vec<i32>, _> = list.into_iter().map(i32::try_from).collect();
                let list = list
                    .map_err(|_| call.error(format_args!("an extent exceeds the largest i32")))?;
                DenseHostTensor::from_slice(allocator, &extents, &list)?
            }
        };
        Ok(smallvec![made.into()])
    }),
    kernel("tf.TensorListFromTensor", |call| {
        let list = parts(call, 0, element_shape(call, 1)?, None)?;
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListGather", |call| {
        let (list, indices) = (TensorList::of(call.tensor(0)?)?, integers(call, 1)?);
        expect_stated(call, list)?;
        let mut chosen = TensorList::new(list.dtype, list.shape.clone());
        for index in indices {
            let index = list.index(index, "gather")?;
            chosen.elements.push(list.elements[index].clone());
        }
        stack(call, &chosen, &element_shape(call, 2)?)
    }),
    kernel("tf.TensorListGetItem", |call| {
        let list = TensorList::of(call.tensor(0)?)?;
        expect_stated(call, list)?;
        let index = list.index(number(call, 1)?, "access")?;
        let stated = element_shape(call, 2)?;
        Ok(smallvec![element(call, list, index, &stated)?.into()])
    }),
    kernel("tf.TensorListLength", |call| {
        let n = TensorList::of(call.tensor(0)?)?.elements.len();
        let n =
            i32::try_from(n).map_err(|_| call.error(format_args!("{n} tensors are too many")))?;
        let allocator = call.execution.host().allocator();
        Ok(smallvec![DenseHostTensor::scalar(allocator, n)?.into()])
    }),
    kernel("tf.TensorListPopBack", |call| {
        let stated = element_shape(call, 1)?;
        let list = TensorList::of(call.tensor(0)?)?;
        expect_stated(call, list)?;
        let Some(last) = list.elements.len().checked_sub(1) else {
            return Err(Error::invalid_argument("Trying to pop from an empty list."));
        };
        let tensor = element(call, list, last, &stated)?;
        let mut list = taken(call, 0)?;
        list.elements.pop();
        Ok(smallvec![list.into_tensor().into(), tensor.into()])
    }),
    kernel("tf.TensorListPushBack", |call| {
        let tensor = call.tensor(1)?.clone();
        let list = TensorList::of(call.tensor(0)?)?;
        expect_stated(call, list)?;
        list.expect_fits(&tensor, "append")?;
        let mut list = taken(call, 0)?;
        list.push(Some(tensor))?;
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListReserve", |call| {
        let n = length(call, number(call, 1)?)?;
        let mut list =
            TensorList::new(stated_type(call, "element_dtype")?, element_shape(call, 0)?);
        list.elements = vec![None; n];
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListResize", |call| {
        let n = length(call, number(call, 1)?)?;
        let mut list = taken(call, 0)?;
        list.elements.resize(n, None);
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListScatter", |call| scatter(call, None)),
    kernel("tf.TensorListScatterIntoExistingList", |call| {
        let (of, indices) = (TensorList::of(call.tensor(0)?)?, integers(call, 2)?);
        expect_stated(call, of)?;
        let items = parts(call, 1, of.shape.clone(), None)?;
        of.expect_type(items.dtype)?;
        expect_as_many(call, items.elements.len(), indices.len())?;
        let least = *indices.iter().max().unwrap_or(&-1);
        let n = usize::try_from(least + 1).unwrap_or(0);
        if let Some(wrong) = indices.iter().find(|index| **index < 0) {
            return Err(call.error(format_args!("expected indices of 0 or more, found {wrong}")));
        }
        length(call, least + 1)?;
        let mut list = taken(call, 0)?;
        if list.elements.len() < n {
            list.elements.resize(n, None);
        }
        for (index, item) in indices.iter().zip(items.elements) {
            let index = list.index(*index, "modify")?;
            list.elements[index] = item;
        }
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListScatterV2", |call| {
        let n = number(call, 3)?;
        scatter(call, (n >= 0).then_some(n))
    }),
    kernel("tf.TensorListSetItem", |call| {
        let (index, tensor) = (number(call, 1)?, call.tensor(2)?.clone());
        let list = TensorList::of(call.tensor(0)?)?;
        expect_stated(call, list)?;
        list.expect_fits(&tensor, "set")?;
        let resizes = call.attrs.flag("resize_if_index_out_of_bounds") && index >= 0;
        if resizes {
            length(call, index)?;
        } else {
            list.index(index, "modify")?;
        }
        let mut list = taken(call, 0)?;
        let n = usize::try_from(index).unwrap_or(0) + 1;
        if list.elements.len() < n {
            list.elements.resize(n, None);
        }
        let index = list.index(index, "modify")?;
        list.elements[index] = Some(tensor);
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListSplit", |call| {
        let lengths = integers(call, 2)?;
        let list = parts(call, 0, element_shape(call, 1)?, Some(&lengths))?;
        Ok(smallvec![list.into_tensor().into()])
    }),
    kernel("tf.TensorListStack", |call| {
        let list = TensorList::of(call.tensor(0)?)?;
        expect_stated(call, list)?;
        let (n, wanted) = (
            list.elements.len(),
            call.attrs.int("num_elements").unwrap_or(-1),
        );
        if wanted >= 0 && usize::try_from(wanted) != Ok(n) {
            return Err(Error::invalid_argument(format!(
                "Operation expected a list with {wanted} elements but got a list with {n} elements."
            )));
        }
        stack(call, list, &element_shape(call, 1)?)
    }),
];

/// Runs the kernel that graphs have for the operation.
fn of_graphs(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let kernel = crate::onnx::kernel_of(call.op);
    let kernel = kernel.ok_or_else(|| Error::internal("graphs have a kernel of the row"))?;
    let mut inputs = Vec::with_capacity(call.n_inputs());
    for index in 0..call.n_inputs() {
        inputs.push(AnyAsyncValue::new::<Tensor>(call.tensor(index)?.clone()));
    }
    let results = (kernel.run)(&OpCall {
        op: call.op,
        attrs: call.attrs,
        inputs: &inputs,
        n_results: call.n_results,
        prepared: None,
        device: None,
        execution: call.execution,
    })?;
    let output = |value: AnyAsyncValue| match value.get::<Tensor>() {
        Some(tensor) => Ok(Output::Ready(tensor.clone())),
        None => value
            .downcast::<Tensor>()
            .map(Output::Later)
            .map_err(|_| Error::internal("a sum is a tensor")),
    };
    results.into_iter().map(output).collect()
}

/// Adds the tensors of lists at the same index; one that is not set adds nothing.
fn add_lists(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let mut sum = TensorList::of(call.tensor(0)?)?.clone();
    for index in 1..call.n_inputs() {
        let other = TensorList::of(call.tensor(index)?)?;
        sum.expect_type(other.dtype)?;
        let (own, others) = (sum.elements.len(), other.elements.len());
        if own != others {
            return Err(Error::invalid_argument(format!(
                "Trying to add two lists of tensors with different lengths. One is {own} and the other is {others}"
            )));
        }
        sum.shape = merged(&sum.shape, &other.shape)?;
        for (own, other) in sum.elements.iter_mut().zip(&other.elements) {
            match (&*own, other) {
                (Some(x), Some(y)) => *own = Some(added(call, x, y)?),
                (None, Some(y)) => *own = Some(y.clone()),
                (_, None) => (),
            }
        }
    }
    Ok(smallvec![sum.into_tensor().into()])
}

/// Returns the sum of two tensors of a list.
pub(super) fn added(call: &TensorCall<'_>, x: &Tensor, y: &Tensor) -> Result<Tensor, Error> {
    let (x, y) = (x.as_dense()?, y.as_dense()?);
    if x.metadata() != y.metadata() {
        let (x, y) = (x.metadata(), y.metadata());
        return Err(Error::invalid_argument(format!(
            "Trying to add two tensors with incompatible element shapes. One is {x} and the other is {y}"
        )));
    }
    let out = call.allocate(x.metadata().clone())?;
    with_number!(x.dtype(), T => {
        let (x, y, mut out) = (x.read()?, y.read()?, out.write()?);
        let pairs = x.elements::<T>()?.iter().zip(y.elements::<T>()?);
        for (out, (x, y)) in out.elements_mut::<T>()?.iter_mut().zip(pairs) {
            *out = x.plus(*y);
        }
    }, else return Err(unsupported(call.name, x.dtype())));
    Ok(out.into())
}

/// The greatest number of tensors that a list is asked for at once. More would be a mistake, which should not take memory.
const MAX_LEN: usize = 1 << 20;

/// Returns a length that was asked for.
pub(super) fn length(call: &TensorCall<'_>, n: i64) -> Result<usize, Error> {
    let found = usize::try_from(n).ok().filter(|n| *n <= MAX_LEN);
    found.ok_or_else(|| {
        call.error(format_args!(
            "expected a number of tensors, 0 to {MAX_LEN}, found {n}"
        ))
    })
}

pub(super) fn stated_type(call: &TensorCall<'_>, name: &str) -> Result<DType, Error> {
    let stated = call.attrs.dtype(name);
    stated.ok_or_else(|| call.error(format_args!("expected attribute '{name}'")))
}

fn expect_stated(call: &TensorCall<'_>, list: &TensorList) -> Result<(), Error> {
    match call.attrs.dtype("element_dtype") {
        Some(stated) => list.expect_type(stated),
        None => Ok(()),
    }
}

/// Takes the list of an operand, or copies it.
fn taken(call: &mut TensorCall<'_>, index: usize) -> Result<TensorList, Error> {
    TensorList::of(call.tensor(index)?)?;
    match call.operands.take_object(index) {
        Some(object) => TensorList::take(object.into()),
        None => TensorList::of(call.tensor(index)?).cloned(),
    }
}

/// Returns the only integer of an operand.
pub(super) fn number(call: &TensorCall<'_>, index: usize) -> Result<i64, Error> {
    match integers(call, index)?[..] {
        [only] => Ok(only),
        ref all => Err(call.error(format_args!(
            "operand {index}: expected one integer, found {}",
            all.len()
        ))),
    }
}

/// Returns the partial shape that an operand states.
fn element_shape(call: &TensorCall<'_>, index: usize) -> Result<PartialTensorShape, Error> {
    let list = integers(call, index)?;
    match (call.dense(index)?.shape().rank(), &list[..]) {
        (0, [-1]) => Ok(PartialTensorShape::UNRANKED),
        (0, _) => Err(call.error(format_args!(
            "The only valid scalar shape tensor is the fully unknown shape specified as -1."
        ))),
        (_, list) => call.named(PartialTensorShape::from_i64(list)),
    }
}

/// Returns a tensor of zeros; of strings, empty ones.
pub(super) fn zeros(
    call: &TensorCall<'_>,
    dtype: DType,
    shape: TensorShape,
) -> Result<Tensor, Error> {
    if dtype == DType::String {
        let n = shape.n_elements().unwrap_or(0);
        return Ok(StringHostTensor::new(shape, vec![Vec::new(); n])?.into());
    }
    let metadata = TensorMetadata::new(dtype, shape);
    Ok(DenseHostTensor::zeroed(call.execution.host().allocator(), metadata)?.into())
}

/// Returns the tensor at an index, or zeros if it is not set.
fn element(
    call: &TensorCall<'_>,
    list: &TensorList,
    index: usize,
    stated: &PartialTensorShape,
) -> Result<Tensor, Error> {
    if let Some(tensor) = &list.elements[index] {
        let shape = &tensor.metadata().shape;
        return match fits(stated, shape) {
            true => Ok(tensor.clone()),
            false => Err(Error::invalid_argument(format!(
                "Expected an element of shape {stated}, found one of shape {shape}"
            ))),
        };
    }
    let known = list.known_shape(stated)?;
    let shape = known.to_shape().map_err(|_| {
        Error::invalid_argument(format!(
            "Trying to read an uninitialized element but element_shape is not fully defined: {known}"
        ))
    })?;
    zeros(call, list.dtype, shape)
}

fn join(
    call: &TensorCall<'_>,
    metadata: (DType, TensorShape),
    tensors: &[Tensor],
) -> Result<Tensor, Error> {
    joined(
        (call.name, call.execution.host().allocator()),
        metadata,
        tensors,
    )
}

/// Joins tensors of one type, whose elements lie one after the other in the result, for an operation of this name.
pub(super) fn joined(
    (op, allocator): (&str, &Arc<dyn HostAllocator>),
    (dtype, shape): (DType, TensorShape),
    tensors: &[Tensor],
) -> Result<Tensor, Error> {
    if dtype == DType::String {
        let mut strings = Vec::with_capacity(shape.n_elements().unwrap_or(0));
        for tensor in tensors {
            strings.extend(tensor.as_strings()?.strings().iter().cloned());
        }
        return Ok(StringHostTensor::new(shape, strings)?.into());
    }
    if matches!(dtype, DType::Variant | DType::Resource) {
        return Err(unsupported(op, dtype));
    }
    let out = DenseHostTensor::unspecified(allocator, TensorMetadata::new(dtype, shape))?;
    let mut writing = out.write()?;
    let mut rest = writing.bytes_mut();
    for tensor in tensors {
        let reading = tensor.as_dense()?.read()?;
        let (first, others) = rest.split_at_mut(reading.bytes().len());
        first.copy_from_slice(reading.bytes());
        rest = others;
    }
    drop(writing);
    Ok(out.into())
}

pub(super) fn stack(
    call: &TensorCall<'_>,
    list: &TensorList,
    stated: &PartialTensorShape,
) -> Result<Outputs, Error> {
    let known = list.known_shape(stated)?;
    let shape = known.to_shape().map_err(|_| {
        let what = match list.elements.is_empty() {
            true => "elements of an empty list",
            false => "list which only has uninitialized elements",
        };
        Error::invalid_argument(format!(
            "Tried to stack {what} with non-fully-defined element_shape: {known}"
        ))
    })?;
    let mut tensors = Vec::with_capacity(list.elements.len());
    for tensor in &list.elements {
        tensors.push(match tensor {
            Some(tensor) => tensor.clone(),
            None => zeros(call, list.dtype, shape.clone())?,
        });
    }
    let extents: Vec<usize> = std::iter::once(tensors.len())
        .chain(shape.extents())
        .collect();
    let made = join(call, (list.dtype, TensorShape::new(&extents)?), &tensors)?;
    Ok(smallvec![made.into()])
}

fn concat(
    call: &TensorCall<'_>,
    stated: &PartialTensorShape,
    leading: &[i64],
) -> Result<Outputs, Error> {
    let list = TensorList::of(call.tensor(0)?)?;
    expect_stated(call, list)?;
    concat_of(call, list, stated, leading)
}

/// Returns the tensors of a list one after the other along their first dimension, and the extent of each there.
pub(super) fn concat_of(
    call: &TensorCall<'_>,
    list: &TensorList,
    stated: &PartialTensorShape,
    leading: &[i64],
) -> Result<Outputs, Error> {
    let rest = |extents: Option<Vec<i64>>| -> Result<PartialTensorShape, Error> {
        match extents.as_deref() {
            Some([]) => Err(Error::invalid_argument(
                "Concat requires elements to be at least vectors, found scalars instead.",
            )),
            Some([_, rest @ ..]) => PartialTensorShape::from_i64(rest),
            None => Ok(PartialTensorShape::UNRANKED),
        }
    };
    let of_partial = |shape: &PartialTensorShape| {
        shape.extents().map(|extents| {
            let of = |extent: Option<u64>| extent.and_then(|extent| i64::try_from(extent).ok());
            extents
                .map(|extent| of(extent).unwrap_or(-1))
                .collect::<Vec<i64>>()
        })
    };
    let mut known = merged(&rest(of_partial(&list.shape))?, &rest(of_partial(stated))?)?;
    for tensor in list.elements.iter().flatten() {
        let extents = tensor.metadata().shape.extents();
        let extents = extents
            .map(|extent| i64::try_from(extent).unwrap_or(i64::MAX))
            .collect();
        known = merged(&known, &rest(Some(extents))?)?;
    }
    let rest = known.to_shape().map_err(|_| {
        Error::invalid_argument(format!(
            "All except the first dimension must be fully defined when concating a list of tensors. Shape: {known}"
        ))
    })?;
    let mut tensors = Vec::with_capacity(list.elements.len());
    let mut lengths = Vec::with_capacity(list.elements.len());
    for (index, tensor) in list.elements.iter().enumerate() {
        let tensor = match tensor {
            Some(tensor) => tensor.clone(),
            None => {
                let first = leading
                    .get(index)
                    .and_then(|first| usize::try_from(*first).ok());
                let first = first.ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "List contains uninitialized element at index {index} but leading_dims has only {} elements.",
                        leading.len()
                    ))
                })?;
                let extents: Vec<usize> = std::iter::once(first).chain(rest.extents()).collect();
                zeros(call, list.dtype, TensorShape::new(&extents)?)?
            }
        };
        let first = tensor.metadata().shape.extents().next().unwrap_or(0);
        lengths.push(i64::try_from(first).unwrap_or(i64::MAX));
        tensors.push(tensor);
    }
    let first = lengths.iter().fold(0_i64, |sum, n| sum.saturating_add(*n));
    let first = usize::try_from(first).unwrap_or(usize::MAX);
    let extents: Vec<usize> = std::iter::once(first).chain(rest.extents()).collect();
    let made = join(call, (list.dtype, TensorShape::new(&extents)?), &tensors)?;
    let allocator = call.execution.host().allocator();
    let lengths = DenseHostTensor::from_slice(allocator, &[lengths.len()], &lengths)?;
    let all: [Output; 2] = [made.into(), lengths.into()];
    Ok(all.into_iter().take(call.n_results).collect())
}

/// Returns the parts of a tensor along its first dimension as a list: of these lengths, or each of one without that
/// dimension.
fn parts(
    call: &TensorCall<'_>,
    index: usize,
    shape: PartialTensorShape,
    lengths: Option<&[i64]>,
) -> Result<TensorList, Error> {
    let list = parts_of(call, index, shape, lengths)?;
    expect_stated(call, &list)?;
    Ok(list)
}

/// Does that for an operation that states no type.
pub(super) fn parts_of(
    call: &TensorCall<'_>,
    index: usize,
    shape: PartialTensorShape,
    lengths: Option<&[i64]>,
) -> Result<TensorList, Error> {
    let tensor = call.tensor(index)?;
    let TensorMetadata { dtype, shape: own } = tensor.metadata();
    let mut list = TensorList::new(*dtype, shape);
    let extents: Vec<usize> = own.extents().collect();
    let Some((first, rest)) = extents.split_first() else {
        return Err(Error::invalid_argument(format!(
            "Tensor must be at least a vector, but saw shape: {own}"
        )));
    };
    let ones = vec![1; *first];
    let lens: Vec<usize> = match lengths {
        None => ones,
        Some(lengths) => {
            let lens: Result<Vec<usize>, _> = lengths.iter().map(|n| usize::try_from(*n)).collect();
            let lens = lens.map_err(|_| {
                call.error(format_args!(
                    "expected lengths of 0 or more, found {lengths:?}"
                ))
            })?;
            let total = lens.iter().try_fold(0_usize, |sum, n| sum.checked_add(*n));
            if total != Some(*first) {
                return Err(Error::invalid_argument(format!(
                    "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {} and value's \
                     shape is: {own}",
                    lengths.iter().map(|n| i128::from(*n)).sum::<i128>()
                )));
            }
            lens
        }
    };
    // Of parts without elements it is no number of elements.
    let row = rest
        .iter()
        .fold(1_usize, |row, extent| row.saturating_mul(*extent));
    let row = if rest.contains(&0) { 0 } else { row };
    let mut start = 0;
    for len in lens {
        let extents: Vec<usize> = match lengths {
            None => rest.to_vec(),
            Some(_) => std::iter::once(len).chain(rest.iter().copied()).collect(),
        };
        let part = part(
            tensor,
            TensorShape::new(&extents)?,
            start * row..(start + len) * row,
        )?;
        list.expect_fits(&part, "insert")?;
        list.elements.push(Some(part));
        start += len;
    }
    Ok(list)
}

/// Returns some of the elements of a tensor, as a tensor of another shape. Numbers share the memory.
fn part(
    tensor: &Tensor,
    shape: TensorShape,
    range: std::ops::Range<usize>,
) -> Result<Tensor, Error> {
    if let Tensor::String(strings) = tensor {
        return Ok(StringHostTensor::new(shape, strings.strings()[range].to_vec())?.into());
    }
    let dense = tensor.as_dense()?;
    let size = dense.dtype().size_bytes().unwrap_or(1);
    let buffer = dense.buffer().slice(range.start * size..range.end * size);
    let buffer = buffer.ok_or_else(|| Error::internal("a part lies within its tensor"))?;
    Ok(DenseHostTensor::new(TensorMetadata::new(dense.dtype(), shape), buffer)?.into())
}

fn expect_as_many(call: &TensorCall<'_>, n_items: usize, n_indices: usize) -> Result<(), Error> {
    match n_items == n_indices {
        true => Ok(()),
        false => Err(call.error(format_args!(
            "expected an index for each of {n_items} parts, found {n_indices}"
        ))),
    }
}

fn scatter(call: &TensorCall<'_>, n: Option<i64>) -> Result<Outputs, Error> {
    let indices = integers(call, 1)?;
    let items = parts(call, 0, element_shape(call, 2)?, None)?;
    expect_as_many(call, items.elements.len(), indices.len())?;
    if let Some(wrong) = indices.iter().find(|index| **index < 0) {
        return Err(call.error(format_args!(
            "Indices in TensorListScatter must all be non-negative, found {wrong}"
        )));
    }
    let needed = indices.iter().max().map_or(0, |most| most + 1);
    let n = length(call, n.unwrap_or(needed))?;
    let mut list = TensorList::new(items.dtype, items.shape.clone());
    list.elements = vec![None; n];
    for (index, item) in indices.iter().zip(items.elements) {
        let index = list.index(*index, "scatter")?;
        list.elements[index] = item;
    }
    Ok(smallvec![list.into_tensor().into()])
}
