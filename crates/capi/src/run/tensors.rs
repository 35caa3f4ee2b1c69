//! [`Tensors`]: inputs and outputs of a call, and the views of them that the plugin holds without counting them.
//!
//! A view that a plugin asks for leads to memory that the call holds anyhow. So it is not counted: the call notes the
//! handle, and counts those views that are still there before it lets go of what they lead to. Mostly there are none.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{Error, ErrorCode, HostAllocator};
use tfrt_tensor::{DenseHostTensor, Tensor as HostTensor, TensorShape};

use crate::handle::{Handle, Viewed};
use crate::lent::{Borrowed, View};
use crate::raw::Memory;
use crate::value::{Storage, Tensor, is_aligned};

/// An input of a call.
pub struct Input {
    tensor: Held,
    /// Whether it was given for good and nobody else holds its memory.
    is_given: bool,
    /// The plugin's view, once it has asked for one that is not made again as fast.
    view: Option<Box<Tensor>>,
}

/// The tensor of an input.
enum Held {
    /// The call's own.
    Own(HostTensor),
    /// The caller's, who waits for the call.
    Lent(Borrowed<HostTensor>),
    /// An output has taken its memory.
    Taken,
}

impl Input {
    fn new(tensor: Held, is_given: bool) -> Input {
        Input {
            tensor,
            is_given,
            view: None,
        }
    }

    /// Returns an input that the caller keeps.
    pub fn kept(tensor: HostTensor) -> Input {
        Input::new(Held::Own(tensor), false)
    }

    /// Returns an input that is to be lent.
    #[inline]
    pub fn taken() -> Input {
        Input::new(Held::Taken, false)
    }

    /// Returns an input that nobody else holds, whose memory an output may take.
    #[inline]
    pub fn given(mut tensor: DenseHostTensor) -> Input {
        // Views of frozen memory need no right.
        tensor.freeze();
        let is_given = is_aligned(tensor.buffer());
        Input::new(Held::Own(tensor.into()), is_given)
    }

    /// Returns the tensor, unless an output has taken its memory.
    #[inline]
    pub fn tensor(&self) -> Option<&HostTensor> {
        match &self.tensor {
            Held::Own(tensor) => Some(tensor),
            Held::Lent(tensor) => Some(tensor),
            Held::Taken => None,
        }
    }
}

/// An output of a call.
#[derive(Default)]
enum Made {
    /// None yet.
    #[default]
    Nothing,
    /// One that the host has allocated: elements that the plugin may write until the call ends, with the number of their
    /// type and their memory.
    Allocated(i32, Memory, DenseHostTensor),
    /// Another one.
    Set(Tensor),
}

/// The tensor that a view leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Input(usize),
    Output(usize),
}

/// Inputs, outputs and views of a call.
#[derive(Default)]
pub struct Tensors {
    inputs: SmallVec<[Input; 4]>,
    outputs: SmallVec<[Made; 1]>,
    /// Invariant: those handles that may lead to views that are not counted; their memory is held by the tensor of `inputs`
    /// or `outputs` that stands beside them, which is used as the only holder only when [`end`](Self::end) has counted them.
    views: SmallVec<[(Of, Handle<Tensor>); 4]>,
}

impl Drop for Tensors {
    fn drop(&mut self) {
        self.end(|_| true);
    }
}

#[cold]
fn taken(index: usize) -> Error {
    Error::failed_precondition(format!("an output has taken the memory of input {index}"))
}

#[cold]
fn no_input() -> Error {
    Error::new(ErrorCode::OutOfRange, "input index out of range")
}

impl Tensors {
    /// Begins a call of so many outputs, whose inputs are to be [added](Self::add).
    #[inline]
    pub fn begin(&mut self, n_outputs: usize) {
        self.outputs.resize_with(n_outputs, Made::default);
    }

    /// Adds an input.
    #[inline]
    pub fn add(&mut self, input: Input) {
        self.inputs.push(input);
    }

    /// Returns whether there is no tensor of an input.
    #[inline]
    pub fn is_taken(&self, index: usize) -> bool {
        let input = self.inputs.get(index);
        input.is_some_and(|input| matches!(input.tensor, Held::Taken))
    }

