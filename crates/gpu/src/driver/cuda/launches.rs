//! Modules of NVIDIA's driver, and launches of their kernels.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::ffi::{CString, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;

use super::entered::{expect_same, positive};
use super::owned::{Kernel, Module, call, lock, pointer};
use super::{Cuda, SUCCESS};
use crate::driver::{
    Argument, DevicePointer, FunctionInfo, GpuError, GpuErrorKind, GpuResult, Grid, RawContext,
    RawFunction, RawModule, RawStream,
};

impl Cuda {
    pub(super) fn load_image(&self, context: RawContext, image: &[u8]) -> GpuResult<RawModule> {
        use sys::CUjit_option::{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        const LOG_LEN: usize = 4096;
        let call = "cuModuleLoadData";
        let entered = self.enter(context, call)?;
        // A text ends in a zero; behind a compiled image it does no harm.
        let mut image = image.to_vec();
        image.push(0);
        let mut log = vec![0_u8; LOG_LEN];
        let mut options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            with_exposed_provenance_mut(LOG_LEN),
        ];
        let mut module = null_mut();
        let code = call!(
            self.functions(),
            module_load(
                &raw mut module,
                image.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr()
            )
        );
        let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
        let checked = self.check_in(&entered, call, code);
        checked.map_err(|error| match log.is_empty() {
            true => error,
            false => error.detail(String::from_utf8_lossy(log).trim().to_owned()),
        })?;
        let handle = self.handle();
        let module = Module {
            functions: self.0.functions.clone(),
            context: entered,
            address: module.expose_provenance(),
        };
        self.0.modules.add(handle, Arc::new(module));
        Ok(RawModule(handle))
    }

    pub(super) fn unload_image(&self, context: RawContext, module: RawModule) -> GpuResult<()> {
        let call = "cuModuleUnload";
        let entered = self.enter(context, call)?;
        let found = self.0.modules.get(module.0, call)?;
        expect_same(&entered, &found.context, call)?;
        let mut kernels = self
            .0
            .kernels
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        kernels.retain(|_, kernel| !Arc::ptr_eq(&kernel.module, &found));
        drop(kernels);
        let mut last = lock(&entered.last);
        if last
            .as_ref()
            .is_some_and(|kernel| Arc::ptr_eq(&kernel.module, &found))
        {
            *last = None;
        }
        drop(last);
        self.0.modules.take(module.0, call).map(drop)
    }

    pub(super) fn kernel_of(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<RawFunction> {
        let call = "cuModuleGetFunction";
        let entered = self.enter(context, call)?;
        let module = self.0.modules.get(module.0, call)?;
        expect_same(&entered, &module.context, call)?;
        let none = || {
            GpuError::new(call, "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Refused)
                .detail(format!("no kernel '{name}'"))
        };
        let text = CString::new(name).map_err(|_| none())?;
        let mut function = null_mut();
        let code = call!(
            self.functions(),
            module_function(&raw mut function, pointer(module.address), text.as_ptr())
        );
        let checked = self.check_in(&entered, call, code);
        checked.map_err(|error| {
            if error.code == "CUDA_ERROR_NOT_FOUND" {
                none()
            } else {
                error
            }
        })?;
        let handle = self.handle();
        let address = function.expose_provenance();
        let kernel = Arc::new(Kernel {
            name: name.to_owned(),
            module,
            handle,
            address,
        });
        self.0.kernels.add(handle, kernel);
        Ok(RawFunction(handle))
    }

    pub(super) fn variable_of(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<(DevicePointer, usize)> {
        let call = "cuModuleGetGlobal";
        let entered = self.enter(context, call)?;
        let module = self.0.modules.get(module.0, call)?;
        expect_same(&entered, &module.context, call)?;
        let text = CString::new(name).map_err(|_| {
            GpuError::new(call, "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Refused)
                .detail(format!("no variable '{name}'"))
        })?;
        let (mut address, mut len_bytes) = (0, 0);
        let code = call!(
            self.functions(),
            module_global(
                &raw mut address,
                &raw mut len_bytes,
                pointer(module.address),
                text.as_ptr()
            )
        );
        self.check_in(&entered, call, code)?;
        Ok((DevicePointer(address), len_bytes))
    }

    pub(super) fn info_of(
        &self,
        context: RawContext,
        function: RawFunction,
    ) -> GpuResult<FunctionInfo> {
        use sys::CUfunction_attribute as A;
        let call = "cuFuncGetAttribute";
        let kernel = self.kernel(context, function, call)?;
        let get = |attribute| {
            let mut value = 0;
            let code = call!(
                self.functions(),
                function_attribute(&raw mut value, attribute, pointer(kernel.address))
            );
            self.check(call, code).map(|()| positive(value))
        };
        let parameters = self.functions().parameter.map(|parameter| {
            let mut sizes = Vec::new();
            let (mut offset, mut size) = (0, 0);
            // SAFETY: as of `call!`; the driver tells when there is no parameter of the number.
            while unsafe {
                parameter(
                    pointer(kernel.address),
                    sizes.len(),
                    &raw mut offset,
                    &raw mut size,
                )
            } == SUCCESS
            {
                sizes.push(size);
            }
            sizes
        });
        Ok(FunctionInfo {
            max_threads: get(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared_bytes: get(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            parameters,
        })
    }

    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// See [`Driver::launch`](crate::Driver::launch).
    pub(super) unsafe fn queue_launch(
        &self,
        context: RawContext,
        stream: RawStream,
        function: RawFunction,
        grid: &Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        let call = "cuLaunchKernel";
        let stream = self.stream(context, stream, call)?;
        let kernel = self.kernel(context, function, call)?;
        // The driver copies each argument from where it lies, before it comes back.
        let mut bytes: Vec<u8> = Vec::with_capacity(256);
        let mut starts = Vec::with_capacity(16);
        for argument in arguments {
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            starts.push(bytes.len());
            argument.write_to(&mut bytes);
        }
        let first = bytes.as_mut_ptr();
        let mut parameters: Vec<*mut c_void> = starts
            .iter()
            .map(|start| first.wrapping_add(*start).cast())
            .collect();
        let mut last = lock(&stream.context.last);
        if last
            .as_ref()
            .is_none_or(|last| last.handle != kernel.handle)
        {
            *last = Some(kernel.clone());
        }
        drop(last);
        let ([gx, gy, gz], [bx, by, bz]) = (grid.blocks, grid.threads);
        let (function, queue) = (pointer(kernel.address), pointer(stream.address));
        let code = call!(
            self.functions(),
            launch(
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                grid.shared_bytes,
                queue,
                parameters.as_mut_ptr(),
                null_mut()
            )
        );
        self.check_in(&stream.context, call, code)
    }
}
