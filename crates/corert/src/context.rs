//! [`Context`]: what calls of operations have in common: order, cancellation, and how many may wait.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, Promise, RequestContext};

use crate::TensorHandle;
use crate::attributes::OpAttrsRef;
use crate::caller::Caller;
use crate::inputs::Inputs;
use crate::op::{CoreRuntimeOp, Handles, OpCall};
use crate::record::Recorder;
use crate::runtime::CoreRuntime;

/// How many operations may wait unless a context is told otherwise.
pub const DEFAULT_MAX_IN_FLIGHT: usize = 1 << 20;

/// What calls of operations have in common. Clones share all of it.
///
/// # Order
///
/// Side effects happen in the order of the calls. Everything else happens when its inputs are there.
///
/// # Cancellation
///
/// When a context is cancelled, the handles that are to come fail at once, and so do calls that come, until
/// [`reset`](Self::reset). What runs goes on to its end.
///
/// # Back-pressure
///
/// Operations that wait for inputs, or for a worker, take some 700 bytes each beside their tensors, and no stack that
/// grows with them: what follows nests up to a depth of 128, for which 512 KiB are enough. The number of those that
/// wait is limited ([`with_max_in_flight`](Self::with_max_in_flight)): a call that would exceed it fails with `ResourceExhausted`.
/// Who makes many calls looks at [`in_flight`](Self::in_flight), or awaits [`room`](Self::room).
///
/// # Examples
///
/// ```
/// use tfrt_corert::{CoreRuntime, OpAttrs};
/// use tfrt_host::{ErrorCode, HostContext, kernel::KernelRegistry};
///
/// let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
/// let mut context = runtime.context();
/// let add = runtime.op("tf.AddV2", &runtime.cpu())?;
/// let x = runtime.dense(&[1], &[1.0_f32])?;
/// context.cancel();
/// let error = add.call(&context, [&x, &x], &OpAttrs::new()).unwrap_err();
/// assert_eq!(error.code(), ErrorCode::Cancelled);
/// context.reset();
/// assert!(add.call(&context, [&x, &x], &OpAttrs::new()).is_ok());
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct Context {
    runtime: CoreRuntime,
    execution: ExecutionContext,
    in_flight: Arc<InFlight>,
    /// What comes after the side effects of all calls so far.
    chain: Arc<Mutex<AsyncValue<Chain>>>,
    recorder: Option<Arc<Recorder>>,
}

impl Context {
    pub(crate) fn new(runtime: CoreRuntime, request: Arc<RequestContext>) -> Context {
        Context {
            runtime,
            execution: request.into(),
            in_flight: Arc::new(InFlight::new(DEFAULT_MAX_IN_FLIGHT)),
            chain: Arc::new(Mutex::new(AsyncValue::available(Chain))),
            recorder: None,
        }
    }

    /// Lets so many operations wait at most. Default: [`DEFAULT_MAX_IN_FLIGHT`].
    pub fn with_max_in_flight(mut self, max: usize) -> Self {
        self.in_flight = Arc::new(InFlight::new(max));
        self
    }

    /// The same context, of which `recorder` keeps all calls.
    pub(crate) fn with_recorder(&self, recorder: Arc<Recorder>) -> Context {
        Context {
            recorder: Some(recorder),
            ..self.clone()
        }
    }

    /// The runtime.
    pub fn runtime(&self) -> &CoreRuntime {
        &self.runtime
    }

    /// The context that the host runtime takes.
    pub fn execution(&self) -> &ExecutionContext {
        &self.execution
    }

    /// Stops all that is to come: handles that are not settled fail, calls that come do, too.
    pub fn cancel(&self) {
        self.execution.request().cancel();
    }

    /// Stops all that is to come with an error of one's own. The first reason is final, until
    /// [`reset`](Self::reset).
    pub fn cancel_with(&self, reason: Error) {
        self.execution.request().cancel_with(reason);
    }

    /// Cancels at a time, with code `DeadlineExceeded`.
    pub fn set_deadline(&self, deadline: Instant) {
        self.execution.request().set_deadline(deadline);
    }

