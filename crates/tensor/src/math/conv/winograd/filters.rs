//! The transform of a filter, when it is packed: some columns at a time, for all places of the patch.
//!
//! An element has the same bits in every layout: `f64` operations in the order of [`Transform::filter`], rows first, and
//! one rounding. Packed filters are stored in compiled models, so that this order may not change.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::transform::Transform;
use crate::math::packed_gemm::{Layout, pack};

/// A filter of 3x3, `[3, 3, channels, filters]`, to transform and pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filters<'f, T, const PATCH: usize, const TILE: usize> {
    pub transform: PhantomData<T>,
    /// Layout of one place of the patch.
    pub layout: Layout,
    pub filter: &'f [f32],
    pub filters: usize,
}

/// Number of columns that are transformed at a time: the widest panel.
const WIDTH: usize = 32;

/// Elements of some columns, for each row and column of a square.
type Square<T, const SIDE: usize> = [[[T; WIDTH]; SIDE]; SIDE];

impl<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize> Filters<'_, T, PATCH, TILE> {
    /// Transforms some columns: all places of the patch at once.
    #[inline(always)]
    fn transform(taps: &Square<f32, 3>, places: &mut Square<f32, PATCH>) {
        for lane in 0..WIDTH {
            let mut lines = [[0.0_f64; PATCH]; 3];
            for y in 0..3 {
                let line = [taps[y][0][lane], taps[y][1][lane], taps[y][2][lane]];
                lines[y] = T::filter([line[0].into(), line[1].into(), line[2].into()]);
            }
            for column in 0..PATCH {
                let values = T::filter([lines[0][column], lines[1][column], lines[2][column]]);
                for row in 0..PATCH {
                    #[allow(clippy::cast_possible_truncation, reason = "it is rounded once")]
                    let value = values[row] as f32;
                    places[row][column][lane] = value;
                }
            }
        }
    }

    /// Copies the taps of `n` columns from `first` on, of a channel.
    #[inline(always)]
    fn load(&self, channel: usize, first: usize, n: usize, taps: &mut Square<f32, 3>) {
        let tap_len = self.layout.depth * self.filters;
        for y in 0..3 {
            for x in 0..3 {
                let start = (y * 3 + x) * tap_len + channel * self.filters + first;
                taps[y][x][..n].copy_from_slice(&self.filter[start..start + n]);
            }
        }
    }

    /// Packs by way of a matrix for each place, for layouts whose rows are not those of the matrix.
    pub(super) fn pack_place_by_place(self, packed: &mut [f32]) {
        let Filters {
            layout, filters, ..
        } = self;
        let len = packed.len() / (PATCH * PATCH);
        let mut matrix = vec![0.0; layout.depth * layout.n_columns];
        let (mut taps, mut places) = ([[[0.0; WIDTH]; 3]; 3], [[[0.0; WIDTH]; PATCH]; PATCH]);
        for (place, packed) in packed.chunks_exact_mut(len).enumerate() {
            for channel in 0..layout.depth {
                for first in (0..filters).step_by(WIDTH) {
                    let n = WIDTH.min(filters - first);
                    self.load(channel, first, n, &mut taps);
                    Self::transform(&taps, &mut places);
                    let row = &mut matrix[channel * layout.n_columns + first..][..n];
                    row.copy_from_slice(&places[place / PATCH][place % PATCH][..n]);
                }
            }
            pack(layout, &matrix, 0, [layout.n_columns, 1], packed);
        }
    }
}

/// Transform of a filter into a layout whose rows are those of the matrix, to run on vectors. Writes every element
/// of `packed`.
pub(super) struct Pack<'p, T, const PATCH: usize, const TILE: usize> {
    pub filters: Filters<'p, T, PATCH, TILE>,
    pub packed: &'p mut [f32],
}

impl<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize> WithSimd
    for Pack<'_, T, PATCH, TILE>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Pack { filters, packed } = self;
        let layout = filters.layout;
        let place_len = packed.len() / (PATCH * PATCH);
        let (mut taps, mut places) = ([[[0.0; WIDTH]; 3]; 3], [[[0.0; WIDTH]; PATCH]; PATCH]);
        for panel in layout.panels() {
            for channel in 0..layout.depth {
                for start in (0..panel.width).step_by(WIDTH) {
                    let width = WIDTH.min(panel.width - start);
                    let first = panel.first + start;
                    // Columns behind the last filter are zeros.
                    let n = filters.filters.saturating_sub(first).min(width);
                    filters.load(channel, first, n, &mut taps);
                    Filters::<T, PATCH, TILE>::transform(&taps, &mut places);
                    let at = panel.elements.start + channel * panel.width + start;
                    for row in 0..PATCH {
                        for column in 0..PATCH {
                            let place = (row * PATCH + column) * place_len;
                            let to = &mut packed[place + at..][..width];
                            to[..n].copy_from_slice(&places[row][column][..n]);
                            to[n..].fill(0.0);
                        }
                    }
                }
            }
        }
    }
}
