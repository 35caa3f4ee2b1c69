//! [`Cuda`]: NVIDIA's driver, opened at run time.
//!
//! A handle is a number of ours, under which a table has the driver's own: so one that was given back is refused,
//! and what a call uses stays until the call is over. Rights of the host that a copy needs are kept by its stream, and
//! let go when an event that was recorded behind the copy is seen to be reached, or the stream was waited for.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::ffi::{CString, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys;
use tfrt_host::memory::{HostBuffer, OwnedWriting};

use super::load::{self, Functions};
use super::{
    Argument, DeviceOrdinal, DevicePointer, DeviceProperties, Driver, Fill, FunctionInfo, GpuError,
    GpuErrorKind, GpuResult, Grid, MemoryInfo, Platform, RawContext, RawEvent, RawExecutable,
    RawFunction, RawGraph, RawModule, RawPinned, RawStream, Transfer,
};

mod entered;
mod graphs;
mod owned;

use entered::{expect_same, ordinal, positive};
use owned::{
    Context, Event, Executable, Graph, Kernel, Module, Pinned, Right, Stream, Table, call, let_go,
    lock, pointer,
};

const SUCCESS: u32 = 0;
const NOT_READY: u32 = 600;

/// NVIDIA's driver. Clones are one.
#[derive(Clone)]
pub struct Cuda(Arc<Inner>);

struct Inner {
    functions: Arc<Functions>,
    library: String,
    next: AtomicU64,
    contexts: Table<Context>,
    streams: Table<Stream>,
    events: Table<Event>,
    modules: Table<Module>,
    kernels: Table<Kernel>,
    pinned: Table<Pinned>,
    graphs: Table<Graph>,
    executables: Table<Executable>,
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cuda({})", self.0.library)
    }
}

impl Cuda {
    /// Opens the driver that the system has.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there is none, if it is too old, or finds no device.
    pub fn open() -> GpuResult<Cuda> {
        let (functions, library) = load::open()?;
        Cuda::with(functions, library)
    }

    /// Opens a library as the driver.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_at(path: &Path) -> GpuResult<Cuda> {
        Cuda::with(load::open_at(path)?, path.display().to_string())
    }

    fn with(functions: Functions, library: String) -> GpuResult<Cuda> {
        let cuda = Cuda(Arc::new(Inner {
            functions: Arc::new(functions),
            library,
            next: AtomicU64::new(1),
            contexts: Table::new(),
            streams: Table::new(),
            events: Table::new(),
            modules: Table::new(),
            kernels: Table::new(),
            pinned: Table::new(),
            graphs: Table::new(),
            executables: Table::new(),
        }));
        let code = call!(cuda.functions(), init(0));
        cuda.check("cuInit", code).map_err(|error| GpuError {
            kind: GpuErrorKind::Unavailable,
            ..error
        })?;
        Ok(cuda)
    }

    /// Returns the name under which the driver was opened.
    pub fn library(&self) -> &str {
        &self.0.library
    }
}

impl Driver for Cuda {
    fn platform(&self) -> Platform {
        Platform::Cuda
    }

    fn version(&self) -> GpuResult<i32> {
        let mut version = 0;
        let code = call!(self.functions(), driver_version(&raw mut version));
        self.check("cuDriverGetVersion", code)?;
        Ok(version)
    }

    fn n_devices(&self) -> GpuResult<i32> {
        let mut n = 0;
        let code = call!(self.functions(), device_count(&raw mut n));
        self.check("cuDeviceGetCount", code)?;
        Ok(n)
    }

    fn device(&self, ordinal: i32) -> GpuResult<DeviceOrdinal> {
        let mut device = 0;
        let code = call!(self.functions(), device_get(&raw mut device, ordinal));
        self.check("cuDeviceGet", code)?;
        match u64::try_from(device) {
            Ok(device) => Ok(DeviceOrdinal(device)),
            Err(_) => Err(self.error("cuDeviceGet", 101)),
        }
    }

