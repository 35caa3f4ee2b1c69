//! Files of named tensors in the format [safetensors](https://github.com/huggingface/safetensors): a header in
//! JSON, and the elements, which need not be copied.

use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, View};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error, HostAllocator};

use crate::subbyte::{SubbyteTensor, SubbyteType};
use crate::{DenseHostTensor, TensorMetadata, TensorShape};

/// The types of the format that tensors have.
const TYPES: [(Dtype, DType); 14] = [
    (Dtype::BOOL, DType::I1),
    (Dtype::U8, DType::Ui8),
    (Dtype::I8, DType::I8),
    (Dtype::I16, DType::I16),
    (Dtype::U16, DType::Ui16),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::Bf16),
    (Dtype::I32, DType::I32),
    (Dtype::U32, DType::Ui32),
    (Dtype::F32, DType::F32),
    (Dtype::C64, DType::Complex64),
    (Dtype::F64, DType::F64),
    (Dtype::I64, DType::I64),
    (Dtype::U64, DType::Ui64),
];

/// The types of the format that compact tensors have.
const COMPACT_TYPES: [(Dtype, SubbyteType); 6] = [
    (Dtype::F4, SubbyteType::F4E2M1),
    (Dtype::F8_E5M2, SubbyteType::F8E5M2),
    (Dtype::F8_E4M3, SubbyteType::F8E4M3FN),
    (Dtype::F8_E8M0, SubbyteType::F8E8M0),
    (Dtype::F8_E4M3FNUZ, SubbyteType::F8E4M3FNUZ),
    (Dtype::F8_E5M2FNUZ, SubbyteType::F8E5M2FNUZ),
];

/// A tensor in a file.
#[derive(Clone, Debug)]
pub enum FileTensor {
    /// A tensor of elements that can be calculated with.
    Dense(DenseHostTensor),
    /// A tensor of floats of 8 bits or 4.
    Compact(SubbyteTensor),
}

/// Reads all tensors, in the order of their elements in the file. Each is a slice of `buffer`, a mapped file for
/// example, if its elements are aligned; else it is a copy.
///
/// # Errors
///
/// `InvalidArgument` if the bytes are no such file, or if elements are of a type that tensors don't have, with
/// the tensor's name; `ResourceExhausted` if there is no memory for a copy.
///
/// # Examples
///
/// ```
/// use tfrt_host::memory::HostBuffer;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{DenseHostTensor, safetensors};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let weights = DenseHostTensor::from_slice(host.allocator(), &[2], &[1.5_f32, 2.0])?;
/// let bytes = safetensors::write([("weights", &weights)])?;
/// let tensors = safetensors::read(&HostBuffer::from_owner(bytes), host.allocator())?;
/// assert_eq!(tensors[0].0, "weights");
/// assert_eq!(tensors[0].1.to_text()?, weights.to_text()?);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn read(
    buffer: &HostBuffer,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Vec<(String, DenseHostTensor)>, Error> {
    let dense = |(name, stored): (String, FileTensor)| match stored {
        FileTensor::Dense(tensor) => Ok((name, tensor)),
        FileTensor::Compact(tensor) => {
            let dtype = tensor.dtype().name();
            Err(invalid(&format!(
                "tensor '{name}': elements of type {dtype} are no dense tensor's"
            )))
        }
    };
    read_all(buffer, allocator)?
        .into_iter()
        .map(dense)
        .collect()
}

