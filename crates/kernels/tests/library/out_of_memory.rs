//! Tests of memory of calls that is refused: the error says how much it was.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tfrt_async::SystemAllocator;
use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, ErrorCode, ExecutionContext, HostAllocator, HostContext, Program, RequestContext,
};

/// The least size of blocks that are refused.
const TOO_LARGE: usize = 1 << 16;

/// An allocator that refuses large blocks, and remembers how large the last was.
struct Narrow {
    system: SystemAllocator,
    refused: AtomicUsize,
}

// SAFETY: the blocks are the system allocator's, which makes the same promise.
unsafe impl HostAllocator for Narrow {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() >= TOO_LARGE {
            self.refused.store(layout.size(), Ordering::Relaxed);
            return None;
        }
        self.system.allocate(layout)
    }

    fn name(&self) -> &'static str {
        "narrow"
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.system.deallocate(block, layout) }
    }
}

#[test]
fn calls_say_about_how_many_bytes_were_refused() {
    // All values are held at once.
    let constants = (0..7_000).map(|n| format!("  %v{n} = tfrt.constant.i32 {n}\n"));
    let operands: Vec<String> = (0..7_000).map(|n| format!("%v{n}")).collect();
    let types = vec!["i32"; 7_000].join(", ");
    let wide = format!(
        "() -> i32 {{\n{}  %r = \"tfrt_test.sum\"({}) : ({types}) -> i32\n  tfrt.return %r : i32\n}}\n",
        constants.collect::<String>(),
        operands.join(", "),
    );
    let outermost = format!("func.func @main{wide}");
    let nested = format!(
        "func.func @wide{wide}func.func @main() -> i32 {{\n  %r = tfrt.call @wide() : () -> i32\n  \
         tfrt.return %r : i32\n}}\n"
    );
    for (text, name, always_counts) in [
        (&outermost, "main", false),
        (&nested, "wide", false),
        (&outermost, "main", true),
    ] {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let narrow = Arc::new(Narrow {
            system: SystemAllocator::new(),
            refused: AtomicUsize::new(0),
        });
        let host = HostContext::builder(registry)
            .queue(Arc::new(SingleThreadedWorkQueue::new()))
            .allocator(narrow.clone())
            .dynamic_order(always_counts)
            .build();
        let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
        let bytes = compile(&module, &CompileOptions::default()).unwrap();
        let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
        let main = program.function("main").unwrap();
        let request = RequestContext::new(&host);
        let results = main.execute(&ExecutionContext::new(&request), Vec::new());
        let result = results
            .into_iter()
            .next()
            .map(AnyAsyncValue::settled)
            .unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.code(), ErrorCode::ResourceExhausted);
        let refused = narrow.refused.load(Ordering::Relaxed);
        let rest = error
            .message()
            .strip_prefix(&format!("no memory for a call of '{name}': about "))
            .and_then(|rest| rest.strip_suffix(" bytes were refused"));
        let told: usize = rest.unwrap().parse().unwrap();
        // In order, some slots more are asked for, for the calls to come.
        assert!(
            told <= refused && refused - told < told / 100,
            "{told}: {refused}"
        );
    }
}
