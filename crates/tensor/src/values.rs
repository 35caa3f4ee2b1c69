//! [`Sequence`], [`Map`], [`Maps`], [`Optional`], [`NoValue`]: values of models beside single tensors.

use std::sync::Arc;

use tfrt_host::memory::MemoryReservation;
use tfrt_host::{DType, Error, Heap, InPlace, Value};

use crate::Tensor;

/// A list of tensors. Clones share them.
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
pub struct Sequence {
    tensors: Arc<Vec<Tensor>>,
    /// Reservation of memory for the tensors, where there is a limit.
    _aside: Option<Arc<MemoryReservation>>,
}

impl Sequence {
    /// Memory of a tensor of a sequence beside its elements: its value, its shape, its place in lists.
    pub const BYTES_PER_TENSOR: usize = 512;

    /// Returns a sequence of tensors with the memory that was reserved for it: [`BYTES_PER_TENSOR`] of each, as long
    /// as there is the sequence.
    ///
    /// [`BYTES_PER_TENSOR`]: Self::BYTES_PER_TENSOR
    pub fn set_aside(tensors: Vec<Tensor>, aside: MemoryReservation) -> Sequence {
        Sequence {
            tensors: Arc::new(tensors),
            _aside: Some(Arc::new(aside)),
        }
    }

    /// Returns the tensors.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns the tensors, and drops the rest of the sequence.
    pub fn into_tensors(self) -> Vec<Tensor> {
        Arc::unwrap_or_clone(self.tensors)
    }
}

/// Tensors that no limit on memory counts.
impl From<Vec<Tensor>> for Sequence {
    fn from(tensors: Vec<Tensor>) -> Sequence {
        Sequence {
            tensors: Arc::new(tensors),
            _aside: None,
        }
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

/// Placeholder for an operand that is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoValue;

impl Value for NoValue {
    const NAME: &'static str = "!t.none";
    type Storage = InPlace;
}

/// A map: keys and values are tensors of one dimension and of as many elements. Clones share them.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{Map, ScalarHostTensor, StringHostTensor, TensorShape};
///
/// let shape = TensorShape::new(&[2])?;
/// let keys = StringHostTensor::new(shape.clone(), vec![b"a".to_vec(), b"b".to_vec()])?;
/// let map = Map::new(keys.into(), ScalarHostTensor::new(shape, 1.5_f32).into())?;
/// assert_eq!(map.len(), 2);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Map(
    // Invariant: both of one dimension, of the same extent; keys are strings or integers.
    Arc<KeysAndValues>,
);

#[derive(Debug)]
struct KeysAndValues {
    keys: Tensor,
    values: Tensor,
}

impl Map {
    /// Returns a map.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many keys as values, in one dimension each, or keys are no strings or
    /// integers.
    pub fn new(keys: Tensor, values: Tensor) -> Result<Map, Error> {
        let n_keys = n_keys(&keys)?;
        let shape = &values.metadata().shape;
        if shape.to_dims()[..] != [n_keys] {
            let message = format!("expected {n_keys} values for as many keys, found shape {shape}");
            return Err(Error::invalid_argument(message));
        }
        Ok(Map(Arc::new(KeysAndValues { keys, values })))
    }

    /// Returns the keys, in any order.
    pub fn keys(&self) -> &Tensor {
        &self.0.keys
    }

    /// Returns the values, in the order of the keys.
    pub fn values(&self) -> &Tensor {
        &self.0.values
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.keys.metadata().shape.n_elements().unwrap_or(0)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Value for Map {
    const NAME: &'static str = "!t.map";
    type Storage = Heap;
}

/// A list of maps with the same keys: the values are the rows of a matrix. Clones share them.
#[derive(Clone, Debug)]
pub struct Maps(
    // Invariant: keys as those of a map; values of two dimensions, the second as many as keys.
    Arc<KeysAndValues>,
);

impl Maps {
    /// Returns a map for each row of values, `[maps, keys]`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many columns as keys, or keys are no strings or integers.
    pub fn new(keys: Tensor, values: Tensor) -> Result<Maps, Error> {
        let n_keys = n_keys(&keys)?;
        let shape = &values.metadata().shape;
        if !matches!(shape.to_dims()[..], [_, n] if n == n_keys) {
            let message = format!("expected rows of {n_keys} values, found shape {shape}");
            return Err(Error::invalid_argument(message));
        }
        Ok(Maps(Arc::new(KeysAndValues { keys, values })))
    }

    /// Returns the keys of all maps.
    pub fn keys(&self) -> &Tensor {
        &self.0.keys
    }

    /// Returns the values: a row for each map, in the order of the keys.
    pub fn values(&self) -> &Tensor {
        &self.0.values
    }

    /// Returns the number of maps.
    pub fn len(&self) -> usize {
        self.0.values.metadata().shape.to_dims()[0]
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Value for Maps {
    const NAME: &'static str = "!t.maps";
    type Storage = Heap;
}

fn n_keys(keys: &Tensor) -> Result<usize, Error> {
    let metadata = keys.metadata();
    match metadata.shape.to_dims()[..] {
        [n] if metadata.dtype == DType::String || metadata.dtype.is_integer() => Ok(n),
        _ => Err(Error::invalid_argument(format!(
            "expected strings or integers in one dimension for keys, found {metadata}"
        ))),
    }
}
