//! Conversions between tensors and arrays of the crate `ndarray`.

use ndarray::{Array, ArrayD, ArrayViewD, Dimension, IxDyn};
use tfrt_host::Error;
use tfrt_tensor::{Element, TensorShape};

use super::{OwnedView, Tensor, View};

/// Takes the elements over without a copy if they are in row-major order and the array is no part of a larger one; else
/// they are put in order.
///
/// # Examples
///
/// ```
/// use ndarray::array;
/// use tfrt::Tensor;
///
/// let tensor = Tensor::try_from(array![[1.0_f32, 2.0], [3.0, 4.0]])?;
/// assert_eq!(tensor.view::<f32>()?.to_ndarray()?, array![[1.0, 2.0], [3.0, 4.0]].into_dyn());
/// assert_eq!(tensor.view_owned::<f32>()?.to_ndarray()?[[1, 0]], 3.0);
/// # Ok::<(), tfrt::Error>(())
/// ```
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Error;

    /// # Errors
    ///
    /// `InvalidArgument` for more dimensions than a tensor has.
    fn try_from(array: Array<T, D>) -> Result<Tensor, Error> {
        let extents = array.shape().to_vec();
        if array.is_standard_layout() {
            let (elements, offset) = array.into_raw_vec_and_offset();
            let n_elements: usize = extents.iter().product();
            // What lies before or behind is of the array that this one was cut from.
            return match offset.unwrap_or(0) {
                0 if elements.len() == n_elements => Tensor::from_vec(&extents, elements),
                offset => Tensor::from_slice(&extents, &elements[offset..offset + n_elements]),
            };
        }
        let elements: Vec<T> = array.iter().copied().collect();
        Tensor::from_vec(&extents, elements)
    }
}

impl<T: Element> View<'_, T> {
    /// Sees the elements as an array of `ndarray`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a shape that such an array can't have.
    pub fn to_ndarray(&self) -> Result<ArrayViewD<'_, T>, Error> {
        seen(self.shape(), self)
    }
}

impl<T: Element> OwnedView<T> {
    /// Sees the elements as an array of `ndarray`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a shape that such an array can't have.
    pub fn to_ndarray(&self) -> Result<ArrayViewD<'_, T>, Error> {
        seen(self.shape(), self)
    }
}

/// Returns elements in row-major order as an array of this shape.
fn seen<'t, T>(shape: &TensorShape, elements: &'t [T]) -> Result<ArrayViewD<'t, T>, Error> {
    let array = ArrayViewD::from_shape(IxDyn(&shape.to_dims()), elements);
    array.map_err(|error| Error::invalid_argument(error.to_string()))
}

/// Copies the elements into an array.
impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
    type Error = Error;

    /// # Errors
    ///
    /// `InvalidArgument` if the elements are no `T`s, or for a shape that such an array can't have; `FailedPrecondition` if a
    /// kernel is writing them.
    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>, Error> {
        Ok(tensor.view::<T>()?.to_ndarray()?.to_owned())
    }
}
