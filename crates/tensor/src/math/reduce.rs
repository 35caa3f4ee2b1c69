//! Reductions: many elements become one.
//!
//! # Order
//!
//! The order in which elements are taken depends on the shape alone. Where neighbours in memory are reduced,
//! [`LANES`] partial results are kept, each of every `LANES`-th element of a block of [`BLOCK`]; they are
//! combined pair by pair, and so are the blocks. (Of what is left of a block every [`FEW_LANES`]-th element is
//! taken together; fewer elements than that are taken one by one.) So a sum's error grows with the logarithm of
//! the number of blocks rather than with the number of elements. Where elements that lie apart are reduced,
//! neighbours are reduced side by side, in the order of the dimensions.

use std::num::NonZeroUsize;

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::{Floating, Number, Real};
use super::rows::{Row, SEGMENT};
use super::{parallel, vectorized};
use crate::{DenseHostTensor, Dims, Element, TensorView, TensorViewMut};

mod logarithm;
mod positions;

pub use logarithm::LogSumExp;
pub use positions::{Ties, positions_into};

/// Partial results that are kept side by side: more than one vector of them, since a sum waits for the last.
pub const LANES: usize = 64;
/// Partial results that are kept of what is too short for [`LANES`].
pub const FEW_LANES: usize = 16;
/// Results whose elements are neighbours that are made side by side, at most: so many lie in the first cache,
/// and rows of so many are fetched ahead by the processor.
const SIDE_BY_SIDE: usize = 4096;
/// Elements that are reduced in lanes before the results are combined.
pub const BLOCK: usize = 1024;

/// How elements become one.
pub trait Reduction<T>: 'static {
    /// What is kept on the way.
    type Partial: Copy + Send;
    /// What comes out.
    type Output: Element;

    /// The result of nothing.
    fn empty() -> Self::Partial;
    /// Takes in an element.
    fn take(partial: Self::Partial, x: T) -> Self::Partial;
    /// Puts two results together.
    fn combine(x: Self::Partial, y: Self::Partial) -> Self::Partial;
    /// What comes out after so many elements.
    fn finish(partial: Self::Partial, n_elements: usize) -> Self::Output;
    /// Whether there is a result of no elements at all.
    const OF_NOTHING: bool = true;
}

/// `reductions!(/// The largest\n Maximum: Real, false, T, LOWEST, |x| x, |a, b| a.greatest(b), |p, n| p)`
/// declares the type `Maximum`, which starts from the lowest `T` and combines partial results as it takes in
/// elements.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $of_nothing:expr, $partial:ty, $empty:expr,
        |$x:ident| $map:expr, |$a:ident, $b:ident| $combine:expr, |$p:ident, $n:ident| $finish:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<T: $bound> Reduction<T> for $name {
            type Partial = $partial;
            type Output = T;
            const OF_NOTHING: bool = $of_nothing;

            #[inline(always)]
            fn empty() -> $partial {
                $empty
            }

            #[inline(always)]
            fn take($a: $partial, $x: T) -> $partial {
                let $b = $map;
                $combine
            }

            #[inline(always)]
            fn combine($a: $partial, $b: $partial) -> $partial {
                $combine
            }

            #[inline(always)]
            fn finish($p: $partial, $n: usize) -> T {
                $finish
            }
        }
    )*};
}

