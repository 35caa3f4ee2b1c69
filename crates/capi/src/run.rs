//! Runs of kernels: the state of a node ([`Instance`]), a call of its kernel ([`Context`]), and what comes of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;
use tfrt_corert::{Output, Outputs};
use tfrt_host::{
    AsyncValue, Chain, DType, Error, ErrorCode, ExecutionContext, HostAllocator, LockMode, Promise,
    RequestContext,
};
use tfrt_tensor::TensorShape;
use tfrt_tensor::resource::{Slot, Variable};

use crate::attrs::Attr;
use crate::crash;
use crate::fault;
use crate::functions::construction::{Construction, Node};
use crate::functions::context::Done;
use crate::functions::status::Status;
use crate::functions::variable::Prepared;
use crate::guard::Exception;
use crate::handle::{self, Handle};
use crate::locks::{self, Locks};
use crate::node::Resolved;
use crate::registry::KernelDef;
use crate::value::{Storage, Tensor, is_aligned};

/// The state of a node: what the kernel's `create` has returned. Calls share it; it is deleted with the last of them.
pub struct Instance {
    /// The kernel.
    pub kernel: Arc<KernelDef>,
    /// The node.
    pub node: Arc<Node>,
    state: usize,
    wants_alone: AtomicBool,
}

/// The outcome of a plugin's code: what it has told, thrown and done wrong.
struct Outcome {
    thrown: Option<Exception>,
    told: Option<Status>,
    /// The function that has told it, and its argument, if it is one of the host.
    place: Option<String>,
    faults: Vec<String>,
}

impl Outcome {
    /// Returns the error, if something was wrong.
    #[inline]
    fn error(self, kernel: &KernelDef) -> Option<Error> {
        let is_wrong = self.thrown.is_some() || self.told.is_some() || !self.faults.is_empty();
        is_wrong.then(|| self.wrong(kernel)).flatten()
    }

    #[cold]
    fn wrong(self, kernel: &KernelDef) -> Option<Error> {
        let text = kernel.text();
        let told = self.told.as_ref().and_then(Status::error);
        if let Some(exception) = self.thrown {
            let error = Error::internal(format!("{text} {exception}"));
            let error = match told {
                Some(told) => error.with_note(format!("before, it told: {}", told.message())),
                None => error,
            };
            return Some(self.faults.into_iter().fold(error, Error::with_note));
        }
        let mut faults = self.faults.into_iter();
        let Some(first) = faults.next() else {
            let place = self.place.map_or(String::new(), |place| place + ", ");
            return told.map(|error| error.with_note(format!("{place}in {text}")));
        };
        let error = Error::invalid_argument(format!("{first}, in {text}"));
        let error = faults.fold(error, Error::with_note);
        Some(match told {
            Some(told) => error.with_note(format!("it told: {}", told.message())),
            None => error,
        })
    }
}

/// Runs a function of a kernel, and returns its result with the faults of the call.
fn running<R>(kernel: &KernelDef, run: impl FnOnce() -> R) -> (R, Vec<String>) {
    let (outcome, n_left) = handle::counted(|| crash::within(kernel.text(), || fault::scope(run)));
    if n_left != 0 {
        // Ordering: a statistic.
        kernel.n_left.fetch_add(n_left, Ordering::Relaxed);
    }
    outcome
}

impl Instance {
    /// Has a kernel make its state for a node.
    ///
    /// # Errors
    ///
    /// Those of the plugin; `Internal` if it throws, `InvalidArgument` for wrong uses of the C API.
    pub fn new(kernel: &Arc<KernelDef>, node: &Arc<Node>) -> Result<Instance, Error> {
        let mut instance = Instance {
            kernel: kernel.clone(),
            node: node.clone(),
            state: 0,
            wants_alone: AtomicBool::new(false),
        };
        if kernel.create.is_null() {
            return Ok(instance);
        }
        let construction = Handle::new(Construction {
            node: node.clone(),
            failure: None,
        });
        let (created, faults) = running(kernel, || kernel.create.call(&[construction.bits()]));
        let ended = construction.take_quietly();
        let (state, thrown) = match created {
            Ok(state) => (state, None),
            Err(exception) => (0, Some(exception)),
        };
        instance.state = state;
        let outcome = Outcome {
            thrown,
            told: ended.ok().and_then(|ended| ended.failure),
            place: None,
            faults,
        };
        // The state of a failed node is deleted as well, by dropping the instance.
        match outcome.error(kernel) {
            Some(error) => Err(error.with_note("while the kernel's state was made")),
            None => Ok(instance),
        }
    }
}

