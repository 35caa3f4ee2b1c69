//! Pooling: the largest element of a window, or the mean, channel by channel.
//!
//! # Shapes
//!
//! Input `[batch, spatial.., channels]`, output `[batch, output.., channels]`.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Real;
use super::window::{Window, Windows};
use super::{parallel, vectorized};
use crate::math::Family;
use crate::with_real;
use crate::{DenseHostTensor, Dims, Element, TensorView, TensorViewMut};

mod channels_first;
mod functions;
mod general;
mod gradient;
mod narrow;
mod rows;
mod vectors;

pub use channels_first::{channels_first_extents, gradient_channels_first};
pub use channels_first::{pool_channels_first, pool_channels_first_into};
pub use general::{WindowFunction, largest_positions_into, pool_by_into};
pub use gradient::{gradient, gradient_into};
pub use vectors::pool_f32_into;

/// The reduction of a window's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The largest element; for a window in the padding alone, the lowest number of the type.
    Maximum,
    /// The mean of the elements in the input; 0 for a window in the padding alone.
    Mean,
    /// The sum divided by the number of elements of the window, padding included.
    MeanWithPadding,
}

/// Extents of a pooling's tensors.
#[derive(Clone, Copy, Debug)]
struct PoolPlan {
    pooling: Pooling,
    windows: Windows,
    batch: usize,
    channels: usize,
    rank: usize,
}

/// Returns the shape of what pooling makes of an input.
///
/// # Errors
///
/// `InvalidArgument` if the input is not of the shape that the module says, or if a window does not fit.
pub fn output_extents(input: &[usize], windows: &[Window]) -> Result<Dims, Error> {
    Ok(PoolPlan::new(Pooling::Maximum, input, windows)?.output_extents())
}

/// Calculates a pooling.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not those that the module says, if a window does not fit, or if the input
/// does not lie in row-major order.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::pool::{Pooling, pool};
/// use tfrt_tensor::math::window::{Padding, Window};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1.0_f32, 5.0, 2.0, 4.0], &[1, 4, 1])?;
/// let mut out = [0.0; 2];
/// let windows = [Window::new(2, 2, Padding::Valid)];
/// pool(Pooling::Maximum, &x, &windows, &mut TensorViewMut::new(&mut out, &[1, 2, 1])?)?;
/// assert_eq!(out, [5.0, 4.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn pool<T: Real>(
    pooling: Pooling,
    input: &TensorView<'_, T>,
    windows: &[Window],
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = PoolPlan::new(pooling, input.extents(), windows)?;
    plan.expect_output(out.extents())?;
    let input = input.as_slice().ok_or_else(|| {
        Error::invalid_argument("what is pooled lies in row-major order: copy the view first")
    })?;
    plan.run(input, 0, out.as_mut_slice());
    Ok(())
}

/// Applies [`pool`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// Those of [`pool`], and those of [`parallel::fill`].
pub fn pool_into(
    execution: &ExecutionContext,
    pooling: Pooling,
    input: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = input.dtype();
    with_real!(dtype, T => pool_of::<T>(execution, pooling, input, windows, out), else Err(Family::Reals.lacks(dtype)))
}

fn pool_of<T: Real>(
    execution: &ExecutionContext,
    pooling: Pooling,
    input: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(input.metadata())?;
    let plan = PoolPlan::new(pooling, &input.shape().to_dims(), windows)?;
    plan.expect_output(&out.shape().to_dims())?;
    let input = input.clone();
    let chunk = parallel::chunk_len(plan.windows.n_taps(), plan.channels);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        plan.run(input.read()?.elements()?, first, part);
        Ok(())
    })
}

impl PoolPlan {
    fn new(pooling: Pooling, input: &[usize], windows: &[Window]) -> Result<PoolPlan, Error> {
        let [batch, spatial @ .., channels] = input else {
            let message =
                format!("expected an input of shape [batch, spatial.., channels], found {input:?}");
            return Err(Error::invalid_argument(message));
        };
        Ok(PoolPlan {
            pooling,
            windows: Windows::new(windows, spatial)?,
            batch: *batch,
            channels: *channels,
            rank: windows.len(),
        })
    }

    fn output_extents(&self) -> Dims {
        let outputs: SmallVec<[usize; 3]> = self.windows.outputs(self.rank);
        let mut extents = Dims::from_slice(&[self.batch]);
        extents.extend(outputs);
        extents.push(self.channels);
        extents
    }

