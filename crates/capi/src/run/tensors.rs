//! [`Tensors`]: inputs and outputs of a call, and the views of them that the plugin holds without counting them.
//!
//! A view that a plugin asks for leads to a tensor that the call holds anyhow. So it is not counted: [`views`] notes it, and
//! makes it a tensor that counts its memory if the plugin still has it when the call lets go of the other. Views are made on
//! the thread that runs the kernel's function alone; on others, plugins get tensors that count.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_corert::Call;
use tfrt_host::{Error, HostAllocator};
use tfrt_tensor::{DenseHostTensor, Tensor as HostTensor, TensorShape};

use super::context::no_such;
use super::now;
use crate::handle::Handle;
use crate::handle::views::{self, Of};
use crate::lent::{Buffer, LentCall, View};
use crate::raw::Memory;
use crate::value::{Storage, Tensor, is_aligned};

/// An input of a call that has inputs of its own.
pub struct Input {
    /// The tensor, until an output has taken its memory.
    tensor: Option<HostTensor>,
    /// Whether it was given for good and nobody else holds its memory.
    is_given: bool,
}

impl Input {
    /// Returns an input that the caller keeps.
    pub fn kept(tensor: HostTensor) -> Input {
        Input {
            tensor: Some(tensor),
            is_given: false,
        }
    }

    /// Returns an input that nobody else holds, whose memory an output may take.
    pub fn given(mut tensor: DenseHostTensor) -> Input {
        // Views of frozen memory need no right.
        tensor.freeze();
        Input {
            is_given: is_aligned(tensor.buffer()),
            tensor: Some(tensor.into()),
        }
    }
}

impl Input {
    /// Takes the tensor, if it was given for good and nobody else holds its memory now.
    fn take_sole(&mut self) -> Option<HostTensor> {
        let is_sole = match &mut self.tensor {
            Some(HostTensor::Dense(tensor)) => self.is_given && tensor.is_sole(),
            _ => false,
        };
        is_sole.then(|| self.tensor.take()).flatten()
    }
}

/// An output of a call.
#[derive(Default)]
enum Made {
    /// None yet.
    #[default]
    Nothing,
    /// One that the host has allocated: elements that the plugin may write until the call ends.
    Allocated {
        /// The number of their type.
        code: i32,
        /// Their memory.
        memory: Memory,
        tensor: DenseHostTensor,
        /// The view that the plugin was given; null if it counts the memory.
        view: Handle<Tensor>,
    },
    /// Another one.
    Set(Tensor),
}

impl Made {
    /// Makes a view that the plugin still has a tensor that counts the memory.
    fn end_view(&self) {
        if let Made::Allocated { view, .. } = self {
            let _gone = view.with_quietly(|_| ());
        }
    }
}

/// Inputs and outputs of a call.
#[derive(Default)]
pub struct Tensors {
    /// Inputs of a call that may go on when the function of its kernel has returned.
    own: SmallVec<[Input; 4]>,
    /// The call that lends its inputs otherwise.
    lent: Option<LentCall>,
    /// Inputs that stay as they are: no output takes their memory.
    kept: SmallVec<[usize; 2]>,
    /// Inputs as the plugin sees them, once it has asked for one that is not made again as fast.
    seen: Vec<(usize, Tensor)>,
    /// Invariant: those that the host has allocated stay where they are while there may be views of them.
    outputs: SmallVec<[Made; 1]>,
    /// The number of views that outer calls have on the thread of this one.
    from: usize,
}

impl Tensors {
    /// Begins a call of so many outputs, whose inputs are to be [added](Self::add).
    #[inline]
    pub fn begin(&mut self, n_outputs: usize) {
        self.outputs.resize_with(n_outputs, Made::default);
    }

    /// Has a call lend its inputs.
    #[inline]
    pub fn lend(&mut self, call: LentCall) {
        self.lent = Some(call);
        self.from = views::begin();
    }