reductions! {
    /// The sum; integers wrap around
    Sum: Number, true, T::Wide, T::Wide::ZERO, |x| x.widened(), |a, b| a.plus(b), |p, _n| T::narrowed(p);
    /// The product; integers wrap around
    Product: Number, true, T::Wide, T::Wide::ONE, |x| x.widened(), |a, b| a.times(b), |p, _n| T::narrowed(p);
    /// The sum of the sizes; integers wrap around
    SumOfSizes: Real, true, T::Wide, T::Wide::ZERO, |x| x.magnitude().widened(), |a, b| a.plus(b),
        |p, _n| T::narrowed(p);
    /// The sum of the squares; integers wrap around
    SumOfSquares: Number, true, T::Wide, T::Wide::ZERO, |x| x.widened().times(x.widened()),
        |a, b| a.plus(b), |p, _n| T::narrowed(p);
    /// The root of the sum of the squares
    Norm: Floating, true, T::Wide, T::Wide::ZERO, |x| x.widened().times(x.widened()), |a, b| a.plus(b),
        |p, _n| T::root(p);
    /// The sum divided by the number; of integers, rounded towards 0
    Mean: Real, false, T::Wide, T::Wide::ZERO, |x| x.widened(), |a, b| a.plus(b), |p, n| T::mean(p, n);
    /// The smallest; no number, if one is none
    Minimum: Real, false, T, T::HIGHEST, |x| x, |a, b| a.least(b), |p, _n| p;
    /// The largest; no number, if one is none
    Maximum: Real, false, T, T::LOWEST, |x| x, |a, b| a.greatest(b), |p, _n| p;
}

/// Reduces a view over some of its dimensions.
///
/// # Shapes
///
/// `out` has the dimensions of `x` that are not reduced, in their order; or all of them, with extent 1 where
/// they are.
///
/// # Errors
///
/// `InvalidArgument` if a dimension is missing or named twice, if `out` is of another shape, or if there is
/// nothing to reduce and the reduction has no result for that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::reduce::{Mean, Sum, reduce};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let mut columns = [0.0; 2];
/// reduce::<Sum, f32>(&x, &[0], &mut TensorViewMut::new(&mut columns, &[2])?)?;
/// assert_eq!(columns, [4.0, 6.0]);
/// let mut mean = [0.0];
/// reduce::<Mean, f32>(&x, &[0, 1], &mut TensorViewMut::new(&mut mean, &[])?)?;
/// assert_eq!(mean, [2.5]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn reduce<R: Reduction<T>, T: Element>(
    x: &TensorView<'_, T>,
    dimensions: &[usize],
    out: &mut TensorViewMut<'_, R::Output>,
) -> Result<(), Error> {
    let plan = Plan::new(x.extents(), x.strides(), dimensions, out.extents())?;
    if plan.n_reduced == 0 && !R::OF_NOTHING && !out.as_mut_slice().is_empty() {
        return Err(nothing_to_reduce());
    }
    plan.run::<R, T>(x.elements(), 0, out.as_mut_slice());
    Ok(())
}

/// Which dimensions are kept and which are reduced, with those that are walked alike taken together.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    kept: Walk,
    reduced: Walk,
    n_reduced: usize,
}

/// Extents and strides; at least one.
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

    /// So that there always is an innermost dimension.
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

    /// The offset of an element, by its number in row-major order.
    #[inline]
    fn offset(&self, mut index: usize) -> usize {
        let mut offset = 0;
        for (extent, stride) in self.extents.iter().zip(&self.strides).rev() {
            offset += index % extent * stride;
            index /= extent;
        }
        offset
    }

    /// The offsets of the rows: of all dimensions but the innermost.
    fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let inner = self.inner().0;
        let n_rows = self.n().checked_div(inner).unwrap_or(0);
        (0..n_rows).map(move |row| self.offset(row * inner))
    }
}

impl Plan {
    pub(crate) fn new(
        extents: &[usize],
        strides: &[usize],
        dimensions: &[usize],
        out: &[usize],
    ) -> Result<Plan, Error> {
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
        Ok(Plan {
            n_reduced: reduced.n(),
            kept: kept.complete(),
            reduced,
        })
    }

    /// Whether neighbours are kept, which then are reduced side by side; else each result is a walk of its own.
    fn is_side_by_side(&self) -> bool {
        let (kept_extent, kept_stride) = self.kept.inner();
        kept_stride == 1 && kept_extent > 1 && self.reduced.inner().1 != 1
    }

