//! [`Given`]: the tensors that an operation is given, lent or for good.

use tfrt_corert::{Inputs, TensorHandle};

use super::{Eager, Handle};

/// Tensors that an operation is given: a slice of references is lent, an array or a list is given for good, so that the
/// operation may write its result over one that nobody else holds.
pub struct Given<'a>(Tensors<'a>);

enum Tensors<'a> {
    Lent(&'a [&'a Handle]),
    Owned(Vec<Handle>),
}

impl<'a> From<&'a [&'a Handle]> for Given<'a> {
    fn from(tensors: &'a [&'a Handle]) -> Self {
        Given(Tensors::Lent(tensors))
    }
}

impl<'a, const N: usize> From<&'a [&'a Handle; N]> for Given<'a> {
    fn from(tensors: &'a [&'a Handle; N]) -> Self {
        Given(Tensors::Lent(tensors))
    }
}

impl<const N: usize> From<[Handle; N]> for Given<'_> {
    fn from(tensors: [Handle; N]) -> Self {
        Given(Tensors::Owned(tensors.into()))
    }
}

impl From<Vec<Handle>> for Given<'_> {
    fn from(tensors: Vec<Handle>) -> Self {
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
