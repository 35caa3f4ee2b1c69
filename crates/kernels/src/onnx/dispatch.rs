//! Dispatch from element types to Rust types.

use tfrt_host::Error;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{Bool, DType, DenseHostTensor};
pub(in crate::onnx) use tfrt_tensor::{with_floating, with_integer, with_number, with_real};

/// Returns the elements of a tensor of real numbers, small ones and truth values too, as `f64`.
///
/// # Errors
///
/// `InvalidArgument` if they are no real numbers, `FailedPrecondition` if somebody is writing them.
pub fn to_f64(tensor: &DenseHostTensor) -> Result<Vec<f64>, Error> {
    let reading = tensor.read()?;
    let dtype = tensor.dtype();
    if let Some(compact) = tfrt_tensor::subbyte::SubbyteType::of_dtype(dtype) {
        let codes = reading.bytes().iter();
        return Ok(codes.map(|code| compact.decode(*code).into()).collect());
    }
    if dtype == DType::I1 {
        let elements = reading.elements::<Bool>()?.iter();
        return Ok(elements
            .map(|one| f64::from(u8::from(bool::from(*one))))
            .collect());
    }
    with_real!(dtype, T => {
        Ok(reading.elements::<T>()?.iter().map(|one| one.to_f64()).collect())
    }, else Err(Error::invalid_argument(format!("expected real numbers, found {dtype}"))))
}
