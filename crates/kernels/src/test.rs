//! The dialect `tfrt_test`: kernels that print, wait, fail and misbehave on purpose.
//!
//! Most are those of the original runtime's tests, with the same printed text. These are ours, and
//! each does one thing that a host must survive:
//!
//! | Kernel | Form | Does |
//! | --- | --- | --- |
//! | `tfrt_test.panic` | `() -> i32` | panics |
//! | `tfrt_test.never` | `() -> i32` | keeps its promise in the request's data, and never resolves it |
//! | `tfrt_test.drop_promise` | `() -> i32` | drops its promise in a task |
//! | `tfrt_test.wrong_result_count` | `() -> i32` | gives two results |
//! | `tfrt_test.allocate` | `(chain) {bytes: i64} -> chain` | takes memory from the host's allocator and gives it back |
//! | `tfrt_test.external` | `(i32) -> i32` | copies on a thread of its own that the host does not know |
//! | `tfrt_test.spin` | `(chain) -> chain` | keeps its thread until the request is cancelled, looking every 100 µs |
//!
//! Kernels of the original that take tensors, images or protocol buffers are not here: they belong
//! to what stands on tensors.

use tfrt_host::kernel::KernelRegistry;

mod asynchrony;
mod atomics;
mod benchmark;
mod errors;
mod faults;
mod format;
mod inspection;
mod native;
mod strings;
mod sync;
mod tutorial;
mod values;

/// Adds the kernels of the dialect, and the native functions that tests call.
pub fn register(registry: &mut KernelRegistry) {
    strings::register(registry);
    values::register(registry);
    asynchrony::register(registry);
    atomics::register(registry);
    errors::register(registry);
    faults::register(registry);
    inspection::register(registry);
    benchmark::register(registry);
    sync::register(registry);
    tutorial::register(registry);
    native::register(registry);
}
