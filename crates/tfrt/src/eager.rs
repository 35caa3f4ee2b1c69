//! Tensors with methods: operations that are called one at a time, and run asynchronously.
//!
//! ```
//! use tfrt::Runtime;
//! use tfrt::eager::Eager;
//!
//! let eager = Eager::new(&Runtime::new());
//! let x = eager.tensor(&[1, 2], &[1.0_f32, 2.0])?;
//! let w = eager.tensor(&[2, 2], &[1.0_f32, -1.0, 0.5, 3.0])?;
//! let y = x.matmul(&w)?.relu()?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0]);
//!
//! let error = w.matmul(&eager.zeros::<f32>(&[3, 2])?).unwrap_err();
//! assert!(error.message().starts_with("matmul of f32 [2, 2] and f32 [3, 2]: "));
//! # Ok::<(), tfrt::Error>(())
//! ```
//!
//! A method returns at once. Type and shape of its result are known wherever they can be, and what is wrong about them
//! is the method's error, with the place of the call; elements come later if they take long, and who wants them waits:
//! [`Handle::to_vec`], or `tensor.await`. What goes wrong later fails the tensor and all that is made of it.
//!
//! | To | Use |
//! | --- | --- |
//! | begin | [`Eager::new`] |
//! | make tensors | [`Eager::tensor`], [`Eager::zeros`], [`Eager::fill`] |
//! | calculate | the methods of [`Handle`], and `+ - * /` |
//! | call any operation, and let it write over what it is given | [`Eager::op`] |
//! | keep what changes | [`Variable`] |
//! | stop | [`Eager::cancel`], [`Eager::set_deadline`] |
//! | go on after that | [`Eager::reset`] |
//! | make a program of calls | [`Eager::record`] |

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tfrt_async::queue::ConcurrentWorkQueue;
use tfrt_corert::{
    CallSite, Context, CoreRuntime, CoreRuntimeOp, Handles, Inputs, OpAttrsRef, Recording,
    TensorHandle,
};
use tfrt_host::{AnyAsyncValue, Error};
use tfrt_tensor::resource::{Resources, Slot, Variable as ResourceVariable};
use tfrt_tensor::{DenseHostTensor, Element, ScalarHostTensor, TensorShape};

use crate::runtime::Runtime;

mod handle;
mod methods;
mod names;
mod op_inputs;
mod recorded;
mod variable;

pub use handle::{Handle, HandleFuture};
pub use op_inputs::OpInputs;
pub use recorded::RecordedProgram;
pub use variable::Variable;

use names::{Name, Ops};

/// The context in which operations are called one by one: a core runtime, a queue and memory. Clones share everything.
#[derive(Clone)]
pub struct Eager {
    shared: Arc<Shared>,
}

/// The state of an [`Eager`], behind one count, since each tensor has it.
struct Shared {
    context: Context,
    /// The context of steps of variables, which are not cancelled: weights would be lost.
    steps: Context,
    ops: Arc<Ops>,
}

impl Eager {
    /// Calls operations of the processor on the queue and with the memory of a runtime.
    pub fn new(runtime: &Runtime) -> Eager {
        let context = CoreRuntime::new(runtime.host()).context();
        let (steps, ops) = (context.apart(), Arc::default());
        Eager::of_shared(Shared {
            context,
            steps,
            ops,
        })
    }

    fn of_shared(shared: Shared) -> Eager {
        let shared = Arc::new(shared);
        Eager { shared }
    }

    /// Returns an `Eager` with another context.
    fn with_context(&self, context: Context) -> Eager {
        let (steps, ops) = (self.shared.steps.clone(), self.shared.ops.clone());
        Eager::of_shared(Shared {
            context,
            steps,
            ops,
        })
    }

