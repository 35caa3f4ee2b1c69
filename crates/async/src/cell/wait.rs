//! Adding waiters: to the cell's own place, to its list, or run at once.

use std::{
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

use super::Header;
use crate::{
    state::{Reservation, StateWord},
    waiter::{self, InlineWaiter, WaiterNode},
};

/// Adds a waiter to the cell, or runs it if the cell is settled.
///
/// # Safety
///
/// The cell is alive, and stays so until this function returns or `work` runs, whichever is
/// first. With `exclusive`, nobody else can add a waiter.
#[inline]
pub(super) unsafe fn add_waiter<F: FnOnce() + Send + 'static>(
    cell: NonNull<Header>,
    work: F,
    exclusive: bool,
) {
    // SAFETY: the caller says that the cell is alive; what follows uses it only up to the push
    // that makes the waiter able to run.
    let header = unsafe { &*cell.as_ptr() };
    let mut seen = header.state.load();
    if !seen.is_pending() {
        return run_late(work);
    }
    let mut work = work;
    if InlineWaiter::fits::<F>() && seen.is_empty() && reserve(&header.reservation, exclusive) {
        // SAFETY: the cell is alive as said above, and the reservation is ours.
        match unsafe { add_first(cell, seen, work) } {
            Ok(()) => return,
            Err((back, now)) => (work, seen) = (back, now),
        }
        if !seen.is_pending() {
            return run_late(work);
        }
    }
    let node = WaiterNode::allocate(work);
    while seen.is_pending() {
        // SAFETY: the node is ours until it is pushed.
        unsafe { WaiterNode::set_next(node, seen.waiters()) };
        match header.state.push_waiter(seen, node.as_ptr()) {
            Ok(()) => return,
            Err(now) => seen = now,
        }
    }
    // SAFETY: the node was not pushed, so it is still ours; it was made with an `F`.
    run_late(unsafe { WaiterNode::into_closure::<F>(node) });
}

/// Stores the waiter in the cell and pushes it, if nobody waits yet.
///
/// Gives it back, with the word that stands in the way, if it does not fit, if somebody waits,
/// or if the cell is settled.
///
/// # Safety
///
/// The cell is alive, and stays so until this function returns or `work` runs. The reservation
/// belongs to the caller.
#[inline]
pub(super) unsafe fn add_first<F: FnOnce()>(
    cell: NonNull<Header>,
    mut seen: StateWord,
    work: F,
) -> Result<(), (F, StateWord)> {
    let first = InlineWaiter::new(work).map_err(|work| (work, seen))?;
    // SAFETY: the caller says that the cell is alive. It is a local reference and not an argument
    // since the cell may be gone right after the push.
    let header = unsafe { &*cell.as_ptr() };
    // SAFETY: the reservation says that only we write here; nobody reads before the push.
    header
        .first
        .with_mut(|place| unsafe { place.write(MaybeUninit::new(first)) });
    while seen.is_pending() && seen.is_empty() {
        match header.state.push_first(seen) {
            Ok(()) => return Ok(()),
            Err(now) => seen = now,
        }
    }
    // SAFETY: it was written above, was not pushed, and only we have the reservation.
    let first = header
        .first
        .with(|place| unsafe { ptr::read(place.cast::<InlineWaiter>()) });
    // SAFETY: it was made with an `F`.
    Err((unsafe { first.into_closure::<F>() }, seen))
}

/// Runs a waiter that came after the cell was settled.
fn run_late(work: impl FnOnce() + 'static) {
    waiter::run_now(work);
}

/// Takes the place in the cell; `exclusive` says that nobody else can add a waiter.
#[inline]
pub(super) fn reserve(reservation: &Reservation, exclusive: bool) -> bool {
    if exclusive {
        reservation.take_exclusive()
    } else {
        reservation.take()
    }
}

/// Takes the waiter back that is stored in the cell, unless it has run or is about to.
///
/// # Safety
///
/// The caller has a handle. It has stored an `F` there, and has not tried to take it back.
pub(super) unsafe fn take_first<F: FnOnce()>(header: &Header) -> Option<F> {
    let mut seen = header.state.load();
    while seen.is_pending() {
        match header.state.pop_first(seen) {
            Ok(()) => {
                // SAFETY: it is there, since nobody writes the place a second time, and it is no
                // waiter any more, so nobody runs it.
                let first = header
                    .first
                    .with(|place| unsafe { ptr::read(place.cast::<InlineWaiter>()) });
                // SAFETY: the caller says that it was made with an `F`.
                return Some(unsafe { first.into_closure::<F>() });
            }
            Err(now) => seen = now,
        }
    }
    None
}