    fn properties(&self, device: DeviceOrdinal) -> GpuResult<DeviceProperties> {
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

    fn retain_primary(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
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

    fn release_primary(&self, device: DeviceOrdinal) -> GpuResult<()> {
        let code = call!(self.functions(), primary_release(ordinal(device)));
        self.check("cuDevicePrimaryCtxRelease", code)
    }

    fn create_context(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
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

    fn destroy_context(&self, context: RawContext) -> GpuResult<()> {
        let call = "cuCtxDestroy";
        let taken = self.0.contexts.take(context.0, call)?;
        let code = call!(self.functions(), context_destroy(pointer(taken.address)));
        self.check(call, code)
    }

    fn synchronize_context(&self, context: RawContext) -> GpuResult<()> {
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

    fn create_stream(&self, context: RawContext) -> GpuResult<RawStream> {
        let entered = self.enter(context, "cuStreamCreate")?;
        let mut stream = null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        let code = call!(self.functions(), stream_create(&raw mut stream, flags));
        self.check("cuStreamCreate", code)?;
        let handle = self.handle();
        let stream = Stream {
            functions: self.0.functions.clone(),
            context: entered,
            address: stream.expose_provenance(),
            kept: Mutex::default(),
            capture: Mutex::default(),
        };
        self.0.streams.add(handle, Arc::new(stream));
        Ok(RawStream(handle))
    }

    fn destroy_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        let call = "cuStreamDestroy";
        let found = self.stream(context, stream, call)?;
        found.expect_no_capture(call)?;
        self.0.streams.take(stream.0, call).map(drop)
    }

    fn query_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<bool> {
        let call = "cuStreamQuery";
        let stream = self.stream(context, stream, call)?;
        stream.expect_no_capture(call)?;
        let n_copies = lock(&stream.kept).n_copies;
        match call!(self.functions(), stream_query(pointer(stream.address))) {
            NOT_READY => Ok(false),
            code => {
                self.check_in(&stream.context, call, code)?;
                stream.let_go(n_copies);
                Ok(true)
            }
        }
    }

    fn synchronize_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        let call = "cuStreamSynchronize";
        let stream = self.stream(context, stream, call)?;
        stream.expect_no_capture(call)?;
        let n_copies = lock(&stream.kept).n_copies;
        let code = call!(
            self.functions(),
            stream_synchronize(pointer(stream.address))
        );
        self.check_in(&stream.context, call, code)?;
        stream.let_go(n_copies);
        Ok(())
    }

    fn wait_event(&self, context: RawContext, stream: RawStream, event: RawEvent) -> GpuResult<()> {
        let call = "cuStreamWaitEvent";
        let (stream, event) = (
            self.stream(context, stream, call)?,
            self.event(context, event, call)?,
        );
        stream.expect_no_capture(call)?;
        let code = call!(
            self.functions(),
            stream_wait(pointer(stream.address), pointer(event.address), 0)
        );
        self.check_in(&stream.context, call, code)
    }

    fn create_event(&self, context: RawContext, is_timing: bool) -> GpuResult<RawEvent> {
        let entered = self.enter(context, "cuEventCreate")?;
        let mut event = null_mut();
        let flags = match is_timing {
            true => sys::CUevent_flags_enum::CU_EVENT_DEFAULT,
            false => sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING,
        };
        let code = call!(self.functions(), event_create(&raw mut event, flags as u32));
        self.check("cuEventCreate", code)?;
        let handle = self.handle();
        let event = Event {
            functions: self.0.functions.clone(),
            context: entered,
            address: event.expose_provenance(),
            record: Mutex::default(),
        };
        self.0.events.add(handle, Arc::new(event));
        Ok(RawEvent(handle))
    }

    fn destroy_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        let call = "cuEventDestroy";
        self.event(context, event, call)?;
        self.0.events.take(event.0, call).map(drop)
    }

    fn record_event(
        &self,
        context: RawContext,
        event: RawEvent,
        stream: RawStream,
    ) -> GpuResult<()> {
        let call = "cuEventRecord";
        let (stream, event) = (
            self.stream(context, stream, call)?,
            self.event(context, event, call)?,
        );
        stream.expect_no_capture(call)?;
        let mut record = lock(&event.record);
        let kept = lock(&stream.kept);
        let code = call!(
            self.functions(),
            event_record(pointer(event.address), pointer(stream.address))
        );
        self.check_in(&stream.context, call, code)?;
        *record = Some((Arc::downgrade(&stream), kept.n_copies));
        Ok(())
    }

    fn query_event(&self, context: RawContext, event: RawEvent) -> GpuResult<bool> {
        let call = "cuEventQuery";
        let event = self.event(context, event, call)?;
        let record = lock(&event.record).clone();
        match call!(self.functions(), event_query(pointer(event.address))) {
            NOT_READY => Ok(false),
            code => {
                self.check_in(&event.context, call, code)?;
                let_go(record);
                Ok(true)
            }
        }
    }

    fn synchronize_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        let call = "cuEventSynchronize";
        let event = self.event(context, event, call)?;
        let record = lock(&event.record).clone();
        let code = call!(self.functions(), event_synchronize(pointer(event.address)));
        self.check_in(&event.context, call, code)?;
        let_go(record);
        Ok(())
    }

