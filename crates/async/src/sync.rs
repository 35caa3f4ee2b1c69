//! Standard atomics, or loom's under `cfg(loom)`, or shuttle's under `cfg(shuttle)`: the only module
//! that imports any of them.
//!
//! Everything in this crate that two threads may touch goes through these names, so that the
//! interleaving models run the very code that ships. Loom explores all schedules of a few steps of a
//! part, with weak memory; shuttle draws schedules of whole queues, without it.

#[cfg(not(any(loom, shuttle)))]
mod imp {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use std::thread;
}

/// Returns whether a thread has ended; false where that can't be known: shuttle has no such question.
#[cfg(not(loom))]
pub(crate) fn has_ended(thread: &thread::JoinHandle<()>) -> bool {
    #[cfg(shuttle)]
    let (has_ended, _) = (false, thread);
    #[cfg(not(shuttle))]
    let has_ended = thread.is_finished();
    has_ended
}

#[cfg(shuttle)]
mod imp {
    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use shuttle::thread;
}

#[cfg(not(loom))]
mod cell {
    /// A cell whose accesses go through closures, as loom's does.
    #[derive(Debug, Default)]
    pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        /// Gives `f` a pointer for reading.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Gives `f` a pointer for writing.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(not(loom))]
pub use cell::UnsafeCell;

#[cfg(loom)]
mod imp {
    pub use loom::cell::UnsafeCell;
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::thread;
}

/// Declares a thread-local of plain cells: `thread_cell!(static DEPTH: Cell<u32> = Cell::new(0));`.
///
/// Under loom and shuttle each modelled thread has its own.
#[cfg(not(any(loom, shuttle)))]
macro_rules! thread_cell {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        std::thread_local! { $(#[$attribute])* static $name: $type = const { $value }; }
    };
}

/// Declares a thread-local of plain cells: `thread_cell!(static DEPTH: Cell<u32> = Cell::new(0));`.
///
/// Under loom and shuttle each modelled thread has its own.
#[cfg(shuttle)]
macro_rules! thread_cell {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        shuttle::thread_local! { $(#[$attribute])* static $name: $type = $value; }
    };
}

/// Declares a thread-local of plain cells: `thread_cell!(static DEPTH: Cell<u32> = Cell::new(0));`.
///
/// Under loom and shuttle each modelled thread has its own.
#[cfg(loom)]
macro_rules! thread_cell {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        loom::thread_local! { $(#[$attribute])* static $name: $type = $value; }
    };
}

/// Types for statistics and for the lists of idle memory, which are never modelled: modelled programs have no such
/// lists.
pub mod statistic {
    pub use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub use std::sync::{Mutex, MutexGuard};
}

pub use imp::*;
pub(crate) use thread_cell;
