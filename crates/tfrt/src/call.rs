//! [`Call`]: the results of a function, to be waited for, awaited, or taken one by one.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tfrt_async::queue::ConcurrentWorkQueue;
use tfrt_async::{AnyAsyncValueFuture, first_error, when_all};
use tfrt_host::{AnyAsyncValue, AsyncValue, Error, ExecutionContext, RequestContext, Value};

use crate::runtime::wait_timeout;

/// The handle of a call. Its results settle each on its own, while the function goes on.
///
/// # Examples
///
/// In async Rust, on any executor:
///
/// ```
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     let mut future = std::pin::pin!(future);
/// #     struct Unpark(std::thread::Thread);
/// #     impl std::task::Wake for Unpark {
/// #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
/// #     }
/// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
/// #     let mut context = std::task::Context::from_waker(&waker);
/// #     loop {
/// #         match future.as_mut().poll(&mut context) {
/// #             std::task::Poll::Ready(output) => return output,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// use tfrt::Runtime;
///
/// let runtime = Runtime::new();
/// let program = runtime.compile(
///     "later.mlir",
///     r#"func.func @later(%x: i32) -> i32 {
///          %y = "tfrt_test.async_add.i32"(%x, %x) : (i32, i32) -> i32
///          tfrt.return %y : i32
///        }"#,
/// )?;
/// let later = program.function("later").unwrap();
/// let answer = block_on(async {
///     let values = later.call(&runtime.context(), (21,)).await?;
///     values.get::<i32>(0).copied()
/// })?;
/// assert_eq!(answer, 42);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[must_use = "the results of a call hold its errors"]
pub struct Call {
    results: Vec<AnyAsyncValue>,
    queue: Arc<dyn ConcurrentWorkQueue>,
    request: Weak<RequestContext>,
    on_drop: Option<CancelOnDrop>,
    /// A value that is settled once all results are; made by the first wait, and shared by later ones.
    all: OnceLock<AnyAsyncValue>,
}

/// A guard that cancels a request when it is dropped, if some of these results are still to come.
struct CancelOnDrop {
    request: Weak<RequestContext>,
    results: Vec<AnyAsyncValue>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.results.iter().all(AnyAsyncValue::is_settled) {
            return;
        }
        if let Some(request) = self.request.upgrade() {
            request.cancel();
        }
    }
}

impl Call {
    pub(crate) fn new(results: Vec<AnyAsyncValue>, execution: &ExecutionContext) -> Self {
        Call {
            results,
            queue: execution.queue().clone(),
            request: Arc::downgrade(execution.request()),
            on_drop: None,
            all: OnceLock::new(),
        }
    }

    /// Cancels the request of the call, and so all calls of its context, when this handle, or the future that it becomes,
    /// is dropped before all results are there: for a service whose clients go away, or a race of which one call wins.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::{AsyncValue, Runtime};
    ///
    /// let runtime = Runtime::new();
    /// let program = runtime.compile("same.mlir", "func.func @same(%x: i32) -> i32 {
    ///   tfrt.return %x : i32
    /// }")?;
    /// let context = runtime.context();
    /// let (_promise, x) = AsyncValue::<i32>::pending();
    /// let call = program.function("same").unwrap().call(&context, vec![x.into_any()]);
    /// let call = call.cancel_on_drop();
    /// drop(call);
    /// assert!(context.is_cancelled());
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    pub fn cancel_on_drop(mut self) -> Self {
        self.on_drop = Some(CancelOnDrop {
            request: self.request.clone(),
            results: self.results.clone(),
        });
        self
    }

    /// Waits for all results on this thread, which helps with the work where the queue allows it.
    ///
    /// # Errors
    ///
    /// The error of the highest-numbered result that failed; `FailedPrecondition` on a worker of
    /// the queue, which must not wait.
    pub fn wait(self) -> Result<Values, Error> {
        Values::new(self.wait_each()?)
    }

    /// Waits for all results on this thread, for a time at most; returns whether they are there. So a thread that waits
    /// can look after something else now and then, such as Ctrl-C.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which must not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tfrt::Runtime;
    ///
    /// let runtime = Runtime::new();
    /// let program = runtime.compile("one.mlir", "func.func @one() -> i32 {
    ///   %x = tfrt.constant.i32 1
    ///   tfrt.return %x : i32
    /// }")?;
    /// let call = program.function("one").unwrap().spawn(&runtime.context(), ());
    /// while !call.wait_timeout(Duration::from_millis(10))? {
    ///     println!("still at work");
    /// }
    /// assert_eq!(*call.wait()?.get::<i32>(0)?, 1);
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, Error> {
        let all = self.all.get_or_init(|| when_all(&self.results).into_any());
        wait_timeout(&self.queue, std::slice::from_ref(all), timeout)
    }

