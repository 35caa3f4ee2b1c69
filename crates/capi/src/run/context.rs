//! [`Context`]: a call of a kernel, with its inputs, outputs and variables, and its results.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tfrt_corert::{Output, Outputs};
use tfrt_host::{AsyncValue, DType, Error, ErrorCode, HostAllocator, RequestContext};
use tfrt_tensor::resource::{Slot, Variable};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape};

use super::instance::{BoundKernel, told_byte};
use super::outcome::Outcome;
use super::tensors::{Input, Tensors};
use crate::dtype;
use crate::functions::status::Status;
use crate::functions::variable::Prepared;
use crate::guard::Exception;
use crate::handle::{Handle, Words};
use crate::lent::Lent;
use crate::locks::{self, Locks};
use crate::registry::KernelDef;
use crate::value::Tensor;

/// A call of a kernel: `TF_OpKernelContext`.
#[derive(Default)]
pub struct Context {
    /// The kind of the call, and its request. Invariant: there from [`begin`](Self::begin) to [`clear`](Self::clear).
    surroundings: Option<(Lent<BoundKernel>, Lent<RequestContext>)>,
    /// The first failure that the plugin has told.
    pub failure: Option<Status>,
    pub(super) tensors: Tensors,
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
fn left_out(kernel: &KernelDef, index: usize) -> Error {
    let text = kernel.text();
    Error::internal(format!("{text} has not set output {index}"))
}

#[cold]
fn no_open_output(index: usize, is_set: Option<bool>, n: usize) -> Error {
    Error::internal(match is_set {
        Some(true) => format!("output {index} was allocated before"),
        _ => format!("output {index} of a kernel that has {n}"),
    })
}

/// Returns the error for an input or an output that a kernel does not have.
#[cold]
pub fn no_such(value: &str, index: usize, n: usize) -> Error {
    let error = Error::new(ErrorCode::OutOfRange, format!("{value} index out of range"));
    // The index is a C `int`.
    let (index, s) = (index as i32, if n == 1 { "" } else { "s" });
    error.with_note(format!("found index {index} of {n} {value}{s}"))
}

/// Results of a call; one that the kernel has left out is an error of whoever uses it.
pub type Results = Result<Outputs, Error>;

impl Context {
    /// Makes a call, whose inputs are to be [added](Self::add_input).
    pub fn new(bound: &Arc<BoundKernel>, request: &Arc<RequestContext>) -> Box<Context> {
        let mut context = Box::<Context>::default();
        context.begin(Lent::Own(bound.clone()), Lent::Own(request.clone()));
        context
    }

    /// Begins a call in a context that is empty.
    #[inline]
    pub(super) fn begin(&mut self, bound: Lent<BoundKernel>, request: Lent<RequestContext>) {
        self.tensors.begin(bound.outputs.len());
        self.surroundings = Some((bound, request));
    }

    /// Leaves nothing of the call.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.tensors.clear();
        self.variables = None;
        self.surroundings = None;
    }

    #[inline]
    fn surroundings(&self) -> &(Lent<BoundKernel>, Lent<RequestContext>) {
        let surroundings = self.surroundings.as_ref();
        surroundings.expect("they are there while the call goes on")
    }

    /// Returns the kind of the call.
    #[inline]
    pub fn bound(&self) -> &BoundKernel {
        &self.surroundings().0
    }

    /// Returns the request that the call belongs to.
    #[inline]
    pub fn request(&self) -> &RequestContext {
        &self.surroundings().1
    }

    /// Returns what is read of the context without taking its place: the numbers of inputs and outputs, and the types of
    /// the first outputs.
    #[inline]
    pub fn facts(&self) -> Words {
        let counts = [self.n_inputs(), self.n_outputs()].map(|n| u64::from(told_byte(&n)));
        let mut words = Words::default();
        words[0] = counts[0] | counts[1] << 8;
        words[1] = self.bound().told_outputs;
        words
    }

    /// Adds an input.
    pub fn add_input(&mut self, input: Input) {
        let index = self.n_inputs();
        self.tensors.add(input);
        if self.bound().may_have_variables {
            self.add_variable(index);
        }
    }

