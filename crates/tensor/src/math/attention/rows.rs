//! Products of single queries with keys and values where they lie, in vectors.
//!
//! A score is summed up in the lanes of one vector, which are added at last; a sum of values takes key after key. So the
//! bits of a query's result depend neither on how many queries there are nor on where blocks of them begin.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use pulp::{Simd, WithSimd};

use crate::math::number::Real;
use crate::math::packed_gemm::{Processor, multiply_add};
use crate::math::vectorized;
use crate::{DType, Element, from_bytes, from_bytes_mut, to_bytes, to_bytes_mut};

/// Number of keys that a query is multiplied by at once.
const KEYS: usize = 4;
/// Number of sums of other numbers than `f32` that are made side by side.
const LANES: usize = 8;
/// The most vectors of a sum of values that stay in registers.
const SUMS: usize = 8;

/// Rows that begin `stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRows<'a, W> {
    /// The rows, from the first one's first element on.
    pub elements: &'a [W],
    pub stride: usize,
}

impl<'a, W> KeyRows<'a, W> {
    #[inline(always)]
    fn row(&self, index: usize, columns: std::ops::Range<usize>) -> &'a [W] {
        &self.elements[index * self.stride + columns.start..][..columns.len()]
    }
}

impl<'a, W: Element> KeyRows<'a, W> {
    /// Returns the rows as those of `f32` that they are.
    fn singles(&self) -> Option<KeyRows<'a, f32>> {
        let elements = singles(self.elements)?;
        let stride = self.stride;
        Some(KeyRows { elements, stride })
    }
}

/// Makes a query's scores, times `scale`, for as many keys as `out` has elements.
pub(super) fn score<W: Real>(
    processor: Processor,
    query: &[W],
    keys: KeyRows<'_, W>,
    scale: W,
    out: &mut [W],
) {
    if let (Some(query), Some(keys)) = (singles(query), keys.singles()) {
        let out = from_bytes_mut(to_bytes_mut(out)).expect(SINGLES);
        #[expect(clippy::cast_possible_truncation, reason = "it is a number of 32 bits")]
        let scale = scale.to_f64() as f32;
        return processor.vectorize(Scores {
            query,
            keys,
            scale,
            out,
        });
    }
    vectorized(
        #[inline(always)]
        || {
            for (key, out) in out.iter_mut().enumerate() {
                let key = keys.row(key, 0..query.len());
                let mut sums = [W::ZERO; LANES];
                for (query, key) in query.chunks(LANES).zip(key.chunks(LANES)) {
                    for ((sum, x), y) in sums.iter_mut().zip(query).zip(key) {
                        *sum = sum.plus(x.times(*y));
                    }
                }
                let sum = sums.into_iter().fold(W::ZERO, |sum, lane| sum.plus(lane));
                *out = sum.times(scale);
            }
        },
    );
}

/// Adds to sums the values of keys, each times its weight.
pub(super) fn add<W: Real>(
    processor: Processor,
    weights: &[W],
    values: KeyRows<'_, W>,
    sums: &mut [W],
) {
    if let (Some(weights), Some(values)) = (singles(weights), values.singles()) {
        let sums = from_bytes_mut(to_bytes_mut(sums)).expect(SINGLES);
        return processor.vectorize(AddValues {
            weights,
            values,
            sums,
        });
    }
    vectorized(
        #[inline(always)]
        || {
            for (key, weight) in weights.iter().enumerate() {
                let row = values.row(key, 0..sums.len());
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum = sum.plus(weight.times(*value));
                }
            }
        },
    );
}

const SINGLES: &str = "their type was just asked for";

/// Returns elements as the `f32`s that they are.
fn singles<W: Element>(list: &[W]) -> Option<&[f32]> {
    match W::DTYPE {
        DType::F32 => from_bytes(to_bytes(list)).ok(),
        _ => None,
    }
}

