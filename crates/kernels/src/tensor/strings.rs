//! `tfrt_sht`, `tfrt_sht_sync`: kernels on tensors of strings.

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry};
use tfrt_host::{DType, Error, HostContext};
use tfrt_tensor::{StringHostTensor, Tensor, TensorMetadata, TensorShape};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add("tfrt_sht.create_tensor", create);
}

pub(super) fn register_synchronous(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_sht_sync.create_tensor", create)
        .add("tfrt_sht_sync.create_uninitialized_tensor", uninitialized);
}

/// The most strings of a tensor, whatever the host allows.
pub const MAX_STRINGS: usize = 1 << 24;

/// `%t = "tfrt_sht.create_tensor"() {shape = [2], values = ["a", "b"]}`
fn create(
    shape: Attr<&[i64]>,
    values: Attr<AttributeView<'_>>,
    host: &HostContext,
) -> Result<Tensor, Error> {
    let shape = TensorShape::from_i64(&shape)?;
    let values = values
        .aggregate()
        .ok_or_else(|| Error::invalid_argument("attribute 'values' is no list of strings"))?;
    let n_values = values.len();
    if shape.n_elements() != Some(n_values) {
        return Err(Error::invalid_argument(format!(
            "Shape mismatch: {n_values} strings for a tensor of shape {shape}"
        )));
    }
    let mut strings = room_for(n_values, &shape, host)?;
    for index in 0..n_values {
        let string = values.get(index).and_then(|value| value.as_bytes());
        let string =
            string.ok_or_else(|| Error::invalid_argument(format!("value {index} is no string")))?;
        strings.push(string.to_vec());
    }
    Ok(StringHostTensor::new(shape, strings)?.into())
}

/// `%t = "tfrt_sht_sync.create_uninitialized_tensor"() {shape = [2]}`: empty strings.
fn uninitialized(shape: Attr<&[i64]>, host: &HostContext) -> Result<Tensor, Error> {
    let metadata = TensorMetadata::new(DType::String, TensorShape::from_i64(&shape)?);
    let n_strings = metadata.n_elements()?;
    let mut strings = room_for(n_strings, &metadata.shape, host)?;
    strings.resize(n_strings, Vec::new());
    Ok(StringHostTensor::new(metadata.shape, strings)?.into())
}

fn room_for(
    n_strings: usize,
    shape: &TensorShape,
    host: &HostContext,
) -> Result<Vec<Vec<u8>>, Error> {
    let allowed = host.limits().max_memory.unwrap_or(usize::MAX) / size_of::<Vec<u8>>();
    let mut strings = Vec::new();
    if n_strings > allowed.min(MAX_STRINGS) || strings.try_reserve_exact(n_strings).is_err() {
        return Err(no_memory(shape));
    }
    Ok(strings)
}

/// Makes the error that there is no memory for so many strings.
pub(crate) fn no_memory(shape: &TensorShape) -> Error {
    Error::resource_exhausted(format!("Cannot allocate tensor of str {shape}"))
}
