//! [`OpInputs`]: the tensors that an operation is called with, borrowed or owned.

use tfrt_corert::{Inputs, TensorHandle};

use super::{Eager, Handle};

/// The input tensors of an operation: a slice of references is borrowed; an array or a list is owned, so that the
/// operation may write its result over a tensor that nobody else holds.
pub struct OpInputs<'a>(Tensors<'a>);

enum Tensors<'a> {
    Lent(&'a [&'a Handle]),
    Owned(Vec<Handle>),
}

impl<'a> From<&'a [&'a Handle]> for OpInputs<'a> {
    fn from(tensors: &'a [&'a Handle]) -> Self {
        OpInputs(Tensors::Lent(tensors))
    }
}

impl<'a, const N: usize> From<&'a [&'a Handle; N]> for OpInputs<'a> {
    fn from(tensors: &'a [&'a Handle; N]) -> Self {
        OpInputs(Tensors::Lent(tensors))
    }
}

impl<const N: usize> From<[Handle; N]> for OpInputs<'_> {
    fn from(tensors: [Handle; N]) -> Self {
        OpInputs(Tensors::Owned(tensors.into()))
    }
}

impl From<Vec<Handle>> for OpInputs<'_> {
    fn from(tensors: Vec<Handle>) -> Self {
        OpInputs(Tensors::Owned(tensors))
    }
}

impl OpInputs<'_> {
    /// Returns the `Eager` that the operation is called with: `eager`, or the recording of one of the tensors.
    pub(super) fn place(&self, eager: &Eager) -> Eager {
        let found = match &self.0 {
            Tensors::Lent(tensors) => tensors
                .iter()
                .fold(eager, |eager, tensor| eager.or_recording(tensor.eager())),
            Tensors::Owned(tensors) => tensors
                .iter()
                .fold(eager, |eager, tensor| eager.or_recording(tensor.eager())),
        };
        found.clone()
    }

    /// Calls `call` with the tensors.
    pub(super) fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        match self.0 {
            Tensors::Lent(tensors) => {
                let handles: Vec<&TensorHandle> =
                    tensors.iter().map(|tensor| tensor.handle()).collect();
                call(Inputs::borrowed_each(&handles))
            }
            Tensors::Owned(tensors) => {
                let mut handles: Vec<TensorHandle> =
                    tensors.into_iter().map(Handle::into_handle).collect();
                call(Inputs::owned(&mut handles))
            }
        }
    }
}
