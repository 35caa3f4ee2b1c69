//! The shared heap cell: header, count, payload.
//!
//! Pending values and values stored on the heap share one format, so that a pending value that
//! is resolved with a heap type simply becomes a heap value, in the same cell:
//!
//! ```text
//! bytes  field        who may touch it
//! 8      state        anybody, by the transitions of state.rs
//! 4      references   anybody; counts handles, not the promise
//! 1 (4)  reservation  anybody
//! 8      record       anybody: constant
//! 8      producer     handles set it once; the promise reads it when dropped
//! 8      outcome      the promise before settling writes; handles after settling read
//! 32     first        the handle that has the reservation writes; the promise reads
//! ..     payload      the promise before settling writes; handles after settling read
//! ```
//!
//! | Outcome     | `payload` holds                    | `outcome` holds                       |
//! |-------------|------------------------------------|---------------------------------------|
//! | `Value`     | a `T`; a [`Repr`] in untyped cells | nothing                               |
//! | `Error`     | nothing                            | an [`Error`]                          |
//! | `Forwarded` | nothing                            | a counted pointer to a heap cell in state `Value` |
//!
//! Two rights exist to a cell: a [`Handle`] is counted, a [`SettleRight`] is unique. The cell is freed
//! by whichever side leaves last, as state.rs says. [`CellRef`] is a borrowed handle.
//!
//! Invariant: whoever has settled a cell that handles still held does not touch it again.

mod settle;
mod wait;
mod waker_slot;

use std::{
    marker::PhantomData,
    mem::{self, ManuallyDrop, MaybeUninit},
    ptr::{self, NonNull},
};

use self::wait::add_waiter;
pub(crate) use self::{settle::SettleRight, waker_slot::WakerSlot};
use crate::{
    counters,
    error::Error,
    memory::{self, BlockLayout},
    producer::{Producer, ProducerBox},
    repr::Repr,
    state::{Abandoned, Outcome, References, Reservation, State},
    storage::{TypeRecord, Value, is_in_place},
    sync::{Arc, AtomicPtr, Ordering, UnsafeCell},
    waiter::{self, InlineWaiter},
};

/// The first fields of every cell, whatever its payload: state, counts, and the place of the first
/// waiter.
#[repr(C)]
pub(crate) struct Header {
    state: State,
    references: References,
    reservation: Reservation,
    record: &'static TypeRecord,
    producer: AtomicPtr<ProducerBox>,
    outcome: UnsafeCell<MaybeUninit<OutcomePayload>>,
    first: UnsafeCell<MaybeUninit<InlineWaiter>>,
}

/// The outcome of a settled cell that has no value of its own: an error, or the cell that it was
/// forwarded to.
union OutcomePayload {
    error: ManuallyDrop<Error>,
    target: NonNull<Header>,
}

/// A cell with a payload of type `P`.
#[repr(C)]
struct Cell<P> {
    header: Header,
    payload: UnsafeCell<MaybeUninit<P>>,
}

impl<P> Cell<P> {
    const BLOCK: BlockLayout = BlockLayout::of::<Cell<P>>();

    fn allocate(record: &'static TypeRecord, state: State, payload: MaybeUninit<P>) -> Handle {
        let cell = memory::allocate_block(Self::BLOCK).cast::<Cell<P>>();
        let header = Header {
            state,
            references: References::one(),
            reservation: Reservation::free(),
            record,
            producer: AtomicPtr::new(ptr::null_mut()),
            outcome: UnsafeCell::new(MaybeUninit::uninit()),
            first: UnsafeCell::new(MaybeUninit::uninit()),
        };
        // SAFETY: the block is fresh and has the layout of a `Cell<P>`.
        unsafe {
            cell.write(Cell {
                header,
                payload: UnsafeCell::new(payload),
            })
        };
        counters::cell_created(const { Self::BLOCK.size_bytes() });
        Handle(cell.cast())
    }
}

