//! Scattering: elements written to, or taken together with, what a tensor of positions names.
//!
//! What comes of each position is a function of what is there and what comes, one of
//! [`elementwise`](crate::math::elementwise): [`Replace`], or `Add`, `Multiply`, `Minimum`, `Maximum`. Of several
//! that go to one position the first in row-major order goes first.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::gather::{Position, gather_nd_extents, offsets_of, outside, resolve};
use super::{expect_dimension, expect_result};
use crate::math::elementwise::{Binary, Identity, unary};
use crate::math::parallel;
use crate::view::Offsets;
use crate::{DenseHostTensor, Dims, Element, TensorView, TensorViewMut};

/// What comes, in place of what is there
#[derive(Clone, Copy, Debug)]
pub struct Replace;

impl<T: Element> Binary<T> for Replace {
    type Output = T;

    #[inline(always)]
    fn apply(_: T, y: T) -> T {
        y
    }
}

/// Copies `x`, and takes each update together with the element at the same place but for one dimension, where
/// `positions` names it.
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
/// use tfrt_tensor::math::elementwise::Add;
/// use tfrt_tensor::math::movement::scatter_elements;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3], &[3])?;
/// let (positions, updates) = ([2, 0, 2], [10, 20, 30]);
/// let (positions, updates) = (TensorView::new(&positions, &[3])?, TensorView::new(&updates, &[3])?);
/// let mut out = [0; 3];
/// scatter_elements::<Add, i32, i32>(&x, 0, &positions, &updates, &mut TensorViewMut::new(&mut out, &[3])?)?;
/// assert_eq!(out, [21, 2, 43]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn scatter_elements<F: Binary<T, Output = T>, T: Element, I: Position>(
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
    unary::<Identity, T>(x, out)?;
    elements_part::<F, T, I>(
        dimension,
        positions.extents(),
        (positions, updates),
        x.extents(),
        0,
        out.as_mut_slice(),
    )
}

/// As [`scatter_elements`], of dense tensors, on the workers of the request's queue if there is much to do: what
/// differs in a dimension before `dimension` is made side by side.
///
/// # Errors
///
/// As of [`scatter_elements`], if the types differ, and those of [`parallel::fill`].
pub fn scatter_elements_into<F: Binary<T, Output = T>, T: Element, I: Position>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    dimension: usize,
    positions: &DenseHostTensor,
    updates: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    crate::dense::expect_dtype::<T>(updates.metadata())?;
    crate::dense::expect_dtype::<I>(positions.metadata())?;
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
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let (x, positions, updates) = (x.read()?, positions.read()?, updates.read()?);
        part.copy_from_slice(&x.elements::<T>()?[first..first + part.len()]);
        let views = (&positions.view::<I>()?, &updates.view::<T>()?);
        elements_part::<F, T, I>(dimension, &shape, views, &extents, first / slab, part)
    })
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

/// Takes updates together with slabs of the result: all that differs in `dimension` and behind, from the
/// `first` on.
fn elements_part<F: Binary<T, Output = T>, T: Element, I: Position>(
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
    for (number, out) in out.chunks_exact_mut(slab).enumerate() {
        let (mut rest, mut place) = (first + number, Dims::from_elem(0, dimension));
        for (coordinate, extent) in place.iter_mut().zip(outer).rev() {
            (*coordinate, rest) = (rest % extent, rest / extent);
        }
        if place.iter().zip(shape).any(|(own, extent)| own >= extent) {
            continue;
        }
        let (positions, updates) = (positions.chip(&place)?, updates.chip(&place)?);
        let each = positions.iter().zip(updates.iter());
        let offsets = Offsets::new(inner, &others);
        for (index, ((position, update), offset)) in each.zip(offsets).enumerate() {
            let found = resolve(position, extents[dimension]).ok_or_else(|| {
                let before = place
                    .iter()
                    .zip(shape)
                    .fold(0, |sum, (own, extent)| sum * extent + own);
                let index = before * inner.iter().product::<usize>() + index;
                outside(position, index, shape, extents[dimension])
            })?;
            let to = &mut out[offset + found * stride];
            *to = F::apply(*to, update);
        }
    }
    Ok(())
}

/// Copies `x`, and takes each update together with what a list of positions names: each list, along the last
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
/// use tfrt_tensor::math::movement::{Replace, scatter_nd};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3, 4], &[2, 2])?;
/// let (positions, updates) = ([1], [7, 8]);
/// let (positions, updates) = (TensorView::new(&positions, &[1, 1])?, TensorView::new(&updates, &[1, 2])?);
/// let mut out = [0; 4];
/// scatter_nd::<Replace, i32, i32>(&x, &positions, &updates, &mut TensorViewMut::new(&mut out, &[2, 2])?)?;
/// assert_eq!(out, [1, 2, 7, 8]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn scatter_nd<F: Binary<T, Output = T>, T: Element, I: Position>(
    x: &TensorView<'_, T>,
    positions: &TensorView<'_, I>,
    updates: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let wanted = gather_nd_extents(x.extents(), 0, positions.extents())?;
    if wanted[..] != *updates.extents() {
        let found = updates.extents();
        let message = format!("expected updates of shape {wanted:?}, found {found:?}");
        return Err(Error::invalid_argument(message));
    }
    expect_result(x.extents(), out.extents())?;
    unary::<Identity, T>(x, out)?;
    if wanted.contains(&0) {
        return Ok(());
    }
    if out.as_mut_slice().is_empty() {
        return Err(nowhere());
    }
    let strides = crate::TensorShape::new(x.extents())?.strides();
    let found = offsets_of(x.extents(), &strides, 0, positions)?;
    let n_places = positions.rank() - 1;
    let n_each: usize = wanted[n_places..].iter().product();
    let out = out.as_mut_slice();
    let mut updates = updates.iter();
    for start in found {
        for (to, update) in out[start..start + n_each].iter_mut().zip(&mut updates) {
            *to = F::apply(*to, update);
        }
    }
    Ok(())
}

/// As [`scatter_nd`], of dense tensors, by one worker: updates go one after the other.
///
/// # Errors
///
/// As of [`scatter_nd`], if the types differ, and those of [`parallel::fill`].
pub fn scatter_nd_into<F: Binary<T, Output = T>, T: Element, I: Position>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    positions: &DenseHostTensor,
    updates: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    let extents = out.shape().to_dims();
    expect_result(&x.shape().to_dims(), &extents)?;
    let (x, positions, updates) = (x.clone(), positions.clone(), updates.clone());
    let all = parallel::chunk_len(1, out.n_elements());
    let body = move |_: usize, part: &mut [T]| {
        let (x, positions, updates) = (x.read()?, positions.read()?, updates.read()?);
        let mut out = TensorViewMut::new(part, &extents)?;
        scatter_nd::<F, T, I>(&x.view()?, &positions.view()?, &updates.view()?, &mut out)
    };
    if out.n_elements() == 0 {
        // What does not fit is told of empty tensors, too.
        crate::dense::expect_dtype::<T>(out.metadata())?;
        body(0, &mut [])?;
    }
    parallel::fill(execution, out, all, body)
}
