//! Gathering: elements that a tensor of positions names.
//!
//! A position is counted from behind if it is negative: -1 is the last.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::words::with_word;
use super::{Axis, LayoutCopy, SourceAxis, expect_dimension, expect_result, size_of_elements};
use crate::math::parallel;
use crate::view::Offsets;
use crate::{
    DenseHostTensor, Dims, Element, TensorView, TensorViewMut, from_bytes, from_bytes_mut,
};

/// Integers that name positions.
pub trait Position: Element {
    /// Returns the number.
    fn to_i128(self) -> i128;
}

/// `positions!(i64)` implements [`Position`] for `i64`.
macro_rules! positions {
    ($($type:ty)*) => {$(
        impl Position for $type {
            #[inline(always)]
            fn to_i128(self) -> i128 {
                self.into()
            }
        }
    )*};
}

positions!(u8 u16 u32 u64 i8 i16 i32 i64);

/// Returns the position in a dimension of this extent that a number means.
#[inline]
pub(super) fn resolve<I: Position>(position: I, extent: usize) -> Option<usize> {
    let position = position.to_i128();
    let from_front = match position < 0 {
        true => position + extent as i128,
        false => position,
    };
    usize::try_from(from_front)
        .ok()
        .filter(|place| *place < extent)
}

/// Returns the error for a position outside its dimension, the `index`-th in row-major order of a tensor of
/// positions.
#[cold]
pub(super) fn outside<I: Position>(
    position: I,
    index: usize,
    positions: &[usize],
    extent: usize,
) -> Error {
    let mut place = Dims::from_elem(0, positions.len());
    let mut rest = index;
    for (coordinate, extent) in place.iter_mut().zip(positions).rev() {
        (*coordinate, rest) = (rest % extent, rest / extent);
    }
    let position = position.to_i128();
    Error::invalid_argument(format!(
        "the position at {place:?} is {position}: expected one of {extent} positions, from -{extent} to {}",
        extent as i128 - 1
    ))
}

impl LayoutCopy {
    /// Gathers slices along one dimension by a tensor of positions, whose dimensions replace it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension, or for a position that it does not have.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::layout_copy::LayoutCopy;
    /// use tfrt_tensor::{TensorView, TensorViewMut};
    ///
    /// let table = TensorView::new(&[1, 2, 3, 4, 5, 6], &[3, 2])?;
    /// let rows = TensorView::new(&[2, 0, -1, 1], &[2, 2])?;
    /// let gather = LayoutCopy::gather(&[3, 2], 0, &rows)?;
    /// let mut out = [0; 8];
    /// gather.run(&table, &mut TensorViewMut::new(&mut out, &[2, 2, 2])?)?;
    /// assert_eq!(out, [5, 6, 1, 2, 5, 6, 3, 4]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn gather<I: Position>(
        input: &[usize],
        dimension: usize,
        positions: &TensorView<'_, I>,
    ) -> Result<LayoutCopy, Error> {
        expect_dimension(input, dimension)?;
        let extent = input[dimension];
        // As many as lie in memory, unless they are repeated.
        let n_known = positions.as_slice().map_or(0, <[I]>::len);
        let mut list = Vec::with_capacity(n_known);
        for (index, position) in positions.iter().enumerate() {
            let place = resolve(position, extent)
                .ok_or_else(|| outside(position, index, positions.extents(), extent))?;
            list.push(place);
        }
        let mut output = Dims::from_slice(&input[..dimension]);
        output.extend_from_slice(positions.extents());
        output.extend_from_slice(&input[dimension + 1..]);
        let mut copy = LayoutCopy::all_of(input);
        copy.output = output;
        copy.sources[dimension] = SourceAxis {
            dimension: Some(dimension),
            axis: Axis::Listed(list.into()),
        };
        Ok(copy)
    }
}

/// Gathers elements: each result is the element of `x` at the same place, but at the position of `positions` along
/// `dimension`.
///
/// # Shapes
///
/// `positions` and `out` of one shape, with as many dimensions as `x` and, but for `dimension`, no larger ones.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, if there is no such dimension, or for a position that it does
/// not have.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::gather_elements;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3, 4], &[2, 2])?;
/// let positions = TensorView::new(&[1, 0], &[2, 1])?;
/// let mut out = [0; 2];
/// gather_elements(&x, 1, &positions, &mut TensorViewMut::new(&mut out, &[2, 1])?)?;
/// assert_eq!(out, [2, 3]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn gather_elements<T: Element, I: Position>(
    x: &TensorView<'_, T>,
    dimension: usize,
    positions: &TensorView<'_, I>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    expect_elements(x.extents(), dimension, positions.extents())?;
    expect_result(positions.extents(), out.extents())?;
    let copy;
    let list = match positions.as_slice() {
        Some(list) => list,
        None => {
            copy = in_order(positions);
            &copy
        }
    };
    let seen = (x.extents(), x.strides());
    elements_part(
        seen,
        x.elements(),
        dimension,
        (positions.extents(), list),
        0,
        out.as_mut_slice(),
    )
}

