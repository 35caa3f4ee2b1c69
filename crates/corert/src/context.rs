//! [`Context`]: state shared by calls of operations.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, Promise, RequestContext};
use tfrt_tensor::{Tensor, TensorMetadata};

use crate::TensorHandle;
use crate::attributes::OpAttrsRef;
use crate::call_site::CallSite;
use crate::cancellation::until_cancelled;
use crate::effects::{EffectOrder, PendingEffects, Place, ResourceOrder, ResourceUse};
use crate::handle::{PendingMetadata, PendingTensor};
use crate::inputs::Inputs;
use crate::op::{CoreRuntimeOp, FastPath, Handles, OpCall};
use crate::record::Recorder;
use crate::runtime::CoreRuntime;

/// Maximum number of operations that may wait, unless a context sets another.
pub const DEFAULT_MAX_IN_FLIGHT: usize = 1 << 20;

/// State shared by calls of operations: the order of side effects, cancellation, and the limit on waiting operations.
/// Clones share it.
///
/// # Order
///
/// Side effects happen in the order of the calls; those on resources in that of the calls on the same resource, of all
/// contexts of the runtime, so that calls on different ones run side by side. Everything else happens when its inputs are there.
///
/// # Cancellation
///
/// When a context is cancelled, the handles that are to come fail at once, and so do calls that come, until
/// [`reset`](Self::reset) of this context or of a clone. What runs goes on to its end, and nobody sees its result.
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
    // Invariant: the latest one, or cancelled.
    generation: Generation,
    /// The latest generation of this context and of its clones.
    latest: Arc<Mutex<Generation>>,
    recorder: Option<Arc<Recorder>>,
}

/// State of a context between two resets.
#[derive(Clone)]
struct Generation {
    execution: ExecutionContext,
    in_flight: Arc<InFlight>,
    /// The chain that is ready after the side effects of all calls so far.
    chain: Arc<Mutex<AsyncValue<Chain>>>,
    /// The calls on resources that go on.
    on_resources: PendingEffects,
    /// The order of calls that wait in places of their own: those of other contexts must be able to go on.
    order: Arc<ResourceOrder>,
}

impl Generation {
    fn new(request: Arc<RequestContext>, max_in_flight: usize) -> Generation {
        Generation {
            execution: request.into(),
            in_flight: Arc::new(InFlight::new(max_in_flight)),
            chain: Arc::new(Mutex::new(AsyncValue::available(Chain))),
            on_resources: PendingEffects::default(),
            order: Arc::default(),
        }
    }

    fn request(&self) -> &Arc<RequestContext> {
        self.execution.request()
    }