/// Makes a query's scores for as many keys as `out` has elements.
struct Scores<'a> {
    query: &'a [f32],
    keys: KeyRows<'a, f32>,
    scale: f32,
    out: &'a mut [f32],
}

impl WithSimd for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Scores {
            query,
            keys,
            scale,
            out,
        } = self;
        let mut key = 0;
        let (chunks, rest) = out.as_chunks_mut::<KEYS>();
        for out in chunks {
            let sums = products::<S, KEYS>(simd, query, keys, key);
            for index in 0..KEYS {
                out[index] = simd.reduce_sum_f32s(sums[index]) * scale;
            }
            key += KEYS;
        }
        for out in rest {
            let [sum] = products::<S, 1>(simd, query, keys, key);
            *out = simd.reduce_sum_f32s(sum) * scale;
            key += 1;
        }
    }
}

/// Multiplies a query by some keys, in lanes.
#[inline(always)]
fn products<S: Simd, const N: usize>(
    simd: S,
    query: &[f32],
    keys: KeyRows<'_, f32>,
    first: usize,
) -> [S::f32s; N] {
    let (vectors, rest) = S::as_simd_f32s(query);
    let mut rows: [&[f32]; N] = [&[]; N];
    let mut row_vectors: [&[S::f32s]; N] = [&[]; N];
    for index in 0..N {
        rows[index] = keys.row(first + index, 0..query.len());
        row_vectors[index] = &S::as_simd_f32s(rows[index]).0[..vectors.len()];
    }
    let mut sums = [simd.splat_f32s(0.0); N];
    for place in 0..vectors.len() {
        for index in 0..N {
            sums[index] =
                multiply_add(simd, vectors[place], row_vectors[index][place], sums[index]);
        }
    }
    if !rest.is_empty() {
        let last = simd.partial_load_f32s(rest);
        for index in 0..N {
            let row = simd.partial_load_f32s(&rows[index][query.len() - rest.len()..]);
            sums[index] = multiply_add(simd, last, row, sums[index]);
        }
    }
    sums
}

/// Adds to sums the values of keys, each times its weight.
struct AddValues<'a> {
    /// A weight for each key.
    weights: &'a [f32],
    values: KeyRows<'a, f32>,
    /// As many sums as a value has elements.
    sums: &'a mut [f32],
}

impl WithSimd for AddValues<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (width, mut column) = (self.sums.len(), 0);
        while width - column >= S::F32_LANES {
            column += match (width - column) / S::F32_LANES {
                SUMS.. => self.columns::<S, SUMS>(simd, column),
                4.. => self.columns::<S, 4>(simd, column),
                2.. => self.columns::<S, 2>(simd, column),
                _ => self.columns::<S, 1>(simd, column),
            };
        }
        if column < width {
            let mut sum = simd.partial_load_f32s(&self.sums[column..]);
            for (key, weight) in self.weights.iter().enumerate() {
                let row = simd.partial_load_f32s(self.values.row(key, column..width));
                sum = multiply_add(simd, simd.splat_f32s(*weight), row, sum);
            }
            simd.partial_store_f32s(&mut self.sums[column..], sum);
        }
    }
}

impl AddValues<'_> {
    /// Adds to `N` vectors of sums, and returns the number of their elements.
    #[inline(always)]
    fn columns<S: Simd, const N: usize>(&mut self, simd: S, column: usize) -> usize {
        let len = N * S::F32_LANES;
        let (held, _) = S::as_mut_simd_f32s(&mut self.sums[column..][..len]);
        let mut sums = [simd.splat_f32s(0.0); N];
        sums.copy_from_slice(&held[..N]);
        for (key, weight) in self.weights.iter().enumerate() {
            let (row, _) = S::as_simd_f32s(self.values.row(key, column..column + len));
            let (row, weight) = (&row[..N], simd.splat_f32s(*weight));
            for index in 0..N {
                sums[index] = multiply_add(simd, weight, row[index], sums[index]);
            }
        }
        held[..N].copy_from_slice(&sums);
        len
    }
}