    /// Returns the address of the call that lends its inputs.
    #[inline]
    pub fn call(&self) -> *const Call<'static> {
        self.lent
            .as_ref()
            .map_or(std::ptr::null(), LentCall::address)
    }

    /// Adds an input to a call that has inputs of its own.
    pub fn add(&mut self, input: Input) {
        self.own.push(input);
    }

    /// Returns the number of inputs.
    #[inline]
    pub fn n_inputs(&self) -> usize {
        match &self.lent {
            None => self.own.len(),
            Some(call) => call.get().n_inputs(),
        }
    }

    /// Returns the number of outputs.
    #[inline]
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Returns the tensor of an input, unless an output has taken its memory.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&HostTensor> {
        match &self.lent {
            None => self.own.get(index)?.tensor.as_ref(),
            Some(call) => call.get().input(index),
        }
    }

    /// Returns whether views may be made: this thread runs the function of the call's kernel.
    #[inline]
    fn is_own_thread(&self) -> bool {
        self.lent.as_ref().is_some_and(now::is_running)
    }

    #[cold]
    fn no_input(&self, index: usize) -> Error {
        match index < self.n_inputs() {
            true => Error::failed_precondition(format!(
                "an output has taken the memory of input {index}"
            )),
            false => no_such("input", index, self.n_inputs()),
        }
    }

    /// Returns an input, which stays as it is: no output takes its memory from here on.
    ///
    /// # Errors
    ///
    /// See [`input`](Self::input).
    pub fn keep(&mut self, index: usize) -> Result<&HostTensor, Error> {
        if !self.kept.contains(&index) {
            self.kept.push(index);
        }
        self.get(index).ok_or_else(|| self.no_input(index))
    }

    /// Returns an input as the plugin sees it, counted.
    ///
    /// # Errors
    ///
    /// `OutOfRange` if there is none; `FailedPrecondition` if an output has taken its memory.
    pub fn input(
        &mut self,
        index: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        if let Some((_, seen)) = self.seen.iter().find(|(own, _)| *own == index) {
            return Ok(seen.clone());
        }
        let tensor = self.get(index).ok_or_else(|| self.no_input(index))?;
        let view = Tensor::of_host(tensor, allocator)?;
        if !matches!(view.storage, Storage::Buffer(_)) {
            self.seen.push((index, view.clone()));
        }
        Ok(view)
    }

    /// Returns whether an output is set; `None` if there is no such output.
    #[inline]
    pub fn has_output(&self, index: usize) -> Option<bool> {
        let output = self.outputs.get(index)?;
        Some(!matches!(output, Made::Nothing))
    }

    /// Returns an output as it is now, if it is set.
    pub fn output(&mut self, index: usize) -> Option<&Tensor> {
        let output = self.outputs.get_mut(index)?;
        output.end_view();
        *output = match std::mem::take(output) {
            Made::Allocated {
                code,
                memory,
                tensor,
                ..
            } => Made::Set(Tensor {
                code,
                shape: tensor.shape().clone(),
                storage: Storage::Buffer(Buffer {
                    buffer: tensor.into_buffer(),
                    memory,
                    is_written: true,
                }),
            }),
            other => other,
        };
        match output {
            Made::Set(tensor) => Some(tensor),
            Made::Nothing | Made::Allocated { .. } => None,
        }
    }

    /// Sets an output that there is, and returns the tensor of before, as it is kept.
    pub fn set(&mut self, index: usize, tensor: Tensor) -> impl Sized + use<> {
        let output = self.outputs.get_mut(index)?;
        output.end_view();
        Some(std::mem::replace(output, Made::Set(tensor)))
    }

    /// Sets an output that is not set to elements that the plugin writes, and puts it into the table of handles; `None` if
    /// somebody else holds the memory.
    #[inline(always)]
    pub fn allocate(
        &mut self,
        index: usize,
        code: i32,
        mut tensor: DenseHostTensor,
    ) -> Option<Handle<Tensor>> {
        let is_own_thread = self.is_own_thread();
        let memory = Memory::at(std::ptr::NonNull::from(tensor.bytes_mut()?).cast());
        let output = self.outputs.get_mut(index)?;
        *output = Made::Allocated {
            code,
            memory,
            tensor,
            view: Handle::NULL,
        };
        if is_own_thread
            && let Made::Allocated { tensor, view, .. } = output
            // SAFETY: the tensor stays there until the view is ended.
            && let Some(own) = unsafe { View::written(code, memory, tensor) }
            && let Some(handle) = views::put(Of::Output, own)
        {
            *view = handle;
            return Some(handle);
        }
        self.output(index).cloned().map(Handle::new)
    }

    /// Sets an output, and puts it into the table of handles.
    pub fn set_and_view(&mut self, index: usize, tensor: Tensor) -> Handle<Tensor> {
        self.set(index, tensor.clone());
        Handle::new(tensor)
    }

    /// Lets an output take the memory of an input that nobody else holds and that is of this type and number of elements, if
    /// it is such.
    ///
    /// # Errors
    ///
    /// Those of [`Tensor::of_sole`].
    pub fn take(
        &mut self,
        index: usize,
        code: i32,
        shape: &TensorShape,
    ) -> Result<Option<Tensor>, Error> {
        let Some(HostTensor::Dense(tensor)) = self.get(index) else {
            return Ok(None);
        };
        let fits = crate::dtype::code(tensor.dtype()) == Some(code)
            && tensor.shape().n_elements() == shape.n_elements()
            && is_aligned(tensor.buffer());
        if !fits || self.kept.contains(&index) {
            return Ok(None);
        }
        // The plugin has deleted its own handles: only this one is left, if there is one.
        if let Some(at) = self.seen.iter().position(|(own, _)| *own == index) {
            if !self.seen[at].1.is_alone() {
                return Ok(None);
            }
            self.seen.remove(at);
        }
        let is_own_thread = self.is_own_thread();
        let taken = match &mut self.lent {
            None => self.own.get_mut(index).and_then(Input::take_sole),
            Some(_) if !is_own_thread || views::has(self.from, Of::Input(index)) => None,
            // SAFETY: this thread owns the call, and there is no view of the input.
            Some(call) => unsafe { call.take_sole(index) }.map(HostTensor::Dense),
        };
        let Some(HostTensor::Dense(tensor)) = taken else {
            return Ok(None);
        };
        let mut tensor = Tensor::of_sole(tensor)?;
        tensor.shape = shape.clone();
        Ok(Some(tensor))
    }

    /// Ends the call, and leaves nothing. Views were ended before.
    #[inline]
    pub fn clear(&mut self) {
        self.outputs.clear();
        self.lent = None;
        if !self.own.is_empty() {
            self.own.clear();
        }
        if !self.kept.is_empty() {
            self.kept.clear();
        }
        if !self.seen.is_empty() {
            self.seen.clear();
        }
    }

    /// Ends a call whose only output was allocated by the host, as most: returns that output, and leaves nothing. `None` for
    /// other calls, which go on. Views were ended before.
    #[inline]
    pub fn finish_only(&mut self) -> Option<DenseHostTensor> {
        let [only @ Made::Allocated { .. }] = &mut self.outputs[..] else {
            return None;
        };
        let Made::Allocated { tensor, .. } = std::mem::take(only) else {
            return None;
        };
        self.clear();
        Some(tensor)
    }

    /// Ends the call: hands over the outputs, after which nothing is left. Views were ended before.
    #[inline]
    pub fn finish(
        &mut self,
        allocator: &Arc<dyn HostAllocator>,
        mut hand_over: impl FnMut(usize, Option<Result<HostTensor, Error>>),
    ) {
        for (index, output) in self.outputs.drain(..).enumerate() {
            hand_over(
                index,
                match output {
                    Made::Nothing => None,
                    Made::Allocated { tensor, .. } => Some(Ok(tensor.into())),
                    Made::Set(tensor) => Some(tensor.into_host(allocator)),
                },
            );
        }
        self.clear();
    }
}