    /// Whether the context is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.execution.request().is_cancelled()
    }

    /// Begins anew after a cancellation: calls work again, and side effects don't wait for what was before. Clones
    /// that were made before stay cancelled.
    pub fn reset(&mut self) {
        let request = self.execution.request();
        let mut builder = RequestContext::builder(request.host())
            .id(request.id())
            .queue(request.queue().clone());
        builder = match request.resources() {
            Some(resources) => builder.resources(resources.clone()),
            None => builder,
        };
        self.execution = builder.build().into();
        self.chain = Arc::new(Mutex::new(AsyncValue::available(Chain)));
    }

    /// How many operations wait for inputs, or for a worker.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Whether so many operations wait that the next that would is refused.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.in_flight.count() >= self.in_flight.max
    }

    /// There when at most half as many operations wait as may.
    pub fn room(&self) -> AsyncValue<Chain> {
        self.in_flight.room()
    }

    /// There when the side effects of all calls so far have happened; it fails with the first that failed.
    pub fn effects(&self) -> AsyncValue<Chain> {
        self.lock_chain().clone()
    }

    fn lock_chain(&self) -> MutexGuard<'_, AsyncValue<Chain>> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls an operation for `caller`: [`CoreRuntimeOp::call`] for those who call for others.
    ///
    /// # Errors
    ///
    /// As of that.
    #[inline]
    pub fn call(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: Caller,
    ) -> Result<Handles, Error> {
        self.call_for(op, inputs, attrs, (caller, None))
    }

    /// The same of an operation that is to have so many results, if the caller says so.
    #[inline]
    fn call_for(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        (caller, n_results): (Caller, Option<usize>),
    ) -> Result<Handles, Error> {
        let by = (caller, n_results);
        let result = match &self.recorder {
            None => self.call_unrecorded(op, inputs, attrs, by),
            Some(recorder) => recorder.call(op, inputs, attrs, |inputs| {
                self.call_unrecorded(op, inputs, attrs, by)
            }),
        };
        result.map_err(|error| caller.locate(op.name(), error))
    }

    /// The same of an operation with one result: [`CoreRuntimeOp::call_one`] for those who call for others.
    ///
    /// # Errors
    ///
    /// As of that.
    #[inline(always)]
    pub fn call_one(
        &self,
        op: &CoreRuntimeOp,
        mut inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: Caller,
    ) -> Result<TensorHandle, Error> {
        if self.recorder.is_none() && op.is_of(self.runtime.id()) {
            let mut call = OpCall {
                inputs: inputs.reborrow(),
                attrs,
                chain: None,
                n_results: None,
                execution: &self.execution,
                runtime: self.runtime.id(),
                caller,
                in_flight: Some(&self.in_flight),
            };
            match op.run_short(&mut call) {
                Ok(result) => return Ok(result),
                Err(None) => (),
                Err(Some(error)) => return Err(caller.locate(op.name(), error)),
            }
        }
        self.call_one_long(op, inputs, attrs, caller)
    }

    /// The same of a call without a short way. It stands apart: the short way is made part of its caller.
    #[inline(never)]
    fn call_one_long(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: Caller,
    ) -> Result<TensorHandle, Error> {
        self.call_for(op, inputs, attrs, (caller, Some(1)))
            .and_then(|results| op.only(results))
            .map_err(|error| caller.locate(op.name(), error))
    }

    #[inline]
    fn call_unrecorded(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        (caller, n_results): (Caller, Option<usize>),
    ) -> Result<Handles, Error> {
        if !op.is_of(self.runtime.id()) {
            return Err(op.of_another_runtime());
        }
        let mut call = OpCall {
            inputs,
            attrs,
            chain: None,
            n_results,
            execution: &self.execution,
            runtime: self.runtime.id(),
            caller,
            in_flight: Some(&self.in_flight),
        };
        if op.is_pure() {
            return op.run(call);
        }
        // Calls that are made meanwhile, by the operation itself or by other threads, come after this one: they get a
        // chain that is to come, and nobody waits for a lock.
        let (promise, after) = AsyncValue::pending();
        let mut chain = std::mem::replace(&mut *self.lock_chain(), after);
        call.chain = Some(&mut chain);
        let results = op.run(call);
        promise.forward(chain);
        results
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("in_flight", &self.in_flight())
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// How many operations wait, and who waits until it is fewer.
pub(crate) struct InFlight {
    // A statistic: nothing is read because of it.
    n: AtomicUsize,
    max: usize,
    waiting: Mutex<Vec<Promise<Chain>>>,
}

/// One operation that waits, counted until this is dropped.
pub(crate) struct InFlightGuard(Arc<InFlight>);

impl InFlight {
    fn new(max: usize) -> InFlight {
        InFlight {
            n: AtomicUsize::new(0),
            max,
            waiting: Mutex::default(),
        }
    }

    fn count(&self) -> usize {
        // Ordering: a statistic.
        self.n.load(Ordering::Relaxed)
    }

    /// Counts one more.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there are as many as may be.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<InFlightGuard, Error> {
        let one_more = |n: usize| (n < self.max).then_some(n + 1);
        // Ordering: a statistic.
        let counted = self
            .n
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.map_err(|_| full(self.max))?;
        Ok(InFlightGuard(self.clone()))
    }

    fn is_roomy(&self) -> bool {
        self.count() <= self.max / 2
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Promise<Chain>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self) -> AsyncValue<Chain> {
        let mut waiting = self.lock();
        // Who counts down takes the lock after that, so that either sees the other.
        if self.is_roomy() {
            return AsyncValue::available(Chain);
        }
        let (promise, value) = AsyncValue::pending();
        waiting.push(promise);
        value
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.count(), self.max)
    }
}

#[cold]
fn full(max: usize) -> Error {
    let note =
        "await `Context::room` before further calls, or allow more with `with_max_in_flight`";
    Error::resource_exhausted(format!("{max} operations wait already, as many as may"))
        .with_note(note)
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let in_flight = &self.0;
        // Ordering: a statistic. The lock below orders it before the count that `room` reads under it; or `room` comes
        // first, and its promise is found.
        let before = in_flight.n.fetch_sub(1, Ordering::Relaxed);
        if before != in_flight.max / 2 + 1 {
            return;
        }
        // Without the lock: who is told may ask for room again.
        let waiting = std::mem::take(&mut *in_flight.lock());
        for promise in waiting {
            promise.resolve(Chain);
        }
    }
}
