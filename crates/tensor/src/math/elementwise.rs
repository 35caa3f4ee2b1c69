//! Functions of single elements: unary and binary, comparisons, selection, conversions.
//!
//! A function is a type: [`Exp`], [`Add`]. It says for which elements it is defined ([`Unary`], [`Binary`]),
//! and loops are made for each of these. Inputs of different shapes are broadcast as NumPy does
//! ([`broadcast_extents`]).

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

pub use super::broadcast::broadcast_extents;
use super::broadcast::{Broadcast, Run};
use super::number::Real;
use super::{parallel, vectorized};
use crate::{
    Bool, DenseHostTensor, Element, TensorMetadata, TensorShape, TensorView, TensorViewMut,
};

mod functions;
mod map;
mod short;

pub use functions::*;
pub use map::{fold_into, map_into, select_into};
pub use short::{SHORT, binary_short, binary_short_in_place, unary_short, unary_short_in_place};

/// A function of one element.
pub trait Unary<T>: 'static {
    /// What it gives.
    type Output: Element;
    /// About how many additions it costs.
    const COST: usize = 1;

    /// Calculates it.
    fn apply(x: T) -> Self::Output;
}

/// A function of two elements.
pub trait Binary<T>: 'static {
    /// What it gives.
    type Output: Element;
    /// About how many additions it costs.
    const COST: usize = 1;

    /// Calculates it.
    fn apply(x: T, y: T) -> Self::Output;
}

/// Calculates a function of each element of `x`.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::elementwise::{Relu, unary};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let mut out = [0.0_f32; 3];
/// let x = TensorView::new(&[-1.0, 0.5, 2.0], &[3])?;
/// unary::<Relu, f32>(&x, &mut TensorViewMut::new(&mut out, &[3])?)?;
/// assert_eq!(out, [0.0, 0.5, 2.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn unary<F: Unary<T>, T: Element>(
    x: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, F::Output>,
) -> Result<(), Error> {
    expect_shape(x.extents(), out.extents())?;
    if let Some(x) = x.as_slice() {
        unary_slice::<F, T>(x, out.as_mut_slice());
        return Ok(());
    }
    let walk = Broadcast::new([(x.extents(), x.strides())])?;
    let out = out.as_mut_slice();
    let mut done = 0;
    walk.walk(0, out.len(), |run| {
        let part = &mut out[done..done + run.len];
        done += run.len;
        let (x, stride) = (&x.elements()[run.offsets[0]..], run.strides[0]);
        vectorized(
            #[inline(always)]
            || {
                for (index, out) in part.iter_mut().enumerate() {
                    *out = F::apply(x[index * stride]);
                }
            },
        );
    });
    Ok(())
}

/// Calculates a function of each element of a slice. The slices are of one length.
#[inline]
pub(crate) fn unary_slice<F: Unary<T>, T: Element>(x: &[T], out: &mut [F::Output]) {
    vectorized(
        #[inline(always)]
        || {
            for (out, x) in out.iter_mut().zip(x) {
                *out = F::apply(*x);
            }
        },
    );
}

/// Puts a function of each element in its place.
pub(crate) fn unary_slice_in_place<F: Unary<T, Output = T>, T: Element>(x: &mut [T]) {
    vectorized(
        #[inline(always)]
        || x.iter_mut().for_each(|x| *x = F::apply(*x)),
    );
}

/// Calculates a function of each pair of elements of `x` and `y`.
///
/// # Shapes
///
/// `x` and `y` are broadcast; `out` is of the shape that this gives.
///
/// # Errors
///
/// `InvalidArgument` if they can't be broadcast, or if `out` is of another shape.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::elementwise::{Add, binary};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let (column, row) = ([10, 20], [1, 2, 3]);
/// let (column, row) = (TensorView::new(&column, &[2, 1])?, TensorView::new(&row, &[3])?);
/// let mut sum = [0; 6];
/// binary::<Add, i32>(&column, &row, &mut TensorViewMut::new(&mut sum, &[2, 3])?)?;
/// assert_eq!(sum, [11, 12, 13, 21, 22, 23]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn binary<F: Binary<T>, T: Element>(
    x: &TensorView<'_, T>,
    y: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, F::Output>,
) -> Result<(), Error> {
    let walk = Broadcast::new([(x.extents(), x.strides()), (y.extents(), y.strides())])?;
    expect_shape(walk.shape(), out.extents())?;
    binary_part::<F, T>(&walk, x.elements(), y.elements(), 0, out.as_mut_slice());
    Ok(())
}

