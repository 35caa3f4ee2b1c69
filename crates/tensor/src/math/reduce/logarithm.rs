//! [`LogSum`], [`LogSumExp`]: logarithms of sums, and of sums of exponentials without overflow.

use super::Reduce;
use crate::math::number::{Floating, Real};

/// The logarithm of the sum
pub(super) struct LogSum;

impl<T: Floating> Reduce<T> for LogSum {
    type Partial = f64;

    #[inline(always)]
    fn empty() -> f64 {
        0.0
    }

    #[inline(always)]
    fn take(partial: f64, x: T) -> f64 {
        partial + x.to_f64()
    }

    #[inline(always)]
    fn combine(x: f64, y: f64) -> f64 {
        x + y
    }

    #[inline(always)]
    fn finish(sum: f64, _: usize) -> T {
        T::from_f64(sum.ln())
    }

    /// Rounded once.
    #[inline(always)]
    fn finish_as<H: Real>(sum: f64, _: usize) -> H {
        H::from_f64(sum.ln())
    }
}

/// The logarithm of the sum of all e^x; minus infinity for no elements
pub(super) struct LogSumExp;

impl LogSumExp {
    #[inline(always)]
    fn value((largest, sum): (f64, f64)) -> f64 {
        match largest.is_infinite() {
            true => largest,
            false => largest + sum.ln(),
        }
    }
}

impl<T: Floating> Reduce<T> for LogSumExp {
    /// The largest so far, and the sum of all e^(x - largest).
    type Partial = (f64, f64);

    #[inline(always)]
    fn empty() -> (f64, f64) {
        (f64::NEG_INFINITY, 0.0)
    }

    #[inline(always)]
    fn take(partial: (f64, f64), x: T) -> (f64, f64) {
        <LogSumExp as Reduce<T>>::combine(partial, (x.to_f64(), 1.0))
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
    fn finish(partial: (f64, f64), _: usize) -> T {
        T::from_f64(LogSumExp::value(partial))
    }

    /// Rounded once.
    #[inline(always)]
    fn finish_as<H: Real>(partial: (f64, f64), _: usize) -> H {
        H::from_f64(LogSumExp::value(partial))
    }
}

#[cfg(test)]
mod tests {
    use crate::math::reduce::{Reduction, reduce};
    use crate::{TensorView, TensorViewMut};

    fn of(x: &[f32]) -> f32 {
        let mut out = [0.0];
        let view = TensorView::new(x, &[x.len()]).unwrap();
        let mut result = TensorViewMut::new(&mut out, &[]).unwrap();
        reduce(Reduction::LogSumExp, &view, &[0], &mut result).unwrap();
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
