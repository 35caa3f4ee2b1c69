//! [`Sim`]: a simulated driver, which checks what it is asked for.
//!
//! Devices are memory of the host under made-up addresses. Commands wait in their streams and run in an order that a
//! [`Policy`] and a seed pick, so that a program that does not say what must wait for what gets other results; and each
//! access is held against vector clocks, so that it is found even where results are right. Kernels run by
//! interpreting the very PTX that a GPU would be given. What is wrong is a [`Finding`].
//!
//! The clock of the host is one for all threads: two threads whose calls nothing orders are seen as ordered by them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tfrt_host::memory::{HostBuffer, OwnedWriting};

use super::library::{LibraryCall, Member};
use super::{
    Argument, DeviceOrdinal, DevicePointer, DeviceProperties, Driver, Fill, FunctionInfo, GpuError,
    GpuErrorKind, GpuResult, Grid, MemoryInfo, Note, Platform, RawContext, RawEvent, RawExecutable,
    RawFunction, RawGraph, RawModule, RawPinned, RawStream, Transfer,
};

mod call;
mod clock;
mod contexts;
mod exchange;
mod findings;
mod graph;
mod lanes;
mod launches;
mod libraries;
mod library;
mod memory;
mod options;
mod ptx;
mod queue;
mod streams;
mod transfers;

pub use findings::{Finding, FindingKind};
pub use options::{Policy, SimOptions};

use call::Entered;
use clock::{Clock, Epoch};
use graph::{Executable, Graph};
use memory::Memory;
use queue::{Queues, Work};

/// A simulated driver. Clones are one.
#[derive(Clone, Debug)]
pub struct Sim(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    options: SimOptions,
    memory: Memory,
    queues: Queues,
    host: Clock,
    contexts: Vec<ContextState>,
    events: BTreeMap<u64, Event>,
    modules: BTreeMap<u64, (u64, Arc<ptx::Module>)>,
    pinned: BTreeMap<u64, Pinned>,
    graphs: BTreeMap<u64, Graph>,
    executables: BTreeMap<u64, Executable>,
    used_bytes: Vec<usize>,
    next: u64,
    // The number of calls so far, and those that fail.
    n_calls: u64,
    faults: HashMap<u64, GpuErrorKind>,
}

/// A pinned buffer of the host.
#[derive(Debug)]
struct Pinned {
    context: u64,
    buffer: HostBuffer,
    // Where the device sees it, once it was lent, and the right to it while it is.
    place: Option<u64>,
    lent: Option<OwnedWriting>,
}

/// A context: the primary one of its device, or one that was made.
#[derive(Debug)]
struct ContextState {
    device: usize,
    n_held: usize,
    // What it was lost by.
    lost: Option<String>,
}

#[derive(Debug)]
struct Event {
    context: u64,
    is_timing: bool,
    record: Option<(Epoch, Clock)>,
}