    /// Sets the tensor of an input, which the caller keeps for as long as the call goes on.
    #[inline]
    pub fn lend(&mut self, index: usize, tensor: Borrowed<HostTensor>) {
        if let Some(input) = self.inputs.get_mut(index) {
            input.tensor = Held::Lent(tensor);
        }
    }

    /// Returns the number of inputs.
    #[inline]
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the number of outputs.
    #[inline]
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Returns an input, if there is such a one.
    pub fn get(&self, index: usize) -> Option<&Input> {
        self.inputs.get(index)
    }

    /// Returns an input, which stays as it is: no output takes its memory from here on.
    ///
    /// # Errors
    ///
    /// See [`input`](Self::input).
    pub fn keep(&mut self, index: usize) -> Result<&HostTensor, Error> {
        let input = self.inputs.get_mut(index).ok_or_else(no_input)?;
        input.is_given = false;
        input.tensor().ok_or_else(|| taken(index))
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
        let input = self.inputs.get_mut(index).ok_or_else(no_input)?;
        if let Some(view) = &input.view {
            return Ok(Tensor::clone(view));
        }
        let tensor = input.tensor().ok_or_else(|| taken(index))?;
        let view = Tensor::of_host(tensor, allocator)?;
        if !matches!(view.storage, Storage::Buffer(_)) {
            input.view = Some(Box::new(view.clone()));
        }
        Ok(view)
    }

    /// Puts an input into the table of handles, as the plugin sees it.
    ///
    /// # Errors
    ///
    /// See [`input`](Self::input).
    #[inline(always)]
    pub fn input_handle(
        &mut self,
        index: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Handle<Tensor>, Error> {
        self.make_room();
        if let Some(input) = self.inputs.get(index)
            && let Some(HostTensor::Dense(dense)) = input.tensor()
        {
            // SAFETY: the view is noted, so that it is counted before the input goes; see the field.
            if let Some(view) = unsafe { View::new(dense) } {
                return Ok(self.noted(Of::Input(index), Viewed::View(view)));
            }
        }
        self.other_input_handle(index, allocator)
    }

    /// Puts an input that is not dense, or of many or large extents, into the table.
    #[cold]
    #[inline(never)]
    fn other_input_handle(
        &mut self,
        index: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Handle<Tensor>, Error> {
        if let Some(input) = self.inputs.get(index)
            && let Some(HostTensor::Dense(dense)) = input.tensor()
        {
            // SAFETY: the view is noted, so that it is counted before the input goes; see the field.
            if let Some(view) = unsafe { Tensor::uncounted(dense) } {
                return Ok(self.noted(Of::Input(index), Viewed::Whole(view)));
            }
        }
        self.input(index, allocator).map(Handle::new)
    }

    /// Makes room for a view to be [noted](Self::noted), before the view is there: memory may be wanting.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.views.len() == self.views.capacity() {
            self.more_room();
        }
    }

    #[cold]
    #[inline(never)]
    fn more_room(&mut self) {
        self.views.reserve(1);
    }

    /// Puts a view that is not counted into the table, and notes its handle, for which there is [room](Self::make_room).
    /// Inlined, since what is known of the view where it is made saves most of the work.
    #[inline(always)]
    fn noted(&mut self, of: Of, view: Viewed<Tensor>) -> Handle<Tensor> {
        let handle = Handle::of_stored(view);
        self.views.push((of, handle));
        handle
    }

    /// Counts the views of some tensors that are still there.
    #[inline]
    fn end(&mut self, is_ending: impl Fn(Of) -> bool) {
        if self.views.is_empty() {
            return;
        }
        self.views.retain(|(of, handle)| {
            let ends = is_ending(*of);
            if ends && handle.may_lead_somewhere() {
                let _gone = handle.with_quietly(Tensor::count);
            }
            !ends
        });
    }

    /// Returns whether the plugin may hold views of an input.
    fn has_views(&self, of: Of) -> bool {
        let mut own = self.views.iter().filter(|(other, _)| *other == of);
        own.any(|(_, handle)| handle.may_lead_somewhere())
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
        *output = match std::mem::take(output) {
            Made::Allocated(code, memory, tensor) => {
                Made::Set(Tensor::of_written(code, memory, tensor))
            }
            other => other,
        };
        match output {
            Made::Set(tensor) => Some(tensor),
            Made::Nothing | Made::Allocated(..) => None,
        }
    }

