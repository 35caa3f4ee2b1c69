//! [`Given`]: the tensors that an operation is given, lent or for good.

use tfrt_corert::{Inputs, TensorHandle};

use super::{Eager, Tensor};

/// Tensors that an operation is given: a slice of references is lent, an array or a list is given for good, so that the
/// operation may write its result over one that nobody else holds.
pub struct Given<'a>(Tensors<'a>);

enum Tensors<'a> {
    Lent(&'a [&'a Tensor]),
    Owned(Vec<Tensor>),
}

impl<'a> From<&'a [&'a Tensor]> for Given<'a> {
    fn from(tensors: &'a [&'a Tensor]) -> Self {
        Given(Tensors::Lent(tensors))
    }
}

impl<'a, const N: usize> From<&'a [&'a Tensor; N]> for Given<'a> {
    fn from(tensors: &'a [&'a Tensor; N]) -> Self {
        Given(Tensors::Lent(tensors))
    }
}

impl<const N: usize> From<[Tensor; N]> for Given<'_> {
    fn from(tensors: [Tensor; N]) -> Self {
        Given(Tensors::Owned(tensors.into()))
    }
}

impl From<Vec<Tensor>> for Given<'_> {
    fn from(tensors: Vec<Tensor>) -> Self {
        Given(Tensors::Owned(tensors))
    }
}

impl Given<'_> {
    /// Where the operation is called: at `eager`, or where one of the tensors is recorded.
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

    /// Hands the tensors to `call`.
    pub(super) fn with<R>(self, call: impl FnOnce(Inputs<'_>) -> R) -> R {
        match self.0 {
            Tensors::Lent(tensors) => {
                let handles: Vec<&TensorHandle> =
                    tensors.iter().map(|tensor| tensor.handle()).collect();
                call(Inputs::lent_one_by_one(&handles))
            }
            Tensors::Owned(tensors) => {
                let mut handles: Vec<TensorHandle> =
                    tensors.into_iter().map(Tensor::into_handle).collect();
                call(Inputs::owned(&mut handles))
            }
        }
    }
}
