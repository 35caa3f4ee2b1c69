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
mod exchange;
mod findings;
mod graph;
mod lanes;
mod library;
mod memory;
mod options;
mod ptx;
mod queue;

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
        let call = self.enter("cuDeviceGet")?;
        match u64::try_from(ordinal) {
            Ok(at) if ordinal < call.state.options.n_devices => Ok(DeviceOrdinal(at)),
            _ => call.refused("CUDA_ERROR_INVALID_DEVICE"),
        }
    }

    fn properties(&self, device: DeviceOrdinal) -> GpuResult<DeviceProperties> {
        let call = self.enter("cuDeviceGetAttribute")?;
        Ok(DeviceProperties {
            name: format!("simulated device {}", device.0),
            capability: (7, 5),
            len_bytes: call.state.options.len_bytes,
            // So few that some products of tests are large.
            n_multiprocessors: 4,
            max_threads: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
            max_shared_bytes: 48 << 10,
        })
    }

    fn retain_primary(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        let mut call = self.enter("cuDevicePrimaryCtxRetain")?;
        match call.state.contexts.get_mut(device.0 as usize) {
            Some(context) => {
                context.n_held += 1;
                Ok(RawContext(device.0 + 1))
            }
            None => call.refused("CUDA_ERROR_INVALID_DEVICE"),
        }
    }

    fn release_primary(&self, device: DeviceOrdinal) -> GpuResult<()> {
        let mut call = self.enter("cuDevicePrimaryCtxRelease")?;
        match call.state.contexts.get_mut(device.0 as usize) {
            Some(context) if context.n_held > 0 => {
                context.n_held -= 1;
                Ok(())
            }
            _ => call.refused("CUDA_ERROR_INVALID_CONTEXT"),
        }
    }

    fn create_context(&self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        let mut call = self.enter("cuCtxCreate")?;
        let device = device.0 as usize;
        if device >= call.state.used_bytes.len() {
            return call.refused("CUDA_ERROR_INVALID_DEVICE");
        }
        call.state.contexts.push(ContextState {
            device,
            n_held: 1,
            lost: None,
        });
        Ok(RawContext(call.state.contexts.len() as u64))
    }

    fn destroy_context(&self, context: RawContext) -> GpuResult<()> {
        let mut call = self.enter("cuCtxDestroy")?;
        let at = usize::try_from(context.0).unwrap_or(0).wrapping_sub(1);
        let n_primary = call.state.used_bytes.len();
        match call.state.contexts.get_mut(at) {
            Some(found) if at >= n_primary && found.n_held > 0 => {
                found.n_held = 0;
                Ok(())
            }
            _ => call.refused("CUDA_ERROR_INVALID_CONTEXT"),
        }
    }

    fn synchronize_context(&self, context: RawContext) -> GpuResult<()> {
        let mut call = self.enter("cuCtxSynchronize")?;
        call.context(context)?;
        call.expect_no_capture_in(context)?;
        let of_context = |queues: &Queues| -> Vec<usize> {
            (0..queues.all.len())
                .filter(|at| queues.all[*at].context == context.0)
                .collect()
        };
        call.run_until(context, |queues| {
            of_context(queues).into_iter().all(|at| queues.is_idle(at))
        })?;
        for at in of_context(&call.state.queues) {
            let clock = call.state.queues.all[at].clock.clone();
            call.learn(&clock);
        }
        Ok(())
    }

    fn create_stream(&self, context: RawContext) -> GpuResult<RawStream> {
        let mut call = self.enter("cuStreamCreate")?;
        call.context(context)?;
        let at = call.state.queues.add(context.0);
        Ok(RawStream(at as u64 + 1))
    }

    fn destroy_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        let mut call = self.enter("cuStreamDestroy")?;
        let at = call.stream(context, stream)?;
        call.expect_no_capture(at)?;
        // Copies that the host has not heard of keep their rights no longer.
        call.run_until(context, |queues| queues.is_idle(at))?;
        let clock = call.state.queues.all[at].clock.clone();
        call.learn(&clock);
        call.state.queues.all[at].is_destroyed = true;
        Ok(())
    }

    fn query_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<bool> {
        let mut call = self.enter("cuStreamQuery")?;
        let at = call.stream(context, stream)?;
        call.expect_no_capture(at)?;
        let State { queues, memory, .. } = &mut *call.state;
        if let Err((context, trap)) = queues.run(1, memory) {
            call.state.lose(context, trap.0);
        }
        call.context(context)?;
        let is_idle = call.state.queues.is_idle(at);
        if is_idle {
            let clock = call.state.queues.all[at].clock.clone();
            call.learn(&clock);
        }
        Ok(is_idle)
    }

    fn synchronize_stream(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        let mut call = self.enter("cuStreamSynchronize")?;
        let at = call.stream(context, stream)?;
        call.expect_no_capture(at)?;
        call.run_until(context, |queues| queues.is_idle(at))?;
        let clock = call.state.queues.all[at].clock.clone();
        call.learn(&clock);
        Ok(())
    }

    fn wait_event(&self, context: RawContext, stream: RawStream, event: RawEvent) -> GpuResult<()> {
        let mut call = self.enter("cuStreamWaitEvent")?;
        let at = call.stream(context, stream)?;
        call.expect_no_capture(at)?;
        call.event(context, event)?;
        let Some((epoch, clock)) = call.state.events[&event.0].record.clone() else {
            let text = format!(
                "stream {} waits for event {}, which was never recorded",
                stream.0, event.0
            );
            call.state.memory.find(FindingKind::UnrecordedEvent, text);
            return Ok(());
        };
        call.state.queues.all[at].clock.join(&clock);
        call.push(at, "wait", Work::Wait(epoch));
        Ok(())
    }

    fn create_event(&self, context: RawContext, is_timing: bool) -> GpuResult<RawEvent> {
        let mut call = self.enter("cuEventCreate")?;
        call.context(context)?;
        let handle = call.handle();
        call.state.events.insert(
            handle,
            Event {
                context: context.0,
                is_timing,
                record: None,
            },
        );
        Ok(RawEvent(handle))
    }

    fn destroy_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        let mut call = self.enter("cuEventDestroy")?;
        call.event(context, event)?;
        call.state.events.remove(&event.0);
        Ok(())
    }

    fn record_event(
        &self,
        context: RawContext,
        event: RawEvent,
        stream: RawStream,
    ) -> GpuResult<()> {
        let mut call = self.enter("cuEventRecord")?;
        let at = call.stream(context, stream)?;
        call.expect_no_capture(at)?;
        call.event(context, event)?;
        let epoch = call.push(at, "record", Work::Record);
        let clock = call.state.queues.all[at].clock.clone();
        if let Some(event) = call.state.events.get_mut(&event.0) {
            event.record = Some((epoch, clock));
        }
        Ok(())
    }

    fn query_event(&self, context: RawContext, event: RawEvent) -> GpuResult<bool> {
        let mut call = self.enter("cuEventQuery")?;
        call.event(context, event)?;
        let State { queues, memory, .. } = &mut *call.state;
        if let Err((context, trap)) = queues.run(1, memory) {
            call.state.lose(context, trap.0);
        }
        call.context(context)?;
        let Some((epoch, clock)) = call.state.events[&event.0].record.clone() else {
            return Ok(true);
        };
        let is_done = call.state.queues.is_done(epoch);
        if is_done {
            call.learn(&clock);
        }
        Ok(is_done)
    }

    fn synchronize_event(&self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        let mut call = self.enter("cuEventSynchronize")?;
        call.event(context, event)?;
        if let Some((epoch, clock)) = call.state.events[&event.0].record.clone() {
            call.run_until(context, |queues| queues.is_done(epoch))?;
            call.learn(&clock);
        }
        Ok(())
    }

    fn elapsed(&self, context: RawContext, from: RawEvent, to: RawEvent) -> GpuResult<Duration> {
        let mut call = self.enter("cuEventElapsedTime")?;
        call.event(context, from)?;
        call.event(context, to)?;
        let number = |event: RawEvent| {
            let event = &call.state.events[&event.0];
            let (epoch, _) = event.record.as_ref().filter(|_| event.is_timing)?;
            Some((epoch.number, call.state.queues.is_done(*epoch)))
        };
        match (number(from), number(to)) {
            // Each command takes a microsecond.
            (Some((from, true)), Some((to, true))) => {
                Ok(Duration::from_micros(u64::from(to.saturating_sub(from))))
            }
            (Some(_), Some(_)) => call.refused("CUDA_ERROR_NOT_READY"),
            _ => call.refused("CUDA_ERROR_INVALID_HANDLE"),
        }
    }

    fn allocate(&self, context: RawContext, len_bytes: usize) -> GpuResult<DevicePointer> {
        let mut call = self.enter("cuMemAlloc")?;
        call.context(context)?;
        if len_bytes == 0 {
            return call.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let device = call.device_of(context.0);
        let most = call.state.options.len_bytes;
        if len_bytes > most - call.state.used_bytes[device] {
            return Err(GpuError::new(
                call.call,
                "CUDA_ERROR_OUT_OF_MEMORY",
                GpuErrorKind::Exhausted,
            ));
        }
        call.state.used_bytes[device] += len_bytes;
        // A pattern that makes numbers of any type no numbers, or very large ones.
        let address = call.state.memory.allocate(context.0, len_bytes, 0xff);
        Ok(DevicePointer(address))
    }

    fn free(&self, context: RawContext, pointer: DevicePointer) -> GpuResult<()> {
        let mut call = self.enter("cuMemFree")?;
        call.context(context)?;
        let State { memory, host, .. } = &mut *call.state;
        match memory
            .free(pointer.0, host)
            .map(|block| (block.len, block.context))
        {
            Some((len, owner)) => {
                let device = call.device_of(owner);
                call.state.used_bytes[device] -= len;
                match owner == context.0 {
                    true => Ok(()),
                    false => call.of_another("block", pointer.0),
                }
            }
            None => call.found(
                "CUDA_ERROR_INVALID_VALUE",
                FindingKind::BadHandle,
                format!("no block begins at {pointer}"),
            ),
        }
    }

    fn memory_info(&self, context: RawContext) -> GpuResult<MemoryInfo> {
        let mut call = self.enter("cuMemGetInfo")?;
        call.context(context)?;
        let total_bytes = call.state.options.len_bytes;
        let free_bytes = total_bytes - call.state.used_bytes[call.device_of(context.0)];
        Ok(MemoryInfo {
            free_bytes,
            total_bytes,
        })
    }

    fn register(&self, context: RawContext, buffer: HostBuffer) -> GpuResult<RawPinned> {
        let mut call = self.enter("cuMemHostRegister")?;
        call.context(context)?;
        if buffer.len_bytes() == 0 {
            return call.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let handle = call.handle();
        let pinned = Pinned {
            context: context.0,
            buffer,
            place: None,
            lent: None,
        };
        call.state.pinned.insert(handle, pinned);
        Ok(RawPinned(handle))
    }

    fn unregister(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        let mut call = self.enter("cuMemHostUnregister")?;
        call.context(context)?;
        let Some(found) = call.state.pinned.remove(&pinned.0) else {
            return call.found(
                "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
                FindingKind::BadHandle,
                format!("no pinned buffer {}", pinned.0),
            );
        };
        if let Some(place) = found.place {
            let State { memory, host, .. } = &mut *call.state;
            memory.free(place, host);
        }
        if found.buffer.write().is_err() {
            let text = format!(
                "pinned buffer {} is taken away while a copy may use it",
                pinned.0
            );
            call.state.memory.find(FindingKind::DestroyedInUse, text);
        }
        Ok(())
    }

    fn lend(
        &self,
        context: RawContext,
        pinned: RawPinned,
        right: OwnedWriting,
    ) -> GpuResult<DevicePointer> {
        let mut call = self.enter("cuMemHostGetDevicePointer")?;
        call.context(context)?;
        let (place, len) = match call.state.pinned.get(&pinned.0) {
            Some(found) if found.context != context.0 => {
                return call.of_another("pinned buffer", pinned.0);
            }
            Some(found) => (found.place, found.buffer.len_bytes()),
            None => return call.refused("CUDA_ERROR_INVALID_VALUE"),
        };
        if right.len_bytes() != len {
            return call.refused("CUDA_ERROR_INVALID_VALUE");
        }
        let memory = &mut call.state.memory;
        let place = place.unwrap_or_else(|| memory.allocate(context.0, len, 0));
        memory.set(place, &right);
        if let Some(found) = call.state.pinned.get_mut(&pinned.0) {
            found.place = Some(place);
            found.lent = Some(right);
        }
        Ok(DevicePointer(place))
    }

    fn take_back(&self, context: RawContext, pinned: RawPinned) -> GpuResult<()> {
        let mut call = self.enter("cuMemHostGetDevicePointer")?;
        // A lost context gives back what it has.
        let State {
            pinned: all,
            memory,
            host,
            ..
        } = &mut *call.state;
        if let Some(found) = all.get_mut(&pinned.0)
            && let (Some(place), Some(mut right)) = (found.place, found.lent.take())
        {
            right.copy_from_slice(&memory.get(place, host));
        }
        call.context(context)
    }

    fn copy(&self, context: RawContext, stream: RawStream, transfer: Transfer) -> GpuResult<()> {
        let mut call = self.enter("cuMemcpyAsync")?;
        let at = call.stream(context, stream)?;
        let name = match &transfer {
            Transfer::Up { .. } => "copy to the device",
            Transfer::Down { .. } => "copy to the host",
            Transfer::Within { .. } => "copy within the device",
        };
        if !matches!(transfer, Transfer::Within { .. }) {
            call.expect_no_capture(at)?;
        }
        call.push_or_record(at, name, Work::Copy(transfer));
        call.context(context)
    }

    fn fill(
        &self,
        context: RawContext,
        stream: RawStream,
        at: DevicePointer,
        value: Fill,
        n: usize,
    ) -> GpuResult<()> {
        let mut call = self.enter("cuMemsetAsync")?;
        let queue = call.stream(context, stream)?;
        if !at.0.is_multiple_of(value.len_bytes() as u64) {
            return call.found(
                "CUDA_ERROR_INVALID_VALUE",
                FindingKind::Misaligned,
                format!("{at} is no place for {value:?}"),
            );
        }
        call.push_or_record(queue, "fill", Work::Fill { at: at.0, value, n });
        call.context(context)
    }

    fn load_module(&self, context: RawContext, image: &[u8]) -> GpuResult<RawModule> {
        let mut call = self.enter("cuModuleLoadData")?;
        call.context(context)?;
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
        let memory = &mut call.state.memory;
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
                let handle = call.handle();
                call.state
                    .modules
                    .insert(handle, (context.0, Arc::new(module)));
                Ok(RawModule(handle))
            }
            Err(error) => {
                let State { memory, host, .. } = &mut *call.state;
                for at in places {
                    memory.free(at, host);
                }
                wrong("CUDA_ERROR_INVALID_PTX", error)
            }
        }
    }

    fn unload_module(&self, context: RawContext, module: RawModule) -> GpuResult<()> {
        let mut call = self.enter("cuModuleUnload")?;
        call.context(context)?;
        match call.state.modules.remove(&module.0) {
            Some((_, module)) => {
                if Arc::strong_count(&module) > 1 {
                    let text = "a module is unloaded while a launch of it is queued".to_owned();
                    call.state.memory.find(FindingKind::DestroyedInUse, text);
                }
                let State { memory, host, .. } = &mut *call.state;
                for global in &module.globals {
                    memory.free(global.address, host);
                }
                Ok(())
            }
            None => call.found(
                "CUDA_ERROR_INVALID_HANDLE",
                FindingKind::BadHandle,
                format!("no module {}", module.0),
            ),
        }
    }

    fn function(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<RawFunction> {
        let mut call = self.enter("cuModuleGetFunction")?;
        let found = call.module(context, module.0)?;
        match found.kernels.iter().position(|kernel| kernel.name == name) {
            // The module's handle, and the kernel's place in it.
            Some(at) => Ok(RawFunction(module.0 << 16 | at as u64)),
            None => Err(
                GpuError::new(call.call, "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Refused)
                    .detail(format!("no kernel '{name}'")),
            ),
        }
    }

    fn global(
        &self,
        context: RawContext,
        module: RawModule,
        name: &str,
    ) -> GpuResult<(DevicePointer, usize)> {
        let mut call = self.enter("cuModuleGetGlobal")?;
        let found = call.module(context, module.0)?;
        let global = found.globals.iter().find(|global| global.name == name);
        match global {
            Some(global) => Ok((DevicePointer(global.address), global.len)),
            None => Err(
                GpuError::new(call.call, "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Refused)
                    .detail(format!("no variable '{name}'")),
            ),
        }
    }

    fn function_info(&self, context: RawContext, function: RawFunction) -> GpuResult<FunctionInfo> {
        let mut call = self.enter("cuFuncGetAttribute")?;
        let (module, at) = call.kernel(context, function)?;
        let kernel = &module.kernels[at];
        Ok(FunctionInfo {
            max_threads: kernel.max_threads.unwrap_or(1024),
            shared_bytes: kernel.shared_bytes as u32,
            parameters: Some(kernel.parameters.iter().map(|(_, len)| *len).collect()),
        })
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
        let mut call = self.enter("cuLaunchKernel")?;
        let at = call.stream(context, stream)?;
        let (module, kernel) = call.kernel(context, function)?;
        let found = &module.kernels[kernel];
        let [x, y, z] = grid.threads.map(u64::from);
        let n_threads = x * y * z;
        let most = u64::from(found.max_threads.unwrap_or(1024));
        let is_too_large =
            x > 1024 || y > 1024 || grid.blocks[1] > 65535 || grid.blocks[2] > 65535 || z > 64;
        if grid.blocks.contains(&0) || n_threads == 0 || n_threads > most || is_too_large {
            return call.refused("CUDA_ERROR_INVALID_VALUE");
        }
        if found.shared_bytes + grid.shared_bytes as usize > 48 << 10 {
            return call.refused("CUDA_ERROR_INVALID_VALUE");
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
                return call.found("CUDA_ERROR_INVALID_VALUE", FindingKind::OutOfBounds, text);
            }
        }
        if arguments.len() != found.parameters.len() {
            let text = format!(
                "kernel {} takes {} arguments, was given {}",
                found.name,
                found.parameters.len(),
                arguments.len()
            );
            return call.found("CUDA_ERROR_INVALID_VALUE", FindingKind::OutOfBounds, text);
        }
        let name = format!("launch of {}", found.name);
        call.push_or_record(
            at,
            &name,
            Work::Launch {
                module,
                kernel,
                grid: *grid,
                parameters,
            },
        );
        call.context(context)
    }

    fn call(&self, context: RawContext, stream: RawStream, library: LibraryCall) -> GpuResult<()> {
        let mut call = self.enter("library")?;
        let at = call.stream(context, stream)?;
        call.expect_no_capture(at)?;
        let name = match &library {
            LibraryCall::Scale { .. } => "a sum of vectors",
            LibraryCall::Product { .. } => "a product of matrices",
            LibraryCall::Triangular { .. } => "the solution of a triangular system",
            LibraryCall::Cholesky { .. } => "a Cholesky factorisation",
            LibraryCall::Fourier { .. } => "a Fourier transform",
            LibraryCall::Pool { .. } => "a pooling",
            LibraryCall::Convolution { .. } => "a convolution",
        };
        call.push(at, name, Work::Call(Box::new(library)));
        call.context(context)
    }

    fn exchange(&self, members: &[Member]) -> GpuResult<()> {
        let mut call = self.enter("exchange")?;
        let mut streams = Vec::new();
        for member in members {
            let at = call.stream(member.context, member.stream)?;
            call.expect_no_capture(at)?;
            streams.push(at);
        }
        let all = members.iter().map(|member| member.exchanges.clone());
        let exchanges = Arc::new(all.collect());
        let given = Arc::new(Mutex::new(vec![Vec::new(); members.len()]));
        let part = |rank| exchange::Part {
            rank,
            exchanges: Arc::clone(&exchanges),
            given: given.clone(),
        };
        let mut epochs = Vec::new();
        for (rank, at) in streams.iter().enumerate() {
            epochs.push(call.push(*at, "the giving of an exchange", Work::Give(part(rank))));
        }
        for (rank, at) in streams.iter().enumerate() {
            for (epoch, other) in epochs.iter().zip(&streams) {
                if other != at {
                    let clock = call.state.queues.all[*other].clock.clone();
                    call.state.queues.all[*at].clock.join(&clock);
                    call.push(*at, "wait", Work::Wait(*epoch));
                }
            }
            call.push(*at, "the taking of an exchange", Work::Take(part(rank)));
        }
        members
            .iter()
            .try_for_each(|member| call.context(member.context))
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
