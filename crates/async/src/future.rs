//! Where async Rust meets us: values are futures, on any executor.
//!
//! A future registers one continuation with the cell, at the first poll that finds it pending,
//! and keeps the waker beside it: later polls replace the waker and register nothing. Dropping
//! the future takes the waker out, so that a forgotten future wakes nobody.
//!
//! The other way round, [`AsyncValue::from_future`] lets a work queue drive a future.

pub(crate) mod drive;

use std::{
    fmt,
    future::{Future, IntoFuture},
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    any::AnyAsyncValue,
    error::Error,
    storage::Value,
    sync::{Arc, Mutex},
    value::AsyncValue,
};

/// The waker of one future, shared with the continuation.
#[derive(Default)]
struct WakerSlot(Mutex<Option<Waker>>);

impl WakerSlot {
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

/// A settled, successful value that a future gave; derefs to the `T`.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, Error};
/// async fn double(x: AsyncValue<i32>) -> Result<i32, Error> {
///     let x = x.await?;
///     Ok(*x * 2)
/// }
/// ```
pub struct ValueRef<T: Value> {
    /// Invariant: settled, and not an error.
    value: AsyncValue<T>,
}

impl<T: Value> ValueRef<T> {
    fn new(value: AsyncValue<T>) -> Result<ValueRef<T>, Error> {
        match value.error() {
            Some(error) => Err(error.clone()),
            None => Ok(ValueRef { value }),
        }
    }

    /// Returns the value as an async value.
    pub fn into_async_value(self) -> AsyncValue<T> {
        self.value
    }

    /// Moves the value out if nobody else can see it.
    ///
    /// # Errors
    ///
    /// Gives the value back if it is shared on the heap.
    pub fn try_into_value(self) -> Result<T, ValueRef<T>> {
        self.value
            .try_into_value()
            .map_err(|value| ValueRef { value })
    }
}

impl<T: Value> Deref for ValueRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.value.get() {
            Some(Ok(value)) => value,
            _ => unreachable!("a ValueRef is made of a settled value only"),
        }
    }
}

impl<T: Value + fmt::Debug> fmt::Debug for ValueRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

/// The future of an [`AnyAsyncValue`]: gives its normal form, or its error.
#[must_use = "futures do nothing unless polled"]
pub struct AnyAsyncValueFuture {
    /// `None` after it was given.
    value: Option<AnyAsyncValue>,
    slot: Option<Arc<WakerSlot>>,
}

impl AnyAsyncValueFuture {
    /// Returns the value in normal form once it is settled.
    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<AnyAsyncValue> {
        let value = self
            .value
            .take()
            .expect("a future is not polled after it is complete");
        if value.is_settled() {
            return Poll::Ready(value.settled());
        }
        let registered = self.slot.is_some();
        let slot = self.slot.get_or_insert_default();
        slot.replace(Some(context.waker()));
        if !registered {
            let slot = Arc::clone(slot);
            value.and_then(move || slot.wake());
        }
        // It may have been settled before the waker was in the slot.
        if value.is_settled() {
            return Poll::Ready(value.settled());
        }
        self.value = Some(value);
        Poll::Pending
    }
}

impl Future for AnyAsyncValueFuture {
    type Output = Result<AnyAsyncValue, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_settled(context).map(|value| match value.error() {
            Some(error) => Err(error.clone()),
            None => Ok(value),
        })
    }
}

impl Drop for AnyAsyncValueFuture {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.replace(None);
        }
    }
}

impl fmt::Debug for AnyAsyncValueFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyAsyncValueFuture")
            .field(&self.value)
            .finish()
    }
}

/// The future of an [`AsyncValue`]: gives a [`ValueRef`], or the error.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct AsyncValueFuture<T: Value> {
    any: AnyAsyncValueFuture,
    of: PhantomData<fn() -> T>,
}

impl<T: Value> Future for AsyncValueFuture<T> {
    type Output = Result<ValueRef<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.any
            .poll_settled(context)
            .map(|any| ValueRef::new(AsyncValue::from_any(any)))
    }
}

impl IntoFuture for AnyAsyncValue {
    type Output = Result<AnyAsyncValue, Error>;
    type IntoFuture = AnyAsyncValueFuture;

    fn into_future(self) -> AnyAsyncValueFuture {
        AnyAsyncValueFuture {
            value: Some(self),
            slot: None,
        }
    }
}

impl<T: Value> IntoFuture for AsyncValue<T> {
    type Output = Result<ValueRef<T>, Error>;
    type IntoFuture = AsyncValueFuture<T>;

    fn into_future(self) -> AsyncValueFuture<T> {
        AsyncValueFuture {
            any: self.into_any().into_future(),
            of: PhantomData,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
