//! Tensors from bytes of a request, and from and to elements of JSON: the checks that all protocols have in common.

use bytes::Bytes;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{Error, HostAllocator};
use tfrt_tensor::{DType, DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

use std::sync::Arc;

use crate::datatype::{self, shown};
use crate::refusal::Refusal;
use crate::servable::{Description, TensorInfo};

/// Checks the name and the type of an input, by its name in the protocol.
///
/// # Errors
///
/// `InvalidArgument` for a name that is no input's, a type that there is none of, or another than the model's.
pub(crate) fn check_input(
    description: &Description,
    name: &str,
    datatype: &str,
) -> Result<DType, Refusal> {
    let Some(dtype) = datatype::of_name(datatype) else {
        return Err(Refusal::invalid(format!(
            "input '{}': there is no datatype '{}'",
            name.escape_debug(),
            datatype.escape_debug()
        )));
    };
    check_dtype(description, name, dtype)?;
    Ok(dtype)
}

/// Checks the name of an input, and that the model takes elements of a type there.
pub(crate) fn check_dtype(
    description: &Description,
    name: &str,
    dtype: DType,
) -> Result<(), Refusal> {
    let input = find_input(description, name)?;
    match input.dtype == dtype {
        true => Ok(()),
        false => Err(Refusal::invalid(format!(
            "input '{name}': expected datatype {}, found {}",
            shown(input.dtype),
            shown(dtype)
        ))),
    }
}

/// Finds the input of a name.
pub(crate) fn find_input<'d>(
    description: &'d Description,
    name: &str,
) -> Result<&'d TensorInfo, Refusal> {
    description.input(name).ok_or_else(|| {
        let known: Vec<String> = description
            .inputs
            .iter()
            .take(20)
            .map(|input| format!("'{}'", input.name))
            .collect();
        Refusal::invalid(format!(
            "unexpected input '{}': the model takes {}",
            name.escape_debug(),
            known.join(", ")
        ))
    })
}

/// Checks extents, and returns them with the number of elements.
///
/// # Errors
///
/// `InvalidArgument` for one below 0, for more dimensions than a tensor has, or a number of elements that no memory holds.
pub(crate) fn check_shape(
    name: &str,
    dtype: DType,
    extents: &[i64],
) -> Result<(TensorMetadata, usize), Refusal> {
    let about = |reason: String| Refusal::invalid(format!("input '{name}': {reason}"));
    if let Some(negative) = extents.iter().find(|extent| **extent < 0) {
        return Err(about(format!(
            "expected a shape of extents from 0, found {negative} in {extents:?}"
        )));
    }
    let shape =
        TensorShape::from_i64(extents).map_err(|error| about(error.message().to_owned()))?;
    let n_elements = shape.n_elements().filter(|n_elements| {
        let size = dtype.size_bytes().unwrap_or(4);
        n_elements
            .checked_mul(size)
            .is_some_and(|n_bytes| n_bytes <= isize::MAX as usize)
    });
    let n_elements = n_elements
        .ok_or_else(|| about(format!("a shape of {extents:?} is more than memory holds")))?;
    Ok((TensorMetadata::new(dtype, shape), n_elements))
}

/// Makes a tensor of bytes as the protocol has them: without a copy, where they lie as elements must.
///
/// # Errors
///
/// `InvalidArgument` if they are not as many as the shape asks for.
pub(crate) fn from_bytes(
    name: &str,
    dtype: DType,
    extents: &[i64],
    bytes: Bytes,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Refusal> {
    let (metadata, n_elements) = check_shape(name, dtype, extents)?;
    let about = |error: &Error| Refusal::invalid(format!("input '{name}': {}", error.message()));
    if dtype == DType::String {
        let strings = datatype::split_strings(&bytes, n_elements).map_err(|error| about(&error))?;
        return strings_of(metadata, strings);
    }
    let expected = metadata.len_bytes().map_err(|error| about(&error))?;
    if bytes.len() != expected {
        return Err(Refusal::invalid(format!(
            "input '{name}': {} of shape {extents:?} has {expected} bytes, found {}",
            shown(dtype),
            bytes.len()
        )));
    }
    let alignment = dtype.alignment_bytes().unwrap_or(1);
    let dense = match (bytes.as_ptr() as usize).is_multiple_of(alignment) {
        true => DenseHostTensor::new(metadata, HostBuffer::from_owner(bytes))?,
        false => DenseHostTensor::from_bytes(allocator, metadata, &bytes)?,
    };
    Ok(dense.into())
}

/// Makes a tensor of strings.
pub(crate) fn strings_of(
    metadata: TensorMetadata,
    strings: Vec<Vec<u8>>,
) -> Result<Tensor, Refusal> {
    Ok(StringHostTensor::new(metadata.shape, strings)?.into())
}

/// Returns the bytes of a tensor as the protocol has them: those of numbers are not copied.
///
/// # Errors
///
/// `Unimplemented` for a type that the protocol has no name for.
pub(crate) fn to_bytes(name: &str, tensor: &Tensor) -> Result<Bytes, Refusal> {
    let dtype = tensor.metadata().dtype;
    if datatype::name_of(dtype).is_none() {
        return Err(nameless(name, dtype));
    }
    match tensor {
        Tensor::String(strings) => Ok(datatype::join_strings(strings.strings()).into()),
        other => {
            let reading = other.as_dense()?.buffer().clone().read_owned()?;
            Ok(Bytes::from_owner(Read(reading)))
        }
    }
}

/// The memory of a tensor that is being sent.
struct Read(tfrt_host::memory::OwnedReading);

impl AsRef<[u8]> for Read {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Returns the refusal of an output of a type that the protocol has no name for.
pub(crate) fn nameless(name: &str, dtype: DType) -> Refusal {
    Refusal::unimplemented(format!(
        "output '{name}' has elements of {}, for which the protocol has no name",
        dtype.name()
    ))
}

/// Returns the extents of a tensor as the protocols have them.
pub(crate) fn extents_of(tensor: &Tensor) -> Vec<i64> {
    let extents = tensor.metadata().shape.extents();
    extents
        .map(|extent| i64::try_from(extent).unwrap_or(i64::MAX))
        .collect()
}
