//! Tests of requests with a limit on memory of their own.

use std::alloc::Layout;
use std::sync::{Arc, Mutex};

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::Block;
use tfrt_host::{
    AnyAsyncValue, Error, ErrorCode, ExecutionContext, HostContext, Limits, RequestContext,
};

use super::main_of;

const TEXT: &str = "func.func @main(%x: i32) -> i32 {
  %a = \"t.takes\"(%x) : (i32) -> i32
  tfrt.return %a : i32
}
";

type Blocks = Arc<Mutex<Vec<Block>>>;

/// Returns a host whose kernel `t.takes` takes so many bytes of its host, and the list in which they are kept.
fn host(limits: Limits) -> (HostContext, Blocks) {
    let blocks = Blocks::default();
    let taken = blocks.clone();
    let mut registry = KernelRegistry::new();
    registry.add(
        "t.takes",
        move |n_bytes: i32, host: &HostContext| -> Result<i32, Error> {
            let layout = Layout::from_size_align(usize::try_from(n_bytes).unwrap(), 1).unwrap();
            let block = Block::allocate(host.allocator(), layout);
            let block = block.ok_or_else(|| Error::resource_exhausted("no memory"))?;
            taken.lock().unwrap().push(block);
            Ok(n_bytes)
        },
    );
    let host = HostContext::builder(registry).limits(limits).build();
    (host, blocks)
}

/// Takes so many bytes in a request; returns the notes of the error if that fails.
fn take(request: &Arc<RequestContext>, n_bytes: i32) -> Result<(), Vec<String>> {
    let main = main_of(request.host(), TEXT);
    let results = main.execute(
        &ExecutionContext::new(request),
        vec![AnyAsyncValue::new(n_bytes)],
    );
    request.host().queue().await_all(&results).unwrap();
    match results[0].error() {
        None => Ok(()),
        Some(error) => {
            assert_eq!(error.code(), ErrorCode::ResourceExhausted);
            Err(error.notes().to_vec())
        }
    }
}

#[test]
fn request_takes_no_more_than_its_own_limit_at_once() {
    let (host, blocks) = host(Limits::default());
    let limited = || RequestContext::builder(&host).max_memory(1 << 20).build();
    let (one, other) = (limited(), limited());
    let note = "the request is limited to 1048576 bytes at once, and 614400 more were asked for";
    let note = || vec![note.to_owned()];
    assert_eq!(take(&one, 600 << 10), Ok(()));
    assert_eq!(take(&one, 600 << 10), Err(note()));
    assert_eq!((one.memory_refusals(), other.memory_refusals()), (1, 0));
    // What others take is none of its business, nor theirs.
    assert_eq!(take(&other, 600 << 10), Ok(()));
    let free = RequestContext::new(&host);
    assert_eq!(take(&free, 2 << 20), Ok(()));
    // What is given back may be taken again.
    blocks.lock().unwrap().clear();
    assert_eq!(take(&one, 600 << 10), Ok(()));
    // A request that goes on in place of another has its limit.
    assert_eq!(take(&one.renewed(), 600 << 10), Err(note()));
    blocks.lock().unwrap().clear();
}

#[test]
fn limit_of_the_host_holds_beside_that_of_a_request() {
    let max_memory = Some(1 << 20);
    let (host, blocks) = host(Limits {
        max_memory,
        ..Limits::default()
    });
    let generous = RequestContext::builder(&host).max_memory(1 << 30).build();
    assert_eq!(take(&generous, 600 << 10), Ok(()));
    assert_eq!(take(&generous, 600 << 10), Err(Vec::new()));
    assert_eq!((host.memory_refusals(), generous.memory_refusals()), (1, 0));
    blocks.lock().unwrap().clear();
}
