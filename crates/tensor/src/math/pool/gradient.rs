//! The gradient of pooling.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{PoolPlan, Pooling};
use crate::math::number::Floating;
use crate::math::parallel;
use crate::math::window::Window;
use crate::{DenseHostTensor, TensorView, TensorViewMut};

/// Calculates the gradient of the input of [`pool`](super::pool) from the gradient of its output.
///
/// Of a largest element the gradient goes to it, the first of several; what is no number counts as largest. Of
/// a mean it goes to all elements, in equal parts. Of a window in the padding alone it goes nowhere.
///
/// # Shapes
///
/// `input` and `out` as the input in the module's table, `gradient` as the output.
///
/// # Errors
///
/// See [`pool`](super::pool).
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::pool::{Pooling, gradient};
/// use tfrt_tensor::math::window::{Padding, Window};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1.0_f32, 5.0, 2.0, 4.0], &[1, 4, 1])?;
/// let g = TensorView::new(&[10.0, 20.0], &[1, 2, 1])?;
/// let mut out = [0.0; 4];
/// let windows = [Window::new(2, 2, Padding::Valid)];
/// gradient(Pooling::Maximum, &x, &g, &windows, &mut TensorViewMut::new(&mut out, &[1, 4, 1])?)?;
/// assert_eq!(out, [0.0, 10.0, 0.0, 20.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn gradient<T: Floating>(
    pooling: Pooling,
    input: &TensorView<'_, T>,
    gradient: &TensorView<'_, T>,
    windows: &[Window],
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = PoolPlan::new(pooling, input.extents(), windows)?;
    plan.expect_gradient(input.extents(), gradient.extents(), out.extents())?;
    let (Some(x), Some(g)) = (input.as_slice(), gradient.as_slice()) else {
        let message =
            "what was pooled, and its gradient, lie in row-major order: copy the views first";
        return Err(Error::invalid_argument(message));
    };
    plan.gradient(x, g, 0, out.as_mut_slice());
    Ok(())
}

/// Applies [`gradient`] to dense tensors, on the workers of the request's queue if there are several images.
///
/// # Errors
///
/// Those of [`gradient`], if the types differ, and those of [`parallel::fill`].
pub fn gradient_into<T: Floating>(
    execution: &ExecutionContext,
    pooling: Pooling,
    input: &DenseHostTensor,
    gradient: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(input.metadata())?;
    crate::dense::expect_dtype::<T>(gradient.metadata())?;
    let extents = input.shape().to_dims();
    let plan = PoolPlan::new(pooling, &extents, windows)?;
    let (found, result) = (gradient.shape().to_dims(), out.shape().to_dims());
    plan.expect_gradient(&extents, &found, &result)?;
    let (input, gradient) = (input.clone(), gradient.clone());
    let image = plan.windows.n_inputs().saturating_mul(plan.channels);
    let chunk = parallel::chunk_len(plan.windows.n_taps(), image);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let (input, gradient) = (input.read()?, gradient.read()?);
        plan.gradient(input.elements()?, gradient.elements()?, first, part);
        Ok(())
    })
}

impl PoolPlan {
    fn expect_gradient(
        &self,
        input: &[usize],
        gradient: &[usize],
        out: &[usize],
    ) -> Result<(), Error> {
        self.expect_output(gradient)?;
        if input == out {
            return Ok(());
        }
        let message = format!("expected a result of shape {input:?}, found {out:?}");
        Err(Error::invalid_argument(message))
    }

    /// Makes the gradient from the `first` element on; whole images.
    fn gradient<T: Floating>(&self, x: &[T], g: &[T], first: usize, out: &mut [T]) {
        out.fill(T::ZERO);
        if out.is_empty() {
            return;
        }
        let (n_outputs, channels) = (self.windows.n_outputs(), self.channels);
        let image_len = self.windows.n_inputs() * channels;
        for (number, out) in out.chunks_exact_mut(image_len).enumerate() {
            let image = first / image_len + number;
            let x = &x[image * image_len..][..image_len];
            let g = &g[image * n_outputs * channels..][..n_outputs * channels];
            for output in 0..n_outputs {
                let g = &g[output * channels..][..channels];
                match self.pooling {
                    Pooling::Maximum => self.largest(x, g, output, out),
                    Pooling::Mean | Pooling::MeanWithPadding => self.mean(g, output, out),
                }
            }
        }
    }

