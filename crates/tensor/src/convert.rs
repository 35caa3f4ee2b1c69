//! Conversion between formats of tensors.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use crate::{
    CooHostTensor, DenseHostTensor, Element, ScalarHostTensor, Tensor, TensorFormat, with_element,
};

/// Returns the tensor in another format, with elements of its own.
///
/// | From | To | Is |
/// | --- | --- | --- |
/// | any | the same | a copy |
/// | `ScalarHost` | `DenseHost` | the value everywhere |
/// | `CooHost` | `DenseHost` | the values at their places, 0 elsewhere |
/// | `GrowableHost` | `DenseHost` | the elements in a row |
/// | `CooHost` | `ScalarHost` | possible if there is at most one element, or no value |
///
/// # Errors
///
/// `InvalidArgument` for all other ways, `ResourceExhausted` if there is no memory for it,
/// `FailedPrecondition` if somebody is writing the tensor.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{ScalarHostTensor, TensorFormat, TensorShape, convert};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let ones = ScalarHostTensor::new(TensorShape::new(&[2])?, 1_i32).into();
/// let dense = convert::to_format(&ones, TensorFormat::DenseHost, host.allocator())?;
/// assert_eq!(dense.to_text()?, "DenseHostTensor dtype = i32, shape = [2], values = [1, 1]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn to_format(
    tensor: &Tensor,
    format: TensorFormat,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    match (tensor, format) {
        (Tensor::Dense(dense), TensorFormat::DenseHost) => Ok(dense.deep_copy(allocator)?.into()),
        (Tensor::Scalar(scalar), TensorFormat::ScalarHost) => Ok(scalar.clone().into()),
        // Strings are copied when one of those who share them writes.
        (Tensor::String(strings), TensorFormat::StringHost) => Ok(strings.clone().into()),
        // No handle changes.
        (Tensor::Growable(tensor), TensorFormat::GrowableHost) => Ok(tensor.clone().into()),
        (Tensor::Growable(tensor), TensorFormat::DenseHost) => {
            Ok(tensor.to_dense(allocator)?.into())
        }
        (Tensor::Scalar(scalar), TensorFormat::DenseHost) => Ok(scalar.to_dense(allocator)?.into()),
        (Tensor::Coo(coo), TensorFormat::DenseHost) => Ok(coo.to_dense(allocator)?.into()),
        (Tensor::Coo(coo), TensorFormat::ScalarHost) => Ok(coo_to_scalar(coo)?.into()),
        (Tensor::Coo(coo), TensorFormat::CooHost) => {
            let (indices, values) = (coo.indices(), coo.values());
            let shape = coo.metadata().shape.clone();
            let copy = |tensor: &DenseHostTensor| tensor.deep_copy(allocator);
            Ok(CooHostTensor::new(shape, copy(indices)?, copy(values)?)?.into())
        }
        (Tensor::Device(tensor), format) => {
            let (metadata, name) = (tensor.metadata(), tensor.device().name());
            Err(Error::invalid_argument(format!(
                "expected a {format} tensor, found a tensor of {metadata} on the device {name}: transfer it to the host"
            )))
        }
        (tensor, format) => {
            let own = tensor.format();
            let message = format!("cannot find conversion function for [{own}]->[{format}]");
            Err(Error::invalid_argument(message))
        }
    }
}

fn coo_to_scalar(coo: &CooHostTensor) -> Result<ScalarHostTensor, Error> {
    let shape = &coo.metadata().shape;
    let n_elements = coo.metadata().n_elements()?;
    let n_values = coo.values().n_elements();
    if n_elements > 1 && n_values > 0 {
        let message = "failed to convert coo tensor to scalar host tensor";
        return Err(Error::invalid_argument(message));
    }
    let values = coo.values().read()?;
    with_element!(coo.metadata().dtype, T => {
        // Of values at one place the last counts, as for dense tensors.
        let value = values.elements::<T>()?.last().copied();
        Ok(ScalarHostTensor::new(shape.clone(), value.unwrap_or(T::ZERO)))
    }, else Err(Error::invalid_argument("a sparse tensor has elements of one size")))
}