    /// How many results a chunk has.
    fn chunk_len(&self) -> NonZeroUsize {
        let neighbours = match self.is_side_by_side() {
            true => self.kept.inner().0.min(SIDE_BY_SIDE / 8),
            false => 1,
        };
        parallel::chunk_len(self.n_reduced, neighbours)
    }

    /// Makes the results from the `first` on.
    pub(crate) fn run<R: Reduction<T>, T: Element>(
        &self,
        x: &[T],
        first: usize,
        out: &mut [R::Output],
    ) {
        if self.n_reduced == 0 {
            out.fill_with(|| R::finish(R::empty(), 0));
            return;
        }
        let kept_extent = self.kept.inner().0;
        if !self.is_side_by_side() {
            for (index, out) in out.iter_mut().enumerate() {
                let partial = self.one::<R, T>(&x[self.kept.offset(first + index)..]);
                *out = R::finish(partial, self.n_reduced);
            }
            return;
        }
        let (mut index, mut rest) = (first, out);
        while !rest.is_empty() {
            let n = (kept_extent - index % kept_extent)
                .min(SIDE_BY_SIDE)
                .min(rest.len());
            let (part, after) = rest.split_at_mut(n);
            self.lanes::<R, T>(&x[self.kept.offset(index)..], part);
            (index, rest) = (index + n, after);
        }
    }

    /// Reduces what one result is made of.
    fn one<R: Reduction<T>, T: Element>(&self, x: &[T]) -> R::Partial {
        let (extent, stride) = self.reduced.inner();
        let mut rows = Tree::<R, T>::new();
        for offset in self.reduced.rows() {
            let row = &x[offset..];
            match stride {
                1 => row[..extent]
                    .chunks(BLOCK)
                    .for_each(|block| rows.push(block_of::<R, T>(block))),
                _ => {
                    let elements = (0..extent).map(|index| row[index * stride]);
                    rows.push(elements.fold(R::empty(), R::take));
                }
            }
        }
        rows.finish()
    }

    /// Reduces up to [`SIDE_BY_SIDE`] results whose elements are neighbours.
    fn lanes<R: Reduction<T>, T: Element>(&self, x: &[T], out: &mut [R::Output]) {
        let (extent, stride) = self.reduced.inner();
        let mut partials: SmallVec<[R::Partial; 64]> = SmallVec::from_elem(R::empty(), out.len());
        for offset in self.reduced.rows() {
            let row = |index: usize| &x[offset + index * stride..][..out.len()];
            let mut index = 0;
            // Several rows at a time, so that partial results are fetched and put back less often.
            while index + 4 <= extent {
                let rows = [row(index), row(index + 1), row(index + 2), row(index + 3)];
                take_rows::<R, T, 4>(&mut partials, rows);
                index += 4;
            }
            (index..extent).for_each(|index| take_rows::<R, T, 1>(&mut partials, [row(index)]));
        }
        for (out, partial) in out.iter_mut().zip(partials) {
            *out = R::finish(partial, self.n_reduced);
        }
    }
}

/// Takes rows in, one after the other, each element into its own partial result. All are of one length.
#[inline]
fn take_rows<R: Reduction<T>, T: Element, const N: usize>(
    partials: &mut [R::Partial],
    rows: [&[T]; N],
) {
    vectorized(
        #[inline(always)]
        || {
            let n = partials.len();
            let rows = rows.map(
                #[inline(always)]
                |row| &row[..n],
            );
            for (index, partial) in partials.iter_mut().enumerate() {
                for row in rows {
                    *partial = R::take(*partial, row[index]);
                }
            }
        },
    );
}

/// Reduces neighbours to one partial result.
pub(crate) fn block<R: Reduction<T>, T: Element>(elements: &[T]) -> R::Partial {
    if elements.len() <= BLOCK {
        return block_of::<R, T>(elements);
    }
    let mut tree = Tree::<R, T>::new();
    for part in elements.chunks(BLOCK) {
        tree.push(block_of::<R, T>(part));
    }
    tree.finish()
}

