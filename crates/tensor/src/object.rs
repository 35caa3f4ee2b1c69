//! [`ObjectTensor`]: a tensor whose elements are counted objects: handles of resources, and variants.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tfrt_host::{DType, Error};

use crate::{TensorMetadata, TensorShape};

/// An element of a tensor that is no number: a resource, or a value of a type of its own such as a list of tensors.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// Returns the name of its type, for messages.
    fn type_name(&self) -> &str;
}

/// A tensor on the host whose elements are counted objects. Clones share the objects.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tfrt_tensor::{DType, Object, ObjectTensor, Tensor};
///
/// #[derive(Debug)]
/// struct Name(&'static str);
///
/// impl Object for Name {
///     fn type_name(&self) -> &str {
///         "Name"
///     }
/// }
///
/// let tensor = ObjectTensor::scalar(DType::Variant, Arc::new(Name("w")))?;
/// assert_eq!(tensor.only::<Name>()?.0, "w");
/// let error = Tensor::from(tensor).as_dense().unwrap_err();
/// assert_eq!(error.message(), "expected a DenseHost tensor, found an ObjectHost tensor of variant []");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct ObjectTensor(
    // Behind one address, so that tensors of any format are small.
    Arc<Parts>,
);

struct Parts {
    metadata: TensorMetadata,
    // Invariant: as many as the metadata says.
    cells: Cells,
}

enum Cells {
    /// One: most are scalars, which take one block less.
    One(Arc<dyn Object>),
    Many(Vec<Arc<dyn Object>>),
}

impl ObjectTensor {
    /// Makes a tensor of objects, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a type that is neither `Resource` nor `Variant`, and for a shape that has another number of
    /// elements.
    pub fn new(
        dtype: DType,
        shape: TensorShape,
        cells: Vec<Arc<dyn Object>>,
    ) -> Result<ObjectTensor, Error> {
        let metadata = TensorMetadata::new(expect_of_objects(dtype)?, shape);
        metadata.expect_elements(cells.len())?;
        let cells = Cells::Many(cells);
        Ok(ObjectTensor(Arc::new(Parts { metadata, cells })))
    }

    /// Makes a tensor without dimensions.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a type that is neither `Resource` nor `Variant`.
    pub fn scalar(dtype: DType, object: Arc<dyn Object>) -> Result<ObjectTensor, Error> {
        let metadata = TensorMetadata::new(expect_of_objects(dtype)?, TensorShape::SCALAR);
        let cells = Cells::One(object);
        Ok(ObjectTensor(Arc::new(Parts { metadata, cells })))
    }

    /// Type and shape.
    #[inline]
    pub fn metadata(&self) -> &TensorMetadata {
        &self.0.metadata
    }

    /// Returns the elements, in row-major order.
    #[inline]
    pub fn cells(&self) -> &[Arc<dyn Object>] {
        match &self.0.cells {
            Cells::One(cell) => std::slice::from_ref(cell),
            Cells::Many(cells) => cells,
        }
    }

    /// Returns the only element, which is a `T`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is not one element, or if it is of another type.
    #[inline]
    pub fn only<T: Object>(&self) -> Result<&T, Error> {
        if let [cell] = self.cells()
            && let Some(found) = (&**cell as &dyn Any).downcast_ref::<T>()
        {
            return Ok(found);
        }
        Err(self.is_not(std::any::type_name::<T>()))
    }

    /// Takes the only element out, if it is a `T` and nobody else holds it.
    ///
    /// # Errors
    ///
    /// Gives the tensor back.
    pub fn into_sole<T: Object>(mut self) -> Result<T, ObjectTensor> {
        let is_sole = Arc::get_mut(&mut self.0).is_some_and(|parts| match &mut parts.cells {
            Cells::One(cell) => Arc::get_mut(cell).is_some_and(|cell| (cell as &dyn Any).is::<T>()),
            Cells::Many(_) => false,
        });
        if !is_sole {
            return Err(self);
        }
        let parts = Arc::into_inner(self.0).expect("it was found to be the only handle");
        let Cells::One(cell) = parts.cells else {
            unreachable!("it was found to be one");
        };
        let cell: Arc<dyn Any + Send + Sync> = cell;
        let cell = cell.downcast::<T>().ok().and_then(Arc::into_inner);
        Ok(cell.expect("it was found to be the only handle of a `T`"))
    }

    #[cold]
    fn is_not(&self, wanted: &str) -> Error {
        let wanted = wanted.rsplit("::").next().unwrap_or(wanted);
        let metadata = self.metadata();
        Error::invalid_argument(match self.cells() {
            [cell] => format!(
                "expected a tensor that holds a {wanted}, found one that holds a {}",
                cell.type_name()
            ),
            _ => format!("expected a tensor that holds one {wanted}, found one of {metadata}"),
        })
    }
}

fn expect_of_objects(dtype: DType) -> Result<DType, Error> {
    match dtype {
        DType::Resource | DType::Variant => Ok(dtype),
        found => Err(Error::invalid_argument(format!(
            "objects are of type resource or variant, found {found}"
        ))),
    }
}

/// Prints the objects.
impl fmt::Display for ObjectTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorMetadata { dtype, shape } = self.metadata();
        let cells = self.cells();
        write!(
            f,
            "ObjectTensor dtype = {dtype}, shape = {shape}, values = {cells:?}"
        )
    }
}

impl fmt::Debug for ObjectTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
