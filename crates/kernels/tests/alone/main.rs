//! Tests that count the cells of the process, in one program: they take turns, and nothing else runs beside them.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod dropped;
mod loops;

/// Waits for the turn of a test that counts, which lasts until the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