impl Sim {
    /// Makes a driver.
    pub fn new(options: SimOptions) -> Sim {
        let n = usize::try_from(options.n_devices).unwrap_or(0);
        Sim(Arc::new(Mutex::new(State {
            options,
            memory: Memory::default(),
            queues: Queues::new(options.policy, options.seed),
            host: Clock::default(),
            contexts: (0..n)
                .map(|device| ContextState {
                    device,
                    n_held: 0,
                    lost: None,
                })
                .collect(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            pinned: BTreeMap::new(),
            graphs: BTreeMap::new(),
            executables: BTreeMap::new(),
            used_bytes: vec![0; n],
            next: 1,
            n_calls: 0,
            faults: HashMap::new(),
        })))
    }

    /// Returns what was found wrong so far.
    pub fn findings(&self) -> Vec<Finding> {
        self.lock().memory.findings.clone()
    }

    /// Returns what was not given back, in words. What a context had that was lost, and given back, went with it: calls that
    /// give something back to such a context are refused.
    pub fn leaks(&self) -> Vec<String> {
        let state = self.lock();
        let is_there = |context: &u64| {
            let at = usize::try_from(*context).unwrap_or(0).wrapping_sub(1);
            let context = state.contexts.get(at);
            context.is_none_or(|context| context.lost.is_none() || context.n_held > 0)
        };
        let count =
            |contexts: &mut dyn Iterator<Item = &u64>| contexts.filter(|at| is_there(at)).count();
        let mut all = Vec::new();
        for block in state.memory.live().filter(|block| is_there(&block.context)) {
            all.push(format!(
                "a block of {} bytes at {:#x}",
                block.len, block.base
            ));
        }
        let n_streams = state
            .queues
            .all
            .iter()
            .filter(|queue| !queue.is_destroyed && is_there(&queue.context))
            .count();
        let n_contexts: usize = state.contexts.iter().map(|context| context.n_held).sum();
        let counts = [
            ("streams", n_streams),
            (
                "events",
                count(&mut state.events.values().map(|event| &event.context)),
            ),
            (
                "modules",
                count(&mut state.modules.values().map(|(context, _)| context)),
            ),
            (
                "pinned buffers",
                count(&mut state.pinned.values().map(|pinned| &pinned.context)),
            ),
            ("captures", state.n_captures()),
            ("graphs", state.graphs.len()),
            ("executable graphs", state.executables.len()),
            ("uses of contexts", n_contexts),
            ("rights of copies", state.queues.kept.len()),
        ];
        all.extend(
            counts
                .iter()
                .filter(|(_, n)| *n > 0)
                .map(|(what, n)| format!("{n} {what}")),
        );
        all
    }

    /// Returns the number of calls so far.
    pub fn n_calls(&self) -> u64 {
        self.lock().n_calls
    }

    /// Lets the call of a number fail, counted from 1 from the beginning.
    pub fn fail_call(&self, number: u64, kind: GpuErrorKind) {
        self.lock().faults.insert(number, kind);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: commands go on, and it may be one that fails.
    fn enter(&self, call: &'static str) -> GpuResult<Entered<'_>> {
        let mut state = self.lock();
        state.n_calls += 1;
        let number = state.n_calls;
        if let Some(kind) = state.faults.get(&number).copied() {
            let code = match kind {
                GpuErrorKind::Exhausted => "CUDA_ERROR_OUT_OF_MEMORY",
                GpuErrorKind::Sticky => "CUDA_ERROR_ILLEGAL_ADDRESS",
                _ => "CUDA_ERROR_INVALID_VALUE",
            };
            if kind == GpuErrorKind::Sticky {
                for context in 0..state.contexts.len() {
                    state.lose(context as u64 + 1, format!("call {number} was to fail"));
                }
            }
            return Err(GpuError::new(call, code, kind).detail("injected"));
        }
        let State { queues, memory, .. } = &mut *state;
        if let Err((context, trap)) = queues.go_on(memory) {
            state.lose(context, trap.0);
        }
        Ok(Entered { state, call })
    }
}

impl State {
    fn lose(&mut self, context: u64, reason: String) {
        let at = usize::try_from(context).unwrap_or(0).wrapping_sub(1);
        if let Some(state) = self.contexts.get_mut(at) {
            state.lost.get_or_insert(reason);
        }
        self.queues.lose(context);
    }
}

impl Driver for Sim {
    fn platform(&self) -> Platform {
        Platform::Cuda
    }

    fn version(&self) -> GpuResult<i32> {
        Ok(12000)
    }

    fn n_devices(&self) -> GpuResult<i32> {
        Ok(self.lock().options.n_devices)
    }

    fn device(&self, ordinal: i32) -> GpuResult<DeviceOrdinal> {
        self.enter("cuDeviceGet")?.device(ordinal)
    }

    fn properties(&self, device: DeviceOrdinal) -> GpuResult<DeviceProperties> {
        self.enter("cuDeviceGetAttribute")?.properties(device)
    }

    fn retain_primary(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        self.enter("cuDevicePrimaryCtxRetain")?
            .retain_primary(device)
    }

    fn release_primary(&self, device: DeviceOrdinal) -> GpuResult<()> {
        self.enter("cuDevicePrimaryCtxRelease")?
            .release_primary(device)
    }

    fn create_context(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        self.enter("cuCtxCreate")?.create_context(device)
    }

    fn destroy_context(&self, context: RawContext) -> GpuResult<()> {
        self.enter("cuCtxDestroy")?.destroy_context(context)
    }

    fn synchronize_context(&self, context: RawContext) -> GpuResult<()> {
        self.enter("cuCtxSynchronize")?.synchronize_context(context)
    }

    fn create_stream(&self, context: RawContext) -> GpuResult<RawStream> {
        self.enter("cuStreamCreate")?.create_stream(context)
    }

    fn destroy_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        self.enter("cuStreamDestroy")?
            .destroy_stream(context, stream)
    }

    fn query_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<bool> {
        self.enter("cuStreamQuery")?.query_stream(context, stream)
    }

    fn synchronize_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        self.enter("cuStreamSynchronize")?
            .synchronize_stream(context, stream)
    }

    fn wait_event(&self, context: RawContext, stream: RawStream, event: RawEvent) -> GpuResult<()> {
        self.enter("cuStreamWaitEvent")?
            .wait_event(context, stream, event)
    }

    fn create_event(&self, context: RawContext, is_timing: bool) -> GpuResult<RawEvent> {
        self.enter("cuEventCreate")?
            .create_event(context, is_timing)
    }

    fn destroy_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        self.enter("cuEventDestroy")?.destroy_event(context, event)
    }

    fn record_event(
        &self,
        context: RawContext,
        event: RawEvent,
        stream: RawStream,
    ) -> GpuResult<()> {
        self.enter("cuEventRecord")?
            .record_event(context, event, stream)
    }

    fn query_event(&self, context: RawContext, event: RawEvent) -> GpuResult<bool> {
        self.enter("cuEventQuery")?.query_event(context, event)
    }