impl Instance {
    /// Notes that a call had locks for readers, and wanted some for itself.
    pub fn wants_alone(&self) {
        // Ordering: a guess, by which nothing is read.
        self.wants_alone.store(true, Ordering::Relaxed);
    }

    /// Returns how the variables of a call are locked before its kernel starts.
    fn lock_mode(&self) -> LockMode {
        let stated = self.node.attrs.get("use_locking");
        // Ordering: as above.
        match stated {
            Some(Attr::Bool(false)) if !self.wants_alone.load(Ordering::Relaxed) => LockMode::Read,
            _ => LockMode::Write,
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.kernel.delete.is_null() {
            return;
        }
        let (deleted, faults) = running(&self.kernel, || self.kernel.delete.call(&[self.state]));
        let text = self.kernel.text();
        if let Err(exception) = deleted {
            fault::record(format_args!(
                "{text} {exception} while its state was deleted"
            ));
        }
        for one in faults {
            fault::record(format_args!("{one}, while the state of {text} was deleted"));
        }
    }
}

/// An input of a call.
pub struct Input {
    /// The tensor; `None` once an output has taken its memory.
    tensor: Option<tfrt_tensor::Tensor>,
    /// Whether it was given for good and nobody else holds its memory.
    is_given: bool,
    /// The plugin's view, once it has asked for one that is not made again as fast.
    view: Option<Box<Tensor>>,
}

impl Input {
    /// Returns an input that the caller keeps.
    pub fn lent(tensor: tfrt_tensor::Tensor) -> Input {
        Input {
            tensor: Some(tensor),
            is_given: false,
            view: None,
        }
    }

    /// Returns an input that nobody else holds, whose memory an output may take.
    pub fn given(mut tensor: tfrt_tensor::DenseHostTensor) -> Input {
        // Views of frozen memory need no right.
        tensor.freeze();
        Input {
            is_given: is_aligned(tensor.buffer()),
            tensor: Some(tensor.into()),
            view: None,
        }
    }
}

/// A kernel bound to calls of one kind: its state, and what is known of inputs and outputs before a call.
pub struct BoundKernel {
    /// The state of the node.
    pub instance: Arc<Instance>,
    /// The node with its inputs and outputs.
    pub resolved: Arc<Resolved>,
    /// Types of the outputs, those of `resolved`: a call looks at no other memory of its node than this.
    outputs: SmallVec<[i32; 2]>,
    /// The kernel's state, that of `instance`.
    state: usize,
    /// Whether there may be variables among the inputs.
    may_have_variables: bool,
}

impl BoundKernel {
    /// Puts together what calls have in common whose inputs may be variables, or not.
    pub fn new(
        instance: Arc<Instance>,
        resolved: Arc<Resolved>,
        may_have_variables: bool,
    ) -> BoundKernel {
        BoundKernel {
            outputs: SmallVec::from_slice(&resolved.outputs),
            state: instance.state,
            may_have_variables,
            instance,
            resolved,
        }
    }

    /// Returns the types of the outputs.
    pub fn outputs(&self) -> &[i32] {
        &self.outputs
    }
}

/// A call of a kernel: `TF_OpKernelContext`.
pub struct Context {
    /// The kind of the call.
    pub bound: Arc<BoundKernel>,
    /// The request that the call belongs to.
    pub request: Arc<RequestContext>,
    /// The first failure that the plugin has told.
    pub failure: Option<Status>,
    /// The function and argument of that failure, if a function of the host has told it.
    pub failure_place: Option<String>,
    inputs: SmallVec<[Input; 4]>,
    outputs: SmallVec<[Option<Tensor>; 1]>,
    /// The variables among the inputs, if there are any.
    variables: Option<Box<Variables>>,
}

/// The variables among the inputs of a call.
pub struct Variables {
    /// Their locks.
    pub locks: Locks,
    /// Numbers of those for which a function of the plugin is running.
    pub busy: SmallVec<[u64; 1]>,
    /// Tensors that the plugin changes in place, with the numbers of their variables.
    prepared: SmallVec<[(u64, Prepared); 1]>,
}

#[cold]
fn taken(index: usize) -> Error {
    Error::failed_precondition(format!("an output has taken the memory of input {index}"))
}

#[cold]
fn left_out(kernel: &KernelDef, index: usize) -> Error {
    let text = kernel.text();
    Error::internal(format!("{text} has not set output {index}"))
}

/// Results of a call; one that the kernel has left out is an error of whoever uses it.
pub type Results = Result<Outputs, Error>;

impl Context {
    /// Makes a call, whose inputs are to be [added](Self::add_input).
    #[inline]
    pub fn new(bound: Arc<BoundKernel>, execution: &ExecutionContext) -> Box<Context> {
        let mut outputs = SmallVec::new();
        outputs.resize_with(bound.outputs.len(), || None);
        Box::new(Context {
            bound,
            request: execution.request().clone(),
            failure: None,
            failure_place: None,
            inputs: SmallVec::new(),
            outputs,
            variables: None,
        })
    }

