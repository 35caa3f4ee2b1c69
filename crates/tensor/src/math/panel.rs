//! Products whose right side is packed into panels ahead: what matrix products and convolutions of `f32` with
//! constant weights run on.
//!
//! # How
//!
//! The right side, `[depth, columns]`, is laid out panel by panel: some neighbouring columns, as many as
//! two vectors hold, row after row (`layout`). The left side stays where it is: a row is a list of *parts*,
//! slices that lie anywhere. For a convolution these are what its window looks at, tap by tap, and zeros where it
//! looks at padding; no matrix of patches is made.
//!
//! The result is made tile by tile (`tile`): each panel meets all tiles of a *block* before the next one
//! does, so that the panel is read from the second cache, and the block's left side, too. Where the second cache holds all panels, it is the other way around.
//! Blocks are what threads divide among themselves (`Grid`).

use std::ops::Range;

use smallvec::SmallVec;

mod after;
#[allow(unsafe_code, reason = "a listed module")]
mod ahead;
mod fill;
mod instructions;
mod layout;
mod tile;
pub(crate) mod vectors;

pub use after::{Activation, Added, AddedTensor, After, TensorAfter};
pub(crate) use fill::fill;
pub use instructions::InstructionSet;
use instructions::Processor;
use layout::Panel;
pub(crate) use layout::{Layout, Panels, lay_all_again, pack};
use tile::{Beside, Parts, Source, Tile};
pub(crate) use tile::{Finish, Residual, finish, multiply_add};

/// A left side: rows of as many elements as the right side is deep, in parts of one length.
pub(crate) trait Left {
    /// How many parts a row has, and how long each is.
    fn parts(&self) -> (usize, usize);

    /// How far parts of neighbouring rows are apart, about.
    fn row_stride(&self) -> usize;

    /// Appends copies of what can't be read in place for these rows.
    fn copy(&self, rows: Range<usize>, copies: &mut Vec<f32>);

    /// Appends the parts of a tile's rows: the first of all rows, the second of all rows.
    ///
    /// `next` is where the first copy of these rows begins; it is moved to where those of the next rows do.
    fn lay<'s>(
        &'s self,
        rows: Range<usize>,
        copies: &'s [f32],
        next: &mut usize,
        parts: &mut Vec<&'s [f32]>,
    );
}

/// What becomes of sums, for a whole product: see [`Finish`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finishing<'f> {
    /// Factors: one for each column.
    pub scale: Option<&'f [f32]>,
    /// Summands: one for each column.
    pub shift: Option<&'f [f32]>,
    /// What is added, as seen from the first column of the block's first row.
    pub residual: Residual<'f>,
    pub least: f32,
    pub greatest: f32,
}

impl<'f> Finishing<'f> {
    /// For some neighbouring columns, from a row of the block on.
    #[inline(always)]
    pub(crate) fn of(&self, row: usize, columns: Range<usize>) -> Finish<'f> {
        Finish {
            scale: self.scale.map(|list| &list[columns.clone()]),
            shift: self.shift.map(|list| &list[columns.clone()]),
            residual: match self.residual {
                Residual::Rows(elements, apart) => {
                    Residual::Rows(&elements[row * apart + columns.start..], apart)
                }
                other => other,
            },
            least: self.least,
            greatest: self.greatest,
        }
    }
}

impl Default for Finishing<'_> {
    fn default() -> Self {
        Finishing {
            scale: None,
            shift: None,
            residual: Residual::None,
            least: f32::NEG_INFINITY,
            greatest: f32::INFINITY,
        }
    }
}

/// Rows and panels that are made in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub rows: Range<usize>,
    pub panels: Range<usize>,
}

