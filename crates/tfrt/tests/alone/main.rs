//! Tests that look at what belongs to the whole process, its counters of cells, its memory, its threads, in one program:
//! they take turns, and nothing else runs beside them.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod allocations;
mod interleaving;
#[path = "../../../async/tests/library/own_process.rs"]
mod own_process;
#[cfg(target_os = "linux")]
mod sessions;
mod survival;
#[cfg(target_os = "linux")]
mod thousand;

/// Waits for the turn of a test, which lasts until the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
