//! Values from values: map, flatten, when_all, first_error.

use std::fmt;

use crate::{
    any::AnyAsyncValue,
    chain::Chain,
    error::Error,
    promise::Promise,
    storage::{Heap, Value},
    sync::{Arc, AtomicUsize, Mutex, Ordering},
    value::AsyncValue,
    waiter,
};

impl<T: Value> AsyncValue<T> {
    /// Returns `function` of the value, computed when the value is there. Errors pass through.
    pub fn map<U: Value>(self, function: impl FnOnce(&T) -> U + Send + 'static) -> AsyncValue<U> {
        self.and_then_value(move |value| AsyncValue::available(function(value)))
    }

    /// Returns `function` of the value, as [`map`](Self::map), where `function` may fail.
    pub fn try_map<U: Value>(
        self,
        function: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
    ) -> AsyncValue<U> {
        self.and_then_value(move |value| AsyncValue::from(function(value)))
    }

    /// Returns the value that `function` returns of this value, which may itself not exist yet;
    /// otherwise as [`map`](Self::map).
    ///
    /// ```
    /// use tfrt_async::AsyncValue;
    /// let (inner, later) = AsyncValue::<i32>::pending();
    /// let value = AsyncValue::available(1).and_then_value(move |_| later);
    /// inner.resolve(2);
    /// assert_eq!(value.get().unwrap().unwrap(), &2);
    /// ```
    pub fn and_then_value<U: Value>(
        self,
        function: impl FnOnce(&T) -> AsyncValue<U> + Send + 'static,
    ) -> AsyncValue<U> {
        let this = self.settled();
        match this.get() {
            Some(Ok(value)) => return function(value),
            Some(Err(error)) => return AsyncValue::from_error(error.clone()),
            None => (),
        }
        let (promise, result) = AsyncValue::pending();
        this.when_settled(move |this| match this.get() {
            Some(Ok(value)) => promise.forward(function(value)),
            Some(Err(error)) => promise.fail(error.clone()),
            None => drop(promise),
        });
        result
    }
}

/// A value to come as the payload of another, which [`AsyncValue::flatten`] makes one.
///
/// An [`AsyncValue`] itself is no [`Value`]: what stands in a register is one or the other.
pub struct Nested<T: Value>(pub AsyncValue<T>);

impl<T: Value> Value for Nested<T> {
    const NAME: &'static str = "!tfrt.async_value";
    type Storage = Heap;
}

impl<T: Value> fmt::Debug for Nested<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nested").field(self.0.as_any()).finish()
    }
}

impl<T: Value> AsyncValue<Nested<T>> {
    /// Returns the inner value.
    pub fn flatten(self) -> AsyncValue<T> {
        self.and_then_value(|nested| nested.0.clone())
    }
}

/// A counter of events that holds a payload, which the last event takes.
struct Countdown<P> {
    n_left: AtomicUsize,
    prize: Mutex<Option<P>>,
}

impl<P> Countdown<P> {
    fn new(n_events: usize, prize: P) -> Arc<Self> {
        Arc::new(Countdown {
            n_left: AtomicUsize::new(n_events),
            prize: Mutex::new(Some(prize)),
        })
    }

    /// Counts one event; returns the payload to the last.
    fn count_down(&self) -> Option<P> {
        // Ordering: releases what came before this event to the last one, which acquires it.
        if self.n_left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return None;
        }
        // Nothing panics while it holds this lock.
        self.prize
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take()
    }
}

/// Runs `work` when all `values` are settled, failed ones included: now if they are, else on the
/// thread that settles the last of them. The values are not kept alive.
///
/// ```
/// use tfrt_async::{AsyncValue, run_when_settled};
/// let (promise, value) = AsyncValue::<i32>::pending();
/// let (sender, receiver) = std::sync::mpsc::channel();
/// run_when_settled(&[value.into_any()], move || sender.send("now").unwrap());
/// promise.resolve(1);
/// assert_eq!(receiver.try_recv(), Ok("now"));
/// ```
pub fn run_when_settled(values: &[AnyAsyncValue], work: impl FnOnce() + Send + 'static) {
    let mut pending = values.iter().filter(|value| !value.is_settled());
    let Some(first) = pending.next() else {
        return waiter::run_now(work);
    };
    let n_more = pending.clone().count();
    if n_more == 0 {
        return first.and_then(work);
    }
    // One event more, for the end of this function: values may be settled meanwhile.
    let countdown = Countdown::new(values.len() + 1, work);
    for value in values {
        let countdown = Arc::clone(&countdown);
        value.and_then(move || {
            if let Some(work) = countdown.count_down() {
                work();
            }
        });
    }
    if let Some(work) = countdown.count_down() {
        waiter::run_now(work);
    }
}

/// Returns a chain that is there when all `values` are; it fails with the error of the failed
/// one that has the highest index.
///
/// ```
/// use tfrt_async::{AnyAsyncValue, Error, when_all};
/// let values = [
///     AnyAsyncValue::from_error(Error::unknown("first")),
///     AnyAsyncValue::from_error(Error::unknown("second")),
///     AnyAsyncValue::new(1),
/// ];
/// assert_eq!(when_all(&values).error().unwrap().message(), "second");
/// ```
pub fn when_all(values: &[AnyAsyncValue]) -> AsyncValue<Chain> {
    let outcome = |values: &[AnyAsyncValue]| match first_error(values) {
        Some(error) => Err(error.clone()),
        None => Ok(Chain),
    };
    if values.iter().all(AnyAsyncValue::is_settled) {
        return AsyncValue::from(outcome(values));
    }
    let (promise, result): (Promise<Chain>, _) = AsyncValue::pending();
    let kept = values.to_vec();
    run_when_settled(values, move || promise.complete(outcome(&kept)));
    result
}

/// Returns the error of the failed value that has the highest index.
pub fn first_error(values: &[AnyAsyncValue]) -> Option<&Error> {
    values.iter().rev().find_map(AnyAsyncValue::error)
}

#[cfg(all(test, not(loom)))]
mod tests;
