//! Owners of the driver's own handles, in tables by numbers of ours: each gives its handle back when it is dropped.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::collections::{HashMap, VecDeque};
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use tfrt_host::memory::{HostBuffer, OwnedReading, OwnedWriting};

use crate::driver::load::Functions;
use crate::driver::{GpuError, GpuErrorKind, GpuResult};

/// Calls one of the driver's functions, `call!(functions, init(0))`, and returns its code.
///
/// Each use says why the arguments are what the function asks for.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),*)) => {
        // SAFETY: the arguments have the types of NVIDIA's headers (`load.rs`); handles come from tables, which hold what
        // they name while this call lasts; addresses of results are those of variables beside the call.
        unsafe { ($functions.$name)($($argument),*) }
    };
}

pub(super) use call;

/// Things by their handles.
pub(super) struct Table<T>(pub(super) RwLock<HashMap<u64, Arc<T>>>);

pub(super) struct Context {
    pub(super) address: usize,
    // The kernel that was launched last.
    pub(super) last: Mutex<Option<Arc<Kernel>>>,
}

pub(super) struct Stream {
    pub(super) functions: Arc<Functions>,
    pub(super) context: Arc<Context>,
    pub(super) address: usize,
    pub(super) kept: Mutex<Kept>,
    // The state of a capture that is under way.
    pub(super) capture: Mutex<Option<Capture>>,
}

/// State of a capture.
#[derive(Default)]
pub(super) struct Capture {
    // Whether a call has spoiled it.
    pub(super) is_spoiled: bool,
}

/// Rights of copies that may not be over, by number.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) n_copies: u64,
    pub(super) rights: VecDeque<(u64, Right)>,
}

/// A right that is held and not used.
#[expect(dead_code, reason = "what is held is never looked at")]
pub(super) enum Right {
    Reading(OwnedReading),
    Writing(OwnedWriting),
}

pub(super) struct Event {
    pub(super) functions: Arc<Functions>,
    pub(super) context: Arc<Context>,
    pub(super) address: usize,
    // The stream of the last record, and the number of its last copy before.
    pub(super) record: Mutex<Option<(Weak<Stream>, u64)>>,
}

pub(super) struct Module {
    pub(super) functions: Arc<Functions>,
    pub(super) context: Arc<Context>,
    pub(super) address: usize,
}

pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) module: Arc<Module>,
    pub(super) handle: u64,
    pub(super) address: usize,
}

pub(super) struct Pinned {
    pub(super) functions: Arc<Functions>,
    pub(super) context: Arc<Context>,
    pub(super) buffer: HostBuffer,
    // The right that the device has while the buffer is lent.
    pub(super) lent: Mutex<Option<OwnedWriting>>,
}

pub(super) struct Graph {
    pub(super) functions: Arc<Functions>,
    pub(super) context: Arc<Context>,
    pub(super) address: usize,
    // The kernel of its last launch.
    pub(super) last: Option<Arc<Kernel>>,
}

pub(super) struct Executable {
    pub(super) functions: Arc<Functions>,
    pub(super) context: Arc<Context>,
    pub(super) address: usize,
    // The kernel of its last launch.
    pub(super) last: Option<Arc<Kernel>>,
}

impl<T> Table<T> {
    pub(super) fn new() -> Table<T> {
        Table(RwLock::default())
    }

    pub(super) fn add(&self, handle: u64, value: Arc<T>) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(handle, value);
    }

    pub(super) fn get(&self, handle: u64, call: &'static str) -> GpuResult<Arc<T>> {
        let found = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&handle)
            .cloned();
        found.ok_or_else(|| GpuError::new(call, "CUDA_ERROR_INVALID_HANDLE", GpuErrorKind::Refused))
    }

    pub(super) fn take(&self, handle: u64, call: &'static str) -> GpuResult<Arc<T>> {
        let found = self
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&handle);
        found.ok_or_else(|| GpuError::new(call, "CUDA_ERROR_INVALID_HANDLE", GpuErrorKind::Refused))
    }
}

impl Stream {
    /// Lets go of the rights of copies up to a number.
    pub(super) fn let_go(&self, up_to: u64) {
        let mut dropped = Vec::new();
        let mut kept = lock(&self.kept);
        while kept
            .rights
            .front()
            .is_some_and(|(number, _)| *number <= up_to)
        {
            dropped.extend(kept.rights.pop_front());
        }
        drop(kept);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _entered = call!(self.functions, set_current(pointer(self.context.address)));
        if !lock(&self.kept).rights.is_empty() {
            // Copies may be under way. If this fails the context is lost, and nothing runs in it any more.
            let _waited = call!(self.functions, stream_synchronize(pointer(self.address)));
        }
        let _destroyed = call!(self.functions, stream_destroy(pointer(self.address)));
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _entered = call!(self.functions, set_current(pointer(self.context.address)));
        let _destroyed = call!(self.functions, event_destroy(pointer(self.address)));
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _entered = call!(self.functions, set_current(pointer(self.context.address)));
        let _unloaded = call!(self.functions, module_unload(pointer(self.address)));
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _entered = call!(self.functions, set_current(pointer(self.context.address)));
        if let Some(graphs) = &self.functions.graphs {
            let _destroyed = call!(graphs, destroy_graph(pointer(self.address)));
        }
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let _entered = call!(self.functions, set_current(pointer(self.context.address)));
        if let Some(graphs) = &self.functions.graphs {
            let _destroyed = call!(graphs, destroy_executable(pointer(self.address)));
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _entered = call!(self.functions, set_current(pointer(self.context.address)));
        let _unpinned = call!(self.functions, unregister(pointer(self.buffer.address())));
    }
}

pub(super) fn let_go(record: Option<(Weak<Stream>, u64)>) {
    if let Some((stream, n_copies)) = record
        && let Some(stream) = stream.upgrade()
    {
        stream.let_go(n_copies);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn pointer<T>(address: usize) -> *mut T {
    with_exposed_provenance_mut(address)
}
