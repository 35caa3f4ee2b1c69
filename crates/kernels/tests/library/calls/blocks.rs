//! Tests of the blocks that calls take from the allocator of their host: how many, and that all are freed.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_async::{AsyncValue, Promise, SystemAllocator};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, ExecutionContext, Function, HostAllocator, HostContext, RequestContext,
};

use super::main_of;

/// An allocator that counts blocks.
#[derive(Default)]
struct Counting {
    system: SystemAllocator,
    n_taken: AtomicUsize,
    n_given_back: AtomicUsize,
    /// The most blocks at one time.
    max_held: AtomicUsize,
}

// SAFETY: the blocks are the system allocator's, which makes the same promise.
unsafe impl HostAllocator for Counting {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let n_taken = self.n_taken.fetch_add(1, Ordering::Relaxed) + 1;
        let n_held = n_taken - self.n_given_back.load(Ordering::Relaxed);
        self.max_held.fetch_max(n_held, Ordering::Relaxed);
        self.system.allocate(layout)
    }

    fn name(&self) -> &'static str {
        "counting"
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.n_given_back.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.system.deallocate(block, layout) }
    }
}

/// A host whose kernel `t.comes` returns an available value, or a pending one if it is told so.
struct Host {
    host: HostContext,
    blocks: Arc<Counting>,
    is_late: Arc<AtomicBool>,
    promises: Arc<Mutex<Vec<Promise<i32>>>>,
}

impl Host {
    fn new() -> Host {
        Host::counting(false)
    }

    fn counting(always: bool) -> Host {
        let blocks = Arc::new(Counting::default());
        let (is_late, promises) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let (late, kept) = (is_late.clone(), promises.clone());
        registry.add("t.comes", move |x: i32| -> AsyncValue<i32> {
            let (promise, value) = AsyncValue::pending();
            match late.load(Ordering::Relaxed) {
                true => kept.lock().unwrap().push(promise),
                false => promise.resolve(x),
            }
            value
        });
        let host = HostContext::builder(registry)
            .queue(Arc::new(SingleThreadedWorkQueue::new()))
            .allocator(blocks.clone())
            .dynamic_order(always)
            .build();
        Host {
            host,
            blocks,
            is_late,
            promises,
        }
    }

    fn main_of(&self, text: &str) -> Function {
        main_of(&self.host, text)
    }

    /// Calls a function with an argument, and returns the number of blocks that it took.
    fn n_blocks(&self, main: &Function, argument: i32, expected: i32) -> usize {
        let n_before = self.blocks.n_taken.load(Ordering::Relaxed);
        {
            let context = ExecutionContext::new(&RequestContext::new(&self.host));
            let results = main.execute(&context, vec![AnyAsyncValue::new(argument)]);
            for promise in std::mem::take(&mut *self.promises.lock().unwrap()) {
                promise.resolve(argument);
            }
            self.host.queue().await_all(&results).unwrap();
            let result = results.into_iter().next().unwrap().settled();
            assert_eq!(result.get::<i32>(), Some(&expected));
        }
        let n_taken = self.blocks.n_taken.load(Ordering::Relaxed);
        let n_given_back = self.blocks.n_given_back.load(Ordering::Relaxed);
        assert_eq!(n_taken, n_given_back, "all blocks are given back");
        n_taken - n_before
    }
}

#[test]
fn a_call_takes_no_block_as_long_as_its_values_are_there_and_for_some_time_after_one_was_not() {
    let host = Host::new();
    let main = host.main_of(
        "func.func @main(%x: i32) -> i32 {
           %p = \"t.comes\"(%x) : (i32) -> i32
           %a = tfrt.add.i32 %p, %x
           tfrt.return %a : i32
         }",
    );
    let n_blocks = || host.n_blocks(&main, 4, 8);
    assert_eq!([n_blocks(), n_blocks()], [0, 0]);
    for _ in 0..2 {
        host.is_late.store(true, Ordering::Relaxed);
        assert_eq!(n_blocks(), 1);
        // What is to come mostly is again.
        host.is_late.store(false, Ordering::Relaxed);
        assert!((0..15).all(|_| n_blocks() == 1));
        assert_eq!([n_blocks(), n_blocks()], [0, 0]);
    }
}