/// Drops the payload, if there is one, and frees the cell.
///
/// # Safety
///
/// `cell` is the header of a live `Cell<P>` that nobody else has; `has_value` says that its
/// payload is initialised.
pub(crate) unsafe fn free<P>(cell: NonNull<Header>, has_value: bool) {
    /// Frees the block even if the payload's destructor panics.
    struct Free<P>(NonNull<Cell<P>>);

    impl<P> Drop for Free<P> {
        fn drop(&mut self) {
            // SAFETY: `free`'s caller says that nobody else has this cell, and that it is live.
            unsafe { self.0.drop_in_place() };
            counters::cell_freed(const { Cell::<P>::BLOCK.size_bytes() });
            // SAFETY: the block was allocated as `BLOCK` by `Cell::allocate`.
            unsafe { memory::free_block(self.0.cast(), Cell::<P>::BLOCK) };
        }
    }

    let free = Free(cell.cast::<Cell<P>>());
    // SAFETY: the caller says that the cell is live.
    let cell = unsafe { free.0.as_ref() };
    cell.header.first.with_mut(|_| ());
    // Ordering: relaxed, since nobody else has the cell.
    let producer = cell.header.producer.load(Ordering::Relaxed);
    if !producer.is_null() {
        // SAFETY: only counted pointers are stored there, and this is the last reading.
        unsafe { drop_producer(producer) };
    }
    cell.payload.with_mut(|payload| {
        if has_value {
            // SAFETY: the caller says that the payload is initialised; nobody reads it again.
            unsafe { payload.cast::<P>().drop_in_place() };
        }
    });
}

/// Drops a producer that nobody asked for.
///
/// # Safety
///
/// `producer` is a counted pointer that belongs to the caller.
#[inline(never)]
unsafe fn drop_producer(producer: *mut ProducerBox) {
    // SAFETY: the caller's promise is the same.
    drop(unsafe { Arc::from_raw(producer) });
}

/// Copies the payload of a settled cell into a register.
///
/// # Safety
///
/// `cell` is the header of a live `Cell<T>` in state `Value`, and `T` is stored in place.
pub(crate) unsafe fn load_in_place<T: Value>(cell: NonNull<Header>) -> Repr {
    // SAFETY: the caller says that this is a live `Cell<T>`.
    let cell = unsafe { cell.cast::<Cell<T>>().as_ref() };
    // SAFETY: the state says that the payload is there; types stored in place are `Copy`.
    Repr::new(
        cell.payload
            .with(|payload| unsafe { payload.cast::<T>().read() }),
    )
}

/// Copies the payload of a register into a pending cell.
///
/// # Safety
///
/// `cell` is the header of a live pending `Cell<T>` whose right to settle the caller has; `value` is a `T`
/// stored in place.
pub(crate) unsafe fn store_in_place<T: Value>(cell: NonNull<Header>, value: &Repr) {
    // SAFETY: the caller says that `value` is a `T` in place; such types are `Copy`.
    let value = unsafe { value.in_place_unchecked::<T>().read() };
    // SAFETY: the caller's promise is the same.
    unsafe { write_payload(cell, value) };
}

/// Copies the payload of a settled cell without a type of its own into a register: see
/// [`load_in_place`].
///
/// # Safety
///
/// `cell` is the header of a live untyped cell in state `Value`.
pub(crate) unsafe fn load_untyped(cell: NonNull<Header>) -> Repr {
    // SAFETY: the caller says that this is a live untyped cell.
    let cell = unsafe { cell.cast::<Cell<Repr>>().as_ref() };
    // SAFETY: in state `Value` an untyped cell holds a value in place, which is copied by clone.
    cell.payload
        .with(|payload| unsafe { &*payload.cast::<Repr>() }.clone())
}

/// Copies the payload of a register into a pending cell without a type of its own: see
/// [`store_in_place`].
///
/// # Safety
///
/// `cell` is the header of a live pending untyped cell whose right to settle the caller has; `value` is
/// stored in place.
pub(crate) unsafe fn store_untyped(cell: NonNull<Header>, value: &Repr) {
    // SAFETY: the caller's promise is the same.
    unsafe { write_payload(cell, value.clone()) };
}

/// Writes the payload of a pending cell.
///
/// # Safety
///
/// `cell` is the header of a live pending `Cell<P>` whose right to settle the caller has.
#[inline]
unsafe fn write_payload<P>(cell: NonNull<Header>, value: P) {
    // SAFETY: the caller says that this is a live `Cell<P>`.
    let cell = unsafe { cell.cast::<Cell<P>>().as_ref() };
    // SAFETY: before settling only the holder of the right, the caller, touches the payload.
    cell.payload
        .with_mut(|payload| unsafe { payload.cast::<P>().write(value) });
}

/// Returns a cell that holds `value`.
pub(crate) fn with_value<T: Value>(value: T) -> Handle {
    Cell::allocate(
        TypeRecord::of::<T>(),
        State::value(),
        MaybeUninit::new(value),
    )
}

/// Returns a cell to be settled with a `T`.
pub(crate) fn pending<T: Value>() -> (SettleRight, Handle) {
    let handle = Cell::<T>::allocate(
        TypeRecord::of::<T>(),
        State::pending(),
        MaybeUninit::uninit(),
    );
    (SettleRight(handle.0), handle)
}

