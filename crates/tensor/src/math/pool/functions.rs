//! Pooling functions of `f32` windows, in vectors.

use pulp::Simd;

/// A reduction of a window's elements.
pub(super) trait PoolFunction {
    /// Returns the state before the first element.
    fn start<S: Simd>(&self, simd: S) -> S::f32s;

    /// Returns the state after one more element.
    fn with<S: Simd>(&self, simd: S, before: S::f32s, x: S::f32s) -> S::f32s;

    /// Returns the result of all elements.
    fn end<S: Simd>(&self, simd: S, made: S::f32s) -> S::f32s;
}

/// The largest element; what is no number where one of them is none.
pub(super) struct MaxPool;

impl PoolFunction for MaxPool {
    #[inline(always)]
    fn start<S: Simd>(&self, simd: S) -> S::f32s {
        simd.splat_f32s(f32::NEG_INFINITY)
    }

    #[inline(always)]
    fn with<S: Simd>(&self, simd: S, before: S::f32s, x: S::f32s) -> S::f32s {
        let larger = match S::F32_LANES > 4 {
            // The instruction of x86 gives the second where they are alike, or one is no number.
            true => simd.max_f32s(before, x),
            false => simd.select_f32s(simd.greater_than_f32s(before, x), before, x),
        };
        simd.select_f32s(simd.equal_f32s(before, before), larger, before)
    }

    #[inline(always)]
    fn end<S: Simd>(&self, _: S, greatest: S::f32s) -> S::f32s {
        greatest
    }
}

/// The sum divided by this number.
pub(super) struct MeanPool(pub f32);

impl PoolFunction for MeanPool {
    #[inline(always)]
    fn start<S: Simd>(&self, simd: S) -> S::f32s {
        simd.splat_f32s(0.0)
    }

    #[inline(always)]
    fn with<S: Simd>(&self, simd: S, before: S::f32s, x: S::f32s) -> S::f32s {
        simd.add_f32s(before, x)
    }

    #[inline(always)]
    fn end<S: Simd>(&self, simd: S, sum: S::f32s) -> S::f32s {
        simd.div_f32s(sum, simd.splat_f32s(self.0))
    }
}
