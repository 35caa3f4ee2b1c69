//! [`DeviceTensor`]: a tensor whose elements only its device reads.

use std::fmt;
use std::sync::Arc;

use tfrt_host::device::{DeviceSlice, TensorText};
use tfrt_host::{AsyncValue, Chain, DeviceRef, Error};

use crate::TensorMetadata;

/// A tensor in memory that only its device reads: a GPU's, another process's. Clones share the memory.
///
/// Elements lie as in a dense tensor, in row-major order. The host reads them by [`transfer`](crate::transfer) alone.
#[derive(Clone)]
pub struct DeviceTensor(
    // Behind one address, so that tensors of any format are small.
    Arc<Parts>,
);

struct Parts {
    metadata: TensorMetadata,
    device: DeviceRef,
    // Invariant: memory of the device, of the size that the metadata says.
    elements: DeviceSlice,
    ready: AsyncValue<Chain>,
}

impl DeviceTensor {
    /// Wraps a part of a device's memory as a tensor. `ready` resolves when readers on that device may enqueue work;
    /// it fails if there will be no elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the part is not of the size of the tensor, or memory of another device.
    pub fn new(
        device: DeviceRef,
        metadata: TensorMetadata,
        elements: DeviceSlice,
        ready: AsyncValue<Chain>,
    ) -> Result<DeviceTensor, Error> {
        let (wanted, found) = (metadata.len_bytes()?, elements.len_bytes());
        if wanted != found {
            let message =
                format!("a tensor of {metadata} takes {wanted} bytes, the memory has {found}");
            return Err(Error::invalid_argument(message));
        }
        if elements.device() != device.id() {
            let (name, found) = (device.name(), elements.memory().describe());
            let message = format!("expected memory of the device {name}, found {found}");
            return Err(Error::invalid_argument(message));
        }
        Ok(DeviceTensor(Arc::new(Parts {
            metadata,
            device,
            elements,
            ready,
        })))
    }

    /// Type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        &self.0.metadata
    }

    /// Returns the device.
    pub fn device(&self) -> &DeviceRef {
        &self.0.device
    }

    /// Returns the memory of the elements.
    pub fn elements(&self) -> &DeviceSlice {
        &self.0.elements
    }

    /// Returns the chain that resolves when readers on the device may enqueue work.
    pub fn ready(&self) -> &AsyncValue<Chain> {
        &self.0.ready
    }
}

/// Prints the device's description of its memory.
impl fmt::Display for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (metadata, elements) = (&self.0.metadata, &self.0.elements);
        let text = TensorText {
            dtype: &metadata.dtype,
            shape: &metadata.shape,
            begin: elements.range().start,
        };
        f.write_str(&elements.memory().describe_tensor(&text))
    }
}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.metadata(), self.device().name())
    }
}
