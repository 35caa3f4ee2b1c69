//! [`Inputs`]: the input handles of an operation, borrowed or given for good.

use std::fmt;
use std::mem;

use tfrt_host::AnyAsyncValue;
use tfrt_tensor::op::Operands;
use tfrt_tensor::{DenseHostTensor, ObjectTensor, Tensor};

use crate::TensorHandle;
use crate::handle::Owner;
use crate::kernels::{handle_as_value, take_handle};
use crate::op::Handles;

/// The input handles of an operation, borrowed or given for good. An operation may reuse the memory of the latter.
pub struct Inputs<'a>(InputHandles<'a>);

enum InputHandles<'a> {
    Borrowed(&'a [TensorHandle]),
    BorrowedEach(&'a [&'a TensorHandle]),
    Owned(&'a mut [TensorHandle]),
    /// Registers of a program. A handle was given for good if nobody else holds the register's value. Invariant: each
    /// is a handle.
    Values(&'a mut [AnyAsyncValue]),
}

/// A dense input of a short call: borrowed, or its handle, which was given for good.
pub(crate) enum Operand<'a> {
    Borrowed(&'a DenseHostTensor),
    Owned(&'a mut TensorHandle),
}

impl<'a> Operand<'a> {
    /// Returns the input in a register.
    #[inline(always)]
    fn of_value(value: &'a mut AnyAsyncValue) -> Option<Operand<'a>> {
        match value.is_unique() {
            true => value.get_mut().map(Operand::Owned),
            false => borrowed(value.get()?),
        }
    }

    /// Returns the tensor, if it is dense and lies in the handle.
    #[inline(always)]
    pub(crate) fn dense(&self) -> Option<&DenseHostTensor> {
        match self {
            Operand::Borrowed(dense) => Some(dense),
            Operand::Owned(handle) => handle.as_dense(),
        }
    }

    /// Returns the tensor to be written, if it was given for good.
    #[inline(always)]
    pub(crate) fn dense_mut(&mut self) -> Option<&mut DenseHostTensor> {
        match self {
            Operand::Borrowed(_) => None,
            Operand::Owned(handle) => handle.as_dense_mut(),
        }
    }

    /// Takes the tensor, if it was given for good.
    #[inline(always)]
    pub(crate) fn take(self) -> Option<DenseHostTensor> {
        match self {
            Operand::Borrowed(_) => None,
            Operand::Owned(handle) => handle.take_dense(),
        }
    }
}

#[inline(always)]
fn borrowed(handle: &TensorHandle) -> Option<Operand<'_>> {
    handle.as_dense().map(Operand::Borrowed)
}

/// Returns the handle in a register of which it is known that there is one.
#[inline(always)]
fn handle_in(value: &AnyAsyncValue) -> &TensorHandle {
    value.get().expect("the register of an input has a handle")
}

impl<'a> Inputs<'a> {
    /// Wraps handles that the caller keeps.
    #[inline]
    pub fn borrowed(handles: &'a [TensorHandle]) -> Self {
        Inputs(InputHandles::Borrowed(handles))
    }

    /// Wraps handles that the caller keeps and that don't lie side by side.
    #[inline]
    pub fn borrowed_each(handles: &'a [&'a TensorHandle]) -> Self {
        Inputs(InputHandles::BorrowedEach(handles))
    }

    /// Wraps handles that the caller gives for good. An operation may take some; the others stay as they are.
    #[inline]
    pub fn owned(handles: &'a mut [TensorHandle]) -> Self {
        Inputs(InputHandles::Owned(handles))
    }

    /// Wraps registers of a program that the caller gives for good, all of which are handles. Those whose values nobody
    /// else holds are given to the operation.
    #[inline]
    pub(crate) fn of_values(values: &'a mut [AnyAsyncValue]) -> Self {
        debug_assert!(values.iter().all(AnyAsyncValue::is::<TensorHandle>));
        Inputs(InputHandles::Values(values))
    }

    /// Returns a result as the value of a register: that of an input that was given for good, if there is one, which is
    /// no input any more.
    #[inline]
    pub(crate) fn into_value(self, result: TensorHandle) -> AnyAsyncValue {
        if let InputHandles::Values(values) = self.0
            && result.is_there()
        {
            for value in values {
                if let Some(place) = value.get_mut::<TensorHandle>() {
                    *place = result;
                    return mem::replace(value, AnyAsyncValue::empty());
                }
            }
        }
        handle_as_value(result)
    }

    /// Returns the number of handles.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            InputHandles::Borrowed(handles) => handles.len(),
            InputHandles::BorrowedEach(handles) => handles.len(),
            InputHandles::Owned(handles) => handles.len(),
            InputHandles::Values(values) => values.len(),
        }
    }

    /// Returns whether there are no handles.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the handle at `index`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub fn get(&self, index: usize) -> &TensorHandle {
        match &self.0 {
            InputHandles::Borrowed(handles) => &handles[index],
            InputHandles::BorrowedEach(handles) => handles[index],
            InputHandles::Owned(handles) => &handles[index],
            InputHandles::Values(values) => handle_in(&values[index]),
        }
    }

    /// Returns the handle at `index` to be written to, if it was given for good.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut TensorHandle> {
        match &mut self.0 {
            InputHandles::Owned(handles) => handles.get_mut(index),
            InputHandles::Values(values) => values.get_mut(index)?.get_mut(),
            InputHandles::Borrowed(_) | InputHandles::BorrowedEach(_) => None,
        }
    }

    /// Returns whether all handles have this owner.
    #[inline(always)]
    pub(crate) fn are_at(&self, owner: Owner) -> bool {
        match &self.0 {
            InputHandles::Borrowed(handles) => handles.iter().all(|handle| handle.owner() == owner),
            InputHandles::BorrowedEach(handles) => {
                handles.iter().all(|handle| handle.owner() == owner)
            }
            InputHandles::Owned(handles) => handles.iter().all(|handle| handle.owner() == owner),
            InputHandles::Values(values) => {
                values.iter().all(|value| handle_in(value).owner() == owner)
            }
        }
    }

    /// Returns the only input, if it is a dense tensor that lies in the handle, or was given for good.
    #[inline(always)]
    pub(crate) fn one(&mut self) -> Option<Operand<'_>> {
        match &mut self.0 {
            InputHandles::Borrowed([x]) => borrowed(x),
            InputHandles::BorrowedEach([x]) => borrowed(x),
            InputHandles::Owned([x]) => Some(Operand::Owned(x)),
            InputHandles::Values([x]) => Operand::of_value(x),
            _ => None,
        }
    }

    /// Returns the two inputs, if each is a dense tensor that lies in the handle, or was given for good.
    #[inline(always)]
    pub(crate) fn two(&mut self) -> Option<(Operand<'_>, Operand<'_>)> {
        Some(match &mut self.0 {
            InputHandles::Borrowed([x, y]) => (borrowed(x)?, borrowed(y)?),
            InputHandles::BorrowedEach([x, y]) => (borrowed(x)?, borrowed(y)?),
            InputHandles::Owned([x, y]) => (Operand::Owned(x), Operand::Owned(y)),
            InputHandles::Values([x, y]) => (Operand::of_value(x)?, Operand::of_value(y)?),
            _ => return None,
        })
    }

    /// Returns all handles.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &TensorHandle> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns the handles again, for another operation.
    pub fn reborrow(&mut self) -> Inputs<'_> {
        Inputs(match &mut self.0 {
            InputHandles::Borrowed(handles) => InputHandles::Borrowed(handles),
            InputHandles::BorrowedEach(handles) => InputHandles::BorrowedEach(handles),
            InputHandles::Owned(handles) => InputHandles::Owned(handles),
            InputHandles::Values(values) => InputHandles::Values(values),
        })
    }

    /// Returns owned handles: those that were given for good, and clones of the others.
    pub fn into_vec<V: FromIterator<TensorHandle>>(self) -> V {
        match self.0 {
            InputHandles::Borrowed(handles) => handles.iter().cloned().collect(),
            InputHandles::BorrowedEach(handles) => handles.iter().copied().cloned().collect(),
            InputHandles::Owned(handles) => handles.iter_mut().map(TensorHandle::take).collect(),
            InputHandles::Values(values) => values.iter_mut().map(take_value).collect(),
        }
    }
}

