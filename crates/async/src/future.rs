//! Futures of values: values are awaited in async Rust, on any executor.
//!
//! A future leaves its waker with the cell at the first poll that finds it pending; later polls
//! replace it. Dropping the future takes the waker back, so that a forgotten future wakes nobody.
//! How that is done is told in `cell/waker_slot.rs`.
//!
//! The other way round, [`AsyncValue::from_future`] lets a work queue drive a future.

pub(crate) mod drive;

use std::{
    fmt,
    future::{Future, IntoFuture},
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    any::AnyAsyncValue, cell::WakerSlot, error::Error, repr::Repr, storage::Value,
    value::AsyncValue,
};

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
    #[inline(never)]
    fn new(value: Repr) -> Result<ValueRef<T>, Error> {
        let value = AsyncValue::from_any(AnyAsyncValue(value.settled()));
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
pub struct AnyAsyncValueFuture(WakerSlot);

impl Future for AnyAsyncValueFuture {
    type Output = Result<AnyAsyncValue, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.0.poll(context.waker()) {
            return Poll::Pending;
        }
        let value = match self.0.take() {
            Ok(handle) => handle.into_normal(),
            Err(settled) => settled,
        };
        Poll::Ready(match value.error() {
            Some(error) => Err(error.clone()),
            None => Ok(AnyAsyncValue(value)),
        })
    }
}

impl fmt::Debug for AnyAsyncValueFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.has_value() {
            true => "AnyAsyncValueFuture",
            false => "AnyAsyncValueFuture(complete)",
        })
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

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = &mut self.any.0;
        if !slot.poll(context.waker()) {
            return Poll::Pending;
        }
        Poll::Ready(match slot.take() {
            Ok(handle) => match handle.into_copy::<T>() {
                // The straight path: the value goes from the cell to where it is wanted.
                Ok(value) => Ok(ValueRef {
                    value: AsyncValue::available(value),
                }),
                Err(handle) => ValueRef::new(Repr::from_handle(handle)),
            },
            Err(settled) => ValueRef::new(settled),
        })
    }
}

impl IntoFuture for AnyAsyncValue {
    type Output = Result<AnyAsyncValue, Error>;
    type IntoFuture = AnyAsyncValueFuture;

    #[inline]
    fn into_future(self) -> AnyAsyncValueFuture {
        AnyAsyncValueFuture(WakerSlot::new(self.0))
    }
}

impl<T: Value> IntoFuture for AsyncValue<T> {
    type Output = Result<ValueRef<T>, Error>;
    type IntoFuture = AsyncValueFuture<T>;

    #[inline]
    fn into_future(self) -> AsyncValueFuture<T> {
        AsyncValueFuture {
            any: self.into_any().into_future(),
            of: PhantomData,
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(unsafe_code)]
mod tests;
