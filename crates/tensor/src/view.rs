//! [`TensorView`], [`TensorViewMut`]: typed windows on elements, with a stride in each dimension.

use tfrt_host::Error;

use crate::{Dims, Element, TensorShape};

/// A strided view of elements in a slice.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::TensorView;
///
/// let elements = [1, 2, 3, 4, 5, 6];
/// let matrix = TensorView::new(&elements, &[2, 3])?;
/// let transposed = matrix.permute(&[1, 0])?;
/// assert_eq!(transposed.get(&[2, 0]), Some(3));
/// assert_eq!(transposed.iter().collect::<Vec<_>>(), [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorView<'a, T> {
    // Invariant: `elements` has each index that the extents and strides lead to.
    elements: &'a [T],
    extents: Dims,
    strides: Dims,
}

impl<'a, T: Element> TensorView<'a, T> {
    /// Wraps a slice as a tensor in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the slice does not have as many elements as the extents say.
    pub fn new(elements: &'a [T], extents: &[usize]) -> Result<Self, Error> {
        let shape = TensorShape::new(extents)?;
        if shape.n_elements() != Some(elements.len()) {
            let message = format!(
                "{} elements are not a tensor of shape {shape}",
                elements.len()
            );
            return Err(Error::invalid_argument(message));
        }
        Ok(TensorView {
            elements,
            strides: shape.strides(),
            extents: shape.to_dims(),
        })
    }

    /// Wraps elements of a slice with the given strides.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if that leads out of the slice, or if the lists are not of one length.
    pub fn strided(elements: &'a [T], extents: &[usize], strides: &[usize]) -> Result<Self, Error> {
        let is_empty = extents.contains(&0);
        let last = extents
            .iter()
            .zip(strides)
            .try_fold(0_usize, |last, (extent, stride)| {
                last.checked_add(extent.saturating_sub(1).checked_mul(*stride)?)
            });
        let is_within = is_empty || last.is_some_and(|last| last < elements.len());
        if extents.len() != strides.len() || !is_within {
            let message = format!(
                "a view with extents {extents:?} and strides {strides:?} leads out of {} elements",
                elements.len()
            );
            return Err(Error::invalid_argument(message));
        }
        Ok(TensorView {
            elements,
            extents: Dims::from_slice(extents),
            strides: Dims::from_slice(strides),
        })
    }

    /// Returns the extents, outermost first.
    #[inline]
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the distances between neighbours, in elements.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// Returns the number of elements.
    pub fn n_elements(&self) -> usize {
        // The elements are there, or strides are 0; then the product was checked when the shape was
        // made, or is what somebody broadcasts to.
        self.extents
            .iter()
            .fold(1, |product, extent| product.saturating_mul(*extent))
    }

    /// Returns all elements in row-major order, if they are contiguous.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let mut stride = 1_usize;
        if self.extents.contains(&0) {
            return Some(&[]);
        }
        for (extent, own) in self.extents.iter().zip(&self.strides).rev() {
            if *extent != 1 && *own != stride {
                return None;
            }
            stride = stride.checked_mul(*extent)?;
        }
        self.elements.get(..stride)
    }

    /// Returns the elements from the first of the view on, for whoever walks by strides.
    #[inline]
    pub fn elements(&self) -> &'a [T] {
        self.elements
    }

    /// Returns the element at these coordinates, if there is one.
    #[inline]
    pub fn get(&self, coordinates: &[usize]) -> Option<T> {
        let offset = offset(&self.extents, &self.strides, coordinates)?;
        self.elements.get(offset).copied()
    }

    /// Returns a view with permuted dimensions: dimension `i` of the result is `order[i]` of this view.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `order` does not name each dimension once.
    pub fn permute(&self, order: &[usize]) -> Result<Self, Error> {
        let mut seen = Dims::from_elem(0, self.rank());
        for dimension in order {
            if let Some(count) = seen.get_mut(*dimension) {
                *count += 1;
            }
        }
        if order.len() != self.rank() || seen.iter().any(|count| *count != 1) {
            let rank = self.rank();
            let message = format!("{order:?} does not name each of {rank} dimensions once");
            return Err(Error::invalid_argument(message));
        }
        Ok(TensorView {
            elements: self.elements,
            extents: order
                .iter()
                .map(|dimension| self.extents[*dimension])
                .collect(),
            strides: order
                .iter()
                .map(|dimension| self.strides[*dimension])
                .collect(),
        })
    }

    /// Returns a view with larger extents: dimensions of extent 1, and missing ones in front, are repeated.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if another extent differs, or if `extents` are fewer.
    pub fn broadcast(&self, extents: &[usize]) -> Result<Self, Error> {
        let n_new = extents.len().checked_sub(self.rank());
        let pairs = || self.extents.iter().zip(&extents[n_new.unwrap_or(0)..]);
        let fits = n_new.is_some() && pairs().all(|(own, wanted)| own == wanted || *own == 1);
        if !fits {
            let message = format!("{:?} does not broadcast to {extents:?}", &self.extents[..]);
            return Err(Error::invalid_argument(message));
        }
        let mut strides = Dims::from_elem(0, n_new.unwrap_or(0));
        strides.extend(pairs().zip(&self.strides).map(
            |((own, wanted), stride)| {
                if own == wanted { *stride } else { 0 }
            },
        ));
        // From 1 to 0 leaves nothing to see, from 0 nothing is repeated.
        Ok(TensorView {
            elements: self.elements,
            extents: Dims::from_slice(extents),
            strides,
        })
    }

    /// Returns the view at these coordinates of the leading dimensions.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is nothing.
    pub fn chip(&self, coordinates: &[usize]) -> Result<Self, Error> {
        let n = coordinates.len();
        let found = (n <= self.rank())
            .then(|| offset(&self.extents[..n], &self.strides[..n], coordinates))
            .flatten();
        let Some(offset) = found else {
            let extents = &self.extents[..];
            let message = format!("{coordinates:?} is not in a tensor of shape {extents:?}");
            return Err(Error::invalid_argument(message));
        };
        Ok(TensorView {
            elements: self.elements.get(offset..).unwrap_or(&[]),
            extents: Dims::from_slice(&self.extents[n..]),
            strides: Dims::from_slice(&self.strides[n..]),
        })
    }

    /// Returns the elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        Offsets::new(&self.extents, &self.strides).map(|offset| self.elements[offset])
    }
}

