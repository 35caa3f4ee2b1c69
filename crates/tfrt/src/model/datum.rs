//! [`Datum`]: an input or an output of a model.

use tfrt_host::{AnyAsyncValue, Chain, Error};
use tfrt_tensor::{
    DType, DenseHostTensor, Map, Maps, Optional, Sequence, StringHostTensor, Tensor, TensorMetadata,
};

use super::types::{Dim, TensorType, ValueType};
use crate::host_tensor;

/// A value of a model: a tensor, or a sequence, an optional or a map of tensors. Clones share the
/// elements.
///
/// # Examples
///
/// ```
/// use tfrt::Tensor;
/// use tfrt::model::Datum;
///
/// let datum = Datum::from(Tensor::from([1_i64, 2]));
/// assert_eq!(datum.kind().to_string(), "i64 [2]");
/// assert_eq!(Tensor::try_from(datum)?.to_vec::<i64>()?, [1, 2]);
/// # Ok::<(), tfrt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Datum {
    /// A tensor.
    Tensor(Tensor),
    /// Tensors in a row.
    Sequence(Sequence),
    /// A tensor, a sequence, or nothing.
    Optional(Optional),
    /// Values by keys.
    Map(Map),
    /// Maps in a row, such as the scores of a classifier by its labels.
    Maps(Maps),
}

impl Datum {
    /// Returns the tensor, if the value is one or is an optional that holds one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none.
    pub fn as_tensor(&self) -> Result<&Tensor, Error> {
        match self {
            Datum::Tensor(tensor) | Datum::Optional(Optional::Tensor(tensor)) => Ok(tensor),
            other => Err(other.no_tensor()),
        }
    }

    #[cold]
    fn no_tensor(&self) -> Error {
        let found = self.kind();
        Error::invalid_argument(format!("expected a tensor, found {found}"))
    }

    /// Returns the type of the value, with its extents.
    pub fn kind(&self) -> ValueType {
        match self {
            Datum::Tensor(tensor) => Datum::kind_of(tensor.metadata()),
            Datum::Sequence(sequence) => kind_of_sequence(sequence),
            Datum::Optional(optional) => ValueType::Optional(Box::new(match optional {
                Optional::Nothing => ValueType::Tensor(TensorType::default()),
                Optional::Tensor(tensor) => Datum::kind_of(tensor.metadata()),
                Optional::Sequence(sequence) => kind_of_sequence(sequence),
            })),
            Datum::Map(map) => kind_of_map(map.keys(), map.values()),
            Datum::Maps(maps) => {
                ValueType::Sequence(Box::new(kind_of_map(maps.keys(), maps.values())))
            }
        }
    }

    /// Returns the numbers of the value: a tensor, or the rows of values of maps.
    pub fn as_matrix(&self) -> Option<&Tensor> {
        match self {
            Datum::Maps(maps) => Some(maps.values()),
            other => other.as_tensor().ok(),
        }
    }

    /// Returns the type of a tensor.
    pub(super) fn kind_of(metadata: &TensorMetadata) -> ValueType {
        ValueType::Tensor(TensorType {
            element: Some(metadata.dtype),
            dims: Some(metadata.shape.extents().map(Dim::Fixed).collect()),
        })
    }

    /// Returns the value that a register of a program holds.
    pub(super) fn into_value(self) -> AnyAsyncValue {
        match self {
            Datum::Tensor(tensor) => AnyAsyncValue::new(tensor),
            Datum::Sequence(sequence) => AnyAsyncValue::new(sequence),
            Datum::Optional(optional) => AnyAsyncValue::new(optional),
            Datum::Map(map) => AnyAsyncValue::new(map),
            Datum::Maps(maps) => AnyAsyncValue::new(maps),
        }
    }
}

/// Converts the value of a register of a program. A chain is an optional value that is nothing.
impl TryFrom<AnyAsyncValue> for Datum {
    type Error = Error;

