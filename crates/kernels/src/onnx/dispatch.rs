//! From element types to Rust types.

use tfrt_host::Error;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{Bool, DType, DenseHostTensor};
pub(in crate::onnx) use tfrt_tensor::{with_floating, with_integer, with_number, with_real};

/// The elements of a tensor of real numbers, small ones and truth values too, as `f64`.
///
/// # Errors
///
/// `InvalidArgument` if they are no real numbers, `FailedPrecondition` if somebody is writing them.
pub fn to_f64(tensor: &DenseHostTensor) -> Result<Vec<f64>, Error> {
    let reading = tensor.read()?;
    let dtype = tensor.dtype();
    if let Some(compact) = tfrt_tensor::compact::CompactType::of_dtype(dtype) {
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

/// The type that ONNX gives a number, as in the attribute `to` of `Cast`.
pub fn data_type(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::F32,
        2 => DType::Ui8,
        3 => DType::I8,
        4 => DType::Ui16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        8 => DType::String,
        9 => DType::I1,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::Ui32,
        13 => DType::Ui64,
        14 => DType::Complex64,
        15 => DType::Complex128,
        16 => DType::Bf16,
        17 => DType::F8E4M3FN,
        18 => DType::F8E4M3FNUZ,
        19 => DType::F8E5M2,
        20 => DType::F8E5M2FNUZ,
        21 => DType::Ui4,
        22 => DType::I4,
        23 => DType::F4E2M1,
        24 => DType::F8E8M0,
        25 => DType::Ui2,
        26 => DType::I2,
        _ => return None,
    })
}
