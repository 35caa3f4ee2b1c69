//! Calls on modules, and launches of their kernels.

use std::sync::Arc;

use super::call::Entered;
use super::{FindingKind, State, Work, ptx};
use crate::driver::{
    Argument, DevicePointer, FunctionInfo, GpuError, GpuErrorKind, GpuResult, Grid, RawContext,
    RawFunction, RawModule, RawStream,
};

impl Entered<'_> {
    pub(super) fn load_module(
        &mut self,
        context: RawContext,
        image: &[u8],
    ) -> GpuResult<RawModule> {
        self.context(context)?;
        let wrong = |code, detail: String| {
            Err(GpuError::new("cuModuleLoadData", code, GpuErrorKind::Refused).detail(detail))
        };
        let Ok(text) = std::str::from_utf8(image) else {
            return wrong(
                "CUDA_ERROR_INVALID_IMAGE",
                "it is no text of PTX".to_owned(),
            );
        };
        let text = text.trim_end_matches('\0');
        if !text.contains(".version") {
            return wrong(
                "CUDA_ERROR_INVALID_IMAGE",
                "it has no line .version".to_owned(),
            );
        }
        let memory = &mut self.state.memory;
        let mut places = Vec::new();
        let mut place = |bytes: &[u8]| {
            let at = memory.allocate(context.0, bytes.len(), 0);
            memory.set(at, bytes);
            places.push(at);
            at
        };
        let parsed = ptx::parse(text, &mut place);
        match parsed {
            Ok(module) => {
                let handle = self.handle();
                self.state
                    .modules
                    .insert(handle, (context.0, Arc::new(module)));
                Ok(RawModule(handle))
            }
            Err(error) => {
                let State { memory, host, .. } = &mut *self.state;
                for at in places {
                    memory.free(at, host);
                }
                wrong("CUDA_ERROR_INVALID_PTX", error)
            }
        }
    }

    pub(super) fn unload_module(
        &mut self,
        context: RawContext,
        module: RawModule,
    ) -> GpuResult<()> {
        self.context(context)?;
        match self.state.modules.remove(&module.0) {
            Some((_, module)) => {
                if Arc::strong_count(&module) > 1 {
                    let text = "a module is unloaded while a launch of it is queued".to_owned();
                    self.state.memory.find(FindingKind::DestroyedInUse, text);
                }
                let State { memory, host, .. } = &mut *self.state;
                for global in &module.globals {
                    memory.free(global.address, host);
                }
                Ok(())
            }
            None => self.found(
                "CUDA_ERROR_INVALID_HANDLE",
                FindingKind::BadHandle,
                format!("no module {}", module.0),
            ),
        }
    }

    pub(super) fn function(
        &mut self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<RawFunction> {
        let found = self.module(context, module.0)?;
        match found.kernels.iter().position(|kernel| kernel.name == name) {
            // The module's handle, and the kernel's place in it.
            Some(at) => Ok(RawFunction(module.0 << 16 | at as u64)),
            None => Err(
                GpuError::new(self.call, "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Refused)
                    .detail(format!("no kernel '{name}'")),
            ),
        }
    }

    pub(super) fn global(
        &mut self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<(DevicePointer, usize)> {
        let found = self.module(context, module.0)?;
        let global = found.globals.iter().find(|global| global.name == name);
        match global {
            Some(global) => Ok((DevicePointer(global.address), global.len)),
            None => Err(
                GpuError::new(self.call, "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Refused)
                    .detail(format!("no variable '{name}'")),
            ),
        }
    }

    pub(super) fn function_info(
        &mut self,
        context: RawContext,
        function: RawFunction,
    ) -> GpuResult<FunctionInfo> {
        let (module, at) = self.kernel(context, function)?;
        let kernel = &module.kernels[at];
        Ok(FunctionInfo {
            max_threads: kernel.max_threads.unwrap_or(1024),
            shared_bytes: kernel.shared_bytes as u32,
            parameters: Some(kernel.parameters.iter().map(|(_, len)| *len).collect()),
        })
    }

    pub(super) fn launch(
        &mut self,
        context: RawContext,
        stream: RawStream,
        function: RawFunction,
        grid: &Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        let (module, kernel) = self.kernel(context, function)?;
        let found = &module.kernels[kernel];
        let [x, y, z] = grid.threads.map(u64::from);
        let n_threads = x * y * z;
        let most = u64::from(found.max_threads.unwrap_or(1024));
        let is_too_large =
            x > 1024 || y > 1024 || grid.blocks[1] > 65535 || grid.blocks[2] > 65535 || z > 64;
        if grid.blocks.contains(&0) || n_threads == 0 || n_threads > most || is_too_large {
            return self.refused("CUDA_ERROR_INVALID_VALUE");
        }
        if found.shared_bytes + grid.shared_bytes as usize > 48 << 10 {
            return self.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let mut parameters = Vec::with_capacity(found.parameter_bytes());
        let sizes = found.parameters.iter().zip(arguments);
        for ((offset, len), argument) in sizes {
            parameters.resize(*offset, 0);
            argument.write_to(&mut parameters);
            if parameters.len() != offset + len {
                let text = format!(
                    "kernel {} takes {len} bytes at {offset}, was given {argument:?}",
                    found.name
                );
                return self.found("CUDA_ERROR_INVALID_VALUE", FindingKind::OutOfBounds, text);
            }
        }
        if arguments.len() != found.parameters.len() {
            let text = format!(
                "kernel {} takes {} arguments, was given {}",
                found.name,
                found.parameters.len(),
                arguments.len()
            );
            return self.found("CUDA_ERROR_INVALID_VALUE", FindingKind::OutOfBounds, text);
        }
        let name = format!("launch of {}", found.name);
        self.push_or_record(
            at,
            &name,
            Work::Launch {
                module,
                kernel,
                grid: *grid,
                parameters,
            },
        );
        self.context(context)
    }
}
