//! [`TensorList`]: tensors of one type in a row, as one value.

use std::fmt;
use std::sync::Arc;

use tfrt_host::{DType, Error};

use crate::{Object, ObjectTensor, PartialTensorShape, Tensor, TensorShape};

/// Tensors of one type, and of extents that fit one partial shape, as the element of a tensor of type `variant`. A value:
/// a list that was changed is another one, which shares the tensors.
#[derive(Clone)]
pub struct TensorList {
    /// The type of the tensors' elements.
    pub dtype: DType,
    /// Known extents of all tensors.
    pub shape: PartialTensorShape,
    /// The greatest number of tensors, if there is one.
    pub max_len: Option<usize>,
    /// The tensors; `None` for one that was reserved and is not set.
    pub elements: Vec<Option<Tensor>>,
}

impl TensorList {
    /// Returns a list without tensors.
    pub fn new(dtype: DType, shape: PartialTensorShape) -> TensorList {
        TensorList {
            dtype,
            shape,
            max_len: None,
            elements: Vec::new(),
        }
    }

    /// Returns a tensor without dimensions that holds the list.
    pub fn into_tensor(self) -> Tensor {
        let tensor = ObjectTensor::scalar(DType::Variant, Arc::new(self));
        tensor.expect("variant is a type of objects").into()
    }

    /// Returns the list that a tensor holds.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it holds something else.
    pub fn of(tensor: &Tensor) -> Result<&TensorList, Error> {
        tensor.as_object()?.only()
    }

    /// Takes the list out of a tensor: itself if nobody else holds it, else a copy, which shares the tensors.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it holds something else.
    pub fn take(tensor: Tensor) -> Result<TensorList, Error> {
        TensorList::of(&tensor)?;
        let Tensor::Object(object) = tensor else {
            return Err(Error::internal("a list is an object"));
        };
        match object.into_sole::<TensorList>() {
            Ok(list) => Ok(list),
            Err(shared) => shared.only::<TensorList>().cloned(),
        }
    }

    /// Returns the tensor at an index.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not so many; `verb` is what was to be done with it.
    pub fn index(&self, index: i64, verb: &str) -> Result<usize, Error> {
        let n = self.elements.len();
        let found = usize::try_from(index).ok().filter(|index| *index < n);
        found.ok_or_else(|| {
            Error::invalid_argument(format!(
                "Trying to {verb} element {index} in a list with {n} elements."
            ))
        })
    }

    /// Checks that a tensor can be one of the list.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another type, or of extents that don't fit; `verb` is what was to be done with it.
    pub fn expect_fits(&self, tensor: &Tensor, verb: &str) -> Result<(), Error> {
        self.expect_type(tensor.metadata().dtype)?;
        let shape = &tensor.metadata().shape;
        match fits(&self.shape, shape) {
            true => Ok(()),
            false => Err(Error::invalid_argument(format!(
                "Tried to {verb} a tensor with incompatible shape to a list. Op element shape: {shape} list shape: {}",
                self.shape
            ))),
        }
    }

    /// Checks the type that an operation states.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is another.
    pub fn expect_type(&self, dtype: DType) -> Result<(), Error> {
        match dtype == self.dtype {
            true => Ok(()),
            false => Err(Error::invalid_argument(format!(
                "Invalid data types; op elements {dtype} but list elements {}",
                self.dtype
            ))),
        }
    }

    /// Adds a tensor at the end.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the list is full.
    pub fn push(&mut self, tensor: Option<Tensor>) -> Result<(), Error> {
        let n = self.elements.len();
        if let Some(max) = self.max_len.filter(|max| n >= *max) {
            return Err(Error::invalid_argument(format!(
                "Tried to push item into a full list list size: {n} max_num_elements: {max}"
            )));
        }
        self.elements.push(tensor);
        Ok(())
    }

    /// Returns what is known of the extents of a tensor of the list, and by those that are set.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if two say different things.
    pub fn known_shape(&self, stated: &PartialTensorShape) -> Result<PartialTensorShape, Error> {
        let mut shape = merged(&self.shape, stated)?;
        for tensor in self.elements.iter().flatten() {
            shape = merged(&shape, &of_shape(&tensor.metadata().shape)?)?;
        }
        Ok(shape)
    }
}

/// Returns whether a shape is one of those that a partial shape stands for.
pub fn fits(partial: &PartialTensorShape, shape: &TensorShape) -> bool {
    partial.extents().is_none_or(|extents| {
        extents.len() == shape.rank()
            && extents
                .zip(shape.extents())
                .all(|(known, own)| known.is_none_or(|known| known == own as u64))
    })
}

/// Returns the partial shape of which everything is known.
///
/// # Errors
///
/// `InvalidArgument` for an extent above the largest 64-bit integer.
pub fn of_shape(shape: &TensorShape) -> Result<PartialTensorShape, Error> {
    let extents: Result<Vec<i64>, _> = shape.extents().map(i64::try_from).collect();
    let extents = extents
        .map_err(|_| Error::invalid_argument("an extent exceeds the largest 64-bit integer"))?;
    PartialTensorShape::from_i64(&extents)
}

/// Returns what two partial shapes say together.
///
/// # Errors
///
/// `InvalidArgument` if they say different things.
pub fn merged(
    one: &PartialTensorShape,
    other: &PartialTensorShape,
) -> Result<PartialTensorShape, Error> {
    let (Some(own), Some(others)) = (one.extents(), other.extents()) else {
        return Ok(if one.extents().is_some() { one } else { other }.clone());
    };
    let differ = || {
        Error::invalid_argument(format!(
            "Tried to merge incompatible shapes {one} and {other}"
        ))
    };
    if own.len() != others.len() {
        return Err(differ());
    }
    let mut extents = Vec::with_capacity(own.len());
    for pair in own.zip(others) {
        let extent = match pair {
            (Some(own), Some(other)) if own != other => return Err(differ()),
            (Some(known), _) | (None, Some(known)) => i64::try_from(known).unwrap_or(i64::MAX),
            (None, None) => PartialTensorShape::UNKNOWN,
        };
        extents.push(extent);
    }
    PartialTensorShape::from_i64(&extents)
}

impl Object for TensorList {
    fn type_name(&self) -> &str {
        "TensorList"
    }
}

impl fmt::Debug for TensorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.elements.len();
        write!(f, "TensorList({n} of {} {})", self.dtype, self.shape)
    }
}
