//! Elements written as bytes, by their type.

use std::borrow::Cow;
use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::tensor::subbyte::{Overflow, SubbyteType};
use tfrt::tensor::{
    BF16, Bool, Complex, DType, DenseHostTensor, Element, F16, Tensor, TensorMetadata, TensorShape,
    to_bytes,
};

use super::scalars::Scalar;

/// The kind of number that a type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Float,
    Complex,
    Truth,
    Text,
}

/// Returns the kind of a type.
pub fn kind(element: DType) -> Kind {
    match element {
        small if small.is_small() => match SubbyteType::of_dtype(small) {
            Some(small) if small.is_integer() => Kind::Integer,
            _ => Kind::Float,
        },
        DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Kind::Float,
        DType::Complex64 | DType::Complex128 => Kind::Complex,
        DType::I1 => Kind::Truth,
        DType::String | DType::Resource | DType::Variant => Kind::Text,
        _ => Kind::Integer,
    }
}

/// Adds an element, rounded to the nearest number of its type, to bytes.
///
/// # Errors
///
/// A text that says that an integer is not in the type's range, or that there are no such elements.
pub fn push(bytes: &mut Vec<u8>, element: DType, cell: &Scalar) -> Result<(), String> {
    let put = |bytes: &mut Vec<u8>, element: &[u8]| bytes.extend_from_slice(element);
    match (cell, element) {
        (&Scalar::Integer(integer), _) if kind(element) == Kind::Integer => {
            let out_of_range = || format!("{integer} is not in the range of {element}");
            let written = integer_bytes(integer, element).ok_or_else(out_of_range)?;
            put(bytes, &written);
        }
        (&Scalar::Truth(bit), DType::I1) => put(bytes, to_bytes(&[Bool::from(bit)])),
        (&Scalar::Complex(real, imaginary), DType::Complex128) => {
            put(bytes, to_bytes(&[Complex { real, imaginary }]));
        }
        (&Scalar::Complex(real, imaginary), DType::Complex64) => {
            let (real, imaginary) = (narrow(real), narrow(imaginary));
            put(bytes, to_bytes(&[Complex { real, imaginary }]));
        }
        (cell, DType::F64) => put(bytes, to_bytes(&[number(cell)?])),
        (cell, DType::F32) => put(bytes, to_bytes(&[narrow(number(cell)?)])),
        (cell, DType::F16) => {
            let half = F16(half::f16::from_f64(number(cell)?).to_bits());
            put(bytes, to_bytes(&[half]));
        }
        (cell, DType::Bf16) => {
            let half = BF16(half::bf16::from_f64(number(cell)?).to_bits());
            put(bytes, to_bytes(&[half]));
        }
        (cell, _) => {
            let Some(small) = SubbyteType::of_dtype(element) else {
                return Err(format!("there are no elements of {element} here"));
            };
            let code = small.encode(narrow(number(cell)?), Overflow::Saturate);
            put(bytes, &[code]);
        }
    }
    Ok(())
}

fn number(cell: &Scalar) -> Result<f64, String> {
    cell.number().ok_or_else(|| "expected a number".to_owned())
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "rounded to the nearest, which is what it is for"
)]
fn narrow(number: f64) -> f32 {
    number as f32
}

fn integer_bytes(integer: i128, element: DType) -> Option<Vec<u8>> {
    fn bytes<T: TryFrom<i128> + Element>(integer: i128) -> Option<Vec<u8>> {
        let integer = T::try_from(integer).ok()?;
        Some(to_bytes(&[integer]).to_vec())
    }
    match element {
        DType::Ui8 | DType::Quint8 => bytes::<u8>(integer),
        DType::Ui16 | DType::Quint16 => bytes::<u16>(integer),
        DType::Ui32 => bytes::<u32>(integer),
        DType::Ui64 => bytes::<u64>(integer),
        DType::I8 | DType::Qint8 => bytes::<i8>(integer),
        DType::I16 | DType::Qint16 => bytes::<i16>(integer),
        DType::I32 | DType::Qint32 => bytes::<i32>(integer),
        DType::I64 => bytes::<i64>(integer),
        _ => {
            let (first, n) = small_range(element)?;
            let is_in = (first..first + i128::from(n)).contains(&integer);
            let small = SubbyteType::of_dtype(element).filter(|_| is_in)?;
            let value = f32::from(i8::try_from(integer).ok()?);
            Some(vec![small.encode(value, Overflow::Saturate)])
        }
    }
}

/// Returns the least number and how many there are, of integers of 8 bits and less.
pub fn small_range(element: DType) -> Option<(i128, u64)> {
    match element {
        DType::Ui8 | DType::Quint8 => Some((0, 256)),
        DType::I8 | DType::Qint8 => Some((-128, 256)),
        DType::Ui4 => Some((0, 16)),
        DType::I4 => Some((-8, 16)),
        DType::Ui2 => Some((0, 4)),
        DType::I2 => Some((-2, 4)),
        _ => None,
    }
}

/// Returns the type that stands for one in files of NumPy, if NumPy does not have it: the smallest that
/// holds all of its numbers.
pub fn of_numpy(element: DType) -> Option<DType> {
    match element {
        DType::Bf16 => Some(DType::F32),
        DType::I4 | DType::I2 => Some(DType::I8),
        DType::Ui4 | DType::Ui2 => Some(DType::Ui8),
        small if small.is_small() => Some(DType::F32),
        _ => None,
    }
}

/// Returns what NumPy calls a type.
pub fn name_in_numpy(element: DType) -> Option<&'static str> {
    Some(match of_numpy(element).unwrap_or(element) {
        DType::F16 => "np.float16",
        DType::F32 => "np.float32",
        DType::F64 => "np.float64",
        DType::I8 => "np.int8",
        DType::I16 => "np.int16",
        DType::I32 => "np.int32",
        DType::I64 => "np.int64",
        DType::Ui8 => "np.uint8",
        DType::Ui16 => "np.uint16",
        DType::Ui32 => "np.uint32",
        DType::Ui64 => "np.uint64",
        DType::I1 => "np.bool_",
        DType::Complex64 => "np.complex64",
        DType::Complex128 => "np.complex128",
        DType::String => "np.str_",
        _ => return None,
    })
}

/// Returns a tensor of elements given as bytes.
///
/// # Errors
///
/// If there are too few or too many, or no memory for them.
pub fn dense(
    element: DType,
    shape: TensorShape,
    bytes: &[u8],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let metadata = TensorMetadata::new(element, shape);
    let tensor = DenseHostTensor::from_bytes(allocator, metadata, bytes);
    Ok(tensor.map_err(|error| error.message().to_owned())?.into())
}

/// Returns elements in the order of bytes of files, little-endian, given in that of the processor; and
/// the other way.
pub fn swapped(bytes: &[u8], element: DType) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return bytes.into();
    }
    let size = match element {
        DType::Complex64 => 4,
        DType::Complex128 => 8,
        other => other.size_bytes().unwrap_or(1),
    };
    let mut turned = bytes.to_vec();
    turned.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    turned.into()
}
