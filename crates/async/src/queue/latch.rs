//! Waiting for values on a thread that has nothing better to do.

use std::time::Instant;

use super::sleep::lock;
use crate::any::AnyAsyncValue;
use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering};

struct Latch {
    missing: AtomicUsize,
    open: Mutex<bool>,
    opened: Condvar,
}

/// Blocks the calling thread until every value is settled, or the deadline has passed; tells
/// which.
pub(super) fn wait_settled(values: &[AnyAsyncValue], deadline: Option<Instant>) -> bool {
    if values.iter().all(AnyAsyncValue::is_settled) {
        return true;
    }
    // One more than there are, so that it can't open while continuations are still registered.
    let latch = Arc::new(Latch {
        missing: AtomicUsize::new(1),
        open: Mutex::new(false),
        opened: Condvar::new(),
    });
    for value in values.iter().filter(|value| !value.is_settled()) {
        // Ordering: nobody can bring the count to zero before the last line of this block.
        latch.missing.fetch_add(1, Ordering::Relaxed);
        let arriving = latch.clone();
        value.and_then(move || arriving.arrive());
    }
    latch.arrive();
    latch.wait(deadline)
}

impl Latch {
    fn arrive(&self) {
        // Ordering: whoever sees the latch open comes after all arrivals.
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            *lock(&self.open) = true;
            self.opened.notify_all();
        }
    }

    fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut open = lock(&self.open);
        while !*open {
            let Some(deadline) = deadline else {
                open = self
                    .opened
                    .wait(open)
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (open, _) = self
                .opened
                .wait_timeout(open, left)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        true
    }
}
