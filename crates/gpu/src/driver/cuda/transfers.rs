//! Memory, pinned memory of the host, copies and fills by NVIDIA's driver.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use tfrt_host::memory::{HostBuffer, OwnedWriting};

use super::entered::expect_same;
use super::owned::{Pinned, Right, call, lock, pointer};
use super::{Cuda, SUCCESS};
use crate::driver::{
    DevicePointer, Fill, GpuResult, MemoryInfo, RawContext, RawPinned, RawStream, Transfer,
};

impl Cuda {
    pub(super) fn memory_of(&self, context: RawContext) -> GpuResult<MemoryInfo> {
        let entered = self.enter(context, "cuMemGetInfo")?;
        let (mut free_bytes, mut total_bytes) = (0, 0);
        let code = call!(
            self.functions(),
            memory_info(&raw mut free_bytes, &raw mut total_bytes)
        );
        self.check_in(&entered, "cuMemGetInfo", code)?;
        Ok(MemoryInfo {
            free_bytes,
            total_bytes,
        })
    }

    pub(super) fn pin(&self, context: RawContext, buffer: HostBuffer) -> GpuResult<RawPinned> {
        let entered = self.enter(context, "cuMemHostRegister")?;
        let code = call!(
            self.functions(),
            register(pointer(buffer.address()), buffer.len_bytes(), 0)
        );
        self.check_in(&entered, "cuMemHostRegister", code)?;
        let handle = self.handle();
        let pinned = Pinned {
            functions: self.0.functions.clone(),
            context: entered,
            buffer,
            lent: Mutex::default(),
        };
        self.0.pinned.add(handle, Arc::new(pinned));
        Ok(RawPinned(handle))
    }

    pub(super) fn unpin(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        let call = "cuMemHostUnregister";
        self.enter(context, call)?;
        self.0.pinned.take(pinned.0, call).map(drop)
    }

    pub(super) fn lend_pinned(
        &self,
        context: RawContext,
        pinned: RawPinned,
        right: OwnedWriting,
    ) -> GpuResult<DevicePointer> {
        let call = "cuMemHostGetDevicePointer";
        let entered = self.enter(context, call)?;
        let pinned = self.0.pinned.get(pinned.0, call)?;
        expect_same(&entered, &pinned.context, call)?;
        let mut address = 0;
        let start = pointer(pinned.buffer.address());
        let code = call!(self.functions(), registered(&raw mut address, start, 0));
        self.check_in(&entered, call, code)?;
        *lock(&pinned.lent) = Some(right);
        Ok(DevicePointer(address))
    }

    pub(super) fn take_back_pinned(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        let call = "cuMemHostGetDevicePointer";
        self.enter(context, call)?;
        let pinned = self.0.pinned.get(pinned.0, call)?;
        drop(lock(&pinned.lent).take());
        Ok(())
    }

    pub(super) fn queue_copy(
        &self,
        context: RawContext,
        stream: RawStream,
        transfer: Transfer,
    ) -> GpuResult<()> {
        let call = "cuMemcpyAsync";
        let stream = self.stream(context, stream, call)?;
        if !matches!(transfer, Transfer::Within { .. }) {
            stream.expect_no_capture(call)?;
        }
        let queue = pointer(stream.address);
        // So that a record behind this copy knows of it.
        let mut kept = lock(&stream.kept);
        let (code, right) = match transfer {
            Transfer::Up { from, to } => {
                if from.is_empty() {
                    return Ok(());
                }
                let code = call!(
                    self.functions(),
                    copy_up(to.0, from.as_ptr().cast(), from.len(), queue)
                );
                (code, Some(Right::Reading(from)))
            }
            Transfer::Down { from, to } => {
                if to.len_bytes() == 0 {
                    return Ok(());
                }
                let target: *mut c_void = to.start().as_ptr().cast();
                let code = call!(
                    self.functions(),
                    copy_down(target, from.0, to.len_bytes(), queue)
                );
                (code, Some(Right::Writing(to)))
            }
            Transfer::Within { len_bytes: 0, .. } => return Ok(()),
            Transfer::Within {
                from,
                to,
                len_bytes,
            } => (
                call!(
                    self.functions(),
                    copy_within(to.0, from.0, len_bytes, queue)
                ),
                None,
            ),
        };
        // Also what a call has refused is kept: a code may be that of what ran before.
        if let Some(right) = right {
            kept.n_copies += 1;
            let number = kept.n_copies;
            kept.rights.push_back((number, right));
        }
        drop(kept);
        self.check_in(&stream.context, call, code)
    }

    pub(super) fn queue_fill(
        &self,
        context: RawContext,
        stream: RawStream,
        at: DevicePointer,
        value: Fill,
        n: usize,
    ) -> GpuResult<()> {
        let call = "cuMemsetAsync";
        let stream = self.stream(context, stream, call)?;
        let queue = pointer(stream.address);
        let code = match value {
            _ if n == 0 => SUCCESS,
            Fill::Byte(value) => call!(self.functions(), fill_byte(at.0, value, n, queue)),
            Fill::Half(value) => call!(self.functions(), fill_half(at.0, value, n, queue)),
            Fill::Word(value) => call!(self.functions(), fill_word(at.0, value, n, queue)),
        };
        self.check_in(&stream.context, call, code)
    }
}
