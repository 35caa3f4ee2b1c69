//! [`KernelPromise`] and [`ExternalGuard`]: what brings a request forward from outside of the host.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tfrt_async::{AnyAsyncValue, AsyncValue, Error, Promise, Value};

use super::{ExecutionContext, RequestContext};

/// Says that something outside of the work queue, the blocking threads and the timers is going to bring a request
/// forward: while it lives, the request doesn't count as stuck. Others do. Keeps nothing alive.
///
/// A [`KernelPromise`] has one. By itself it is for what is no promise, such as several values that come together.
#[must_use = "the request may count as stuck once this is dropped"]
pub struct ExternalGuard(Weak<RequestContext>);

impl RequestContext {
    /// Says that something outside of the host is going to bring the request forward, as long as the guard lives. It is
    /// to be dropped after that is done.
    pub fn external(self: &Arc<Self>) -> ExternalGuard {
        // Ordering: pairs with the look of the watch, which comes after whoever asked has left the executor.
        self.n_outside.fetch_add(1, Ordering::AcqRel);
        ExternalGuard(Arc::downgrade(self))
    }

    /// Tells whether anybody says so.
    pub(crate) fn goes_on_outside(&self) -> bool {
        // Ordering: pairs with the end of a guard: whoever finds none sees the host's note of its end.
        self.n_outside.load(Ordering::Acquire) > 0
    }

    /// Tells whether it was said before that the request may be stuck; it is said now.
    pub(crate) fn was_reported(&self) -> bool {
        // Ordering: the watch alone asks.
        self.was_reported.swap(true, Ordering::Relaxed)
    }
}

impl Drop for ExternalGuard {
    fn drop(&mut self) {
        if let Some(request) = self.0.upgrade() {
            request.host.live_frames().note_end();
            // Ordering: pairs with `goes_on_outside`.
            request.n_outside.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl fmt::Debug for ExternalGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExternalGuard")
    }
}

/// The right to resolve a result of a kernel, once, from any thread and after any time: while it is kept, the request
/// of the kernel is not taken for stuck.
///
/// Made by [`ExecutionContext::promise`]. Dropping it fails the result with code `Internal`, and the kernel's name.
pub struct KernelPromise<T: Value> {
    // Invariant: settled, or dropped, before the guard, so that what comes of it is there when that ends.
    promise: Promise<T>,
    guard: ExternalGuard,
}

impl<T: Value> KernelPromise<T> {
    /// Settles the value with `value`, and runs its waiters on this thread.
    pub fn resolve(self, value: T) {
        self.promise.resolve(value);
    }

    /// Settles the value with an error, and runs its waiters on this thread.
    pub fn fail(self, error: Error) {
        self.promise.fail(error);
    }

    /// Settles the value with a value or an error.
    pub fn complete(self, result: Result<T, Error>) {
        self.promise.complete(result);
    }

    /// Settles the value as `value` is settled: now if it is, else on the thread that settles it. The request is not
    /// taken for stuck until then.
    pub fn forward(self, value: AsyncValue<T>) {
        let awaited: AnyAsyncValue = value.clone().into_any();
        self.promise.forward(value);
        let guard = self.guard;
        awaited.and_then(move || drop(guard));
    }

    /// Returns true if nobody holds the value any more, so that computing it can be skipped.
    pub fn is_unobserved(&self) -> bool {
        self.promise.is_unobserved()
    }
}

impl<T: Value> fmt::Debug for KernelPromise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelPromise({})", T::NAME)
    }
}

impl ExecutionContext {
    /// Makes a value that is to come, for a kernel to return, and the promise of it, for whoever brings it: a thread of
    /// the user's own, the callback of a driver, the reply of a peer. However long that takes, the request waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use tfrt_host::kernel::KernelRegistry;
    /// use tfrt_host::{AsyncValue, ExecutionContext};
    ///
    /// /// `%y = my.later %x`
    /// fn later(x: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    ///     let (promise, value) = context.promise();
    ///     thread::spawn(move || promise.resolve(x + 1));
    ///     value
    /// }
    ///
    /// let mut registry = KernelRegistry::new();
    /// registry.add("my.later", later);
    /// ```
    pub fn promise<T: Value>(&self) -> (KernelPromise<T>, AsyncValue<T>) {
        let (promise, value) = AsyncValue::pending();
        let guard = self.request.external();
        (KernelPromise { promise, guard }, value)
    }
}
