//! [`Broadcast`]: walks tensors of different shapes side by side.

use smallvec::SmallVec;
use tfrt_host::Error;

use crate::{Dims, TensorShape};

/// A shape that tensors are broadcast to, with the strides of each tensor along it.
///
/// Dimensions that all tensors walk alike are taken together: two dense tensors of one shape are one run.
#[derive(Clone, Debug)]
pub(crate) struct Broadcast<const N: usize> {
    /// Extents of the result, with adjacent dimensions merged; at least one.
    extents: Dims,
    strides: [Dims; N],
}

/// A run along the innermost dimension: its length, and for each tensor the first element and the stride.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<const N: usize> {
    pub len: usize,
    pub offsets: [usize; N],
    pub strides: [usize; N],
}

/// Returns the shape that shapes are broadcast to: from the last dimension on, extents are equal, or 1, or
/// missing.
///
/// # Errors
///
/// `InvalidArgument` if extents differ otherwise.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::elementwise::broadcast_extents;
///
/// let extents = broadcast_extents(&[&[4, 1], &[3]])?;
/// assert_eq!(extents.as_slice(), [4, 3]);
/// assert!(broadcast_extents(&[&[2], &[3]]).is_err());
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn broadcast_extents(shapes: &[&[usize]]) -> Result<Dims, Error> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut extents = Dims::from_elem(1, rank);
    for shape in shapes {
        let start = rank - shape.len();
        for (extent, own) in extents[start..].iter_mut().zip(*shape) {
            match (*extent, *own) {
                (extent, own) if extent == own => {}
                (1, own) => *extent = own,
                (_, 1) => {}
                _ => return Err(mismatch(shapes)),
            }
        }
    }
    Ok(extents)
}

#[cold]
fn mismatch(shapes: &[&[usize]]) -> Error {
    let shapes: SmallVec<[String; 3]> = shapes
        .iter()
        .map(|shape| match TensorShape::new(shape) {
            Ok(shape) => shape.to_string(),
            Err(_) => format!("{shape:?}"),
        })
        .collect();
    let shapes = shapes.join(" vs. ");
    Error::invalid_argument(format!("tensor shape mismatch: {shapes}"))
        .with_note("from the last dimension on, extents have to be equal, or 1, or missing")
}

impl<const N: usize> Broadcast<N> {
    /// Finds the common shape of tensors, given by extents and strides.
    pub(crate) fn new(inputs: [(&[usize], &[usize]); N]) -> Result<Self, Error> {
        let shape = broadcast_extents(&inputs.map(|(extents, _)| extents))?;
        let mut extents = Dims::new();
        let mut strides: [Dims; N] = std::array::from_fn(|_| Dims::new());
        for (dimension, extent) in shape.iter().enumerate() {
            let own: [usize; N] = inputs.map(|(own_extents, own_strides)| {
                let missing = shape.len() - own_extents.len();
                match dimension.checked_sub(missing) {
                    Some(index) if own_extents[index] != 1 => own_strides[index],
                    _ => 0,
                }
            });
            if *extent == 1 {
                continue;
            }
            // The dimension before continues this one if a step in it is a walk through this one.
            let continues = extents.last().is_some()
                && own
                    .iter()
                    .zip(&strides)
                    .all(|(own, before)| before.last().copied() == own.checked_mul(*extent));
            match (extents.last_mut(), continues) {
                (Some(last), true) => {
                    *last = last.saturating_mul(*extent);
                    for (before, own) in strides.iter_mut().zip(own) {
                        before.pop();
                        before.push(own);
                    }
                }
                _ => {
                    extents.push(*extent);
                    for (list, own) in strides.iter_mut().zip(own) {
                        list.push(own);
                    }
                }
            }
        }
        if extents.is_empty() {
            extents.push(1);
            strides.iter_mut().for_each(|list| list.push(0));
        }
        Ok(Broadcast { extents, strides })
    }

    /// Returns the strides, if all elements are walked as one run.
    pub(crate) fn single(&self) -> Option<[usize; N]> {
        (self.extents.len() == 1).then(|| std::array::from_fn(|input| self.strides[input][0]))
    }

    /// Walks `len` elements of the result from the `first` on, in row-major order, run by run. All of these elements
    /// exist.
    #[inline(always)]
    pub(crate) fn walk(&self, first: usize, len: usize, mut body: impl FnMut(Run<N>)) {
        let inner = self.extents.len() - 1;
        let inner_extent = self.extents[inner];
        let inner_strides: [usize; N] = std::array::from_fn(|i| self.strides[i][inner]);
        let (mut row, mut column) = match inner_extent {
            0 => return,
            extent => (first / extent, first % extent),
        };
        let mut left = len;
        while left > 0 {
            let n = left.min(inner_extent - column);
            let mut offsets: [usize; N] = inner_strides.map(|stride| stride * column);
            let mut rest = row;
            for dimension in (0..inner).rev() {
                let coordinate = rest % self.extents[dimension];
                rest /= self.extents[dimension];
                for (offset, strides) in offsets.iter_mut().zip(&self.strides) {
                    *offset += coordinate * strides[dimension];
                }
            }
            body(Run {
                len: n,
                offsets,
                strides: inner_strides,
            });
            left -= n;
            row += 1;
            column = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked<const N: usize>(
        broadcast: &Broadcast<N>,
        first: usize,
        len: usize,
    ) -> Vec<[usize; N]> {
        let mut all = Vec::new();
        broadcast.walk(first, len, |run| {
            for index in 0..run.len {
                all.push(std::array::from_fn(|i| {
                    run.offsets[i] + index * run.strides[i]
                }));
            }
        });
        all
    }

    #[test]
    fn dimensions_that_are_walked_alike_are_one() {
        let dense: (&[usize], &[usize]) = (&[2, 3, 4], &[12, 4, 1]);
        let same = Broadcast::new([dense, dense]).unwrap();
        assert_eq!(same.extents.as_slice(), [24]);
        let with_row = Broadcast::new([dense, (&[4], &[1])]).unwrap();
        assert_eq!(with_row.extents.as_slice(), [6, 4]);
        let with_scalar = Broadcast::new([dense, (&[], &[])]).unwrap();
        assert_eq!(with_scalar.extents.as_slice(), [24]);
        let with_column = Broadcast::new([dense, (&[2, 3, 1], &[3, 1, 1])]).unwrap();
        assert_eq!(with_column.extents.as_slice(), [6, 4]);
    }

    #[test]
    fn walks_begin_and_end_anywhere() {
        let broadcast = Broadcast::new([(&[3, 1], &[1, 1]), (&[2], &[1])]).unwrap();
        let all = walked(&broadcast, 0, 6);
        assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]);
        for first in 0..6 {
            for len in 0..=6 - first {
                assert_eq!(walked(&broadcast, first, len), all[first..first + len]);
            }
        }
    }
}
