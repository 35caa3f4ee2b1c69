//! [`LogSumExp`]: the logarithm of a sum of exponentials, without overflow on the way.

use super::Reduction;
use crate::math::number::Floating;

/// The logarithm of the sum of all e^x; minus infinity for nothing
#[derive(Clone, Copy, Debug)]
pub struct LogSumExp;

impl<T: Floating> Reduction<T> for LogSumExp {
    /// The largest so far, and the sum of all e^(x - largest).
    type Partial = (f64, f64);
    type Output = T;

    #[inline(always)]
    fn empty() -> (f64, f64) {
        (f64::NEG_INFINITY, 0.0)
    }

    #[inline(always)]
    fn take(partial: (f64, f64), x: T) -> (f64, f64) {
        <LogSumExp as Reduction<T>>::combine(partial, (x.to_f64(), 1.0))
    }

    #[inline(always)]
    fn combine(x: (f64, f64), y: (f64, f64)) -> (f64, f64) {
        let (larger, smaller) = if x.0 < y.0 { (y, x) } else { (x, y) };
        // Of two infinities of one sign the difference is no number.
        let factor = if smaller.0 == larger.0 {
            1.0
        } else {
            (smaller.0 - larger.0).exp()
        };
        (larger.0, larger.1 + smaller.1 * factor)
    }

    #[inline(always)]
    fn finish((largest, sum): (f64, f64), _: usize) -> T {
        T::from_f64(if largest.is_infinite() {
            largest
        } else {
            largest + sum.ln()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::reduce::reduce;
    use crate::{TensorView, TensorViewMut};

    fn of(x: &[f32]) -> f32 {
        let mut out = [0.0];
        let view = TensorView::new(x, &[x.len()]).unwrap();
        reduce::<LogSumExp, f32>(&view, &[0], &mut TensorViewMut::new(&mut out, &[]).unwrap())
            .unwrap();
        out[0]
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        assert!((of(&[1000.0, 1000.0]) - 1_000.693_1).abs() < 1e-3);
        assert!((of(&[0.0, 1.0, 2.0]) - 2.407_606).abs() < 1e-6);
        assert_eq!(of(&[f32::NEG_INFINITY; 3]), f32::NEG_INFINITY);
        assert_eq!(of(&[f32::INFINITY, 1.0, f32::INFINITY]), f32::INFINITY);
        assert_eq!(of(&[]), f32::NEG_INFINITY);
    }
}
