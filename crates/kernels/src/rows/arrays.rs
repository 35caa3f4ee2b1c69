//! Kernels of arrays of tensors.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel};
use tfrt_tensor::resource::array::{ArrayItem, ArrayOptions};
use tfrt_tensor::resource::{Slot, TensorArray, TensorList};
use tfrt_tensor::{DenseHostTensor, PartialTensorShape, Tensor, TensorShape};

use super::lists::{added, concat_of, kernel, length, number, parts_of, stack, stated_type, zeros};
use super::tensors::integers;

pub(super) const KERNELS: &[TensorKernel] = &[
    kernel("tf.TensorArrayCloseV3", |call| {
        array(call)?.get::<TensorArray>()?.close();
        Ok(Outputs::new())
    }),
    kernel("tf.TensorArrayConcatV3", |call| {
        let slot = array(call)?;
        let array = slot.get::<TensorArray>()?;
        let n = i64::try_from(array.n_tensors()?).unwrap_or(i64::MAX);
        let all = read_all(call, array, 0..n)?;
        let rest = match call.attrs.ints("element_shape_except0") {
            Some(rest) => {
                let extents: Vec<i64> = std::iter::once(-1).chain(rest.iter().copied()).collect();
                PartialTensorShape::from_i64(&extents)?
            }
            None => PartialTensorShape::UNRANKED,
        };
        concat_of(call, &all, &rest, &[])
    }),
    kernel("tf.TensorArrayGatherV3", |call| {
        let slot = array(call)?;
        let array = slot.get::<TensorArray>()?;
        let stated = shape_attr(call, "element_shape")?;
        array.state_shape(&stated)?;
        let all = read_all(call, array, integers(call, 1)?.into_iter())?;
        stack(call, &all, &stated)
    }),
    kernel("tf.TensorArrayGradV3", |call| {
        let gradient = array(call)?
            .get::<TensorArray>()?
            .gradient(call.attrs.text("source"))?;
        Ok(smallvec![gradient.handle().into(), flow(call)?.into()])
    }),
    kernel("tf.TensorArrayReadV3", |call| {
        let slot = array(call)?;
        let array = slot.get::<TensorArray>()?;
        expect_stated(call, array)?;
        Ok(smallvec![read(call, array, number(call, 1)?)?.into()])
    }),
    kernel("tf.TensorArrayScatterV3", |call| {
        let indices = integers(call, 1)?;
        let list = parts_of(call, 2, PartialTensorShape::UNRANKED, None)?;
        if list.elements.len() != indices.len() {
            let (n, found) = (list.elements.len(), indices.len());
            return Err(call.error(format_args!(
                "expected an index for each of {n} parts, found {found}"
            )));
        }
        write_all(call, &list, indices.into_iter())
    }),
    kernel("tf.TensorArraySizeV3", |call| {
        let n = array(call)?.get::<TensorArray>()?.n_tensors()?;
        let n =
            i32::try_from(n).map_err(|_| call.error(format_args!("{n} tensors are too many")))?;
        let allocator = call.execution.host().allocator();
        Ok(smallvec![DenseHostTensor::scalar(allocator, n)?.into()])
    }),
    kernel("tf.TensorArraySplitV3", |call| {
        let lengths = integers(call, 2)?;
        let slot = array(call)?;
        let array = slot.get::<TensorArray>()?;
        let list = parts_of(call, 1, PartialTensorShape::UNRANKED, Some(&lengths))?;
        let (n, found) = (array.n_tensors()?, list.elements.len());
        if found > n && !array.options().is_dynamic {
            return Err(array.too_short(n, found));
        }
        write_all(call, &list, 0..)
    }),
    kernel("tf.TensorArrayV3", |call| {
        let n = length(call, number(call, 0)?)?;
        let options = ArrayOptions {
            dtype: stated_type(call, "dtype")?,
            shape: shape_attr(call, "element_shape")?,
            is_dynamic: call.attrs.flag("dynamic_size"),
            clears_after_read: call.attrs.flag("clear_after_read"),
            has_identical_shapes: call.attrs.flag("identical_element_shapes"),
        };
        let array = TensorArray::new(call.attrs.text("tensor_array_name"), n, options);
        let allocator = call.execution.host().allocator();
        let flow = DenseHostTensor::scalar(allocator, 0.0_f32)?;
        Ok(smallvec![
            Slot::anonymous(array).handle().into(),
            flow.into()
        ])
    }),
    kernel("tf.TensorArrayWriteV3", |call| {
        let slot = array(call)?;
        let array = slot.get::<TensorArray>()?;
        let value = call.tensor(2)?.clone();
        array.write(number(call, 1)?, value, |x, y| added(call, x, y))?;
        Ok(smallvec![flow(call)?.into()])
    }),
];

fn array(call: &TensorCall<'_>) -> Result<Arc<Slot>, Error> {
    Slot::counted(call.tensor(0)?)
}

/// Returns the last operand, which orders effects.
/// Returns the last operand, by which calls are ordered: a number.
fn flow(call: &TensorCall<'_>) -> Result<Tensor, Error> {
    let flow = call.tensor(call.n_inputs().saturating_sub(1))?;
    let metadata = flow.metadata();
    if metadata.dtype != DType::F32 || metadata.shape.rank() != 0 {
        return Err(call.error(format_args!(
            "expected a flow of shape [] of f32, found {metadata}"
        )));
    }
    Ok(flow.clone())
}

fn shape_attr(call: &TensorCall<'_>, name: &str) -> Result<PartialTensorShape, Error> {
    match call.attrs.ints(name) {
        Some(list) => call.named(PartialTensorShape::from_i64(&list)),
        None => Ok(PartialTensorShape::UNRANKED),
    }
}

fn expect_stated(call: &TensorCall<'_>, array: &TensorArray) -> Result<(), Error> {
    match call.attrs.dtype("dtype") {
        Some(stated) if stated != array.options().dtype => Err(call.error(format_args!(
            "TensorArray dtype is {} but Op requested dtype {stated}.",
            array.options().dtype
        ))),
        _ => Ok(()),
    }
}

fn read(call: &TensorCall<'_>, array: &TensorArray, index: i64) -> Result<Tensor, Error> {
    match array.read(index)? {
        ArrayItem::Tensor(tensor) => Ok(tensor),
        ArrayItem::Zeros(shape) => {
            let shape: TensorShape = shape.to_shape()?;
            zeros(call, array.options().dtype, shape)
        }
    }
}

/// Reads tensors, as a list.
fn read_all(
    call: &TensorCall<'_>,
    array: &TensorArray,
    indices: impl Iterator<Item = i64>,
) -> Result<TensorList, Error> {
    expect_stated(call, array)?;
    let mut list = TensorList::new(array.options().dtype, array.known_shape());
    for index in indices {
        list.elements.push(Some(read(call, array, index)?));
    }
    Ok(list)
}

fn write_all(
    call: &TensorCall<'_>,
    list: &TensorList,
    indices: impl Iterator<Item = i64>,
) -> Result<Outputs, Error> {
    let slot = array(call)?;
    let array = slot.get::<TensorArray>()?;
    for (index, item) in indices.zip(list.elements.iter().flatten()) {
        array.write(index, item.clone(), |x, y| added(call, x, y))?;
    }
    Ok(smallvec![flow(call)?.into()])
}
