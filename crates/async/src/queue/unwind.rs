//! Running and dropping users' code, whose panics stop here.
//!
//! A task may panic, and so may the payload of a panic or a captured value while it is dropped.
//! None of it may reach the loop of a worker.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::task::Task;

/// The number of panic payloads that are dropped in a row, each of which may panic again; the last
/// one is leaked.
const MAX_PAYLOADS: usize = 16;

/// Runs the task; tells whether it panicked.
#[inline(always)]
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
#[inline(never)]
pub(super) fn drop_caught<T>(value: T) -> bool {
    let Err(mut payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) else {
        return false;
    };
    for _ in 0..MAX_PAYLOADS {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return true,
            Err(next) => payload = next,
        }
    }
    mem::forget(payload);
    true
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A panic payload that panics when dropped, with another of its kind as payload, so many
    /// times.
    struct Bomb(usize);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if let Some(left) = self.0.checked_sub(1) {
                std::panic::resume_unwind(Box::new(Bomb(left)));
            }
        }
    }

    #[test]
    fn payloads_that_panic_are_dropped_or_at_last_leaked() {
        assert!(!drop_caught(Bomb(0)));
        for n in [1, 2, 10] {
            assert!(drop_caught(Bomb(n)));
            assert!(run_caught(Task::new(move || drop(Bomb(n)))));
        }
        assert!(!run_caught(Task::new(|| drop(Bomb(0)))));
    }
}
