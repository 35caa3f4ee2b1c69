//! Normalisation by the mean and variance of rows, or by given ones of each channel.
//!
//! | Function | Normalises |
//! | --- | --- |
//! | [`rows`] | each row by its own mean and variance: layer norm; instance and group norm of a reshaped view |
//! | [`rows_root_mean_square`] | each row by the root of the mean of its squares: RMS norm |
//! | [`channels`] | each channel by a given mean and variance: batch norm when a model is used |
//! | [`channel_statistics`] | nothing: finds mean and variance of each channel, for batch norm in training |
//! | [`channels_gradient`] | nothing: the gradients of [`channels`] with the statistics of a batch |
//!
//! Variances are those of the whole, not of a sample: divided by the number. A mean is found first, then the
//! squares of the differences from it, so that numbers far from 0 lose nothing.

use tfrt_host::Error;

use super::number::{Floating, Number};
use super::reduce::{self, Reduction, Sum, SumOfSquares, block};
use super::rows::{Row, is_streamed};
use super::vectorized;
use crate::{Element, TensorView, TensorViewMut};

mod channels;
mod concat;
mod tensors;

pub use channels::{ChannelTensors, channels_in_place, channels_into};
pub use concat::concat_affine_into;
pub use tensors::{RowNorm, channel_affine_into, channel_moments, row_moments, rows_into};

/// Scale and shift of normalized rows, element by element of a row: `x * scale + shift`. A missing one is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Affine<'a, T> {
    /// A factor for each element of a row.
    pub scale: Option<&'a [T]>,
    /// A summand for each element of a row.
    pub shift: Option<&'a [T]>,
}

/// Normalises each row: `(x - mean) / sqrt(variance + epsilon) * scale + shift`.
///
/// # Shapes
///
/// `x` and `out`: `[.., row]`, alike; `scale` and `shift`: `[row]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::normalize::{Affine, rows};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1.0_f32, 3.0, 10.0, 30.0], &[2, 2])?;
/// let mut out = [0.0; 4];
/// rows(&x, 0.0, Affine::default(), &mut TensorViewMut::new(&mut out, &[2, 2])?)?;
/// assert_eq!(out, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn rows<T: Floating>(
    x: &TensorView<'_, T>,
    epsilon: T,
    affine: Affine<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let is_streamed = is_streamed::<T>(
        out.as_mut_slice().len(),
        x.extents().last().copied().unwrap_or(0),
    );
    by_variance(x, epsilon, affine, is_streamed, out)
}

/// Normalizes rows by their variance, for the whole or a part of a result, streamed or not.
fn by_variance<T: Floating>(
    x: &TensorView<'_, T>,
    epsilon: T,
    affine: Affine<'_, T>,
    is_streamed: bool,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    each_row(
        x,
        affine,
        is_streamed,
        out,
        #[inline(always)]
        |mut row| {
            let len = row.elements().len();
            let mean = T::mean(block::<Sum, T>(row.elements()), len);
            row.write(
                #[inline(always)]
                move |x| x.minus(mean),
            );
            let squares = block::<SumOfSquares, T>(row.elements());
            finish_row(row, squares, epsilon, affine);
        },
    )
}

/// Normalises each row by the root of the mean of its squares: `x / sqrt(mean of x² + epsilon) * scale + shift`.
///
/// # Shapes
///
/// See [`rows`].
///
/// # Errors
///
/// See [`rows`].
pub fn rows_root_mean_square<T: Floating>(
    x: &TensorView<'_, T>,
    epsilon: T,
    affine: Affine<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let is_streamed = is_streamed::<T>(
        out.as_mut_slice().len(),
        x.extents().last().copied().unwrap_or(0),
    );
    by_root_mean_square(x, epsilon, affine, is_streamed, out)
}

/// Normalizes rows by their root mean square, for the whole or a part of a result, streamed or not.
fn by_root_mean_square<T: Floating>(
    x: &TensorView<'_, T>,
    epsilon: T,
    affine: Affine<'_, T>,
    is_streamed: bool,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    each_row(
        x,
        affine,
        is_streamed,
        out,
        #[inline(always)]
        |mut row| {
            let squares = block::<SumOfSquares, T>(row.elements());
            row.write(
                #[inline(always)]
                |x| x,
            );
            finish_row(row, squares, epsilon, affine);
        },
    )
}

