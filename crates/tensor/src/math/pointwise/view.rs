//! [`Elements`], [`ElementsMut`]: elements whose type is known when the program runs.

use crate::{
    DType, DenseReading, DenseWriting, Dims, Element, ScalarHostTensor, TensorView, TensorViewMut,
    to_bytes, to_bytes_mut,
};

/// A [`TensorView`] whose type of elements is only known at run time: a shape, and a stride in each dimension.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    dtype: DType,
    // Invariant: whole elements of that type, where these may lie, and each that the extents and strides lead to.
    bytes: &'a [u8],
    extents: Dims,
    strides: Dims,
}

impl<'a> Elements<'a> {
    /// Returns the elements of a dense tensor.
    pub fn of_dense(reading: &'a DenseReading<'_>) -> Elements<'a> {
        let metadata = reading.metadata();
        Elements {
            dtype: metadata.dtype,
            bytes: reading.bytes(),
            extents: metadata.shape.to_dims(),
            strides: metadata.shape.strides(),
        }
    }

    /// Returns the elements of a tensor that are all the same.
    pub fn of_scalar(scalar: &'a ScalarHostTensor) -> Elements<'a> {
        let extents = scalar.metadata().shape.to_dims();
        Elements {
            dtype: scalar.dtype(),
            bytes: scalar.element_bytes(),
            strides: Dims::from_elem(0, extents.len()),
            extents,
        }
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the extents, outermost first.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a, T: Element> From<&TensorView<'a, T>> for Elements<'a> {
    fn from(view: &TensorView<'a, T>) -> Self {
        Elements {
            dtype: T::DTYPE,
            bytes: to_bytes(view.elements()),
            extents: Dims::from_slice(view.extents()),
            strides: Dims::from_slice(view.strides()),
        }
    }
}

/// A [`TensorViewMut`] whose type of elements is only known at run time: elements in row-major order, to be written.
#[derive(Debug)]
pub struct ElementsMut<'a> {
    dtype: DType,
    // Invariant: as many elements of that type as the extents say, where these may lie.
    bytes: &'a mut [u8],
    extents: Dims,
}

impl<'a> ElementsMut<'a> {
    /// Returns the elements of a dense tensor.
    pub fn of_dense(writing: &'a mut DenseWriting<'_>) -> ElementsMut<'a> {
        let metadata = writing.metadata();
        ElementsMut {
            dtype: metadata.dtype,
            extents: metadata.shape.to_dims(),
            bytes: writing.bytes_mut(),
        }
    }

    /// Returns the only element of a tensor without dimensions.
    pub(super) fn of_one(dtype: DType, bytes: &'a mut [u8]) -> ElementsMut<'a> {
        ElementsMut {
            dtype,
            bytes,
            extents: Dims::new(),
        }
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the extents, outermost first.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    pub(super) fn into_bytes(self) -> &'a mut [u8] {
        self.bytes
    }
}

impl<'a, T: Element> From<TensorViewMut<'a, T>> for ElementsMut<'a> {
    fn from(view: TensorViewMut<'a, T>) -> Self {
        let extents = Dims::from_slice(view.extents());
        ElementsMut {
            dtype: T::DTYPE,
            bytes: to_bytes_mut(view.into_mut_slice()),
            extents,
        }
    }
}

impl<'a, T: Element> From<&'a mut TensorViewMut<'_, T>> for ElementsMut<'a> {
    fn from(view: &'a mut TensorViewMut<'_, T>) -> Self {
        let extents = Dims::from_slice(view.extents());
        ElementsMut {
            dtype: T::DTYPE,
            bytes: to_bytes_mut(view.as_mut_slice()),
            extents,
        }
    }
}
