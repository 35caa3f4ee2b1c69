//! The atomic words of a cell: its state, its count of handles, its reservation.
//!
//! # The state word
//!
//! The high bits are the head of the waiter list (nodes are 16-aligned), the low four are flags.
//!
//! | bits | name    | meaning                                                                 |
//! |------|---------|-------------------------------------------------------------------------|
//! | 0, 1 | outcome | 0 pending, 1 value, 2 error, 3 forwarded                                |
//! | 2    | claim   | both sides are there: the promise on one, at least one handle on the other |
//! | 3    | first   | the continuation stored in the cell is the oldest of the waiters        |
//!
//! | From               | Transition            | To                  | Who                  |
//! |--------------------|-----------------------|---------------------|----------------------|
//! | pending            | [`State::push_first`] | pending, first      | a handle             |
//! | pending            | [`State::push_waiter`]| pending, new head   | a handle             |
//! | pending, first     | [`State::pop_first`]  | pending             | the handle that pushed it |
//! | pending, claimed   | [`State::settle`]     | settled             | the promise          |
//! | pending, claimed   | [`State::abandon`]    | pending, unclaimed  | the last handle      |
//! | pending, unclaimed | [`State::settle`]     | settled; it frees   | the promise          |
//! | settled            | none: it is final; the last handle frees                            |||
//!
//! The claim decides who frees the cell. Whichever side leaves first takes the claim with it, by
//! the same read-modify-write that makes it leave; the side that finds it gone frees.
//!
//! Invariants:
//!
//! * Waiters and `first` exist only while the outcome is pending.
//! * `first` is set only on a list without waiters, so the continuation in the cell runs last.
//!
//! No other module performs an atomic operation on these words.

use std::ptr;

use crate::{
    sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering},
    waiter::WaiterNode,
};

const OUTCOME: usize = 0b0011;
const CLAIM: usize = 0b0100;
const FIRST: usize = 0b1000;
const FLAGS: usize = 0b1111;
/// The bits that are set as soon as anybody waits: the list's head, and `FIRST`.
const WAITERS: usize = !0b0111;

/// The outcome of a settled cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The payload is there.
    Value = 1,
    /// The outcome field holds the error.
    Error = 2,
    /// The outcome field holds a counted pointer to a heap cell in state `Value`.
    Forwarded = 3,
}

/// A snapshot of the state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateWord(*mut WaiterNode);

impl StateWord {
    fn flags(self) -> usize {
        self.0.addr() & FLAGS
    }

    /// Returns how the cell was settled, or `None` while it is pending.
    #[inline]
    pub(crate) fn outcome(self) -> Option<Outcome> {
        match self.0.addr() & OUTCOME {
            1 => Some(Outcome::Value),
            2 => Some(Outcome::Error),
            3 => Some(Outcome::Forwarded),
            _ => None,
        }
    }

    /// Returns true until the cell is settled.
    #[inline]
    pub(crate) fn is_pending(self) -> bool {
        self.0.addr() & OUTCOME == 0
    }

    /// Returns true if neither the promise nor the last handle has left.
    #[inline]
    pub(crate) fn is_claimed(self) -> bool {
        self.flags() & CLAIM != 0
    }

    /// Returns true if the continuation stored in the cell is among the waiters.
    #[inline]
    pub(crate) fn has_first(self) -> bool {
        self.flags() & FIRST != 0
    }

    /// Returns the newest waiter that is not stored in the cell, or null.
    #[inline]
    pub(crate) fn waiters(self) -> *mut WaiterNode {
        self.0.map_addr(|address| address & !FLAGS)
    }

    /// Returns true if nobody waits.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0.addr() & WAITERS == 0
    }
}

/// The party that frees a cell which its last handle has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// The promise is still there and frees the cell when it settles it.
    ByHandles,
    /// The cell was settled before: the caller frees it.
    AfterSettling(Outcome),
}

/// The state word of one cell.
#[derive(Debug)]
pub(crate) struct State(AtomicPtr<WaiterNode>);

impl State {
    /// Returns the word of a cell that a promise will settle.
    pub(crate) fn pending() -> State {
        State(AtomicPtr::new(ptr::without_provenance_mut(CLAIM)))
    }

    /// Returns the word of a cell that was born with its value.
    pub(crate) fn value() -> State {
        State(AtomicPtr::new(ptr::without_provenance_mut(
            Outcome::Value as usize,
        )))
    }

    /// Returns the word as it is; whoever sees it settled may read what it was settled with.
    #[inline]
    pub(crate) fn load(&self) -> StateWord {
        // Ordering: pairs with the release in `settle`.
        StateWord(self.0.load(Ordering::Acquire))
    }

    /// Makes the continuation stored in the cell a waiter, if nobody waits yet.
    ///
    /// Returns the word that stands in the way if it is not `seen` any more.
    #[inline]
    pub(crate) fn push_first(&self, seen: StateWord) -> Result<(), StateWord> {
        debug_assert!(
            seen.is_pending() && seen.is_empty(),
            "the first waiter is the oldest"
        );
        let with_first = seen.0.map_addr(|address| address | FIRST);
        // Ordering: releases the continuation to `settle`.
        self.exchange(seen, with_first, Ordering::Release)
    }

