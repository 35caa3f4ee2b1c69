//! Pooling with channels first.
//!
//! Nothing is copied: each channel of each image is an image of its own, with one channel. Where there are many
//! channels, pooling them side by side, channels last, is faster.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Pooling, gradient, output_extents, pool, pool_into};
use crate::math::number::{Floating, Real};
use crate::math::window::Window;
use crate::{DenseHostTensor, Dims, Element, TensorShape, TensorView, TensorViewMut};

/// Returns the shape of a pooling's result for an input `[batch, channels, spatial..]`.
///
/// # Errors
///
/// See [`output_extents`].
pub fn channels_first_extents(input: &[usize], windows: &[Window]) -> Result<Dims, Error> {
    let output = output_extents(&alone(input)?, windows)?;
    let mut extents = Dims::from_slice(&input[..2]);
    extents.extend_from_slice(&output[1..output.len() - 1]);
    Ok(extents)
}

/// Applies [`pool()`] to input `[batch, channels, spatial..]` and output `[batch, channels, output..]`.
///
/// # Errors
///
/// See [`pool()`].
pub fn pool_channels_first<T: Real>(
    pooling: Pooling,
    input: &TensorView<'_, T>,
    windows: &[Window],
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let wanted = channels_first_extents(input.extents(), windows)?;
    expect_result(&wanted, out.extents())?;
    let extents = [alone(input.extents())?, alone(&wanted)?];
    let input = TensorView::new(in_order(input)?, &extents[0])?;
    let mut out = TensorViewMut::new(out.as_mut_slice(), &extents[1])?;
    pool(pooling, &input, windows, &mut out)
}

/// Applies [`pool_channels_first`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// # Errors
///
/// See [`pool_into`].
pub fn pool_channels_first_into(
    execution: &ExecutionContext,
    pooling: Pooling,
    input: &DenseHostTensor,
    windows: &[Window],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let extents = input.shape().to_dims();
    let wanted = channels_first_extents(&extents, windows)?;
    expect_result(&wanted, &out.shape().to_dims())?;
    let input = input.reshape(TensorShape::new(&alone(&extents)?)?)?;
    let out = out.reshape(TensorShape::new(&alone(&wanted)?)?)?;
    pool_into(execution, pooling, &input, windows, &out)
}

/// Calculates [`gradient()`] with input `[batch, channels, spatial..]` and its gradients alike.
///
/// # Errors
///
/// See [`gradient()`].
pub fn gradient_channels_first<T: Floating>(
    pooling: Pooling,
    input: &TensorView<'_, T>,
    of_output: &TensorView<'_, T>,
    windows: &[Window],
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let wanted = channels_first_extents(input.extents(), windows)?;
    expect_result(&wanted, of_output.extents())?;
    expect_result(input.extents(), out.extents())?;
    let extents = [alone(input.extents())?, alone(&wanted)?];
    let input = TensorView::new(in_order(input)?, &extents[0])?;
    let of_output = TensorView::new(in_order(of_output)?, &extents[1])?;
    let mut out = TensorViewMut::new(out.as_mut_slice(), &extents[0])?;
    gradient(pooling, &input, &of_output, windows, &mut out)
}

/// Of `[batch, channels, spatial..]` to `[batch * channels, spatial.., 1]`.
fn alone(extents: &[usize]) -> Result<Dims, Error> {
    let [batch, channels, spatial @ ..] = extents else {
        let message =
            format!("expected an input of shape [batch, channels, spatial..], found {extents:?}");
        return Err(Error::invalid_argument(message));
    };
    let n_images = batch.checked_mul(*channels).ok_or_else(|| {
        Error::resource_exhausted(format!(
            "a tensor of shape {extents:?} does not fit any memory"
        ))
    })?;
    let mut alone = Dims::from_slice(&[n_images]);
    alone.extend_from_slice(spatial);
    alone.push(1);
    Ok(alone)
}

fn in_order<'a, T: Element>(view: &TensorView<'a, T>) -> Result<&'a [T], Error> {
    view.as_slice().ok_or_else(|| {
        Error::invalid_argument("what is pooled lies in row-major order: copy the view first")
    })
}

fn expect_result(wanted: &[usize], found: &[usize]) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    let message = format!("expected a tensor of shape {wanted:?}, found {found:?}");
    Err(Error::invalid_argument(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::window::Padding;
    use proptest::prelude::*;

    /// Returns the elements with channels behind the spatial dimensions.
    fn last<T: Element>(x: &TensorView<'_, T>) -> (Vec<T>, Vec<usize>) {
        let order: Vec<usize> = [0].into_iter().chain(2..x.rank()).chain([1]).collect();
        let x = x.permute(&order).unwrap();
        (x.iter().collect(), x.extents().to_vec())
    }

    proptest! {
        #[test]
        fn channels_may_come_first(
            spatial in prop::collection::vec((1..8_usize, 1..4_usize, 1..4_usize), 1..4),
            dilation in 1..3_usize,
            (batch, channels) in (0..3_usize, 0..4_usize),
            same in any::<bool>(),
            pooling in prop::sample::select(vec![Pooling::Maximum, Pooling::Mean, Pooling::MeanWithPadding]),
            values in prop::collection::vec(-50.0..50.0_f64, 16384),
        ) {
            let padding = if same { Padding::Same } else { Padding::Explicit(1, 0) };
            let windows: Vec<Window> = spatial.iter().map(|(_, extent, stride)| Window { dilation, ..Window::new(*extent, *stride, padding) }).collect();
            let mut shape = vec![batch, channels];
            shape.extend(spatial.iter().map(|(extent, ..)| *extent));
            let Ok(extents) = channels_first_extents(&shape, &windows) else { return Ok(()) };
            let (n, m): (usize, usize) = (shape.iter().product(), extents.iter().product());
            let (x, g) = (TensorView::new(&values[..n], &shape).unwrap(), TensorView::new(&values[n..n + m], &extents).unwrap());
            let (mut out, mut back) = (vec![0.0; m], vec![0.0; n]);
            pool_channels_first(pooling, &x, &windows, &mut TensorViewMut::new(&mut out, &extents).unwrap()).unwrap();
            gradient_channels_first(pooling, &x, &g, &windows, &mut TensorViewMut::new(&mut back, &shape).unwrap()).unwrap();
            let ((x, x_shape), (g, g_shape)) = (last(&x), last(&g));
            let (mut wanted, mut wanted_back) = (vec![0.0; m], vec![0.0; n]);
            let (x, g) = (TensorView::new(&x, &x_shape).unwrap(), TensorView::new(&g, &g_shape).unwrap());
            pool(pooling, &x, &windows, &mut TensorViewMut::new(&mut wanted, &g_shape).unwrap()).unwrap();
            gradient(pooling, &x, &g, &windows, &mut TensorViewMut::new(&mut wanted_back, &x_shape).unwrap()).unwrap();
            prop_assert_eq!(last(&TensorView::new(&out, &extents).unwrap()).0, wanted);
            prop_assert_eq!(last(&TensorView::new(&back, &shape).unwrap()).0, wanted_back);
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let window = [Window::new(1, 1, Padding::Valid)];
        assert!(channels_first_extents(&[1], &window).is_err());
        assert!(channels_first_extents(&[1, 2], &window).is_err());
        assert!(channels_first_extents(&[1 << 40, 1 << 40, 0], &window).is_err());
        let x = TensorView::new(&[1, 2], &[1, 1, 2]).unwrap();
        let mut out = TensorViewMut::new(&mut [], &[0, 1, 2]).unwrap();
        assert!(pool_channels_first(Pooling::Mean, &x, &window, &mut out).is_err());
    }
}
