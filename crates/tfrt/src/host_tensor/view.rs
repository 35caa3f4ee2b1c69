//! [`View`]: the elements of a [`Tensor`](super::Tensor), lent for reading.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Index, Range, RangeFrom, RangeFull, RangeTo};

use tfrt_host::Error;
use tfrt_tensor::{DenseHostTensor, DenseReading, Element, TensorShape, TensorView};

/// The elements of a tensor: a slice in row-major order, which knows its shape. Nobody writes them while it is there.
///
/// # Examples
///
/// ```
/// use tfrt::Tensor;
///
/// let x = Tensor::from_slice(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let view = x.view::<i32>()?;
/// assert_eq!(view[4], 5);
/// assert_eq!(view[[1, 1]], 5);
/// assert_eq!(view.get_at(&[2, 0]), None);
/// assert_eq!(view.to_view()?.permute(&[1, 0])?.iter().collect::<Vec<_>>(), [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), tfrt::Error>(())
/// ```
pub struct View<'t, T> {
    // Invariant: of `T`s.
    reading: DenseReading<'t>,
    shape: &'t TensorShape,
    elements: PhantomData<&'t [T]>,
}

impl<'t, T: Element> View<'t, T> {
    pub(super) fn new(tensor: &'t DenseHostTensor) -> Result<Self, Error> {
        let reading = tensor.read()?;
        reading.elements::<T>()?;
        Ok(View {
            reading,
            shape: tensor.shape(),
            elements: PhantomData,
        })
    }

    /// Returns the extents.
    pub fn shape(&self) -> &TensorShape {
        self.shape
    }

    /// Returns the element at these coordinates, outermost first, if there is one.
    pub fn get_at(&self, coordinates: &[usize]) -> Option<T> {
        let index = self.index_of(coordinates)?;
        self.get(index).copied()
    }

    /// Returns the elements as a view with strides, which can be transposed and cut.
    ///
    /// # Errors
    ///
    /// None that is expected: the shape has as many elements.
    pub fn to_view(&self) -> Result<TensorView<'_, T>, Error> {
        self.reading.view()
    }

    /// Returns the index of an element among all.
    fn index_of(&self, coordinates: &[usize]) -> Option<usize> {
        if coordinates.len() != self.shape.rank() {
            return None;
        }
        let pairs = coordinates.iter().zip(self.shape.extents());
        pairs.into_iter().try_fold(0, |index, (&at, extent)| {
            (at < extent).then_some(index * extent + at)
        })
    }
}

impl<T: Element> Deref for View<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let elements = self.reading.elements();
        elements.expect("they were `T`s when the view was made")
    }
}

/// Repeats `impl Index<usize> for View { type Output = T; .. }` over what slices are indexed by.
macro_rules! indexed_by {
    ($($index:ty => $output:ty),*) => {$(
        impl<T: Element> Index<$index> for View<'_, T> {
            type Output = $output;

            fn index(&self, index: $index) -> &$output {
                &(**self)[index]
            }
        }
    )*};
}

indexed_by!(usize => T, Range<usize> => [T], RangeFrom<usize> => [T], RangeTo<usize> => [T], RangeFull => [T]);

impl<T: Element, const RANK: usize> Index<[usize; RANK]> for View<'_, T> {
    type Output = T;

    /// Returns the element at these coordinates, outermost first.
    ///
    /// # Panics
    ///
    /// If there is none.
    fn index(&self, coordinates: [usize; RANK]) -> &T {
        match self.index_of(&coordinates) {
            Some(index) => &self[index],
            None => panic!("{coordinates:?} is not in a tensor of shape {}", self.shape),
        }
    }
}

impl<T: Element> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("shape", self.shape)
            .field("elements", &&**self)
            .finish()
    }
}