/// Makes a block of the product. `out` begins with the block's first element, its rows are `stride` apart.
pub(crate) fn multiply(
    left: &impl Left,
    right: Panels<'_>,
    block: &Block,
    finishing: &Finishing<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let (n_parts, part_len) = left.parts();
    let layout = right.layout;
    let max_rows = max_rows(layout.set, left.row_stride());
    let processor = layout.set.processor();
    let at_once = (MAX_PARTS / n_parts.max(1)).max(max_rows);
    let panels: SmallVec<[Panel; 8]> = block
        .panels
        .clone()
        .map(|index| layout.panel(index))
        .collect();
    let (mut first, rows) = (block.rows.start, block.rows.clone());
    let mut copies = Vec::new();
    while first < rows.end {
        let part = first..rows.end.min(first + at_once);
        let mut next = 0;
        copies.clear();
        left.copy(part.clone(), &mut copies);
        let mut parts = Vec::with_capacity(n_parts * part.len());
        let tiles = Tiles::of(part.len(), max_rows);
        for tile in tiles.ranges() {
            let tile = part.start + tile.start..part.start + tile.end;
            left.lay(tile, &copies, &mut next, &mut parts);
        }
        let laid = Laid {
            parts: &parts,
            n_parts,
            part_len,
            first: first - rows.start,
            column: panels.first().map_or(0, |panel| panel.own.start),
            processor,
        };
        // What stays in the second cache is gone through in the inner loop.
        if size_of_val(right.elements) > NEAR_BYTES {
            for panel in &panels {
                for tile in tiles.ranges() {
                    laid.times(right, (tile, panel), finishing, out, stride);
                }
            }
        } else {
            for tile in tiles.ranges() {
                for panel in &panels {
                    laid.times(right, (tile.clone(), panel), finishing, out, stride);
                }
            }
        }
        first = part.end;
    }
}

/// Makes the product of rows that lie `row_len` elements apart and some panels; rows of the result lie one
/// behind the other. `parts` is memory that is used again.
pub(crate) fn multiply_rows<'l>(
    rows: &'l [f32],
    row_len: usize,
    right: Panels<'_>,
    panels: Range<usize>,
    out: &mut [f32],
    parts: &mut Vec<&'l [f32]>,
) {
    let layout = right.layout;
    parts.clear();
    parts.extend(rows.chunks_exact(row_len).map(|row| &row[..layout.depth]));
    let tiles = Tiles::of(parts.len(), max_rows(layout.set, row_len));
    let columns = layout.columns_of(&panels);
    let laid = Laid {
        parts,
        n_parts: 1,
        part_len: layout.depth,
        first: 0,
        column: columns.start,
        processor: layout.set.processor(),
    };
    for index in panels {
        let panel = layout.panel(index);
        for tile in tiles.ranges() {
            let finishing = Finishing::default();
            laid.times(right, (tile, &panel), &finishing, out, columns.len());
        }
    }
}

/// Rows of a tile, if those of the left side lie so far apart.
fn max_rows(set: InstructionSet, row_stride: usize) -> usize {
    match row_stride.is_multiple_of(ALIASING) {
        true => set.max_rows().min(ALIASED_ROWS),
        false => set.max_rows(),
    }
}

/// Bytes of a right side that the second cache holds beside the rest.
const NEAR_BYTES: usize = 384 << 10;
/// Rows this many elements apart, or a multiple, meet in the same places of the first cache ...
const ALIASING: usize = 1024;
/// ... which has room for so many of them.
const ALIASED_ROWS: usize = 7;
/// Parts that are laid at once at most, unless one tile has more.
const MAX_PARTS: usize = 1 << 16;

/// Rows whose parts are laid.
#[derive(Clone, Copy, Debug)]
struct Laid<'l> {
    parts: &'l [&'l [f32]],
    /// Parts of a row.
    n_parts: usize,
    part_len: usize,
    /// The first row, by its number in the block.
    first: usize,
    /// The first column of the block.
    column: usize,
    processor: Processor,
}

impl Laid<'_> {
    /// Makes the tile of some rows and a panel; `out` begins with the block's first element.
    fn times(
        &self,
        right: Panels<'_>,
        (rows, panel): (Range<usize>, &Panel),
        finishing: &Finishing<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let source = Parts {
            parts: &self.parts[rows.start * self.n_parts..rows.end * self.n_parts],
            part_len: self.part_len,
        };
        let rows = self.first + rows.start..self.first + rows.end;
        let place = (rows, panel, self.column);
        right.tile(self.processor, source, place, finishing, out, stride);
    }
}

/// Rows of a product that lie side by side: neighbours in a line of an image.
#[derive(Clone, Debug)]
pub(crate) struct Line<'l> {
    pub elements: &'l [f32],
    /// For each depth where the first row's element is; those of the others follow.
    pub offsets: &'l [usize],
    /// Their numbers in the block.
    pub rows: Range<usize>,
}

