//! [`Op`]: an operation that can be called with tensors; [`CoreRuntimeOp`]: an operation that a handler has found.

use std::fmt;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tfrt_host::trace::{TraceLevel, TraceSpan};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::TensorHandle;
use crate::attributes::OpAttrsRef;
use crate::call_site::CallSite;
use crate::context::{Context, InFlight};
use crate::effects::{EffectOrder, PendingEffects};
use crate::handler::OpHandler;
use crate::inputs::{Inputs, IntoInputs};
use crate::rows::Pointwise;
use crate::runtime::{CoreRuntime, RuntimeId};

/// The results of an operation.
pub type Handles = SmallVec<[TensorHandle; 1]>;

/// Outcome of a fast path: the only result, `Err(None)` if there is no fast path for the inputs, or an error. The
/// handle is written in place, so that it is not moved.
pub type FastPath = Result<TensorHandle, Option<Error>>;

/// An operation that can be called with tensors: one of a registry, a function, or a handler's wrapper around
/// another.
pub trait Op: Send + Sync + 'static {
    /// Returns the operation's name, for messages.
    fn name(&self) -> &str;

    /// Returns whether the operation has no side effects, so that a call needs no chain.
    fn is_pure(&self) -> bool {
        false
    }

    /// Returns whether each call without a chain fails, whatever its inputs.
    fn needs_chain(&self) -> bool {
        false
    }

    /// Returns how side effects are ordered among those of other calls of a context.
    fn effect_order(&self) -> EffectOrder {
        EffectOrder::OfContext
    }

    /// Returns whether a call with these attributes may change its resources beside such calls of other contexts: it
    /// locks them for readers only. Calls of one context keep their order all the same.
    fn shares_resources(&self, attrs: OpAttrsRef<'_>) -> bool {
        let _ = attrs;
        false
    }

    /// Returns the number of results, if all calls have as many.
    fn n_results(&self) -> Option<usize> {
        None
    }

    /// Returns the operation as a node of a program keeps it from run to run, if it may be kept: it holds neither programs nor
    /// hosts.
    fn for_node(&self) -> Option<Arc<dyn Op>> {
        None
    }

    /// Returns the function of elements that the operation is in calls without attributes, if it is one of this crate's.
    fn pointwise(&self) -> Option<Pointwise> {
        None
    }

    /// Calls an operation with one result on its fast path, for inputs so short that the work around the arithmetic
    /// matters.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call); `None` if there is no short way for these inputs, which are as they were then.
    fn try_fast(&self, call: &mut OpCall<'_>) -> FastPath {
        let _ = call;
        Err(None)
    }

    /// Calls the operation. Mistakes of types and shapes are found now if these are known; the tensors may come
    /// later.
    ///
    /// # Errors
    ///
    /// Mistakes of the call itself; whatever goes wrong later fails the handles.
    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error>;
}

/// A call of an operation.
#[derive(Debug)]
pub struct OpCall<'a> {
    /// Input handles.
    pub inputs: Inputs<'a>,
    /// Attributes of the call.
    pub attrs: OpAttrsRef<'a>,
    /// The chain before the operation's side effects; replaced by the chain after them.
    pub chain: Option<&'a mut AsyncValue<Chain>>,
    /// The number of results that the caller expects, if any.
    pub n_results: Option<usize>,
    pub(crate) execution: &'a ExecutionContext,
    pub(crate) runtime: RuntimeId,
    pub(crate) caller: CallSite,
    /// Counter of waiting operations, unless a kernel made the call. With a counter, long operations are left to the
    /// queue's workers.
    pub(crate) in_flight: Option<&'a Arc<InFlight>>,
    /// The effects of calls that wait in a place of their own, unless a kernel made the call.
    pub(crate) waiting: Option<&'a PendingEffects>,
    /// Whether a deferred operation that can't be done gives its first inputs as results.
    pub(crate) gives_back: bool,
}

