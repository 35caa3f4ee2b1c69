//! The shared queue of a pool: tasks from threads that are not workers, and what overflows from
//! workers' deques.
//!
//! First in, first out, behind a mutex, without a bound. Workers take several tasks at a time,
//! so the lock is taken rarely.
//!
//! # Invariants
//!
//! * `hint` is the number of tasks whenever the lock is free.
//! * Once closed, the injector takes tasks from workers only: what they still run may overflow.

use std::collections::VecDeque;

use super::sleep::lock;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// The most capacity that an injector keeps when it has run empty.
const KEPT_CAPACITY: usize = 4096;

/// A shared queue of tasks.
pub(super) struct Injector<T> {
    state: Mutex<State<T>>,
    hint: AtomicUsize,
}

struct State<T> {
    tasks: VecDeque<T>,
    closed: bool,
}

impl<T> Injector<T> {
    pub(super) fn new() -> Injector<T> {
        let state = State {
            tasks: VecDeque::new(),
            closed: false,
        };
        Injector {
            state: Mutex::new(state),
            hint: AtomicUsize::new(0),
        }
    }

    /// Adds a task from a thread outside.
    ///
    /// # Errors
    ///
    /// Hands the task back if the injector is closed.
    pub(super) fn push(&self, task: T) -> Result<(), T> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(task);
        }
        state.tasks.push_back(task);
        // Ordering: a hint.
        self.hint.store(state.tasks.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Adds tasks from a thread outside, in order.
    ///
    /// # Errors
    ///
    /// Hands them back if the injector is closed.
    pub(super) fn push_all(&self, tasks: Vec<T>) -> Result<(), Vec<T>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(tasks);
        }
        state.tasks.extend(tasks);
        // Ordering: a hint.
        self.hint.store(state.tasks.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Adds tasks of a worker, closed or not.
    pub(super) fn overflow(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = lock(&self.state);
        state.tasks.extend(tasks);
        // Ordering: a hint.
        self.hint.store(state.tasks.len(), Ordering::Relaxed);
    }

    /// Takes the oldest task for one of `n_workers`, and appends to `more` up to `room` others,
    /// a fair share of what there is, oldest first.
    pub(super) fn take(&self, n_workers: usize, room: usize, more: &mut Vec<T>) -> Option<T> {
        if !self.may_have_tasks() {
            return None;
        }
        let mut state = lock(&self.state);
        let share = (state.tasks.len() / n_workers.max(1)).min(room);
        let oldest = state.tasks.pop_front();
        let share = share.min(state.tasks.len());
        more.extend(state.tasks.drain(..share));
        if state.tasks.is_empty() && state.tasks.capacity() > KEPT_CAPACITY {
            state.tasks = VecDeque::new();
        }
        // Ordering: a hint.
        self.hint.store(state.tasks.len(), Ordering::Relaxed);
        oldest
    }

    /// Returns whether there are tasks; of a push and a call of this one is ordered after the
    /// other, by the lock.
    pub(super) fn has_tasks(&self) -> bool {
        !lock(&self.state).tasks.is_empty()
    }

    /// Returns whether there seem to be tasks, without taking the lock.
    #[inline]
    pub(super) fn may_have_tasks(&self) -> bool {
        // Ordering: a hint.
        self.hint.load(Ordering::Relaxed) > 0
    }

    /// Takes no more tasks from outside.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
    }

    /// Removes all tasks.
    pub(super) fn drain(&self) -> VecDeque<T> {
        let mut state = lock(&self.state);
        self.hint.store(0, Ordering::Relaxed);
        std::mem::take(&mut state.tasks)
    }
}
