//! Products of `f32` matrices with factors rounded to `bf16` and sums of `f32`, by AMX.
//!
//! A packed right side has for each two rows the pairs of its columns, 32 bits each, so that a panel is as many rows of 64
//! or 128 bytes as tiles read. Its depth is filled up by zeros to whole tiles. The left side is rounded block by block, and
//! laid into tiles, one behind the other.
//!
//! Factors are rounded to the nearest number, to the even one of two; products are exact, and each sum takes two at a time.
//! Numbers below the least normal one count as 0. A row's sums don't depend on the other rows.

use std::cell::Cell;
use std::ops::Range;

use super::tile::{RowSource, Sums as TileSums};
use super::{Block, BlockEpilogue, Lhs, Panels, RhsBlock};
use crate::math::amx::Tiles;
use crate::math::vectorized;

#[allow(unsafe_code, reason = "a listed module")]
mod tiles;

use tiles::{AHEAD, Sums, TileRow};
pub(crate) use tiles::{DEPTH, SIDE};

/// Bytes of left rows that are laid at a time, unless two tiles of rows are more: half of the second cache.
const LAID_BYTES: usize = 1 << 20;
/// Rows of two tiles.
const ROWS: usize = 2 * SIDE;

/// Returns the nearest `bf16`, the even one of two; what is no number stays that.
#[inline(always)]
pub(super) fn round(number: f32) -> u16 {
    let bits = number.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    match number.is_nan() {
        true => (bits >> 16) as u16 | 0x40,
        false => rounded as u16,
    }
}

/// Returns two numbers of a column as a packed right side has them.
#[inline(always)]
pub(super) fn pair(first: f32, second: f32) -> f32 {
    f32::from_bits(u32::from(round(first)) | u32::from(round(second)) << 16)
}

/// Returns the two numbers of a pair.
#[inline(always)]
pub(super) fn of_pair(pair: f32) -> [f32; 2] {
    let bits = pair.to_bits();
    [bits << 16, bits & 0xffff_0000].map(f32::from_bits)
}

/// Makes a block of the product; see [`multiply`](super::multiply).
pub(super) fn multiply(
    left: &impl Lhs,
    right: Panels<'_>,
    block: &Block,
    block_epilogue: &BlockEpilogue<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let depth = right.layout.depth;
    let n_tiles = depth.div_ceil(DEPTH);
    let mut tiles = Tiles::new([SIDE; 2]);
    let at_once = (LAID_BYTES / 2 / (n_tiles * DEPTH).max(1) / ROWS).max(1) * ROWS;
    let right = RhsBlock::new(right, block.panels.clone());
    let mut strips = Strips::new(n_tiles);
    let mut sums = Sums([[0.0; 2 * SIDE]; ROWS]);
    for first in block.rows.clone().step_by(at_once) {
        let rows = first..block.rows.end.min(first + at_once);
        strips.lay(left, depth, rows.clone());
        for panel in &right.panels {
            let elements = &right.elements[panel.elements.clone()];
            for (index, start) in rows.clone().step_by(ROWS).enumerate() {
                let n_rows = ROWS.min(rows.end - start);
                let strip = n_tiles * SIDE;
                let strip = &strips.laid[2 * index * strip..][..n_rows.div_ceil(SIDE) * strip];
                // Each of the first tiles of rows has another part of the next panel come nearer.
                let ahead = panel.elements.end + index * n_tiles * AHEAD;
                let ahead = right.elements.get(ahead..).unwrap_or_default();
                match panel.width {
                    SIDE => {
                        tiles.multiply_rounded::<SIDE>(strip, elements, n_tiles, &mut sums, ahead)
                    }
                    _ => tiles.multiply_rounded::<ROWS>(strip, elements, n_tiles, &mut sums, ahead),
                }
                let start = start - block.rows.start;
                let end = start + n_rows;
                for row in (start..end).step_by(FINISHED_ROWS) {
                    let source = Made(&sums.0[row - start..]);
                    let rows = row..end.min(row + FINISHED_ROWS);
                    right.tile(source, (rows, panel), block_epilogue, out, stride);
                }
            }
        }
    }
}