/// Applies [`gather_elements`] to dense tensors of any type, on the workers of the request's queue if there is much
/// to do. Positions are `i64`s.
///
/// # Errors
///
/// Those of [`gather_elements`], if the types differ, and those of [`parallel::fill_bytes`].
pub fn gather_elements_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    dimension: usize,
    positions: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    out.metadata().expect_dtype(dtype)?;
    crate::dense::expect_dtype::<i64>(positions.metadata())?;
    let (extents, strides) = (x.shape().to_dims(), x.shape().strides());
    let wanted = positions.shape().to_dims();
    expect_elements(&extents, dimension, &wanted)?;
    expect_result(&wanted, &out.shape().to_dims())?;
    let (x, positions) = (x.clone(), positions.clone());
    let chunk = parallel::chunk_len(4, 1);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let (x, positions) = (x.read()?, positions.read()?);
        let list = (&wanted[..], positions.elements::<i64>()?);
        let seen = (&extents[..], &strides[..]);
        with_word!(dtype, W => elements_part::<W, i64>(
            seen, from_bytes(x.bytes())?, dimension, list, first, from_bytes_mut(part)?,
        ))
    })
}

fn expect_elements(x: &[usize], dimension: usize, positions: &[usize]) -> Result<(), Error> {
    expect_dimension(x, dimension)?;
    let fits =
        |(index, (own, wanted)): (usize, (&usize, &usize))| index == dimension || wanted <= own;
    if x.len() == positions.len() && x.iter().zip(positions).enumerate().all(fits) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "positions of shape {positions:?} along dimension {dimension} of a tensor of shape {x:?}: expected as \
         many dimensions, and no larger ones but that"
    )))
}

fn in_order<T: Element>(view: &TensorView<'_, T>) -> Vec<T> {
    view.iter().collect()
}

fn elements_part<T: Element, I: Position>(
    (extents, strides): (&[usize], &[usize]),
    x: &[T],
    dimension: usize,
    (shape, positions): (&[usize], &[I]),
    first: usize,
    out: &mut [T],
) -> Result<(), Error> {
    // The offsets of the same places at position 0.
    let mut others = Dims::from_slice(strides);
    others[dimension] = 0;
    let (extent, stride) = (extents[dimension], strides[dimension]);
    let offsets = Offsets::starting_at(shape, &others, first);
    let places = positions[first..].iter().zip(offsets);
    for (index, (out, (position, offset))) in out.iter_mut().zip(places).enumerate() {
        let place = resolve(*position, extent)
            .ok_or_else(|| outside(*position, first + index, shape, extent))?;
        *out = x[offset + place * stride];
    }
    Ok(())
}

/// Returns the shape of what [`gather_nd`] makes.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not as it says.
pub fn gather_nd_extents(x: &[usize], n_batch: usize, positions: &[usize]) -> Result<Dims, Error> {
    let misfit = || {
        Error::invalid_argument(format!(
            "positions of shape {positions:?} in a tensor of shape {x:?} with {n_batch} dimensions in common: \
             expected these to be equal, and a last one that names no more than the others"
        ))
    };
    let (n_named, places) = positions.split_last().ok_or_else(misfit)?;
    let n_known = n_batch.checked_add(*n_named).ok_or_else(misfit)?;
    if places.len() < n_batch || x.len() < n_known || x[..n_batch] != places[..n_batch] {
        return Err(misfit());
    }
    let mut extents = Dims::from_slice(places);
    extents.extend_from_slice(&x[n_known..]);
    Ok(extents)
}

