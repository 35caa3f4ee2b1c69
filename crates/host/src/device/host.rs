//! [`HostDevice`]: the host's own memory and processors as a device.

use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error, when_all};

use super::contract::{
    Device, DeviceBuffer, DeviceMemory, DeviceSlice, MemoryKind, Source, Target,
};
use super::{DeviceId, DeviceKind};
use crate::RequestContext;
use crate::memory::HostBuffer;

/// The host's memory and processors. A host may have several by different names; all have the same memory.
#[derive(Debug)]
pub struct HostDevice {
    id: DeviceId,
    name: Arc<str>,
}

impl HostDevice {
    /// Makes the device.
    pub fn new(id: DeviceId, name: &str) -> HostDevice {
        HostDevice {
            id,
            name: name.into(),
        }
    }
}

/// A host buffer as memory of a device.
struct Memory {
    device: DeviceId,
    buffer: HostBuffer,
}

impl DeviceBuffer for Memory {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn len_bytes(&self) -> usize {
        self.buffer.len_bytes()
    }

    fn describe(&self) -> String {
        self.buffer.to_string()
    }
}

impl Device for HostDevice {
    fn kind(&self) -> DeviceKind {
        DeviceKind::CPU
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn allocate(
        &self,
        request: &RequestContext,
        len_bytes: usize,
        alignment: usize,
    ) -> Result<DeviceMemory, Error> {
        let allocator = request.host().allocator();
        let buffer = HostBuffer::zeroed(allocator, len_bytes, alignment).ok_or_else(|| {
            let name = &self.name;
            Error::resource_exhausted(format!("there are no {len_bytes} bytes on {name}"))
        })?;
        let device = self.id;
        Ok(Arc::new(Memory { device, buffer }))
    }

    /// Copies on the thread that asks, or on the one that settles the last of `after`.
    fn copy(&self, from: Source, to: Target, after: &[AnyAsyncValue]) -> AsyncValue<Chain> {
        if after.iter().all(AnyAsyncValue::is_plain) {
            return copy_now(from, to).into();
        }
        when_all(after).try_map(move |_| copy_now(from, to))
    }

    fn direct(&self, other: &dyn Device) -> bool {
        other.memory() == MemoryKind::Host
    }
}

fn copy_now(from: Source, to: Target) -> Result<Chain, Error> {
    from.expect_len_of(&to)?;
    match from {
        Source::Host(reading) => put(&reading, to),
        Source::Device(slice) => put(&buffer_of(&slice)?.read()?, to),
    }?;
    Ok(Chain)
}

fn put(bytes: &[u8], to: Target) -> Result<(), Error> {
    match to {
        Target::Host(mut writing) => writing.copy_from_slice(bytes),
        Target::Device(slice) => buffer_of(&slice)?.write()?.copy_from_slice(bytes),
    }
    Ok(())
}

/// Returns the buffer behind memory of a host's device.
fn buffer_of(slice: &DeviceSlice) -> Result<HostBuffer, Error> {
    let memory = slice.downcast::<Memory>();
    let buffer = memory.and_then(|memory| memory.buffer.slice(slice.range()));
    buffer.ok_or_else(|| {
        let found = slice.memory().describe();
        Error::invalid_argument(format!("expected memory of the host, found {found}"))
    })
}
