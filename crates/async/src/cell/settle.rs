//! The promise's side of a cell: settling it, once.

use std::{
    mem::{ManuallyDrop, MaybeUninit},
    ptr::{self, NonNull},
};

use super::{Header, OutcomePayload, bury, write_payload};
use crate::{
    error::Error,
    producer::Producer,
    repr::Repr,
    state::Outcome,
    storage::Value,
    sync::{Arc, Ordering},
    waiter::{self, InlineWaiter},
};

/// The unique right to settle a cell; dropping it settles the cell with an error.
///
/// Invariant: the cell is alive and pending, and no other right to it exists.
pub(crate) struct SettleRight(pub(super) NonNull<Header>);

// SAFETY: a right writes a payload, which is `Send`, and may drop it.
unsafe impl Send for SettleRight {}
// SAFETY: a shared right only looks at the state word.
unsafe impl Sync for SettleRight {}

impl SettleRight {
    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the right keeps the cell alive.
        unsafe { self.0.as_ref() }
    }

    /// Returns true if no handle is left, so that nobody can ever see the value.
    ///
    /// Continuations may still be waiting for the event.
    pub(crate) fn is_unobserved(&self) -> bool {
        !self.header().state.load().is_claimed()
    }

    /// Settles the cell with `value`.
    #[inline]
    pub(crate) fn resolve<T: Value>(self, value: T) {
        if !self.header().record.is::<T>() {
            return self.settle(Repr::new(value));
        }
        // SAFETY: the record says that this is a `Cell<T>`; the right is ours.
        unsafe { write_payload(self.0, value) };
        self.finish(Outcome::Value);
    }

    /// Settles the cell with an error.
    pub(crate) fn fail(self, error: Error) {
        let error = ManuallyDrop::new(error);
        // SAFETY: before settling only the right's holder touches the outcome.
        self.header()
            .outcome
            .with_mut(|place| unsafe { (*place).write(OutcomePayload { error }) });
        self.finish(Outcome::Error);
    }

    /// Settles the cell as `value` is settled, or when it is.
    ///
    /// A cell that is forwarded to itself is settled with an error.
    pub(crate) fn forward(self, value: Repr) {
        let handle = match value.into_handle() {
            Ok(handle) => handle,
            Err(settled) => return self.settle(settled),
        };
        if handle.0 == self.0 {
            return self.fail(Error::internal("a promise was forwarded to its own value"));
        }
        handle.when_settled(move |handle| self.settle(handle.into_normal()));
    }

    /// Settles the cell as `value` is settled.
    fn settle(self, value: Repr) {
        let record = self.header().record;
        if let Some(error) = value.error() {
            return self.fail(error.clone());
        }
        let Some(found) = value.record() else {
            // A handle, which the callers exclude, or nothing at all.
            return self.fail(Error::internal(
                "a promise was given a register without a value",
            ));
        };
        if !record.is_untyped() && !record.same(found) {
            return self.fail(Error::invalid_argument(format!(
                "expected a value of type {}, found {}",
                record.name, found.name
            )));
        }
        if found.in_place {
            // SAFETY: the right is ours; the value is in place, and of the cell's type or the
            // cell is untyped.
            unsafe { (record.store)(self.0, &value) };
            return self.finish(Outcome::Value);
        }
        if let Ok(target) = value.into_heap() {
            let target = target.into_raw();
            // SAFETY: before settling only the right's holder touches the outcome.
            self.header()
                .outcome
                .with_mut(|place| unsafe { (*place).write(OutcomePayload { target }) });
            self.finish(Outcome::Forwarded);
        }
    }

    /// Publishes what was written, and runs the waiters.
    #[inline]
    fn finish(self, outcome: Outcome) {
        let cell = ManuallyDrop::new(self).0;
        // SAFETY: the right kept the cell alive. It is used up to the exchange that settles it,
        // and later only if no handle is left.
        let header = unsafe { &*cell.as_ptr() };
        let mut seen = header.state.load();
        let mut first = MaybeUninit::<InlineWaiter>::uninit();
        loop {
            if seen.has_first() {
                // The cell may be gone right after the exchange, so its waiter leaves before.
                // SAFETY: the flag says that it is there and was published; nobody writes it again.
                header.first.with(|place| unsafe {
                    ptr::copy_nonoverlapping(place, &raw mut first, 1);
                });
            }
            match header.state.settle(seen, outcome) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        if !seen.is_claimed() {
            // SAFETY: the handles have left before, so the cell is ours; it was just settled.
            unsafe { bury(cell, outcome) };
        }
        if seen.is_empty() {
            return;
        }
        // SAFETY: the exchange took the waiters out of the cell, for us alone; the first one was
        // copied if it was among them.
        unsafe { waiter::run_all(seen.waiters(), seen.has_first(), &mut first) };
    }
}

impl Drop for SettleRight {
    fn drop(&mut self) {
        let seen = self.header().state.load();
        if !seen.is_claimed() && seen.is_empty() {
            // Nobody can ever look, so nobody needs an error: no handle is left, and only
            // handles add waiters.
            let free = self.header().record.free;
            // SAFETY: the handles have left before, so the cell is ours; it holds no payload.
            return unsafe { free(self.0, false) };
        }
        // Ordering: pairs with the release in `set_producer`.
        let producer = self.header().producer.load(Ordering::Acquire);
        let producer = (!producer.is_null()).then(|| {
            // SAFETY: the cell owns this producer as long as it lives; it is only borrowed here.
            ManuallyDrop::new(Producer(unsafe { Arc::from_raw(producer) }))
        });
        let error = Producer::dropped(producer.as_deref());
        // The right lives on in its copy, which `fail` consumes.
        SettleRight(self.0).fail(error);
    }
}
