//! [`AsyncValue`]: a counted handle to a value that may not exist yet.

use std::{fmt, marker::PhantomData};

use crate::{any::AnyAsyncValue, cell, error::Error, promise::Promise, repr::Repr, storage::Value};

/// A `T`, a failure, or a handle to a cell that a [`Promise`] will settle with one of these.
///
/// Copies are cheap, and all see the same. Where it is settled depends on the type: see
/// [`Value::Storage`].
///
/// # Examples
///
/// ```
/// use tfrt_async::AsyncValue;
///
/// let (promise, value) = AsyncValue::<i32>::pending();
/// let doubled = value.clone().map(|x| x * 2);
/// assert!(doubled.get().is_none());
/// promise.resolve(21);
/// assert_eq!(doubled.get().unwrap().unwrap(), &42);
/// ```
///
/// A value is also a future, on any executor: `let x: i32 = *value.await?;`
#[repr(transparent)]
pub struct AsyncValue<T: Value> {
    /// Invariant: an error, a `T`, or a handle to a cell with the record of `T`.
    any: AnyAsyncValue,
    of: PhantomData<T>,
}

impl<T: Value> AsyncValue<T> {
    /// Takes over a value that satisfies the invariant.
    #[inline]
    pub(crate) fn from_any(any: AnyAsyncValue) -> Self {
        AsyncValue {
            any,
            of: PhantomData,
        }
    }

    /// Returns a settled value.
    #[inline]
    pub fn available(value: T) -> Self {
        AsyncValue::from_any(AnyAsyncValue::new(value))
    }

    /// Returns a failed value.
    #[inline]
    pub fn from_error(error: Error) -> Self {
        AsyncValue::from_any(AnyAsyncValue::from_error(error))
    }

    /// Returns a promise and its value.
    #[inline]
    pub fn pending() -> (Promise<T>, AsyncValue<T>) {
        let (right, handle) = cell::pending::<T>();
        let value = AsyncValue::from_any(AnyAsyncValue(Repr::from_handle(handle)));
        (Promise::from_right(right), value)
    }

    /// Returns true unless a promise has yet to settle the value.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.any.is_settled()
    }

    /// Returns the error if the value has failed; `None` while it is pending.
    #[inline]
    pub fn error(&self) -> Option<&Error> {
        self.any.error()
    }

    /// Returns the value or the error; `None` while it is pending.
    #[inline]
    pub fn get(&self) -> Option<Result<&T, &Error>> {
        match self.any.get::<T>() {
            Some(value) => Some(Ok(value)),
            None => self.any.error().map(Err),
        }
    }

    /// Returns the value with its type erased.
    #[inline]
    pub fn into_any(self) -> AnyAsyncValue {
        self.any
    }

    /// Borrows the value with its type erased.
    #[inline]
    pub fn as_any(&self) -> &AnyAsyncValue {
        &self.any
    }

    /// Returns the normal form, as [`AnyAsyncValue::settled`].
    #[inline]
    pub fn settled(self) -> Self {
        AsyncValue::from_any(self.any.settled())
    }

    /// Runs `work` when the value is settled, as [`AnyAsyncValue::and_then`].
    #[inline]
    pub fn and_then(&self, work: impl FnOnce() + Send + 'static) {
        self.any.and_then(work);
    }

    /// Runs `work` with the value when it is settled, as [`AnyAsyncValue::when_settled`].
    #[inline]
    pub fn when_settled(self, work: impl FnOnce(AsyncValue<T>) + Send + 'static) {
        self.any
            .when_settled_as::<T>(move |any| work(AsyncValue::from_any(any)));
    }

    /// Moves the value out if it is there and nobody else can see it.
    ///
    /// # Errors
    ///
    /// Gives the value back if it is pending, failed, or shared on the heap.
    #[inline]
    pub fn try_into_value(self) -> Result<T, Self> {
        self.any.take::<T>().map_err(AsyncValue::from_any)
    }
}

impl<T: Value> Clone for AsyncValue<T> {
    #[inline]
    fn clone(&self) -> Self {
        AsyncValue::from_any(self.any.clone())
    }
}

impl<T: Value> From<T> for AsyncValue<T> {
    fn from(value: T) -> Self {
        AsyncValue::available(value)
    }
}

impl<T: Value> From<Result<T, Error>> for AsyncValue<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => AsyncValue::available(value),
            Err(error) => AsyncValue::from_error(error),
        }
    }
}

impl<T: Value + fmt::Debug> fmt::Debug for AsyncValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(Ok(value)) => f.debug_tuple("settled").field(value).finish(),
            Some(Err(error)) => f.debug_tuple("failed").field(error).finish(),
            None => write!(f, "pending({})", T::NAME),
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(unsafe_code)]
mod tests;
