//! Gradients that training needs, beside those that stand with their functions.
//!
//! | Of | Is |
//! | --- | --- |
//! | softmax and its logarithm | [`softmax`] |
//! | cross entropy with labels | [`cross_entropy_gradient`]; [`cross_entropy`] is the loss |
//! | layer norm | [`layer_norm()`] |
//! | relu | [`elementwise::ReluGradient`](super::elementwise::ReluGradient) |
//! | a bias | [`Reduction::Sum`](super::reduce::Reduction::Sum) over all dimensions but the last |
//! | a matrix product | products with the other factor transposed ([`matmul`](super::matmul)) |
//! | pooling | [`pool::gradient`](super::pool::gradient) |
//! | convolutions, batch norm | functions of [`conv`](super::conv) and [`normalize`](super::normalize) |

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::elementwise::{Exp, Log, Unary};
use super::layout_copy::Position;
use super::number::Floating;
use super::reduce::{Maximum, Sum, block};
use super::softmax::{SoftmaxKind, row_in_place};
use super::{parallel, vectorized};
use crate::{DenseHostTensor, Element, TensorView, TensorViewMut};

mod layer_norm;

pub use layer_norm::{RowGradients, layer_norm};

/// Calculates the gradient of softmax, or of its logarithm, from its result.
///
/// With y the result and g the gradient of it, that is `y (g - sum of g y)` of each row for softmax, and `g -
/// e^y sum of g` for its logarithm.
///
/// # Shapes
///
/// `result`, `gradient` and `out`: `[.., row]`, alike.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::gradient::softmax;
/// use tfrt_tensor::math::softmax::SoftmaxKind;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let (y, g) = (TensorView::new(&[0.25_f32, 0.75], &[2])?, TensorView::new(&[1.0, 0.0], &[2])?);
/// let mut out = [0.0; 2];
/// softmax(SoftmaxKind::Softmax, &y, &g, &mut TensorViewMut::new(&mut out, &[2])?)?;
/// assert_eq!(out, [0.1875, -0.1875]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn softmax<T: Floating>(
    kind: SoftmaxKind,
    result: &TensorView<'_, T>,
    gradient: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let row = expect_rows(result.extents(), gradient.extents(), out.extents())?;
    let (result, gradient) = (in_order(result), in_order(gradient));
    softmax_rows(kind, row, &result, &gradient, out.as_mut_slice());
    Ok(())
}

/// Applies [`softmax`] to dense tensors, on the workers of the request's queue if they are large.
///
/// # Errors
///
/// Those of [`softmax`], if the types differ, and those of [`parallel::fill`].
pub fn softmax_into<T: Floating>(
    execution: &ExecutionContext,
    kind: SoftmaxKind,
    result: &DenseHostTensor,
    gradient: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(result.metadata())?;
    crate::dense::expect_dtype::<T>(gradient.metadata())?;
    let shapes = [result, gradient, out].map(|tensor| tensor.shape().to_dims());
    let row = expect_rows(&shapes[0], &shapes[1], &shapes[2])?;
    let (result, gradient) = (result.clone(), gradient.clone());
    let chunk = parallel::chunk_len(8, row);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let range = first..first + part.len();
        let (result, gradient) = (result.read()?, gradient.read()?);
        let (y, g) = (
            &result.elements()?[range.clone()],
            &gradient.elements()?[range],
        );
        softmax_rows(kind, row, y, g, part);
        Ok(())
    })
}

fn softmax_rows<T: Floating>(kind: SoftmaxKind, row: usize, y: &[T], g: &[T], out: &mut [T]) {
    if row == 0 {
        return;
    }
    let each = y.chunks_exact(row).zip(g.chunks_exact(row));
    for (out, (y, g)) in out.chunks_exact_mut(row).zip(each) {
        match kind {
            SoftmaxKind::Softmax => {
                vectorized(
                    #[inline(always)]
                    || times(g, y, out),
                );
                let sum = T::narrowed(block::<Sum, T>(out));
                vectorized(
                    #[inline(always)]
                    || {
                        for ((out, y), g) in out.iter_mut().zip(y).zip(g) {
                            *out = y.times(g.minus(sum));
                        }
                    },
                );
            }
            SoftmaxKind::LogSoftmax => {
                let sum = T::narrowed(block::<Sum, T>(g));
                vectorized(
                    #[inline(always)]
                    || {
                        for ((out, y), g) in out.iter_mut().zip(y).zip(g) {
                            *out = g.minus(<Exp as Unary<T>>::apply(*y).times(sum));
                        }
                    },
                );
            }
        }
    }
}

#[inline(always)]
fn times<T: Floating>(x: &[T], y: &[T], out: &mut [T]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = x.times(*y);
    }
}

