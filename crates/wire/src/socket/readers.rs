//! [`Readers`]: which of an endpoint's threads reads, and what it has not handed over yet.
//!
//! The thread that reads calls the [`Handler`](super::Handler) itself, so that a message costs no thread more than its
//! own. Events are handed over one after the other, as later ones build on earlier ones; a handler that is done with that
//! may do [`lasting`] work behind it. A second thread stands by: it looks every [`LOOK`] whether the reader is still in the
//! same work as before, and then reads in its place; the first one ends when its call returns. While there is no such work
//! it sleeps without a time, so that an endpoint at rest wakes nobody.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::endpoint::PeerId;
use crate::event::Event;

/// The time after which lasting work is looked at again.
const LOOK: Duration = Duration::from_millis(5);

/// The number of looks without such work after which the thread that stands by sleeps.
const MAX_QUIET_LOOKS: u32 = 20;

/// The most threads whose work lasts, and that others read in the place of. Behind them, events wait.
const MAX_DISPLACED: usize = 16;

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// A thread that reads.
struct Own {
    readers: Arc<Readers>,
    number: u64,
    /// Whether it is in work that may last.
    lasts: bool,
}

/// Does work in a call of a handler, behind all that later events build on: if it takes long, another thread goes on with
/// those. On other threads it is done as it is.
pub fn lasting<R>(work: impl FnOnce() -> R) -> R {
    let set = |lasts: bool| {
        OWN.with_borrow_mut(|own| {
            let own = own.as_mut()?;
            let is_changed = std::mem::replace(&mut own.lasts, lasts) != lasts;
            is_changed.then(|| (own.readers.clone(), own.number))
        })
    };
    // Within such work there may be more.
    let Some((readers, number)) = set(true) else {
        return work();
    };
    readers.begin(number);
    let result = work();
    set(false);
    readers.end(number);
    result
}

/// Returns whether this thread is in [`lasting`] work of a handler.
pub fn is_lasting() -> bool {
    OWN.with_borrow(|own| own.as_ref().is_some_and(|own| own.lasts))
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
    /// How many times lasting work has begun.
    n_works: u64,
    /// Whether the reader is in such work.
    is_busy: bool,
    n_displaced: usize,
    /// Whether the thread that stands by sleeps until such work begins.
    sleeps: bool,
    is_stopped: bool,
}

impl Readers {
    /// Makes this thread the one that reads by this number.
    pub fn enter(self: &Arc<Self>, number: u64) {
        let (readers, lasts) = (self.clone(), false);
        OWN.set(Some(Own {
            readers,
            number,
            lasts,
        }));
    }

    /// Adds what has happened.
    pub fn add(&self, happened: impl Iterator<Item = Happened>) {
        self.lock().happened.extend(happened);
    }

    /// Returns what a reader is to hand over next.
    pub fn next(&self, reader: u64) -> Next {
        let mut state = self.lock();
        if state.reader != reader {
            state.n_displaced -= 1;
            return Next::Displaced;
        }
        // A panic may have ended work.
        state.is_busy = false;
        match state.happened.pop_front() {
            Some(one) => Next::One(one),
            None => Next::Nothing,
        }
    }

    fn begin(&self, reader: u64) {
        let mut state = self.lock();
        if state.reader != reader {
            return;
        }
        state.n_works += 1;
        state.is_busy = true;
        let wakes = std::mem::take(&mut state.sleeps);
        drop(state);
        if wakes {
            self.changed.notify_all();
        }
    }

    fn end(&self, reader: u64) {
        let mut state = self.lock();
        if state.reader == reader {
            state.is_busy = false;
        }
    }

    /// Waits until work of the reader lasts. Returns the number by which this thread then reads, or none once the
    /// endpoint is dropped.
    pub fn stand_by(&self) -> Option<u64> {
        let mut state = self.lock();
        let (mut before, mut n_quiet) = (state.n_works, 0);
        while !state.is_stopped {
            if n_quiet == MAX_QUIET_LOOKS {
                state.sleeps = true;
                while state.sleeps && !state.is_stopped {
                    let waited = self.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                n_quiet = 0;
            }
            let was_busy = state.is_busy && state.n_works == before;
            before = state.n_works;
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let is_same = state.n_works == before;
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

    /// Ends all threads but those that are in work, which end behind it.
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