/// Calculates the elements of a result from the `first` on.
fn binary_part<F: Binary<T>, T: Element>(
    walk: &Broadcast<2>,
    x: &[T],
    y: &[T],
    first: usize,
    out: &mut [F::Output],
) {
    let mut rest = &mut *out;
    let len = rest.len();
    walk.walk(first, len, |run| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(run.len);
        rest = after;
        binary_run::<F, T>(x, y, &run, part);
    });
}

#[inline]
pub(crate) fn binary_run<F: Binary<T>, T: Element>(
    x: &[T],
    y: &[T],
    run: &Run<2>,
    out: &mut [F::Output],
) {
    let [x, y] = [&x[run.offsets[0]..], &y[run.offsets[1]..]];
    vectorized(
        #[inline(always)]
        || each_pair::<F, T>(x, y, run.strides, out),
    );
}

/// As [`binary_run`] from the first elements on, in whatever instructions the caller is compiled to.
#[inline(always)]
pub(crate) fn each_pair<F: Binary<T>, T: Element>(
    x: &[T],
    y: &[T],
    strides: [usize; 2],
    out: &mut [F::Output],
) {
    match strides {
        [1, 1] => {
            for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                *out = F::apply(*x, *y);
            }
        }
        [1, 0] => {
            let y = y[0];
            for (out, x) in out.iter_mut().zip(x) {
                *out = F::apply(*x, y);
            }
        }
        [0, 1] => {
            let x = x[0];
            for (out, y) in out.iter_mut().zip(y) {
                *out = F::apply(x, *y);
            }
        }
        [x_stride, y_stride] => {
            for (index, out) in out.iter_mut().enumerate() {
                *out = F::apply(x[index * x_stride], y[index * y_stride]);
            }
        }
    }
}

/// Takes each element from `x` where `condition` is true, else from `y`; all three are broadcast.
///
/// # Errors
///
/// As of [`binary`].
pub fn select<T: Element>(
    condition: &TensorView<'_, Bool>,
    x: &TensorView<'_, T>,
    y: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let walk = Broadcast::new([
        (condition.extents(), condition.strides()),
        (x.extents(), x.strides()),
        (y.extents(), y.strides()),
    ])?;
    expect_shape(walk.shape(), out.extents())?;
    let out = out.as_mut_slice();
    let mut done = 0;
    walk.walk(0, out.len(), |run| {
        let part = &mut out[done..done + run.len];
        done += run.len;
        let condition = &condition.elements()[run.offsets[0]..];
        let (x, y) = (
            &x.elements()[run.offsets[1]..],
            &y.elements()[run.offsets[2]..],
        );
        select_run(run.strides, condition, x, y, part);
    });
    Ok(())
}

#[inline]
fn select_run<T: Element>(
    strides: [usize; 3],
    condition: &[Bool],
    x: &[T],
    y: &[T],
    out: &mut [T],
) {
    vectorized(
        #[inline(always)]
        || match strides {
            [1, 1, 1] => {
                for (((out, condition), x), y) in out.iter_mut().zip(condition).zip(x).zip(y) {
                    *out = if (*condition).into() { *x } else { *y };
                }
            }
            [1, 1, 0] => {
                let y = y[0];
                for ((out, condition), x) in out.iter_mut().zip(condition).zip(x) {
                    *out = if (*condition).into() { *x } else { y };
                }
            }
            [1, 0, 1] => {
                let x = x[0];
                for ((out, condition), y) in out.iter_mut().zip(condition).zip(y) {
                    *out = if (*condition).into() { x } else { *y };
                }
            }
            [condition_stride, x_stride, y_stride] => {
                for (index, out) in out.iter_mut().enumerate() {
                    let takes_x = condition[index * condition_stride].into();
                    let (x, y) = (x[index * x_stride], y[index * y_stride]);
                    *out = if takes_x { x } else { y };
                }
            }
        },
    );
}

/// Converts elements to another type, as `as` does in Rust: integers to integers keep the low bits, floats to
/// integers are rounded towards zero and to the range, all else is rounded to nearest.
///
/// # Errors
///
/// `InvalidArgument` if the shapes differ.
pub fn cast<T: Real, U: Real>(
    x: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, U>,
) -> Result<(), Error>
where
    Cast<U>: Unary<T, Output = U>,
{
    unary::<Cast<U>, T>(x, out)
}

/// Calculates a function of each element of a tensor, on the workers of the request's queue if it is large.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not, or of other types, and those of [`parallel::fill`].
pub fn unary_into<F: Unary<T>, T: Element>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    expect_same(x.shape(), out.shape())?;
    let x = x.clone();
    let chunk = parallel::chunk_len(F::COST, 1);
    parallel::fill(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        let x = &reading.elements::<T>()?[first..first + part.len()];
        unary_slice::<F, T>(x, part);
        Ok(())
    })
}

