//! Scattering: updates written to, or combined with, the elements that a tensor of positions names.
//!
//! The result at each position is a function of the old element and the update ([`Combine`]). Of several that go to one
//! position the first in row-major order goes first.

use std::borrow::Cow;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::gather::{Position, gather_nd_extents, offsets_of, outside, resolve};
use super::words::with_word;
use super::{expect_dimension, expect_result, size_of_elements};
use crate::math::number::{Number, Real};
use crate::math::parallel;
use crate::view::Offsets;
use crate::{
    DType, DenseHostTensor, Dims, Element, TensorShape, TensorView, TensorViewMut, from_bytes,
    from_bytes_mut, with_real,
};

/// Combination of an update with the element at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The update replaces the element, of any type.
    Replace,
    /// As a sum; integers wrap around.
    Add,
    /// As a product; integers wrap around.
    Multiply,
    /// The smaller one stays; NaN, if one of them is.
    Least,
    /// The larger one stays; NaN, if one of them is.
    Greatest,
}

impl Combine {
    /// Returns the function of the old element and the update.
    fn function<T: Real>(self) -> fn(T, T) -> T {
        match self {
            Combine::Replace => |_, y| y,
            Combine::Add => T::plus,
            Combine::Multiply => T::times,
            Combine::Least => T::least,
            Combine::Greatest => T::greatest,
        }
    }

    #[cold]
    fn unsupported(self, dtype: DType) -> Error {
        Error::invalid_argument(format!(
            "expected real numbers to be combined by {self:?}, found {dtype}"
        ))
    }
}

/// Copies `x`, and combines each update with the element at the same place, but at the position of `positions` along
/// `dimension`.
///
/// # Shapes
///
/// `x` and `out` of one shape; `positions` and `updates` of one, with as many dimensions as `x` and, but for
/// `dimension`, no larger ones.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, if there is no such dimension, or for a position that it does
/// not have.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::scatter_elements;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3], &[3])?;
/// let (positions, updates) = ([2, 0, 2], [10, 20, 30]);
/// let (positions, updates) = (TensorView::new(&positions, &[3])?, TensorView::new(&updates, &[3])?);
/// let mut out = [0; 3];
/// scatter_elements(|x, y| x + y, &x, 0, &positions, &updates, &mut TensorViewMut::new(&mut out, &[3])?)?;
/// assert_eq!(out, [21, 2, 43]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn scatter_elements<T: Element, I: Position>(
    combine: impl Fn(T, T) -> T,
    x: &TensorView<'_, T>,
    dimension: usize,
    positions: &TensorView<'_, I>,
    updates: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    expect_elements(
        x.extents(),
        dimension,
        positions.extents(),
        updates.extents(),
    )?;
    expect_result(x.extents(), out.extents())?;
    copy(x, out);
    elements_part(
        combine,
        dimension,
        positions.extents(),
        (positions, updates),
        x.extents(),
        0,
        out.as_mut_slice(),
    )
}

