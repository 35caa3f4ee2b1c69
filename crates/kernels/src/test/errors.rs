//! Kernels that fail, cancel their request, and use the request's and the host's data.

use std::alloc::Layout;
use std::sync::{Mutex, PoisonError};

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, Heap, HostContext, Output, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.fail", fail)
        .add("tfrt_test.partial_fail", || (1i32, fail()))
        .add("tfrt_test.error_chain", error_chain)
        .add("tfrt_test.report_error_async", report_error_async)
        .add("tfrt_test.report_error_concrete_async", fail_unless_zero)
        .add("tfrt_test.report_error_indirect_async", fail_unless_zero)
        .add("tfrt_test.cancel", cancel)
        .add("tfrt_test.allocate_resource", allocate_resource)
        .add("tfrt_test.deallocate_resource", deallocate_resource)
        .add("tfrt_test.use_sample_shared_context", use_shared_context)
        .add("tfrt_test.memory_leak_one_int32", leak)
        .add("tfrt_test.get_request_context_data.i32", request_data);
}

/// `%x = "tfrt_test.fail"() : () -> i32`
pub(super) fn fail() -> Result<i32, Error> {
    Err(Error::unknown("something bad happened"))
}

/// `%c1 = "tfrt_test.error_chain"(%c0)`
fn error_chain(_: Chain) -> Result<Chain, Error> {
    Err(Error::unknown("error chain"))
}

/// `%x = "tfrt_test.report_error_async"() : () -> i32`
fn report_error_async(context: &ExecutionContext) -> AsyncValue<i32> {
    context.enqueue(|| Err(failed_later()))
}

/// `%y = "tfrt_test.report_error_concrete_async"(%x)`: 0 stays 0.
fn fail_unless_zero(value: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    context.enqueue(move || match value {
        0 => Ok(0),
        _ => Err(failed_later()),
    })
}

fn failed_later() -> Error {
    Error::unknown("something bad happened asynchronously")
}

/// `%x, %c1 = "tfrt_test.cancel"(%c0)`: kernels that have not started do not start.
fn cancel(chain: Chain, context: &ExecutionContext) -> (i32, Chain) {
    let reason = Error::cancelled("Cancelled");
    context.request().cancel_unstarted(reason);
    (0, chain)
}

/// `!tfrt.test.resource`: prints when it is made and destroyed.
struct TestResource(Mutex<Option<PrintOnDrop>>);

impl Value for TestResource {
    const NAME: &'static str = "!tfrt.test.resource";
    type Storage = Heap;
}

/// A value that prints when it is dropped.
struct PrintOnDrop(Output);

impl Drop for PrintOnDrop {
    fn drop(&mut self) {
        self.0.print("Destroyed TestResource");
    }
}

/// `%r, %c1 = "tfrt_test.allocate_resource"(%c0)`
fn allocate_resource(chain: Chain, host: &HostContext) -> (TestResource, Chain) {
    let output = host.output().clone();
    output.print("Allocated TestResource");
    (TestResource(Mutex::new(Some(PrintOnDrop(output)))), chain)
}

/// `%c1 = "tfrt_test.deallocate_resource"(%r, %c0)`
fn deallocate_resource(resource: &TestResource, chain: Chain, host: &HostContext) -> Chain {
    let held = resource
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    drop(held);
    host.output().print("tfrt_test.deallocate_resource done");
    chain
}

/// A value that belongs to a host, which makes one of each type.
struct SampleSharedContext {
    name: String,
}

/// `%s, %c1 = "tfrt_test.use_sample_shared_context"(%c0)`
fn use_shared_context(chain: Chain, host: &HostContext) -> (String, Chain) {
    let shared = host.shared(|_| SampleSharedContext {
        name: "sample_shared_context0".to_owned(),
    });
    (shared.name.clone(), chain)
}

/// `"tfrt_test.memory_leak_one_int32"() : () -> ()`: leaks, for the host's leak check to find.
///
/// The address is kept, so that a leak sanitizer, which looks for blocks that nobody can reach, does
/// not take what this kernel does on purpose for a fault of ours.
fn leak(host: &HostContext) -> Result<(), Error> {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    match host.allocator().allocate(Layout::new::<i32>()) {
        Some(block) => {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(block.as_ptr().expose_provenance());
            Ok(())
        }
        None => Err(Error::resource_exhausted("cannot allocate 4 bytes")),
    }
}

/// `%x = "tfrt_test.get_request_context_data.i32"() : () -> i32`
fn request_data(context: &ExecutionContext) -> Result<i32, Error> {
    let data = context.request().data::<i32>();
    data.map(|data| *data)
        .ok_or_else(|| Error::failed_precondition("the request has no data of type i32"))
}
