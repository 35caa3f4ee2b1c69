//! [`ReduceElement`]: elements that are reduced as they are, or as others that stand for them.

use super::{BLOCK, Reduce};
use crate::math::number::Number;
use crate::{BF16, Complex, Element, F16};

/// Maximum number of neighbouring results that are made side by side: this many lie in the first cache, and the
/// processor prefetches rows of this length.
const SIDE_BY_SIDE: usize = 4096;
/// Rows that are loaded together, at most.
const N_ROWS: usize = 4;

/// Scratch memory for elements that are widened.
pub(super) trait Scratch {
    /// Memory that nothing was written to.
    const EMPTY: Self;
}

/// No scratch memory: elements are reduced as they are.
pub(super) struct NoScratch;

impl Scratch for NoScratch {
    const EMPTY: Self = NoScratch;
}

impl Scratch for [f32; BLOCK] {
    const EMPTY: Self = [0.0; BLOCK];
}

/// A type of elements as the inner loops take it. Halves are widened block by block, so that they need no loops of
/// their own.
pub(super) trait ReduceElement: Element {
    /// The elements that the loops take.
    type Loop: Element;
    /// Memory for a block of widened elements.
    type Buffer: Scratch;
    /// Maximum number of neighbouring results that are made side by side.
    const SIDE_BY_SIDE: usize;

    /// Returns an element as the loops take it.
    fn one(self) -> Self::Loop;
    /// Returns rows as the loops take them: of one length, with no more elements than the buffer holds, if it holds
    /// any.
    fn loaded<'a, const N: usize>(
        rows: [&'a [Self]; N],
        buffer: &'a mut Self::Buffer,
    ) -> [&'a [Self::Loop]; N];
    /// Returns the result of a reduction of `n_elements` elements.
    fn finish<R: Reduce<Self::Loop>>(partial: R::Partial, n_elements: usize) -> Self;
}

/// `direct!(f32)` implements [`ReduceElement`] for `f32`, which stands for itself.
macro_rules! direct {
    ($($type:ty)*) => {$(
        impl ReduceElement for $type {
            type Loop = Self;
            type Buffer = NoScratch;
            const SIDE_BY_SIDE: usize = SIDE_BY_SIDE;

            #[inline(always)]
            fn one(self) -> Self {
                self
            }

            #[inline(always)]
            fn loaded<'a, const N: usize>(rows: [&'a [Self]; N], _: &'a mut NoScratch) -> [&'a [Self]; N] {
                rows
            }

            #[inline(always)]
            fn finish<R: Reduce<Self>>(partial: R::Partial, n_elements: usize) -> Self {
                R::finish(partial, n_elements)
            }
        }
    )*};
}

direct!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex<f32> Complex<f64>);

/// `widened!(F16)` implements [`ReduceElement`] for `F16`, for which `f32` stands.
macro_rules! widened {
    ($($type:ty)*) => {$(
        impl ReduceElement for $type {
            type Loop = f32;
            type Buffer = [f32; BLOCK];
            const SIDE_BY_SIDE: usize = BLOCK / N_ROWS;

            #[inline(always)]
            fn one(self) -> f32 {
                self.widened()
            }

            fn loaded<'a, const N: usize>(
                rows: [&'a [Self]; N],
                buffer: &'a mut [f32; BLOCK],
            ) -> [&'a [f32]; N] {
                let len = rows.first().map_or(0, |row| row.len());
                for (to, row) in buffer.chunks_exact_mut(len.max(1)).zip(rows) {
                    widen(row, to);
                }
                let mut loaded = buffer.chunks_exact(len.max(1));
                std::array::from_fn(|_| loaded.next().filter(|_| len > 0).unwrap_or_default())
            }

            #[inline(always)]
            fn finish<R: Reduce<f32>>(partial: R::Partial, n_elements: usize) -> Self {
                R::finish_as::<Self>(partial, n_elements)
            }
        }
    )*};
}

widened!(F16 BF16);

/// Widens halves; the slices are of one length.
fn widen<T: Number<Wide = f32>>(halves: &[T], to: &mut [f32]) {
    crate::math::vectorized(
        #[inline(always)]
        || {
            for (to, half) in to.iter_mut().zip(halves) {
                *to = half.widened();
            }
        },
    );
}