/// Applies [`scatter_elements`] to dense tensors, on the workers of the request's queue if there is much to do: what
/// differs in a dimension before `dimension` is made side by side. Positions are `i64`s.
///
/// # Errors
///
/// Those of [`scatter_elements`], if the types differ or can't be combined so, and those of [`parallel::fill_bytes`].
pub fn scatter_elements_into(
    execution: &ExecutionContext,
    combine: Combine,
    x: &DenseHostTensor,
    dimension: usize,
    positions: &DenseHostTensor,
    updates: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = expect_types(combine, x, positions, updates, out)?;
    let extents = x.shape().to_dims();
    let shape = positions.shape().to_dims();
    expect_elements(&extents, dimension, &shape, &updates.shape().to_dims())?;
    expect_result(&extents, &out.shape().to_dims())?;
    let slab: usize = match out.n_elements() {
        0 => 1,
        _ => extents[dimension..].iter().product(),
    };
    let (x, positions, updates) = (x.clone(), positions.clone(), updates.clone());
    let chunk = parallel::chunk_len(4, slab);
    let size = size_of_elements(out);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let (x, positions, updates) = (x.read()?, positions.read()?, updates.read()?);
        part.copy_from_slice(&x.bytes()[first * size..first * size + part.len()]);
        let (positions, updates) = (positions.view::<i64>()?, updates.bytes());
        let place = (dimension, &extents[..], first / slab);
        match combine {
            Combine::Replace => with_word!(dtype, W => {
                bytes_part::<W>(|_, y| y, place, (&positions, updates), part)
            }),
            // Sums are what models scatter most.
            Combine::Add => with_real!(dtype, T => {
                bytes_part::<T>(T::plus, place, (&positions, updates), part)
            }, else Err(combine.unsupported(dtype))),
            combine => with_real!(dtype, T => {
                bytes_part::<T>(combine.function::<T>(), place, (&positions, updates), part)
            }, else Err(combine.unsupported(dtype))),
        }
    })
}