/// Makes each row of `out`.
fn each_row<T: Floating>(
    x: &TensorView<'_, T>,
    affine: Affine<'_, T>,
    is_streamed: bool,
    out: &mut TensorViewMut<'_, T>,
    make: impl Fn(Row<'_, T>),
) -> Result<(), Error> {
    let row = row_len(x.extents(), out.extents(), &affine)?;
    let Some(elements) = x.as_slice() else {
        super::elementwise::unary::<super::elementwise::Identity, T>(x, out)?;
        let rows = out.as_mut_slice().chunks_exact_mut(row);
        vectorized(
            #[inline(always)]
            || rows.for_each(|row| make(Row::in_place(row))),
        );
        return Ok(());
    };
    super::rows::each_row(elements, row, out.as_mut_slice(), is_streamed, make);
    Ok(())
}

/// Returns the length of rows; 1 if there is nothing to normalise.
fn row_len<T>(x: &[usize], out: &[usize], affine: &Affine<'_, T>) -> Result<usize, Error> {
    let row = x.last().copied().unwrap_or(0);
    let fits = |list: Option<&[T]>| list.is_none_or(|list| list.len() == row);
    if x != out || x.is_empty() || !fits(affine.scale) || !fits(affine.shift) {
        let len =
            |list: Option<&[T]>| list.map_or("none".to_owned(), |list| list.len().to_string());
        return Err(Error::invalid_argument(format!(
            "rows of shape {x:?} with a result of shape {out:?}, {} factors and {} summands: expected one \
             shape with at least one dimension, and as many of these as a row has elements",
            len(affine.scale),
            len(affine.shift)
        )));
    }
    Ok(row.max(1))
}

/// Divides a row by its root mean square, given the sum of squares, then scales and shifts.
#[inline(always)]
fn finish_row<T: Floating>(row: Row<'_, T>, squares: T::Wide, epsilon: T, affine: Affine<'_, T>) {
    let mean_square = T::mean(squares, row.elements().len());
    let root = mean_square.plus(epsilon).map(f32::sqrt, f64::sqrt);
    let factor = T::ONE.over(root);
    row.finish_parts(
        #[inline(always)]
        |first, segment| {
            let columns = first..first + segment.len();
            let scale = affine.scale.map(|list| &list[columns.clone()]);
            let shift = affine.shift.map(|list| &list[columns.clone()]);
            let elements = segment.iter_mut();
            match (scale, shift) {
                (Some(scale), Some(shift)) => {
                    for ((x, scale), shift) in elements.zip(scale).zip(shift) {
                        *x = x.times(factor).times(*scale).plus(*shift);
                    }
                }
                (Some(scale), None) => {
                    for (x, scale) in elements.zip(scale) {
                        *x = x.times(factor).times(*scale);
                    }
                }
                (None, Some(shift)) => {
                    for (x, shift) in elements.zip(shift) {
                        *x = x.times(factor).plus(*shift);
                    }
                }
                (None, None) => elements.for_each(|x| *x = x.times(factor)),
            }
        },
    );
}

/// Batch norm of channels: mean, variance, scale and shift of each channel.
#[derive(Clone, Copy, Debug)]
pub struct Channels<'a, T> {
    /// Mean of each channel.
    pub mean: &'a [T],
    /// Variance of each channel.
    pub variance: &'a [T],
    /// Factor of each channel.
    pub scale: &'a [T],
    /// Summand of each channel.
    pub shift: &'a [T],
    /// Added to the variance.
    pub epsilon: T,
}

