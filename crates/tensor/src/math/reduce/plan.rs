//! [`ReducePlan`]: extents and strides of a reduction.

use std::num::NonZeroUsize;

use smallvec::SmallVec;
use tfrt_host::Error;

use super::element::{ReduceElement, Scratch};
use super::lanes::{Tree, block_of, take_rows};
use super::{BLOCK, FEW_LANES, Reduce};
use crate::Dims;
use crate::math::parallel;

/// Results side by side in a chunk, at most.
const NEIGHBOURS: usize = 512;

/// Kept and reduced dimensions, with adjacent ones that are walked alike merged.
#[derive(Clone, Debug)]
pub(crate) struct ReducePlan {
    kept: Walk,
    reduced: Walk,
    n_reduced: usize,
}

/// Extents and strides of some dimensions; at least one.
#[derive(Clone, Debug, Default)]
struct Walk {
    extents: Dims,
    strides: Dims,
}

impl Walk {
    fn push(&mut self, extent: usize, stride: usize) {
        if extent == 1 {
            return;
        }
        if let (Some(last_extent), Some(last_stride)) =
            (self.extents.last_mut(), self.strides.last_mut())
            && Some(*last_stride) == stride.checked_mul(extent)
        {
            *last_extent = last_extent.saturating_mul(extent);
            *last_stride = stride;
            return;
        }
        self.extents.push(extent);
        self.strides.push(stride);
    }

    /// Adds an innermost dimension if there is none.
    fn complete(mut self) -> Walk {
        if self.extents.is_empty() {
            self.extents.push(1);
            self.strides.push(0);
        }
        self
    }

    fn n(&self) -> usize {
        // Of a tensor without elements the other extents may have any product.
        self.extents
            .iter()
            .fold(1, |product, extent| product.saturating_mul(*extent))
    }

    fn inner(&self) -> (usize, usize) {
        let last = self.extents.len() - 1;
        (self.extents[last], self.strides[last])
    }

    /// Returns the offset of an element, by its number in row-major order.
    #[inline]
    fn offset(&self, mut index: usize) -> usize {
        let mut offset = 0;
        for (extent, stride) in self.extents.iter().zip(&self.strides).rev() {
            offset += index % extent * stride;
            index /= extent;
        }
        offset
    }

    /// Returns the offsets of the rows: of all dimensions but the innermost.
    fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let inner = self.inner().0;
        let n_rows = self.n().checked_div(inner).unwrap_or(0);
        (0..n_rows).map(move |row| self.offset(row * inner))
    }
}

impl ReducePlan {
    pub(crate) fn new(
        extents: &[usize],
        strides: &[usize],
        dimensions: &[usize],
        out: &[usize],
    ) -> Result<ReducePlan, Error> {
        let mut is_reduced: SmallVec<[bool; 6]> = SmallVec::from_elem(false, extents.len());
        for dimension in dimensions {
            match is_reduced.get_mut(*dimension) {
                Some(is_reduced) if !*is_reduced => *is_reduced = true,
                Some(_) => {
                    let message = format!("dimension {dimension} is named twice");
                    return Err(Error::invalid_argument(message));
                }
                None => {
                    let rank = extents.len();
                    let message =
                        format!("there is no dimension {dimension}: the tensor has {rank}");
                    return Err(Error::invalid_argument(message));
                }
            }
        }
        let all = || extents.iter().zip(strides).zip(&is_reduced);
        let wanted: Dims = all()
            .filter(|(_, is)| !**is)
            .map(|((extent, _), _)| *extent)
            .collect();
        let with_ones: Dims = all()
            .map(|((extent, _), is)| if *is { 1 } else { *extent })
            .collect();
        if out != &wanted[..] && out != &with_ones[..] {
            let message = format!("expected a result of shape {wanted:?}, found {out:?}");
            return Err(Error::invalid_argument(message));
        }
        let (mut kept, mut reduced) = (Walk::default(), Walk::default());
        for ((extent, stride), is_reduced) in all() {
            match is_reduced {
                true => reduced.push(*extent, *stride),
                false => kept.push(*extent, *stride),
            }
        }
        let reduced = reduced.complete();
        Ok(ReducePlan {
            n_reduced: reduced.n(),
            kept: kept.complete(),
            reduced,
        })
    }

    /// Returns whether neighbours belong to different results, which then are reduced side by side; else each result
    /// is a walk of its own.
    fn is_side_by_side(&self) -> bool {
        let (kept_extent, kept_stride) = self.kept.inner();
        kept_stride == 1 && kept_extent > 1 && self.reduced.inner().1 != 1
    }

