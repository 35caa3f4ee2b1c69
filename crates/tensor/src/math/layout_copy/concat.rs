//! Concatenation: tensors behind each other along a dimension, or along a new one.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::gather::copy_block;
use super::words::with_word;
use super::{expect_dimension, expect_result};
use crate::math::{parallel, vectorized};
use crate::{
    DType, DenseHostTensor, Dims, Element, TensorView, TensorViewMut, from_bytes, from_bytes_mut,
};

/// Short rows that are written together.
const THIN_ROWS: usize = 512;

/// Returns the shape of the concatenation of tensors of these shapes along a dimension.
///
/// # Errors
///
/// `InvalidArgument` if there are none, if there is no such dimension, or if their shapes differ in another.
pub fn concat_extents(parts: &[&[usize]], dimension: usize) -> Result<Dims, Error> {
    let Some(first) = parts.first() else {
        return Err(Error::invalid_argument("there is nothing to join"));
    };
    expect_dimension(first, dimension)?;
    let mut extents = Dims::from_slice(first);
    for (number, part) in parts.iter().enumerate().skip(1) {
        let is_alike =
            |(index, (own, other)): (usize, (&usize, &usize))| index == dimension || own == other;
        if part.len() != first.len() || !first.iter().zip(*part).enumerate().all(is_alike) {
            return Err(Error::invalid_argument(format!(
                "tensor {number} to be joined along dimension {dimension} has the shape {part:?}: expected one \
                 that differs from {first:?} in that dimension alone"
            )));
        }
        extents[dimension] = extents[dimension]
            .checked_add(part[dimension])
            .ok_or_else(|| super::too_large(dimension))?;
    }
    Ok(extents)
}

/// Puts tensors behind each other along a dimension.
///
/// # Shapes
///
/// `parts` of one shape but for `dimension`; `out` of that shape, with the sum of their extents there.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if there is nothing to join.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::concat;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let (a, b) = ([1, 2], [3, 4, 5, 6]);
/// let parts = [TensorView::new(&a, &[2, 1])?, TensorView::new(&b, &[2, 2])?];
/// let mut out = [0; 6];
/// concat(&parts, 1, &mut TensorViewMut::new(&mut out, &[2, 3])?)?;
/// assert_eq!(out, [1, 3, 4, 2, 5, 6]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn concat<T: Element>(
    parts: &[TensorView<'_, T>],
    dimension: usize,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let shapes: Vec<&[usize]> = parts.iter().map(TensorView::extents).collect();
    expect_result(&concat_extents(&shapes, dimension)?, out.extents())?;
    let out = out.as_mut_slice();
    if out.is_empty() {
        return Ok(());
    }
    let lens: Vec<usize> = shapes
        .iter()
        .map(|shape| row_len(shape, dimension))
        .collect();
    join_views(parts, &lens, out)
}

/// Applies [`concat()`] to dense tensors, on the workers of the request's queue if they are large.
///
/// # Errors
///
/// Those of [`concat()`], if the types differ, and those of [`parallel::fill_bytes`].
pub fn concat_into(
    execution: &ExecutionContext,
    parts: &[&DenseHostTensor],
    dimension: usize,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let shapes: Vec<Dims> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    expect_result(&concat_extents(&shapes, dimension)?, &out.shape().to_dims())?;
    bytes_into(execution, parts, &shapes, dimension, out)
}

