//! [`AnyAsyncValue`]: an async value with its type erased, as registers hold it.

use std::fmt;

use crate::{
    cell,
    error::Error,
    producer::Producer,
    promise::AnyPromise,
    repr::{Repr, View},
    storage::{Value, is_in_place},
    value::AsyncValue,
    waiter,
};

/// A value that may not exist yet, of a type known at run time; 24 bytes.
///
/// What is settled lies in place, in a counted cell, or is an error (one pointer). What is not
/// is a handle to a cell that a promise will settle. Nobody points into an `AnyAsyncValue`, so
/// moving one is copying its bytes; with [`retain`](Self::retain) copies can be counted first
/// and made later.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AnyAsyncValue, Error};
///
/// let (promise, value) = AnyAsyncValue::pending();
/// assert!(!value.is_settled());
/// promise.resolve(42_i32);
/// assert_eq!(value.get::<i32>(), Some(&42));
/// assert_eq!(value.get::<i64>(), None);
/// assert_eq!(value.type_name(), Some("i32"));
///
/// let failed = AnyAsyncValue::from_error(Error::not_found("no such file"));
/// assert_eq!(failed.error().unwrap().message(), "no such file");
/// ```
#[repr(transparent)]
pub struct AnyAsyncValue(pub(crate) Repr);

impl AnyAsyncValue {
    /// Returns a settled value.
    #[inline]
    pub fn new<T: Value>(value: T) -> Self {
        AnyAsyncValue(Repr::new(value))
    }

    /// Returns a failed value.
    #[inline]
    pub fn from_error(error: Error) -> Self {
        AnyAsyncValue(Repr::from_error(error))
    }

    /// Returns a register that holds nothing: settled, with neither a value nor an error.
    #[inline]
    pub const fn empty() -> Self {
        AnyAsyncValue(Repr::empty())
    }

    /// Returns a promise and its value, to be resolved with any type, forwarded or failed.
    pub fn pending() -> (AnyPromise, AnyAsyncValue) {
        let (right, handle) = cell::pending_untyped();
        (
            AnyPromise::from_right(right),
            AnyAsyncValue(Repr::from_handle(handle)),
        )
    }

    /// Returns true if this is what [`empty`](Self::empty) returns.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true unless a promise has yet to settle the value.
    #[inline]
    pub fn is_settled(&self) -> bool {
        match self.0.view() {
            View::Handle(cell) => cell.is_settled(),
            _ => true,
        }
    }