    /// Waits for all results on this thread, and gives each with its value or its error.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which must not wait.
    pub fn wait_each(mut self) -> Result<Vec<AnyAsyncValue>, Error> {
        self.queue
            .await_all(&self.results)
            .map_err(|refused| Error::failed_precondition(refused.to_string()))?;
        for result in &mut self.results {
            *result = std::mem::replace(result, AnyAsyncValue::empty()).settled();
        }
        Ok(self.results)
    }

    /// Returns the result `index`, to be awaited on its own.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is no such result; `InvalidArgument` if it is known to be of another
    /// type already. One that turns out to be of another type fails.
    pub fn result<T: Value>(&self, index: usize) -> Result<AsyncValue<T>, Error> {
        let result = self.results.get(index);
        let result = result.ok_or_else(|| no_such_result(index, self.results.len()))?;
        let result = result.clone().settled();
        if let Some(error) = result.error() {
            return Ok(AsyncValue::from_error(error.clone()));
        }
        result
            .downcast::<T>()
            .map_err(|found| wrong_type::<T>(index, &found))
    }

    /// Returns the results as they are now: settled or to come.
    pub fn results(&self) -> &[AnyAsyncValue] {
        &self.results
    }

    /// Returns the results as they are now. Whoever has them may wait for them: the call is not cancelled when the
    /// handle is gone.
    pub fn into_results(mut self) -> Vec<AnyAsyncValue> {
        if let Some(on_drop) = &mut self.on_drop {
            on_drop.request = Weak::new();
        }
        self.results
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.results).finish()
    }
}

impl IntoFuture for Call {
    type Output = Result<Values, Error>;
    type IntoFuture = CallFuture;

    fn into_future(self) -> CallFuture {
        CallFuture {
            n_settled: 0,
            waiting: None,
            results: self.results,
            on_drop: self.on_drop,
        }
    }
}

/// The future of a [`Call`]: all of its values, or the error of the highest-numbered result that
/// failed.
#[must_use = "futures do nothing unless polled"]
pub struct CallFuture {
    /// Invariant: the first `n_settled` are settled, and `waiting` waits for the next.
    results: Vec<AnyAsyncValue>,
    n_settled: usize,
    waiting: Option<AnyAsyncValueFuture>,
    on_drop: Option<CancelOnDrop>,
}

impl Future for CallFuture {
    type Output = Result<Values, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        while let Some(next) = this.results.get_mut(this.n_settled) {
            if !next.is_settled() {
                let waiting = this
                    .waiting
                    .get_or_insert_with(|| next.clone().into_future());
                if Pin::new(waiting).poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
            this.waiting = None;
            this.n_settled += 1;
        }
        this.on_drop = None;
        let results = std::mem::take(&mut this.results);
        this.n_settled = 0;
        Poll::Ready(Values::new(
            results.into_iter().map(AnyAsyncValue::settled).collect(),
        ))
    }
}

impl fmt::Debug for CallFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallFuture").field(&self.results).finish()
    }
}

/// The results of a call, none of which has failed.
///
/// # Examples
///
/// ```
/// use tfrt::Runtime;
///
/// let runtime = Runtime::new();
/// let program = runtime.compile("twice.mlir", "func.func @twice(%x: i32) -> (i32, i32) {
///   %y = tfrt.add.i32 %x, %x
///   tfrt.return %x, %y : i32, i32
/// }")?;
/// let twice = program.function("twice").unwrap();
/// let values = twice.call(&runtime.context(), (7,)).wait()?;
/// assert_eq!((values.len(), *values.get::<i32>(1)?), (2, 14));
///
/// let error = values.get::<f32>(1).unwrap_err();
/// assert_eq!(error.message(), "result 1 was expected to be f32, but is i32");
///
/// // Results may be arguments.
/// let values = twice.call(&runtime.context(), values.into_inner()[1..].to_vec()).wait()?;
/// assert_eq!(*values.get::<i32>(1)?, 28);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Values(
    /// Invariant: settled, and no errors.
    Vec<AnyAsyncValue>,
);

impl Values {
    fn new(results: Vec<AnyAsyncValue>) -> Result<Values, Error> {
        match first_error(&results) {
            Some(error) => Err(error.clone()),
            None => Ok(Values(results)),
        }
    }

