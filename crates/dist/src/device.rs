//! [`RemoteDevice`]: a device of another task, whose memory holds objects that only their names lead to.

use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error};
use tfrt_host::device::{
    Device, DeviceBuffer, DeviceMemory, DeviceSlice, MemoryKind, Source, Target,
};
use tfrt_host::{DeviceId, DeviceKind, DeviceRef, RequestContext};
use tfrt_tensor::{DeviceTensor, Tensor, TensorMetadata};

use crate::names::RemoteId;

/// A device of another task.
#[derive(Debug)]
pub struct RemoteDevice {
    name: String,
    kind: DeviceKind,
}

impl RemoteDevice {
    /// Makes the counterpart of a device of a kind, which is there a `cpu` and here a `remote_cpu`.
    pub fn new(name: &str, kind: DeviceKind) -> RemoteDevice {
        RemoteDevice {
            name: name.to_owned(),
            kind: DeviceKind::interned(&format!("remote_{}", kind.name())),
        }
    }
}

impl Device for RemoteDevice {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Remote
    }

    fn allocate(&self, _: &RequestContext, _: usize, _: usize) -> Result<DeviceMemory, Error> {
        let name = &self.name;
        Err(Error::unimplemented(format!(
            "memory of {name} is allocated there: call a function that makes the tensor"
        )))
    }

    fn copy(&self, _: Source, _: Target, _: &[AnyAsyncValue]) -> AsyncValue<Chain> {
        let name = &self.name;
        AsyncValue::from_error(Error::unimplemented(format!(
            "a tensor on {name} is not copied: let a function there send it (tfrt_dist.send_bytes)"
        )))
    }
}

/// The memory of a tensor of another task.
#[derive(Debug)]
pub struct RemoteBuffer {
    device: DeviceId,
    metadata: TensorMetadata,
    len_bytes: usize,
    id: RemoteId,
}

impl DeviceBuffer for RemoteBuffer {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn describe(&self) -> String {
        let TensorMetadata { dtype, shape } = &self.metadata;
        let id = &self.id.id;
        format!("RemoteTensor : {id} dtype = {dtype}, shape = {shape}")
    }
}

/// Returns a tensor of another task, which is there, as one of a device.
///
/// # Errors
///
/// `ResourceExhausted` if no memory could hold such a tensor, `InvalidArgument` if its elements have no size.
pub fn remote_tensor(
    device: &DeviceRef,
    metadata: TensorMetadata,
    id: RemoteId,
) -> Result<Tensor, Error> {
    let len_bytes = metadata.len_bytes()?;
    let buffer: DeviceMemory = Arc::new(RemoteBuffer {
        device: device.id(),
        metadata: metadata.clone(),
        len_bytes,
        id,
    });
    let whole = DeviceSlice::new(buffer, 0..len_bytes).expect("it is the whole");
    let ready = AsyncValue::available(Chain);
    DeviceTensor::new(device.clone(), metadata, whole, ready).map(Tensor::Device)
}

/// Returns the name of a tensor of another task; `None` for any other tensor.
pub fn remote_id(tensor: &Tensor) -> Option<&RemoteId> {
    match tensor {
        Tensor::Device(tensor) => tensor
            .elements()
            .downcast()
            .map(|own: &RemoteBuffer| &own.id),
        _ => None,
    }
}

/// Returns type and shape as bytes: 64-bit words, little-endian.
pub fn metadata_to_bytes(metadata: &TensorMetadata) -> Vec<u8> {
    metadata
        .to_words()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// Reads type and shape.
///
/// # Errors
///
/// `InvalidArgument` if the bytes are none.
pub fn metadata_from_bytes(bytes: &[u8]) -> Result<TensorMetadata, Error> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Error::invalid_argument(format!(
            "expected metadata of 64-bit words, found {} bytes",
            bytes.len()
        )));
    }
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    TensorMetadata::from_words(&words)
}
