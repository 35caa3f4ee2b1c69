//! Devices and contexts of NVIDIA's driver.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;

use super::Cuda;
use super::entered::{ordinal, positive};
use super::owned::{Context, call, lock};
use crate::driver::{DeviceOrdinal, DeviceProperties, GpuResult, RawContext};

impl Cuda {
    pub(super) fn properties_of(&self, device: DeviceOrdinal) -> GpuResult<DeviceProperties> {
        use sys::CUdevice_attribute as A;
        let mut name = [0; 256];
        let code = call!(
            self.functions(),
            device_name(name.as_mut_ptr().cast(), 256, ordinal(device))
        );
        self.check("cuDeviceGetName", code)?;
        let mut len_bytes = 0;
        let code = call!(
            self.functions(),
            device_memory(&raw mut len_bytes, ordinal(device))
        );
        self.check("cuDeviceTotalMem", code)?;
        let name: &[u8] = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let get = |attribute| self.attribute(device, attribute);
        Ok(DeviceProperties {
            name: String::from_utf8_lossy(name).into_owned(),
            capability: (
                get(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                get(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            len_bytes,
            n_multiprocessors: positive(get(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
            max_threads: positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?),
            max_block: [
                positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?),
                positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?),
                positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?),
            ],
            max_grid: [
                positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?),
                positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?),
                positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?),
            ],
            max_shared_bytes: positive(get(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?),
        })
    }

    pub(super) fn retain(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        let mut context = null_mut();
        let code = call!(
            self.functions(),
            primary_retain(&raw mut context, ordinal(device))
        );
        self.check("cuDevicePrimaryCtxRetain", code)?;
        // One handle for all users of a device: the driver gives one address.
        let handle = device.0 + 1 + (1 << 48);
        let mut contexts = self
            .0
            .contexts
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.entry(handle).or_insert_with(|| {
            Arc::new(Context {
                address: context.expose_provenance(),
                last: Mutex::default(),
            })
        });
        Ok(RawContext(handle))
    }

    pub(super) fn make_context(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        let mut context = null_mut();
        let code = call!(
            self.functions(),
            context_create(&raw mut context, 0, ordinal(device))
        );
        self.check("cuCtxCreate", code)?;
        let handle = self.handle();
        let context = Context {
            address: context.expose_provenance(),
            last: Mutex::default(),
        };
        self.0.contexts.add(handle, Arc::new(context));
        Ok(RawContext(handle))
    }

    pub(super) fn wait_for_all(&self, context: RawContext) -> GpuResult<()> {
        let call = "cuCtxSynchronize";
        let entered = self.enter(context, call)?;
        self.expect_no_capture_in(&entered, call)?;
        let streams = self
            .0
            .streams
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let own = streams
            .values()
            .filter(|stream| Arc::ptr_eq(&stream.context, &entered));
        let all: Vec<_> = own
            .map(|stream| (stream.clone(), lock(&stream.kept).n_copies))
            .collect();
        drop(streams);
        let code = call!(self.functions(), context_synchronize());
        self.check_in(&entered, call, code)?;
        for (stream, n_copies) in all {
            stream.let_go(n_copies);
        }
        Ok(())
    }
}