/// Reads all tensors, those of floats of 8 bits and 4 included; see [`read`].
///
/// # Errors
///
/// Those of [`read`], but for these types.
///
/// # Examples
///
/// ```
/// use tfrt_host::memory::HostBuffer;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::subbyte::{SubbyteTensor, SubbyteType};
/// use tfrt_tensor::safetensors::{self, FileTensor};
/// use tfrt_tensor::TensorShape;
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let (shape, allocator) = (TensorShape::new(&[2])?, host.allocator());
/// let ones = SubbyteTensor::from_bytes(SubbyteType::F8E4M3FN, shape, &[0x38, 0x38], allocator)?;
/// let bytes = safetensors::write_all([("ones", &FileTensor::Compact(ones))])?;
/// let tensors = safetensors::read_all(&HostBuffer::from_owner(bytes), allocator)?;
/// let FileTensor::Compact(ones) = &tensors[0].1 else { panic!("it was written as such") };
/// assert_eq!(ones.to_dense(allocator)?.read()?.elements::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn read_all(
    buffer: &HostBuffer,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Vec<(String, FileTensor)>, Error> {
    let reading = buffer.read()?;
    let file = SafeTensors::deserialize(&reading).map_err(|error| invalid(&error))?;
    let mut tensors: Vec<_> = file.iter().collect();
    let start = reading.as_ptr().addr();
    let offset = |data: &[u8]| data.as_ptr().addr() - start;
    tensors.sort_by_key(|(_, view)| offset(view.data()));
    let slice = |data: &[u8]| {
        let range = offset(data)..offset(data) + data.len();
        buffer.slice(range).expect("it lies in the buffer")
    };
    let read_one = |name: &str, view: &safetensors::tensor::TensorView<'_>| {
        let shape = TensorShape::new(view.shape())?;
        let compact = COMPACT_TYPES
            .iter()
            .find(|(theirs, _)| *theirs == view.dtype());
        if let Some((_, dtype)) = compact {
            let tensor = SubbyteTensor::new(*dtype, shape, slice(view.data()))?;
            return Ok(FileTensor::Compact(tensor));
        }
        let own = TYPES.iter().find(|(theirs, _)| *theirs == view.dtype());
        let Some((_, dtype)) = own else {
            let message = format!("elements of type {} are no tensor's", view.dtype());
            return Err(invalid(&format!("tensor '{name}': {message}")));
        };
        let metadata = TensorMetadata::new(*dtype, shape);
        let alignment = dtype.alignment_bytes().unwrap_or(1);
        if !view.data().as_ptr().addr().is_multiple_of(alignment) || cfg!(target_endian = "big") {
            return Ok(FileTensor::Dense(copy(metadata, view.data(), allocator)?));
        }
        let tensor = DenseHostTensor::new(metadata, slice(view.data()))?;
        Ok(FileTensor::Dense(tensor))
    };
    let with_name = |(name, view): (&str, _)| Ok((name.to_owned(), read_one(name, &view)?));
    tensors.into_iter().map(with_name).collect()
}

fn copy(
    metadata: TensorMetadata,
    data: &[u8],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<DenseHostTensor, Error> {
    let tensor = DenseHostTensor::from_bytes(allocator, metadata, data)?;
    if cfg!(target_endian = "big") {
        let size = match tensor.dtype() {
            DType::Complex64 => 4,
            dtype => dtype.size_bytes().unwrap_or(1),
        };
        tensor
            .write()?
            .bytes_mut()
            .chunks_exact_mut(size)
            .for_each(<[u8]>::reverse);
    }
    Ok(tensor)
}

fn invalid(reason: &dyn std::fmt::Display) -> Error {
    Error::invalid_argument(format!("not a readable safetensors file: {reason}"))
}

/// A tensor's elements as bytes of the format.
struct SerializedTensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for SerializedTensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        (&self.bytes).into()
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// Writes tensors as a file.
///
/// # Errors
///
/// `InvalidArgument` if the format does not have a type, or if two tensors have one name; `FailedPrecondition`
/// if somebody is writing a tensor.
pub fn write<'t>(
    tensors: impl IntoIterator<Item = (&'t str, &'t DenseHostTensor)>,
) -> Result<Vec<u8>, Error> {
    let stored: Vec<(&str, FileTensor)> = tensors
        .into_iter()
        .map(|(name, tensor)| (name, FileTensor::Dense(tensor.clone())))
        .collect();
    write_all(stored.iter().map(|(name, stored)| (*name, stored)))
}

/// Writes tensors, those of floats of 8 bits and 4 included; see [`write()`].
///
/// # Errors
///
/// Those of [`write()`], and `InvalidArgument` for an odd number of elements of 4 bits, which the format does not
/// have.
pub fn write_all<'t>(
    tensors: impl IntoIterator<Item = (&'t str, &'t FileTensor)>,
) -> Result<Vec<u8>, Error> {
    let mut copies: Vec<(&str, SerializedTensor)> = Vec::new();
    for (name, stored) in tensors {
        let copied = match stored {
            FileTensor::Dense(tensor) => copied(name, tensor)?,
            FileTensor::Compact(tensor) => compact_copied(name, tensor)?,
        };
        if copies.iter().any(|(other, _)| *other == name) {
            return Err(Error::invalid_argument(format!(
                "two tensors have the name '{name}'"
            )));
        }
        copies.push((name, copied));
    }
    safetensors::serialize(copies, None).map_err(|error| invalid(&error))
}

fn no_type(name: &str, dtype: &dyn std::fmt::Display) -> Error {
    Error::invalid_argument(format!(
        "tensor '{name}': the format has no type of elements for {dtype}"
    ))
}