    /// Returns the `Eager` of the last [`reset`](Self::reset), with which tensors that were made before it go on.
    #[inline]
    fn latest(&self) -> Cow<'_, Eager> {
        match self.context().renewed() {
            None => Cow::Borrowed(self),
            Some(context) => Cow::Owned(self.with_context(context)),
        }
    }

    /// Returns the core runtime.
    pub fn core(&self) -> &CoreRuntime {
        self.context().runtime()
    }

    /// Returns the context of the calls.
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns a tensor of these elements, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many as the extents say, `ResourceExhausted` if there is no memory.
    #[track_caller]
    pub fn tensor<T: Element>(&self, extents: &[usize], elements: &[T]) -> Result<Handle, Error> {
        let made = DenseHostTensor::from_slice(self.allocator(), extents, elements);
        made.map(|tensor| self.wrap(self.core().handle(tensor)))
    }

    /// Returns a tensor without dimensions, of one element.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory.
    pub fn scalar<T: Element>(&self, value: T) -> Result<Handle, Error> {
        self.tensor(&[], &[value])
    }

    /// Returns a tensor of zeros.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for extents that no memory can hold, `ResourceExhausted` if there is no memory.
    pub fn zeros<T: Element>(&self, extents: &[usize]) -> Result<Handle, Error> {
        self.fill(extents, T::ZERO)
    }

    /// Returns a tensor with this value everywhere.
    ///
    /// # Errors
    ///
    /// See [`zeros`](Self::zeros).
    pub fn fill<T: Element>(&self, extents: &[usize], value: T) -> Result<Handle, Error> {
        let same = ScalarHostTensor::new(TensorShape::new(extents)?, value);
        Ok(self.wrap(self.core().handle(same.to_dense(self.allocator())?)))
    }

    /// Returns a tensor that others made.
    pub fn of(&self, tensor: impl Into<tfrt_tensor::Tensor>) -> Handle {
        self.wrap(self.core().handle(tensor))
    }

    /// Returns a variable that holds a tensor, whose steps are called here. It dies with its last handle.
    #[track_caller]
    pub fn variable(&self, tensor: Handle) -> Variable {
        Variable::new(
            self.clone(),
            Slot::anonymous(ResourceVariable::new()),
            tensor,
        )
    }

    /// Returns the variable of this name, which holds a tensor from now on: `tf.VarHandleOp` gives handles of it, and the
    /// [resources](Self::resources) of the host hold it.
    #[track_caller]
    pub fn named_variable(&self, name: &str, tensor: Handle) -> Variable {
        let slot = self.resources().slot("", name, ResourceVariable::new);
        Variable::new(self.clone(), slot, tensor)
    }

    /// Returns the resources of the host: variables by name, which are saved and loaded.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Runtime;
    /// use tfrt::eager::Eager;
    ///
    /// let eager = Eager::new(&Runtime::new());
    /// let w = eager.named_variable("w", eager.tensor(&[2], &[1.0_f32, 2.0])?);
    /// let stored = eager.resources().save_safetensors()?;
    /// w.descend(&eager.tensor(&[2], &[1.0_f32, 1.0])?, 1.0)?;
    /// eager.resources().load_safetensors(&stored, eager.core().host().allocator())?;
    /// assert_eq!(w.read().to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), tfrt::Error>(())
    /// ```
    pub fn resources(&self) -> Arc<Resources> {
        self.core().resources()
    }

    /// Calls any operation by its name, with tensors that are lent, `&[&x, &y]`, or given for good, `[x, y]`: over one
    /// of these, which nobody else holds, the operation may write its result.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none of that name, and those of [`CoreRuntimeOp::call`].
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Runtime;
    /// use tfrt::corert::OpAttrs;
    /// use tfrt::eager::Eager;
    ///
    /// let eager = Eager::new(&Runtime::new());
    /// let x = eager.tensor(&[2], &[1.0_f32, 2.0])?;
    /// let twice = eager.op("tf.AddV2", &[&x, &x], &OpAttrs::new())?;
    /// assert_eq!(twice[0].to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), tfrt::Error>(())
    /// ```
    #[track_caller]
    pub fn op<'i, 'a>(
        &self,
        name: &str,
        inputs: impl Into<OpInputs<'i>>,
        attrs: impl Into<OpAttrsRef<'a>>,
    ) -> Result<Vec<Handle>, Error> {
        let (caller, inputs) = (CallSite::here(), inputs.into());
        let op = self.core().op(name, &self.core().cpu())?;
        let place = inputs.place(self);
        let eager = place.latest();
        let results = inputs.with(|inputs| eager.run(&op, inputs, attrs.into(), caller))?;
        Ok(results
            .into_iter()
            .map(|handle| eager.wrap(handle))
            .collect())
    }

    /// Stops all that is to come: tensors that are not there fail, and so do calls, until [`reset`](Self::reset). Steps
    /// of variables are taken if their gradient is there, else not.
    pub fn cancel(&self) {
        self.context().cancel();
    }

    /// Begins anew after a cancellation, with all clones: variables go on, and so do tensors that were there. Does nothing
    /// if nothing is cancelled.
    pub fn reset(&mut self) {
        let mut context = self.context().clone();
        context.reset();
        *self = self.with_context(context);
    }

    /// Cancels after a time, with code `DeadlineExceeded`.
    pub fn set_deadline(&self, after: Duration) {
        if let Some(deadline) = self.core().host().now().checked_add(after) {
            self.context().set_deadline(deadline);
        }
    }

    /// Runs `body` with tensors that stand for parameters, and makes a program of the calls in it: those of which an
    /// operand is a parameter or was made of one, and all that are made with the `Eager` that `body` is given. Tensors
    /// from outside become its constants, as they are at the end. What `body` does to variables is no part of a
    /// program, and is refused.
    ///
    /// # Errors
    ///
    /// Those of `body`; `InvalidArgument` if a result is not made in it, or if something in it can't be written to a
    /// program; why a parameter, a constant or a result is not there.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Runtime;
    /// use tfrt::eager::Eager;
    ///
    /// let runtime = Runtime::new();
    /// let eager = Eager::new(&runtime);
    /// let w = eager.tensor(&[2, 1], &[3.0_f32, 4.0])?;
    /// let x = eager.tensor(&[1, 2], &[1.0_f32, 1.0])?;
    /// let recorded = eager.record(&[("x", &x)], |_, inputs| Ok(vec![inputs[0].matmul(&w)?]))?;
    ///
    /// let model = recorded.compile(&runtime)?;
    /// let x = eager.tensor(&[1, 2], &[10.0_f32, 1.0])?;
    /// let outputs = model.call(&runtime.context(), [("x", x.to_host()?)]).wait()?;
    /// assert_eq!(outputs.tensor("output0")?.to_vec::<f32>()?, [34.0]);
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    pub fn record(
        &self,
        inputs: &[(&str, &Handle)],
        body: impl FnOnce(&Eager, &[Handle]) -> Result<Vec<Handle>, Error>,
    ) -> Result<RecordedProgram, Error> {
        let recording = Recording::begin(self.context());
        let eager = self.with_context(recording.context().clone());
        let mut parameters = Vec::with_capacity(inputs.len());
        for (_, input) in inputs {
            // Its type and shape become those of the parameter.
            input.wait()?;
            parameters.push(eager.wrap(recording.input(input.handle().clone())));
        }
        let results = body(&eager, &parameters)?;
        let handles: Vec<TensorHandle> = results.into_iter().map(Handle::into_handle).collect();
        let trace = recording.finish(&handles)?;
        let constants = trace.constants.iter().map(|(_, constant)| constant);
        for handle in handles.iter().chain(constants) {
            wait_for(self.queue(), handle)?;
        }
        let names = inputs.iter().map(|(name, _)| (*name).to_owned()).collect();
        RecordedProgram::new(names, trace, &handles, self.core().host())
    }

    fn allocator(&self) -> &Arc<dyn tfrt_host::HostAllocator> {
        self.core().host().allocator()
    }

    fn wrap(&self, handle: TensorHandle) -> Handle {
        Handle::new(self.clone(), handle)
    }

    /// Returns this, or the other if its calls are recorded.
    fn or_recording<'e>(&'e self, other: &'e Eager) -> &'e Eager {
        match other.context().is_recording() {
            true => other,
            false => self,
        }
    }

    /// Calls an operation; waits for room first if too many wait and this is no worker.
    fn run(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        caller: CallSite,
    ) -> Result<Handles, Error> {
        make_room(self.context());
        self.context().call(op, inputs, attrs, caller)
    }

    fn op_of(&self, name: Name) -> Result<&CoreRuntimeOp, Error> {
        self.shared.ops.get(name, self.core())
    }

    fn queue(&self) -> &Arc<dyn ConcurrentWorkQueue> {
        self.core().host().queue()
    }
}

/// Waits until there is room for calls, where waiting is allowed; else the call itself reports that there is none.
#[inline]
fn make_room(context: &Context) {
    if context.is_full() && !context.is_cancelled() {
        let queue = context.runtime().host().queue();
        let _refused = wait(queue, &[context.room().into_any()]);
    }
}

/// Waits for values on this thread, which helps with the work where the queue allows it.
fn wait(queue: &Arc<dyn ConcurrentWorkQueue>, values: &[AnyAsyncValue]) -> Result<(), Error> {
    let refused = queue.await_all(values);
    refused.map_err(|refused| Error::failed_precondition(refused.to_string()))
}

/// Waits for the tensor of a handle.
///
/// # Errors
///
/// Why there will be none; `FailedPrecondition` on a worker of the queue, which must not wait.
fn wait_for(queue: &Arc<dyn ConcurrentWorkQueue>, handle: &TensorHandle) -> Result<(), Error> {
    if !handle.is_settled() {
        wait(queue, &[handle.to_async().into_any()])?;
    }
    handle.error().map_or(Ok(()), |error| Err(error.clone()))
}

impl std::fmt::Debug for Eager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Eager")
            .field("context", self.context())
            .finish_non_exhaustive()
    }
}
