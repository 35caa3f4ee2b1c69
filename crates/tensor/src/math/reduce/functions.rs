//! Inner functions of reductions: a type for each [`Reduction`](super::Reduction).

use crate::Element;
use crate::math::number::{Floating, Number, Real};

/// A reduction, as the inner loops know it.
pub(crate) trait Reduce<T>: 'static {
    /// State of an unfinished reduction.
    type Partial: Copy + Send;

    /// Returns the result of nothing.
    fn empty() -> Self::Partial;
    /// Takes in an element.
    fn take(partial: Self::Partial, x: T) -> Self::Partial;
    /// Puts two results together.
    fn combine(x: Self::Partial, y: Self::Partial) -> Self::Partial;
    /// Returns the result of `n_elements` elements.
    fn finish(partial: Self::Partial, n_elements: usize) -> T;
    /// Returns the result as a float of a type for which `T` stands while it is reduced.
    #[inline(always)]
    fn finish_as<H: Real>(partial: Self::Partial, n_elements: usize) -> H
    where
        T: Real,
    {
        H::from_f64(Self::finish(partial, n_elements).to_f64())
    }
}

/// `reductions!(/// The largest\n Maximum: Real, T, LOWEST, |x| x, |a, b| a.greatest(b), |p, n| p)`
/// declares the type `Maximum`, which starts from the lowest `T` and combines partial results as it takes in
/// elements.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $partial:ty, $empty:expr,
        |$x:ident| $map:expr, |$a:ident, $b:ident| $combine:expr, |$p:ident, $n:ident| $finish:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl<T: $bound> Reduce<T> for $name {
            type Partial = $partial;

            #[inline(always)]
            fn empty() -> $partial {
                $empty
            }

            #[inline(always)]
            fn take($a: $partial, $x: T) -> $partial {
                let $b = $map;
                $combine
            }

            #[inline(always)]
            fn combine($a: $partial, $b: $partial) -> $partial {
                $combine
            }

            #[inline(always)]
            fn finish($p: $partial, $n: usize) -> T {
                $finish
            }
        }
    )*};
}

reductions! {
    /// The sum; integers wrap around
    Sum: Number, T::Wide, T::Wide::ZERO, |x| x.widened(), |a, b| a.plus(b), |p, _n| T::narrowed(p);
    /// The product; integers wrap around
    Product: Number, T::Wide, T::Wide::ONE, |x| x.widened(), |a, b| a.times(b), |p, _n| T::narrowed(p);
    /// The sum of absolute values; integers wrap around
    SumOfSizes: Real, T::Wide, T::Wide::ZERO, |x| x.magnitude().widened(), |a, b| a.plus(b),
        |p, _n| T::narrowed(p);
    /// The sum of the squares; integers wrap around
    SumOfSquares: Number, T::Wide, T::Wide::ZERO, |x| x.widened().times(x.widened()),
        |a, b| a.plus(b), |p, _n| T::narrowed(p);
    /// The root of the sum of the squares
    Norm: Floating, T::Wide, T::Wide::ZERO, |x| x.widened().times(x.widened()), |a, b| a.plus(b),
        |p, _n| T::root(p);
    /// The mean; of integers, rounded towards 0
    Mean: Real, T::Wide, T::Wide::ZERO, |x| x.widened(), |a, b| a.plus(b), |p, n| T::mean(p, n);
    /// The smallest element; NaN, if one is
    Minimum: Real, T, T::HIGHEST, |x| x, |a, b| a.least(b), |p, _n| p;
    /// The largest element; NaN, if one is
    Maximum: Real, T, T::LOWEST, |x| x, |a, b| a.greatest(b), |p, _n| p;
}