impl<T: Floating> Channels<'_, T> {
    /// Takes all together as a factor and a summand for each channel: `x * factor + summand`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the lists are not of one length.
    pub fn folded(&self) -> Result<(Vec<T>, Vec<T>), Error> {
        let n = self.mean.len();
        let lists = [
            ("variances", self.variance),
            ("scales", self.scale),
            ("shifts", self.shift),
        ];
        if let Some((name, list)) = lists.iter().find(|(_, list)| list.len() != n) {
            let found = list.len();
            return Err(Error::invalid_argument(format!(
                "parameter does not match the input channel number: expected {n} {name}, as many as there are \
                 means, found {found}"
            )));
        }
        let factor = |(scale, variance): (&T, &T)| {
            scale.over(variance.plus(self.epsilon).map(f32::sqrt, f64::sqrt))
        };
        let factors: Vec<T> = self.scale.iter().zip(self.variance).map(factor).collect();
        let summand = |((shift, mean), factor): ((&T, &T), &T)| shift.minus(mean.times(*factor));
        let summands = self
            .shift
            .iter()
            .zip(self.mean)
            .zip(&factors)
            .map(summand)
            .collect();
        Ok((factors, summands))
    }
}

/// Normalises each channel, in place: `(x - mean) / sqrt(variance + epsilon) * scale + shift`.
///
/// # Shapes
///
/// `x`: `[.., channels]`.
///
/// # Errors
///
/// `InvalidArgument` if the last extent is not the number of channels.
pub fn channels<T: Floating>(
    x: &mut TensorViewMut<'_, T>,
    channels: &Channels<'_, T>,
) -> Result<(), Error> {
    let (factors, summands) = channels.folded()?;
    expect_channels(x.extents(), factors.len())?;
    scale_and_shift(x.as_mut_slice(), &factors, &summands);
    Ok(())
}

fn expect_channels(extents: &[usize], n_channels: usize) -> Result<(), Error> {
    if extents.last() == Some(&n_channels) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "parameter does not match the input channel number: {n_channels} channels for a tensor of shape \
         {extents:?}"
    )))
}

fn scale_and_shift<T: Number>(x: &mut [T], factors: &[T], summands: &[T]) {
    if factors.is_empty() {
        return;
    }
    for row in x.chunks_exact_mut(factors.len()) {
        vectorized(
            #[inline(always)]
            || {
                for ((x, factor), summand) in row.iter_mut().zip(factors).zip(summands) {
                    *x = x.times(*factor).plus(*summand);
                }
            },
        );
    }
}

/// Finds mean and variance of each channel.
///
/// # Shapes
///
/// `x`: `[.., channels]`; the results have an element for each channel.
///
/// # Errors
///
/// `InvalidArgument` if there are no dimensions, or nothing to take a mean of.
pub fn channel_statistics<T: Floating>(x: &TensorView<'_, T>) -> Result<(Vec<T>, Vec<T>), Error> {
    let Some((n_channels, leading)) = x.extents().split_last() else {
        let message = "a tensor without dimensions has no channels";
        return Err(Error::invalid_argument(message));
    };
    let dimensions: Vec<usize> = (0..leading.len()).collect();
    let mut mean = vec![T::ZERO; *n_channels];
    let shape = [*n_channels];
    let mut result = TensorViewMut::new(&mut mean, &shape)?;
    reduce::reduce(Reduction::Mean, x, &dimensions, &mut result)?;
    let n = leading
        .iter()
        .fold(1_usize, |product, extent| product.saturating_mul(*extent));
    let mut squares = vec![<T::Wide as Element>::ZERO; *n_channels];
    for (index, x) in x.iter().enumerate() {
        let channel = index % n_channels;
        let difference = x.minus(mean[channel]).widened();
        squares[channel] = squares[channel].plus(difference.times(difference));
    }
    let variance = squares.into_iter().map(|sum| T::mean(sum, n)).collect();
    Ok((mean, variance))
}

/// Gradients of [`channels`] by batch statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelGradients<T> {
    /// Gradient of the scales.
    pub scale: Vec<T>,
    /// Gradient of the shifts.
    pub shift: Vec<T>,
}

