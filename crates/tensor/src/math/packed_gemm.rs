//! Products with a packed right side, for matrix products and convolutions of `f32` with constant weights.
//!
//! # How
//!
//! The right side, `[depth, columns]`, is laid out panel by panel: some neighbouring columns, as many as
//! two vectors hold, row after row (`layout`). The left side stays where it is: a row is a list of *parts*,
//! slices that lie anywhere. For a convolution these are what its window looks at, tap by tap, and zeros where it
//! looks at padding; no matrix of patches is made.
//!
//! The result is made tile by tile (`tile`): each panel meets all tiles of a *block* before the next one
//! does, so that the panel is read from the second cache, and the block's left side, too. Where the second cache
//! holds all panels, it is the other way around.
//! Of few rows several panels are gone through at once (`few_rows`).
//! Blocks are what threads divide among themselves (`BlockGrid`).
//!
//! With factors of `bf16` the sums of a tile are made by other instructions, and then finished as those of `f32` (`bf16`).

use std::ops::Range;

use smallvec::SmallVec;

use super::parallel::part_start;

mod bf16;
mod epilogue;
mod few_rows;
mod fill;
mod instructions;
mod layout;
mod placed_tile;
#[allow(unsafe_code, reason = "a listed module")]
mod prefetch;
mod tile;
pub(crate) mod vectors;

pub use epilogue::{Activation, Addend, Epilogue, TensorAddend, TensorEpilogue};
pub(crate) use fill::fill;
pub use instructions::InstructionSet;
pub(crate) use instructions::{Processor, arch};
use layout::Panel;
pub(crate) use layout::{Layout, Panels, lay_all_again, pack};
use placed_tile::PlacedTile;
use tile::{AdjacentRows, RowParts, RowSource};
pub(crate) use tile::{Residual, TileEpilogue, finish, multiply_add};

/// A left side: rows as long as the right side is deep, in parts of one length.
pub(crate) trait Lhs {
    /// Returns the number of parts of a row, and the length of each.
    fn parts(&self) -> (usize, usize);

    /// Returns the approximate distance between parts of neighbouring rows.
    fn row_stride(&self) -> usize;

    /// Appends copies of the parts of these rows that can't be read in place.
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

/// Epilogue of a block's sums; [`TileEpilogue`] is the part for one tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockEpilogue<'f> {
    /// Factor of each column.
    pub scale: Option<&'f [f32]>,
    /// Summand of each column.
    pub shift: Option<&'f [f32]>,
    /// Addend, seen from the first column of the block's first row.
    pub residual: Residual<'f>,
    pub least: f32,
    pub greatest: f32,
}