    /// Makes `node` the newest waiter; its `next` is already `seen.waiters()`.
    ///
    /// Returns the word that stands in the way if it is not `seen` any more.
    #[inline]
    pub(crate) fn push_waiter(
        &self,
        seen: StateWord,
        node: *mut WaiterNode,
    ) -> Result<(), StateWord> {
        debug_assert!(
            seen.is_pending(),
            "waiters exist only while the outcome is pending"
        );
        let flags = seen.flags();
        let with_node = node.map_addr(|address| address | flags);
        // Ordering: releases the node to `settle`.
        self.exchange(seen, with_node, Ordering::Release)
    }

    /// Makes the continuation stored in the cell no waiter any more.
    ///
    /// Returns the word that stands in the way if it is not `seen` any more. The place in the cell
    /// is not to be written again: the promise may be reading it, and will find out.
    #[inline]
    pub(crate) fn pop_first(&self, seen: StateWord) -> Result<(), StateWord> {
        debug_assert!(seen.is_pending() && seen.has_first(), "it is a waiter");
        let without = seen.0.map_addr(|address| address & !FIRST);
        // Ordering: relaxed, since whoever takes the continuation back has stored it; what others
        // released with the word stays released.
        self.exchange(seen, without, Ordering::Relaxed)
    }

    /// Settles the cell: publishes what the promise wrote, takes all waiters and gives up the
    /// claim, in one step.
    ///
    /// Returns the word that stands in the way if it is not `seen` any more. After success the
    /// cell belongs to its handles, or to the caller if `seen` was not claimed.
    #[inline]
    pub(crate) fn settle(&self, seen: StateWord, outcome: Outcome) -> Result<(), StateWord> {
        debug_assert!(seen.is_pending(), "a promise settles once");
        // Ordering: releases the payload to `load`. The waiters that `push_waiter` and
        // `push_first` released, and what the last handle released in `abandon`, were acquired
        // by the reading that gave `seen`.
        let settled = ptr::without_provenance_mut(outcome as usize);
        self.exchange(seen, settled, Ordering::Release)
    }

    /// Leaves the cell for good: the last handle is going.
    pub(crate) fn abandon(&self) -> Abandoned {
        let mut seen = self.load();
        loop {
            if let Some(outcome) = seen.outcome() {
                return Abandoned::AfterSettling(outcome);
            }
            let unclaimed = seen.0.map_addr(|address| address & !CLAIM);
            // Ordering: releases all that handles did with the cell to `settle`, whose caller
            // frees it.
            match self.exchange(seen, unclaimed, Ordering::Release) {
                Ok(()) => return Abandoned::ByHandles,
                Err(now) => seen = now,
            }
        }
    }

    #[inline(always)]
    fn exchange(
        &self,
        seen: StateWord,
        new: *mut WaiterNode,
        success: Ordering,
    ) -> Result<(), StateWord> {
        // Ordering: `success` is the caller's; failure is a reading as in `load`.
        match self
            .0
            .compare_exchange_weak(seen.0, new, success, Ordering::Acquire)
        {
            Ok(_) => Ok(()),
            Err(now) => Err(StateWord(now)),
        }
    }
}

/// The number of handles to a cell.
#[derive(Debug)]
pub(crate) struct References(AtomicU32);

impl References {
    /// Returns a count of one.
    pub(crate) fn one() -> References {
        References(AtomicU32::new(1))
    }

    /// Counts `n` more handles.
    #[inline]
    pub(crate) fn retain(&self, n: usize) {
        let more = u32::try_from(n).unwrap_or(u32::MAX);
        // Ordering: relaxed, since the caller holds a handle, and passing the new ones on to
        // another thread orders them.
        let before = self.0.fetch_add(more, Ordering::Relaxed);
        if more > u32::MAX / 2 || before > u32::MAX / 2 {
            // A wrapped count would free a cell in use; nothing can be saved at this point.
            std::process::abort();
        }
    }

    /// Counts one handle less; returns true if it was the last.
    #[inline]
    pub(crate) fn release(&self) -> bool {
        // Ordering: the acquire pairs with the release below, in other threads. A sole holder
        // needs no read-modify-write: nobody else can make another handle.
        if self.0.load(Ordering::Acquire) == 1 {
            return true;
        }
        // Ordering: releases what this thread did with the cell to the thread that frees it.
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // Ordering: a load and not a fence, so that checkers that cannot see fences understand.
        // Pairs with the release above, in other threads.
        self.0.load(Ordering::Acquire);
        true
    }

    /// Returns true if the caller's handle is the only one.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        // Ordering: pairs with the release in `release`: whoever held another handle is done.
        self.0.load(Ordering::Acquire) == 1
    }
}

/// The right to write the continuation that is stored in the cell; given once.
#[derive(Debug)]
pub(crate) struct Reservation(AtomicBool);

impl Reservation {
    /// Returns a reservation that nobody has.
    pub(crate) fn free() -> Reservation {
        Reservation(AtomicBool::new(false))
    }

    /// Takes the reservation; returns false if it is gone.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // Ordering: relaxed, since only one caller ever gets true; what it writes is published
        // by `push_first`.
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }

    /// Takes the reservation for the holder of the only handle, with whom nobody competes.
    #[inline]
    pub(crate) fn take_exclusive(&self) -> bool {
        // Ordering: relaxed, as in `take`.
        if self.0.load(Ordering::Relaxed) {
            return false;
        }
        self.0.store(true, Ordering::Relaxed);
        true
    }
}
