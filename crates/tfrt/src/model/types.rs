//! The types of a model's inputs and outputs: [`ValueInfo`], [`ValueType`], [`TensorType`], [`Dim`].

use std::fmt;

use tfrt_tensor::{DType, TensorShape};

/// A named input or output.
///
/// # Examples
///
/// ```
/// use tfrt::model::{Dim, TensorType, ValueInfo, ValueType};
/// use tfrt::tensor::DType;
///
/// let dims = vec![Dim::Symbol("N".to_owned()), Dim::Fixed(3)];
/// let image = TensorType { element: Some(DType::F32), dims: Some(dims) };
/// let info = ValueInfo { name: "image".to_owned(), kind: ValueType::Tensor(image) };
/// assert_eq!(info.to_string(), "image: f32 [N, 3]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: ValueType,
}

/// The type of an input or an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A tensor.
    Tensor(TensorType),
    /// Any number of values of a type.
    Sequence(Box<ValueType>),
    /// A value of a type, or nothing.
    Optional(Box<ValueType>),
    /// Values of a type by keys.
    Map(DType, Box<ValueType>),
}

/// The type of a tensor: elements and dimensions, as far as they are known before a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorType {
    /// The type of the elements; `None` if the model does not say.
    pub element: Option<DType>,
    /// The extents, slowest first; `None` if not even their number is known.
    pub dims: Option<Vec<Dim>>,
}

/// One dimension of a tensor type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A number.
    Fixed(usize),
    /// A symbolic dimension: any number, equal wherever the name stands in one call.
    Symbol(String),
    /// Any number.
    Unknown,
}

/// Returns the type of a tensor of which nothing is known.
impl Default for ValueType {
    fn default() -> ValueType {
        ValueType::Tensor(TensorType::default())
    }
}

impl ValueType {
    /// Returns the type of the tensor, if it is one, optional or not.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            ValueType::Tensor(tensor) => Some(tensor),
            ValueType::Optional(inner) => inner.as_tensor(),
            ValueType::Sequence(_) | ValueType::Map(..) => None,
        }
    }
}

impl ValueType {
    /// Returns the dimensions of the tensor; none of another value.
    pub(crate) fn dims(&self) -> &[Dim] {
        match self {
            ValueType::Tensor(tensor) => tensor.dims.as_deref().unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the dimensions of the tensor to be changed; none of another value.
    pub(crate) fn dims_mut(&mut self) -> &mut [Dim] {
        match self {
            ValueType::Tensor(tensor) => tensor.dims.as_deref_mut().unwrap_or_default(),
            _ => &mut [],
        }
    }
}

impl TensorType {
    /// Returns the type of tensors of which nothing else is known.
    pub fn of(element: DType) -> TensorType {
        TensorType {
            element: Some(element),
            dims: None,
        }
    }

    /// Returns the shape, if all extents are known: those that have names are taken from `extent_of`.
    pub fn to_shape(
        &self,
        mut extent_of: impl FnMut(&Dim) -> Option<usize>,
    ) -> Option<TensorShape> {
        let dims = self.dims.as_deref()?.iter();
        let extents = dims.map(|dim| match dim {
            Dim::Fixed(extent) => Some(*extent),
            open => extent_of(open),
        });
        let extents: Option<Vec<usize>> = extents.collect();
        TensorShape::new(&extents?).ok()
    }
}

/// Writes `image: f32 [N, 3]`.
impl fmt::Display for ValueInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.kind)
    }
}

/// Writes `f32 [N, 3]`, `sequence of f32`, `optional f32 [2]`.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Tensor(tensor) => tensor.fmt(f),
            ValueType::Sequence(inner) => write!(f, "sequence of {inner}"),
            ValueType::Optional(inner) => write!(f, "optional {inner}"),
            ValueType::Map(key, value) => write!(f, "map from {key} to {value}"),
        }
    }
}

/// Writes `f32 [N, 3]`; `f32 of any shape`.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => element.fmt(f)?,
            None => f.write_str("tensor")?,
        }
        let Some(dims) = &self.dims else {
            return f.write_str(" of any shape");
        };
        f.write_str(" [")?;
        for (index, dim) in dims.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(extent) => extent.fmt(f),
            Dim::Symbol(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}
