//! The scheduling of blocking tasks: which thread takes one, or whether it is queued or refused. It
//! makes no threads.
//!
//! A roster knows how many threads there are, how many of them wait, and which tasks wait. All
//! decisions are made under one lock, so that a task is never left to a thread that has decided
//! to leave.
//!
//! # Invariants
//!
//! * While tasks are queued there is a thread that has not left.
//! * The first `n_idle` queued tasks are promised to waiting threads; a task that may not be
//!   queued is only added to those.

use std::collections::VecDeque;

use super::sleep::lock;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// The scheduler of blocking tasks on their threads.
pub(super) struct Roster<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    max_threads: usize,
    max_queued: usize,
}

/// The state of a roster, protected by its lock.
pub(super) struct State<T> {
    queued: VecDeque<T>,
    n_threads: usize,
    n_idle: usize,
    closed: bool,
}

/// The answer to an offered task.
#[derive(Debug)]
pub(super) enum Offer<T> {
    /// Some thread will run the task.
    Accepted,
    /// The caller must make a thread that begins with it, or call [`Roster::not_started`].
    Start(T),
    /// No thread will run the task.
    Refused(T),
}

impl<T> Roster<T> {
    /// Makes an empty roster of up to `max_threads` threads and `max_queued` waiting tasks.
    pub(super) fn new(max_threads: usize, max_queued: usize) -> Roster<T> {
        let state = State {
            queued: VecDeque::new(),
            n_threads: 0,
            n_idle: 0,
            closed: false,
        };
        Roster {
            state: Mutex::new(state),
            arrived: Condvar::new(),
            max_threads,
            max_queued,
        }
    }

    /// Finds a thread for the task, or a place in the queue.
    pub(super) fn offer(&self, task: T) -> Offer<T> {
        let mut state = lock(&self.state);
        if state.closed {
            return Offer::Refused(task);
        }
        if state.n_idle > state.queued.len() {
            state.queued.push_back(task);
            self.arrived.notify_one();
            return Offer::Accepted;
        }
        if state.n_threads < self.max_threads {
            state.n_threads += 1;
            return Offer::Start(task);
        }
        self.queue(&mut state, task)
    }

    /// Takes back a task whose thread could not be made.
    pub(super) fn not_started(&self, task: T) -> Offer<T> {
        let mut state = lock(&self.state);
        state.n_threads -= 1;
        self.queue(&mut state, task)
    }

    fn queue(&self, state: &mut State<T>, task: T) -> Offer<T> {
        if state.n_threads == 0 || state.queued.len() >= self.max_queued {
            return Offer::Refused(task);
        }
        state.queued.push_back(task);
        if state.n_idle > 0 {
            // A thread may have begun to wait since the caller looked.
            self.arrived.notify_one();
        }
        Offer::Accepted
    }

    /// Gives a thread its next task, or `None` if it must leave. While there is none, `wait`
    /// waits for one to arrive, and tells whether the thread's patience is at an end.
    pub(super) fn next<'a>(
        &'a self,
        mut wait: impl FnMut(&'a Condvar, MutexGuard<'a, State<T>>) -> (MutexGuard<'a, State<T>>, bool),
    ) -> Option<T> {
        let mut state = lock(&self.state);
        let mut impatient = false;
        loop {
            if let Some(task) = state.queued.pop_front() {
                return Some(task);
            }
            if state.closed || impatient {
                state.n_threads -= 1;
                return None;
            }
            state.n_idle += 1;
            (state, impatient) = wait(&self.arrived, state);
            state.n_idle -= 1;
        }
    }

    /// Accepts no more tasks, and sends threads away once the queue is empty.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.arrived.notify_all();
    }

    /// Takes the lock again, in a model whose threads are out of patience at once.
    #[cfg(all(loom, test))]
    pub(super) fn relock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}
