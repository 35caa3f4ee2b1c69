//! [`Sequence`], [`Optional`], [`NoValue`]: what registers hold beside single tensors.

use std::sync::Arc;

use tfrt_host::{Heap, InPlace, Value};

use crate::Tensor;

/// Tensors in a row. Clones share them.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{ScalarHostTensor, Sequence, Tensor, TensorShape};
///
/// let tensor = Tensor::from(ScalarHostTensor::new(TensorShape::new(&[2])?, 1.5_f32));
/// let sequence = Sequence::from(vec![tensor]);
/// assert_eq!(sequence.tensors().len(), 1);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sequence(Arc<Vec<Tensor>>);

impl Sequence {
    /// The tensors.
    pub fn tensors(&self) -> &[Tensor] {
        &self.0
    }

    /// Lets go of the sequence but for its tensors.
    pub fn into_tensors(self) -> Vec<Tensor> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl From<Vec<Tensor>> for Sequence {
    fn from(tensors: Vec<Tensor>) -> Sequence {
        Sequence(Arc::new(tensors))
    }
}

impl Value for Sequence {
    const NAME: &'static str = "!t.sequence";
    type Storage = Heap;
}

/// A tensor, a sequence, or neither.
#[derive(Clone, Debug, Default)]
pub enum Optional {
    /// Neither.
    #[default]
    Nothing,
    /// A tensor.
    Tensor(Tensor),
    /// A sequence.
    Sequence(Sequence),
}

impl Value for Optional {
    const NAME: &'static str = "!t.optional";
    type Storage = Heap;
}

/// What stands for an operand that is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoValue;

impl Value for NoValue {
    const NAME: &'static str = "!t.none";
    type Storage = InPlace;
}
