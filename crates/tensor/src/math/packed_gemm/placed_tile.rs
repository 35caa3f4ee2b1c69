//! A tile with its place in the result, where the panel may have columns beyond the result, or columns that another
//! panel has, too.

use super::Residual;
use super::instructions::Processor;
use super::tile::{RowSource, Tile, TileEpilogue};

/// A tile with its operands and place.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedTile<'t, R> {
    pub processor: Processor,
    pub source: R,
    pub n_rows: usize,
    pub panel: &'t [f32],
    /// Number of columns within the result.
    pub n_columns: usize,
    /// Number of these columns that another panel holds, too.
    pub n_again: usize,
    /// Number of columns of the panel.
    pub width: usize,
    /// Whether elements behind the columns of a row may be overwritten: they belong to the next row, which is made
    /// later.
    pub may_spill: bool,
}

/// Number of elements of the largest tile.
const MAX_TILE: usize = 14 * 32;
/// Number of columns of the widest panel.
const MAX_WIDTH: usize = 32;

impl<R: RowSource> PlacedTile<'_, R> {
    // Inlined, as what it calls: to hand a tile on in memory costs as much as some of its products.
    #[inline(always)]
    pub(super) fn whole(self, finish: TileEpilogue<'_>, out: &mut [f32], stride: usize) {
        let tile = Tile {
            rows: self.source,
            n_rows: self.n_rows,
            panel: self.panel,
            finish,
            out,
            stride,
        };
        tile.make(self.processor, self.width);
    }

    /// Makes a tile, and keeps the columns that no other panel has: `out` begins with these. Some columns are not
    /// there, or `out` has no place for those that another panel has, too; so it is made aside and copied, unless
    /// what is too much may be written where later rows will be.
    pub(super) fn cut(self, finish: TileEpilogue<'_>, out: &mut [f32], stride: usize) {
        let PlacedTile {
            n_columns,
            n_again,
            width,
            ..
        } = self;
        let n_own = n_columns - n_again;
        let mut per_column = [[0.0; MAX_WIDTH]; 2];
        let [scale, shift] = &mut per_column;
        let scale = finish.scale.map(|list| &*padded(list, scale));
        let shift = finish.shift.map(|list| &*padded(list, shift));
        let fits = (self.n_rows - 1) * stride + width <= out.len();
        if self.may_spill && fits && matches!(finish.residual, Residual::None) {
            let finish = TileEpilogue {
                scale,
                shift,
                ..finish
            };
            return self.whole(finish, out, stride);
        }
        let mut aside = [0.0; MAX_TILE];
        let mut added;
        let residual = match finish.residual {
            Residual::None => Residual::None,
            Residual::Result(factor) => {
                for (aside, out) in aside
                    .chunks_mut(width)
                    .zip(out.chunks(stride))
                    .take(self.n_rows)
                {
                    aside[n_again..n_columns].copy_from_slice(&out[..n_own]);
                }
                Residual::Result(factor)
            }
            Residual::Rows(rows, apart) => {
                added = [0.0; MAX_TILE];
                for (added, row) in added
                    .chunks_mut(width)
                    .zip(rows.chunks(apart))
                    .take(self.n_rows)
                {
                    added[..n_columns].copy_from_slice(&row[..n_columns]);
                }
                Residual::Rows(&added, width)
            }
        };
        let finish = TileEpilogue {
            scale,
            shift,
            residual,
            ..finish
        };
        self.whole(finish, &mut aside, width);
        for (aside, out) in aside
            .chunks(width)
            .zip(out.chunks_mut(stride))
            .take(self.n_rows)
        {
            out[..n_own].copy_from_slice(&aside[n_again..n_columns]);
        }
    }
}

fn padded<'p>(list: &[f32], padded: &'p mut [f32; MAX_WIDTH]) -> &'p mut [f32] {
    padded[..list.len()].copy_from_slice(list);
    padded
}