impl<'f> BlockEpilogue<'f> {
    /// Returns the epilogue of a tile, for these columns from a row of the block on.
    #[inline(always)]
    pub(crate) fn of(&self, row: usize, columns: Range<usize>) -> TileEpilogue<'f> {
        TileEpilogue {
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

impl Default for BlockEpilogue<'_> {
    fn default() -> Self {
        BlockEpilogue {
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
    left: &impl Lhs,
    right: Panels<'_>,
    block: &Block,
    block_epilogue: &BlockEpilogue<'_>,
    out: &mut [f32],
    stride: usize,
) {
    if right.layout.set.is_bf16() {
        return bf16::multiply(left, right, block, block_epilogue, out, stride);
    }
    let (n_parts, part_len) = left.parts();
    let layout = right.layout;
    let max_rows = max_rows(layout.set, left.row_stride());
    let at_once = (MAX_PARTS / n_parts.max(1)).max(max_rows);
    let right = RhsBlock::new(right, block.panels.clone());
    let (mut first, rows) = (block.rows.start, block.rows.clone());
    let mut copies = Vec::new();
    while first < rows.end {
        let part = first..rows.end.min(first + at_once);
        let mut next = 0;
        copies.clear();
        left.copy(part.clone(), &mut copies);
        let mut parts = Vec::with_capacity(n_parts * part.len());
        let tiles = RowTiles::of(part.len(), max_rows);
        for tile in tiles.ranges() {
            let tile = part.start + tile.start..part.start + tile.end;
            left.lay(tile, &copies, &mut next, &mut parts);
        }
        let laid = LhsBlock {
            parts: &parts,
            n_parts,
            part_len,
            first: first - rows.start,
        };
        if n_parts > 0 && few_rows::n_panels(layout.set, part.len()) > 1 {
            laid.times_all(&right, part.len(), block_epilogue, out, stride);
        // What stays in the second cache is gone through in the inner loop.
        } else if size_of_val(right.elements) > NEAR_BYTES {
            for panel in &right.panels {
                for tile in tiles.ranges() {
                    laid.times(&right, (tile, panel), block_epilogue, out, stride);
                }
            }
        } else {
            for tile in tiles.ranges() {
                for panel in &right.panels {
                    laid.times(&right, (tile.clone(), panel), block_epilogue, out, stride);
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
    let tiles = RowTiles::of(parts.len(), max_rows(layout.set, row_len));
    let stride = layout.columns_of(&panels).len();
    let right = RhsBlock::new(right, panels);
    let laid = LhsBlock {
        parts,
        n_parts: 1,
        part_len: layout.depth,
        first: 0,
    };
    for panel in &right.panels {
        for tile in tiles.ranges() {
            let block_epilogue = BlockEpilogue::default();
            laid.times(&right, (tile, panel), &block_epilogue, out, stride);
        }
    }
}

/// Returns the maximum number of rows of a tile, for left rows that lie `row_stride` elements apart.
fn max_rows(set: InstructionSet, row_stride: usize) -> usize {
    match row_stride.is_multiple_of(ALIASING) {
        true => set.max_rows().min(ALIASED_ROWS),
        false => set.max_rows(),
    }
}

/// Bytes of a right side that the second cache holds beside other data.
const NEAR_BYTES: usize = 384 << 10;
/// Rows this many elements apart, or a multiple, meet in the same places of the first cache ...
const ALIASING: usize = 1024;
/// ... which has room for this many of them.
const ALIASED_ROWS: usize = 7;
/// Maximum number of parts that are laid at once, unless one tile has more.
const MAX_PARTS: usize = 1 << 16;

/// Rows whose parts are laid.
#[derive(Clone, Copy, Debug)]
struct LhsBlock<'l> {
    parts: &'l [&'l [f32]],
    /// Number of parts of a row.
    n_parts: usize,
    part_len: usize,
    /// The first row, by its number in the block.
    first: usize,
}

impl LhsBlock<'_> {
    /// Makes the tile of some rows and a panel; `out` begins with the block's first element.
    fn times(
        &self,
        right: &RhsBlock<'_>,
        (rows, panel): (Range<usize>, &Panel),
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let source = RowParts {
            parts: &self.parts[rows.start * self.n_parts..rows.end * self.n_parts],
            part_len: self.part_len,
        };
        let rows = self.first + rows.start..self.first + rows.end;
        right.tile(source, (rows, panel), block_epilogue, out, stride);
    }
}

/// Adjacent rows of a product: neighbours in a line of an image.
#[derive(Clone, Debug)]
pub(crate) struct Line<'l> {
    pub elements: &'l [f32],
    /// For each depth the offset of the first row's element; those of the other rows follow it.
    pub offsets: &'l [usize],
    /// Their numbers in the block.
    pub rows: Range<usize>,
}

/// The panels of a block.
#[derive(Clone, Debug)]
pub(crate) struct RhsBlock<'p> {
    elements: &'p [f32],
    panels: SmallVec<[Panel; 8]>,
    /// The first column.
    column: usize,
    /// Number of columns of the whole product, if they are one panel.
    n_columns: Option<usize>,
    processor: Processor,
}

impl<'p> RhsBlock<'p> {
    /// Finds the panels of a block.
    pub(crate) fn new(right: Panels<'p>, panels: Range<usize>) -> Self {
        let layout = right.layout;
        let panels: SmallVec<_> = panels.map(|index| layout.panel(index)).collect();
        RhsBlock {
            elements: right.elements,
            column: panels.first().map_or(0, |panel: &Panel| panel.own.start),
            panels,
            n_columns: (layout.n_panels() == 1).then_some(layout.n_columns),
            processor: layout.set.processor(),
        }
    }

    /// Makes a part of a block of a product: the rows of a line. `out` and `stride` are the block's.
    pub(crate) fn multiply_line(
        &self,
        line: &Line<'_>,
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let tiles = RowTiles::of(line.rows.len(), self.processor.set().max_rows());
        for panel in &self.panels {
            for tile in tiles.ranges() {
                let source = AdjacentRows {
                    elements: &line.elements[tile.start..],
                    offsets: line.offsets,
                };
                let rows = line.rows.start + tile.start..line.rows.start + tile.end;
                self.tile(source, (rows, panel), block_epilogue, out, stride);
            }
        }
    }

    /// Makes the tile of some rows and a panel. Rows are counted from the block's first row, with which `out` begins.
    fn tile(
        &self,
        source: impl RowSource,
        (rows, panel): (Range<usize>, &Panel),
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let (own, held, first) = (panel.own.clone(), panel.held(), self.column);
        let row = rows.start;
        let made = PlacedTile {
            processor: self.processor,
            source,
            n_rows: rows.len(),
            panel: &self.elements[panel.elements.clone()],
            n_columns: held.len(),
            n_again: own.start - held.start,
            width: panel.width,
            may_spill: self.n_columns == Some(stride),
        };
        let finish = block_epilogue.of(row, held.clone());
        match panel.is_whole(first, finish.residual) {
            true => made.whole(
                finish,
                &mut out[row * stride + held.start - first..],
                stride,
            ),
            false => made.cut(finish, &mut out[row * stride + own.start - first..], stride),
        }
    }
}

impl Panel {
    /// Returns whether all its sums can be written in their places in a block that begins at a column.
    fn is_whole(&self, first: usize, residual: Residual<'_>) -> bool {
        // What is made again is the same, unless what stood there before goes into it.
        let is_same = self.first == self.own.start
            || (self.first >= first && !matches!(residual, Residual::Result(_)));
        is_same && self.held().len() == self.width
    }
}

/// Rows cut into tiles, as evenly as possible.
#[derive(Clone, Copy, Debug)]
struct RowTiles {
    n_rows: usize,
    n_tiles: usize,
}

impl RowTiles {
    fn of(n_rows: usize, max_rows: usize) -> RowTiles {
        let n_tiles = n_rows.div_ceil(max_rows);
        RowTiles { n_rows, n_tiles }
    }

    fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let RowTiles { n_rows, n_tiles } = self;
        (0..n_tiles).map(move |tile| tile * n_rows / n_tiles..(tile + 1) * n_rows / n_tiles)
    }
}

/// A partition of a result into blocks. It depends on shapes alone.
pub(crate) trait Partition {
    /// Returns the number of blocks.
    fn len(&self) -> usize;