impl<'a> OpCall<'a> {
    /// Returns a call by a kernel: long operations run on its thread.
    pub fn by_kernel(
        runtime: &CoreRuntime,
        execution: &'a ExecutionContext,
        inputs: Inputs<'a>,
        attrs: OpAttrsRef<'a>,
    ) -> OpCall<'a> {
        OpCall::of_node(runtime.id(), execution, inputs, attrs)
    }

    /// Returns a call by the kernel of a node that knows the runtime.
    pub(crate) fn of_node(
        runtime: RuntimeId,
        execution: &'a ExecutionContext,
        inputs: Inputs<'a>,
        attrs: OpAttrsRef<'a>,
    ) -> OpCall<'a> {
        OpCall {
            inputs,
            attrs,
            chain: None,
            n_results: None,
            execution,
            runtime,
            caller: CallSite::Kernel,
            in_flight: None,
            waiting: None,
            gives_back: false,
        }
    }

    /// Returns the request that the call belongs to.
    pub fn execution(&self) -> &'a ExecutionContext {
        self.execution
    }

    /// Returns the place of the call.
    pub fn caller(&self) -> CallSite {
        self.caller
    }
}

/// An operation that a handler has found, to be called often.
///
/// # Examples
///
/// ```
/// use tfrt_corert::{CoreRuntime, OpAttrs};
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
/// let context = runtime.context();
/// let add = runtime.op("tf.AddV2", &runtime.cpu())?;
/// let (a, b) = (runtime.dense(&[2], &[1, 2])?, runtime.dense(&[], &[10])?);
/// let sum = add.call_one(&context, [&a, &b], &OpAttrs::new())?;
/// assert_eq!(sum.to_string(), "DenseHostTensor dtype = i32, shape = [2], values = [11, 12]");
///
/// let wrong = runtime.dense(&[3], &[1, 2, 3])?;
/// let error = add.call_one(&context, [&a, &wrong], &OpAttrs::new()).unwrap_err();
/// assert!(error.message().contains("[2]") && error.location().is_some());
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct CoreRuntimeOp {
    op: Arc<dyn Op>,
    /// The handler that found it; `None` for a function.
    handler: Option<Arc<dyn OpHandler>>,
    runtime: RuntimeId,
}

impl CoreRuntimeOp {
    pub(crate) fn new(
        op: Arc<dyn Op>,
        handler: Option<Arc<dyn OpHandler>>,
        runtime: RuntimeId,
    ) -> Self {
        CoreRuntimeOp {
            op,
            handler,
            runtime,
        }
    }

    /// Returns the operation's name.
    pub fn name(&self) -> &str {
        self.op.name()
    }

    /// Returns whether each call without a chain fails, whatever its inputs: the operation has side effects.
    pub fn needs_chain(&self) -> bool {
        self.op.needs_chain()
    }

    /// Returns the operation itself.
    pub(crate) fn as_op(&self) -> &dyn Op {
        &*self.op
    }

    /// Returns the operation as a node of a program keeps it, if it may be kept.
    pub(crate) fn for_node(&self) -> Option<Arc<dyn Op>> {
        self.op.for_node()
    }

    /// Returns how side effects are ordered among those of other calls of a context.
    pub fn effect_order(&self) -> EffectOrder {
        self.op.effect_order()
    }

    /// Returns whether a call with these attributes may change its resources beside such calls of other contexts.
    pub(crate) fn shares_resources(&self, attrs: OpAttrsRef<'_>) -> bool {
        self.op.shares_resources(attrs)
    }

    /// Returns whether the operation has no side effects.
    #[inline]
    pub fn is_pure(&self) -> bool {
        self.op.is_pure()
    }

    /// Returns the number of results, if all calls have as many.
    pub fn n_results(&self) -> Option<usize> {
        self.op.n_results()
    }

    /// Returns the name of the handler that found the operation; `composite` for a function.
    pub fn handler(&self) -> &str {
        self.handler
            .as_ref()
            .map_or("composite", |handler| handler.name())
    }

