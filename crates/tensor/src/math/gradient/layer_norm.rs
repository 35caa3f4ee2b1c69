//! The gradients of layer norm.

use tfrt_host::Error;

use super::{expect_rows, in_order};
use crate::math::number::{Floating, Number};
use crate::math::reduce::{Mean, Reduce, Sum, SumOfSquares, block};
use crate::math::vectorized;
use crate::{Element, TensorView, TensorViewMut};

/// The gradients of a row's factors and summands: the sums over all rows.
///
/// Of a tensor without elements they are as many as factors were given.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGradients<T> {
    /// Gradient of the factors.
    pub scale: Vec<T>,
    /// Gradient of the summands.
    pub shift: Vec<T>,
}

/// Calculates the gradients of [`normalize::rows`](crate::math::normalize::rows): writes the gradient of the input,
/// and returns the gradients of factors and summands.
///
/// With n the normalised row, r = 1 / sqrt(variance + epsilon) and h = gradient * scale, the gradient of the
/// input is `r (h - mean of h - n (mean of h n))`.
///
/// # Shapes
///
/// `gradient`, `x` and `out`: `[.., row]`, alike; `scale`: `[row]`, or none for factors of 1.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
pub fn layer_norm<T: Floating>(
    gradient: &TensorView<'_, T>,
    x: &TensorView<'_, T>,
    epsilon: T,
    scale: Option<&[T]>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<RowGradients<T>, Error> {
    let row = expect_rows(x.extents(), gradient.extents(), out.extents())?;
    if let Some(found) = scale.map(<[T]>::len).filter(|len| *len != row) {
        let message = format!("expected a factor for each of {row} elements, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let zero = <T::Wide as Element>::ZERO;
    // Without rows there are no sums, of rows that may be of any length.
    let is_empty = out.as_mut_slice().is_empty();
    let n_sums = if is_empty {
        row.min(scale.map_or(0, <[T]>::len))
    } else {
        row
    };
    let (mut of_scale, mut of_shift) = (vec![zero; n_sums], vec![zero; n_sums]);
    let (gradient, x) = (in_order(gradient), in_order(x));
    let rows = gradient
        .chunks_exact(row.max(1))
        .zip(x.chunks_exact(row.max(1)));
    let mut normal = Vec::new();
    for (out, (g, x)) in out.as_mut_slice().chunks_exact_mut(row.max(1)).zip(rows) {
        normal.clear();
        normal.extend_from_slice(x);
        let factor = normalise(&mut normal, epsilon);
        for (index, (g, n)) in g.iter().zip(&normal).enumerate() {
            of_scale[index] = of_scale[index].plus(g.times(*n).widened());
            of_shift[index] = of_shift[index].plus(g.widened());
        }
        one_row(g, &normal, factor, scale, out);
    }
    Ok(RowGradients {
        scale: of_scale.into_iter().map(T::narrowed).collect(),
        shift: of_shift.into_iter().map(T::narrowed).collect(),
    })
}

/// Normalises a row in place; returns the factor of its differences from the mean.
fn normalise<T: Floating>(row: &mut [T], epsilon: T) -> T {
    let mean = <Mean as Reduce<T>>::finish(block::<Mean, T>(row), row.len());
    row.iter_mut().for_each(|x| *x = x.minus(mean));
    let variance = T::mean(block::<SumOfSquares, T>(row), row.len());
    let factor = T::ONE.over(variance.plus(epsilon).map(f32::sqrt, f64::sqrt));
    row.iter_mut().for_each(|x| *x = x.times(factor));
    factor
}

/// Calculates the gradient of a row from the gradient of its result and the normalized row.
fn one_row<T: Floating>(g: &[T], normal: &[T], factor: T, scale: Option<&[T]>, out: &mut [T]) {
    match scale {
        Some(scale) => {
            let each = out.iter_mut().zip(g).zip(scale);
            each.for_each(|((out, g), scale)| *out = g.times(*scale));
        }
        None => out.copy_from_slice(g),
    }
    let mean = T::mean(block::<Sum, T>(out), out.len());
    let products: Vec<T> = out.iter().zip(normal).map(|(h, n)| h.times(*n)).collect();
    let mean_product = T::mean(block::<Sum, T>(&products), out.len());
    vectorized(
        #[inline(always)]
        || {
            for (out, n) in out.iter_mut().zip(normal) {
                let centred = out.minus(mean).minus(n.times(mean_product));
                *out = factor.times(centred);
            }
        },
    );
}
