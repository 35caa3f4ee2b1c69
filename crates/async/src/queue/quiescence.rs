//! Waiting for a queue to come to rest.
//!
//! A thread that waits marks the word of the sleep protocol as *watched*, and then looks at the
//! counters. Whoever finishes a task changes or reads that word afterwards by a read-modify-write:
//! a worker when it goes to sleep, other threads after each task. So either the finish is seen
//! by the look, or the mark is seen by the finisher, which then notifies.

use super::sleep::{SleepProtocol, lock};
use super::task_counters::TaskCounters;
use crate::sync::{Condvar, Mutex};

/// The threads that wait for a queue to come to rest.
pub(super) struct Quiescence {
    n_waiting: Mutex<usize>,
    maybe: Condvar,
}

impl Quiescence {
    pub(super) fn new() -> Quiescence {
        Quiescence {
            n_waiting: Mutex::new(0),
            maybe: Condvar::new(),
        }
    }

    /// Blocks until nothing is in flight.
    pub(super) fn wait(&self, idle: &SleepProtocol, counters: &TaskCounters) {
        let mut n_waiting = lock(&self.n_waiting);
        *n_waiting += 1;
        idle.watch(true);
        while counters.in_flight() > 0 {
            n_waiting = self
                .maybe
                .wait(n_waiting)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *n_waiting -= 1;
        if *n_waiting == 0 {
            idle.watch(false);
        }
    }

    /// Makes waiting threads look again; what the caller did before is seen.
    pub(super) fn notify(&self) {
        drop(lock(&self.n_waiting));
        self.maybe.notify_all();
    }
}