/// Makes a part of a block of a product; `out` and `stride` are those of the block.
pub(crate) fn multiply_line(
    line: &Line<'_>,
    right: Panels<'_>,
    panels: &Range<usize>,
    finishing: &Finishing<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let layout = right.layout;
    let processor = layout.set.processor();
    let first = layout.panel(panels.start).own.start;
    for index in panels.clone() {
        let panel = layout.panel(index);
        for tile in Tiles::of(line.rows.len(), layout.set.max_rows()).ranges() {
            let source = Beside {
                elements: &line.elements[tile.start..],
                offsets: line.offsets,
            };
            let rows = line.rows.start + tile.start..line.rows.start + tile.end;
            let place = (rows, &panel, first);
            right.tile(processor, source, place, finishing, out, stride);
        }
    }
}

impl Panels<'_> {
    /// Makes the tile of some rows and a panel. Rows are counted from the block's first; `out` begins with its
    /// first column, which is given with the place.
    fn tile(
        self,
        processor: Processor,
        source: impl Source,
        (rows, panel, first): (Range<usize>, &Panel, usize),
        finishing: &Finishing<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let (own, held) = (panel.own.clone(), panel.held());
        let row = rows.start;
        let made = Made {
            processor,
            source,
            n_rows: rows.len(),
            panel: &self.elements[panel.elements.clone()],
            n_columns: held.len(),
            n_again: own.start - held.start,
            width: panel.width,
            may_spill: self.layout.n_panels() == 1 && stride == self.layout.n_columns,
        };
        let finish = finishing.of(row, held.clone());
        // What is made again is the same, unless what stood there before goes into it.
        let is_same = made.n_again == 0
            || (held.start >= first && !matches!(finish.residual, Residual::Result(_)));
        match is_same && made.n_columns == made.width {
            true => made.whole(
                finish,
                &mut out[row * stride + held.start - first..],
                stride,
            ),
            false => made.cut(finish, &mut out[row * stride + own.start - first..], stride),
        }
    }
}

/// Rows cut into tiles as even as they can be.
#[derive(Clone, Copy, Debug)]
struct Tiles {
    n_rows: usize,
    n_tiles: usize,
}

impl Tiles {
    fn of(n_rows: usize, max_rows: usize) -> Tiles {
        let n_tiles = n_rows.div_ceil(max_rows);
        Tiles { n_rows, n_tiles }
    }

    fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let Tiles { n_rows, n_tiles } = self;
        (0..n_tiles).map(move |tile| tile * n_rows / n_tiles..(tile + 1) * n_rows / n_tiles)
    }
}

/// The rows and columns of a tile that is to be made.
#[derive(Clone, Copy, Debug)]
struct Made<'t, R> {
    processor: Processor,
    source: R,
    n_rows: usize,
    panel: &'t [f32],
    /// Columns that are there.
    n_columns: usize,
    /// How many of these another panel has, too.
    n_again: usize,
    /// Columns of the panel.
    width: usize,
    /// Whether what lies behind the columns of a row are those of the next, which is made later.
    may_spill: bool,
}

/// Elements of the largest tile.
const MAX_TILE: usize = 14 * 32;
/// Columns of the widest panel.
const MAX_WIDTH: usize = 32;