/// Returns a cell to be settled with a value of any type.
pub(crate) fn pending_untyped() -> (SettleRight, Handle) {
    let record = TypeRecord::untyped();
    let handle = Cell::<Repr>::allocate(record, State::pending(), MaybeUninit::uninit());
    (SettleRight(handle.0), handle)
}

/// A counted right to read a cell.
///
/// Invariant: the cell is alive, and this handle is counted in its references.
pub(crate) struct Handle(NonNull<Header>);

// SAFETY: handles read payloads, which are `Sync`, and the last one drops them, wherever it is:
// they are `Send`, as every `Value` is. The header is shared by its atomics; `outcome` and
// `first` follow the table above.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Borrows the handle.
    #[inline]
    pub(crate) fn as_ref(&self) -> CellRef<'_> {
        CellRef(self.0, PhantomData)
    }

    /// Gives the counted pointer away; [`Handle::from_raw`] takes it back.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }

    /// Takes back what [`Handle::into_raw`] gave.
    ///
    /// # Safety
    ///
    /// `raw` is a counted pointer that belongs to the caller.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<Header>) -> Handle {
        Handle(raw)
    }

    /// Runs `work` with the handle when the cell is settled.
    ///
    /// The handle is kept alive by the continuation, and the continuation by the promise.
    #[inline]
    pub(crate) fn when_settled(self, work: impl FnOnce(Handle) + Send + 'static) {
        let cell = self.as_ref();
        let exclusive = cell.header().references.is_sole();
        let cell = NonNull::from(cell.header());
        // SAFETY: the closure keeps the handle, and so the cell, alive until it runs, and
        // `add_waiter` does not touch the cell after that. `exclusive` is true if this is the
        // only handle, which the closure now holds, so that nobody else can add a waiter.
        unsafe { add_waiter(cell, move || work(self), exclusive) };
    }

    /// Returns the normal form: the handle itself while the cell is pending.
    pub(crate) fn into_normal(self) -> Repr {
        let header = self.as_ref().header();
        let record = header.record;
        match header.state.load().outcome() {
            Some(Outcome::Value) if record.in_place => {
                // SAFETY: `load` is made for this cell, which was seen in state `Value`.
                let value = unsafe { (record.load)(self.0) };
                let cell = self.into_raw();
                // SAFETY: it was a handle until now, so the cell is alive.
                if unsafe { cell.as_ref() }.references.release() {
                    // SAFETY: this was the last handle, and the promise has left by settling. What
                    // is stored in place needs no drop.
                    unsafe { (record.free)(cell, false) };
                }
                value
            }
            // The same counted pointer, now known to be settled.
            // SAFETY: the state says what the cell holds, and the record that it is on the heap.
            Some(Outcome::Value) => unsafe { Repr::from_heap(record, self.into_raw()) },
            Some(Outcome::Error) => match self.as_ref().error() {
                Some(error) => Repr::from_error(error.clone()),
                None => Repr::from_handle(self),
            },
            Some(Outcome::Forwarded) => {
                // SAFETY: the state says that there is a target.
                let heap = unsafe { self.as_ref().target() };
                heap.retain(1);
                // SAFETY: one more handle was counted, for the register; the cell is in state
                // `Value`.
                unsafe { Repr::from_heap(heap.record(), heap.0) }
            }
            None => Repr::from_handle(self),
        }
    }

    /// Copies the value out, if the cell is settled with a `T` that is stored in place. What is
    /// given back may be one all the same.
    #[inline]
    pub(crate) fn into_copy<T: Value>(self) -> Result<T, Handle> {
        let header = self.as_ref().header();
        let is_value = header.state.load().outcome() == Some(Outcome::Value);
        let is_copy = is_in_place::<T>() && ptr::eq(header.record, TypeRecord::of::<T>());
        if !(is_value && is_copy) {
            return Err(self);
        }
        // SAFETY: record and state say that the payload is there.
        let payload: *const T = unsafe { self.as_ref().payload::<T>() };
        // SAFETY: as above; types stored in place are `Copy`.
        let value = unsafe { payload.read() };
        let cell = self.into_raw();
        // SAFETY: it was a handle until now, so the cell is alive.
        if unsafe { cell.as_ref() }.references.release() {
            // SAFETY: this was the last handle, and the promise has left by settling.
            unsafe { free::<T>(cell, false) };
        }
        Ok(value)
    }

    /// Moves the value out, if this is the only handle to a `T` that is there.
    #[inline]
    pub(crate) fn into_value<T: Value>(self) -> Result<T, Handle> {
        let header = self.as_ref().header();
        let is_value = header.state.load().outcome() == Some(Outcome::Value);
        if !is_value || !header.record.is::<T>() || !header.references.is_sole() {
            return Err(self);
        }
        let raw = self.into_raw();
        // SAFETY: the record says that this is a `Cell<T>`; the handle keeps it alive.
        let cell = unsafe { raw.cast::<Cell<T>>().as_ref() };
        // SAFETY: the state says that the payload is there; nobody else has the cell.
        let value = cell
            .payload
            .with_mut(|payload| unsafe { payload.cast::<T>().read() });
        // SAFETY: the cell was settled and its only handle is ours, so nobody else has it; the
        // payload was moved out.
        unsafe { free::<T>(raw, false) };
        Ok(value)
    }

    /// Borrows the value for writing, if this is the only handle to a `T` that is there.
    pub(crate) fn value_mut<T: Value>(&mut self) -> Option<&mut T> {
        let header = self.as_ref().header();
        let is_value = header.state.load().outcome() == Some(Outcome::Value);
        if !is_value || !header.record.is::<T>() || !header.references.is_sole() {
            return None;
        }
        // SAFETY: the record says that this is a `Cell<T>`; the handle keeps it alive.
        let cell = unsafe { self.0.cast::<Cell<T>>().as_ref() };
        let payload = cell.payload.with_mut(|payload| payload.cast::<T>());
        // SAFETY: the payload is there; the only handle is borrowed exclusively as long as the
        // reference lives.
        Some(unsafe { &mut *payload })
    }
}