    fn elapsed(&self, context: RawContext, from: RawEvent, to: RawEvent) -> GpuResult<Duration> {
        let call = "cuEventElapsedTime";
        let (from, to) = (
            self.event(context, from, call)?,
            self.event(context, to, call)?,
        );
        let mut time_ms = 0.0;
        let code = call!(
            self.functions(),
            elapsed(&raw mut time_ms, pointer(from.address), pointer(to.address))
        );
        self.check_in(&from.context, call, code)?;
        Ok(Duration::try_from_secs_f32(time_ms / 1000.0).unwrap_or_default())
    }

    fn allocate(&self, context: RawContext, len_bytes: usize) -> GpuResult<DevicePointer> {
        let entered = self.enter(context, "cuMemAlloc")?;
        let mut address = 0;
        let code = call!(self.functions(), allocate(&raw mut address, len_bytes));
        self.check_in(&entered, "cuMemAlloc", code)?;
        Ok(DevicePointer(address))
    }

    fn free(&self, context: RawContext, pointer: DevicePointer) -> GpuResult<()> {
        let entered = self.enter(context, "cuMemFree")?;
        let code = call!(self.functions(), free(pointer.0));
        self.check_in(&entered, "cuMemFree", code)
    }

    fn memory_info(&self, context: RawContext) -> GpuResult<MemoryInfo> {
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

    fn register(&self, context: RawContext, buffer: HostBuffer) -> GpuResult<RawPinned> {
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

    fn unregister(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        let call = "cuMemHostUnregister";
        self.enter(context, call)?;
        self.0.pinned.take(pinned.0, call).map(drop)
    }

    fn lend(
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

    fn take_back(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        let call = "cuMemHostGetDevicePointer";
        self.enter(context, call)?;
        let pinned = self.0.pinned.get(pinned.0, call)?;
        drop(lock(&pinned.lent).take());
        Ok(())
    }

    fn copy(&self, context: RawContext, stream: RawStream, transfer: Transfer) -> GpuResult<()> {
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

    fn fill(
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

    fn load_module(&self, context: RawContext, image: &[u8]) -> GpuResult<RawModule> {
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

    fn unload_module(&self, context: RawContext, module: RawModule) -> GpuResult<()> {
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

    fn function(
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

    fn global(
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

    fn function_info(&self, context: RawContext, function: RawFunction) -> GpuResult<FunctionInfo> {
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

    unsafe fn launch(
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

    fn begin_capture(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        self.begin(context, stream)
    }

    fn end_capture(&self, context: RawContext, stream: RawStream) -> GpuResult<RawGraph> {
        self.end(context, stream)
    }

    fn instantiate(&self, context: RawContext, graph: RawGraph) -> GpuResult<RawExecutable> {
        self.make(context, graph)
    }

    fn destroy_graph(&self, context: RawContext, graph: RawGraph) -> GpuResult<()> {
        self.take_graph(context, graph)
    }

    unsafe fn launch_graph(
        &self,
        context: RawContext,
        stream: RawStream,
        executable: RawExecutable,
    ) -> GpuResult<()> {
        self.launch_made(context, stream, executable)
    }

    fn destroy_executable(&self, context: RawContext, executable: RawExecutable) -> GpuResult<()> {
        self.take_made(context, executable)
    }
}