/// Gathers slices by lists of positions: each list, along the last dimension of `positions`, has a position for each
/// of the first dimensions of `x`.
///
/// # Shapes
///
/// `x: [batch.., a, b, .., rest..]`, `positions: [batch.., places.., number of a, b..]`, `out: [batch..,
/// places.., rest..]`, with `n_batch` dimensions in `batch`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or for a position that a dimension does not have.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::gather_nd;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3, 4], &[2, 2])?;
/// let positions = TensorView::new(&[0, 0, 1, -1], &[2, 2])?;
/// let mut out = [0; 2];
/// gather_nd(&x, 0, &positions, &mut TensorViewMut::new(&mut out, &[2])?)?;
/// assert_eq!(out, [1, 4]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn gather_nd<T: Element, I: Position>(
    x: &TensorView<'_, T>,
    n_batch: usize,
    positions: &TensorView<'_, I>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let wanted = gather_nd_extents(x.extents(), n_batch, positions.extents())?;
    expect_result(&wanted, out.extents())?;
    let out = out.as_mut_slice();
    if out.is_empty() {
        return Ok(());
    }
    let found = offsets_of(x.extents(), x.strides(), n_batch, positions)?;
    let n_known = x.rank() - (wanted.len() + 1 - positions.rank());
    let (rest, strides) = (&x.extents()[n_known..], &x.strides()[n_known..]);
    let n_each = out.len() / found.len().max(1);
    for (out, start) in out.chunks_exact_mut(n_each).zip(&found) {
        copy_block(&x.elements()[*start..], rest, strides, 0, out);
    }
    Ok(())
}

/// Applies [`gather_nd`] to dense tensors of any type, on the workers of the request's queue if there is much to do.
/// Positions are `i64`s.
///
/// # Errors
///
/// Those of [`gather_nd`], if the types differ, and those of [`parallel::fill_bytes`].
pub fn gather_nd_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    n_batch: usize,
    positions: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    out.metadata().expect_dtype(x.dtype())?;
    let (extents, strides) = (x.shape().to_dims(), x.shape().strides());
    let positions = positions.read()?;
    let positions = positions.view::<i64>()?;
    let wanted = gather_nd_extents(&extents, n_batch, positions.extents())?;
    expect_result(&wanted, &out.shape().to_dims())?;
    let found = match out.n_elements() {
        0 => Vec::new(),
        _ => offsets_of(&extents, &strides, n_batch, &positions)?,
    };
    let size = size_of_elements(x);
    let n_each = out.n_elements() / found.len().max(1);
    let x = x.clone();
    let chunk = parallel::chunk_len(2, 1);
    parallel::fill_bytes(execution, out, chunk, move |first, mut part| {
        let reading = x.read()?;
        let (mut index, mut within) = (first / n_each, first % n_each);
        while !part.is_empty() {
            // What a list names lies in one piece.
            let n = (part.len() / size).min(n_each - within);
            let (now, rest) = part.split_at_mut(n * size);
            let start = (found[index] + within) * size;
            now.copy_from_slice(&reading.bytes()[start..start + n * size]);
            (part, index, within) = (rest, index + 1, 0);
        }
        Ok(())
    })
}

/// Copies elements of a tensor, from the `first` on, in row-major order.
pub(super) fn copy_block<T: Element>(
    x: &[T],
    extents: &[usize],
    strides: &[usize],
    first: usize,
    out: &mut [T],
) {
    if is_in_order(extents, strides) {
        out.copy_from_slice(&x[first..first + out.len()]);
        return;
    }
    let offsets = Offsets::starting_at(extents, strides, first);
    for (out, offset) in out.iter_mut().zip(offsets) {
        *out = x[offset];
    }
}

fn is_in_order(extents: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1_usize;
    extents.iter().zip(strides).rev().all(|(extent, stride)| {
        let fits = *extent == 1 || *stride == expected;
        expected = expected.saturating_mul(*extent);
        fits
    })
}

/// Returns the offsets in `x` of the lists of positions.
pub(super) fn offsets_of<I: Position>(
    extents: &[usize],
    strides: &[usize],
    n_batch: usize,
    positions: &TensorView<'_, I>,
) -> Result<Vec<usize>, Error> {
    let (n_named, places) = match positions.extents().split_last() {
        Some((n_named, places)) => (*n_named, places),
        None => return Ok(Vec::new()),
    };
    let mut batch = Dims::from_elem(0, places.len());
    batch[..n_batch].copy_from_slice(&strides[..n_batch]);
    let own = &strides[n_batch..n_batch + n_named];
    let mut found = Vec::new();
    let mut numbers = positions.iter().enumerate();
    for mut offset in Offsets::new(places, &batch) {
        for (dimension, stride) in own.iter().enumerate() {
            let extent = extents[n_batch + dimension];
            let Some((index, position)) = numbers.next() else {
                break;
            };
            let place = resolve(position, extent)
                .ok_or_else(|| outside(position, index, positions.extents(), extent))?;
            offset += place * stride;
        }
        found.push(offset);
    }
    Ok(found)
}
