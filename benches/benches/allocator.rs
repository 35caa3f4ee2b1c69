//! The cost of a block of memory, taken and given back, beside the system's allocator: nanoseconds
//! for one.

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::mpsc;
use std::thread;

use tfrt_async::{HostAllocator, SystemAllocator};
use tfrt_benches::compare::{Contender, Subject};
use tfrt_benches::measure::Clock;
use tfrt_benches::table::Bench;

/// The number of blocks each time.
const N: usize = 1_000;

fn main() {
    let bench = Bench::from_environment();
    bench.begin("blocks of memory, and back");
    // The size of the blocks, and how many of them are in use.
    for (name, size, n_in_use) in [
        ("block_64", 64, 1),
        ("block_256", 256, 1),
        ("blocks_256", 256, 100),
        ("block_8192", 8192, 1),
    ] {
        if bench.is_wanted(name) {
            let contenders = both().map(|(who, allocator)| {
                Contender::new(who, Clock::Process, move || {
                    on_one_thread(allocator, size, n_in_use)
                })
            });
            bench.compare(subject(name), &mut Vec::from(contenders));
        }
    }
    if bench.is_wanted("block_elsewhere") {
        let contenders = both().map(|(who, allocator)| elsewhere(who, allocator, 256));
        bench.compare_on_two(subject("block_elsewhere"), &mut Vec::from(contenders));
    }
}

fn subject(name: &str) -> Subject<'_> {
    Subject {
        name,
        unit: "block",
        n_units: N,
        answer: 0,
    }
}

/// The system's allocator, as the contract wants it.
struct Malloc;

// SAFETY: the blocks are the system's, which promises the same.
unsafe impl HostAllocator for Malloc {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0, "nobody asks for empty blocks here");
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc(layout) })
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller says that it came from `allocate` with this layout.
        unsafe { dealloc(block.as_ptr(), layout) };
    }

    fn name(&self) -> &'static str {
        "malloc"
    }
}

static OURS: SystemAllocator = SystemAllocator::new();
static MALLOC: Malloc = Malloc;

/// Returns both allocators, so that the compiler does not know which is which.
fn both() -> [(&'static str, &'static dyn HostAllocator); 2] {
    black_box([("tfrt", &OURS), ("malloc", &MALLOC)])
}

fn take(allocator: &dyn HostAllocator, size: usize) -> NonNull<u8> {
    let block = allocator.allocate(layout(size));
    block.expect("there is memory for a block")
}

fn free(allocator: &dyn HostAllocator, block: NonNull<u8>, size: usize) {
    // SAFETY: the callers have the block from `take`, of this allocator and size, and use it no
    // more.
    unsafe { allocator.deallocate(block, layout(size)) };
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("sixteen is a power of two")
}

/// Takes some blocks and gives them all back, again and again.
fn on_one_thread(allocator: &dyn HostAllocator, size: usize, n_in_use: usize) -> i32 {
    let mut blocks = [NonNull::dangling(); 100];
    let blocks = &mut blocks[..n_in_use];
    for _ in 0..N / n_in_use {
        blocks.fill_with(|| take(allocator, size));
        for block in black_box(&mut *blocks) {
            free(allocator, *block, size);
        }
    }
    0
}

/// Takes blocks here and gives them back on another thread; the processor time of both.
fn elsewhere(who: &str, allocator: &'static dyn HostAllocator, size: usize) -> Contender {
    /// Addresses, since pointers may not go to other threads.
    type Blocks = Vec<usize>;
    let (to, from) = mpsc::sync_channel::<Blocks>(1);
    let (back, done) = mpsc::sync_channel::<Blocks>(1);
    thread::spawn(move || {
        for mut blocks in from {
            for address in blocks.drain(..) {
                let block = NonNull::new(std::ptr::with_exposed_provenance_mut(address));
                free(allocator, block.expect("it was a block"), size);
            }
            if back.send(blocks).is_err() {
                return;
            }
        }
    });
    let mut blocks = Blocks::with_capacity(N);
    Contender::new(who, Clock::Process, move || {
        blocks.extend((0..N).map(|_| take(allocator, size).expose_provenance().get()));
        let full = std::mem::take(&mut blocks);
        to.send(full).expect("the other thread waits");
        blocks = done.recv().expect("the other thread gives them back");
        0
    })
}
