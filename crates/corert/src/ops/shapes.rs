//! Operations that look at shapes or change them, and leave the elements where they are.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::{
    DenseHostTensor, Dims, ScalarHostTensor, Tensor, TensorMetadata, TensorShape, with_number,
};

use super::elements::Elements;
use super::integers::{Integers, dimension};
use crate::call::Call;
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata,
    same_metadata, unsupported,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            OpDefinition::new("tf.Const", constant)
                .summary("The value, in the memory of the attribute.")
                .inputs(0)
                .attribute("value", AttrKind::Dense, "the result")
                .attribute("dtype", AttrKind::Type, "the type of its elements")
                .elements("all but strings")
                .metadata(constant_metadata)
                .cost(|_, _| 1)
                .pure(),
        )
        .add(
            OpDefinition::new("tf.Shape", shape)
                .summary("The extents of a tensor, as a vector.")
                .inputs(1)
                .attribute("out_type", AttrKind::Type, "i32, which it is if it is not stated, or i64")
                .attribute("T", AttrKind::Type, "the type of the input")
                .elements("all")
                .formats(Formats::ALL)
                .metadata(shape_metadata)
                .cost(|_, _| 1)
                .pure(),
        )
        .add(
            OpDefinition::new("tf.ZerosLike", zeros_like)
                .summary("A tensor of zeros of the type and shape of the input; one number stands for all.")
                .inputs(1)
                .attribute("T", AttrKind::Type, "the type of the input")
                .elements(Elements::NumbersAndTruth.text())
                .formats(Formats::ALL)
                .metadata(|call| {
                    let zeros = same_metadata(call)?;
                    Elements::NumbersAndTruth.expect(call.op, zeros[0].dtype)?;
                    Ok(zeros)
                })
                .cost(|_, _| 1)
                .pure(),
        )
        .add(
            OpDefinition::new("tf.Fill", fill)
                .summary("A tensor of the shape that the first input says, of the number in the second; one number stands for all.")
                .inputs(2)
                .attribute("T", AttrKind::Type, "the type of the number")
                .attribute("index_type", AttrKind::Type, "the type of the shape")
                .elements("numbers, truth values")
                .cost(|_, _| 1)
                .pure(),
        )
        .add(
            reshaping("tf.ExpandDims", expand_dims)
                .summary("The tensor with a dimension of extent 1 more, where the axis in the second input says; in the same memory.")
                .inputs(2)
                .attribute("T", AttrKind::Type, "the type of the tensor")
                .attribute("Tdim", AttrKind::Type, "the type of the axis"),
        )
        .add(
            reshaping("tf.Squeeze", squeeze)
                .summary("The tensor without dimensions of extent 1; in the same memory.")
                .inputs(1)
                .attribute("squeeze_dims", AttrKind::Integers, "which of them go: all, if it is empty or not stated")
                .attribute("T", AttrKind::Type, "the type of the tensor")
                .metadata(squeeze_metadata),
        )
        .add(
            reshaping("tf.Reshape", reshape)
                .summary("The tensor with the shape that the second input says, of which one extent may be -1; in the same memory.")
                .inputs(2)
                .attribute("T", AttrKind::Type, "the type of the tensor")
                .attribute("Tshape", AttrKind::Type, "the type of the shape")
                .metadata(reshape_metadata),
        );
}

/// An operation whose result lies in the memory of its first input.
fn reshaping(
    name: &'static str,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    OpDefinition::new(name, dispatch)
        .elements("all")
        .formats(Formats::STRING)
        .cost(|_, _| 1)
        .pure()
}

/// A tensor with another shape, in the same memory.
///
/// # Errors
///
/// `InvalidArgument` if the shape does not have as many elements.
pub(super) fn reshaped(tensor: &Tensor, shape: TensorShape) -> Result<Tensor, Error> {
    match tensor {
        Tensor::String(strings) => Ok(strings.reshape(shape)?.into()),
        tensor => Ok(tensor.as_dense()?.reshape(shape)?.into()),
    }
}

