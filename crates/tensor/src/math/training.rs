//! Training: a loss, and the step of an optimizer.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::{Floating, Real};
use super::softmax::{SoftmaxKind, row_in_place};
use super::{parallel, vectorized};
use crate::math::Family;
use crate::with_floating;
use crate::{DenseHostTensor, TensorView, TensorViewMut, from_bytes_mut};

#[cfg(test)]
mod tests;

/// Options of stochastic gradient descent with momentum.
///
/// For each weight `w` with gradient `g` and velocity `v`:
///
/// ```text
/// v' = of_velocity v + g + decay w
/// w' = w - rate v'                           or, by Nesterov's method,
/// w' = w - rate (g + decay w + of_velocity v')
/// ```
///
/// as in Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep
/// learning" (2013).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Momentum<T> {
    /// Learning rate.
    pub rate: T,
    /// Momentum: the part of the velocity that stays. 0 is gradient descent.
    pub of_velocity: T,
    /// Weight decay.
    pub decay: T,
    /// Whether to use Nesterov's momentum.
    pub is_nesterov: bool,
}

impl Momentum<f64> {
    /// Returns the numbers of the step in the type of the weights.
    fn rounded<T: Floating>(self) -> Momentum<T> {
        Momentum {
            rate: T::from_f64(self.rate),
            of_velocity: T::from_f64(self.of_velocity),
            decay: T::from_f64(self.decay),
            is_nesterov: self.is_nesterov,
        }
    }
}

/// Calculates the mean over rows of the cross entropy between `targets` and the softmax of `logits`, and the
/// gradient of that mean: (softmax - target) / rows, where the targets of each row add up to 1.
///
/// A target of 0 adds nothing, whatever its logit is.
///
/// # Shapes
///
/// All of one shape, with one dimension or more; rows are along the last one.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::training::softmax_cross_entropy;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let logits = TensorView::new(&[0.0_f32, 0.0], &[1, 2])?;
/// let targets = TensorView::new(&[1.0, 0.0], &[1, 2])?;
/// let mut gradient = [0.0; 2];
/// let loss = softmax_cross_entropy(&logits, &targets, &mut TensorViewMut::new(&mut gradient, &[1, 2])?)?;
/// assert_eq!((loss, gradient), (2.0_f32.ln(), [-0.5, 0.5]));
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn softmax_cross_entropy<T: Floating>(
    logits: &TensorView<'_, T>,
    targets: &TensorView<'_, T>,
    gradient: &mut TensorViewMut<'_, T>,
) -> Result<T, Error> {
    use super::elementwise::{Identity, unary};

    let extents = logits.extents();
    let row = match extents.last() {
        Some(row) if targets.extents() == extents && gradient.extents() == extents => *row,
        _ => {
            let (targets, gradient) = (targets.extents(), gradient.extents());
            return Err(Error::invalid_argument(format!(
                "cross entropy of logits of shape {extents:?} with targets of shape {targets:?} and a gradient \
                 of shape {gradient:?}: expected one shape, with at least one dimension"
            )));
        }
    };
    unary::<Identity, T>(logits, gradient)?;
    let gradient = gradient.as_mut_slice();
    let mut wanted = vec![T::ZERO; gradient.len()];
    unary::<Identity, T>(targets, &mut TensorViewMut::new(&mut wanted, extents)?)?;
    if gradient.is_empty() {
        return Ok(T::ZERO);
    }
    let n_rows = gradient.len() / row;
    let share = T::from_f64(1.0 / n_rows as f64);
    let (mut loss, mut logarithms) = (0.0, vec![T::ZERO; row]);
    for (gradient, wanted) in gradient.chunks_exact_mut(row).zip(wanted.chunks_exact(row)) {
        logarithms.copy_from_slice(gradient);
        row_in_place(SoftmaxKind::LogSoftmax, &mut logarithms);
        row_in_place(SoftmaxKind::Softmax, gradient);
        for ((gradient, wanted), logarithm) in gradient.iter_mut().zip(wanted).zip(&logarithms) {
            *gradient = gradient.minus(*wanted).times(share);
            if !wanted.same(T::ZERO) {
                loss -= wanted.to_f64() * logarithm.to_f64();
            }
        }
    }
    Ok(T::from_f64(loss / n_rows as f64))
}

