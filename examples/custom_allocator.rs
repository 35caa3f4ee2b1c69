//! An allocator of one's own: it counts what is alive, and refuses more than a budget.
//!
//! The runtime asks for memory for calls and buffers. A refusal is no end of the world: the call
//! fails with `ResourceExhausted`, and everything else goes on.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tfrt::asynchronous::SystemAllocator;
use tfrt::{ErrorCode, HostAllocator, Runtime};

/// Runs a program within the budget, and one beyond it.
pub fn main() {
    let allocator = Arc::new(Budget::new(4096));
    let runtime = Runtime::builder().allocator(allocator.clone()).build();
    let program = runtime
        .compile(
            "memory.mlir",
            r#"func.func @twice(%x: i32) -> i32 {
                 %y = tfrt.add.i32 %x, %x
                 tfrt.return %y : i32
               }
               func.func @forever(%x: i32) -> i32 {
                 %y = tfrt.call @forever(%x) : (i32) -> (i32)
                 tfrt.return %y : i32
               }"#,
        )
        .expect("the program is right");
    let context = runtime.context();

    let twice = program.function("twice").expect("it is in the text");
    let values = twice.call(&context, (21,)).wait().expect("it fits");
    assert_eq!(*values.get::<i32>(0).expect("it is an i32"), 42);

    // Each call within a call takes memory, until there is none.
    let forever = program.function("forever").expect("it is in the text");
    let error = forever
        .call(&context, (1,))
        .wait()
        .expect_err("it is too deep");
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);

    runtime.quiesce().expect("this thread is no worker");
    drop((values, context, forever, twice, program, runtime));
    assert_eq!(allocator.n_alive_bytes(), 0);
    println!(
        "{error}; at most {} bytes were alive",
        allocator.n_most_bytes()
    );
}

/// An allocator that gives out at most a number of bytes of the system's memory at once.
struct Budget {
    system: SystemAllocator,
    limit: usize,
    alive: AtomicUsize,
    most: AtomicUsize,
}

impl Budget {
    fn new(limit: usize) -> Budget {
        Budget {
            system: SystemAllocator::new(),
            limit,
            alive: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }

    fn n_alive_bytes(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }

    fn n_most_bytes(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    fn take_back(&self, n_bytes: usize) {
        self.alive.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

// SAFETY: the blocks are the system allocator's, which makes the same promise.
unsafe impl HostAllocator for Budget {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let n_bytes = layout.size();
        let alive = self.alive.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes;
        if alive > self.limit {
            self.take_back(n_bytes);
            return None;
        }
        self.most.fetch_max(alive, Ordering::Relaxed);
        let block = self.system.allocate(layout);
        if block.is_none() {
            self.take_back(n_bytes);
        }
        block
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.take_back(layout.size());
        // SAFETY: whoever calls this got the block from `allocate` with this layout, which got it
        // from the system's allocator with the same.
        unsafe { self.system.deallocate(block, layout) }
    }

    fn name(&self) -> &'static str {
        "budget"
    }
}