    /// Calls the operation, and returns its results at once: the tensors may come later. Side effects happen in the
    /// order of the calls with one context.
    ///
    /// # Errors
    ///
    /// With the place of the caller: `InvalidArgument` for inputs and attributes that don't fit, as far as shapes and
    /// types are known; the reason of the context's cancellation; `ResourceExhausted` if too many operations wait, see
    /// [`Context::room`]. Whatever goes wrong later fails the handles, and is told to the host's diagnostic handler.
    #[inline]
    #[track_caller]
    pub fn call<'a>(
        &self,
        context: &Context,
        inputs: impl IntoInputs,
        attrs: impl Into<OpAttrsRef<'a>>,
    ) -> Result<Handles, Error> {
        let (caller, attrs) = (CallSite::here(), attrs.into());
        inputs.with(|inputs| context.call(self, inputs, attrs, caller))
    }

    /// Calls an operation with one result, and returns that result at once.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call); `InvalidArgument` if it does not have one result.
    #[inline(always)]
    #[track_caller]
    pub fn call_one<'a>(
        &self,
        context: &Context,
        inputs: impl IntoInputs,
        attrs: impl Into<OpAttrsRef<'a>>,
    ) -> Result<TensorHandle, Error> {
        let (caller, attrs) = (CallSite::here(), attrs.into());
        inputs.with(
            #[inline(always)]
            |inputs| context.call_one(self, inputs, attrs, caller),
        )
    }

    /// Returns the only result of a call without fast path.
    pub(crate) fn only(&self, mut results: Handles) -> Result<TensorHandle, Error> {
        match (results.pop(), results.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                let (name, found) = (self.name(), results.len() + usize::from(last.is_some()));
                let message = format!("{name} has {found} results: expected one");
                Err(Error::invalid_argument(message))
            }
        }
    }

    /// Calls the operation on its fast path, unless the host traces calls; see [`Op::try_fast`].
    ///
    /// # Errors
    ///
    /// Those of [`Op::try_fast`].
    #[inline(always)]
    pub fn try_fast(&self, call: &mut OpCall<'_>) -> FastPath {
        try_fast(&*self.op, call)
    }

    /// Calls the operation for a kernel.
    ///
    /// # Errors
    ///
    /// See [`Op::call`].
    pub fn run(&self, mut call: OpCall<'_>) -> Result<Handles, Error> {
        if call.n_results.is_none_or(|n| n == 1) {
            match self.try_fast(&mut call) {
                Ok(only) => return Ok(smallvec![only]),
                Err(Some(error)) => return Err(error),
                Err(None) => (),
            }
        }
        run(&*self.op, || self.handler(), call)
    }

    /// Returns whether a runtime made this operation.
    #[inline]
    pub(crate) fn is_of(&self, runtime: RuntimeId) -> bool {
        self.runtime == runtime
    }

    #[cold]
    pub(crate) fn of_another_runtime(&self) -> Error {
        let name = self.name();
        Error::invalid_argument(format!(
            "{name} was made by another runtime than the context"
        ))
    }
}

/// Calls an operation on its fast path, unless the host traces calls; see [`Op::try_fast`].
#[inline(always)]
pub(crate) fn try_fast(op: &dyn Op, call: &mut OpCall<'_>) -> FastPath {
    match call.execution.host().trace() {
        None => op.try_fast(call),
        Some(_) => Err(None),
    }
}

/// Calls an operation that a handler of a name has found.
///
/// # Errors
///
/// See [`Op::call`].
#[inline]
pub(crate) fn run<'n>(
    op: &dyn Op,
    handler: impl FnOnce() -> &'n str,
    call: OpCall<'_>,
) -> Result<Handles, Error> {
    let host = call.execution.host();
    let _scope = host.trace().map(|sink| {
        TraceSpan::new(sink, TraceLevel::Default, || {
            format!("{}#op_handler={}#", op.name(), handler())
        })
    });
    op.call(call)
}

impl fmt::Debug for CoreRuntimeOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreRuntimeOp")
            .field("name", &self.name())
            .field("handler", &self.handler())
            .finish_non_exhaustive()
    }
}

impl tfrt_host::Value for CoreRuntimeOp {
    const NAME: &'static str = "!corert.op";
    type Storage = tfrt_host::Heap;
}
