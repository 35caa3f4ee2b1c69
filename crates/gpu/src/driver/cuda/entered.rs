//! How calls of NVIDIA's driver begin and end: handles are looked up, the context is made current, codes become errors.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudarc::driver::sys;

use super::owned::{Context, Event, Kernel, Stream, call, lock, pointer};
use super::{Cuda, SUCCESS};
use crate::driver::load::Functions;
use crate::driver::{
    DeviceOrdinal, GpuError, GpuErrorKind, GpuResult, RawContext, RawEvent, RawFunction, RawStream,
};

impl Cuda {
    pub(super) fn functions(&self) -> &Functions {
        &self.0.functions
    }

    pub(super) fn handle(&self) -> u64 {
        // Ordering: numbers need to differ, no more.
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn check(&self, call: &'static str, code: u32) -> GpuResult<()> {
        match code {
            SUCCESS => Ok(()),
            _ => Err(self.error(call, code)),
        }
    }

    #[cold]
    pub(super) fn error(&self, call: &'static str, code: u32) -> GpuError {
        let mut name: *const c_char = null();
        let told = call!(self.functions(), error_name(code, &raw mut name));
        let name = match told == SUCCESS && !name.is_null() {
            // SAFETY: the driver gives a text of its own that ends in a zero, and stays.
            true => unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned(),
            false => format!("CUDA error {code}"),
        };
        let kind = match code {
            2 => GpuErrorKind::Exhausted,
            3 | 34 | 100 | 803 | 804 => GpuErrorKind::Unavailable,
            // What loses the context: addresses, launches, hardware.
            214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 999 => GpuErrorKind::Sticky,
            _ => GpuErrorKind::Refused,
        };
        GpuError {
            call,
            code: name.into(),
            kind,
            detail: String::new(),
        }
    }

    /// Checks a code of a call for a context: of a lost one it is told what was launched last.
    pub(super) fn check_in(
        &self,
        context: &Context,
        call: &'static str,
        code: u32,
    ) -> GpuResult<()> {
        self.check(call, code)
            .map_err(|error| match (error.kind, &*lock(&context.last)) {
                (GpuErrorKind::Sticky, Some(kernel)) => {
                    let detail = format!(
                        "the context is lost; the last launch before was of kernel {}",
                        kernel.name
                    );
                    error.detail(detail)
                }
                _ => error,
            })
    }

    /// Makes a context this thread's current one.
    pub(super) fn enter(&self, context: RawContext, call: &'static str) -> GpuResult<Arc<Context>> {
        let found = self
            .0
            .contexts
            .get(context.0, call)
            .map_err(|error| GpuError {
                code: "CUDA_ERROR_INVALID_CONTEXT".into(),
                ..error
            })?;
        self.enter_found(&found, call)?;
        Ok(found)
    }

    pub(super) fn enter_found(&self, context: &Context, call: &'static str) -> GpuResult<()> {
        let code = call!(self.functions(), set_current(pointer(context.address)));
        self.check(call, code)
    }

    pub(super) fn stream(
        &self,
        context: RawContext,
        stream: RawStream,
        call: &'static str,
    ) -> GpuResult<Arc<Stream>> {
        let entered = self.enter(context, call)?;
        let stream = self.0.streams.get(stream.0, call)?;
        expect_same(&entered, &stream.context, call)?;
        Ok(stream)
    }

    pub(super) fn event(
        &self,
        context: RawContext,
        event: RawEvent,
        call: &'static str,
    ) -> GpuResult<Arc<Event>> {
        let entered = self.enter(context, call)?;
        let event = self.0.events.get(event.0, call)?;
        expect_same(&entered, &event.context, call)?;
        Ok(event)
    }

    pub(super) fn kernel(
        &self,
        context: RawContext,
        function: RawFunction,
        call: &'static str,
    ) -> GpuResult<Arc<Kernel>> {
        let entered = self.enter(context, call)?;
        let kernel = self.0.kernels.get(function.0, call)?;
        expect_same(&entered, &kernel.module.context, call)?;
        Ok(kernel)
    }

    pub(super) fn attribute(
        &self,
        device: DeviceOrdinal,
        attribute: sys::CUdevice_attribute,
    ) -> GpuResult<i32> {
        let mut value = 0;
        let code = call!(
            self.functions(),
            device_attribute(&raw mut value, attribute, ordinal(device))
        );
        self.check("cuDeviceGetAttribute", code)?;
        Ok(value)
    }
}

pub(super) fn expect_same(
    one: &Arc<Context>,
    other: &Arc<Context>,
    call: &'static str,
) -> GpuResult<()> {
    match Arc::ptr_eq(one, other) {
        true => Ok(()),
        false => {
            let error = GpuError::new(call, "CUDA_ERROR_INVALID_HANDLE", GpuErrorKind::Refused);
            Err(error.detail("a handle of another context"))
        }
    }
}

pub(super) fn ordinal(device: DeviceOrdinal) -> c_int {
    // Invariant: `device` made it of such a number.
    c_int::try_from(device.0).unwrap_or(-1)
}

pub(super) fn positive(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
