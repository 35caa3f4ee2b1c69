//! The host runtime: load a program, call a function, read the result.
//!
//! | To | Look at |
//! | --- | --- |
//! | set up queue, allocator and kernels | [`HostContext`] |
//! | bind a BEF file to kernels | [`Program`] |
//! | call | [`Function`], with an [`ExecutionContext`] for a [`RequestContext`] |
//! | write a kernel | [`kernel`] |
//!
//! It knows bytes (`tfrt_bef`) and time (`tfrt_async`), and never learns of MLIR text.
//!
//! # Examples
//!
//! A program is usually compiled from text; see the crate `tfrt` for the whole road.
//!
//! # Under loom
//!
//! With `--cfg loom` only the registers and their models are compiled: nothing else in this crate
//! hands anything from thread to thread by itself.

#![deny(unsafe_code)]

#[cfg(not(loom))]
use std::sync::Arc;

#[cfg(not(loom))]
use tfrt_async::queue::{
    ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue, available_parallelism,
};
#[cfg(not(loom))]
pub use tfrt_async::queue::{parallel_for, share};
#[cfg(not(loom))]
pub use tfrt_async::{
    AnyAsyncValue, AnyPromise, AsyncValue, Chain, Contents, Error, ErrorCode, Heap, HostAllocator,
    InPlace, LockMode, Promise, Record, RwHold, RwQueueLock, SourceLocation, SystemAllocator,
    Value, run_when_settled, when_all,
};
#[cfg(not(loom))]
pub use tfrt_bef::{DType, FunctionKind};

#[cfg(not(loom))]
mod bound;
#[cfg(all(not(loom), feature = "tensor"))]
pub mod codec;
#[cfg(not(loom))]
pub mod codes;
#[cfg(not(loom))]
mod context;
#[cfg(not(loom))]
pub mod device;
#[cfg(not(loom))]
#[allow(
    unsafe_code,
    reason = "frame.rs, later.rs, plan/records.rs, registers.rs, slots.rs and inline/stack.rs are listed modules"
)]
mod executor;
// Two attributes, since cargo-mutants leaves out what has the second, and would change these files twice.
#[cfg(loom)]
#[cfg(test)]
#[allow(
    unsafe_code,
    reason = "plan/records.rs, registers.rs and slots.rs are listed modules, and the models share them"
)]
#[path = "executor"]
mod executor {
    mod models;
    #[allow(dead_code, reason = "the models use what they need")]
    mod plan;
    #[allow(dead_code, reason = "the models use what they need")]
    mod ready;
    #[allow(dead_code, unused_imports, reason = "the models use what they need")]
    mod registers;
    #[allow(dead_code, reason = "the models use what they need")]
    mod slots;
}
#[cfg(not(loom))]
mod function;
#[cfg(not(loom))]
pub mod kernel;
#[cfg(not(loom))]
#[allow(
    unsafe_code,
    reason = "allocators.rs, block.rs, buffer.rs and owned.rs are listed modules"
)]
pub mod memory;
#[cfg(not(loom))]
mod output;
#[cfg(not(loom))]
mod program;
#[cfg(not(loom))]
pub mod record;
#[cfg(not(loom))]
mod request;
#[cfg(not(loom))]
mod stuck;
#[cfg(not(loom))]
pub mod trace;
#[cfg(not(loom))]
mod type_map;

#[cfg(not(loom))]
pub use bound::BoundCall;
#[cfg(not(loom))]
pub use context::{DiagnosticHandler, HostContext, HostContextBuilder, Limits};
#[cfg(not(loom))]
pub use device::{DeviceId, DeviceKind, DeviceRef, Devices};
#[cfg(not(loom))]
pub use executor::{guarded, is_in_kernel};
#[cfg(not(loom))]
pub use function::Function;
#[cfg(not(loom))]
pub use output::{CapturedOutput, Output};
#[cfg(not(loom))]
pub use program::{LoadError, LoadProblem, Program};
#[cfg(all(not(loom), not(tfrt_for_size)))]
pub use request::CancellationHook;
#[cfg(not(loom))]
pub use request::{
    ExecutionContext, ExternalGuard, KernelPromise, RequestContext, RequestContextBuilder,
    ResourceContext,
};
#[cfg(not(loom))]
pub use stuck::Stuck;

#[cfg(not(loom))]
/// The default number of threads for tasks that block.
pub const DEFAULT_BLOCKING_THREADS: usize = 256;

#[cfg(not(loom))]
/// Returns a queue with one worker for each processor of the cgroup and the affinity mask; on the
/// caller's thread alone where no thread can be started.
pub fn default_queue() -> Arc<dyn ConcurrentWorkQueue> {
    match MultiThreadedWorkQueue::new(available_parallelism(), DEFAULT_BLOCKING_THREADS) {
        Ok(queue) => Arc::new(queue),
        Err(_) => Arc::new(SingleThreadedWorkQueue::new()),
    }
}
