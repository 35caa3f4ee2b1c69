//! Functions of elements: `tf.AddV2`, `tf.Relu` and the like.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_host::{DType, Error, HostAllocator};
use tfrt_tensor::math::elementwise::{
    self, Binary, binary_short, binary_short_in_place, broadcast_extents,
};
use tfrt_tensor::{DenseHostTensor, Element, TensorMetadata, TensorShape};

use crate::call::Call;
use crate::definition::{
    MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, same_metadata, unsupported,
};
use crate::inputs::{Inputs, Two};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            binary_op("tf.AddV2", add)
                .summary("The sum, broadcast.")
                .short(short::<elementwise::Add>),
        )
        .add(binary_op("tf.Mul", mul).summary("The product, broadcast."))
        .add(
            OpDefinition::new("tf.Relu", relu)
                .summary("The larger of each element and 0.")
                .inputs(1)
                .metadata(same_metadata)
                .pure(),
        );
}

fn binary_op(
    name: &'static str,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    OpDefinition::new(name, dispatch)
        .inputs(2)
        .metadata(broadcast_metadata)
        .pure()
}

/// The result has the shape that both inputs are broadcast to, and their type.
fn broadcast_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x, y] = call.inputs else {
        return Err(Error::invalid_argument(format!(
            "{} expects 2 inputs",
            call.op
        )));
    };
    if x.dtype != y.dtype {
        return Err(Error::invalid_argument(format!(
            "{}: incompatible dtypes: {x} and {y}",
            call.op
        )));
    }
    if x.shape == y.shape {
        return Ok(smallvec![TensorMetadata::clone(x)]);
    }
    let extents = broadcast_extents(&[&x.shape.to_dims(), &y.shape.to_dims()])?;
    Ok(smallvec![TensorMetadata::new(
        x.dtype,
        TensorShape::new(&extents)?
    )])
}

fn add(call: &mut Call<'_>) -> Result<Outputs, Error> {
    match call.result(0)?.dtype {
        DType::F32 => call.binary::<elementwise::Add, f32>(),
        DType::F64 => call.binary::<elementwise::Add, f64>(),
        DType::I32 => call.binary::<elementwise::Add, i32>(),
        DType::I64 => call.binary::<elementwise::Add, i64>(),
        dtype => Err(unsupported(call.op(), dtype)),
    }
}

fn mul(call: &mut Call<'_>) -> Result<Outputs, Error> {
    match call.result(0)?.dtype {
        DType::F32 => call.binary::<elementwise::Multiply, f32>(),
        DType::F64 => call.binary::<elementwise::Multiply, f64>(),
        DType::I32 => call.binary::<elementwise::Multiply, i32>(),
        dtype => Err(unsupported(call.op(), dtype)),
    }
}

fn relu(call: &mut Call<'_>) -> Result<Outputs, Error> {
    match call.dense(0)?.dtype() {
        DType::F32 => call.unary::<elementwise::Relu, f32>(),
        DType::F64 => call.unary::<elementwise::Relu, f64>(),
        DType::I32 => call.unary::<elementwise::Relu, i32>(),
        dtype => Err(unsupported(call.op(), dtype)),
    }
}

/// A function of elements of the usual types, at once, in the memory of one of the inputs if it was given for good.
fn short<F>(
    inputs: &mut Inputs<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Option<DenseHostTensor>, Error>
where
    F: Binary<f32, Output = f32>
        + Binary<f64, Output = f64>
        + Binary<i32, Output = i32>
        + Binary<i64, Output = i64>,
{
    let Some(two) = inputs.two() else {
        return Ok(None);
    };
    let dtype = match &two {
        Two::Lent(x, _) => x.dtype(),
        Two::Owned(x, _) => match x.as_dense() {
            Some(x) => x.dtype(),
            None => return Ok(None),
        },
    };
    match dtype {
        DType::F32 => short_of::<F, f32>(two, allocator),
        DType::F64 => short_of::<F, f64>(two, allocator),
        DType::I32 => short_of::<F, i32>(two, allocator),
        DType::I64 => short_of::<F, i64>(two, allocator),
        _ => Ok(None),
    }
}

#[inline]
fn short_of<F: Binary<T, Output = T>, T: Element>(
    two: Two<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Option<DenseHostTensor>, Error> {
    let (x, y) = match two {
        Two::Lent(x, y) => (x, y),
        Two::Owned(x_handle, y_handle) => {
            let (Some(x), Some(y)) = (x_handle.as_dense_mut(), y_handle.as_dense_mut()) else {
                return Ok(None);
            };
            if x.dtype() != y.dtype() {
                return Ok(None);
            }
            if binary_short_in_place::<F, T>(x, y, false)? {
                return Ok(x_handle.take_dense());
            }
            if binary_short_in_place::<F, T>(y, x, true)? {
                return Ok(y_handle.take_dense());
            }
            (&*x, &*y)
        }
    };
    match x.dtype() == y.dtype() {
        true => binary_short::<F, T>(allocator, x, y),
        false => Ok(None),
    }
}
