//! Kernels with pending results: from tasks, from blocking tasks, and after a while.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;
use std::time::Duration;

use tfrt_host::kernel::{Attr, Call, Function, KernelRegistry, Later, Rest, ScalarAttr, Step};
use tfrt_host::{AsyncValue, Chain, Error, ErrorCode, ExecutionContext, HostContext, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.do.async", do_async)
        .add("tfrt_test.async_constant.i1", constant::<bool>)
        .add("tfrt_test.async_constant.i32", constant::<i32>)
        .add("tfrt_test.async_add.i32", add)
        .add("tfrt_test.async_copy.i32", copy)
        .add("tfrt_test.async_copy_2.i32", copy)
        .add("tfrt_test.async_copy.with_delay.i32", copy_in_task::<i32>)
        .add("tfrt_test.async_copy.with_delay.i64", copy_in_task::<i64>)
        .add("tfrt_test.copy.with_delay.i32", copy_with_delay::<i32>)
        .add("tfrt_test.copy.with_delay.i64", copy_with_delay::<i64>)
        .add("tfrt_test.as_chain", |_: Rest| Chain)
        .add("tfrt_test.quiesce", quiesce)
        .add("tfrt_test.usleep", usleep)
        .add("tfrt_test.blocking.usleep", blocking_usleep);
}

/// `%r = tfrt_test.do.async %x : (i32) -> (i32) { .. }`: the region runs as a task.
fn do_async(arguments: Rest, body: Function) -> Step {
    Step::spawn(Call::new(body, arguments.0), Step::done)
}

/// `%x = "tfrt_test.async_constant.<t>"() {value = 1 : <t>}`
fn constant<T: Value + ScalarAttr>(value: Attr<T>) -> Later<impl FnOnce() -> T + Send> {
    let value = *value;
    Later(move || value)
}

/// `%c = "tfrt_test.async_add.i32"(%a, %b)`
fn add(a: i32, b: i32) -> Later<impl FnOnce() -> i32 + Send> {
    Later(move || a.wrapping_add(b))
}

/// `%y = "tfrt_test.async_copy.i32"(%x)`
fn copy(value: i32) -> Later<impl FnOnce() -> i32 + Send> {
    Later(move || value)
}

/// `%y = "tfrt_test.async_copy.with_delay.<t>"(%x)`
fn copy_in_task<T: Value + Copy>(value: T) -> Later<impl FnOnce() -> T + Send> {
    Later(move || {
        thread::sleep(random_delay());
        value
    })
}

/// `%y = "tfrt_test.copy.with_delay.<t>"(%x)`: blocks the thread that it is called on, which a kernel must not.
fn copy_with_delay<T: Value + Copy>(value: T) -> T {
    thread::sleep(random_delay());
    value
}

/// Returns one to ten milliseconds.
fn random_delay() -> Duration {
    let random = RandomState::new().build_hasher().finish();
    Duration::from_millis(1 + random % 10)
}

/// `%c1 = "tfrt_test.quiesce"(%c0)`: waits for all other tasks, which a kernel must not.
fn quiesce(_: Chain, context: &ExecutionContext) -> Result<Chain, Error> {
    match context.queue().quiesce() {
        Ok(()) => Ok(Chain),
        Err(error) => Err(Error::failed_precondition(error.to_string())),
    }
}

/// `"tfrt_test.usleep"(%us) : (i32) -> ()`
fn usleep(microseconds: i32, context: &ExecutionContext) {
    // Refused is what settles as an error at once; the line is all that is left to tell it.
    let _ = sleep(microseconds, context);
}

/// `%c = "tfrt_test.blocking.usleep"(%us)`
fn blocking_usleep(microseconds: i32, context: &ExecutionContext) -> AsyncValue<Chain> {
    sleep(microseconds, context)
}

/// Sleeps in a blocking task, then prints a line.
fn sleep(microseconds: i32, context: &ExecutionContext) -> AsyncValue<Chain> {
    let host = context.host().clone();
    let slept = context.enqueue_blocking(move || {
        thread::sleep(Duration::from_micros(
            u64::try_from(microseconds).unwrap_or(0),
        ));
        slept_for(microseconds, &host);
        Ok(Chain)
    });
    match slept.error() {
        Some(error) if error.code() == ErrorCode::ResourceExhausted => {
            let message = "Failed to enqueue blocking work. \
                           Maximum number of pending blocking tasks reached.";
            context.host().output().log(message);
            AsyncValue::from_error(Error::resource_exhausted(message))
        }
        _ => slept,
    }
}

fn slept_for(microseconds: i32, host: &HostContext) {
    host.output()
        .print(format_args!("Slept for {microseconds} microseconds"));
}
