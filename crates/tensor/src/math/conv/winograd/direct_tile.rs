//! Squares calculated directly, by the filter transformed back: used where elements are not finite, or so large that
//! transforming them could overflow.

use std::marker::PhantomData;
use std::ops::Range;

use super::transform::Transform;
use super::{Geometry, WinogradOperands};
use crate::math::packed_gemm::{BlockEpilogue, Residual};

/// A square of outputs, calculated by the definition.
pub(super) struct DirectTile<'t, T, const PATCH: usize, const TILE: usize> {
    pub transform: PhantomData<T>,
    pub geometry: &'t Geometry<'t>,
    pub sides: WinogradOperands<'t>,
    /// Panels of the block.
    pub panels: Range<usize>,
    /// Number of the square in the block.
    pub tile: usize,
}

/// Columns of the widest panel.
const MAX_WIDTH: usize = 32;

impl<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize>
    DirectTile<'_, T, PATCH, TILE>
{
    pub(super) fn make(&self, block_epilogue: &BlockEpilogue<'_>, out: &mut [f32], stride: usize) {
        let place = self.geometry.place(self.tile);
        let layout = self.sides.tiling.layout;
        let start = layout.panel(self.panels.start).own.start;
        for panel in self.panels.clone() {
            // Columns fill their vectors, so that no panel holds what another does.
            let Range { start: column, end } = layout.panel(panel).own;
            let first = column - start;
            let n_columns = end.min(self.sides.tiling.filters) - column;
            let mut sums = [[[0.0; MAX_WIDTH]; TILE]; TILE];
            for channel in 0..self.sides.plan.channels {
                let taps = self.taps(panel, channel);
                for (y, x) in (0..TILE).flat_map(|y| (0..TILE).map(move |x| (y, x))) {
                    for (tap, factors) in taps.iter().enumerate() {
                        let (tap_y, tap_x) = (tap / 3, tap % 3);
                        let start = self.geometry.element(place, y + tap_y, x + tap_x);
                        // As without squares, padding is 0.
                        let element = start.map_or(0.0, |start| self.sides.input[start + channel]);
                        for (sum, factor) in sums[y][x].iter_mut().zip(factors) {
                            *sum += element * factor;
                        }
                    }
                }
            }
            for (y, x) in (0..TILE).flat_map(|y| (0..TILE).map(move |x| (y, x))) {
                let Some(row) = self.geometry.output(place, y, x) else {
                    continue;
                };
                let out = &mut out[row * stride + first..][..n_columns];
                for (index, (out, sum)) in out.iter_mut().zip(sums[y][x]).enumerate() {
                    *out = finish(block_epilogue, sum, (row, first + index), *out);
                }
            }
        }
    }

    /// Returns the nine taps of a channel, for the columns of a panel.
    fn taps(&self, panel: usize, channel: usize) -> [[f32; MAX_WIDTH]; 9] {
        let (layout, filter) = (self.sides.tiling.layout, self.sides.filter);
        let len = filter.len() / (PATCH * PATCH);
        let panel = layout.panel(panel);
        let (range, width) = (panel.elements, panel.width);
        let mut taps = [[0.0; MAX_WIDTH]; 9];
        for column in 0..width {
            let at = |place: usize| filter[place * len + range.start + channel * width + column];
            let lines: [[f32; 3]; PATCH] =
                std::array::from_fn(|y| T::filter_back(std::array::from_fn(|x| at(y * PATCH + x))));
            for x in 0..3 {
                let back = T::filter_back(std::array::from_fn(|y| lines[y][x]));
                for y in 0..3 {
                    taps[y * 3 + x][column] = back[y];
                }
            }
        }
        taps
    }
}

/// Applies the epilogue to a sum at a row and a column of the block.
fn finish(
    block_epilogue: &BlockEpilogue<'_>,
    sum: f32,
    (row, column): (usize, usize),
    before: f32,
) -> f32 {
    let of = |list: Option<&[f32]>, otherwise: f32| list.map_or(otherwise, |list| list[column]);
    let sum = match block_epilogue.scale.is_some() || block_epilogue.shift.is_some() {
        true => sum.mul_add(of(block_epilogue.scale, 1.0), of(block_epilogue.shift, 0.0)),
        false => sum,
    };
    let sum = match block_epilogue.residual {
        Residual::None => sum,
        Residual::Result(factor) => before.mul_add(factor, sum),
        Residual::Rows(rows, apart) => sum + rows[row * apart + column],
    };
    // What is no number stays that.
    match sum {
        sum if sum < block_epilogue.least => block_epilogue.least,
        sum if sum > block_epilogue.greatest => block_epilogue.greatest,
        sum => sum,
    }
}
