//! Products whose right side is packed into panels ahead: what matrix products and convolutions of `f32` with
//! constant weights run on.
//!
//! # How
//!
//! The right side, `[depth, columns]`, is laid out panel by panel: some neighbouring columns, as many as
//! two vectors hold, row after row. The last panel has one vector if that is enough, and zeros for columns that
//! are not there. The left side stays where it is: a row is a list of *parts*, slices that lie
//! anywhere. For a convolution these are what its window looks at, tap by tap, and zeros where it looks at
//! padding; no matrix of patches is made.
//!
//! The result is made tile by tile (`tile`): each panel meets all tiles of a *block* before the next one
//! does, so that the panel is read from the second cache, and the block's left side, too. Where the second cache holds all panels, it is the other way around.
//! Blocks are what threads divide among themselves (`Grid`).

use std::ops::Range;
use std::sync::Arc;

use tfrt_host::{DType, Error, HostAllocator};

use crate::{DenseHostTensor, TensorMetadata, TensorShape};

mod after;
#[allow(unsafe_code, reason = "a listed module")]
mod ahead;
mod fill;
mod instructions;
mod tile;
pub(crate) mod vectors;

pub use after::{Activation, Added, AddedTensor, After, TensorAfter};
pub(crate) use fill::fill;
pub use instructions::InstructionSet;
use instructions::Processor;
use tile::{Beside, Finish, Parts, Source, Tile};
pub(crate) use tile::{Residual, multiply_add};

/// How a right side is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub set: InstructionSet,
    /// Elements of a column.
    pub depth: usize,
    pub n_columns: usize,
}

impl Layout {
    /// How many panels there are.
    pub(crate) fn n_panels(self) -> usize {
        self.n_columns.div_ceil(self.set.n_columns())
    }

    /// The columns of a panel that are there.
    fn columns(self, panel: usize) -> Range<usize> {
        let first = panel * self.set.n_columns();
        first
            ..self
                .n_columns
                .min(first.saturating_add(self.set.n_columns()))
    }

    /// The columns of some panels.
    pub(crate) fn columns_of(self, panels: &Range<usize>) -> Range<usize> {
        let width = self.set.n_columns();
        panels.start * width..self.n_columns.min(panels.end * width)
    }

    /// How many columns a panel has, with those that are not there.
    pub(crate) fn width(self, panel: usize) -> usize {
        match self.columns(panel).len() <= self.set.n_lanes() {
            true => self.set.n_lanes(),
            false => self.set.n_columns(),
        }
    }

    /// Elements of a packed right side; `None` if they fit no memory.
    pub(crate) fn n_elements(self) -> Option<usize> {
        let n_columns = match self.n_panels().checked_sub(1) {
            Some(last) => (last * self.set.n_columns()).checked_add(self.width(last))?,
            None => 0,
        };
        self.depth.checked_mul(n_columns)
    }

    /// Where a panel lies.
    pub(crate) fn panel(self, panel: usize) -> Range<usize> {
        let first = panel * self.set.n_columns() * self.depth;
        first..first + self.width(panel) * self.depth
    }
}

/// Packs the matrix that begins at `start` of `right`; neighbours in a column are `strides[0]` apart, those in
/// a row `strides[1]`. Writes every element of `packed`.
pub(crate) fn pack(
    layout: Layout,
    right: &[f32],
    start: usize,
    strides: [usize; 2],
    packed: &mut [f32],
) {
    for panel in 0..layout.n_panels() {
        let (columns, width) = (layout.columns(panel), layout.width(panel));
        let rows = packed[layout.panel(panel)].chunks_exact_mut(width);
        for (depth, row) in rows.enumerate() {
            let first = start + depth * strides[0] + columns.start * strides[1];
            let (there, missing) = row.split_at_mut(columns.len());
            match strides[1] {
                1 => there.copy_from_slice(&right[first..][..there.len()]),
                stride => {
                    for (index, element) in there.iter_mut().enumerate() {
                        *element = right[first + index * stride];
                    }
                }
            }
            missing.fill(0.0);
        }
    }
}

/// Lays a packed right side out for another instruction set: the same elements in panels of other widths. Columns
/// that only one side has are there to fill vectors, and are zeros. Writes every element of `packed`.
pub(crate) fn lay_again(from: Panels<'_>, to: Layout, packed: &mut [f32]) {
    packed.fill(0.0);
    for panel in 0..to.n_panels() {
        let (columns, width) = (to.columns(panel), to.width(panel));
        let rows = packed[to.panel(panel)].chunks_exact_mut(width);
        for (depth, row) in rows.enumerate().take(from.layout.depth) {
            let columns = columns.start..columns.end.min(from.layout.n_columns);
            for (element, column) in row.iter_mut().zip(columns) {
                let panel = column / from.layout.set.n_columns();
                let at = depth * from.layout.width(panel) + column % from.layout.set.n_columns();
                *element = from.elements[from.layout.panel(panel).start + at];
            }
        }
    }
}