    /// Returns whether each result is made of a few neighbours, and the next result of those that follow.
    fn is_short(&self) -> bool {
        let is_row = self.reduced.extents.len() == 1 && self.reduced.inner().1 == 1;
        let follows = self.kept.extents.len() == 1 && self.kept.inner().1 == self.n_reduced;
        is_row && follows && self.n_reduced < FEW_LANES
    }

    /// Returns the number of elements that make one result.
    pub(super) fn n_reduced(&self) -> usize {
        self.n_reduced
    }

    /// Returns the offset of a result's first element.
    pub(super) fn start(&self, result: usize) -> usize {
        self.kept.offset(result)
    }

    /// Returns the number of results of a chunk.
    pub(super) fn chunk_len(&self) -> NonZeroUsize {
        let neighbours = match self.is_side_by_side() {
            true => self.kept.inner().0.min(NEIGHBOURS),
            false => 1,
        };
        parallel::chunk_len(self.n_reduced, neighbours)
    }

    /// Makes the results from the `first` on.
    pub(super) fn run<R: Reduce<T::Loop>, T: ReduceElement>(
        &self,
        x: &[T],
        first: usize,
        out: &mut [T],
    ) {
        if self.n_reduced == 0 {
            out.fill_with(|| T::finish::<R>(R::empty(), 0));
            return;
        }
        if self.is_short() {
            let n = self.n_reduced;
            let rows = x[first * n..].chunks_exact(n);
            for (out, row) in out.iter_mut().zip(rows) {
                let elements = row.iter().map(|x| x.one());
                *out = T::finish::<R>(elements.fold(R::empty(), R::take), n);
            }
            return;
        }
        let mut buffer = T::Buffer::EMPTY;
        let kept_extent = self.kept.inner().0;
        if !self.is_side_by_side() {
            for (index, out) in out.iter_mut().enumerate() {
                let x = &x[self.kept.offset(first + index)..];
                let partial = self.one::<R, T>(x, &mut buffer);
                *out = T::finish::<R>(partial, self.n_reduced);
            }
            return;
        }
        let (mut index, mut rest) = (first, out);
        while !rest.is_empty() {
            let n = (kept_extent - index % kept_extent)
                .min(T::SIDE_BY_SIDE)
                .min(rest.len());
            let (part, after) = rest.split_at_mut(n);
            self.lanes::<R, T>(&x[self.kept.offset(index)..], &mut buffer, part);
            (index, rest) = (index + n, after);
        }
    }

    /// Reduces the elements of one result.
    fn one<R: Reduce<T::Loop>, T: ReduceElement>(
        &self,
        x: &[T],
        buffer: &mut T::Buffer,
    ) -> R::Partial {
        let (extent, stride) = self.reduced.inner();
        let mut rows = Tree::<R, T::Loop>::new();
        for offset in self.reduced.rows() {
            let row = &x[offset..];
            match stride {
                1 => row[..extent].chunks(BLOCK).for_each(|block| {
                    let [block] = T::loaded([block], buffer);
                    rows.push(block_of::<R, T::Loop>(block));
                }),
                _ => {
                    let elements = (0..extent).map(|index| row[index * stride].one());
                    rows.push(elements.fold(R::empty(), R::take));
                }
            }
        }
        rows.finish()
    }

    /// Reduces up to [`ReduceElement::SIDE_BY_SIDE`] results whose elements are neighbours.
    fn lanes<R: Reduce<T::Loop>, T: ReduceElement>(
        &self,
        x: &[T],
        buffer: &mut T::Buffer,
        out: &mut [T],
    ) {
        let (extent, stride) = self.reduced.inner();
        let mut partials: SmallVec<[R::Partial; 64]> = SmallVec::from_elem(R::empty(), out.len());
        for offset in self.reduced.rows() {
            let row = |index: usize| &x[offset + index * stride..][..out.len()];
            let mut index = 0;
            // Several rows at a time, so that partial results are fetched and put back less often.
            while index + 4 <= extent {
                let rows = [row(index), row(index + 1), row(index + 2), row(index + 3)];
                take_rows::<R, T::Loop, 4>(&mut partials, T::loaded(rows, buffer));
                index += 4;
            }
            for index in index..extent {
                take_rows::<R, T::Loop, 1>(&mut partials, T::loaded([row(index)], buffer));
            }
        }
        for (out, partial) in out.iter_mut().zip(partials) {
            *out = T::finish::<R>(partial, self.n_reduced);
        }
    }
}