/// Elements in row-major order that may be changed.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::TensorViewMut;
///
/// let mut elements = [0; 6];
/// let mut matrix = TensorViewMut::new(&mut elements, &[2, 3])?;
/// *matrix.get_mut(&[1, 0]).unwrap() = 7;
/// matrix.chip(&[0])?.fill(1);
/// assert_eq!(elements, [1, 1, 1, 7, 0, 0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorViewMut<'a, T> {
    // Invariant: as many as the extents say.
    elements: &'a mut [T],
    extents: Dims,
    strides: Dims,
}

impl<'a, T: Element> TensorViewMut<'a, T> {
    /// Wraps a slice as a tensor in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the slice does not have as many elements as the extents say.
    pub fn new(elements: &'a mut [T], extents: &[usize]) -> Result<Self, Error> {
        let view = TensorView::new(elements, extents)?;
        let (extents, strides) = (view.extents, view.strides);
        Ok(TensorViewMut {
            elements,
            extents,
            strides,
        })
    }

    /// Returns the extents, outermost first.
    #[inline]
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns all elements, in row-major order.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.elements
    }

    /// Returns all elements, in row-major order, for the lifetime of the view.
    pub(crate) fn into_mut_slice(self) -> &'a mut [T] {
        self.elements
    }

    /// Returns a view of the elements for reading.
    pub fn as_view(&self) -> TensorView<'_, T> {
        TensorView {
            elements: self.elements,
            extents: self.extents.clone(),
            strides: self.strides.clone(),
        }
    }

    /// Returns the element at these coordinates, if there is one.
    #[inline]
    pub fn get_mut(&mut self, coordinates: &[usize]) -> Option<&mut T> {
        let offset = offset(&self.extents, &self.strides, coordinates)?;
        self.elements.get_mut(offset)
    }

    /// Writes one value to all elements.
    pub fn fill(&mut self, value: T) {
        self.elements.fill(value);
    }

    /// Returns the view at these coordinates of the leading dimensions.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is nothing.
    pub fn chip(&mut self, coordinates: &[usize]) -> Result<TensorViewMut<'_, T>, Error> {
        let part = self.as_view().chip(coordinates)?;
        let start = self.elements.len() - part.elements.len();
        let (extents, strides, n_elements) = (
            part.extents.clone(),
            part.strides.clone(),
            part.n_elements(),
        );
        let elements = self.elements.get_mut(start..start + n_elements);
        Ok(TensorViewMut {
            elements: elements.unwrap_or_default(),
            extents,
            strides,
        })
    }
}

/// Returns the distance from the first element to that at some coordinates.
#[inline]
fn offset(extents: &[usize], strides: &[usize], coordinates: &[usize]) -> Option<usize> {
    if coordinates.len() != extents.len() {
        return None;
    }
    let mut offset = 0_usize;
    for ((coordinate, extent), stride) in coordinates.iter().zip(extents).zip(strides) {
        if coordinate >= extent {
            return None;
        }
        // Strides are huge only where there is no element.
        offset = coordinate.saturating_mul(*stride).saturating_add(offset);
    }
    Some(offset)
}

/// The offsets of all elements from the first, in row-major order.
pub(crate) struct Offsets<'a> {
    extents: &'a [usize],
    strides: &'a [usize],
    coordinates: Dims,
    /// `None` when all were given.
    next: Option<usize>,
}