fn constant_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let Some(value) = call.attrs.dense("value")? else {
        return Err(Error::invalid_argument(
            "tf.Const needs a `value` dense attribute",
        ));
    };
    let found = value.dtype();
    match call.attrs.dtype("dtype")? {
        Some(wanted) if wanted != found => Err(Error::invalid_argument(format!(
            "tf.Const dtype mismatch: attribute 'dtype' is {wanted}, attribute 'value' is of {found}"
        ))),
        _ => Ok(smallvec![value.metadata().clone()]),
    }
}

fn constant(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let value = call.attrs().dense("value")?;
    let value = value.ok_or_else(|| crate::attributes::missing(call.op(), "value"))?;
    Ok(smallvec![value.clone().into()])
}

fn shape_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let rank = call
        .inputs
        .first()
        .map_or(0, |metadata| metadata.shape.rank());
    let dtype = call.attrs.dtype("out_type")?.unwrap_or(DType::I32);
    match dtype {
        DType::I32 | DType::I64 => Ok(smallvec![TensorMetadata::new(
            dtype,
            TensorShape::new(&[rank])?
        )]),
        dtype => Err(Error::invalid_argument(format!(
            "tf.Shape: expected attribute 'out_type' to be i32 or i64, found {dtype}"
        ))),
    }
}

fn shape(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let extents = call.tensor(0)?.metadata().shape.to_dims();
    let rank = [extents.len()];
    let allocator = call.execution().host().allocator();
    let too_large = |extent: &usize| {
        call.error(format_args!(
            "an extent of {extent} exceeds the largest integer of the result"
        ))
    };
    let out = match call.result(0)?.dtype {
        DType::I64 => {
            let extents = extents
                .iter()
                .map(|extent| i64::try_from(*extent).map_err(|_| too_large(extent)));
            let extents: Vec<i64> = extents.collect::<Result<_, _>>()?;
            DenseHostTensor::from_slice(allocator, &rank, &extents)?
        }
        _ => {
            let extents = extents
                .iter()
                .map(|extent| i32::try_from(*extent).map_err(|_| too_large(extent)));
            let extents: Vec<i32> = extents.collect::<Result<_, _>>()?;
            DenseHostTensor::from_slice(allocator, &rank, &extents)?
        }
    };
    Ok(smallvec![out.into()])
}

fn zeros_like(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let metadata = call.result(0)?;
    let shape = metadata.shape.clone();
    if metadata.dtype == DType::I1 {
        let zero = tfrt_tensor::Bool::from(false);
        return Ok(smallvec![ScalarHostTensor::new(shape, zero).into()]);
    }
    with_number!(metadata.dtype, T => {
        let zero = <T as tfrt_tensor::Element>::ZERO;
        Ok(smallvec![ScalarHostTensor::new(shape, zero).into()])
    }, else Err(unsupported(call.op(), metadata.dtype)))
}

fn fill(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let shape = TensorShape::from_i64(&call.vector(0, "a shape")?)
        .map_err(|error| call.error(format_args!("{}", error.message())))?;
    let value = call.dense(1)?;
    if value.n_elements() != 1 {
        let found = value.shape();
        return Err(call.error(format_args!(
            "expected a tensor of one element as value, found {found}"
        )));
    }
    let reading = value.read()?;
    if value.dtype() == DType::I1 {
        let value = reading.elements::<tfrt_tensor::Bool>()?[0];
        return Ok(smallvec![ScalarHostTensor::new(shape, value).into()]);
    }
    with_number!(value.dtype(), T => {
        let value = reading.elements::<T>()?[0];
        Ok(smallvec![ScalarHostTensor::new(shape, value).into()])
    }, else Err(unsupported(call.op(), value.dtype())))
}

