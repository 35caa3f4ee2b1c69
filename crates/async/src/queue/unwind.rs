//! Where panics of users' code stop.
//!
//! A task may panic, and so may the payload of a panic or a captured value while it is dropped.
//! None of it may reach the loop of a worker.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::task::Task;

/// Runs the task; tells whether it panicked.
#[inline]
pub(super) fn run_caught(task: Task) -> bool {
    // A task is consumed whole, so nothing broken can be seen afterwards.
    match catch_unwind(AssertUnwindSafe(|| task.run())) {
        Ok(()) => false,
        Err(payload) => {
            drop_caught(payload);
            true
        }
    }
}

/// Drops a value of a user's; tells whether that panicked.
pub(super) fn drop_caught<T>(value: T) -> bool {
    match catch_unwind(AssertUnwindSafe(|| drop(value))) {
        Ok(()) => false,
        Err(payload) => {
            // It may panic when dropped, and so may what comes of that. It is leaked instead.
            mem::forget(payload);
            true
        }
    }
}
