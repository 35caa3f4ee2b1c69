//! [`Inputs`]: the input handles of an operation, borrowed or given for good.

use std::fmt;

use tfrt_tensor::op::Operands;
use tfrt_tensor::{DenseHostTensor, ObjectTensor, Tensor};

use crate::TensorHandle;
use crate::handle::Owner;
use crate::op::Handles;

/// The input handles of an operation, borrowed or given for good. An operation may reuse the memory of the latter.
pub struct Inputs<'a>(InputHandles<'a>);

enum InputHandles<'a> {
    Borrowed(&'a [TensorHandle]),
    BorrowedEach(&'a [&'a TensorHandle]),
    Owned(&'a mut [TensorHandle]),
}

/// The only input, which is dense: borrowed, or a handle given for good.
pub(crate) enum UnaryOperand<'a> {
    Borrowed(&'a DenseHostTensor),
    Owned(&'a mut TensorHandle),
}

/// Two dense inputs: both borrowed, or both handles given for good.
pub(crate) enum BinaryOperands<'a> {
    Borrowed(&'a DenseHostTensor, &'a DenseHostTensor),
    Owned(&'a mut TensorHandle, &'a mut TensorHandle),
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

    /// Returns the number of handles.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            InputHandles::Borrowed(handles) => handles.len(),
            InputHandles::BorrowedEach(handles) => handles.len(),
            InputHandles::Owned(handles) => handles.len(),
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
        }
    }

    /// Returns the handle at `index` to be written to, if it was given for good.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut TensorHandle> {
        match &mut self.0 {
            InputHandles::Owned(handles) => handles.get_mut(index),
            _ => None,
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
        }
    }

    /// Returns the dense tensor of the only handle, if it lies in the handle.
    #[inline(always)]
    pub(crate) fn one(&mut self) -> Option<UnaryOperand<'_>> {
        Some(match &mut self.0 {
            InputHandles::Borrowed([x]) => UnaryOperand::Borrowed(x.as_dense()?),
            InputHandles::BorrowedEach([x]) => UnaryOperand::Borrowed(x.as_dense()?),
            InputHandles::Owned([x]) => UnaryOperand::Owned(x),
            _ => return None,
        })
    }

    /// Returns the dense tensors of two handles, if they lie in the handles.
    #[inline(always)]
    pub(crate) fn two(&mut self) -> Option<BinaryOperands<'_>> {
        Some(match &mut self.0 {
            InputHandles::Borrowed([x, y]) => {
                BinaryOperands::Borrowed(x.as_dense()?, y.as_dense()?)
            }
            InputHandles::BorrowedEach([x, y]) => {
                BinaryOperands::Borrowed(x.as_dense()?, y.as_dense()?)
            }
            InputHandles::Owned([x, y]) => BinaryOperands::Owned(x, y),
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
        })
    }

    /// Returns owned handles: those that were given for good, and clones of the others.
    pub fn into_vec<V: FromIterator<TensorHandle>>(self) -> V {
        match self.0 {
            InputHandles::Borrowed(handles) => handles.iter().cloned().collect(),
            InputHandles::BorrowedEach(handles) => handles.iter().copied().cloned().collect(),
            InputHandles::Owned(handles) => handles.iter_mut().map(TensorHandle::take).collect(),
        }
    }
}

impl Operands for Inputs<'_> {
    fn len(&self) -> usize {
        Inputs::len(self)
    }

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