    /// Adds an input.
    #[inline]
    pub fn add_input(&mut self, input: Input) {
        if self.bound.may_have_variables
            && let Some(tensor) = &input.tensor
            && tensor.metadata().dtype == DType::Resource
            && let Ok(slot) = Slot::counted(tensor)
            && slot.get::<Variable>().is_ok()
        {
            self.variables().locks.add(slot);
        }
        self.inputs.push(input);
    }

    /// Returns the variables among the inputs.
    pub fn variables(&mut self) -> &mut Variables {
        let mode = || self.bound.instance.lock_mode();
        self.variables.get_or_insert_with(|| {
            Box::new(Variables {
                locks: Locks::none(mode()),
                busy: SmallVec::new(),
                prepared: SmallVec::new(),
            })
        })
    }

    /// Returns whether there are variables among the inputs.
    pub fn has_variables(&self) -> bool {
        self.variables.is_some()
    }

    /// Returns the allocator of memory for outputs.
    pub fn allocator(&self) -> &Arc<dyn HostAllocator> {
        self.request.host().allocator()
    }

    /// Returns an input, which stays as it is: no output takes its memory from here on.
    ///
    /// # Errors
    ///
    /// See [`input`](Self::input).
    pub fn keep(&mut self, index: usize) -> Result<&tfrt_tensor::Tensor, Error> {
        let Some(input) = self.inputs.get_mut(index) else {
            return Err(Error::new(
                ErrorCode::OutOfRange,
                "input index out of range",
            ));
        };
        input.is_given = false;
        input.tensor.as_ref().ok_or_else(|| taken(index))
    }

    /// Returns the tensor of a variable that the plugin changes in place, if it has asked for it before.
    pub fn prepared(&self, number: u64) -> Option<Tensor> {
        let mut prepared = self.variables.iter().flat_map(|own| &own.prepared);
        let found = prepared.find(|(own, _)| *own == number);
        found.map(|(_, prepared)| prepared.tensor().clone())
    }

    /// Returns whether the plugin changes tensors of variables in place.
    pub fn has_prepared(&self) -> bool {
        let variables = self.variables.as_ref();
        variables.is_some_and(|own| !own.prepared.is_empty())
    }

    /// Keeps the tensor of a variable that the plugin changes in place.
    pub fn prepare(&mut self, number: u64, prepared: Prepared) {
        self.variables().prepared.push((number, prepared));
    }

    /// Forgets the tensor of a variable, which is another one from here on.
    pub fn forget(&mut self, number: u64) {
        if let Some(variables) = &mut self.variables {
            variables.prepared.retain(|(own, _)| *own != number);
        }
    }

    /// Returns whether an input is a reference to a variable.
    pub fn is_reference(&self, index: usize) -> bool {
        let is_this = |(own, _): &(usize, Option<i32>)| *own == index;
        self.bound.may_have_variables && self.bound.resolved.references.iter().any(is_this)
    }

    /// Makes a variable an output that is a reference.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is no such output; `InvalidArgument` if it is no reference.
    pub fn set_reference(&mut self, index: usize, slot: &Arc<Slot>) -> Result<(), Error> {
        let expected = self.bound.outputs.get(index).copied();
        let expected = expected.ok_or_else(|| {
            let n = self.outputs.len();
            Error::new(
                ErrorCode::OutOfRange,
                format!("expected one of {n} outputs, found {index}"),
            )
        })?;
        // 0: of a type that follows from a variable without a value.
        if expected != 0 && expected < crate::dtype::REFERENCE {
            let name = crate::dtype::name(expected);
            return Err(Error::invalid_argument(format!(
                "output {index}: expected one that is a reference, found one of {name}"
            )));
        }
        self.outputs[index] = Some(Tensor::of_host(&slot.handle(), self.allocator())?);
        Ok(())
    }

    /// Returns the number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Returns the type of an input's elements.
    pub fn input_type(&self, index: usize) -> Option<i32> {
        let input = self.inputs.get(index)?;
        let tensor = input.tensor.as_ref()?;
        let mut references = self.bound.resolved.references.iter();
        if let Some((_, code)) = references.find(|(own, _)| *own == index) {
            return Some(code.unwrap_or_default() + crate::dtype::REFERENCE);
        }
        crate::dtype::code(tensor.metadata().dtype)
    }

