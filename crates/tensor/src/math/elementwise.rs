//! Formulas of single elements over typed slices and views, for callers with loops of their own.
//! [`pointwise`](super::pointwise) has all else.

use tfrt_host::Error;

use super::broadcast::Broadcast;
pub use super::broadcast::broadcast_extents;
pub use super::pointwise::formulas::*;
use super::vectorized;
use crate::{Element, TensorShape, TensorView, TensorViewMut};

/// Calculates a function of each element of `x`.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not.
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

/// Checks that two shapes are equal.
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