/// Calculates the loss of each row: the logarithm of the sum of all e^x, less the x that the row's label names.
///
/// # Shapes
///
/// `scores: [rows.., classes]`, `labels` and `out`: `[rows..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or for a label that is no class.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::gradient::cross_entropy;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let (scores, labels) = (TensorView::new(&[0.0_f64, 0.0], &[1, 2])?, TensorView::new(&[1], &[1])?);
/// let mut loss = [0.0];
/// cross_entropy(&scores, &labels, &mut TensorViewMut::new(&mut loss, &[1])?)?;
/// assert!((loss[0] - 2_f64.ln()).abs() < 1e-12);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn cross_entropy<T: Floating, I: Position>(
    scores: &TensorView<'_, T>,
    labels: &TensorView<'_, I>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let n_classes = expect_labels(scores.extents(), labels.extents(), out.extents())?;
    let (scores, labels) = (in_order(scores), class_list(labels, n_classes)?);
    let rows = scores.chunks_exact(n_classes.max(1));
    for ((row, label), out) in rows.zip(&labels).zip(out.as_mut_slice()) {
        let largest = block::<Maximum, T>(row);
        let powers: Vec<T> = row
            .iter()
            .map(|x| <Exp as Unary<T>>::apply(x.minus(largest)))
            .collect();
        let sum = T::narrowed(block::<Sum, T>(&powers));
        let logarithm = <Log as Unary<T>>::apply(sum);
        *out = logarithm.minus(row[*label].minus(largest));
    }
    Ok(())
}

/// Calculates the gradient of [`cross_entropy`] with respect to the scores: softmax less 1 at the label, times
/// the gradient of the row's loss.
///
/// # Shapes
///
/// `scores` and `out`: `[rows.., classes]`; `labels` and `gradient`: `[rows..]`. For the mean loss of n rows,
/// `gradient` is 1 / n everywhere ([`TensorView::broadcast`]).
///
/// # Errors
///
/// See [`cross_entropy`].
pub fn cross_entropy_gradient<T: Floating, I: Position>(
    scores: &TensorView<'_, T>,
    labels: &TensorView<'_, I>,
    gradient: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let n_classes = expect_labels(scores.extents(), labels.extents(), gradient.extents())?;
    if scores.extents() != out.extents() {
        let (wanted, found) = (scores.extents(), out.extents());
        let message = format!("expected a result of shape {wanted:?}, found {found:?}");
        return Err(Error::invalid_argument(message));
    }
    let labels = class_list(labels, n_classes)?;
    super::elementwise::unary::<super::elementwise::Identity, T>(scores, out)?;
    let rows = out.as_mut_slice().chunks_exact_mut(n_classes.max(1));
    for ((row, label), g) in rows.zip(&labels).zip(gradient.iter()) {
        row_in_place(SoftmaxKind::Softmax, row);
        row[*label] = row[*label].minus(T::ONE);
        row.iter_mut().for_each(|x| *x = x.times(g));
    }
    Ok(())
}

/// Returns the class that each label names.
fn class_list<I: Position>(
    labels: &TensorView<'_, I>,
    n_classes: usize,
) -> Result<Vec<usize>, Error> {
    let class = |(row, label): (usize, I)| {
        let label = label.to_i128();
        let class = usize::try_from(label).ok();
        class.filter(|class| *class < n_classes).ok_or_else(|| {
            Error::invalid_argument(format!(
                "the label of row {row} is {label}: expected one of {n_classes} classes"
            ))
        })
    };
    labels.iter().enumerate().map(class).collect()
}

fn expect_labels(scores: &[usize], labels: &[usize], rows: &[usize]) -> Result<usize, Error> {
    match scores.split_last() {
        Some((n_classes, own)) if own == labels && own == rows => Ok(*n_classes),
        _ => Err(Error::invalid_argument(format!(
            "scores of shape {scores:?}, labels of shape {labels:?} and losses of shape {rows:?}: expected a \
             label and a loss for each row of scores"
        ))),
    }
}

fn expect_rows(x: &[usize], gradient: &[usize], out: &[usize]) -> Result<usize, Error> {
    match x.last() {
        Some(row) if x == gradient && x == out => Ok(*row),
        _ => Err(Error::invalid_argument(format!(
            "tensor shape mismatch: {x:?} vs. {gradient:?} vs. {out:?}, expected one shape with at least one \
             dimension"
        ))),
    }
}

/// Returns the elements in row-major order, as a copy unless they are contiguous.
fn in_order<'a, T: Element>(view: &TensorView<'a, T>) -> std::borrow::Cow<'a, [T]> {
    match view.as_slice() {
        Some(elements) => elements.into(),
        None => view.iter().collect::<Vec<T>>().into(),
    }
}

#[cfg(test)]
mod tests;
