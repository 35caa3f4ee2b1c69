//! [`Inputs`]: the handles that an operation is given, lent or for good.

use std::fmt;

use tfrt_tensor::op::Operands;
use tfrt_tensor::{DenseHostTensor, Tensor};

use crate::TensorHandle;
use crate::handle::Home;
use crate::op::Handles;

/// Handles that an operation is given. Of those that are given for good it may reuse the memory.
pub struct Inputs<'a>(Given<'a>);

enum Given<'a> {
    Lent(&'a [TensorHandle]),
    LentOneByOne(&'a [&'a TensorHandle]),
    Owned(&'a mut [TensorHandle]),
}

/// The only input, which is dense.
pub(crate) enum One<'a> {
    Lent(&'a DenseHostTensor),
    Owned(&'a mut TensorHandle),
}

/// Two inputs.
pub(crate) enum Two<'a> {
    Lent(&'a DenseHostTensor, &'a DenseHostTensor),
    Owned(&'a mut TensorHandle, &'a mut TensorHandle),
}

impl<'a> Inputs<'a> {
    /// Handles that the caller keeps.
    #[inline]
    pub fn lent(handles: &'a [TensorHandle]) -> Self {
        Inputs(Given::Lent(handles))
    }

    /// The same, of handles that don't lie side by side.
    #[inline]
    pub fn lent_one_by_one(handles: &'a [&'a TensorHandle]) -> Self {
        Inputs(Given::LentOneByOne(handles))
    }

    /// Handles that the caller does not need any more: those that an operation has taken no other takes.
    #[inline]
    pub fn owned(handles: &'a mut [TensorHandle]) -> Self {
        Inputs(Given::Owned(handles))
    }

    /// The number of handles.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Given::Lent(handles) => handles.len(),
            Given::LentOneByOne(handles) => handles.len(),
            Given::Owned(handles) => handles.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The handle at `index`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub fn get(&self, index: usize) -> &TensorHandle {
        match &self.0 {
            Given::Lent(handles) => &handles[index],
            Given::LentOneByOne(handles) => handles[index],
            Given::Owned(handles) => &handles[index],
        }
    }

    /// The handle at `index` to be written to, if it was given for good.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut TensorHandle> {
        match &mut self.0 {
            Given::Owned(handles) => handles.get_mut(index),
            _ => None,
        }
    }

    /// Whether all handles belong to one place.
    #[inline(always)]
    pub(crate) fn are_at(&self, home: Home) -> bool {
        match &self.0 {
            Given::Lent(handles) => handles.iter().all(|handle| handle.home() == home),
            Given::LentOneByOne(handles) => handles.iter().all(|handle| handle.home() == home),
            Given::Owned(handles) => handles.iter().all(|handle| handle.home() == home),
        }
    }

    /// The dense tensor that lies in the only handle, and whether it was given for good.
    #[inline(always)]
    pub(crate) fn one(&mut self) -> Option<One<'_>> {
        Some(match &mut self.0 {
            Given::Lent([x]) => One::Lent(x.as_dense()?),
            Given::LentOneByOne([x]) => One::Lent(x.as_dense()?),
            Given::Owned([x]) => One::Owned(x),
            _ => return None,
        })
    }

    /// The two dense tensors that lie in two handles, and whether they were given for good.
    #[inline(always)]
    pub(crate) fn two(&mut self) -> Option<Two<'_>> {
        Some(match &mut self.0 {
            Given::Lent([x, y]) => Two::Lent(x.as_dense()?, y.as_dense()?),
            Given::LentOneByOne([x, y]) => Two::Lent(x.as_dense()?, y.as_dense()?),
            Given::Owned([x, y]) => Two::Owned(x, y),
            _ => return None,
        })
    }

    /// All handles.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &TensorHandle> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The same handles, for another operation.
    pub fn reborrow(&mut self) -> Inputs<'_> {
        Inputs(match &mut self.0 {
            Given::Lent(handles) => Given::Lent(handles),
            Given::LentOneByOne(handles) => Given::LentOneByOne(handles),
            Given::Owned(handles) => Given::Owned(handles),
        })
    }

    /// Handles of one's own: those that were given for good, clones of the others.
    pub fn into_vec<V: FromIterator<TensorHandle>>(self) -> V {
        match self.0 {
            Given::Lent(handles) => handles.iter().cloned().collect(),
            Given::LentOneByOne(handles) => handles.iter().copied().cloned().collect(),
            Given::Owned(handles) => handles.iter_mut().map(TensorHandle::take).collect(),
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

/// What may be given to an operation: arrays and lists of handles for good, slices of them lent.
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
        call(Inputs::lent(self))
    }
}

impl IntoInputs for &Handles {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::lent(self))
    }
}

impl<const N: usize> IntoInputs for &[TensorHandle; N] {
    #[inline]
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::lent(self))
    }
}

impl IntoInputs for &[TensorHandle] {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::lent(self))
    }
}

impl<const N: usize> IntoInputs for [&TensorHandle; N] {
    #[inline]
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::lent_one_by_one(&self))
    }
}

impl IntoInputs for &[&TensorHandle] {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::lent_one_by_one(self))
    }
}

/// No inputs.
impl IntoInputs for () {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(Inputs::lent(&[]))
    }
}

impl IntoInputs for Inputs<'_> {
    fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        call(self)
    }
}
