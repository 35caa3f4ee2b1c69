//! The dialects `corert` and `corert_sync` as kernels: programs that call operations.
//!
//! | Family | Kernels |
//! | --- | --- |
//! | `execute` | `executeop`, `executeop.seq`, `execute_crt_op`, `make_composite_op` |
//! | `handlers` | handlers, made and found by name |
//! | `constants` | tensors that stand in the program |
//! | `handles` | between handles, tensors, shapes and numbers; transfers; printing |
//! | `control` | `cond`, `while` |
//! | `attributes` | sets of attributes as values, for tests |
//!
//! The register of a handle settles when its tensor does, so that a kernel that reads it finds the tensor there, and
//! that an error of the tensor is one of the register.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, AsyncValue, ExecutionContext, Promise};

use crate::TensorHandle;
use crate::runtime::CoreRuntime;

mod attributes;
mod constants;
mod control;
mod decode;
mod execute;
mod handlers;
mod handles;

/// Adds the kernels.
pub fn register(registry: &mut KernelRegistry) {
    registry.add_built_in(|registry| {
        execute::register(registry);
        handlers::register(registry);
        constants::register(registry);
        handles::register(registry);
        control::register(registry);
        attributes::register(registry);
    });
}

/// Returns the runtime of a kernel's host.
fn runtime(execution: &ExecutionContext) -> CoreRuntime {
    CoreRuntime::new(execution.host())
}

/// Returns a handle as the value of a register: settled when its tensor is.
#[inline]
pub fn handle_as_value(handle: TensorHandle) -> AnyAsyncValue {
    match handle.is_there() {
        true => AnyAsyncValue::new(handle),
        false => pending_as_value(handle),
    }
}

fn pending_as_value(handle: TensorHandle) -> AnyAsyncValue {
    match handle.tensor() {
        Some(Ok(_)) => return AnyAsyncValue::new(handle),
        Some(Err(error)) => return AnyAsyncValue::from_error(error.clone()),
        None => (),
    }
    let (promise, value): (Promise<TensorHandle>, _) = AsyncValue::pending();
    let tensor = handle.to_async();
    tensor.when_settled(move |tensor| match tensor.error() {
        Some(error) => promise.fail(error.clone()),
        None => promise.resolve(handle),
    });
    value.into_any()
}

/// Returns the handle in a register: the register's own if nobody else reads it. Another value is given back.
#[inline]
pub(crate) fn take_handle(value: AnyAsyncValue) -> Result<TensorHandle, AnyAsyncValue> {
    match value.take::<TensorHandle>() {
        Ok(own) => Ok(own),
        Err(shared) => shared.get::<TensorHandle>().cloned().ok_or(shared),
    }
}