    /// Returns the result `index`.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is no such result; `InvalidArgument` if it is of another type.
    pub fn get<T: Value>(&self, index: usize) -> Result<&T, Error> {
        let value = self.0.get(index);
        let value = value.ok_or_else(|| no_such_result(index, self.0.len()))?;
        value
            .get::<T>()
            .ok_or_else(|| wrong_type::<T>(index, value))
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the function has no results.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the results with their types erased, to be arguments of another call.
    pub fn into_inner(self) -> Vec<AnyAsyncValue> {
        self.0
    }
}

fn no_such_result(index: usize, n_results: usize) -> Error {
    Error::new(
        tfrt_host::ErrorCode::OutOfRange,
        format!("there is no result {index}: the function has {n_results}"),
    )
}

fn wrong_type<T: Value>(index: usize, found: &AnyAsyncValue) -> Error {
    let found = found.type_name().unwrap_or("a value to come");
    Error::invalid_argument(format!(
        "result {index} was expected to be {}, but is {found}",
        T::NAME
    ))
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tfrt_async::queue::SingleThreadedWorkQueue;
    use tfrt_host::HostContext;
    use tfrt_host::kernel::KernelRegistry;

    use super::*;

    fn request() -> Arc<RequestContext> {
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        let host = HostContext::builder(KernelRegistry::new()).queue(queue);
        RequestContext::new(&host.build())
    }

    fn call_of(request: &Arc<RequestContext>, results: Vec<AnyAsyncValue>) -> Call {
        Call::new(results, &ExecutionContext::new(request))
    }

    fn call(results: Vec<AnyAsyncValue>) -> Call {
        call_of(&request(), results)
    }

    #[test]
    fn call_that_is_dropped_before_its_end_is_cancelled_if_that_was_asked_for() {
        let ends: [(fn(Call), bool); 5] = [
            (drop, false),
            (|call| drop(call.cancel_on_drop()), true),
            (|call| drop(call.cancel_on_drop().into_future()), true),
            (
                |call| {
                    let mut future = call.cancel_on_drop().into_future();
                    let mut context = Context::from_waker(Waker::noop());
                    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
                },
                true,
            ),
            // Who takes the results out may wait for them.
            (|call| drop(call.cancel_on_drop().into_results()), false),
        ];
        for (index, (end, is_cancelled)) in ends.into_iter().enumerate() {
            let request = request();
            let (_promise, value) = AnyAsyncValue::pending();
            end(call_of(&request, vec![AnyAsyncValue::new(1_i32), value]));
            assert_eq!(request.is_cancelled(), is_cancelled, "case {index}");
        }
    }

    #[test]
    fn call_that_has_ended_is_not_cancelled_by_dropping_it() {
        let ends: [fn(Call); 3] = [
            drop,
            |call| drop(call.wait().unwrap()),
            |call| {
                let mut future = call.into_future();
                let mut context = Context::from_waker(Waker::noop());
                assert!(Pin::new(&mut future).poll(&mut context).is_ready());
            },
        ];
        for end in ends {
            let request = request();
            let (promise, value) = AnyAsyncValue::pending();
            let call = call_of(&request, vec![value]).cancel_on_drop();
            promise.resolve(1_i32);
            end(call);
            assert!(!request.is_cancelled());
        }
    }

    #[test]
    fn result_of_another_type_is_refused_with_both_names() {
        let values = call(vec![AnyAsyncValue::new(1i32)]).wait().unwrap();
        let error = values.get::<f32>(0).unwrap_err();
        assert_eq!(
            error.message(),
            "result 0 was expected to be f32, but is i32"
        );
        let error = values.get::<f32>(1).unwrap_err();
        assert_eq!(error.code(), tfrt_host::ErrorCode::OutOfRange);
    }

    #[test]
    fn future_waits_for_all_and_gives_the_last_error() {
        let (first, first_value) = AnyAsyncValue::pending();
        let (second, second_value) = AnyAsyncValue::pending();
        let mut future = call(vec![first_value, second_value]).into_future();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        second.fail(Error::unknown("second"));
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        first.fail(Error::unknown("first"));
        match Pin::new(&mut future).poll(&mut context) {
            Poll::Ready(Err(error)) => assert_eq!(error.message(), "second"),
            other => panic!("expected an error, found {other:?}"),
        }
    }

    #[test]
    fn waiting_for_a_while_tells_whether_the_results_are_there() {
        let (promise, value) = AnyAsyncValue::pending();
        let call = call(vec![value]);
        for _ in 0..3 {
            assert!(!call.wait_timeout(Duration::from_millis(1)).unwrap());
        }
        promise.fail(Error::unknown("late"));
        assert!(call.wait_timeout(Duration::MAX).unwrap());
        assert_eq!(call.wait().unwrap_err().message(), "late");
    }

    #[test]
    fn single_results_are_taken_before_others_are_there() {
        let (promise, value) = AnyAsyncValue::pending();
        let call = call(vec![value, AnyAsyncValue::new(7i64)]);
        let second = call.result::<i64>(1).unwrap();
        assert_eq!(second.get().unwrap().unwrap(), &7);
        let first = call.result::<i32>(0).unwrap();
        promise.resolve(3i32);
        assert_eq!(first.get().unwrap().unwrap(), &3);
    }
}