    fn expect_output(&self, found: &[usize]) -> Result<(), Error> {
        let wanted = self.output_extents();
        if wanted[..] == *found {
            return Ok(());
        }
        let message = format!("expected a result of shape {wanted:?}, found {found:?}");
        Err(Error::invalid_argument(message))
    }

    /// Makes the outputs from the `first` element on; whole outputs.
    fn run<T: Real>(&self, input: &[T], first: usize, out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        if self.channels == 1 {
            return rows::run(self, input, first, out);
        }
        let channels = self.channels;
        // It wraps around only where no window has two elements of the input.
        let step = self.windows.0[2].window.dilation.wrapping_mul(channels);
        let (n_outputs, n_inputs) = (self.windows.n_outputs(), self.windows.n_inputs());
        let mut sums = vec![<T::Wide as Element>::ZERO; channels];
        for (index, out) in out.chunks_exact_mut(channels).enumerate() {
            let output = first / channels + index;
            let image = output / n_outputs * n_inputs * channels;
            out.fill(T::LOWEST);
            sums.fill(<T::Wide as Element>::ZERO);
            let mut n_seen = 0;
            self.windows.runs(output % n_outputs, |_, place, n_run| {
                n_seen += n_run;
                for index in 0..n_run {
                    let x = &input[image + place * channels + index * step..][..channels];
                    match self.pooling {
                        Pooling::Maximum => take_greatest(out, x),
                        _ => add(&mut sums, x),
                    }
                }
            });
            let n = match self.pooling {
                Pooling::Maximum => continue,
                Pooling::Mean => n_seen.max(1),
                Pooling::MeanWithPadding => self.windows.n_taps(),
            };
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = T::mean(*sum, n);
            }
        }
    }
}

fn take_greatest<T: Real>(out: &mut [T], x: &[T]) {
    vectorized(
        #[inline(always)]
        || {
            out.iter_mut()
                .zip(x)
                .for_each(|(out, x)| *out = out.greatest(*x))
        },
    );
}

fn add<T: Real>(sums: &mut [T::Wide], x: &[T]) {
    use super::number::Number;
    vectorized(
        #[inline(always)]
        || {
            sums.iter_mut()
                .zip(x)
                .for_each(|(sum, x)| *sum = sum.plus(x.widened()))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::window::Padding;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pools_are_those_of_the_definition(
            [height, width] in [0..7_usize, 0..7_usize],
            [kh, kw] in [1..4_usize, 1..4_usize],
            [sh, sw] in [1..4_usize, 1..4_usize],
            channels in 1..4_usize,
            same in any::<bool>(),
            values in prop::collection::vec(-50..50_i32, 2 * 6 * 6 * 3),
        ) {
            let padding = if same { Padding::Same } else { Padding::Explicit(1, 0) };
            let windows = [Window::new(kh, sh, padding), Window::new(kw, sw, padding)];
            let shape = [2, height, width, channels];
            let Ok(output) = output_extents(&shape, &windows) else { return Ok(()) };
            let input = TensorView::new(&values[..2 * height * width * channels], &shape).unwrap();
            let n = output.iter().product();
            let of = |pooling| {
                let mut out = vec![7; n];
                pool(pooling, &input, &windows, &mut TensorViewMut::new(&mut out, &output).unwrap()).unwrap();
                out
            };
            let (greatest, mean, with) =
                (of(Pooling::Maximum), of(Pooling::Mean), of(Pooling::MeanWithPadding));
            for index in 0..n {
                let (rest, c) = (index / channels, index % channels);
                let (rest, x) = (rest / output[2], rest % output[2]);
                let (b, y) = (rest / output[1], rest % output[1]);
                let before = |window: Window, input| window.output(input).unwrap().1;
                let mut seen = Vec::new();
                for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
                    let y = (y * sh + ky).checked_sub(before(windows[0], height));
                    let x = (x * sw + kx).checked_sub(before(windows[1], width));
                    if let (Some(y), Some(x)) = (y, x) {
                        seen.extend(input.get(&[b, y, x, c]));
                    }
                }
                let sum: i32 = seen.iter().sum();
                let n = i32::try_from(seen.len()).unwrap();
                prop_assert_eq!(greatest[index], seen.iter().copied().max().unwrap_or(i32::MIN));
                prop_assert_eq!(mean[index], sum / n.max(1));
                prop_assert_eq!(with[index], sum / i32::try_from(kh * kw).unwrap());
            }
        }
    }
}
