//! Transforms of a block's patches: of the input, and of the results back.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::transform::Transform;
use super::{Geometry, PatchLayout};
use crate::math::packed_gemm::vectors::{VectorEpilogue, store};
use crate::math::packed_gemm::{BlockEpilogue, multiply_add};

/// Transform of the input's patches, to run on vectors.
pub(super) struct Inputs<'i, T, const PATCH: usize, const TILE: usize> {
    pub transform: PhantomData<T>,
    pub geometry: &'i Geometry<'i>,
    pub input: &'i [f32],
    /// Transformed patches, written.
    pub v: &'i mut [f32],
    pub lay: PatchLayout,
    /// Takes the squares with elements that are large, or not finite.
    pub wild: &'i mut Vec<usize>,
}

/// Factor by which numbers above 2^48 become infinite.
const WILD: f32 = f32::from_bits((127 + 79) << 23);

impl<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize> WithSimd
    for Inputs<'_, T, PATCH, TILE>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let channels = self.geometry.plan.channels;
        let whole = channels - channels % S::F32_LANES;
        for tile in 0..self.geometry.n_tiles() {
            let place = self.geometry.place(tile);
            // Where elements begin; what lies in the padding has none.
            let mut starts = [[None; PATCH]; PATCH];
            for y in 0..PATCH {
                for x in 0..PATCH {
                    starts[y][x] = self.geometry.element(place, y, x);
                }
            }
            let mut telling = simd.splat_f32s(0.0);
            for channel in (0..channels).step_by(S::F32_LANES) {
                let columns: [[S::f32s; PATCH]; PATCH] = std::array::from_fn(
                    #[inline(always)]
                    |x| {
                        let column = std::array::from_fn(
                            #[inline(always)]
                            |y| {
                                let Some(start) = starts[y][x] else {
                                    return simd.splat_f32s(0.0);
                                };
                                let elements = &self.input[start + channel..start + channels];
                                match channel < whole {
                                    true => S::as_simd_f32s(&elements[..S::F32_LANES]).0[0],
                                    false => simd.partial_load_f32s(elements),
                                }
                            },
                        );
                        T::patch(simd, column)
                    },
                );
                let v = &mut self.v[tile * self.lay.row + channel..];
                for y in 0..PATCH {
                    let line = T::patch(
                        simd,
                        std::array::from_fn(
                            #[inline(always)]
                            |x| columns[x][y],
                        ),
                    );
                    for x in 0..PATCH {
                        if T::CHECKED[y] && T::CHECKED[x] {
                            telling = multiply_add(simd, line[x], simd.splat_f32s(WILD), telling);
                        }
                        let to = &mut v[(y * PATCH + x) * self.lay.place..][..S::F32_LANES];
                        S::as_mut_simd_f32s(to).0[0] = line[x];
                    }
                }
            }
            if !simd
                .reduce_sum_f32s(simd.mul_f32s(telling, simd.splat_f32s(0.0)))
                .is_finite()
            {
                self.wild.push(tile);
            }
        }
    }
}

/// Transform of the results back, with the epilogue, to run on vectors.
pub(super) struct Outputs<'o, T, const PATCH: usize, const TILE: usize> {
    pub transform: PhantomData<T>,
    pub geometry: &'o Geometry<'o>,
    pub m: &'o [f32],
    pub lay: PatchLayout,
    /// Number of columns within the result.
    pub n_columns: usize,
    /// Squares that are left out, in order.
    pub wild: &'o [usize],
    pub block_epilogue: &'o BlockEpilogue<'o>,
    pub out: &'o mut [f32],
    pub stride: usize,
}

impl<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize> WithSimd
    for Outputs<'_, T, PATCH, TILE>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let finish = VectorEpilogue::new(simd, self.block_epilogue);
        let mut wild = self.wild;
        for tile in 0..self.geometry.n_tiles() {
            if let [first, rest @ ..] = wild
                && *first == tile
            {
                wild = rest;
                continue;
            }
            let place = self.geometry.place(tile);
            let mut rows = [[None; TILE]; TILE];
            for y in 0..TILE {
                for x in 0..TILE {
                    rows[y][x] = self.geometry.output(place, y, x);
                }
            }
            for column in (0..self.n_columns).step_by(S::F32_LANES) {
                let m = &self.m[tile * self.lay.row + column..];
                let columns: [[S::f32s; TILE]; PATCH] = std::array::from_fn(
                    #[inline(always)]
                    |x| {
                        let column = std::array::from_fn(
                            #[inline(always)]
                            |y| {
                                let from = &m[(y * PATCH + x) * self.lay.place..][..S::F32_LANES];
                                S::as_simd_f32s(from).0[0]
                            },
                        );
                        T::outputs(simd, column)
                    },
                );
                let width = S::F32_LANES.min(self.n_columns - column);
                let per_column = finish.per_column(column, width);
                for y in 0..TILE {
                    let sums = T::outputs(
                        simd,
                        std::array::from_fn(
                            #[inline(always)]
                            |x| columns[x][y],
                        ),
                    );
                    for x in 0..TILE {
                        let Some(row) = rows[y][x] else { continue };
                        let out = &mut self.out[row * self.stride + column..][..width];
                        let value = finish.apply(sums[x], per_column, (row, column), out);
                        store(simd, out, value);
                    }
                }
            }
        }
    }
}