/// Takes a step of [`Momentum`]: changes weights and velocities.
///
/// # Panics
///
/// If the slices are not of one length.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::training::{Momentum, momentum};
///
/// let step = Momentum { rate: 0.5, of_velocity: 0.5, ..Momentum::default() };
/// let (mut velocity, mut weights) = ([2.0_f32], [1.0]);
/// momentum(step, &[1.0], &mut velocity, &mut weights);
/// assert_eq!((velocity, weights), ([2.0], [0.0]));
/// ```
pub fn momentum<T: Floating>(
    step: Momentum<T>,
    gradient: &[T],
    velocity: &mut [T],
    weights: &mut [T],
) {
    let len = weights.len();
    assert!(
        gradient.len() == len && velocity.len() == len,
        "gradient, velocity and weights are of one length"
    );
    let Momentum {
        rate,
        of_velocity,
        decay,
        is_nesterov,
    } = step;
    vectorized(
        #[inline(always)]
        || {
            for ((weight, velocity), gradient) in weights.iter_mut().zip(velocity).zip(gradient) {
                let gradient = gradient.plus(decay.times(*weight));
                *velocity = of_velocity.times(*velocity).plus(gradient);
                let direction = match is_nesterov {
                    true => gradient.plus(of_velocity.times(*velocity)),
                    false => *velocity,
                };
                *weight = weight.minus(rate.times(direction));
            }
        },
    );
}

/// Takes a step of gradient descent: each weight becomes `w - rate g`, on the workers of the request's queue if there
/// are many.
///
/// # Errors
///
/// `InvalidArgument` if the tensors are not of one shape or their elements no `T`s, and those of [`parallel::fill`].
pub fn descend_into(
    execution: &ExecutionContext,
    rate: f64,
    gradient: &DenseHostTensor,
    weights: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = weights.dtype();
    with_floating!(dtype, T => descend_of::<T>(execution, T::from_f64(rate), gradient, weights), else Err(Family::Floats.lacks(dtype)))
}

fn descend_of<T: Floating>(
    execution: &ExecutionContext,
    rate: T,
    gradient: &DenseHostTensor,
    weights: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(gradient.metadata())?;
    super::elementwise::expect_same(gradient.shape(), weights.shape())?;
    let gradient = gradient.clone();
    let chunk = parallel::chunk_len(1, 1);
    parallel::fill(execution, weights, chunk, move |first, part: &mut [T]| {
        let reading = gradient.read()?;
        let gradient = &reading.elements::<T>()?[first..first + part.len()];
        vectorized(
            #[inline(always)]
            || {
                for (weight, gradient) in part.iter_mut().zip(gradient) {
                    *weight = weight.minus(rate.times(*gradient));
                }
            },
        );
        Ok(())
    })
}

/// Applies [`momentum`] to dense tensors, on the workers of the request's queue if they are large.
///
/// # Errors
///
/// `InvalidArgument` if the tensors are not of one shape or their elements no `T`s, `FailedPrecondition` if
/// somebody uses the velocities, and those of [`parallel::fill`].
pub fn momentum_into(
    execution: &ExecutionContext,
    step: Momentum<f64>,
    gradient: &DenseHostTensor,
    velocity: &DenseHostTensor,
    weights: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = weights.dtype();
    with_floating!(dtype, T => momentum_of::<T>(execution, step.rounded(), gradient, velocity, weights), else Err(Family::Floats.lacks(dtype)))
}

fn momentum_of<T: Floating>(
    execution: &ExecutionContext,
    step: Momentum<T>,
    gradient: &DenseHostTensor,
    velocity: &DenseHostTensor,
    weights: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for other in [gradient, velocity] {
        crate::dense::expect_dtype::<T>(other.metadata())?;
        super::elementwise::expect_same(other.shape(), weights.shape())?;
    }
    let (gradient, velocity) = (gradient.clone(), velocity.clone());
    let chunk = parallel::chunk_len(2, 1);
    parallel::fill(execution, weights, chunk, move |first, part: &mut [T]| {
        let reading = gradient.read()?;
        let gradient = &reading.elements::<T>()?[first..first + part.len()];
        let bytes = first * size_of::<T>()..(first + part.len()) * size_of::<T>();
        let velocity = velocity.buffer().slice(bytes);
        let velocity = velocity.expect("it is of the weights' shape");
        let mut writing = velocity.write()?;
        momentum(step, gradient, from_bytes_mut(&mut writing)?, part);
        Ok(())
    })
}