fn expand_dims(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let tensor = call.tensor(0)?;
    let mut extents = tensor.metadata().shape.to_dims();
    let (axis, rank) = (call.integer(1, "an axis")?, extents.len());
    // The new dimension may be the last one.
    let place = dimension(axis, rank + 1).ok_or_else(|| {
        Error::invalid_argument(format!(
            "Failed to expand axis {axis} for tensor of rank {rank}"
        ))
    })?;
    extents.insert(place, 1);
    Ok(smallvec![
        reshaped(tensor, TensorShape::new(&extents)?)?.into()
    ])
}

fn squeeze_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x] = call.inputs else {
        return Err(Error::invalid_argument("tf.Squeeze expects 1 input"));
    };
    let extents = x.shape.to_dims();
    let axes = call.attrs.integers("squeeze_dims")?.unwrap_or_default();
    let mut goes: Dims = extents
        .iter()
        .map(|extent| usize::from(axes.is_empty() && *extent == 1))
        .collect();
    for axis in axes {
        let place = dimension(axis, extents.len()).filter(|place| extents[*place] == 1);
        let place = place.ok_or_else(|| {
            let shape = &x.shape;
            Error::invalid_argument(format!(
                "tf.Squeeze: there is no axis {axis} of extent 1 in a tensor of shape {shape}"
            ))
        })?;
        goes[place] = 1;
    }
    let kept = extents.iter().zip(&goes).filter(|(_, goes)| **goes == 0);
    let kept: Dims = kept.map(|(extent, _)| *extent).collect();
    let shape = TensorShape::new(&kept)?;
    Ok(smallvec![TensorMetadata::new(x.dtype, shape)])
}

fn squeeze(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let shape = call.result(0)?.shape.clone();
    Ok(smallvec![reshaped(call.tensor(0)?, shape)?.into()])
}

/// The shape as which a tensor shall be seen: one extent may be -1, which is what is left.
///
/// # Errors
///
/// `InvalidArgument` if the tensor does not have as many elements.
fn seen(op: &str, tensor: &TensorMetadata, mut wanted: Integers) -> Result<TensorShape, Error> {
    let shape = &tensor.shape;
    let misfit = |wanted: &[i64]| {
        Error::invalid_argument(format!(
            "{op}: a tensor of shape {shape} can't be seen as one of {wanted:?}"
        ))
    };
    let n = tensor.n_elements()?;
    let mut unknown = wanted
        .iter()
        .enumerate()
        .filter(|(_, extent)| **extent == -1);
    if let Some((place, _)) = unknown.next() {
        if unknown.next().is_some() {
            return Err(Error::invalid_argument(format!(
                "{op}: expected a shape of which one extent is -1 at most, found {:?}",
                &wanted[..]
            )));
        }
        let known = wanted
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != place);
        let mut known = known.map(|(_, extent)| *extent);
        let product = known.try_fold(1_i64, i64::checked_mul);
        let n = i64::try_from(n).map_err(|_| misfit(&wanted))?;
        // Of no elements any number of rows could be made.
        let extent = product
            .filter(|product| *product > 0 && n % product == 0)
            .map(|product| n / product);
        wanted[place] = extent.ok_or_else(|| misfit(&wanted))?;
    }
    let seen = TensorShape::from_i64(&wanted).map_err(|_| misfit(&wanted))?;
    match seen.n_elements() == Some(n) {
        true => Ok(seen),
        false => Err(misfit(&wanted)),
    }
}

fn reshape_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x, _] = call.inputs else {
        return Err(Error::invalid_argument("tf.Reshape expects 2 inputs"));
    };
    match call.vector(1, "a shape")? {
        Some(wanted) => {
            let shape = seen(call.op, x, wanted)?;
            Ok(smallvec![TensorMetadata::new(x.dtype, shape)])
        }
        None => Ok(ResultMetadata::new()),
    }
}

fn reshape(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let tensor = call.tensor(0)?;
    let shape = seen(call.op(), tensor.metadata(), call.vector(1, "a shape")?)?;
    Ok(smallvec![reshaped(tensor, shape)?.into()])
}