    /// Returns true if a value is there and is known to be: neither an error, nor a handle (be
    /// its cell settled or not), nor empty. One comparison.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.is_plain()
    }

    /// Returns true if values of type `T` lie in the register itself.
    pub const fn is_in_place<T: Value>() -> bool {
        is_in_place::<T>()
    }

    /// Returns true if copies of the bytes must be counted: of errors, handles, and values on the
    /// heap. One bit.
    #[inline(always)]
    pub fn is_counted(&self) -> bool {
        self.0.owns()
    }

    /// Returns the tag word, for diagnostics.
    pub fn tag(&self) -> usize {
        self.0.tag()
    }

    /// Returns the error if the value has failed; `None` while it is pending.
    #[inline]
    pub fn error(&self) -> Option<&Error> {
        self.0.error()
    }

    /// Returns the value if it is settled and a `T`.
    #[inline]
    pub fn get<T: Value>(&self) -> Option<&T> {
        self.0.get::<T>()
    }

    /// Returns a copy of the value if it is a `T` in place: one comparison, and no second look.
    ///
    /// `None` says nothing: the value may be behind a handle, or carry another record of the
    /// same type. [`get`](Self::get) knows.
    #[inline(always)]
    pub fn get_in_place<T: Value + Copy>(&self) -> Option<T> {
        self.0.get_in_place::<T>()
    }

    /// Returns the value for writing if it is a `T` that nobody else can see: in place, or in a
    /// heap cell with one reference. The value must be in [normal form](Self::settled).
    pub fn get_mut<T: Value>(&mut self) -> Option<&mut T> {
        self.0.get_mut::<T>()
    }

    /// Returns true if the value is settled and a `T`.
    pub fn is<T: Value>(&self) -> bool {
        self.get::<T>().is_some()
    }

    /// Returns the MLIR name of the value's type: of the value if there is one, else of the type
    /// that a pending value will have. `None` for errors and where nobody knows.
    pub fn type_name(&self) -> Option<&'static str> {
        match self.0.view() {
            View::Empty | View::Error(_) => None,
            View::InPlace | View::Heap(_) => self.0.record().map(|record| record.name),
            View::Handle(cell) => match cell.value_record() {
                Some(record) => Some(record.name),
                None if cell.is_settled() || cell.record().is_untyped() => None,
                None => Some(cell.record().name),
            },
        }
    }

    /// Returns the normal form: a handle whose cell is settled becomes the value or the error
    /// itself. All else stays as it is.
    #[inline]
    pub fn settled(self) -> AnyAsyncValue {
        AnyAsyncValue(self.0.settled())
    }

    /// Returns the value with its type.
    ///
    /// A pending value whose type nobody knows yet is accepted; should it turn out to be another
    /// type, the result fails with `InvalidArgument`. Errors are of every type.
    ///
    /// # Errors
    ///
    /// Gives the value back if it is, or will be, of another type.
    pub fn downcast<T: Value>(self) -> Result<AsyncValue<T>, AnyAsyncValue> {
        let this = self.settled();
        let fits = match this.0.view() {
            View::Error(_) => true,
            View::Empty => false,
            View::InPlace | View::Heap(_) => this.0.record().is_some_and(|found| found.is::<T>()),
            View::Handle(cell) if cell.record().is_untyped() => {
                let (promise, value) = AsyncValue::pending();
                AnyPromise::from(promise).forward(this);
                return Ok(value);
            }
            View::Handle(cell) => cell.record().is::<T>(),
        };
        if fits {
            Ok(AsyncValue::from_any(this))
        } else {
            Err(this)
        }
    }

    /// Moves the value out if it is a `T` that nobody else can see.
    ///
    /// # Errors
    ///
    /// Gives the value back if it is of another type, pending, failed, or shared on the heap.
    #[inline]
    pub fn take<T: Value>(self) -> Result<T, AnyAsyncValue> {
        self.0.take::<T>().map_err(AnyAsyncValue)
    }

    /// Returns true if this is a value on the heap, in [normal form](Self::settled), with one
    /// reference.
    #[inline]
    pub fn is_unique(&self) -> bool {
        match self.0.view() {
            View::Heap(cell) => cell.is_sole(),
            _ => false,
        }
    }

    /// Adds `n` references, which makes `n` later copies of the bytes legal owners. Does nothing
    /// for values in place.
    #[inline]
    pub fn retain(&self, n: usize) {
        self.0.retain(n);
    }

    /// Runs `work` when the value is settled: now if it is, else on the thread that settles it.
    ///
    /// Waiters of one value run in reverse order of their addition. The value is not kept alive.
    /// Waiters nest up to a depth of 128 on one thread; deeper ones run before the outermost
    /// one's caller goes on. A panic in `work` is caught and counted.
    #[inline]
    pub fn and_then(&self, work: impl FnOnce() + Send + 'static) {
        match self.0.view() {
            View::Handle(cell) => cell.and_then(work),
            _ => waiter::run_now(work),
        }
    }

    /// Runs `work` with the value, in [normal form](Self::settled), when it is settled; otherwise
    /// as [`and_then`](Self::and_then). Costs less than cloning the value into the closure.
    #[inline]
    pub fn when_settled(self, work: impl FnOnce(AnyAsyncValue) + Send + 'static) {
        match self.0.into_any_handle() {
            Ok(handle) => handle.when_settled(move |handle| {
                work(AnyAsyncValue(handle.into_normal()));
            }),
            Err(settled) => waiter::run_now(move || work(AnyAsyncValue(settled))),
        }
    }

    /// Runs `work` as [`when_settled`](Self::when_settled) does, for a value whose cell, if any,
    /// was made for a `T`.
    #[inline]
    pub(crate) fn when_settled_as<T: Value>(
        self,
        work: impl FnOnce(AnyAsyncValue) + Send + 'static,
    ) {
        match self.0.into_any_handle() {
            Ok(handle) => handle.when_settled(move |handle| match handle.into_copy::<T>() {
                // Two calls, so that in the first nobody asks what the value is.
                Ok(value) => work(AnyAsyncValue::new(value)),
                Err(handle) => work(AnyAsyncValue(handle.into_normal())),
            }),
            Err(settled) => waiter::run_now(move || work(AnyAsyncValue(settled))),
        }
    }

    /// Names who is to settle the value, for the error of a dropped promise. The first name
    /// stays. Does nothing once the value is settled.
    pub fn set_producer(&self, producer: &Producer) {
        if let View::Handle(cell) = self.0.view() {
            cell.set_producer(producer);
        }
    }
}

impl Clone for AnyAsyncValue {
    #[inline]
    fn clone(&self) -> Self {
        AnyAsyncValue(self.0.clone())
    }
}

impl From<Error> for AnyAsyncValue {
    fn from(error: Error) -> Self {
        AnyAsyncValue::from_error(error)
    }
}

impl<T: Value> From<AsyncValue<T>> for AnyAsyncValue {
    fn from(value: AsyncValue<T>) -> Self {
        value.into_any()
    }
}

impl fmt::Debug for AnyAsyncValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = self.error() {
            return write!(f, "failed({error:?})");
        }
        let state = match (self.is_empty(), self.is_settled()) {
            (true, _) => return f.write_str("empty"),
            (_, true) => "settled",
            (_, false) => "pending",
        };
        write!(f, "{state}({})", self.type_name().unwrap_or("unknown"))
    }
}
