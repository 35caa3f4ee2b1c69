//! Native functions, which `func.func private @f(..) attributes {tfrt.native}` declares.

use tfrt_host::kernel::{KernelRegistry, Rest};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::errors;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add_native("native_sink", |_: Rest| ())
        .add_native("native_async_sink", |_: Rest| Chain)
        .add_native("native_add", i32::wrapping_add)
        .add_native("native_async_add", async_add)
        .add_native("native_error", error);
}

fn async_add(a: i32, b: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    context.enqueue(move || Ok(a.wrapping_add(b)))
}

/// Fails with an error that nobody reports: with a kernel's name it counts as reported.
fn error() -> Result<i32, Error> {
    errors::fail().map_err(|error| error.with_kernel("native_error"))
}