    /// Adds an input to the variables, if it is one.
    pub(super) fn add_variable(&mut self, index: usize) {
        if let Some(tensor) = self.tensors.get(index)
            && tensor.metadata().dtype == DType::Resource
            && let Ok(slot) = Slot::counted(tensor)
            && slot.get::<Variable>().is_ok()
        {
            self.variables().locks.add(slot);
        }
    }

    /// Returns inputs and outputs, and the allocator of memory for outputs.
    #[inline]
    fn parts(&mut self) -> (&mut Tensors, &Arc<dyn HostAllocator>) {
        let surroundings = self.surroundings.as_ref();
        let (_, request) = surroundings.expect("they are there while the call goes on");
        (&mut self.tensors, request.host().allocator())
    }

    /// Returns the variables among the inputs.
    pub fn variables(&mut self) -> &mut Variables {
        if self.variables.is_none() {
            let mode = self.bound().instance.lock_mode();
            self.variables = Some(Box::new(Variables {
                locks: Locks::none(mode),
                busy: SmallVec::new(),
                prepared: SmallVec::new(),
            }));
        }
        self.variables.as_mut().expect("they were just made")
    }

    /// Returns whether there are variables among the inputs.
    pub fn has_variables(&self) -> bool {
        self.variables.is_some()
    }

    /// Returns the allocator of memory for outputs.
    pub fn allocator(&self) -> &Arc<dyn HostAllocator> {
        self.request().host().allocator()
    }

    /// Returns an input, which stays as it is: no output takes its memory from here on.
    ///
    /// # Errors
    ///
    /// See [`input`](Self::input).
    pub fn keep(&mut self, index: usize) -> Result<&tfrt_tensor::Tensor, Error> {
        self.tensors.keep(index)
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
    #[inline]
    pub fn is_reference(&self, index: usize) -> bool {
        let is_this = |(own, _): &(usize, Option<i32>)| *own == index;
        self.bound().may_have_variables && self.bound().resolved.references.iter().any(is_this)
    }

    /// Makes a variable an output that is a reference.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is no such output; `InvalidArgument` if it is no reference.
    pub fn set_reference(&mut self, index: usize, slot: &Arc<Slot>) -> Result<(), Error> {
        let expected = self.bound().outputs.get(index).copied();
        let expected = expected.ok_or_else(|| {
            let n = self.n_outputs();
            Error::new(
                ErrorCode::OutOfRange,
                format!("expected one of {n} outputs, found {index}"),
            )
        })?;
        // 0: of a type that follows from a variable without a value.
        if expected != 0 && expected < dtype::REFERENCE {
            let name = dtype::name(expected);
            return Err(Error::invalid_argument(format!(
                "output {index}: expected one that is a reference, found one of {name}"
            )));
        }
        let handle = Tensor::of_host(&slot.handle(), self.allocator())?;
        self.tensors.set(index, handle);
        Ok(())
    }

    /// Returns the number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.tensors.n_inputs()
    }