/// Checks that the tensors' types go together, and returns the type of the elements.
fn expect_types(
    combine: Combine,
    x: &DenseHostTensor,
    positions: &DenseHostTensor,
    updates: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<DType, Error> {
    let dtype = x.dtype();
    updates.metadata().expect_dtype(dtype)?;
    out.metadata().expect_dtype(dtype)?;
    crate::dense::expect_dtype::<i64>(positions.metadata())?;
    with_real!(dtype, T => Ok(<T as Element>::DTYPE), else match combine {
        Combine::Replace => Ok(dtype),
        combine => Err(combine.unsupported(dtype)),
    })
}

/// Runs [`elements_part`] on elements given as bytes.
fn bytes_part<T: Element>(
    combine: impl Fn(T, T) -> T,
    (dimension, extents, first): (usize, &[usize], usize),
    (positions, updates): (&TensorView<'_, i64>, &[u8]),
    out: &mut [u8],
) -> Result<(), Error> {
    let shape = positions.extents();
    let updates = TensorView::new(from_bytes::<T>(updates)?, shape)?;
    let views = (positions, &updates);
    elements_part(
        combine,
        dimension,
        shape,
        views,
        extents,
        first,
        from_bytes_mut(out)?,
    )
}

/// Copies all elements.
fn copy<T: Element>(x: &TensorView<'_, T>, out: &mut TensorViewMut<'_, T>) {
    for (out, x) in out.as_mut_slice().iter_mut().zip(x.iter()) {
        *out = x;
    }
}

fn expect_elements(
    x: &[usize],
    dimension: usize,
    positions: &[usize],
    updates: &[usize],
) -> Result<(), Error> {
    expect_dimension(x, dimension)?;
    let fits =
        |(index, (own, wanted)): (usize, (&usize, &usize))| index == dimension || wanted <= own;
    let is_alike = x.len() == positions.len() && positions == updates;
    if is_alike && x.iter().zip(positions).enumerate().all(fits) {
        return match x[dimension] == 0 && !positions.contains(&0) {
            true => Err(nowhere()),
            false => Ok(()),
        };
    }
    Err(Error::invalid_argument(format!(
        "positions of shape {positions:?} and updates of shape {updates:?} along dimension {dimension} of a \
         tensor of shape {x:?}: expected one shape with as many dimensions, and no larger ones but that"
    )))
}

#[cold]
fn nowhere() -> Error {
    Error::invalid_argument("there are updates, and no position that they could go to")
}

/// Combines updates with slabs of the result, from the `first` on: a slab spans `dimension` and those behind.
fn elements_part<T: Element, I: Position>(
    combine: impl Fn(T, T) -> T,
    dimension: usize,
    shape: &[usize],
    (positions, updates): (&TensorView<'_, I>, &TensorView<'_, T>),
    extents: &[usize],
    first: usize,
    out: &mut [T],
) -> Result<(), Error> {
    if out.is_empty() || shape.contains(&0) {
        return Ok(());
    }
    let slab: usize = extents[dimension..].iter().product();
    let (outer, inner) = (&extents[..dimension], &shape[dimension..]);
    // Where the elements of a slab go at position 0.
    let mut others = Dims::from_elem(1, inner.len());
    for index in (1..inner.len()).rev() {
        others[index - 1] = others[index] * extents[dimension + index];
    }
    let stride = std::mem::replace(&mut others[0], 0);
    // Rows lie along the last dimension, which may be that of positions.
    let last = inner.len() - 1;
    let n = inner[last];
    for (number, out) in out.chunks_exact_mut(slab).enumerate() {
        let (mut rest, mut place) = (first + number, Dims::from_elem(0, dimension));
        for (coordinate, extent) in place.iter_mut().zip(outer).rev() {
            (*coordinate, rest) = (rest % extent, rest / extent);
        }
        if place.iter().zip(shape).any(|(own, extent)| own >= extent) {
            continue;
        }
        let (positions, updates) = (positions.chip(&place)?, updates.chip(&place)?);
        let (positions, updates) = (neighbours(&positions), neighbours(&updates));
        let rows = positions.chunks_exact(n).zip(updates.chunks_exact(n));
        let offsets = Offsets::new(&inner[..last], &others[..last]);
        for (number, ((positions, updates), offset)) in rows.zip(offsets).enumerate() {
            let strides = [stride, others[last]];
            let out = &mut out[offset..];
            let done = row(
                &combine,
                (positions, extents[dimension]),
                updates,
                strides,
                out,
            );
            done.map_err(|index| {
                let before = place.iter().zip(shape);
                let before = before.fold(0, |sum, (own, extent)| sum * extent + own);
                let index = before * inner.iter().product::<usize>() + number * n + index;
                outside(positions[index % n], index, shape, extents[dimension])
            })?;
        }
    }
    Ok(())
}

/// Combines a row of updates with elements: positions count in steps of the first stride, places in the row in those of
/// the second. Fails with the index of a position that the extent does not have.
#[inline]
fn row<T: Element, I: Position>(
    combine: impl Fn(T, T) -> T,
    (positions, extent): (&[I], usize),
    updates: &[T],
    [stride, step]: [usize; 2],
    out: &mut [T],
) -> Result<(), usize> {
    for (index, (position, update)) in positions.iter().zip(updates).enumerate() {
        let found = resolve(*position, extent).ok_or(index)?;
        let to = &mut out[found * stride + index * step];
        *to = combine(*to, *update);
    }
    Ok(())
}

/// Returns the elements of a view in row-major order.
fn neighbours<'a, T: Element>(view: &TensorView<'a, T>) -> Cow<'a, [T]> {
    match view.as_slice() {
        Some(elements) => Cow::Borrowed(elements),
        None => Cow::Owned(view.iter().collect()),
    }
}

/// Copies `x`, and combines each update with the slice that a list of positions names: each list, along the last
/// dimension of `positions`, has a position for each of the first dimensions of `x`.
///
/// # Shapes
///
/// `x` and `out`: `[a, b, .., rest..]`, `positions: [places.., number of a, b..]`, `updates: [places..,
/// rest..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or for a position that a dimension does not have.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::scatter_nd;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3, 4], &[2, 2])?;
/// let (positions, updates) = ([1], [7, 8]);
/// let (positions, updates) = (TensorView::new(&positions, &[1, 1])?, TensorView::new(&updates, &[1, 2])?);
/// let mut out = [0; 4];
/// scatter_nd(|_, y| y, &x, &positions, &updates, &mut TensorViewMut::new(&mut out, &[2, 2])?)?;
/// assert_eq!(out, [1, 2, 7, 8]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn scatter_nd<T: Element, I: Position>(
    combine: impl Fn(T, T) -> T,
    x: &TensorView<'_, T>,
    positions: &TensorView<'_, I>,
    updates: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    expect_result(x.extents(), out.extents())?;
    let (starts, n_each) = targets(x.extents(), positions, updates.extents())?;
    copy(x, out);
    let out = out.as_mut_slice();
    let mut updates = updates.iter();
    for start in starts {
        for (to, update) in out[start..start + n_each].iter_mut().zip(&mut updates) {
            *to = combine(*to, update);
        }
    }
    Ok(())
}

