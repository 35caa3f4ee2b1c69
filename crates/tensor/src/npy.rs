//! Files of NumPy, `.npy`: one array each.
//!
//! The format is that of NumPy Enhancement Proposal 1, in its versions 1.0 to 3.0: a magic string, the version,
//! the length of a header, the header (a dictionary as Python writes it, with the keys `descr`,
//! `fortran_order` and `shape`), and the elements.
//!
//! | `descr` | Elements | | `descr` | Elements |
//! | --- | --- | --- | --- | --- |
//! | `b1` | truth values | | `c8` `c16` | complex numbers |
//! | `i1` `i2` `i4` `i8` | signed integers | | `S`N | strings of up to N bytes |
//! | `u1` `u2` `u4` `u8` | unsigned integers | | `U`N | strings of up to N characters |
//! | `f2` `f4` `f8` | floats | | | |
//!
//! Either order of bytes is read, and that of the processor written, as `<`. Arrays in the order of Fortran are
//! turned. There is no `descr` for `bf16` and quantized numbers: they can't be written.

use std::sync::Arc;

use tfrt_host::{DType, Error, HostAllocator};

use crate::{
    DenseHostTensor, Element, StringHostTensor, Tensor, TensorMetadata, TensorShape, TensorView,
    with_element,
};

mod header;

use header::Header;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Alignment of the elements.
const ALIGNMENT_BYTES: usize = 64;

/// Reads an array.
///
/// # Errors
///
/// `InvalidArgument` if the bytes are no such file, are too few or too many, or if its elements are of a type
/// that tensors don't have; `ResourceExhausted` if there is no memory for them.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{DenseHostTensor, npy};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let tensor = DenseHostTensor::from_slice(host.allocator(), &[2], &[1.5_f32, 2.0])?.into();
/// let bytes = npy::write(&tensor)?;
/// let again = npy::read(&bytes, host.allocator())?;
/// assert_eq!(again.to_text()?, tensor.to_text()?);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn read(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, Error> {
    let (header, data) = Header::read(bytes)?;
    let shape = TensorShape::from_i64(&header.shape)?;
    let Some(n_elements) = shape.n_elements() else {
        return Err(invalid(format!(
            "an array of shape {shape} does not fit any memory"
        )));
    };
    let n_bytes = n_elements.checked_mul(header.kind.len_bytes());
    if n_bytes != Some(data.len()) {
        let (kind, found) = (&header.descr, data.len());
        return Err(invalid(format!(
            "expected the elements of an array of {kind} of shape {shape}, found {found} bytes"
        )));
    }
    if header.kind.len_bytes() == 0 && n_elements > 0 {
        // They would take memory that no byte of the file stands for.
        return Err(invalid(format!("{n_elements} strings of no bytes")));
    }
    match header.kind {
        ElementKind::Numbers(dtype) => {
            let metadata = TensorMetadata::new(dtype, shape);
            Ok(read_numbers(metadata, &header, data, allocator)?.into())
        }
        ElementKind::Bytes(len) => Ok(read_strings(shape, &header, data, len, |bytes| {
            let end = bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |last| last + 1);
            Ok(bytes[..end].to_vec())
        })?
        .into()),
        ElementKind::Characters(len) => Ok(read_strings(shape, &header, data, len * 4, |bytes| {
            characters(bytes, header.is_swapped)
        })?
        .into()),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid_argument(format!("not a readable .npy file: {}", message.into()))
}

/// Kind of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementKind {
    Numbers(DType),
    /// Strings of this many bytes, padded with 0s.
    Bytes(usize),
    /// Strings of this many characters of four bytes, padded with 0s.
    Characters(usize),
}

impl ElementKind {
    fn len_bytes(self) -> usize {
        match self {
            ElementKind::Numbers(dtype) => dtype.size_bytes().unwrap_or(0),
            ElementKind::Bytes(len) => len,
            ElementKind::Characters(len) => len.saturating_mul(4),
        }
    }
}