    /// Returns a block.
    fn block(&self, index: usize) -> Block;

    /// Returns the columns of a block.
    fn columns(&self, block: &Block) -> Range<usize>;

    /// Returns whether blocks have all columns.
    fn has_whole_rows(&self) -> bool;

    /// Returns the approximate time of all blocks on one thread, in nanoseconds.
    fn cost_ns(&self) -> usize {
        usize::MAX
    }
}

/// Blocks of a product: a grid of row ranges and panel ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockGrid {
    n_rows: usize,
    layout: Layout,
    /// Number of blocks along rows.
    n_row_blocks: usize,
    n_panel_blocks: usize,
    /// Number of products side by side, all of which are in each block.
    n_groups: usize,
}

/// Approximate multiplications of a block: some 100 microseconds.
const BLOCK_OPERATIONS: usize = 5 << 20;
/// Approximate multiplications of a block of some columns, which costs more to put in its place.
const COLUMN_BLOCK_OPERATIONS: usize = 12 << 20;
/// Approximate multiplications of such a block where rows are not cut: without others it would be one thread's.
const ONLY_COLUMN_BLOCK_OPERATIONS: usize = 6 << 20;
/// Approximate multiplications of a block of all groups, where there would be but one.
const GROUPS_BLOCK_OPERATIONS: usize = 1 << 19;
/// Bytes of a left side that the second cache holds beside a panel.
const BLOCK_BYTES: usize = 192 << 10;
/// Blocks that rows are cut into, if there are enough rows; blocks have about two tiles at least, so that a panel
/// from memory is used more than once.
const ROW_BLOCKS: usize = 8;
/// Minimum multiplications of a row block: some 20 microseconds, more than it costs to wake another worker.
const SHARE_OPERATIONS: usize = 1 << 20;
/// Minimum elements of the right side for a block of few rows: one to two microseconds.
const FEW_ELEMENTS: usize = 1 << 15;
/// Maximum number of blocks that the columns of few rows are cut into.
const FEW_BLOCKS: usize = 32;
/// Maximum elements of a right side that the second cache keeps.
const NEAR_ELEMENTS: usize = 1 << 18;
/// Approximate elements of a right side that arrive in a nanosecond from the second cache ...
const ELEMENTS_PER_NS: usize = 24;
/// ... and from the third, or from memory.
const FAR_ELEMENTS_PER_NS: usize = 6;
/// Rows whose products take as long as their right side takes to arrive.
const FEW_ROWS: usize = 3;