    /// Calls `body` with the start in an image of each element that an output reads.
    fn each(&self, output: usize, mut body: impl FnMut(usize)) {
        let dilation = self.windows.0[2].window.dilation;
        self.windows.runs(output, |_, place, n_run| {
            for index in 0..n_run {
                body((place + index * dilation) * self.channels);
            }
        });
    }

    fn largest<T: Floating>(&self, x: &[T], g: &[T], output: usize, out: &mut [T]) {
        for (channel, g) in g.iter().enumerate() {
            let mut best: Option<(T, usize)> = None;
            self.each(output, |start| {
                let (element, at) = (x[start + channel], start + channel);
                let is_better = best.is_none_or(|(largest, _)| {
                    largest.less(element) || (largest.same(largest) && !element.same(element))
                });
                if is_better {
                    best = Some((element, at));
                }
            });
            if let Some((_, at)) = best {
                out[at] = out[at].plus(*g);
            }
        }
    }

    fn mean<T: Floating>(&self, g: &[T], output: usize, out: &mut [T]) {
        let mut n_seen = 0;
        self.each(output, |_| n_seen += 1);
        let n = match self.pooling {
            Pooling::MeanWithPadding => self.windows.n_taps(),
            _ => n_seen,
        };
        self.each(output, |start| {
            let each = out[start..start + g.len()].iter_mut().zip(g);
            each.for_each(|(out, g)| *out = out.plus(T::mean(g.widened(), n)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{output_extents, pool};
    use super::*;
    use crate::math::window::Padding;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gradients_are_slopes(
            spatial in prop::collection::vec((1..6_usize, 1..4_usize, 1..3_usize, 1..3_usize), 1..4),
            (batch, channels) in (0..3_usize, 0..3_usize),
            same in any::<bool>(),
            pooling in prop::sample::select(vec![Pooling::Maximum, Pooling::Mean, Pooling::MeanWithPadding]),
            values in prop::collection::vec(-50..50_i32, 2048),
        ) {
            let padding = if same { Padding::Same } else { Padding::Explicit(1, 0) };
            let windows: Vec<Window> = spatial.iter().map(|(_, extent, stride, dilation)| Window {
                extent: *extent, stride: *stride, dilation: *dilation, padding,
            }).collect();
            let mut shape = vec![batch];
            shape.extend(spatial.iter().map(|(extent, ..)| *extent));
            shape.push(channels);
            let Ok(output) = output_extents(&shape, &windows) else { return Ok(()) };
            let (n, m): (usize, usize) = (shape.iter().product(), output.iter().product());
            prop_assume!(n + m <= values.len());
            // No two are alike, so that small steps change no order.
            let x: Vec<f64> = values[..n].iter().enumerate().map(|(i, x)| f64::from(*x) + i as f64 * 1e-3).collect();
            let g: Vec<f64> = values[n..n + m].iter().map(|x| f64::from(*x)).collect();
            let (view, given) = (TensorView::new(&x, &shape).unwrap(), TensorView::new(&g, &output).unwrap());
            let mut out = vec![7.0; n];
            gradient(pooling, &view, &given, &windows, &mut TensorViewMut::new(&mut out, &shape).unwrap()).unwrap();
            let loss = |x: &[f64]| {
                let mut y = vec![0.0; m];
                let x = TensorView::new(x, &shape).unwrap();
                pool(pooling, &x, &windows, &mut TensorViewMut::new(&mut y, &output).unwrap()).unwrap();
                // What lies in the padding alone is as low as can be, and does not change.
                y.iter().zip(&g).map(|(y, g)| if y.is_finite() { y * g } else { 0.0 }).sum::<f64>()
            };
            for index in 0..n.min(40) {
                let index = index * n.div_ceil(40) % n;
                let step = |size: f64| {
                    let mut x = x.clone();
                    x[index] += size;
                    loss(&x)
                };
                let slope = (step(1e-4) - step(-1e-4)) / 2e-4;
                prop_assert!((out[index] - slope).abs() < 1e-4, "{} {}", out[index], slope);
            }
        }
    }
}