fn read_numbers(
    metadata: TensorMetadata,
    header: &Header,
    data: &[u8],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<DenseHostTensor, Error> {
    let mut tensor = DenseHostTensor::from_bytes(allocator, metadata.clone(), data)?;
    with_element!(metadata.dtype, T => {
        if header.is_swapped {
            swap::<T>(&mut tensor)?;
        }
        if header.is_fortran {
            tensor = turn::<T>(&tensor, allocator)?;
        }
    }, else ());
    Ok(tensor)
}

/// Swaps the bytes of each number; a complex one is two numbers.
fn swap<T: Element>(tensor: &mut DenseHostTensor) -> Result<(), Error> {
    let size = match T::DTYPE {
        DType::Complex64 | DType::Complex128 => size_of::<T>() / 2,
        _ => size_of::<T>(),
    };
    let mut writing = tensor.write()?;
    writing
        .bytes_mut()
        .chunks_exact_mut(size)
        .for_each(<[u8]>::reverse);
    Ok(())
}

/// Returns the array whose elements lie in the order of Fortran, in ours.
fn turn<T: Element>(
    tensor: &DenseHostTensor,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<DenseHostTensor, Error> {
    let extents = tensor.shape().to_dims();
    let (reversed, order): (Vec<usize>, Vec<usize>) = (
        extents.iter().rev().copied().collect(),
        (0..extents.len()).rev().collect(),
    );
    let mut turned = DenseHostTensor::zeroed(allocator, tensor.metadata().clone())?;
    let reading = tensor.read()?;
    let view = TensorView::new(reading.elements::<T>()?, &reversed)?.permute(&order)?;
    if let Some(elements) = turned.elements_mut::<T>()? {
        elements
            .iter_mut()
            .zip(view.iter())
            .for_each(|(to, from)| *to = from);
    }
    Ok(turned)
}

fn read_strings(
    shape: TensorShape,
    header: &Header,
    data: &[u8],
    len_bytes: usize,
    decode: impl Fn(&[u8]) -> Result<Vec<u8>, Error>,
) -> Result<StringHostTensor, Error> {
    let n_elements = shape.n_elements().unwrap_or(0);
    let at = |index: usize| decode(&data[index * len_bytes..][..len_bytes]);
    if !header.is_fortran {
        let strings = (0..n_elements).map(at).collect::<Result<_, _>>()?;
        return StringHostTensor::new(shape, strings);
    }
    let extents = shape.to_dims();
    let mut strides = extents.clone();
    let mut stride = 1_usize;
    for (to, extent) in strides.iter_mut().zip(&extents) {
        *to = stride;
        // They are huge only where there is no element.
        stride = stride.saturating_mul(*extent);
    }
    let offsets = crate::view::Offsets::new(&extents, &strides);
    let strings = offsets.map(at).collect::<Result<_, _>>()?;
    StringHostTensor::new(shape, strings)
}

/// Converts characters of four bytes to UTF-8.
fn characters(bytes: &[u8], is_swapped: bool) -> Result<Vec<u8>, Error> {
    let mut text = String::new();
    let (codes, _) = bytes.as_chunks::<4>();
    let codes = codes.iter().map(|code| match is_swapped {
        true => u32::from_ne_bytes(*code).swap_bytes(),
        false => u32::from_ne_bytes(*code),
    });
    let codes: Vec<u32> = codes.collect();
    let end = codes
        .iter()
        .rposition(|code| *code != 0)
        .map_or(0, |last| last + 1);
    for code in &codes[..end] {
        let character = char::from_u32(*code);
        text.push(character.ok_or_else(|| invalid(format!("{code:#x} is no character")))?);
    }
    Ok(text.into_bytes())
}

/// Writes a tensor as an array: strings as bytes, all else with a `descr` of its own. A tensor that is not dense is
/// converted first ([`convert`](crate::convert)).
///
/// # Errors
///
/// `InvalidArgument` for other formats and types, and for strings that end in a byte 0, which would be lost;
/// `FailedPrecondition` if somebody is writing the tensor.
pub fn write(tensor: &Tensor) -> Result<Vec<u8>, Error> {
    match tensor {
        Tensor::String(strings) => write_strings(strings),
        tensor => {
            let dense = tensor.as_dense()?;
            let descr = descr(dense.dtype())?;
            let reading = dense.read()?;
            let mut bytes = header::write(&descr, dense.shape());
            bytes.extend_from_slice(reading.bytes());
            Ok(bytes)
        }
    }
}

fn write_strings(tensor: &StringHostTensor) -> Result<Vec<u8>, Error> {
    let strings = tensor.strings();
    if let Some(index) = strings.iter().position(|string| string.last() == Some(&0)) {
        let message =
            format!("string {index} ends in a byte 0, which an array of strings can't hold");
        return Err(Error::invalid_argument(message));
    }
    let len = strings.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut bytes = header::write(&format!("|S{len}"), &tensor.metadata().shape);
    for string in strings {
        bytes.extend_from_slice(string);
        bytes.resize(bytes.len() + len - string.len(), 0);
    }
    Ok(bytes)
}

/// The numbers that arrays hold, with the letter and the size by which they are known.
const NUMBERS: [(&str, DType); 15] = [
    ("b1", DType::I1),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("u1", DType::Ui8),
    ("u2", DType::Ui16),
    ("u4", DType::Ui32),
    ("u8", DType::Ui64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::Complex64),
    ("c16", DType::Complex128),
    ("?", DType::I1),
];

fn descr(dtype: DType) -> Result<String, Error> {
    let found = NUMBERS.iter().find(|(_, known)| *known == dtype);
    let Some((name, _)) = found else {
        let message =
            format!("NumPy has no type of elements for {dtype}: convert the tensor first");
        return Err(Error::invalid_argument(message));
    };
    let order = match dtype.size_bytes() {
        Some(1) => '|',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    Ok(format!("{order}{name}"))
}

#[cfg(test)]
mod tests;