/// Rows whose epilogue is applied at a time.
const FINISHED_ROWS: usize = 8;

thread_local! {
    /// Memory of strips that a thread keeps: new memory, cleared by the system, costs as much as laying rows.
    static KEPT: Cell<Vec<TileRow>> = const { Cell::new(Vec::new()) };
}

/// Left rows, rounded, in tiles: those of sixteen rows one behind the other, along the depth.
struct Strips {
    laid: Vec<TileRow>,
    /// Number of tiles along the depth.
    n_tiles: usize,
    /// A row, filled up to whole tiles.
    row: Vec<f32>,
}

impl Strips {
    fn new(n_tiles: usize) -> Strips {
        Strips {
            laid: KEPT.take(),
            n_tiles,
            row: vec![0.0; n_tiles * DEPTH],
        }
    }

    /// Lays rows; those that the last tile lacks are any numbers.
    fn lay(&mut self, left: &impl Lhs, depth: usize, rows: Range<usize>) {
        let n_laid = rows.len().div_ceil(SIDE) * self.n_tiles * SIDE;
        if self.laid.len() < n_laid {
            self.laid.resize(n_laid, TileRow([0; DEPTH]));
        }
        let mut copies = Vec::new();
        left.copy(rows.clone(), &mut copies);
        let (mut next, mut parts) = (0, Vec::new());
        for (index, row) in rows.enumerate() {
            parts.clear();
            left.lay(row..row + 1, &copies, &mut next, &mut parts);
            let whole = match parts[..] {
                [part] if depth.is_multiple_of(DEPTH) => &part[..depth],
                _ => {
                    let mut place = 0;
                    let (_, len) = left.parts();
                    for part in &parts {
                        self.row[place..place + len].copy_from_slice(&part[..len]);
                        place += len;
                    }
                    &self.row[..]
                }
            };
            let strip = self.n_tiles * SIDE;
            let strip = &mut self.laid[index / SIDE * strip..][..strip];
            vectorized(
                #[inline(always)]
                || {
                    let tiles = strip.as_chunks_mut::<SIDE>().0;
                    for (tile, numbers) in tiles.iter_mut().zip(whole.as_chunks::<DEPTH>().0) {
                        let row = &mut tile[index % SIDE].0;
                        for (to, number) in row.iter_mut().zip(numbers) {
                            *to = round(*number);
                        }
                    }
                },
            );
        }
    }
}

impl Drop for Strips {
    fn drop(&mut self) {
        if size_of_val(&self.laid[..]) <= 2 * LAID_BYTES {
            KEPT.set(std::mem::take(&mut self.laid));
        }
    }
}

/// Rows of sums that are made.
#[derive(Clone, Copy)]
struct Made<'t>(&'t [[f32; 2 * SIDE]]);

impl RowSource for Made<'_> {
    fn check(self, n_rows: usize) {
        assert!(self.0.len() >= n_rows, "sums of all rows are made");
    }

    #[inline(always)]
    fn add_products<S: pulp::Simd, const N_ROWS: usize, const N_VECTORS: usize>(
        self,
        _: S,
        _: &[S::f32s],
        mut sums: TileSums<S, N_ROWS, N_VECTORS>,
    ) -> TileSums<S, N_ROWS, N_VECTORS> {
        for (sums, made) in sums.iter_mut().zip(self.0) {
            let (made, _) = S::as_simd_f32s(made);
            for (sum, made) in sums.iter_mut().zip(made) {
                *sum = *made;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        let odd = [0x7f80_0001, 0xffc0_0000, 0x7f7f_ffff, 0x8000_0000, 1];
        let numbers = (0..1 << 16).map(|index: u32| index.wrapping_mul(2_654_435_761));
        for bits in numbers.chain(odd) {
            let number = f32::from_bits(bits);
            assert_eq!(round(number), bf16::from_f32(number).to_bits(), "{bits:#x}");
            let [first, second] = of_pair(pair(number, 1.5));
            assert_eq!(first.to_bits() >> 16, u32::from(round(number)));
            assert_eq!(second, 1.5);
        }
    }
}
