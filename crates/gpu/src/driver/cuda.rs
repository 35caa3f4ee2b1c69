//! [`Cuda`]: NVIDIA's driver, opened at run time.
//!
//! A handle is a number of ours, under which a table has the driver's own: so one that was given back is refused,
//! and what a call uses stays until the call is over. Rights of the host that a copy needs are kept by its stream, and
//! let go when an event that was recorded behind the copy is seen to be reached, or the stream was waited for.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::fmt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cudarc::driver::sys;
use tfrt_host::memory::{HostBuffer, OwnedWriting};

use super::load::{self, Functions};
use super::{
    Argument, DeviceOrdinal, DevicePointer, DeviceProperties, Driver, Fill, FunctionInfo, GpuError,
    GpuErrorKind, GpuResult, Grid, MemoryInfo, Platform, RawContext, RawEvent, RawExecutable,
    RawFunction, RawGraph, RawModule, RawPinned, RawStream, Transfer,
};

mod contexts;
mod entered;
mod graphs;
mod launches;
mod owned;
mod transfers;

use entered::{expect_same, ordinal};
use owned::{
    Context, Event, Executable, Graph, Kernel, Module, Pinned, Stream, Table, call, let_go, lock,
    pointer,
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
        self.properties_of(device)
    }

    fn retain_primary(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        self.retain(device)
    }

    fn release_primary(&self, device: DeviceOrdinal) -> GpuResult<()> {
        let code = call!(self.functions(), primary_release(ordinal(device)));
        self.check("cuDevicePrimaryCtxRelease", code)
    }

    fn create_context(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        self.make_context(device)
    }

    fn destroy_context(&self, context: RawContext) -> GpuResult<()> {
        let call = "cuCtxDestroy";
        let taken = self.0.contexts.take(context.0, call)?;
        let code = call!(self.functions(), context_destroy(pointer(taken.address)));
        self.check(call, code)
    }

    fn synchronize_context(&self, context: RawContext) -> GpuResult<()> {
        self.wait_for_all(context)
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
        self.memory_of(context)
    }

    fn register(&self, context: RawContext, buffer: HostBuffer) -> GpuResult<RawPinned> {
        self.pin(context, buffer)
    }

    fn unregister(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        self.unpin(context, pinned)
    }

    fn lend(
        &self,
        context: RawContext,
        pinned: RawPinned,
        right: OwnedWriting,
    ) -> GpuResult<DevicePointer> {
        self.lend_pinned(context, pinned, right)
    }

    fn take_back(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        self.take_back_pinned(context, pinned)
    }

    fn copy(&self, context: RawContext, stream: RawStream, transfer: Transfer) -> GpuResult<()> {
        self.queue_copy(context, stream, transfer)
    }

    fn fill(
        &self,
        context: RawContext,
        stream: RawStream,
        at: DevicePointer,
        value: Fill,
        n: usize,
    ) -> GpuResult<()> {
        self.queue_fill(context, stream, at, value, n)
    }

    fn load_module(&self, context: RawContext, image: &[u8]) -> GpuResult<RawModule> {
        self.load_image(context, image)
    }

    fn unload_module(&self, context: RawContext, module: RawModule) -> GpuResult<()> {
        self.unload_image(context, module)
    }

    fn function(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<RawFunction> {
        self.kernel_of(context, module, name)
    }

    fn global(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<(DevicePointer, usize)> {
        self.variable_of(context, module, name)
    }

    fn function_info(&self, context: RawContext, function: RawFunction) -> GpuResult<FunctionInfo> {
        self.info_of(context, function)
    }

    unsafe fn launch(
        &self,
        context: RawContext,
        stream: RawStream,
        function: RawFunction,
        grid: &Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        // SAFETY: the caller's.
        unsafe { self.queue_launch(context, stream, function, grid, arguments) }
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