    fn synchronize_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        self.enter("cuEventSynchronize")?
            .synchronize_event(context, event)
    }

    fn elapsed(&self, context: RawContext, from: RawEvent, to: RawEvent) -> GpuResult<Duration> {
        self.enter("cuEventElapsedTime")?.elapsed(context, from, to)
    }

    fn allocate(&self, context: RawContext, len_bytes: usize) -> GpuResult<DevicePointer> {
        self.enter("cuMemAlloc")?.allocate(context, len_bytes)
    }

    fn free(&self, context: RawContext, pointer: DevicePointer) -> GpuResult<()> {
        self.enter("cuMemFree")?.free(context, pointer)
    }

    fn memory_info(&self, context: RawContext) -> GpuResult<MemoryInfo> {
        self.enter("cuMemGetInfo")?.memory_info(context)
    }

    fn register(&self, context: RawContext, buffer: HostBuffer) -> GpuResult<RawPinned> {
        self.enter("cuMemHostRegister")?.register(context, buffer)
    }

    fn unregister(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        self.enter("cuMemHostUnregister")?
            .unregister(context, pinned)
    }

    fn lend(
        &self,
        context: RawContext,
        pinned: RawPinned,
        right: OwnedWriting,
    ) -> GpuResult<DevicePointer> {
        self.enter("cuMemHostGetDevicePointer")?
            .lend(context, pinned, right)
    }

    fn take_back(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        self.enter("cuMemHostGetDevicePointer")?
            .take_back(context, pinned)
    }

    fn copy(&self, context: RawContext, stream: RawStream, transfer: Transfer) -> GpuResult<()> {
        self.enter("cuMemcpyAsync")?.copy(context, stream, transfer)
    }

    fn fill(
        &self,
        context: RawContext,
        stream: RawStream,
        at: DevicePointer,
        value: Fill,
        n: usize,
    ) -> GpuResult<()> {
        self.enter("cuMemsetAsync")?
            .fill(context, stream, at, value, n)
    }

    fn load_module(&self, context: RawContext, image: &[u8]) -> GpuResult<RawModule> {
        self.enter("cuModuleLoadData")?.load_module(context, image)
    }

    fn unload_module(&self, context: RawContext, module: RawModule) -> GpuResult<()> {
        self.enter("cuModuleUnload")?.unload_module(context, module)
    }

    fn function(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<RawFunction> {
        self.enter("cuModuleGetFunction")?
            .function(context, module, name)
    }

    fn global(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<(DevicePointer, usize)> {
        self.enter("cuModuleGetGlobal")?
            .global(context, module, name)
    }

    fn function_info(&self, context: RawContext, function: RawFunction) -> GpuResult<FunctionInfo> {
        self.enter("cuFuncGetAttribute")?
            .function_info(context, function)
    }

    #[expect(unsafe_code, reason = "the trait's function; nothing here is unsafe")]
    unsafe fn launch(
        &self,
        context: RawContext,
        stream: RawStream,
        function: RawFunction,
        grid: &Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        self.enter("cuLaunchKernel")?
            .launch(context, stream, function, grid, arguments)
    }

    fn call(&self, context: RawContext, stream: RawStream, library: LibraryCall) -> GpuResult<()> {
        self.enter("library")?.call(context, stream, library)
    }

    fn exchange(&self, members: &[Member]) -> GpuResult<()> {
        self.enter("exchange")?.exchange(members)
    }

    fn begin_capture(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        let mut call = self.enter("cuStreamBeginCapture")?;
        call.begin_capture(context, stream)
    }

    fn end_capture(&self, context: RawContext, stream: RawStream) -> GpuResult<RawGraph> {
        let mut call = self.enter("cuStreamEndCapture")?;
        call.end_capture(context, stream)
    }

    fn instantiate(&self, context: RawContext, graph: RawGraph) -> GpuResult<RawExecutable> {
        let mut call = self.enter("cuGraphInstantiate")?;
        call.instantiate(context, graph)
    }

    fn destroy_graph(&self, context: RawContext, graph: RawGraph) -> GpuResult<()> {
        let mut call = self.enter("cuGraphDestroy")?;
        call.destroy_graph(context, graph)
    }

    #[expect(unsafe_code, reason = "the trait's function; nothing here is unsafe")]
    unsafe fn launch_graph(
        &self,
        context: RawContext,
        stream: RawStream,
        executable: RawExecutable,
    ) -> GpuResult<()> {
        let mut call = self.enter("cuGraphLaunch")?;
        call.launch_graph(context, stream, executable)
    }

    fn destroy_executable(&self, context: RawContext, executable: RawExecutable) -> GpuResult<()> {
        let mut call = self.enter("cuGraphExecDestroy")?;
        call.destroy_executable(context, executable)
    }

    fn note(&self, context: RawContext, stream: RawStream, note: Note) {
        let mut call = Entered {
            state: self.lock(),
            call: "note",
        };
        if let Ok(at) = call.stream(context, stream) {
            let name = match note {
                Note::Take(..) => "the taking of memory",
                Note::Give(..) => "the giving back of memory",
            };
            call.push_or_record(at, name, Work::Note(note));
        }
    }
}