/// Reduces a function of each element of a row, in the order of [`block`], within what is [`vectorized`]. `results`
/// takes what the function gives, a block that stays in the cache, unless the row has memory that is as near, and
/// placed so that what is written there is not taken for what is read.
#[inline(always)]
pub(crate) fn block_by<R: Reduction<T>, T: Element>(
    row: &mut Row<'_, T>,
    results: &mut [T; BLOCK],
    function: impl Fn(T) -> T + Copy,
) -> R::Partial {
    let (elements, near, ahead) = row.parts();
    let results = near.unwrap_or(results);
    let mut tree = Tree::<R, T>::new();
    for part in elements.chunks(BLOCK) {
        let results = &mut results[..part.len()];
        for (results, part) in results.chunks_mut(SEGMENT).zip(part.chunks(SEGMENT)) {
            ahead.step();
            for (result, x) in results.iter_mut().zip(part) {
                *result = function(*x);
            }
        }
        let partial = block_of::<R, T>(results);
        if elements.len() <= BLOCK {
            return partial;
        }
        tree.push(partial);
    }
    tree.finish()
}

/// Reduces at most [`BLOCK`] neighbours in lanes.
#[inline]
fn block_of<R: Reduction<T>, T: Element>(block: &[T]) -> R::Partial {
    if block.len() < FEW_LANES {
        return block.iter().copied().fold(R::empty(), R::take);
    }
    in_lanes::<R, T>(block)
}

/// Takes elements into the lanes, of which there are as many.
#[inline(always)]
fn take_lanes<R: Reduction<T>, T: Element>(
    lanes: &mut [R::Partial; FEW_LANES],
    elements: &[T; FEW_LANES],
) {
    for (lane, x) in lanes.iter_mut().zip(elements) {
        *lane = R::take(*lane, *x);
    }
}

/// Puts lanes together.
#[inline(always)]
fn combine_lanes<R: Reduction<T>, T>(
    mut lanes: [R::Partial; FEW_LANES],
    others: [R::Partial; FEW_LANES],
) -> [R::Partial; FEW_LANES] {
    for (lane, other) in lanes.iter_mut().zip(others) {
        *lane = R::combine(*lane, other);
    }
    lanes
}

/// A function of its own wherever it is called from: within a longer one, lanes are not kept in vectors.
#[inline(never)]
fn in_lanes<R: Reduction<T>, T: Element>(block: &[T]) -> R::Partial {
    let mut lanes = vectorized(
        #[inline(always)]
        || {
            // Each of these is a vector or two, whatever the type is.
            let [mut a, mut b, mut c, mut d] = [[R::empty(); FEW_LANES]; LANES / FEW_LANES];
            let (quarters, _) = block.as_chunks::<FEW_LANES>();
            let (whole, rest) = quarters.as_chunks::<{ LANES / FEW_LANES }>();
            for [i, j, k, l] in whole {
                take_lanes::<R, T>(&mut a, i);
                take_lanes::<R, T>(&mut b, j);
                take_lanes::<R, T>(&mut c, k);
                take_lanes::<R, T>(&mut d, l);
            }
            for quarter in rest {
                take_lanes::<R, T>(&mut a, quarter);
            }
            let (a, c) = (combine_lanes::<R, T>(a, b), combine_lanes::<R, T>(c, d));
            combine_lanes::<R, T>(a, c)
        },
    );
    let (_, rest) = block.as_chunks::<FEW_LANES>();
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = R::take(*lane, *x);
    }
    let mut n = FEW_LANES;
    while n > 1 {
        n /= 2;
        for index in 0..n {
            lanes[index] = R::combine(lanes[index], lanes[index + n]);
        }
    }
    lanes[0]
}

/// Partial results that are put together pair by pair, as they come: in place `i` lies that of 2^i.
struct Tree<R: Reduction<T>, T> {
    levels: SmallVec<[Option<R::Partial>; 8]>,
}

impl<R: Reduction<T>, T> Tree<R, T> {
    fn new() -> Self {
        Tree {
            levels: SmallVec::new(),
        }
    }

