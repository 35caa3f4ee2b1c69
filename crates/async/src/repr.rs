//! [`Repr`]: the 24 bytes of a register, 16 of payload and one tag word.
//!
//! | Tag                  | Payload                                          | Owns |
//! |----------------------|--------------------------------------------------|------|
//! | 0                    | nothing                                          | no   |
//! | address of a record  | a value of that type, stored in place            | no   |
//! | that address, plus 1 | counted pointer to a settled cell with the value | yes  |
//! | 1                    | an [`Error`]                                     | yes  |
//! | 3                    | counted pointer to a cell not known to be settled| yes  |
//!
//! Records are 8-aligned, so the low bit says whether clone and drop have anything to do.
//!
//! The *normal form* of a settled register is any of the rows but the last; [`Repr::settled`]
//! makes it.

use std::{
    marker::PhantomData,
    mem::{self, ManuallyDrop, MaybeUninit},
    ptr::{self, NonNull},
};

use crate::{
    cell::{self, CellRef, Handle, Header},
    error::Error,
    storage::{TypeRecord, Value, is_in_place},
};

/// The word that is type, state and error at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Tag(*const TypeRecord);

const OWNS: usize = 1;
const TAG_BITS: usize = align_of::<TypeRecord>() - 1;

impl Tag {
    const EMPTY: Tag = Tag(ptr::null());
    const ERROR: Tag = Tag(ptr::without_provenance(OWNS));
    const HANDLE: Tag = Tag(ptr::without_provenance(OWNS + 2));

    #[inline(always)]
    const fn in_place(record: &'static TypeRecord) -> Tag {
        Tag(record)
    }

    #[inline(always)]
    const fn heap(record: &'static TypeRecord) -> Tag {
        Tag((record as *const TypeRecord).wrapping_byte_add(OWNS))
    }

    /// Returns the tag of a settled `T`.
    #[inline(always)]
    const fn of<T: Value>() -> Tag {
        let record = TypeRecord::of::<T>();
        if is_in_place::<T>() {
            Tag::in_place(record)
        } else {
            Tag::heap(record)
        }
    }

    #[inline(always)]
    fn owns(self) -> bool {
        self.0.addr() & OWNS != 0
    }

    /// Returns the record of a settled value.
    #[inline]
    fn record(self) -> Option<&'static TypeRecord> {
        let record = self.0.map_addr(|address| address & !TAG_BITS);
        // SAFETY: above the low bits a tag is null or the address of a record, all of which are
        // static.
        unsafe { record.as_ref() }
    }
}

