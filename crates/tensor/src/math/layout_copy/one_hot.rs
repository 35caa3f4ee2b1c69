//! One-hot encoding of positions.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::expect_result;
use super::gather::{Position, resolve};
use super::words::{only, with_word};
use crate::math::parallel;
use crate::view::Offsets;
use crate::{
    DenseHostTensor, Dims, Element, TensorShape, TensorView, TensorViewMut, from_bytes_mut,
};

/// Returns the shape of the result of [`one_hot()`] for positions of this shape.
///
/// # Errors
///
/// `InvalidArgument` if there is no such dimension in the result.
pub fn one_hot_extents(positions: &[usize], depth: usize, dimension: usize) -> Result<Dims, Error> {
    let mut extents = Dims::from_slice(positions);
    if dimension > extents.len() {
        let rank = extents.len() + 1;
        let message = format!("there is no dimension {dimension}: the result has {rank}");
        return Err(Error::invalid_argument(message));
    }
    extents.insert(dimension, depth);
    Ok(extents)
}

/// Encodes positions: along `dimension` the result is `on` at the position, else `off`.
///
/// A position that there is not is marked nowhere.
///
/// # Shapes
///
/// `out` of the shape of `positions` with one more `dimension`, whose extent is the number of positions there
/// are.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::one_hot;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let labels = TensorView::new(&[1, 0, 7], &[3])?;
/// let mut out = [9.0; 6];
/// one_hot(&labels, 1, [0.0, 1.0], &mut TensorViewMut::new(&mut out, &[3, 2])?)?;
/// assert_eq!(out, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn one_hot<T: Element, I: Position>(
    positions: &TensorView<'_, I>,
    dimension: usize,
    [off, on]: [T; 2],
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let depth = out.extents().get(dimension).copied().unwrap_or(0);
    let wanted = one_hot_extents(positions.extents(), depth, dimension)?;
    expect_result(&wanted, out.extents())?;
    let strides = TensorShape::new(&wanted)?.strides();
    let mut places = strides.clone();
    places.remove(dimension);
    let out = out.as_mut_slice();
    out.fill(off);
    if out.is_empty() {
        return Ok(());
    }
    let offsets = Offsets::new(positions.extents(), &places);
    for (position, offset) in positions.iter().zip(offsets) {
        if let Some(place) = resolve(position, depth) {
            out[offset + place * strides[dimension]] = on;
        }
    }
    Ok(())
}

/// Applies [`one_hot()`] to dense tensors of any type, on the workers of the request's queue if there is much to do.
/// Positions are `i64`s; what stands elsewhere and at a position are tensors of one element.
///
/// # Errors
///
/// Those of [`one_hot()`], if the types differ, if there is another number of elements to write, and those of
/// [`parallel::fill_bytes`].
pub fn one_hot_into(
    execution: &ExecutionContext,
    positions: &DenseHostTensor,
    dimension: usize,
    [off, on]: [&DenseHostTensor; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = out.dtype();
    crate::dense::expect_dtype::<i64>(positions.metadata())?;
    off.metadata().expect_dtype(dtype)?;
    on.metadata().expect_dtype(dtype)?;
    let extents = out.shape().to_dims();
    let depth = extents.get(dimension).copied().unwrap_or(0);
    let wanted = one_hot_extents(&positions.shape().to_dims(), depth, dimension)?;
    expect_result(&wanted, &extents)?;
    let inner: usize = match out.n_elements() {
        0 => 1,
        _ => extents[dimension + 1..].iter().product(),
    };
    let (off, on) = (off.read()?.bytes().to_vec(), on.read()?.bytes().to_vec());
    let positions = positions.clone();
    let chunk = parallel::chunk_len(2, 1);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let positions = positions.read()?;
        let rows = (positions.elements::<i64>()?, depth, inner);
        with_word!(dtype, W => {
            mark::<W>(rows, [only(&off)?, only(&on)?], first, from_bytes_mut(part)?);
            Ok(())
        })
    })
}

/// Writes the marks from the `first` on: `depth` rows for each row of `inner` positions.
fn mark<W: Element>(
    (positions, depth, inner): (&[i64], usize, usize),
    [off, on]: [W; 2],
    first: usize,
    out: &mut [W],
) {
    for (index, out) in out.iter_mut().enumerate() {
        let index = first + index;
        let (row, own) = (index / inner, index % inner);
        let position = positions[row / depth * inner + own];
        let is_on = resolve(position, depth) == Some(row % depth);
        *out = if is_on { on } else { off };
    }
}