/// Lays several right sides of one layout, one behind the other, out for another instruction set.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory; `InvalidArgument` if there are not as many elements as that takes.
pub(crate) fn lay_all_again(
    allocator: &Arc<dyn HostAllocator>,
    elements: &DenseHostTensor,
    n_parts: usize,
    [from, to]: [Layout; 2],
) -> Result<DenseHostTensor, Error> {
    let n = |layout: Layout| layout.n_elements()?.checked_mul(n_parts);
    let (Some(n_from), Some(n_to)) = (n(from), n(to)) else {
        return Err(Error::invalid_argument(
            "packed elements do not fit any memory",
        ));
    };
    let reading = elements.read()?;
    let packed = reading.elements::<f32>()?;
    if packed.len() != n_from {
        let found = packed.len();
        let message = format!("expected {n_from} packed elements, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let metadata = TensorMetadata::new(DType::F32, TensorShape::new(&[n_to])?);
    let mut laid = DenseHostTensor::zeroed(allocator, metadata)?;
    if n_from > 0 && n_to > 0 {
        let out = laid.elements_mut::<f32>()?;
        let out = out.expect("nobody else has it yet");
        let parts = packed.chunks_exact(n_from / n_parts);
        for (elements, out) in parts.zip(out.chunks_exact_mut(n_to / n_parts)) {
            let panels = Panels {
                layout: from,
                elements,
            };
            lay_again(panels, to, out);
        }
    }
    Ok(laid)
}

/// A packed right side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'p> {
    pub layout: Layout,
    pub elements: &'p [f32],
}

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
    let (mut first, rows) = (block.rows.start, block.rows.clone());
    while first < rows.end {
        let part = first..rows.end.min(first + at_once);
        let (mut copies, mut parts, mut next) = (Vec::new(), Vec::new(), 0);
        left.copy(part.clone(), &mut copies);
        parts.reserve(n_parts * part.len());
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
            processor,
        };
        let column = |panel: usize| (panel - block.panels.start) * layout.set.n_columns();
        // What stays in the second cache is gone through in the inner loop.
        if size_of_val(right.elements) > NEAR_BYTES {
            for panel in block.panels.clone() {
                for tile in tiles.ranges() {
                    laid.times(
                        right,
                        (tile, panel),
                        finishing,
                        &mut out[column(panel)..],
                        stride,
                    );
                }
            }
        } else {
            for tile in tiles.ranges() {
                for panel in block.panels.clone() {
                    let tile = tile.clone();
                    laid.times(
                        right,
                        (tile, panel),
                        finishing,
                        &mut out[column(panel)..],
                        stride,
                    );
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
    let laid = Laid {
        parts,
        n_parts: 1,
        part_len: layout.depth,
        first: 0,
        processor: layout.set.processor(),
    };
    let stride = layout.columns_of(&panels).len();
    for panel in panels.clone() {
        let column = (panel - panels.start) * layout.set.n_columns();
        for tile in tiles.ranges() {
            let out = &mut out[column..];
            laid.times(right, (tile, panel), &Finishing::default(), out, stride);
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
    processor: Processor,
}

impl Laid<'_> {
    /// Makes the tile of some rows and a panel; `out` begins with the panel's first column in the block's first
    /// row.
    fn times(
        &self,
        right: Panels<'_>,
        (rows, panel): (Range<usize>, usize),
        finishing: &Finishing<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let source = Parts {
            parts: &self.parts[rows.start * self.n_parts..rows.end * self.n_parts],
            part_len: self.part_len,
        };
        let rows = self.first + rows.start..self.first + rows.end;
        right.tile(
            self.processor,
            source,
            (rows, panel),
            finishing,
            out,
            stride,
        );
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
    let set = right.layout.set;
    let processor = set.processor();
    for tile in Tiles::of(line.rows.len(), set.max_rows()).ranges() {
        let source = Beside {
            elements: &line.elements[tile.start..],
            offsets: line.offsets,
        };
        let rows = line.rows.start + tile.start..line.rows.start + tile.end;
        for panel in panels.clone() {
            let out = &mut out[(panel - panels.start) * set.n_columns()..];
            let place = (rows.clone(), panel);
            right.tile(processor, source, place, finishing, out, stride);
        }
    }
}

impl Panels<'_> {
    /// Makes the tile of some rows and a panel; rows are counted from the block's first, in which `out` begins with
    /// the panel's first column.
    fn tile(
        self,
        processor: Processor,
        source: impl Source,
        (rows, panel): (Range<usize>, usize),
        finishing: &Finishing<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let layout = self.layout;
        let columns = layout.columns(panel);
        let row = rows.start;
        let made = Made {
            processor,
            source,
            n_rows: rows.len(),
            panel: &self.elements[layout.panel(panel)],
            n_columns: columns.len(),
            width: layout.width(panel),
            is_narrow: layout.width(panel) < layout.set.n_columns(),
            may_spill: layout.n_panels() == 1 && stride == layout.n_columns,
        };
        let finish = Finish {
            scale: finishing.scale.map(|list| &list[columns.clone()]),
            shift: finishing.shift.map(|list| &list[columns.clone()]),
            residual: match finishing.residual {
                Residual::Rows(elements, apart) => {
                    Residual::Rows(&elements[row * apart + columns.start..], apart)
                }
                other => other,
            },
            least: finishing.least,
            greatest: finishing.greatest,
        };
        let out = &mut out[row * stride..];
        match made.n_columns == made.width {
            true => made.whole(finish, out, stride),
            false => made.cut(finish, out, stride),
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
    /// Columns of the panel.
    width: usize,
    /// Whether they are one vector.
    is_narrow: bool,
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
        tile.make(self.processor, self.is_narrow);
    }

    /// Makes a tile of which some columns are not there: aside, and copies the others, unless they may be written
    /// where later rows will be.
    fn cut(self, finish: Finish<'_>, out: &mut [f32], stride: usize) {
        let (width, n_columns) = (self.width, self.n_columns);
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
                    aside[..n_columns].copy_from_slice(&out[..n_columns]);
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
            out[..n_columns].copy_from_slice(&aside[..n_columns]);
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
