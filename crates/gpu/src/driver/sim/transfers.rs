//! Calls on memory of devices and pinned memory of the host, copies and fills.

use tfrt_host::memory::{HostBuffer, OwnedWriting};

use super::call::Entered;
use super::{FindingKind, Pinned, State, Work};
use crate::driver::{
    DevicePointer, Fill, GpuError, GpuErrorKind, GpuResult, MemoryInfo, RawContext, RawPinned,
    RawStream, Transfer,
};

impl Entered<'_> {
    pub(super) fn allocate(
        &mut self,
        context: RawContext,
        len_bytes: usize,
    ) -> GpuResult<DevicePointer> {
        self.context(context)?;
        if len_bytes == 0 {
            return self.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let device = self.device_of(context.0);
        let most = self.state.options.len_bytes;
        if len_bytes > most - self.state.used_bytes[device] {
            return Err(GpuError::new(
                self.call,
                "CUDA_ERROR_OUT_OF_MEMORY",
                GpuErrorKind::Exhausted,
            ));
        }
        self.state.used_bytes[device] += len_bytes;
        // A pattern that makes numbers of any type no numbers, or very large ones.
        let address = self.state.memory.allocate(context.0, len_bytes, 0xff);
        Ok(DevicePointer(address))
    }

    pub(super) fn free(&mut self, context: RawContext, pointer: DevicePointer) -> GpuResult<()> {
        self.context(context)?;
        let State { memory, host, .. } = &mut *self.state;
        match memory
            .free(pointer.0, host)
            .map(|block| (block.len, block.context))
        {
            Some((len, owner)) => {
                let device = self.device_of(owner);
                self.state.used_bytes[device] -= len;
                match owner == context.0 {
                    true => Ok(()),
                    false => self.of_another("block", pointer.0),
                }
            }
            None => self.found(
                "CUDA_ERROR_INVALID_VALUE",
                FindingKind::BadHandle,
                format!("no block begins at {pointer}"),
            ),
        }
    }

    pub(super) fn memory_info(&mut self, context: RawContext) -> GpuResult<MemoryInfo> {
        self.context(context)?;
        let total_bytes = self.state.options.len_bytes;
        let free_bytes = total_bytes - self.state.used_bytes[self.device_of(context.0)];
        Ok(MemoryInfo {
            free_bytes,
            total_bytes,
        })
    }

    pub(super) fn register(
        &mut self,
        context: RawContext,
        buffer: HostBuffer,
    ) -> GpuResult<RawPinned> {
        self.context(context)?;
        if buffer.len_bytes() == 0 {
            return self.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let handle = self.handle();
        let pinned = Pinned {
            context: context.0,
            buffer,
            place: None,
            lent: None,
        };
        self.state.pinned.insert(handle, pinned);
        Ok(RawPinned(handle))
    }

    pub(super) fn unregister(&mut self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        self.context(context)?;
        let Some(found) = self.state.pinned.remove(&pinned.0) else {
            return self.found(
                "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
                FindingKind::BadHandle,
                format!("no pinned buffer {}", pinned.0),
            );
        };
        if let Some(place) = found.place {
            let State { memory, host, .. } = &mut *self.state;
            memory.free(place, host);
        }
        if found.buffer.write().is_err() {
            let text = format!(
                "pinned buffer {} is taken away while a copy may use it",
                pinned.0
            );
            self.state.memory.find(FindingKind::DestroyedInUse, text);
        }
        Ok(())
    }

    pub(super) fn lend(
        &mut self,
        context: RawContext,
        pinned: RawPinned,
        right: OwnedWriting,
    ) -> GpuResult<DevicePointer> {
        self.context(context)?;
        let (place, len) = match self.state.pinned.get(&pinned.0) {
            Some(found) if found.context != context.0 => {
                return self.of_another("pinned buffer", pinned.0);
            }
            Some(found) => (found.place, found.buffer.len_bytes()),
            None => return self.refused("CUDA_ERROR_INVALID_VALUE"),
        };
        if right.len_bytes() != len {
            return self.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let memory = &mut self.state.memory;
        let place = place.unwrap_or_else(|| memory.allocate(context.0, len, 0));
        memory.set(place, &right);
        if let Some(found) = self.state.pinned.get_mut(&pinned.0) {
            found.place = Some(place);
            found.lent = Some(right);
        }
        Ok(DevicePointer(place))
    }

    pub(super) fn take_back(&mut self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        // A lost context gives back what it has.
        let State {
            pinned: all,
            memory,
            host,
            ..
        } = &mut *self.state;
        if let Some(found) = all.get_mut(&pinned.0)
            && let (Some(place), Some(mut right)) = (found.place, found.lent.take())
        {
            right.copy_from_slice(&memory.get(place, host));
        }
        self.context(context)
    }

    pub(super) fn copy(
        &mut self,
        context: RawContext,
        stream: RawStream,
        transfer: Transfer,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        let name = match &transfer {
            Transfer::Up { .. } => "copy to the device",
            Transfer::Down { .. } => "copy to the host",
            Transfer::Within { .. } => "copy within the device",
        };
        if !matches!(transfer, Transfer::Within { .. }) {
            self.expect_no_capture(at)?;
        }
        self.push_or_record(at, name, Work::Copy(transfer));
        self.context(context)
    }

    pub(super) fn fill(
        &mut self,
        context: RawContext,
        stream: RawStream,
        at: DevicePointer,
        value: Fill,
        n: usize,
    ) -> GpuResult<()> {
        let queue = self.stream(context, stream)?;
        if !at.0.is_multiple_of(value.len_bytes() as u64) {
            return self.found(
                "CUDA_ERROR_INVALID_VALUE",
                FindingKind::Misaligned,
                format!("{at} is no place for {value:?}"),
            );
        }
        self.push_or_record(queue, "fill", Work::Fill { at: at.0, value, n });
        self.context(context)
    }
}