/// Takes the handle out of the register of an input.
fn take_value(value: &mut AnyAsyncValue) -> TensorHandle {
    let value = mem::replace(value, AnyAsyncValue::empty());
    take_handle(value).expect("the register of an input has a handle")
}

impl Operands for Inputs<'_> {
    fn len(&self) -> usize {
        Inputs::len(self)
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&Tensor> {
        match index < self.len() {
            true => Inputs::get(self, index).tensor()?.ok(),
            false => None,
        }
    }

    fn take_sole(&mut self, index: usize) -> Option<DenseHostTensor> {
        self.get_mut(index)?.take_sole()
    }

    fn take_object(&mut self, index: usize) -> Option<ObjectTensor> {
        self.get_mut(index)?.take_object()
    }

    fn put_back(&mut self, index: usize, tensor: DenseHostTensor) {
        if let Some(input) = self.get_mut(index) {
            input.put_back(tensor);
        }
    }
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Conversion to the inputs of an operation: arrays and lists are given for good, slices are borrowed.
pub trait IntoInputs {
    /// Hands the inputs to `call`.
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R;
}

impl<const N: usize> IntoInputs for [TensorHandle; N] {
    #[inline]
    fn with<R>(mut self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::owned(&mut self))
    }
}

impl IntoInputs for Vec<TensorHandle> {
    fn with<R>(mut self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::owned(&mut self))
    }
}

/// The results of another call.
impl IntoInputs for Handles {
    fn with<R>(mut self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::owned(&mut self))
    }
}

impl IntoInputs for &Vec<TensorHandle> {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed(self))
    }
}

impl IntoInputs for &Handles {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed(self))
    }
}

impl<const N: usize> IntoInputs for &[TensorHandle; N] {
    #[inline]
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed(self))
    }
}

impl IntoInputs for &[TensorHandle] {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed(self))
    }
}

impl<const N: usize> IntoInputs for [&TensorHandle; N] {
    #[inline]
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed_each(&self))
    }
}

impl IntoInputs for &[&TensorHandle] {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed_each(self))
    }
}

/// No inputs.
impl IntoInputs for () {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::borrowed(&[]))
    }
}

impl IntoInputs for Inputs<'_> {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(self)
    }
}