/// The content of a register, as a borrowed view.
pub(crate) enum View<'a> {
    /// No value, and no error.
    Empty,
    /// A value in place.
    InPlace,
    /// A settled cell that holds the value.
    Heap(CellRef<'a>),
    /// A failure.
    Error(&'a Error),
    /// A cell that was pending when last looked at.
    Handle(CellRef<'a>),
}

/// The content of a register, with its type erased.
///
/// Invariant: tag and payload agree as the table above says, and a counted pointer belongs to
/// this register. No pointer points into a register, so moving it is copying its bytes.
#[repr(C)]
pub(crate) struct Repr {
    payload: [MaybeUninit<u64>; 2],
    tag: Tag,
    /// Neither `Send` nor `Sync` by itself.
    not_send: PhantomData<*const ()>,
}

// SAFETY: values are `Send`, handles and errors too.
unsafe impl Send for Repr {}
// SAFETY: values are `Sync`, handles and errors too.
unsafe impl Sync for Repr {}

const _: () = assert!(size_of::<Repr>() == 24 && align_of::<Repr>() == 8);
const _: () = assert!(cfg!(loom) || size_of::<Error>() == 8);

impl Repr {
    /// Returns a register that holds nothing.
    #[inline]
    pub(crate) const fn empty() -> Repr {
        Repr {
            payload: [MaybeUninit::uninit(); 2],
            tag: Tag::EMPTY,
            not_send: PhantomData,
        }
    }

    /// Returns a register with `content`, which `tag` describes.
    ///
    /// # Safety
    ///
    /// `C` is what the table says for `tag`.
    #[inline(always)]
    unsafe fn with<C>(tag: Tag, content: C) -> Repr {
        const { assert!(size_of::<C>() <= 16 && align_of::<C>() <= 8) };
        let mut repr = Repr {
            payload: [MaybeUninit::uninit(); 2],
            tag,
            not_send: PhantomData,
        };
        // SAFETY: the assertion above says that it fits.
        unsafe { repr.payload.as_mut_ptr().cast::<C>().write(content) };
        repr
    }

    /// Returns a register that holds `value`, in place or in a new cell.
    #[inline]
    pub(crate) fn new<T: Value>(value: T) -> Repr {
        if !is_in_place::<T>() {
            let cell = cell::with_value(value).into_raw();
            // SAFETY: a counted pointer to a settled cell with a `T`.
            return unsafe { Repr::with(Tag::of::<T>(), cell) };
        }
        // What is smaller than a word is written as one, so that its bytes can be read together as soon
        // as they are written.
        let mut payload = [MaybeUninit::<u64>::zeroed(), MaybeUninit::uninit()];
        // SAFETY: a type stored in place has at most 16 bytes, aligned to at most 8; that is
        // asserted where `InPlace` is implemented.
        unsafe { payload.as_mut_ptr().cast::<T>().write(value) };
        Repr {
            payload,
            tag: Tag::of::<T>(),
            not_send: PhantomData,
        }
    }

    /// Returns a register that holds a failure.
    #[inline]
    pub(crate) fn from_error(error: Error) -> Repr {
        // SAFETY: the tag says that an error is there.
        unsafe { Repr::with(Tag::ERROR, error) }
    }

    /// Returns a register that holds a handle.
    #[inline]
    pub(crate) fn from_handle(handle: Handle) -> Repr {
        // SAFETY: the tag says that a counted pointer is there.
        unsafe { Repr::with(Tag::HANDLE, handle.into_raw()) }
    }

    /// Returns a register that holds a value on the heap.
    ///
    /// # Safety
    ///
    /// `cell` is a counted pointer that belongs to the caller, to a cell in state `Value` with
    /// that `record`, whose type is not stored in place.
    #[inline]
    pub(crate) unsafe fn from_heap(record: &'static TypeRecord, cell: NonNull<Header>) -> Repr {
        // SAFETY: the caller says so.
        unsafe { Repr::with(Tag::heap(record), cell) }
    }

    /// Returns the payload as a pointer to what the tag says is there.
    #[inline(always)]
    fn content<C>(&self) -> *const C {
        self.payload.as_ptr().cast()
    }

    /// Returns the payload as a value in place.
    ///
    /// The pointer may be read if the register holds a `T` that is stored in place.
    #[inline(always)]
    pub(crate) fn in_place_unchecked<T>(&self) -> *const T {
        self.content()
    }

    /// Returns a view of the content.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        if !self.tag.owns() {
            return if self.tag == Tag::EMPTY {
                View::Empty
            } else {
                View::InPlace
            };
        }
        if self.tag == Tag::ERROR {
            // SAFETY: the tag says that an error is there.
            return View::Error(unsafe { &*self.content::<Error>() });
        }
        // SAFETY: all other tags that own say that a counted pointer is there.
        let raw = unsafe { self.content::<NonNull<Header>>().read() };
        // SAFETY: the counted pointer is a handle that belongs to this register.
        let cell = unsafe { CellRef::from_raw(raw) };
        if self.tag == Tag::HANDLE {
            View::Handle(cell)
        } else {
            View::Heap(cell)
        }
    }

    /// Returns the tag word as a number.
    pub(crate) fn tag(&self) -> usize {
        self.tag.0.addr()
    }

    /// Returns true if nothing is there.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tag == Tag::EMPTY
    }

    /// Returns true if a value is there and is known to be: not an error, not a handle.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.tag.0.addr() & !TAG_BITS != 0
    }

    /// Returns true if clone and drop have anything to do.
    #[inline(always)]
    pub(crate) fn owns(&self) -> bool {
        self.tag.owns()
    }

    /// Returns true if this is a handle.
    #[inline]
    pub(crate) fn is_handle(&self) -> bool {
        self.tag == Tag::HANDLE
    }

    /// Returns the record of the value, if a value is known to be there.
    #[inline]
    pub(crate) fn record(&self) -> Option<&'static TypeRecord> {
        self.tag.record()
    }

    /// Returns the error, seeing through handles.
    #[inline]
    pub(crate) fn error(&self) -> Option<&Error> {
        match self.view() {
            View::Error(error) => Some(error),
            View::Handle(cell) => cell.error(),
            _ => None,
        }
    }

    /// Returns the value if it is a `T` in place: one comparison.
    #[inline(always)]
    pub(crate) fn get_in_place<T: Value + Copy>(&self) -> Option<T> {
        if is_in_place::<T>() && self.tag == Tag::of::<T>() {
            // SAFETY: the tag says that a `T` is there.
            return Some(unsafe { self.content::<T>().read() });
        }
        None
    }

    /// Returns the value if it is a `T`, seeing through handles.
    #[inline]
    pub(crate) fn get<T: Value>(&self) -> Option<&T> {
        if self.tag != Tag::of::<T>() {
            return self.get_cold::<T>();
        }
        // SAFETY: the tag says that a `T` is there, in the way its storage says.
        Some(unsafe { self.get_unchecked::<T>() })
    }

    /// Returns the value.
    ///
    /// # Safety
    ///
    /// The tag is that of a settled `T`.
    #[inline(always)]
    unsafe fn get_unchecked<T: Value>(&self) -> &T {
        if is_in_place::<T>() {
            // SAFETY: the caller says that a `T` is there.
            return unsafe { &*self.content::<T>() };
        }
        // SAFETY: the caller says that a counted pointer is there.
        let raw = unsafe { self.content::<NonNull<Header>>().read() };
        // SAFETY: the counted pointer is a handle that belongs to this register.
        let cell = unsafe { CellRef::from_raw(raw) };
        // SAFETY: the caller says that the cell holds a `T`.
        unsafe { cell.payload::<T>() }
    }

    #[cold]
    fn get_cold<T: Value>(&self) -> Option<&T> {
        match self.view() {
            View::Handle(cell) => cell.value::<T>(),
            View::InPlace | View::Heap(_) if self.record()?.is::<T>() => {
                // SAFETY: another record of the same type says that a `T` is there.
                Some(unsafe { self.get_unchecked::<T>() })
            }
            _ => None,
        }
    }

    /// Borrows a value for writing, if it is a `T` that nobody else can see.
    pub(crate) fn get_mut<T: Value>(&mut self) -> Option<&mut T> {
        if !self.record()?.is::<T>() {
            return None;
        }
        if is_in_place::<T>() {
            // SAFETY: the record says that a `T` is there, and the register is borrowed
            // exclusively.
            return Some(unsafe { &mut *self.payload.as_mut_ptr().cast::<T>() });
        }
        // SAFETY: a record of a type that is not stored in place comes with a counted pointer,
        // and a `Handle` is nothing else.
        let handle = unsafe { &mut *self.payload.as_mut_ptr().cast::<Handle>() };
        handle.value_mut::<T>()
    }

    /// Moves a value out, if it is a `T` that nobody else can see.
    #[inline]
    pub(crate) fn take<T: Value>(self) -> Result<T, Repr> {
        let this = self.settled();
        if this.tag != Tag::of::<T>() && !this.record().is_some_and(|record| record.is::<T>()) {
            return Err(this);
        }
        if is_in_place::<T>() {
            // SAFETY: the tag says that a `T` is there; such types are `Copy`.
            return Ok(unsafe { this.content::<T>().read() });
        }
        match this.into_heap() {
            Ok(handle) => handle.into_value::<T>().map_err(|handle| {
                // SAFETY: the handle came from a register of such a tag.
                unsafe { Repr::with(Tag::of::<T>(), handle.into_raw()) }
            }),
            Err(this) => Err(this),
        }
    }

    /// Returns the handle of a value on the heap.
    #[inline]
    pub(crate) fn into_heap(self) -> Result<Handle, Repr> {
        if !matches!(self.view(), View::Heap(_)) {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: a counted pointer is there, and `this` does not drop it.
        let raw = unsafe { this.content::<NonNull<Header>>().read() };
        // SAFETY: it belongs to us now.
        Ok(unsafe { Handle::from_raw(raw) })
    }

    /// Returns the handle if the cell is pending, else the normal form.
    pub(crate) fn into_handle(self) -> Result<Handle, Repr> {
        self.settled().into_any_handle()
    }

    /// Returns the handle, be its cell settled or not, or the normal form.
    #[inline]
    pub(crate) fn into_any_handle(self) -> Result<Handle, Repr> {
        if !self.is_handle() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: the tag says that a counted pointer is there, and `this` does not drop it.
        let raw = unsafe { this.content::<NonNull<Header>>().read() };
        // SAFETY: it belongs to us now.
        Ok(unsafe { Handle::from_raw(raw) })
    }

    /// Takes the content out of the register, which is empty then: the handle, be its cell settled
    /// or not, or the normal form.
    #[inline]
    pub(crate) fn take_handle(&mut self) -> Result<Handle, Repr> {
        if !self.is_handle() {
            return Err(mem::replace(self, Repr::empty()));
        }
        self.tag = Tag::EMPTY;
        // SAFETY: the tag said that a counted pointer is there, and says so no more.
        let raw = unsafe { self.content::<NonNull<Header>>().read() };
        // SAFETY: it belongs to us now.
        Ok(unsafe { Handle::from_raw(raw) })
    }

    /// Returns the normal form if the value is settled, else the register unchanged.
    #[inline]
    pub(crate) fn settled(self) -> Repr {
        if self.is_handle() {
            self.settled_handle()
        } else {
            self
        }
    }

    #[inline(never)]
    fn settled_handle(mut self) -> Repr {
        match self.take_handle() {
            Ok(handle) => handle.into_normal(),
            Err(this) => this,
        }
    }

    /// Counts `n` more owners of what is there, which the caller makes by copying bytes.
    #[inline]
    pub(crate) fn retain(&self, n: usize) {
        if self.tag.owns() && n > 0 {
            self.retain_owned(n);
        }
    }

    fn retain_owned(&self, n: usize) {
        match self.view() {
            View::Heap(cell) | View::Handle(cell) => cell.retain(n),
            View::Error(error) => (0..n).for_each(|_| mem::forget(error.clone())),
            View::Empty | View::InPlace => (),
        }
    }

    #[inline(never)]
    fn drop_owned(&mut self) {
        match self.view() {
            View::Empty | View::InPlace => (),
            View::Error(_) => {
                // SAFETY: the tag says that an error is there; it is dropped once, here.
                unsafe { self.payload.as_mut_ptr().cast::<Error>().drop_in_place() };
            }
            View::Heap(_) | View::Handle(_) => {
                // SAFETY: the tag says that a counted pointer is there, which is what a `Handle`
                // is; it is dropped once, here.
                unsafe { self.payload.as_mut_ptr().cast::<Handle>().drop_in_place() };
            }
        }
    }
}

impl Clone for Repr {
    #[inline]
    fn clone(&self) -> Repr {
        self.retain(1);
        // SAFETY: a register is plain bytes; what they own was counted once more.
        unsafe { ptr::read(self) }
    }
}

impl Drop for Repr {
    #[inline]
    fn drop(&mut self) {
        if self.tag.owns() {
            self.drop_owned();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