/// Replaces each element of a tensor by a function of it.
///
/// # Errors
///
/// `InvalidArgument` if the tensor is of another type, and those of [`parallel::fill`].
pub fn unary_in_place<F: Unary<T, Output = T>, T: Element>(
    execution: &ExecutionContext,
    tensor: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let chunk = parallel::chunk_len(F::COST, 1);
    parallel::fill(execution, tensor, chunk, |_, part: &mut [T]| {
        vectorized(
            #[inline(always)]
            || part.iter_mut().for_each(|x| *x = F::apply(*x)),
        );
        Ok(())
    })
}

/// Calculates a function of each pair of elements of two tensors, on the workers of the request's queue if
/// they are large.
///
/// # Shapes
///
/// `x` and `y` are broadcast; `out` is of the shape that this gives.
///
/// # Errors
///
/// `InvalidArgument` if they can't be broadcast, or if shapes or types differ from what they should be, and
/// those of [`parallel::fill`].
pub fn binary_into<F: Binary<T>, T: Element>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    y: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    crate::dense::expect_dtype::<T>(y.metadata())?;
    let walk = Broadcast::new([
        (&x.shape().to_dims(), &x.shape().strides()),
        (&y.shape().to_dims(), &y.shape().strides()),
    ])?;
    expect_shape(walk.shape(), &out.shape().to_dims())?;
    let (x, y) = (x.clone(), y.clone());
    let chunk = parallel::chunk_len(F::COST, 1);
    parallel::fill(execution, out, chunk, move |first, part| {
        let (x, y) = (x.read()?, y.read()?);
        binary_part::<F, T>(&walk, x.elements()?, y.elements()?, first, part);
        Ok(())
    })
}

/// Replaces each element of `target` by a function of it and the element of `other` at the same place.
///
/// # Shapes
///
/// `other` broadcasts to `target`.
///
/// # Errors
///
/// As of [`binary_into`].
pub fn binary_in_place<F: Binary<T, Output = T>, T: Element>(
    execution: &ExecutionContext,
    target: &DenseHostTensor,
    other: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(other.metadata())?;
    let extents = target.shape().to_dims();
    let walk = Broadcast::new([
        (&extents, &target.shape().strides()),
        (&other.shape().to_dims(), &other.shape().strides()),
    ])?;
    expect_shape(walk.shape(), &extents)?;
    if target.buffer().overlaps(other.buffer()) {
        let message = "a tensor can't be changed in place by itself";
        return Err(Error::invalid_argument(message));
    }
    let other = other.clone();
    let chunk = parallel::chunk_len(F::COST, 1);
    parallel::fill(execution, target, chunk, move |first, part: &mut [T]| {
        let reading = other.read()?;
        let other = reading.elements::<T>()?;
        let mut done = 0;
        walk.walk(first, part.len(), |run| {
            let other = &other[run.offsets[1]..];
            let part = &mut part[done..done + run.len];
            done += run.len;
            vectorized(
                #[inline(always)]
                || match run.strides[1] {
                    1 => part
                        .iter_mut()
                        .zip(other)
                        .for_each(|(x, y)| *x = F::apply(*x, *y)),
                    stride => {
                        for (index, x) in part.iter_mut().enumerate() {
                            *x = F::apply(*x, other[index * stride]);
                        }
                    }
                },
            );
        });
        Ok(())
    })
}

/// The metadata of what [`binary_into`] makes of two tensors.
///
/// # Errors
///
/// `InvalidArgument` if their types differ, or if they can't be broadcast.
pub fn binary_metadata<F: Binary<T>, T: Element>(
    x: &TensorMetadata,
    y: &TensorMetadata,
) -> Result<TensorMetadata, Error> {
    if x.dtype != y.dtype {
        let message = format!("expected two tensors of one type, found {x} and {y}");
        return Err(Error::invalid_argument(message));
    }
    let extents = broadcast_extents(&[&x.shape.to_dims(), &y.shape.to_dims()])?;
    Ok(TensorMetadata::new(
        F::Output::DTYPE,
        TensorShape::new(&extents)?,
    ))
}

/// Tells whether two shapes are the same.
///
/// # Errors
///
/// `InvalidArgument` if they are not.
pub fn expect_same(x: &TensorShape, out: &TensorShape) -> Result<(), Error> {
    if x == out {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "tensor shape mismatch: {x} vs. {out}"
    )))
}

fn expect_shape(wanted: &[usize], found: &[usize]) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    let message = format!("expected a result of shape {wanted:?}, found {found:?}");
    Err(Error::invalid_argument(message))
}

#[cfg(test)]
mod tests;
