//! [`WakerSlot`]: a future's side of a cell, which stores its waker and takes it back.
//!
//! The waker of the first poll lies in the cell, where the first waiter has its place; so a future
//! that is polled by one task allocates nothing. Only if that place is taken, or another task
//! polls later, does the waker lie in a [`SharedWaker`] that the future shares with a waiter.
//!
//! Dropping the slot takes the waker back: a future that is forgotten wakes nobody.

use std::{
    mem, ptr,
    task::{RawWakerVTable, Waker},
};

use super::{
    Handle,
    wait::{add_first, reserve, take_first},
};
use crate::{
    repr::{Repr, View},
    sync::{Arc, Mutex},
};

/// A value that a future waits for, with the waker that is woken when it is settled.
pub(crate) struct WakerSlot {
    value: Repr,
    place: WakerPlace,
}

/// The place of a future's waker.
enum WakerPlace {
    /// No waker is stored.
    Nowhere,
    /// The waker is in the cell: these are its parts.
    ///
    /// Invariant: this slot has stored it there, and not taken it back; the value is the handle.
    Cell(*const (), &'static RawWakerVTable),
    /// The waker is in a [`SharedWaker`], which one waiter of the cell shares.
    Shared(Arc<SharedWaker>),
    /// No waker is stored, and none will be: the value was taken.
    Done,
}

// SAFETY: the parts of a waker are only compared, and wakers may go to other threads.
unsafe impl Send for WakerPlace {}
// SAFETY: as above; a shared place is not looked at.
unsafe impl Sync for WakerPlace {}

impl WakerSlot {
    #[inline]
    pub(crate) fn new(value: Repr) -> WakerSlot {
        WakerSlot {
            value,
            place: WakerPlace::Nowhere,
        }
    }

    /// Returns true if the value is settled; else `waker`, and no other, is woken when it is.
    ///
    /// # Panics
    ///
    /// If the value was taken.
    #[inline]
    pub(crate) fn poll(&mut self, waker: &Waker) -> bool {
        let View::Handle(cell) = self.value.view() else {
            assert!(
                !matches!(self.place, WakerPlace::Done),
                "a future is not polled after it is complete"
            );
            return true;
        };
        if cell.is_settled() {
            return true;
        }
        match self.place {
            WakerPlace::Nowhere => self.enter_cell(waker),
            WakerPlace::Cell(data, vtable)
                if ptr::eq(data, waker.data()) && ptr::eq(vtable, waker.vtable()) =>
            {
                false
            }
            _ => self.change(waker),
        }
    }

    /// Gives the value, which is settled, away: the handle if it was one.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Handle, Repr> {
        if let WakerPlace::Shared(_) = self.place {
            self.leave();
        }
        // A waker that lay in the cell is gone, since the cell is settled.
        self.place = WakerPlace::Done;
        self.value.take_handle()
    }

    /// Returns true unless the value was taken.
    pub(crate) fn has_value(&self) -> bool {
        !matches!(self.place, WakerPlace::Done)
    }

    /// Stores the waker in the cell, if its place is free, else in a [`SharedWaker`].
    #[inline]
    fn enter_cell(&mut self, waker: &Waker) -> bool {
        let View::Handle(cell) = self.value.view() else {
            return true;
        };
        let header = cell.header();
        let seen = header.state.load();
        if !seen.is_pending() {
            return true;
        }
        let exclusive = header.references.is_sole();
        if !seen.is_empty() || !reserve(&header.reservation, exclusive) {
            return self.share_waker(waker);
        }
        // SAFETY: our handle keeps the cell alive; the reservation is ours.
        match unsafe { add_first(header.into(), seen, waking(waker.clone())) } {
            Ok(()) => {
                self.place = WakerPlace::Cell(waker.data(), waker.vtable());
                false
            }
            Err((_, seen)) if !seen.is_pending() => true,
            Err(_) => self.share_waker(waker),
        }
    }

    #[cold]
    #[inline(never)]
    fn share_waker(&mut self, waker: &Waker) -> bool {
        let shared = Arc::<SharedWaker>::default();
        shared.replace(Some(waker));
        let held = Arc::clone(&shared);
        let View::Handle(cell) = self.value.view() else {
            return true;
        };
        cell.and_then(move || held.wake());
        self.place = WakerPlace::Shared(shared);
        // It may have been settled before; then the waiter has run, and woken the caller in vain.
        cell.is_settled()
    }

    /// Puts another waker in the place of the one that is there.
    #[cold]
    #[inline(never)]
    fn change(&mut self, waker: &Waker) -> bool {
        let WakerPlace::Shared(shared) = &self.place else {
            return !self.leave() || self.share_waker(waker);
        };
        shared.replace(Some(waker));
        // It may have been settled before the waker was there.
        match self.value.view() {
            View::Handle(cell) => cell.is_settled(),
            _ => true,
        }
    }

    /// Takes the waker back; returns false if it is too late.
    #[cold]
    #[inline(never)]
    fn leave(&mut self) -> bool {
        match (
            mem::replace(&mut self.place, WakerPlace::Nowhere),
            self.value.view(),
        ) {
            (WakerPlace::Cell(..), View::Handle(cell)) => {
                // SAFETY: our handle keeps the cell alive. By the place's invariant this slot has
                // stored a closure there that `waking` gave, and this is the first try to take it
                // back.
                unsafe { take_waking(cell.header(), waking) }
            }
            (WakerPlace::Shared(shared), _) => {
                shared.replace(None);
                true
            }
            _ => true,
        }
    }
}

impl Drop for WakerSlot {
    #[inline]
    fn drop(&mut self) {
        if let WakerPlace::Cell(..) | WakerPlace::Shared(_) = self.place {
            self.leave();
        }
    }
}

/// Returns the closure that lies in the cell: it wakes `waker`.
fn waking(waker: Waker) -> impl FnOnce() + Send + 'static {
    move || waker.wake()
}

/// Takes a closure of the type that `make` returns out of the cell; returns false if it has run or
/// is about to.
///
/// # Safety
///
/// See [`take_first`], for closures that `make` gives.
unsafe fn take_waking<F: FnOnce()>(header: &super::Header, make: impl FnOnce(Waker) -> F) -> bool {
    drop(make);
    // SAFETY: the caller's promise is the same.
    unsafe { take_first::<F>(header) }.is_some()
}

/// The waker of one future, shared with a waiter.
#[derive(Default)]
struct SharedWaker(Mutex<Option<Waker>>);

impl SharedWaker {
    fn replace(&self, waker: Option<&Waker>) {
        // Nothing panics while it holds this lock but a foreign waker's clone or drop; the slot
        // holds a whole waker or none even then.
        let mut slot = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match (&mut *slot, waker) {
            (Some(old), Some(new)) => old.clone_from(new),
            (slot, new) => *slot = new.cloned(),
        }
    }

    fn wake(&self) {
        let waker = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(all(loom, test))]
mod loom;