impl<'a> Offsets<'a> {
    pub(crate) fn new(extents: &'a [usize], strides: &'a [usize]) -> Self {
        Offsets {
            extents,
            strides,
            coordinates: Dims::from_elem(0, extents.len()),
            next: (!extents.contains(&0)).then_some(0),
        }
    }

    /// Returns the offsets from some element on; none if there are fewer elements.
    pub(crate) fn starting_at(extents: &'a [usize], strides: &'a [usize], first: usize) -> Self {
        let mut offsets = Offsets::new(extents, strides);
        let (mut rest, mut start) = (first, 0_usize);
        if offsets.next.is_none() {
            return offsets;
        }
        let places = offsets.coordinates.iter_mut().zip(extents).zip(strides);
        for ((coordinate, extent), stride) in places.rev() {
            (*coordinate, rest) = (rest % extent, rest / extent);
            start = coordinate.saturating_mul(*stride).saturating_add(start);
        }
        offsets.next = (rest == 0).then_some(start);
        offsets
    }
}

impl Iterator for Offsets<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let current = self.next?;
        let mut offset = current;
        for dimension in (0..self.extents.len()).rev() {
            let (extent, stride) = (self.extents[dimension], self.strides[dimension]);
            let coordinate = &mut self.coordinates[dimension];
            *coordinate += 1;
            if *coordinate < extent {
                self.next = Some(offset + stride);
                return Some(current);
            }
            offset -= (extent - 1) * stride;
            *coordinate = 0;
        }
        self.next = None;
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(view: &TensorView<'_, i32>) -> Vec<i32> {
        view.iter().collect()
    }

    #[test]
    fn windows_show_what_they_should() {
        let elements: Vec<i32> = (0..24).collect();
        let view = TensorView::new(&elements, &[2, 3, 4]).unwrap();
        assert_eq!(seen(&view), elements);
        assert_eq!(view.as_slice(), Some(&elements[..]));
        let chip = view.chip(&[1, 2]).unwrap();
        assert_eq!(seen(&chip), [20, 21, 22, 23]);
        assert_eq!(chip.as_slice(), Some(&elements[20..]));
        let scalar = view.chip(&[1, 0, 3]).unwrap();
        assert_eq!((seen(&scalar), scalar.rank()), (vec![15], 0));
        let turned = view.permute(&[2, 0, 1]).unwrap();
        assert_eq!(turned.extents(), [4, 2, 3]);
        assert_eq!(turned.as_slice(), None);
        assert_eq!(&seen(&turned)[..7], [0, 4, 8, 12, 16, 20, 1]);
        let strided = TensorView::strided(&elements[1..], &[2, 2], &[12, 2]).unwrap();
        assert_eq!(seen(&strided), [1, 3, 13, 15]);
    }

    #[test]
    fn broadcasting_repeats() {
        let elements = [1, 2, 3];
        let row = TensorView::new(&elements, &[3]).unwrap();
        assert_eq!(seen(&row.broadcast(&[2, 3]).unwrap()), [1, 2, 3, 1, 2, 3]);
        let column = TensorView::new(&elements, &[3, 1]).unwrap();
        assert_eq!(
            seen(&column.broadcast(&[3, 2]).unwrap()),
            [1, 1, 2, 2, 3, 3]
        );
        assert!(seen(&column.broadcast(&[3, 0]).unwrap()).is_empty());
        assert!(row.broadcast(&[2]).is_err());
        assert!(row.broadcast(&[]).is_err());
        let empty = TensorView::new(&[] as &[i32], &[0]).unwrap();
        assert!(empty.broadcast(&[3]).is_err());
    }

    #[test]
    fn no_window_leads_outside() {
        let elements = [1, 2, 3, 4];
        assert!(TensorView::new(&elements, &[3]).is_err());
        assert!(TensorView::strided(&elements, &[2, 2], &[3, 1]).is_err());
        assert!(TensorView::strided(&elements, &[2], &[usize::MAX]).is_err());
        assert!(TensorView::strided(&elements, &[2], &[]).is_err());
        let view = TensorView::new(&elements, &[2, 2]).unwrap();
        assert_eq!(view.get(&[0, 2]), None);
        assert_eq!(view.get(&[0]), None);
        assert!(view.chip(&[2]).is_err());
        assert!(view.chip(&[0, 0, 0]).is_err());
        assert!(view.permute(&[0, 0]).is_err());
        let empty = TensorView::new(&elements[..0], &[2, 0, 3]).unwrap();
        assert!(seen(&empty).is_empty() && empty.as_slice() == Some(&[]));
        assert!(seen(&empty.chip(&[1]).unwrap()).is_empty());
        let large = TensorView::new(&elements[..0], &[0, 1 << 40, 1 << 40]).unwrap();
        let large = large.permute(&[2, 1, 0]).unwrap();
        let last = (1 << 40) - 1;
        assert!(seen(&large.chip(&[last, last]).unwrap()).is_empty());
        assert_eq!(large.get(&[last, last, 0]), None);
    }
}