/// Copies rows, each of the parts' pieces of these lengths, to the result.
fn join_views<T: Element>(
    parts: &[TensorView<'_, T>],
    lens: &[usize],
    out: &mut [T],
) -> Result<(), Error> {
    let slices: Option<Vec<&[T]>> = parts.iter().map(TensorView::as_slice).collect();
    if let (Some(slices), true) = (slices, is_thin(lens)) {
        thin(lens, &slices, 0, out);
        return Ok(());
    }
    walk(lens, 0, out, |part, first, to| {
        let part = &parts[part];
        copy_block(part.elements(), part.extents(), part.strides(), first, to);
        Ok(())
    })
}

/// Returns whether rows are so short that their elements are better written one by one.
fn is_thin(lens: &[usize]) -> bool {
    let row = lens
        .iter()
        .try_fold(0_usize, |sum, len| sum.checked_add(*len));
    row.is_some_and(|row| (1..=16).contains(&row))
}

/// Copies whole short rows from the `first` on, a block of rows at a time: the same element of each row.
fn thin<T: Element>(lens: &[usize], parts: &[&[T]], first: usize, out: &mut [T]) {
    let row: usize = lens.iter().sum();
    for (number, out) in out.chunks_mut(row * THIN_ROWS).enumerate() {
        let at = first + number * THIN_ROWS;
        vectorized(
            #[inline(always)]
            || {
                let mut start = 0;
                for (part, len) in parts.iter().zip(lens) {
                    for index in 0..*len {
                        let to = out[start + index..].iter_mut().step_by(row);
                        let from = part[at * len + index..].iter().step_by(*len);
                        to.zip(from).for_each(|(to, x)| *to = *x);
                    }
                    start += len;
                }
            },
        );
    }
}

/// Runs [`thin`] on elements given as bytes.
fn thin_bytes(
    dtype: DType,
    lens: &[usize],
    parts: &[&[u8]],
    first: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    fn of<W: Element>(
        lens: &[usize],
        parts: &[&[u8]],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let parts = parts
            .iter()
            .map(|part| from_bytes::<W>(part))
            .collect::<Result<Vec<_>, _>>()?;
        thin(lens, &parts, first, from_bytes_mut(out)?);
        Ok(())
    }
    with_word!(dtype, W => of::<W>(lens, parts, first, out))
}

/// Copies rows of parts, which are of the given shapes, to `out`.
fn bytes_into(
    execution: &ExecutionContext,
    parts: &[&DenseHostTensor],
    shapes: &[&[usize]],
    dimension: usize,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for part in parts {
        part.metadata().expect_dtype(out.dtype())?;
    }
    let size = super::size_of_elements(out);
    let lens: Vec<usize> = match out.n_elements() {
        0 => Vec::new(),
        _ => shapes
            .iter()
            .map(|shape| row_len(shape, dimension))
            .collect(),
    };
    let parts: Vec<DenseHostTensor> = parts.iter().map(|part| (*part).clone()).collect();
    let (is_thin, dtype) = (is_thin(&lens), out.dtype());
    let row: usize = if is_thin { lens.iter().sum() } else { 1 };
    let chunk = parallel::chunk_len(1, row);
    parallel::fill_bytes(execution, out, chunk, move |first, to| {
        let readings = parts
            .iter()
            .map(DenseHostTensor::read)
            .collect::<Result<Vec<_>, _>>()?;
        if is_thin {
            let parts: Vec<&[u8]> = readings.iter().map(|reading| reading.bytes()).collect();
            return thin_bytes(dtype, &lens, &parts, first / row, to);
        }
        let bytes: Vec<usize> = lens.iter().map(|len| len * size).collect();
        walk(&bytes, first * size, to, |part, first, to| {
            to.copy_from_slice(&readings[part].bytes()[first..first + to.len()]);
            Ok(())
        })
    })
}

/// Returns the elements of a part that lie in one piece in the result, which is not empty.
fn row_len(shape: &[usize], dimension: usize) -> usize {
    shape[dimension..].iter().product()
}

/// Walks the result from the `first` element on, in rows of one piece of each part. Gives for each piece its part,
/// its first element in the part, and its range in the result.
fn walk<T>(
    lens: &[usize],
    first: usize,
    mut out: &mut [T],
    mut body: impl FnMut(usize, usize, &mut [T]) -> Result<(), Error>,
) -> Result<(), Error> {
    let row: usize = lens.iter().sum();
    if row == 0 {
        return Ok(());
    }
    let (mut number, mut skipped) = (first / row, first % row);
    while !out.is_empty() {
        for (part, len) in lens.iter().enumerate() {
            let start = skipped.min(*len);
            skipped -= start;
            let n = (len - start).min(out.len());
            let (now, rest) = std::mem::take(&mut out).split_at_mut(n);
            out = rest;
            if n > 0 {
                body(part, number * len + start, now)?;
            }
        }
        number += 1;
    }
    Ok(())
}

/// Returns the shape of the stack of tensors of these shapes along a new dimension.
///
/// # Errors
///
/// `InvalidArgument` if there are none, if the result has no such dimension, or if their shapes differ.
pub fn stack_extents(parts: &[&[usize]], dimension: usize) -> Result<Dims, Error> {
    let Some(first) = parts.first() else {
        return Err(Error::invalid_argument("there is nothing to join"));
    };
    if dimension > first.len() {
        let rank = first.len() + 1;
        let message = format!("there is no dimension {dimension}: the result has {rank}");
        return Err(Error::invalid_argument(message));
    }
    if let Some(number) = parts.iter().position(|part| part != first) {
        let other = parts[number];
        return Err(Error::invalid_argument(format!(
            "tensor {number} to be stacked has the shape {other:?}: expected {first:?}"
        )));
    }
    let mut extents = Dims::from_slice(first);
    extents.insert(dimension, parts.len());
    Ok(extents)
}

/// Puts tensors of one shape behind each other along a new dimension.
///
/// # Errors
///
/// `InvalidArgument` if the shapes differ, if `out` is not of [`stack_extents`], or if there is nothing to stack.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::stack;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let (a, b) = ([1, 2], [3, 4]);
/// let parts = [TensorView::new(&a, &[2])?, TensorView::new(&b, &[2])?];
/// let mut out = [0; 4];
/// stack(&parts, 1, &mut TensorViewMut::new(&mut out, &[2, 2])?)?;
/// assert_eq!(out, [1, 3, 2, 4]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn stack<T: Element>(
    parts: &[TensorView<'_, T>],
    dimension: usize,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let shapes: Vec<&[usize]> = parts.iter().map(TensorView::extents).collect();
    expect_result(&stack_extents(&shapes, dimension)?, out.extents())?;
    let with_one = |view: &TensorView<'_, T>| {
        let mut extents = Dims::from_slice(view.extents());
        extents.insert(dimension, 1);
        extents
    };
    let out = out.as_mut_slice();
    if out.is_empty() {
        return Ok(());
    }
    let lens: Vec<usize> = parts
        .iter()
        .map(|part| row_len(&with_one(part), dimension))
        .collect();
    join_views(parts, &lens, out)
}

/// Applies [`stack`] to dense tensors, on the workers of the request's queue if they are large.
///
/// # Errors
///
/// Those of [`stack`], if the types differ, and those of [`parallel::fill_bytes`].
pub fn stack_into(
    execution: &ExecutionContext,
    parts: &[&DenseHostTensor],
    dimension: usize,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let mut shapes: Vec<Dims> = parts.iter().map(|part| part.shape().to_dims()).collect();
    let own: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    expect_result(&stack_extents(&own, dimension)?, &out.shape().to_dims())?;
    shapes
        .iter_mut()
        .for_each(|shape| shape.insert(dimension, 1));
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    bytes_into(execution, parts, &shapes, dimension, out)
}
