//! A counter that kernels of different threads add to.

use std::sync::atomic::{AtomicI32, Ordering};

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Chain, Heap, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.atomic.create.i32", || Counter(AtomicI32::new(0)))
        .add("tfrt_test.atomic.inc.i32", |counter: &Counter| {
            counter.add(1)
        })
        .add("tfrt_test.atomic.add.i32", |counter: &Counter, n: i32| {
            counter.add(n)
        })
        .add("tfrt_test.atomic.get.i32", get);
}

/// `!test.atomic.i32`
struct Counter(AtomicI32);

impl Value for Counter {
    const NAME: &'static str = "!test.atomic.i32";
    type Storage = Heap;
}

impl Counter {
    /// Adds and wraps around.
    fn add(&self, n: i32) -> Chain {
        // Ordering: the chain orders; the number itself is all that is shared.
        self.0.fetch_add(n, Ordering::Relaxed);
        Chain
    }
}

/// `%n, %c1 = "tfrt_test.atomic.get.i32"(%a, %c0)`
fn get(counter: &Counter) -> (i32, Chain) {
    // Ordering: as in `add`.
    (counter.0.load(Ordering::Relaxed), Chain)
}