/// Calculates the gradients of [`channels`]: writes the gradient of `x` to `out`, and returns the gradients of scale
/// and shift.
///
/// With g the gradient of the output, r = 1 / sqrt(variance + epsilon) and d = x - mean, means being over all
/// elements of a channel:
///
/// * of x: scale r (g - mean(g) - d mean(g d) r²)
/// * of the scale: the sum of g d r; of the shift: the sum of g
///
/// # Shapes
///
/// `gradient`, `x` and `out`: `[.., channels]`, alike.
///
/// # Errors
///
/// `InvalidArgument` if shapes differ, if the last extent is not the number of channels, or if views do not lie
/// in row-major order.
pub fn channels_gradient<T: Floating>(
    gradient: &TensorView<'_, T>,
    x: &TensorView<'_, T>,
    channels: &Channels<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<ChannelGradients<T>, Error> {
    let n_channels = channels.folded()?.0.len();
    expect_channels(x.extents(), n_channels)?;
    let (Some(g), Some(d)) = (gradient.as_slice(), x.as_slice()) else {
        let message = "the tensors lie in row-major order: copy the view first";
        return Err(Error::invalid_argument(message));
    };
    if gradient.extents() != x.extents() || out.extents() != x.extents() {
        let (gradient, x, out) = (gradient.extents(), x.extents(), out.extents());
        let message = format!("tensor shape mismatch: {gradient:?} vs. {x:?} vs. {out:?}");
        return Err(Error::invalid_argument(message));
    }
    let n = g.len().checked_div(n_channels).unwrap_or(0);
    let mut sums = vec![<T::Wide as Element>::ZERO; n_channels];
    let mut products = sums.clone();
    if n == 0 {
        let zeros = vec![T::ZERO; n_channels];
        return Ok(ChannelGradients {
            scale: zeros.clone(),
            shift: zeros,
        });
    }
    for (g, x) in g.chunks_exact(n_channels).zip(d.chunks_exact(n_channels)) {
        for channel in 0..n_channels {
            let d = x[channel].minus(channels.mean[channel]);
            sums[channel] = sums[channel].plus(g[channel].widened());
            products[channel] = products[channel].plus(g[channel].times(d).widened());
        }
    }
    let inverse = |variance: &T| {
        let root = variance.plus(channels.epsilon).map(f32::sqrt, f64::sqrt);
        T::ONE.over(root)
    };
    let inverses: Vec<T> = channels.variance.iter().map(inverse).collect();
    let rows = g.chunks_exact(n_channels).zip(d.chunks_exact(n_channels));
    for (out, (g, x)) in out.as_mut_slice().chunks_exact_mut(n_channels).zip(rows) {
        for channel in 0..n_channels {
            let (r, d) = (inverses[channel], x[channel].minus(channels.mean[channel]));
            let mean_g = T::mean(sums[channel], n);
            let mean_product = T::mean(products[channel], n);
            let centred = g[channel]
                .minus(mean_g)
                .minus(d.times(mean_product).times(r).times(r));
            out[channel] = channels.scale[channel].times(r).times(centred);
        }
    }
    let scale = products
        .iter()
        .zip(&inverses)
        .map(|(sum, r)| T::narrowed(*sum).times(*r));
    Ok(ChannelGradients {
        scale: scale.collect(),
        shift: sums.into_iter().map(T::narrowed).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (
            mean,
            values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n,
        )
    }

    proptest! {
        #[test]
        fn rows_are_normalised_by_their_moments(
            (n, row) in (0..4_usize, 1..50_usize),
            values in prop::collection::vec(-10.0..10.0_f64, 200),
        ) {
            let (values, scale) = (&values[..n * row], &values[..row]);
            let x = TensorView::new(values, &[n, row]).unwrap();
            let mut out = vec![0.0; n * row];
            let mut view = TensorViewMut::new(&mut out, &[n, row]).unwrap();
            let affine = Affine { scale: Some(scale), shift: Some(scale) };
            rows(&x, 1e-3, affine, &mut view).unwrap();
            for (index, out) in out.iter().enumerate() {
                let own = &values[index / row * row..][..row];
                let (mean, variance) = moments(own);
                let s = scale[index % row];
                let exact = (values[index] - mean) / (variance + 1e-3).sqrt() * s + s;
                prop_assert!((out - exact).abs() < 1e-9, "{} {}", out, exact);
            }
            let mut view = TensorViewMut::new(&mut out, &[n, row]).unwrap();
            rows_root_mean_square(&x, 1e-3, Affine::default(), &mut view).unwrap();
            for (index, out) in out.iter().enumerate() {
                let own = &values[index / row * row..][..row];
                let mean_square = own.iter().map(|x| x * x).sum::<f64>() / row as f64;
                prop_assert!((out - values[index] / (mean_square + 1e-3).sqrt()).abs() < 1e-9);
            }
        }

        #[test]
        fn channels_and_their_gradients_are_those_of_the_definition(
            (n, n_channels) in (1..6_usize, 1..4_usize),
            values in prop::collection::vec(-2.0..2.0_f64, 60),
        ) {
            let shape = [n, n_channels];
            let (x, rest) = values.split_at(n * n_channels);
            let (g, rest) = rest.split_at(n * n_channels);
            let (scale, shift) = (&rest[..n_channels], &rest[n_channels..2 * n_channels]);
            let view = TensorView::new(x, &shape).unwrap();
            let (mean, variance) = channel_statistics(&view).unwrap();
            let given = Channels { mean: &mean, variance: &variance, scale, shift, epsilon: 0.1 };
            let forward = |x: &[f64]| {
                let (mean, variance) = channel_statistics(&TensorView::new(x, &shape).unwrap()).unwrap();
                let mut out = x.to_vec();
                let given = Channels { mean: &mean, variance: &variance, ..given };
                channels(&mut TensorViewMut::new(&mut out, &shape).unwrap(), &given).unwrap();
                out
            };
            for channel in 0..n_channels {
                let own: Vec<f64> = x.iter().skip(channel).step_by(n_channels).copied().collect();
                let (own_mean, own_variance) = moments(&own);
                prop_assert!((mean[channel] - own_mean).abs() < 1e-12);
                prop_assert!((variance[channel] - own_variance).abs() < 1e-12);
                let exact = (own[0] - own_mean) / (own_variance + 0.1).sqrt() * scale[channel] + shift[channel];
                prop_assert!((forward(x)[channel] - exact).abs() < 1e-9);
            }
            // The gradient of the sum of g * output, by small steps.
            let loss = |x: &[f64]| forward(x).iter().zip(g).map(|(y, g)| y * g).sum::<f64>();
            let mut dx = vec![0.0; x.len()];
            let gradient = TensorView::new(g, &shape).unwrap();
            let found = channels_gradient(
                &gradient, &view, &given, &mut TensorViewMut::new(&mut dx, &shape).unwrap(),
            ).unwrap();
            for index in 0..x.len() {
                let step = |size: f64| {
                    let mut x = x.to_vec();
                    x[index] += size;
                    loss(&x)
                };
                let slope = (step(1e-5) - step(-1e-5)) / 2e-5;
                prop_assert!((dx[index] - slope).abs() < 1e-5, "{} {}", dx[index], slope);
            }
            for channel in 0..n_channels {
                let own = |values: &[f64]| values.iter().skip(channel).step_by(n_channels).copied().collect::<Vec<f64>>();
                let sum: f64 = own(g).iter().sum();
                prop_assert!((found.shift[channel] - sum).abs() < 1e-9);
                let r = 1.0 / (variance[channel] + 0.1).sqrt();
                let product: f64 = own(g).iter().zip(own(x)).map(|(g, x)| g * (x - mean[channel]) * r).sum();
                prop_assert!((found.scale[channel] - product).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_told() {
        let mut x = [1.0_f32; 4];
        let mut x = TensorViewMut::new(&mut x, &[2, 2]).unwrap();
        let list = [1.0; 3];
        let given = Channels {
            mean: &list,
            variance: &list,
            scale: &list,
            shift: &list,
            epsilon: 0.0,
        };
        assert!(channels(&mut x, &given).is_err());
        let given = Channels {
            scale: &list[..2],
            ..given
        };
        assert!(channels(&mut x, &given).is_err());
    }
}