    /// Returns the number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.tensors.n_outputs()
    }

    /// Returns the type of an input's elements.
    pub fn input_type(&self, index: usize) -> Option<i32> {
        let tensor = self.tensors.get(index)?;
        let mut references = self.bound().resolved.references.iter();
        if let Some((_, code)) = references.find(|(own, _)| *own == index) {
            return Some(code.unwrap_or_default() + dtype::REFERENCE);
        }
        dtype::code(tensor.metadata().dtype)
    }

    /// Returns an input as the plugin sees it.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is none; `FailedPrecondition` if an output has taken its memory.
    pub fn input(&mut self, index: usize) -> Result<Tensor, Error> {
        if self.is_reference(index) {
            return self.referred(index);
        }
        let (tensors, allocator) = self.parts();
        tensors.input(index, allocator)
    }

    /// Returns the value of the variable that an input refers to.
    #[cold]
    fn referred(&mut self, index: usize) -> Result<Tensor, Error> {
        let (tensors, allocator) = self.parts();
        let tensor = tensors.keep(index)?;
        let value = Slot::of(tensor)?.get::<Variable>()?.read(allocator)?;
        let value = value
            .ok_or_else(|| Error::failed_precondition("Attempting to use uninitialized value"))?;
        Tensor::of_host(&value, allocator)
    }

    /// Returns an output as it is now; the outer value is `None` if there is no such output.
    pub fn output(&mut self, index: usize) -> Option<Option<&Tensor>> {
        self.tensors.has_output(index)?;
        Some(self.tensors.output(index))
    }

    /// Sets an output, and returns the tensor of before.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is no such output; `InvalidArgument` for another type of elements.
    pub fn set_output(
        &mut self,
        index: usize,
        tensor: Tensor,
    ) -> Result<impl Sized + use<>, Error> {
        let expected = self.bound().outputs.get(index).copied();
        let Some(expected) = expected else {
            return Err(no_such("output", index, self.n_outputs()));
        };
        if expected != tensor.code {
            let [expected, found] = [expected, tensor.code].map(dtype::name);
            return Err(Error::invalid_argument(format!(
                "output {index}: expected elements of {expected}, found {found}"
            )));
        }
        Ok(self.tensors.set(index, tensor))
    }

    /// Allocates an output, and puts it into the table of handles.
    ///
    /// # Errors
    ///
    /// `Internal` if there is no such output, or if it was allocated before; those of [`Tensor::zeroed`].
    #[inline(always)]
    pub fn allocate_output(
        &mut self,
        index: usize,
        shape: TensorShape,
    ) -> Result<Handle<Tensor>, Error> {
        let code = self.open_output(index)?;
        let Some(dtype) = dtype::of_bytes(code) else {
            let tensor = Tensor::zeroed(self.allocator(), code, shape)?;
            return Ok(self.tensors.set_and_view(index, tensor));
        };
        let metadata = TensorMetadata::new(dtype, shape);
        let tensor = DenseHostTensor::zeroed(self.allocator(), metadata)?;
        let output = self.tensors.allocate(index, code, tensor);
        output.ok_or_else(|| Error::internal("memory that is to be written is shared"))
    }

    /// Returns the type of an output that is not set.
    #[inline]
    fn open_output(&self, index: usize) -> Result<i32, Error> {
        match (
            self.bound().outputs.get(index),
            self.tensors.has_output(index),
        ) {
            (Some(code), Some(false)) => Ok(*code),
            (_, is_set) => Err(no_open_output(index, is_set, self.n_outputs())),
        }
    }

    /// Lets an output take the memory of the first of some inputs that nobody else holds and that is of its type and number
    /// of elements; allocates the output if there is none. Puts the output into the table of handles, and returns it with
    /// the input that was taken.
    ///
    /// # Errors
    ///
    /// See [`allocate_output`](Self::allocate_output).
    pub fn forward_or_allocate(
        &mut self,
        candidates: &[i32],
        index: usize,
        shape: TensorShape,
    ) -> Result<(Handle<Tensor>, i32), Error> {
        let code = self.open_output(index)?;
        for candidate in candidates {
            let Ok(at) = usize::try_from(*candidate) else {
                continue;
            };
            if let Some(tensor) = self.tensors.take(at, code, &shape)? {
                return Ok((self.tensors.set_and_view(index, tensor), *candidate));
            }
        }
        Ok((self.allocate_output(index, shape)?, -1))
    }

    /// Returns the results, when the kernel has run. Nothing is left of the call then but its surroundings.
    #[inline]
    pub(super) fn finish(
        &mut self,
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
        if thrown.is_some() || self.failure.is_some() || !faults.is_empty() {
            let outcome = Outcome {
                thrown,
                told: self.failure.take(),
                faults,
            };
            if let Some(error) = outcome.error(kernel) {
                return Err(error);
            }
        }
        let (tensors, allocator) = self.parts();
        if let Some(only) = tensors.finish_only() {
            return Ok(smallvec![Output::Ready(only.into())]);
        }
        let mut results = Outputs::new();
        let mut failed = None;
        tensors.finish(allocator, |index, output| {
            results.push(match output {
                Some(Ok(tensor)) => Output::Ready(tensor),
                Some(Err(error)) => {
                    failed.get_or_insert_with(|| error.clone());
                    Output::Later(AsyncValue::from_error(error))
                }
                None => Output::Later(AsyncValue::from_error(left_out(kernel, index))),
            });
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(results),
        }
    }
}
