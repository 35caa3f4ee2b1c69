//! Writer of files of tensors.

use std::io::Write;

use tfrt_host::{DType, Error};

use super::{ALIGNMENT_BYTES, BtfDType, BtfHeader, BtfLayout, HEADER_BYTES, swap_to_native};
use crate::{DenseHostTensor, Tensor, TensorMetadata, TensorShape};

/// Writes tensors as a file.
///
/// # Errors
///
/// `InvalidArgument` for a tensor of scalars or strings, and for types of elements that the format does
/// not have; `FailedPrecondition` if somebody is writing a tensor; `Unknown` if `out` fails. Nothing is
/// written in the first case.
///
/// # Examples
///
/// See [`BtfReader`](super::BtfReader).
pub fn write(out: &mut impl Write, tensors: &[Tensor]) -> Result<(), Error> {
    let headers: Vec<BtfHeader> = tensors.iter().map(header).collect::<Result<_, _>>()?;
    put(out, &(tensors.len() as u64).to_le_bytes())?;
    let mut offset = 8 * (1 + tensors.len() as u64);
    for tensor in tensors {
        put(out, &offset.to_le_bytes())?;
        offset += (HEADER_BYTES + payload_bytes(tensor)).next_multiple_of(ALIGNMENT_BYTES);
    }
    for (tensor, header) in tensors.iter().zip(&headers) {
        put(out, &header.rank.to_le_bytes())?;
        put(out, &[header.dtype.0, header.layout.0, 0, 0, 0, 0, 0, 0])?;
        match tensor {
            Tensor::Dense(_) | Tensor::Growable(_) => put_dense(out, tensor.as_dense()?)?,
            Tensor::Coo(coo) => {
                put_extents(out, &coo.metadata().shape)?;
                put_dense(out, coo.indices())?;
                put_dense(out, coo.values())?;
            }
            other => return Err(unhandled(other)),
        }
        let payload = payload_bytes(tensor);
        let padding = payload.next_multiple_of(ALIGNMENT_BYTES) - payload;
        put(out, &[0; ALIGNMENT_BYTES as usize][..padding as usize])?;
    }
    Ok(())
}

fn header(tensor: &Tensor) -> Result<BtfHeader, Error> {
    let layout = match tensor {
        Tensor::Dense(_) | Tensor::Growable(_) => BtfLayout::DENSE,
        Tensor::Coo(_) => BtfLayout::COO,
        other => return Err(unhandled(other)),
    };
    let metadata = tensor.metadata();
    let dtype = BtfDType::of(metadata.dtype).ok_or_else(|| {
        let message = "failed to cast DType to TensorDType";
        Error::invalid_argument(message).with_note(format!("the format has no {}", metadata.dtype))
    })?;
    Ok(BtfHeader {
        rank: metadata.shape.rank() as u64,
        dtype,
        layout,
    })
}

#[cold]
fn unhandled(tensor: &Tensor) -> Error {
    let (format, metadata) = (tensor.format(), tensor.metadata());
    Error::invalid_argument("unhandled tensor type when writing btf")
        .with_note(format!("it is a {format} tensor of {metadata}"))
}

/// Returns the number of bytes of a payload without its padding.
fn payload_bytes(tensor: &Tensor) -> u64 {
    let extents = |shape: &TensorShape| 8 * shape.rank() as u64;
    let of = |metadata: &TensorMetadata| {
        extents(&metadata.shape) + metadata.len_bytes().unwrap_or(0) as u64
    };
    let dense = |tensor: &DenseHostTensor| of(tensor.metadata());
    match tensor {
        Tensor::Dense(_) | Tensor::Growable(_) => of(tensor.metadata()),
        Tensor::Coo(coo) => {
            extents(&coo.metadata().shape) + dense(coo.indices()) + dense(coo.values())
        }
        Tensor::Scalar(_) | Tensor::String(_) | Tensor::Device(_) | Tensor::Object(_) => 0,
    }
}

fn put_dense(out: &mut impl Write, tensor: &DenseHostTensor) -> Result<(), Error> {
    put_extents(out, tensor.shape())?;
    let reading = tensor.read()?;
    put_elements(out, reading.bytes(), tensor.dtype())
}

fn put_extents(out: &mut impl Write, shape: &TensorShape) -> Result<(), Error> {
    shape
        .extents()
        .try_for_each(|extent| put(out, &(extent as u64).to_le_bytes()))
}

fn put_elements(out: &mut impl Write, bytes: &[u8], dtype: DType) -> Result<(), Error> {
    if cfg!(target_endian = "little") {
        return put(out, bytes);
    }
    let mut swapped = bytes.to_vec();
    swap_to_native(&mut swapped, dtype);
    put(out, &swapped)
}

fn put(out: &mut impl Write, bytes: &[u8]) -> Result<(), Error> {
    out.write_all(bytes)
        .map_err(|error| Error::unknown(format!("failed to write tensors: {error}")))
}
