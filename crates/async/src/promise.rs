//! [`Promise`], [`AnyPromise`]: the single right to resolve.
//!
//! A promise is not counted and cannot be copied. Whatever happens to it, its value is settled
//! once: by `resolve`, `fail` or `forward`, or with an error when it is dropped.

use std::{fmt, marker::PhantomData};

use crate::{
    any::AnyAsyncValue, cell::SettleRight, error::Error, storage::Value, value::AsyncValue,
};

/// The right to resolve an [`AsyncValue`], once.
///
/// Dropping a promise fails its value with an `Internal` error that names the kernel that was
/// to resolve it, so nothing hangs because somebody forgot.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, Error, ErrorCode};
///
/// let (promise, value) = AsyncValue::<i32>::pending();
/// std::thread::spawn(move || promise.resolve(1)).join().unwrap();
/// assert_eq!(value.get().unwrap().unwrap(), &1);
///
/// let (promise, value) = AsyncValue::<i32>::pending();
/// drop(promise);
/// assert_eq!(value.error().unwrap().code(), ErrorCode::Internal);
/// ```
pub struct Promise<T: Value> {
    /// Invariant: of a cell with the record of `T`.
    right: SettleRight,
    of: PhantomData<fn(T)>,
}

impl<T: Value> Promise<T> {
    #[inline]
    pub(crate) fn from_right(right: SettleRight) -> Self {
        Promise {
            right,
            of: PhantomData,
        }
    }

    /// Settles the value with `value`, and runs its waiters on this thread.
    #[inline]
    pub fn resolve(self, value: T) {
        self.right.resolve(value);
    }

    /// Settles the value with an error, and runs its waiters on this thread.
    pub fn fail(self, error: Error) {
        self.right.fail(error);
    }

    /// Settles the value with a value or an error.
    pub fn complete(self, result: Result<T, Error>) {
        match result {
            Ok(value) => self.resolve(value),
            Err(error) => self.fail(error),
        }
    }

    /// Settles the value as `value` is settled: now if it is, else on the thread that settles it.
    ///
    /// A promise that is forwarded to its own value fails it. A longer ring of promises, each
    /// forwarded to the pending value of the next, is not detected here: its values stay pending
    /// and keep each other alive, which a host sees as a stuck request.
    pub fn forward(self, value: AsyncValue<T>) {
        self.right.forward(value.into_any().0);
    }

    /// Returns true if nobody holds the value any more, so that computing it can be skipped.
    ///
    /// Once true it stays true. Waiters may still want to hear that it has been settled.
    pub fn is_unobserved(&self) -> bool {
        self.right.is_unobserved()
    }
}

impl<T: Value> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Promise({})", T::NAME)
    }
}

/// The right to settle an [`AnyAsyncValue`], once.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AnyAsyncValue, AsyncValue};
///
/// let (promise, value) = AnyAsyncValue::pending();
/// promise.forward(AnyAsyncValue::new(1.5_f32));
/// assert_eq!(value.get::<f32>(), Some(&1.5));
/// ```
pub struct AnyPromise {
    right: SettleRight,
}

impl AnyPromise {
    pub(crate) fn from_right(right: SettleRight) -> Self {
        AnyPromise { right }
    }

    /// Settles the value with `value`, and runs its waiters on this thread.
    ///
    /// If the value was made for another type than `T`, it fails with `InvalidArgument`.
    pub fn resolve<T: Value>(self, value: T) {
        self.right.resolve(value);
    }

    /// Settles the value with an error, and runs its waiters on this thread.
    pub fn fail(self, error: Error) {
        self.right.fail(error);
    }

    /// Settles the value as `value` is settled, as [`Promise::forward`].
    ///
    /// If the value was made for another type than `value` has, it fails with `InvalidArgument`.
    pub fn forward(self, value: AnyAsyncValue) {
        self.right.forward(value.0);
    }

    /// Returns true if nobody holds the value any more, as [`Promise::is_unobserved`].
    pub fn is_unobserved(&self) -> bool {
        self.right.is_unobserved()
    }
}

impl<T: Value> From<Promise<T>> for AnyPromise {
    fn from(promise: Promise<T>) -> Self {
        AnyPromise {
            right: promise.right,
        }
    }
}

impl fmt::Debug for AnyPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyPromise")
    }
}
