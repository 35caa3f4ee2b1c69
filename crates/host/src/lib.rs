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

#![deny(unsafe_code)]

use std::sync::Arc;

use tfrt_async::queue::{
    ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue, available_parallelism,
};
pub use tfrt_async::{
    AnyAsyncValue, AnyPromise, AsyncValue, Chain, Error, ErrorCode, Heap, HostAllocator, InPlace,
    Promise, SourceLocation, Value,
};
pub use tfrt_bef::{DType, FunctionKind};

mod context;
mod device;
#[allow(unsafe_code, reason = "frame.rs is a listed module")]
mod executor;
mod function;
mod interpreter;
pub mod kernel;
#[allow(unsafe_code, reason = "allocators.rs is a listed module")]
pub mod memory;
mod output;
mod program;
mod request;
pub mod trace;

pub use context::{DiagnosticHandler, HostContext, HostContextBuilder, Limits};
pub use device::{Device, DeviceManager};
pub use executor::is_in_kernel;
pub use executor::live::ExternalGuard;
pub use function::Function;
pub use output::{Captured, Output};
pub use program::{LoadError, LoadProblem, Program};
pub use request::{ExecutionContext, RequestContext, RequestContextBuilder, ResourceContext};

/// The default number of threads for tasks that block.
pub const DEFAULT_BLOCKING_THREADS: usize = 256;

/// A queue with one worker for each processor of the cgroup and the affinity mask; on the caller's
/// thread alone where no thread can be started.
pub fn default_queue() -> Arc<dyn ConcurrentWorkQueue> {
    match MultiThreadedWorkQueue::new(available_parallelism(), DEFAULT_BLOCKING_THREADS) {
        Ok(queue) => Arc::new(queue),
        Err(_) => Arc::new(SingleThreadedWorkQueue::new()),
    }
}