    /// Returns an input as the plugin sees it.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is none; `FailedPrecondition` if an output has taken its memory.
    pub fn input(&mut self, index: usize) -> Result<Tensor, Error> {
        let is_reference = self.is_reference(index);
        let allocator = self.request.host().allocator();
        let Some(input) = self.inputs.get_mut(index) else {
            return Err(Error::new(
                ErrorCode::OutOfRange,
                "input index out of range",
            ));
        };
        if let Some(view) = &input.view {
            return Ok(Tensor::clone(view));
        }
        let tensor = input.tensor.as_ref().ok_or_else(|| taken(index))?;
        if is_reference {
            let value = Slot::of(tensor)?.get::<Variable>()?.read(allocator)?;
            let value = value.ok_or_else(|| {
                Error::failed_precondition("Attempting to use uninitialized value")
            })?;
            return Tensor::of_host(&value, allocator);
        }
        let view = Tensor::of_host(tensor, allocator)?;
        if !matches!(view.storage, Storage::Buffer(_)) {
            input.view = Some(Box::new(view.clone()));
        }
        Ok(view)
    }

    /// Returns an output as it is now; the outer value is `None` if there is no such output.
    pub fn output(&self, index: usize) -> Option<Option<&Tensor>> {
        self.outputs.get(index).map(Option::as_ref)
    }

    /// Sets an output, and returns the tensor of before.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is no such output; `InvalidArgument` for another type of elements.
    pub fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<Option<Tensor>, Error> {
        let expected = self.bound.outputs.get(index).copied();
        let Some(expected) = expected else {
            return Err(Error::new(
                ErrorCode::OutOfRange,
                "output index out of range",
            ));
        };
        if expected != tensor.code {
            let [expected, found] = [expected, tensor.code].map(crate::dtype::name);
            return Err(Error::invalid_argument(format!(
                "output {index}: expected elements of {expected}, found {found}"
            )));
        }
        Ok(self.outputs[index].replace(tensor))
    }

    /// Allocates an output.
    ///
    /// # Errors
    ///
    /// `Internal` if there is no such output, or if it was allocated before; those of [`Tensor::zeroed`].
    pub fn allocate_output(&mut self, index: usize, shape: TensorShape) -> Result<Tensor, Error> {
        let (code, slot) = match (self.bound.outputs.get(index), self.outputs.get(index)) {
            (Some(code), Some(slot)) => (*code, slot),
            _ => {
                let n = self.outputs.len();
                return Err(Error::internal(format!(
                    "output {index} of a kernel that has {n}"
                )));
            }
        };
        if slot.is_some() {
            return Err(Error::internal(format!(
                "output {index} was allocated before"
            )));
        }
        let tensor = Tensor::zeroed(self.allocator(), code, shape)?;
        self.outputs[index] = Some(tensor.clone());
        Ok(tensor)
    }

    /// Lets an output take the memory of the first of some inputs that nobody else holds and that is of its type and number
    /// of elements; allocates the output if there is none. Returns the output, and the input that was taken.
    ///
    /// # Errors
    ///
    /// See [`allocate_output`](Self::allocate_output).
    pub fn forward_or_allocate(
        &mut self,
        candidates: &[i32],
        index: usize,
        shape: TensorShape,
    ) -> Result<(Tensor, i32), Error> {
        let code = self.bound.outputs.get(index).copied();
        let is_open = matches!(self.outputs.get(index), Some(None));
        for candidate in candidates {
            let at = usize::try_from(*candidate).ok();
            let Some(input) = at.and_then(|at| self.inputs.get_mut(at)) else {
                continue;
            };
            let fits = is_open
                && input.is_given
                && input.tensor.as_ref().is_some_and(|tensor| {
                    let metadata = tensor.metadata();
                    crate::dtype::code(metadata.dtype) == code
                        && metadata.shape.n_elements() == shape.n_elements()
                });
            // The plugin has deleted its own handles: only the view is left, if there is one.
            if !fits || !input.view.as_mut().is_none_or(|view| view.is_alone()) {
                continue;
            }
            input.view = None;
            let is_sole = match &mut input.tensor {
                Some(tfrt_tensor::Tensor::Dense(tensor)) => tensor.is_sole(),
                _ => false,
            };
            let tensor = input.tensor.take_if(|_| is_sole);
            let Some(tfrt_tensor::Tensor::Dense(tensor)) = tensor else {
                continue;
            };
            let mut tensor = Tensor::of_sole(tensor)?;
            tensor.shape = shape;
            self.outputs[index] = Some(tensor.clone());
            return Ok((tensor, *candidate));
        }
        Ok((self.allocate_output(index, shape)?, -1))
    }

