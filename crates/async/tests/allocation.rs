//! What takes no memory: alone in its process, whose allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::{Future, IntoFuture};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tfrt_async::{AsyncValue, memory_stats};

thread_local! {
    static N_ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what this thread takes.
struct Counting;

// SAFETY: each method passes its arguments on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // There is nothing to count where a thread is at its end.
        let _ = N_ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the caller answers for the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller answers for block and layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How much `work` takes: from the system, and blocks that are in use afterwards.
fn taken(work: impl FnOnce()) -> (usize, u64) {
    // Looking takes memory itself.
    let blocks = memory_stats().live_blocks;
    let before = N_ALLOCATIONS.get();
    work();
    let n_allocations = N_ALLOCATIONS.get() - before;
    (n_allocations, memory_stats().live_blocks - blocks)
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn who_waits_alone_takes_no_memory() {
    let words = [1_usize, 2, 3];
    for is_shared in [false, true] {
        let (promise, value) = AsyncValue::<i32>::pending();
        let other = is_shared.then(|| value.clone());
        assert_eq!(
            taken(|| value.and_then(move || _ = black_box(words))),
            (0, 0)
        );
        drop((promise, other));

        let (promise, value) = AsyncValue::<i32>::pending();
        let other = is_shared.then(|| value.clone());
        let mut future = pin!(value.into_future());
        let waker = Waker::from(Arc::new(Nobody));
        for _ in 0..3 {
            let poll = || {
                let mut context = Context::from_waker(&waker);
                assert!(future.as_mut().poll(&mut context).is_pending());
            };
            assert_eq!(taken(poll), (0, 0));
        }
        drop((promise, other));
    }
}