    /// Sets an output that there is, and returns the tensor of before, as it is kept.
    pub fn set(&mut self, index: usize, tensor: Tensor) -> impl Sized + use<> {
        self.end(|of| of == Of::Output(index));
        let output = self.outputs.get_mut(index)?;
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
        self.make_room();
        let output = self.outputs.get_mut(index)?;
        // SAFETY: the tensor is kept; the view is noted, so that it is counted before the output goes; see the field.
        let (memory, view) = match unsafe { View::written(code, &mut tensor) } {
            Some(view) => (view.memory(), Viewed::View(view)),
            None => {
                // SAFETY: as above.
                let view = unsafe { Tensor::uncounted_written(code, &mut tensor) }?;
                (view.memory(), Viewed::Whole(view))
            }
        };
        *output = Made::Allocated(code, memory, tensor);
        Some(self.noted(Of::Output(index), view))
    }

    /// Sets an output, and puts it into the table of handles.
    pub fn set_and_view(&mut self, index: usize, tensor: Tensor) -> Handle<Tensor> {
        self.make_room();
        // SAFETY: the tensor is kept; the view is noted, so that it is counted before the output goes; see the field.
        let view = unsafe { tensor.uncounted_clone() };
        self.set(index, tensor);
        self.noted(Of::Output(index), Viewed::Whole(view))
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
        let has_views = self.has_views(Of::Input(index));
        let Some(input) = self.inputs.get_mut(index) else {
            return Ok(None);
        };
        let fits = input.is_given
            && input.tensor().is_some_and(|tensor| {
                let metadata = tensor.metadata();
                crate::dtype::code(metadata.dtype) == Some(code)
                    && metadata.shape.n_elements() == shape.n_elements()
            });
        // The plugin has deleted its own handles: only the view is left, if there is one.
        if !fits || has_views || !input.view.as_mut().is_none_or(|view| view.is_alone()) {
            return Ok(None);
        }
        input.view = None;
        let is_sole = match &mut input.tensor {
            Held::Own(HostTensor::Dense(tensor)) => tensor.is_sole(),
            _ => false,
        };
        if !is_sole {
            return Ok(None);
        }
        match std::mem::replace(&mut input.tensor, Held::Taken) {
            Held::Own(HostTensor::Dense(tensor)) => {
                let mut tensor = Tensor::of_sole(tensor)?;
                tensor.shape = shape.clone();
                Ok(Some(tensor))
            }
            _ => Ok(None),
        }
    }

    /// Ends the call, and leaves nothing.
    #[inline]
    pub fn clear(&mut self) {
        self.end(|_| true);
        self.outputs.clear();
        self.inputs.clear();
    }

    /// Ends a call whose only output was allocated by the host, as most: returns that output, and leaves nothing. `None` for
    /// other calls, which go on.
    #[inline]
    pub fn finish_only(&mut self) -> Option<DenseHostTensor> {
        let [only @ Made::Allocated(..)] = &mut self.outputs[..] else {
            return None;
        };
        // The tensor keeps the memory of the views until they are counted, below.
        let Made::Allocated(_, _, tensor) = std::mem::take(only) else {
            return None;
        };
        self.clear();
        Some(tensor)
    }

    /// Ends the call: counts the views that are still there, and hands over the outputs, after which nothing is left.
    #[inline]
    pub fn finish(
        &mut self,
        allocator: &Arc<dyn HostAllocator>,
        mut hand_over: impl FnMut(usize, Option<Result<HostTensor, Error>>),
    ) {
        self.end(|_| true);
        for (index, output) in self.outputs.drain(..).enumerate() {
            hand_over(
                index,
                match output {
                    Made::Nothing => None,
                    Made::Allocated(.., tensor) => Some(Ok(tensor.into())),
                    Made::Set(tensor) => Some(tensor.into_host(allocator)),
                },
            );
        }
        self.inputs.clear();
    }
}