    /// Returns the results, when the kernel has run.
    fn finish(
        mut self: Box<Self>,
        thrown: Option<Exception>,
        faults: Vec<String>,
        kernel: &KernelDef,
    ) -> Results {
        if let Some(mut variables) = self.variables.take() {
            // Before the locks are given back.
            variables.prepared.clear();
            drop(variables);
            locks::changed();
        }
        let outcome = Outcome {
            thrown,
            told: self.failure.take(),
            place: self.failure_place.take(),
            faults,
        };
        if let Some(error) = outcome.error(kernel) {
            return Err(error);
        }
        let mut results = Outputs::new();
        for (index, output) in self.outputs.drain(..).enumerate() {
            results.push(match output {
                Some(tensor) => Output::Ready(tensor.into_host(self.request.host().allocator())?),
                None => Output::Later(AsyncValue::from_error(left_out(kernel, index))),
            });
        }
        Ok(results)
    }
}

/// Runs a kernel of a kind of calls to its end.
///
/// # Errors
///
/// Those that the plugin tells; `Internal` if it throws, `InvalidArgument` for wrong uses of the C API.
pub fn compute(context: Box<Context>, bound: &BoundKernel, kernel: &KernelDef) -> Results {
    let handle: Handle<Context> = Handle::of_stored(context);
    let arguments = [bound.state, handle.bits()];
    let (called, faults) = running(kernel, || kernel.compute.call(&arguments));
    match handle.take_stored() {
        Ok(context) => context.finish(called.err(), faults, kernel),
        Err(_) => Err(Error::internal("the context of a call is gone")),
    }
}

/// Starts an asynchronous kernel, whose results come when it says that it is done.
pub fn start(
    context: Box<Context>,
    promises: Vec<Promise<tfrt_tensor::Tensor>>,
    effects: Option<Promise<Chain>>,
) {
    let instance = context.bound.instance.clone();
    let context: Handle<Context> = Handle::of_stored(context);
    let done = Handle::new(Done {
        context,
        promises,
        effects,
    });
    let arguments = [instance.state, context.bits(), done.bits()];
    let before = STARTING.replace(done.bits());
    let (called, faults) = running(&instance.kernel, || {
        instance.kernel.compute.call(&arguments)
    });
    STARTING.set(before);
    if called.is_err() || !faults.is_empty() {
        match done.take_quietly() {
            Ok(done) => done.settle(called.err(), faults),
            // It was done already: nobody hears of it otherwise.
            Err(_) => {
                let text = instance.kernel.text();
                for one in faults {
                    fault::record(format_args!("{one}, in {text}"));
                }
            }
        }
    }
}

thread_local! {
    /// The `done` of the asynchronous kernel whose function runs on this thread; 0 if there is none.
    static STARTING: Cell<usize> = const { Cell::new(0) };
}

/// Ends an asynchronous kernel that says that it is done. If its function still runs, on this thread, its faults so far
/// are those of the call.
///
/// # Errors
///
/// Why the handle leads nowhere.
pub fn end(done: Handle<Done>) -> Result<(), String> {
    let ended = done.take_quietly()?;
    let faults = match STARTING.get() == done.bits() {
        true => fault::take(),
        false => Vec::new(),
    };
    ended.settle(None, faults);
    Ok(())
}

impl Done {
    /// Settles the results of an asynchronous kernel.
    pub fn settle(self, thrown: Option<Exception>, faults: Vec<String>) {
        let results = match self.context.take_stored() {
            Ok(context) => {
                let bound = context.bound.clone();
                context.finish(thrown, faults, &bound.instance.kernel)
            }
            Err(_) => Err(Error::internal("the context of a call is gone")),
        };
        settle(results, self.promises, self.effects);
    }
}

/// Settles results, and the effects, with what has come of a call.
pub fn settle(
    results: Results,
    promises: Vec<Promise<tfrt_tensor::Tensor>>,
    effects: Option<Promise<Chain>>,
) {
    match results {
        Ok(results) => {
            for (promise, result) in promises.into_iter().zip(results) {
                match result {
                    Output::Ready(tensor) => promise.resolve(tensor),
                    Output::Later(later) => promise.forward(later),
                }
            }
            if let Some(effects) = effects {
                effects.resolve(Chain);
            }
        }
        Err(error) => {
            for promise in promises {
                promise.fail(error.clone());
            }
            if let Some(effects) = effects {
                effects.fail(error);
            }
        }
    }
}
