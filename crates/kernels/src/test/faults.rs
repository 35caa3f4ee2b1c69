//! Kernels that misbehave in ways that a host must survive; the table is in [the module above](super).

use std::alloc::Layout;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tfrt_host::kernel::{Attr, KernelRegistry, Results};
use tfrt_host::memory::Block;
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, HostContext, Promise};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.panic", panic)
        .add("tfrt_test.never", never)
        .add("tfrt_test.drop_promise", drop_promise)
        .add("tfrt_test.wrong_result_count", wrong_result_count)
        .add("tfrt_test.allocate", allocate)
        .add("tfrt_test.external", external)
        .add("tfrt_test.spin", spin);
}

fn panic() -> i32 {
    panic!("tfrt_test.panic panics")
}

/// Promises that `tfrt_test.never` retains until the request ends.
#[derive(Default)]
struct RetainedPromises(Mutex<Vec<Promise<i32>>>);

fn never(context: &ExecutionContext) -> AsyncValue<i32> {
    let (promise, value) = AsyncValue::pending();
    let retained = context.request().data_or_insert(RetainedPromises::default);
    retained
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(promise);
    value
}

fn drop_promise(context: &ExecutionContext) -> AsyncValue<i32> {
    let (promise, value) = AsyncValue::<i32>::pending();
    context.enqueue(move || {
        drop(promise);
        Ok(Chain)
    });
    value
}

fn wrong_result_count() -> Results {
    Results(vec![AnyAsyncValue::new(1), AnyAsyncValue::new(2)])
}

/// # Errors
///
/// `InvalidArgument` if that is no number of bytes, `ResourceExhausted` if the host has fewer left.
fn allocate(chain: Chain, bytes: Attr<i64>, host: &HostContext) -> Result<Chain, Error> {
    const ALIGNMENT: usize = 64;
    let bytes = *bytes;
    let layout = usize::try_from(bytes)
        .ok()
        .and_then(|size| Layout::from_size_align(size, ALIGNMENT).ok())
        .ok_or_else(|| Error::invalid_argument(format!("cannot ask for {bytes} bytes")))?;
    match Block::allocate(host.allocator(), layout) {
        Some(_given_back) => Ok(chain),
        None => Err(Error::resource_exhausted(format!(
            "cannot allocate {bytes} bytes"
        ))),
    }
}

fn external(value: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    let (promise, result) = context.promise();
    let started = thread::Builder::new()
        .name("tfrt-test-external".to_owned())
        .spawn(move || {
            thread::sleep(Duration::from_millis(1));
            promise.resolve(value);
        });
    match started {
        Ok(_) => result,
        Err(error) => {
            AsyncValue::from_error(Error::resource_exhausted(format!("no thread: {error}")))
        }
    }
}

fn spin(chain: Chain, context: &ExecutionContext) -> Chain {
    while !context.request().is_cancelled() {
        thread::sleep(Duration::from_micros(100));
    }
    chain
}