    fn lock_chain(&self) -> MutexGuard<'_, AsyncValue<Chain>> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    pub(crate) fn new(runtime: CoreRuntime, request: Arc<RequestContext>) -> Context {
        Context::of_generation(runtime, Generation::new(request, DEFAULT_MAX_IN_FLIGHT))
    }

    fn of_generation(runtime: CoreRuntime, generation: Generation) -> Context {
        Context {
            runtime,
            latest: Arc::new(Mutex::new(generation.clone())),
            generation,
            recorder: None,
        }
    }

    /// Sets the maximum number of waiting operations. Default: [`DEFAULT_MAX_IN_FLIGHT`]. Clones made before are
    /// other contexts from now on.
    pub fn with_max_in_flight(self, max: usize) -> Self {
        let in_flight = Arc::new(InFlight::new(max));
        let generation = Generation {
            in_flight,
            ..self.generation().into_owned()
        };
        Context {
            recorder: self.recorder,
            ..Context::of_generation(self.runtime, generation)
        }
    }

    /// Returns a context of the same limits whose work is not cancelled with this context.
    pub fn apart(&self) -> Context {
        let generation = self.generation();
        let generation = Generation::new(generation.request().renewed(), generation.in_flight.max);
        Context::of_generation(self.runtime.clone(), generation)
    }

    /// Returns the generation that calls belong to.
    #[inline]
    fn generation(&self) -> Cow<'_, Generation> {
        match self.generation.request().is_cancelled() {
            false => Cow::Borrowed(&self.generation),
            true => Cow::Owned(self.lock_latest().clone()),
        }
    }

    fn lock_latest(&self) -> MutexGuard<'_, Generation> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns this context with a `recorder` that keeps all its calls.
    pub(crate) fn with_recorder(&self, recorder: Arc<Recorder>) -> Context {
        Context {
            recorder: Some(recorder),
            ..self.clone()
        }
    }

    /// Returns the runtime.
    pub fn runtime(&self) -> &CoreRuntime {
        &self.runtime
    }

    /// Returns the execution context of calls into the host runtime.
    pub fn execution(&self) -> ExecutionContext {
        self.generation().execution.clone()
    }

    /// Cancels the context: unsettled handles fail, and so do later calls.
    pub fn cancel(&self) {
        self.generation().request().cancel();
    }

    /// Cancels the context with an error of the caller's. The first reason is final, until [`reset`](Self::reset).
    pub fn cancel_with(&self, reason: Error) {
        self.generation().request().cancel_with(reason);
    }

    /// Cancels at a time, with code `DeadlineExceeded`.
    pub fn set_deadline(&self, deadline: Instant) {
        self.generation().request().set_deadline(deadline);
    }

    /// Returns whether the context is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.generation().request().is_cancelled()
    }

    /// Returns the reason of the cancellation, if the context is cancelled.
    pub fn cancellation(&self) -> Option<Error> {
        self.generation().request().cancellation().cloned()
    }

    /// Starts a new generation after a cancellation, for all clones: calls work again, side effects no longer wait
    /// for earlier ones, and operations that still wait are not counted. Does nothing if the context is not
    /// cancelled, as when another thread has reset it.
    pub fn reset(&mut self) {
        let mut latest = self.lock_latest();
        let before = latest.clone();
        if before.request().is_cancelled() {
            *latest = Generation::new(before.request().renewed(), before.in_flight.max);
        }
        let generation = latest.clone();
        drop(latest);
        // Without the lock: data of the request may be dropped with it.
        drop(before);
        self.generation = generation;
    }

    /// Returns this context in the generation that a clone's reset has started, if this context does not see that
    /// yet. Calls with either behave alike; those with this one look the generation up each time.
    #[inline]
    pub fn renewed(&self) -> Option<Context> {
        match self.generation() {
            Cow::Owned(generation)
                if !Arc::ptr_eq(generation.request(), self.generation.request()) =>
            {
                let (runtime, latest) = (self.runtime.clone(), self.latest.clone());
                let recorder = self.recorder.clone();
                Some(Context {
                    runtime,
                    generation,
                    latest,
                    recorder,
                })
            }
            _ => None,
        }
    }

    /// Counts one more waiting operation.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there are as many as may be.
    pub(crate) fn begin_waiting(&self) -> Result<InFlightGuard, Error> {
        self.generation().in_flight.begin()
    }

    /// Returns whether a handle stands for a value of the recording that calls are kept in.
    pub(crate) fn records(&self, handle: &TensorHandle) -> bool {
        let recorder = self.recorder.as_ref();
        recorder.is_some_and(|recorder| recorder.records(handle))
    }

    /// Returns whether calls are recorded.
    #[inline]
    pub fn is_recording(&self) -> bool {
        let recorder = self.recorder.as_ref();
        recorder.is_some_and(|recorder| recorder.is_recording())
    }

    /// Returns the number of operations that wait for inputs or for a worker.
    pub fn in_flight(&self) -> usize {
        self.generation().in_flight.count()
    }

    /// Returns whether the limit of waiting operations is reached, so that the next one that would wait is refused.
    #[inline]
    pub fn is_full(&self) -> bool {
        let in_flight = &self.generation().in_flight;
        in_flight.count() >= in_flight.max
    }

    /// Returns a chain that resolves when at most half as many operations wait as may; it fails when the context is
    /// cancelled.
    pub fn room(&self) -> AsyncValue<Chain> {
        let generation = self.generation();
        until_cancelled(&generation.in_flight.room(), generation.request())
    }

    /// Returns a chain that resolves when the side effects of all calls so far have happened; it fails with the first
    /// that failed, and when the context is cancelled.
    pub fn effects(&self) -> AsyncValue<Chain> {
        let generation = self.generation();
        let chain = generation.lock_chain().clone();
        let on_resources = generation.on_resources.all();
        let all = match (chain.get(), on_resources.get()) {
            (Some(Ok(_)), _) => on_resources,
            (_, Some(Ok(_))) => chain,
            _ => tfrt_host::when_all(&[chain.into_any(), on_resources.into_any()]),
        };
        until_cancelled(&all, generation.request())
    }

    /// Calls an operation for `caller`: [`CoreRuntimeOp::call`] for those who call for others.
    ///
    /// # Errors
    ///
    /// Those of [`CoreRuntimeOp::call`].
    #[inline]
    pub fn call(
        &self,
        op: &CoreRuntimeOp,
        mut inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: CallSite,
    ) -> Result<Handles, Error> {
        match self.try_fast(op, inputs.reborrow(), attrs, (caller, None)) {
            Ok(result) => Ok(smallvec![result]),
            Err(None) => self.call_for(op, inputs, attrs, (caller, None)),
            Err(Some(error)) => Err(caller.locate(op.name(), error)),
        }
    }

    /// Calls an operation, and checks its number of results if the caller expects one.
    #[inline]
    fn call_for(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        (caller, n_results): (CallSite, Option<usize>),
    ) -> Result<Handles, Error> {
        let options = CallOptions {
            caller,
            n_results,
            gives_back: false,
        };
        let result = match &self.recorder {
            None => self.call_unrecorded(op, inputs, attrs, options, || ()),
            Some(recorder) => recorder.call(op, inputs, attrs, |inputs, begin| {
                self.call_unrecorded(op, inputs, attrs, options, begin)
            }),
        };
        result.map_err(|error| caller.locate(op.name(), error))
    }

    /// Calls an operation that updates states in place: weights, and an optimizer's state. The states are its first
    /// inputs, as many as it has results, and are given for good. If the operation can't be done, the states stay as
    /// they are: in `inputs` if that is known now, else as results, and the reason is reported to the diagnostic
    /// handler. The step is not recorded.
    ///
    /// An operation that fails after it has begun to write loses the states.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call), and those of inputs that have failed.
    pub fn step(
        &self,
        op: &CoreRuntimeOp,
        inputs: &mut [TensorHandle],
        attrs: OpAttrsRef<'_>,
        caller: CallSite,
    ) -> Result<Handles, Error> {
        if let Some(error) = inputs.iter().rev().find_map(TensorHandle::error) {
            return Err(error.clone());
        }
        let options = CallOptions {
            caller,
            n_results: None,
            gives_back: true,
        };
        match self.call_unrecorded(op, Inputs::owned(inputs), attrs, options, || ()) {
            Ok(mut results) => {
                // An input may have failed since.
                for (result, input) in results.iter_mut().zip(inputs) {
                    if result.error().is_some() && !input.is_taken() {
                        *result = input.take();
                    }
                }
                Ok(results)
            }
            Err(error) => {
                let error = caller.locate(op.name(), error);
                for input in inputs.iter_mut().filter(|input| input.is_taken()) {
                    *input = TensorHandle::of_error(input.owner(), error.clone());
                }
                Err(error)
            }
        }
    }

    /// Returns a handle to a tensor on the host's device, and the promise of the tensor. The handle fails when the
    /// context is cancelled.
    pub fn promise(&self, metadata: Option<TensorMetadata>) -> (Promise<Tensor>, TensorHandle) {
        let (promise, tensor) = AsyncValue::pending();
        let metadata = metadata.map_or(PendingMetadata::WithTensor, PendingMetadata::Known);
        let later = PendingTensor::new(tensor, metadata);
        let handle =
            TensorHandle::of_pending(self.runtime.owner(), later, self.generation().request());
        (promise, handle)
    }

    /// Calls an operation with one result for `caller`: [`CoreRuntimeOp::call_one`] for those who call for others.
    ///
    /// # Errors
    ///
    /// Those of [`CoreRuntimeOp::call_one`].
    #[inline(always)]
    pub fn call_one(
        &self,
        op: &CoreRuntimeOp,
        mut inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: CallSite,
    ) -> Result<TensorHandle, Error> {
        match self.try_fast(op, inputs.reborrow(), attrs, (caller, Some(1))) {
            Ok(result) => return Ok(result),
            Err(None) => (),
            Err(Some(error)) => return Err(caller.locate(op.name(), error)),
        }
        self.call_one_slow(op, inputs, attrs, caller)
    }

    /// Calls an operation on its fast path, unless calls are recorded; see [`CoreRuntimeOp::try_fast`].
    #[inline(always)]
    fn try_fast(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        (caller, n_results): (CallSite, Option<usize>),
    ) -> FastPath {
        if self.recorder.is_some() || !op.is_of(self.runtime.id()) {
            return Err(None);
        }
        op.try_fast(&mut OpCall {
            inputs,
            attrs,
            chain: None,
            n_results,
            execution: &self.generation.execution,
            runtime: self.runtime.id(),
            caller,
            in_flight: Some(&self.generation.in_flight),
            waiting: Some(&self.generation.on_resources),
            gives_back: false,
        })
    }

    /// Calls an operation with one result without its fast path. Never inlined, so that the fast path can be inlined
    /// into its caller.
    #[inline(never)]
    fn call_one_slow(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: CallSite,
    ) -> Result<TensorHandle, Error> {
        self.call_for(op, inputs, attrs, (caller, Some(1)))
            .and_then(|results| op.only(results))
            .map_err(|error| caller.locate(op.name(), error))
    }

    /// Calls an operation without recording. `begin` is called where the call takes its place in the order of all
    /// calls.
    #[inline]
    fn call_unrecorded(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        options: CallOptions,
        begin: impl FnOnce(),
    ) -> Result<Handles, Error> {
        if !op.is_of(self.runtime.id()) {
            return Err(op.of_another_runtime());
        }
        let generation = self.generation();
        let mut call = OpCall {
            inputs,
            attrs,
            chain: None,
            n_results: options.n_results,
            execution: &generation.execution,
            runtime: self.runtime.id(),
            caller: options.caller,
            in_flight: Some(&generation.in_flight),
            waiting: Some(&generation.on_resources),
            gives_back: options.gives_back,
        };
        if op.is_pure() {
            begin();
            return op.run(call);
        }
        if let EffectOrder::OfResources { writes, waits } = op.effect_order() {
            let order = match waits {
                true => &*generation.order,
                false => self.runtime.order(),
            };
            let effects = &generation.on_resources;
            let how = match writes {
                false => ResourceUse::Reads,
                true if op.shares_resources(call.attrs) => ResourceUse::Shares(effects.number()),
                true => ResourceUse::Changes,
            };
            let is_observed = call.execution.host().trace().is_some();
            let (mut chain, place) = match order.place(&call.inputs, how, is_observed, begin) {
                Place::Free(slots) => (AsyncValue::available(Chain), Ok(slots)),
                Place::After(chain, promise) => (chain, Err(promise)),
            };
            call.chain = Some(&mut chain);
            let results = op.run(call);
            match place {
                Ok(_) if chain.is_settled() => (),
                Ok(slots) => order.go_on(&slots, &effects.watch(chain), how),
                Err(promise) => promise.forward(effects.watch(chain)),
            }
            return results;
        }
        // Calls that are made meanwhile, by the operation itself or by other threads, come after this one: they get a
        // chain that is to come, and nobody waits for a lock.
        let (promise, after) = AsyncValue::pending();
        let mut chain = {
            let mut chain = generation.lock_chain();
            begin();
            std::mem::replace(&mut *chain, after)
        };
        call.chain = Some(&mut chain);
        let results = op.run(call);
        promise.forward(chain);
        results
    }
}

/// Options of one call.
#[derive(Clone, Copy)]
struct CallOptions {
    caller: CallSite,
    /// The number of results that the caller expects, if any.
    n_results: Option<usize>,
    /// See [`OpCall`].
    gives_back: bool,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("in_flight", &self.in_flight())
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Counter of waiting operations, with the chain of those who wait for room.
pub(crate) struct InFlight {
    // A statistic: nothing is read because of it.
    n: AtomicUsize,
    max: usize,
    waiting: Mutex<Vec<Promise<Chain>>>,
}

/// Guard that counts one waiting operation until it is dropped.
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

    /// Counts one more waiting operation.
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