fn copied(name: &str, tensor: &DenseHostTensor) -> Result<SerializedTensor, Error> {
    let known = TYPES.iter().find(|(_, own)| *own == tensor.dtype());
    let (dtype, _) = known.ok_or_else(|| no_type(name, &tensor.dtype()))?;
    let mut bytes = tensor.read()?.bytes().to_vec();
    if cfg!(target_endian = "big") {
        let size = match tensor.dtype() {
            DType::Complex64 => 4,
            dtype => dtype.size_bytes().unwrap_or(1),
        };
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(SerializedTensor {
        dtype: *dtype,
        shape: tensor.shape().to_dims().to_vec(),
        bytes,
    })
}

fn compact_copied(name: &str, tensor: &SubbyteTensor) -> Result<SerializedTensor, Error> {
    let known = COMPACT_TYPES.iter().find(|(_, own)| *own == tensor.dtype());
    let (dtype, _) = known.ok_or_else(|| no_type(name, &tensor.dtype().name()))?;
    if tensor.dtype().n_bits() == 4 && tensor.n_elements() % 2 == 1 {
        let n = tensor.n_elements();
        let message = format!("tensor '{name}': the format has no odd number of 4 bits, found {n}");
        return Err(Error::invalid_argument(message));
    }
    Ok(SerializedTensor {
        dtype: *dtype,
        shape: tensor.shape().to_dims().to_vec(),
        bytes: tensor.buffer().read()?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tfrt_host::{HostContext, kernel::KernelRegistry};

    fn allocator() -> Arc<dyn HostAllocator> {
        let host = HostContext::builder(KernelRegistry::new()).build();
        host.allocator().clone()
    }

    fn file() -> Vec<u8> {
        let of = |extents: &[usize], elements: &[i32]| {
            DenseHostTensor::from_slice(&allocator(), extents, elements).unwrap()
        };
        let (a, b) = (of(&[2], &[1, 2]), of(&[0], &[]));
        write([("a", &a), ("b", &b)]).unwrap()
    }

    #[test]
    fn aligned_tensors_are_not_copied() {
        let buffer = HostBuffer::copy_of(&allocator(), &file()).unwrap();
        let tensors = read(&buffer, &allocator()).unwrap();
        let a = tensors.iter().find(|(name, _)| name == "a").unwrap();
        assert!(a.1.buffer().overlaps(&buffer));
        let mut crooked = vec![0];
        crooked.extend(file());
        let whole = HostBuffer::copy_of(&allocator(), &crooked).unwrap();
        let buffer = whole.slice(1..crooked.len()).unwrap();
        let tensors = read(&buffer, &allocator()).unwrap();
        let a = tensors.iter().find(|(name, _)| name == "a").unwrap();
        assert!(!a.1.buffer().overlaps(&buffer));
        assert_eq!(a.1.read().unwrap().elements::<i32>().unwrap(), [1, 2]);
    }

    #[test]
    fn what_the_format_does_not_have_is_told() {
        let odd = DenseHostTensor::scalar(&allocator(), crate::Quantized(1_u8)).unwrap();
        let error = write([("a", &odd)]).unwrap_err();
        assert_eq!(
            error.message(),
            "tensor 'a': the format has no type of elements for qu8"
        );
        let one = DenseHostTensor::scalar(&allocator(), 1).unwrap();
        assert!(write([("a", &one), ("a", &one)]).is_err());
    }

    #[test]
    fn floats_of_few_bits_are_stored() {
        let of = |dtype: SubbyteType, extents: &[usize], bytes: &[u8]| {
            let shape = TensorShape::new(extents).unwrap();
            SubbyteTensor::from_bytes(dtype, shape, bytes, &allocator()).unwrap()
        };
        for (_, dtype) in COMPACT_TYPES {
            let bytes: Vec<u8> = (0..24).collect();
            let tensor = of(dtype, &[4, 6], &bytes[..dtype.len_bytes(24)]);
            let file = write_all([("a", &FileTensor::Compact(tensor.clone()))]).unwrap();
            let buffer = HostBuffer::from_owner(file);
            let tensors = read_all(&buffer, &allocator()).unwrap();
            let [(_, FileTensor::Compact(found))] = &tensors[..] else {
                panic!("{tensors:?}");
            };
            assert_eq!(found.to_text().unwrap(), tensor.to_text().unwrap());
            let error = read(&buffer, &allocator()).unwrap_err();
            assert!(error.message().contains(dtype.name()), "{error}");
        }
        let stored = |tensor| write_all([("a", &FileTensor::Compact(tensor))]);
        let error = stored(of(SubbyteType::I4, &[2], &[0])).unwrap_err();
        assert_eq!(
            error.message(),
            "tensor 'a': the format has no type of elements for i4"
        );
        let error = stored(of(SubbyteType::F4E2M1, &[3], &[0, 0])).unwrap_err();
        assert_eq!(
            error.message(),
            "tensor 'a': the format has no odd number of 4 bits, found 3"
        );
    }

    proptest! {
        #[test]
        fn damaged_files_are_errors_or_tensors(at in 0..200_usize, bit in 0..8_u8, cut in 0..200_usize) {
            let mut bytes = file();
            let of = |bytes: &[u8]| read(&HostBuffer::copy_of(&allocator(), bytes).unwrap(), &allocator());
            prop_assert!(of(&bytes[..cut.min(bytes.len() - 1)]).is_err());
            let at = at % bytes.len();
            bytes[at] ^= 1_u8 << bit;
            let _ = of(&bytes);
        }
    }
}