impl BlockGrid {
    /// Cuts a product of `n_rows` rows, each of which reads about `row_len` elements that others don't.
    pub(crate) fn new(n_rows: usize, layout: Layout, row_len: usize) -> BlockGrid {
        let n_panels = layout.n_panels();
        let tile = layout.set.max_rows();
        let per_row = layout.depth.saturating_mul(layout.n_columns).max(1);
        let operations = per_row.saturating_mul(n_rows);
        let n_shares = (operations / SHARE_OPERATIONS).clamp(1, ROW_BLOCKS);
        let of_cache = BLOCK_BYTES / 4 / row_len.max(1);
        let of_work = BLOCK_OPERATIONS / per_row;
        let of_share = n_rows.div_ceil(n_shares).next_multiple_of(tile);
        let rows = of_work.max(4 * tile).min(of_cache).min(of_share);
        let rows = match n_rows {
            _ if n_shares == 1 => n_rows.max(1),
            // Two threads read the right side twice, which costs little where their caches keep it.
            n if n > 2 * tile && n <= 4 * tile && per_row <= NEAR_ELEMENTS => n.div_ceil(2),
            n if n <= 4 * tile => n.max(1),
            _ => rows.max(2 * tile) / tile * tile,
        };
        // Of an even number two threads get the same share.
        let n_row_blocks = match n_rows.div_ceil(rows) {
            n @ ..2 => n,
            n => n.next_multiple_of(2),
        };
        let n_panel_blocks = match n_row_blocks {
            1 => operations / ONLY_COLUMN_BLOCK_OPERATIONS,
            2..ROW_BLOCKS => operations / COLUMN_BLOCK_OPERATIONS / n_row_blocks,
            _ => 1,
        };
        let n_panel_blocks = match n_rows <= tile {
            true => {
                let elements = per_row.saturating_mul(n_rows.div_ceil(FEW_ROWS));
                let n_blocks = (elements / FEW_ELEMENTS).min(n_panels / few_rows::MAX_PANELS);
                n_panel_blocks.max(n_blocks.min(FEW_BLOCKS))
            }
            false => n_panel_blocks,
        };
        let n_panel_blocks = match n_panel_blocks.clamp(1, n_panels.max(1)) {
            // As above, unless a panel is a block already.
            n if n_row_blocks == 1 && n > 1 && n < n_panels => n - n % 2,
            n => n,
        };
        BlockGrid {
            n_rows,
            layout,
            n_row_blocks,
            n_panel_blocks,
            n_groups: 1,
        }
    }

    /// Returns the grid of `n_groups` products side by side, whose columns together make a row. Each block has all
    /// columns, so that there are more blocks of some rows.
    pub(crate) fn of_groups(self, n_groups: usize) -> BlockGrid {
        let per_row = self.layout.depth.saturating_mul(self.layout.n_columns);
        let operations = per_row.saturating_mul(self.n_rows).saturating_mul(n_groups);
        let wanted = operations.div_ceil(GROUPS_BLOCK_OPERATIONS).min(ROW_BLOCKS);
        let n_tiles = self.n_rows.div_ceil(self.layout.set.max_rows());
        let wanted = match wanted.min(n_tiles) {
            n @ ..2 => n,
            n => n - n % 2,
        };
        BlockGrid {
            n_row_blocks: self.n_row_blocks.max(wanted),
            n_groups,
            ..self.with_whole_rows()
        }
    }

    /// Returns the grid with all columns in each block.
    pub(crate) fn with_whole_rows(self) -> BlockGrid {
        BlockGrid {
            n_panel_blocks: 1,
            ..self
        }
    }
}

impl Partition for BlockGrid {
    fn len(&self) -> usize {
        self.n_row_blocks * self.n_panel_blocks
    }

    fn columns(&self, block: &Block) -> Range<usize> {
        self.layout.columns_of(&block.panels)
    }

    fn has_whole_rows(&self) -> bool {
        self.n_panel_blocks == 1
    }

    fn cost_ns(&self) -> usize {
        let elements = self.layout.depth.saturating_mul(self.layout.n_columns);
        let n_times = self.n_rows.div_ceil(FEW_ROWS);
        let all = elements.saturating_mul(self.n_groups);
        let near = all.saturating_mul(n_times) / ELEMENTS_PER_NS;
        match all > NEAR_ELEMENTS {
            true => near.max(all / FAR_ELEMENTS_PER_NS),
            false => near,
        }
    }

    fn block(&self, index: usize) -> Block {
        let (row, panel) = (index / self.n_panel_blocks, index % self.n_panel_blocks);
        let n_panels = self.layout.n_panels();
        let cut = |index: usize| part_start(n_panels, self.n_panel_blocks, index);
        let rows = |index: usize| part_start(self.n_rows, self.n_row_blocks, index);
        Block {
            rows: rows(row)..rows(row + 1),
            panels: cut(panel)..cut(panel + 1),
        }
    }
}

#[cfg(test)]
mod tests;