impl Clone for Handle {
    #[inline]
    fn clone(&self) -> Handle {
        self.as_ref().retain(1);
        Handle(self.0)
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        let header = self.as_ref().header();
        if !header.references.release() {
            return;
        }
        if let Abandoned::AfterSettling(outcome) = header.state.abandon() {
            // SAFETY: this was the last handle, and the promise has left by settling.
            unsafe { bury(self.0, outcome) };
        }
    }
}

/// Frees a cell that both sides have left.
///
/// # Safety
///
/// `cell` is alive, settled with `outcome`, and belongs to the caller.
#[inline]
unsafe fn bury(cell: NonNull<Header>, outcome: Outcome) {
    // SAFETY: the caller says that the cell is alive.
    let record = unsafe { cell.as_ref() }.record;
    let garbage = Garbage { cell, outcome };
    if outcome != Outcome::Value {
        return drop(garbage);
    }
    if record.needs_drop {
        return waiter::destroy(garbage);
    }
    mem::forget(garbage);
    // SAFETY: `free` is made for this cell, which belongs to the caller and holds a payload.
    unsafe { (record.free)(cell, true) };
}

/// A settled cell that belongs to nobody else; dropping it frees it.
pub(crate) struct Garbage {
    cell: NonNull<Header>,
    outcome: Outcome,
}

impl Drop for Garbage {
    fn drop(&mut self) {
        // SAFETY: the cell is alive until the end of this function.
        let header = unsafe { self.cell.as_ref() };
        let free = header.record.free;
        match self.outcome {
            // SAFETY: `free` is made for this cell, which belongs to us and holds a payload.
            Outcome::Value => unsafe { free(self.cell, true) },
            Outcome::Error => {
                // SAFETY: the outcome says that an error is there; it is moved out once.
                let error = header.outcome.with_mut(|settled| unsafe {
                    ManuallyDrop::into_inner(settled.cast::<ManuallyDrop<Error>>().read())
                });
                // SAFETY: as above; it holds no payload.
                unsafe { free(self.cell, false) };
                drop(error);
            }
            Outcome::Forwarded => {
                // SAFETY: the outcome says that a target is there; it is moved out once.
                let target = header
                    .outcome
                    .with_mut(|settled| unsafe { settled.cast::<NonNull<Header>>().read() });
                // SAFETY: as above; it holds no payload.
                unsafe { free(self.cell, false) };
                // The target's count was ours.
                drop(Handle(target));
            }
        }
    }
}

/// A borrowed handle: the cell lives at least as long as `'a`.
#[derive(Clone, Copy)]
pub(crate) struct CellRef<'a>(NonNull<Header>, PhantomData<&'a Header>);

