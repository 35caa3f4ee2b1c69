//! Work that takes memory, and work that takes none, as the allocator of the program counts it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::{Future, IntoFuture};
use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
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

/// Returns how much memory `work` takes: from the system, and blocks that are in use afterwards.
fn taken(work: impl FnOnce()) -> (usize, u64) {
    // Looking takes memory itself.
    let blocks = memory_stats().live_blocks;
    let before = N_ALLOCATIONS.get();
    work();
    let n_allocations = N_ALLOCATIONS.get() - before;
    (n_allocations, memory_stats().live_blocks - blocks)
}

/// Runs a test in its turn, since the blocks of all threads are counted. No other test of this program has any.
fn in_turn(test: impl FnOnce()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test();
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn who_waits_alone_takes_no_memory() {
    in_turn(who_waits_alone);
}

fn who_waits_alone() {
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

#[test]
fn who_waits_after_a_future_has_gone_takes_memory() {
    // The place in the cell is written once: whoever settles the value may still be reading it.
    in_turn(|| {
        for is_alone in [false, true] {
            let (promise, value) = AsyncValue::<i32>::pending();
            let mut future = Box::pin(value.clone().into_future());
            let waker = Waker::from(Arc::new(Nobody));
            let mut context = Context::from_waker(&waker);
            assert!(future.as_mut().poll(&mut context).is_pending());
            drop(future);
            let took = match is_alone {
                true => taken(|| value.when_settled(drop)),
                false => taken(|| value.and_then(|| ())),
            };
            assert_ne!(took, (0, 0));
            drop(promise);
        }
    });
}

/// Tests of where blocks of the system's allocator come from free lists.
#[cfg(not(any(miri, tfrt_no_free_lists)))]
mod free_lists {
    use std::thread;

    use tfrt_async::{HostAllocator, SystemAllocator};

    use super::*;

    #[test]
    fn blocks_in_use_are_counted_with_their_bytes() {
        in_turn(|| {
            // What is small is rounded up to a size that is kept at hand.
            for (size, size_kept) in [(300_000, 300_000), (100, 112)] {
                let allocator = SystemAllocator::new();
                let layout = Layout::from_size_align(size, 8).unwrap();
                let before = memory_stats();
                let block = allocator.allocate(layout).unwrap();
                let during = memory_stats();
                // SAFETY: it came from there with this layout.
                unsafe { allocator.deallocate(block, layout) };
                let after = memory_stats();
                let counts = [before, during, after].map(|stats| stats.live_blocks);
                assert_eq!(counts, [0, 1, 0].map(|n| counts[0] + n));
                let bytes = [before, during, after].map(|stats| stats.live_bytes);
                assert_eq!(bytes, [0, size_kept, 0].map(|n| bytes[0] + n));
            }
        });
    }

    #[test]
    fn block_that_was_given_back_is_at_hand() {
        in_turn(|| {
            drop(AsyncValue::<i32>::pending());
            let before = memory_stats();
            drop(AsyncValue::<i32>::pending());
            let after = memory_stats();
            let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
            assert_eq!((hits, misses), (1, 0));
            assert!(after.chunk_bytes >= 72);
        });
    }

    #[test]
    fn block_that_another_thread_gives_back_is_taken_back_by_a_look() {
        in_turn(|| {
            let before = memory_stats();
            let value = AsyncValue::available("text".to_owned());
            thread::spawn(move || drop(value)).join().unwrap();
            let after = memory_stats();
            assert_eq!(after.returned - before.returned, 1);
            assert_eq!(after.live_blocks, before.live_blocks);
        });
    }
}
