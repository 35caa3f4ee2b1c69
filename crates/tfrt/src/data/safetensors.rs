//! Tensors in files of safetensors, which have names for several.

use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::host::memory::HostBuffer;
use tfrt::tensor::safetensors::{self, FileTensor};
use tfrt::tensor::subbyte::{SubbyteTensor, SubbyteType};
use tfrt::tensor::{DenseHostTensor, Tensor};

/// The most bytes of a header that the crate takes.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Returns whether bytes begin like such a file: the length of a header, and an object.
pub fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    let length = u64::from_le_bytes(*length);
    length <= MAX_HEADER_BYTES && rest.first() == Some(&b'{')
}

/// Reads the tensor of a key, or the one with the name of the input, or the only one.
///
/// # Errors
///
/// If it is no such file, or has no such tensor.
pub fn read(
    bytes: Vec<u8>,
    pick: impl FnOnce(&[&str]) -> Result<usize, String>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let told = |error: tfrt::Error| error.message().to_owned();
    let file = HostBuffer::from_owner(bytes);
    let mut tensors = safetensors::read_all(&file, allocator).map_err(told)?;
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    let index = pick(&names)?;
    let dense = match tensors.swap_remove(index).1 {
        // The host's own memory, which limits count, holds what stays of the file.
        FileTensor::Dense(tensor) => {
            let reading = tensor.read().map_err(told)?;
            DenseHostTensor::from_bytes(allocator, tensor.metadata().clone(), reading.bytes())
        }
        FileTensor::Compact(tensor) => tensor.to_dense(allocator),
    };
    Ok(dense.map_err(told)?.into())
}

/// Returns a file with one tensor.
///
/// # Errors
///
/// If the format does not have its elements.
pub fn write(name: &str, tensor: &Tensor) -> Result<Vec<u8>, String> {
    let told = |error: tfrt::Error| error.message().to_owned();
    let dtype = tensor.metadata().dtype;
    let Ok(dense) = tensor.as_dense() else {
        return Err(format!("the format has no type of elements for {dtype}"));
    };
    let stored = match SubbyteType::of_dtype(dtype) {
        None => FileTensor::Dense(dense.clone()),
        Some(small) => FileTensor::Compact(packed(dense, small).map_err(told)?),
    };
    safetensors::write_all([(name, &stored)]).map_err(told)
}

/// Packs elements of less than a byte, which dense tensors have a byte each for.
fn packed(dense: &DenseHostTensor, small: SubbyteType) -> Result<SubbyteTensor, tfrt::Error> {
    let reading = dense.read()?;
    let n_bits = small.n_bits();
    let codes = reading.bytes().chunks(8 / n_bits);
    let join = |codes: &[u8]| {
        let mask = u8::MAX >> (8 - n_bits);
        let codes = codes.iter().enumerate();
        codes.fold(0, |byte, (index, code)| {
            byte | (code & mask) << (index * n_bits)
        })
    };
    let bytes: Vec<u8> = codes.map(join).collect();
    let allocator: Arc<dyn HostAllocator> = Arc::new(tfrt::asynchronous::SystemAllocator::new());
    SubbyteTensor::from_bytes(small, dense.shape().clone(), &bytes, &allocator)
}