/// Returns a function that sums its argument and so many constants, all of which are there at one time.
fn wide(name: &str, n_constants: i32) -> String {
    let constants = (0..n_constants).map(|n| format!("  %v{n} = tfrt.constant.i32 {n}\n"));
    let operands = (0..n_constants).map(|n| format!(", %v{n}"));
    let types = vec!["i32"; n_constants as usize + 1].join(", ");
    format!(
        "func.func @{name}(%x: i32) -> i32 {{\n{}  %r = \"tfrt_test.sum\"(%x{}) : ({types}) -> i32\n  \
         tfrt.return %r : i32\n}}\n",
        constants.collect::<String>(),
        operands.collect::<String>(),
    )
}

#[test]
fn sixty_four_values_have_room_on_the_stack() {
    let host = Host::new();
    // The argument and the result have a place, too.
    for (n_constants, n_blocks) in [(10, 0), (62, 0), (63, 1), (64, 1), (500, 1)] {
        let main = host.main_of(&wide("main", n_constants));
        let sum = 3 + n_constants * (n_constants - 1) / 2;
        for _ in 0..3 {
            assert_eq!(host.n_blocks(&main, 3, sum), n_blocks, "{n_constants}");
        }
    }
}

#[test]
fn calls_share_blocks_and_the_last_is_kept_for_the_next_call() {
    let host = Host::new();
    // Each turn of the loop calls a function that does not fit where the loop is.
    let turns = format!(
        "{}func.func @main(%x: i32) -> i32 {{
           %n = tfrt.constant.i32 50
           %r = tfrt.repeat.i32 %n, %x : i32 {{
             %a = tfrt.call @wide(%x) : (i32) -> i32
             %b = tfrt.call @wide(%a) : (i32) -> i32
             tfrt.return %x : i32
           }}
           tfrt.return %r : i32
         }}",
        wide("wide", 100)
    );
    assert_eq!(host.n_blocks(&host.main_of(&turns), 9, 9), 1);
    // Each block is twice as large as the one before.
    let deep = "func.func @main(%n: i32) -> i32 {
      %one = tfrt.constant.i32 1
      %more = \"tfrt.lessequal.i32\"(%one, %n) : (i32, i32) -> i1
      %sum = tfrt.if %more, %n : (i32) -> (i32) {
        %one = tfrt.constant.i32 1
        %less = \"tfrt.minus.i32\"(%n, %one) : (i32, i32) -> i32
        %rest = tfrt.call @main(%less) : (i32) -> i32
        %sum = tfrt.add.i32 %n, %rest
        tfrt.return %sum : i32
      } else {
        tfrt.return %n : i32
      }
      tfrt.return %sum : i32
    }";
    let main = host.main_of(deep);
    let n_blocks = [5, 50, 500, 5000].map(|n| host.n_blocks(&main, n, n * (n + 1) / 2));
    assert!(n_blocks[0] == 0 && n_blocks[1] > 0 && n_blocks.is_sorted());
    assert!(n_blocks[2] < 8 && n_blocks[3] < 12, "{n_blocks:?}");
}

#[test]
fn a_call_keeps_one_block_beside_those_that_it_needs() {
    let host = Host::new();
    // Each function is too wide for the block of the one before.
    let widths = [100, 250, 600, 1400];
    let functions = widths.map(|n| wide(&format!("wide{n}"), n));
    let mut calls = "%r = tfrt.add.i32 %x, %x\n".to_owned();
    let (mut last, mut sum) = ("%r".to_owned(), 2);
    for n in widths {
        calls += &format!("%r{n} = tfrt.call @wide{n}({last}) : (i32) -> i32\n");
        (last, sum) = (format!("%r{n}"), sum + n * (n - 1) / 2);
    }
    let text = format!(
        "{}func.func @main(%x: i32) -> i32 {{\n{calls}tfrt.return {last} : i32\n}}\n",
        functions.concat(),
    );
    assert_eq!(host.n_blocks(&host.main_of(&text), 1, sum), widths.len());
    assert_eq!(host.blocks.max_held.load(Ordering::Relaxed), 2);
}

#[test]
fn a_call_that_is_counted_takes_a_block_unless_there_is_nothing_to_keep() {
    let host = Host::counting(true);
    let main = host.main_of(
        "func.func @main(%x: i32) -> i32 {
           %a = tfrt.add.i32 %x, %x
           tfrt.return %a : i32
         }",
    );
    assert_eq!(host.n_blocks(&main, 3, 6), 1);
    let nothing = host.main_of("func.func @main() {\n  tfrt.return\n}\n");
    let context = ExecutionContext::new(&RequestContext::new(&host.host));
    assert!(nothing.execute(&context, Vec::new()).is_empty());
    assert_eq!(host.n_blocks(&main, 4, 8), 1);
}