    /// # Errors
    ///
    /// Its error; `InvalidArgument` for other values, and for those to come.
    fn try_from(value: AnyAsyncValue) -> Result<Datum, Error> {
        if let Some(error) = value.error() {
            return Err(error.clone());
        }
        // Mostly nobody else has it.
        let value = match value.take::<Tensor>() {
            Ok(tensor) => return Ok(Datum::Tensor(tensor)),
            Err(value) => value,
        };
        let tensor = value.get::<Tensor>().cloned().map(Datum::Tensor);
        let sequence = || value.get::<Sequence>().cloned().map(Datum::Sequence);
        let optional = || value.get::<Optional>().cloned().map(Datum::Optional);
        let map = || value.get::<Map>().cloned().map(Datum::Map);
        let maps = || value.get::<Maps>().cloned().map(Datum::Maps);
        // It says that effects are done, and nothing else.
        let chain = || {
            value
                .get::<Chain>()
                .map(|_| Datum::Optional(Optional::Nothing))
        };
        let others = || optional().or_else(map).or_else(maps).or_else(chain);
        tensor.or_else(sequence).or_else(others).ok_or_else(|| {
            let found = value.type_name().unwrap_or("a value to come");
            let message = format!("a result of a model was expected to be a tensor, found {found}");
            Error::invalid_argument(message)
        })
    }
}

fn kind_of_map(keys: &Tensor, values: &Tensor) -> ValueType {
    let key: DType = keys.metadata().dtype;
    let value = TensorType {
        element: Some(values.metadata().dtype),
        dims: Some(Vec::new()),
    };
    ValueType::Map(key, Box::new(ValueType::Tensor(value)))
}

/// Returns the type that all of them have, with their extents if those are the same.
fn kind_of_sequence(sequence: &Sequence) -> ValueType {
    let mut all = sequence.tensors().iter().map(Tensor::metadata);
    let inner = all.next().map_or_else(TensorType::default, |first| {
        let is_same = all.all(|other| other.shape == first.shape);
        let dims = || first.shape.extents().map(Dim::Fixed).collect();
        TensorType {
            element: Some(first.dtype),
            dims: is_same.then(dims),
        }
    });
    ValueType::Sequence(Box::new(ValueType::Tensor(inner)))
}

impl From<Tensor> for Datum {
    fn from(tensor: Tensor) -> Datum {
        Datum::Tensor(tensor)
    }
}

impl From<host_tensor::Tensor> for Datum {
    fn from(tensor: host_tensor::Tensor) -> Datum {
        Datum::Tensor(tensor.into())
    }
}

impl From<&host_tensor::Tensor> for Datum {
    fn from(tensor: &host_tensor::Tensor) -> Datum {
        Datum::from(tensor.as_inner())
    }
}

/// Takes the tensor, if the value is one or is an optional that holds one.
impl TryFrom<Datum> for host_tensor::Tensor {
    type Error = Error;

    /// # Errors
    ///
    /// `InvalidArgument` if it is none.
    fn try_from(datum: Datum) -> Result<host_tensor::Tensor, Error> {
        match datum {
            Datum::Tensor(tensor) | Datum::Optional(Optional::Tensor(tensor)) => tensor.try_into(),
            other => Err(other.no_tensor()),
        }
    }
}

impl From<&Tensor> for Datum {
    fn from(tensor: &Tensor) -> Datum {
        Datum::Tensor(tensor.clone())
    }
}

impl From<DenseHostTensor> for Datum {
    fn from(tensor: DenseHostTensor) -> Datum {
        Datum::Tensor(tensor.into())
    }
}

impl From<StringHostTensor> for Datum {
    fn from(tensor: StringHostTensor) -> Datum {
        Datum::Tensor(tensor.into())
    }
}

impl From<Sequence> for Datum {
    fn from(sequence: Sequence) -> Datum {
        Datum::Sequence(sequence)
    }
}

impl From<Map> for Datum {
    fn from(map: Map) -> Datum {
        Datum::Map(map)
    }
}

impl From<Maps> for Datum {
    fn from(maps: Maps) -> Datum {
        Datum::Maps(maps)
    }
}

impl From<Optional> for Datum {
    fn from(optional: Optional) -> Datum {
        Datum::Optional(optional)
    }
}