impl<R: Source> Made<'_, R> {
    fn whole(self, finish: Finish<'_>, out: &mut [f32], stride: usize) {
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
    fn cut(self, finish: Finish<'_>, out: &mut [f32], stride: usize) {
        let Made {
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
            let finish = Finish {
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
        let finish = Finish {
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

/// How a result is cut into blocks; it depends on shapes alone.
pub(crate) trait Cuts {
    /// How many blocks there are.
    fn len(&self) -> usize;

    /// A block.
    fn block(&self, index: usize) -> Block;

    /// The columns of a block.
    fn columns(&self, block: &Block) -> Range<usize>;

    /// Whether blocks have all columns.
    fn has_whole_rows(&self) -> bool;
}

/// How a product is cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    n_rows: usize,
    layout: Layout,
    /// Blocks of as many rows as can be.
    n_row_blocks: usize,
    n_panel_blocks: usize,
}

/// Multiplications of a block, about: some 100 microseconds.
const BLOCK_OPERATIONS: usize = 5 << 20;
/// The same for a block of some columns, which costs more to put in its place.
const COLUMN_BLOCK_OPERATIONS: usize = 12 << 20;
/// The same for a block of all groups, where there would be but one.
const GROUPS_BLOCK_OPERATIONS: usize = 1 << 19;
/// Bytes of a left side that the second cache holds beside a panel.
const BLOCK_BYTES: usize = 192 << 10;
/// Blocks that rows are cut into, if there are enough of them; blocks have about two tiles at least, so that a panel that
/// comes from afar is used more than once.
const ROW_BLOCKS: usize = 8;
/// Multiplications of such a block, at least: some 20 microseconds, more than it costs to wake another worker.
const SHARE_OPERATIONS: usize = 1 << 20;

impl Grid {
    /// Cuts a product of so many rows, of which each reads about `row_len` elements that others don't.
    pub(crate) fn new(n_rows: usize, layout: Layout, row_len: usize) -> Grid {
        let n_panels = layout.n_panels();
        let tile = layout.set.max_rows();
        let per_row = layout.depth.saturating_mul(layout.n_columns).max(1);
        let operations = per_row.saturating_mul(n_rows);
        let n_shares = (operations / SHARE_OPERATIONS).clamp(1, ROW_BLOCKS);
        let of_cache = BLOCK_BYTES / 4 / row_len.max(1);
        let of_work = BLOCK_OPERATIONS / per_row;
        let of_share = n_rows.div_ceil(n_shares).next_multiple_of(tile);
        let rows = of_work.max(4 * tile).min(of_cache).min(of_share);
        let rows = match n_shares == 1 || n_rows <= 4 * tile {
            true => n_rows.max(1),
            false => rows.max(2 * tile) / tile * tile,
        };
        // Of an even number two threads get the same share.
        let n_row_blocks = match n_rows.div_ceil(rows) {
            n @ ..2 => n,
            n => n.next_multiple_of(2),
        };
        let n_panel_blocks = match n_row_blocks {
            1..ROW_BLOCKS => operations / COLUMN_BLOCK_OPERATIONS / n_row_blocks,
            _ => 1,
        };
        let n_panel_blocks = n_panel_blocks.clamp(1, n_panels.max(1));
        Grid {
            n_rows,
            layout,
            n_row_blocks,
            n_panel_blocks,
        }
    }

    /// The same for so many products side by side, whose columns together make a row: with all columns in each block,
    /// so that there are more blocks of some rows.
    pub(crate) fn of_groups(self, n_groups: usize) -> Grid {
        let per_row = self.layout.depth.saturating_mul(self.layout.n_columns);
        let operations = per_row.saturating_mul(self.n_rows).saturating_mul(n_groups);
        let wanted = operations.div_ceil(GROUPS_BLOCK_OPERATIONS).min(ROW_BLOCKS);
        let n_tiles = self.n_rows.div_ceil(self.layout.set.max_rows());
        let wanted = match wanted.min(n_tiles) {
            n @ ..2 => n,
            n => n - n % 2,
        };
        Grid {
            n_row_blocks: self.n_row_blocks.max(wanted),
            ..self.with_whole_rows()
        }
    }

    /// The same with all columns in each block.
    pub(crate) fn with_whole_rows(self) -> Grid {
        Grid {
            n_panel_blocks: 1,
            ..self
        }
    }
}

impl Cuts for Grid {
    fn len(&self) -> usize {
        self.n_row_blocks * self.n_panel_blocks
    }

    fn columns(&self, block: &Block) -> Range<usize> {
        self.layout.columns_of(&block.panels)
    }

    fn has_whole_rows(&self) -> bool {
        self.n_panel_blocks == 1
    }

    fn block(&self, index: usize) -> Block {
        let (row, panel) = (index / self.n_panel_blocks, index % self.n_panel_blocks);
        let n_panels = self.layout.n_panels();
        let cut = |index: usize| n_panels * index / self.n_panel_blocks;
        // Without columns there may be any number of rows, none of which is made.
        let rows = |index: usize| {
            let (each, more) = (
                self.n_rows / self.n_row_blocks,
                self.n_rows % self.n_row_blocks,
            );
            each * index + more * index / self.n_row_blocks
        };
        Block {
            rows: rows(row)..rows(row + 1),
            panels: cut(panel)..cut(panel + 1),
        }
    }
}

#[cfg(test)]
mod tests;