/// Returns the offset in a tensor of these extents that each list of positions names, and the number of elements that
/// are written there.
fn targets<I: Position>(
    extents: &[usize],
    positions: &TensorView<'_, I>,
    updates: &[usize],
) -> Result<(Vec<usize>, usize), Error> {
    let wanted = gather_nd_extents(extents, 0, positions.extents())?;
    if wanted[..] != *updates {
        let message = format!("expected updates of shape {wanted:?}, found {updates:?}");
        return Err(Error::invalid_argument(message));
    }
    if wanted.contains(&0) {
        return Ok((Vec::new(), 0));
    }
    if extents.contains(&0) {
        return Err(nowhere());
    }
    let strides = TensorShape::new(extents)?.strides();
    let starts = offsets_of(extents, &strides, 0, positions)?;
    let n_places = positions.rank() - 1;
    Ok((starts, wanted[n_places..].iter().product()))
}

/// Applies [`scatter_nd`] to dense tensors, by one worker: updates go one after the other. Positions are `i64`s.
///
/// # Errors
///
/// Those of [`scatter_nd`], if the types differ or can't be combined so, and those of [`parallel::fill_bytes`].
pub fn scatter_nd_into(
    execution: &ExecutionContext,
    combine: Combine,
    x: &DenseHostTensor,
    positions: &DenseHostTensor,
    updates: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = expect_types(combine, x, positions, updates, out)?;
    let extents = out.shape().to_dims();
    expect_result(&x.shape().to_dims(), &extents)?;
    let size = size_of_elements(out);
    let update_extents = updates.shape().to_dims();
    let (x, positions, updates) = (x.clone(), positions.clone(), updates.clone());
    let all = parallel::chunk_len(1, out.n_elements());
    let body = move |_: usize, part: &mut [u8]| {
        let (x, positions, updates) = (x.read()?, positions.read()?, updates.read()?);
        let (starts, n_each) = targets(&extents, &positions.view::<i64>()?, &update_extents)?;
        part.copy_from_slice(x.bytes());
        if n_each == 0 {
            return Ok(());
        }
        match combine {
            Combine::Replace => {
                let blocks = updates.bytes().chunks_exact(n_each * size);
                for (start, block) in starts.iter().zip(blocks) {
                    part[start * size..][..n_each * size].copy_from_slice(block);
                }
                Ok(())
            }
            combine => with_real!(dtype, T => {
                let (out, updates) = (from_bytes_mut(part)?, from_bytes(updates.bytes())?);
                combine_blocks::<T>(combine.function(), &starts, n_each, updates, out);
                Ok(())
            }, else Err(combine.unsupported(dtype))),
        }
    };
    if out.n_elements() == 0 {
        // What does not fit is told of empty tensors, too.
        body(0, &mut [])?;
    }
    parallel::fill_bytes(execution, out, all, body)
}

/// Combines blocks of updates with the blocks of the result that begin at each of `starts`.
fn combine_blocks<T: Element>(
    combine: fn(T, T) -> T,
    starts: &[usize],
    n_each: usize,
    updates: &[T],
    out: &mut [T],
) {
    for (start, block) in starts.iter().zip(updates.chunks_exact(n_each)) {
        for (to, update) in out[*start..][..n_each].iter_mut().zip(block) {
            *to = combine(*to, *update);
        }
    }
}