    fn push(&mut self, mut partial: R::Partial) {
        for level in &mut self.levels {
            match level.take() {
                Some(before) => partial = R::combine(before, partial),
                None => {
                    *level = Some(partial);
                    return;
                }
            }
        }
        self.levels.push(Some(partial));
    }

    fn finish(self) -> R::Partial {
        let levels = self.levels.into_iter().flatten();
        let all = levels.reduce(|later, earlier| R::combine(earlier, later));
        all.unwrap_or_else(R::empty)
    }
}

/// Reduces a tensor over some of its dimensions, on the workers of the request's queue if there is much to do.
///
/// # Shapes
///
/// As of [`reduce`].
///
/// # Errors
///
/// As of [`reduce`], and those of [`parallel::fill`].
pub fn reduce_into<R: Reduction<T>, T: Element>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    dimensions: &[usize],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    let shape = x.shape();
    let plan = Plan::new(
        &shape.to_dims(),
        &shape.strides(),
        dimensions,
        &out.shape().to_dims(),
    )?;
    if plan.n_reduced == 0 && !R::OF_NOTHING && out.n_elements() > 0 {
        return Err(nothing_to_reduce());
    }
    let x = x.clone();
    let chunk = plan.chunk_len();
    parallel::fill(execution, out, chunk, move |first, part| {
        plan.run::<R, T>(x.read()?.elements()?, first, part);
        Ok(())
    })
}

#[cold]
fn nothing_to_reduce() -> Error {
    Error::invalid_argument("there is nothing to reduce, and no result for that")
}

/// Finds the position of the largest element along a dimension, the first if there are several. What is no
/// number counts as the largest of all.
///
/// # Shapes
///
/// As of [`reduce`] over one dimension.
///
/// # Errors
///
/// As of [`reduce`].
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::reduce::{Greater, position};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 5, 2, 7, 0, 7], &[2, 3])?;
/// let mut positions = [0_i64; 2];
/// position::<Greater, i32>(&x, 1, &mut TensorViewMut::new(&mut positions, &[2])?)?;
/// assert_eq!(positions, [1, 0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn position<B: Better<T>, T: Real>(
    x: &TensorView<'_, T>,
    dimension: usize,
    out: &mut TensorViewMut<'_, i64>,
) -> Result<(), Error> {
    let plan = Plan::new(x.extents(), x.strides(), &[dimension], out.extents())?;
    let out = out.as_mut_slice();
    if plan.n_reduced == 0 && !out.is_empty() {
        let message = "there is no element whose position could be found";
        return Err(Error::invalid_argument(message));
    }
    let (extent, stride) = (x.extents()[dimension], x.strides()[dimension]);
    for (index, out) in out.iter_mut().enumerate() {
        let row = &x.elements()[plan.kept.offset(index)..];
        let mut best = (row[0], 0_usize);
        for position in 1..extent {
            let element = row[position * stride];
            // Once something is no number, nothing is better.
            let is_better =
                B::better(element, best.0) || (!element.same(element) && best.0.same(best.0));
            if is_better && best.0.same(best.0) {
                best = (element, position);
            }
        }
        *out = i64::try_from(best.1).unwrap_or(i64::MAX);
    }
    Ok(())
}

/// Which of two elements is looked for by [`position`].
pub trait Better<T>: 'static {
    /// Whether `x` is to be preferred to `y`.
    fn better(x: T, y: T) -> bool;
}

/// The largest element
#[derive(Clone, Copy, Debug)]
pub struct Greater;

impl<T: Real> Better<T> for Greater {
    #[inline(always)]
    fn better(x: T, y: T) -> bool {
        y.less(x)
    }
}

/// The smallest element
#[derive(Clone, Copy, Debug)]
pub struct Less;

impl<T: Real> Better<T> for Less {
    #[inline(always)]
    fn better(x: T, y: T) -> bool {
        x.less(y)
    }
}

#[cfg(test)]
mod tests;
