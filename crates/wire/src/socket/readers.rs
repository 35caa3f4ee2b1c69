//! [`Readers`]: which of an endpoint's threads reads, and what it has not handed over yet.
//!
//! The thread that reads calls the [`Handler`](super::Handler) itself, so that a message costs no thread more than its
//! own. A second one stands by: it looks every [`LOOK`] whether the reader is still in the same call as before, and then
//! reads in its place; the first one ends when its call returns. While nothing is handed over it sleeps without a time, so
//! that an endpoint at rest wakes nobody.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::endpoint::PeerId;
use crate::event::Event;

/// The time after which a call of the handler is looked at again.
const LOOK: Duration = Duration::from_millis(5);

/// The number of looks without a call after which the thread that stands by sleeps.
const MAX_QUIET_LOOKS: u32 = 20;

/// The most threads whose calls last, and that others read in the place of. Behind them, events wait.
const MAX_DISPLACED: usize = 16;

thread_local! {
    static HANDS_OVER: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is one of an endpoint's, in whose place another reads if a call of the handler takes long.
pub fn is_reader() -> bool {
    HANDS_OVER.get()
}

/// Something that the handler is to be told.
#[derive(Debug)]
pub enum Happened {
    /// An event of a peer.
    Event(PeerId, Event),
    /// A connection was refused.
    Refused(String),
}

/// The result of a look for what is to be handed over.
pub enum Next {
    /// This is the next.
    One(Happened),
    /// Nothing is.
    Nothing,
    /// Another thread reads by now.
    Displaced,
}

/// The threads of an endpoint.
#[derive(Default)]
pub struct Readers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the thread that reads, counted from the first one.
    reader: u64,
    happened: VecDeque<Happened>,
    /// How many calls of the handler have begun.
    n_calls: u64,
    /// Whether the reader is in such a call.
    is_busy: bool,
    n_displaced: usize,
    /// Whether the thread that stands by sleeps until a call begins.
    sleeps: bool,
    is_stopped: bool,
}

impl Readers {
    /// Marks this thread as one of an endpoint's.
    pub fn enter() {
        HANDS_OVER.set(true);
    }

    /// Adds what has happened.
    pub fn add(&self, happened: impl Iterator<Item = Happened>) {
        self.lock().happened.extend(happened);
    }

    /// Ends the call of a reader, if it is in one, and returns what it is to hand over next.
    pub fn next(&self, reader: u64) -> Next {
        let mut state = self.lock();
        if state.reader != reader {
            state.n_displaced -= 1;
            return Next::Displaced;
        }
        let Some(one) = state.happened.pop_front() else {
            state.is_busy = false;
            return Next::Nothing;
        };
        state.n_calls += 1;
        state.is_busy = true;
        let wakes = std::mem::take(&mut state.sleeps);
        drop(state);
        if wakes {
            self.changed.notify_all();
        }
        Next::One(one)
    }

    /// Waits until a call of the reader lasts. Returns the number by which this thread then reads, or none once the
    /// endpoint is dropped.
    pub fn stand_by(&self) -> Option<u64> {
        let mut state = self.lock();
        let (mut before, mut n_quiet) = (state.n_calls, 0);
        while !state.is_stopped {
            if n_quiet == MAX_QUIET_LOOKS {
                state.sleeps = true;
                while state.sleeps && !state.is_stopped {
                    let waited = self.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                n_quiet = 0;
            }
            let was_busy = state.is_busy && state.n_calls == before;
            before = state.n_calls;
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let is_same = state.n_calls == before;
            if was_busy && is_same && state.is_busy && state.n_displaced < MAX_DISPLACED {
                state.reader += 1;
                state.n_displaced += 1;
                state.is_busy = false;
                return Some(state.reader);
            }
            n_quiet = match is_same && !state.is_busy {
                true => n_quiet + 1,
                false => 0,
            };
        }
        None
    }

    /// Ends all threads but those that are in calls, which end behind them.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let left = std::mem::take(&mut state.happened);
        drop(state);
        self.changed.notify_all();
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