impl<'a> CellRef<'a> {
    /// Borrows a cell.
    ///
    /// # Safety
    ///
    /// A handle to `raw` exists as long as `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<Header>) -> CellRef<'a> {
        CellRef(raw, PhantomData)
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: a handle keeps the cell alive.
        unsafe { self.0.as_ref() }
    }

    /// Returns true once the cell is settled.
    #[inline]
    pub(crate) fn is_settled(self) -> bool {
        !self.header().state.load().is_pending()
    }

    /// Returns true if there is one handle.
    #[inline]
    pub(crate) fn is_sole(self) -> bool {
        self.header().references.is_sole()
    }

    /// Counts `n` more handles, which the caller makes by copying.
    #[inline]
    pub(crate) fn retain(self, n: usize) {
        self.header().references.retain(n);
    }

    /// Returns the record that the cell was made with.
    pub(crate) fn record(self) -> &'static TypeRecord {
        self.header().record
    }

    /// Returns the heap cell that this cell was forwarded to.
    ///
    /// # Safety
    ///
    /// The cell was seen in state `Forwarded`.
    unsafe fn target(self) -> CellRef<'a> {
        // SAFETY: the caller says that a target is there.
        let read = |settled: *const _| unsafe { ptr::read(settled) };
        let target = self
            .header()
            .outcome
            .with(|settled| read(settled.cast::<NonNull<Header>>()));
        CellRef(target, PhantomData)
    }

    /// Returns the error that the cell was settled with.
    pub(crate) fn error(self) -> Option<&'a Error> {
        if self.header().state.load().outcome() != Some(Outcome::Error) {
            return None;
        }
        let settled = self
            .header()
            .outcome
            .with(|settled| settled.cast::<Error>());
        // SAFETY: the state says that an error is there, and it stays as long as the cell.
        Some(unsafe { &*settled })
    }

    /// Returns the record of the value that the cell was settled with.
    pub(crate) fn value_record(self) -> Option<&'static TypeRecord> {
        match self.header().state.load().outcome()? {
            Outcome::Error => None,
            Outcome::Value if self.record().is_untyped() => {
                // SAFETY: the record and the state say what the payload is.
                unsafe { self.payload::<Repr>() }.record()
            }
            Outcome::Value => Some(self.record()),
            // SAFETY: the state says that there is a target.
            Outcome::Forwarded => Some(unsafe { self.target() }.record()),
        }
    }

    /// Returns the value that the cell was settled with, if it is a `T`.
    pub(crate) fn value<T: Value>(self) -> Option<&'a T> {
        match self.header().state.load().outcome()? {
            Outcome::Error => None,
            Outcome::Value if self.record().is::<T>() => {
                // SAFETY: the record and the state say what the payload is.
                Some(unsafe { self.payload::<T>() })
            }
            Outcome::Value if self.record().is_untyped() => {
                // SAFETY: the record and the state say what the payload is.
                unsafe { self.payload::<Repr>() }.get::<T>()
            }
            Outcome::Value => None,
            // SAFETY: the state says that there is a target.
            Outcome::Forwarded => unsafe { self.target() }.value::<T>(),
        }
    }

    /// Returns the payload.
    ///
    /// # Safety
    ///
    /// The cell is a `Cell<P>`, and was seen in state `Value`.
    #[inline]
    pub(crate) unsafe fn payload<P>(self) -> &'a P {
        // SAFETY: the caller says that this is a `Cell<P>`; a handle keeps it alive.
        let cell: &'a Cell<P> = unsafe { self.0.cast::<Cell<P>>().as_ref() };
        let payload = cell.payload.with(|payload| payload.cast::<P>());
        // SAFETY: the caller says that the payload is there. Nobody writes it from now on,
        // except a sole holder that has borrowed its handle exclusively.
        unsafe { &*payload }
    }

    /// Runs `work` when the cell is settled: now if it is.
    #[inline]
    pub(crate) fn and_then(self, work: impl FnOnce() + Send + 'static) {
        // SAFETY: a handle keeps the cell alive for the length of this call, and `add_waiter`
        // does not touch it later. It makes no claim to be the only one.
        unsafe { add_waiter(self.0, work, false) };
    }

    /// Names who is to settle the cell, unless somebody did before.
    pub(crate) fn set_producer(self, producer: &Producer) {
        let header = self.header();
        // Ordering: relaxed, since this only saves work.
        if self.is_settled() || !header.producer.load(Ordering::Relaxed).is_null() {
            return;
        }
        let raw = Arc::into_raw(Arc::clone(&producer.0)).cast_mut();
        // Ordering: releases the producer to the load in `SettleRight::drop`. A failure reads nothing.
        let set = header.producer.compare_exchange(
            ptr::null_mut(),
            raw,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if set.is_err() {
            // SAFETY: `raw` was not stored, so it is still ours.
            drop(unsafe { Arc::from_raw(raw) });
        }
    }
}

const _: () = assert!(
    cfg!(any(loom, shuttle)) || size_of::<Header>() == 72,
    "the table above is out of date"
);
const _: () = assert!(!mem::needs_drop::<OutcomePayload>());

#[cfg(all(test, not(loom)))]
mod tests;
