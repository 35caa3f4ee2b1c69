//! Winograd convolutions by windows of 3x3 and stride 1: 16 multiplications for each four outputs, or 36 for each
//! sixteen, where the definition has 36 and 144.
//!
//! # How
//!
//! The output is cut into squares. The patch of the input that a square looks at is transformed, channel by channel;
//! what comes out is multiplied by the transformed filter, place by place of the patch, and summed over the
//! channels: as many products of matrices as a patch has elements, of as many rows as there are squares. The
//! results are transformed back (`transform`). The filter is transformed when it is packed.
//!
//! Squares are made in blocks (`Tiling`): the input's and the results' patches of a block lie in memory that a
//! thread keeps.
//!
//! Sums of large or infinite elements can be no numbers where the definition has infinities, so squares with such
//! elements are made by the definition (`direct_tile`), and filters with such are packed for it.

use std::marker::PhantomData;
use std::ops::Range;

use super::{ConvPlan, Convolution};
use crate::math::packed_gemm::{
    Block, BlockEpilogue, InstructionSet, Layout, Panels, Partition, multiply_rows,
};
use crate::math::parallel::part_start;
use crate::math::scratch;

mod direct_tile;
mod filters;
mod tiles;
mod transform;

use filters::Filters;
use tiles::{Inputs, Outputs};
use transform::{FourOutputs, Transform, TwoOutputs};

/// The algorithm of a convolution by a packed filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The direct method, by any windows.
    Direct,
    /// Winograd in squares of 2x2 outputs, by windows of 3x3 with stride 1: 4/9 of the multiplications, of a filter
    /// of 16/9 of the elements.
    Winograd2,
    /// Winograd in squares of 4x4 outputs: 1/4 of the multiplications, of a filter of 4 times the elements, with
    /// twice the rounding error.
    Winograd4,
}

/// Channels and filters from which on fewer multiplications pay for the transforms.
const MIN_CHANNELS: usize = 16;
/// Maximum product of channels and filters for which the third cache holds the transformed filter of large squares.
const MAX_FOUR: usize = 160 * 160;
/// Largest element of a filter that is transformed: no sum overflows if the image has no element above 2^48.
const MAX_ELEMENT: f32 = (1_u64 << 40) as f32;

impl Method {
    /// All methods.
    pub const ALL: [Method; 3] = [Method::Direct, Method::Winograd2, Method::Winograd4];

    /// Returns the method that is likely the fastest for a convolution by a filter of these extents.
    ///
    /// Where outputs are but two or three in a row and a column, [`Direct`](Self::Direct) is faster than what this
    /// returns.
    pub fn best(convolution: &Convolution, filter: &[usize]) -> Method {
        let &[3, 3, channels, filters] = filter else {
            return Method::Direct;
        };
        let is_dense = |window: &crate::math::window::Window| {
            (window.extent, window.stride, window.dilation) == (3, 1, 1)
        };
        let fits = convolution.groups == 1 && convolution.windows.iter().all(is_dense);
        match fits && channels >= MIN_CHANNELS && filters >= MIN_CHANNELS {
            false => Method::Direct,
            true if channels.saturating_mul(filters) <= MAX_FOUR => Method::Winograd4,
            true => Method::Winograd2,
        }
    }

    /// Returns the method's name, as in files of packed filters.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Direct => "direct",
            Method::Winograd2 => "winograd2",
            Method::Winograd4 => "winograd4",
        }
    }

    /// Returns the method of a name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns the number of outputs of a square, in a row.
    fn tile(self) -> usize {
        match self {
            Method::Direct => 1,
            Method::Winograd2 => 2,
            Method::Winograd4 => 4,
        }
    }

    /// Returns the number of places of a patch: transformed filters for each filter.
    pub(super) fn n_places(self) -> usize {
        match self {
            Method::Direct => 1,
            Method::Winograd2 => 16,
            Method::Winograd4 => 36,
        }
    }

    /// Returns whether a filter can be packed for this method.
    pub(super) fn takes(self, extents: &[usize], groups: usize) -> bool {
        self == Method::Direct || (matches!(extents, [3, 3, _, _]) && groups == 1)
    }

    /// Returns whether a filter can be transformed: all its elements are finite, and none is too large.
    pub(super) fn is_tame(filter: &[f32]) -> bool {
        filter.iter().all(|element| element.abs() <= MAX_ELEMENT)
    }

    /// Returns whether it can be used for these windows.
    pub(super) fn fits(self, plan: &ConvPlan) -> bool {
        let is_dense = |laid: &crate::math::window::WindowAxis| {
            (laid.window.stride, laid.window.dilation) == (1, 1)
        };
        self == Method::Direct || plan.windows.0[1..].iter().all(is_dense)
    }
}

/// Returns the layout of a filter at one place of the patch; columns fill their vectors.
pub(super) fn layout(set: InstructionSet, channels: usize, filters: usize) -> Option<Layout> {
    Some(Layout {
        set,
        depth: channels,
        n_columns: filters.checked_next_multiple_of(set.n_lanes())?,
    })
}

/// Transforms and packs a filter of 3x3: place by place of the patch.
pub(super) fn pack_filter(
    method: Method,
    layout: Layout,
    filter: &[f32],
    filters: usize,
    packed: &mut [f32],
) {
    match method {
        Method::Direct => {}
        Method::Winograd2 => pack_by::<TwoOutputs, _, _>(layout, filter, filters, packed),
        Method::Winograd4 => pack_by::<FourOutputs, _, _>(layout, filter, filters, packed),
    }
}

fn pack_by<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize>(
    layout: Layout,
    filter: &[f32],
    filters: usize,
    packed: &mut [f32],
) {
    let transform = Filters {
        transform: PhantomData::<T>,
        layout,
        filter,
        filters,
    };
    if layout.set.is_bf16() {
        transform.pack_place_by_place(packed);
    } else {
        layout.set.processor().vectorize(filters::Pack {
            filters: transform,
            packed,
        });
    }
}

/// Cut of a convolution's outputs into squares, and of squares into blocks. It depends on shapes alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    method: Method,
    layout: Layout,
    filters: usize,
    /// Rows and columns of an image's outputs.
    outputs: [usize; 2],
    /// Rows and columns of squares in an image.
    tiles: [usize; 2],
    /// Rows of squares in all images.
    n_tile_rows: usize,
    n_row_blocks: usize,
    n_panel_blocks: usize,
}

/// Approximate number of squares of a block.
const TILES_OF_TWO: usize = 56;
const TILES_OF_FOUR: usize = 20;
/// Blocks that are wanted at least ...
const MIN_BLOCKS: usize = 4;
/// ... unless each has fewer panels: then transforming the input again for each costs too much.
const MIN_PANELS: usize = 3;

impl Tiling {
    pub(super) fn new(plan: &ConvPlan, method: Method, layout: Layout) -> Tiling {
        let [_, height, width] = plan.windows.0;
        let outputs = [height.output, width.output];
        let tiles = outputs.map(|extent| extent.div_ceil(method.tile()));
        // Without filters there may be any number of outputs, none of which is made.
        let n_tile_rows = plan.batch.saturating_mul(tiles[0]);
        let wanted = match method {
            Method::Winograd2 => TILES_OF_TWO,
            _ => TILES_OF_FOUR,
        };
        let tile_rows = (wanted / tiles[1].max(1)).clamp(1, n_tile_rows.max(1));
        // Of an even number two threads get the same share.
        let n_row_blocks = match n_tile_rows.div_ceil(tile_rows) {
            n @ ..2 => n,
            n => n.saturating_add(n % 2).min(n_tile_rows),
        };
        let most = (layout.n_panels() / MIN_PANELS).max(1);
        let n_panel_blocks = MIN_BLOCKS.div_ceil(n_row_blocks.max(1)).min(most);
        Tiling {
            method,
            layout,
            filters: plan.filters,
            outputs,
            tiles,
            n_tile_rows,
            n_row_blocks,
            n_panel_blocks,
        }
    }

    /// Returns the tiling with all columns in each block.
    pub(super) fn with_whole_rows(self) -> Tiling {
        Tiling {
            n_panel_blocks: 1,
            ..self
        }
    }

    /// Returns the first output of a row of squares, by its number in all images.
    fn first_output(&self, tile_row: usize) -> usize {
        let [rows, columns] = self.outputs;
        let (image, row) = (tile_row / self.tiles[0], tile_row % self.tiles[0]);
        (image * rows + row * self.method.tile()) * columns
    }

    /// Returns the rows of squares whose outputs these are.
    fn tile_rows(&self, outputs: Range<usize>) -> Range<usize> {
        let [rows, columns] = self.outputs;
        let row = |output: usize| {
            let (image, row) = (output / columns / rows, output / columns % rows);
            image * self.tiles[0] + row.div_ceil(self.method.tile())
        };
        row(outputs.start)..row(outputs.end)
    }
}

impl Partition for Tiling {
    fn len(&self) -> usize {
        self.n_row_blocks * self.n_panel_blocks
    }

    fn has_whole_rows(&self) -> bool {
        self.n_panel_blocks == 1
    }

    fn columns(&self, block: &Block) -> Range<usize> {
        let columns = self.layout.columns_of(&block.panels);
        columns.start..self.filters.min(columns.end)
    }

    fn block(&self, index: usize) -> Block {
        // Blocks of some rows may be larger than others, those of some panels are not: threads get these.
        let (panel, row) = (index / self.n_row_blocks, index % self.n_row_blocks);
        let n_panels = self.layout.n_panels();
        let tile_row = |index: usize| part_start(self.n_tile_rows, self.n_row_blocks, index);
        let panels = |index: usize| part_start(n_panels, self.n_panel_blocks, index);
        Block {
            rows: self.first_output(tile_row(row))..self.first_output(tile_row(row + 1)),
            panels: panels(panel)..panels(panel + 1),
        }
    }
}

/// Operands of a Winograd convolution: an image and a transformed, packed filter. Borrowed for one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct WinogradOperands<'a> {
    pub plan: &'a ConvPlan,
    pub tiling: &'a Tiling,
    pub input: &'a [f32],
    /// The packed filter.
    pub filter: &'a [f32],
}

impl WinogradOperands<'_> {
    /// Makes a block: `out` begins with its first element, its rows are `stride` apart, `block_epilogue` is for its
    /// columns.
    pub(super) fn block(
        &self,
        block: &Block,
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        match self.tiling.method {
            Method::Direct => {}
            Method::Winograd2 => {
                self.block_by::<TwoOutputs, _, _>(block, block_epilogue, out, stride)
            }
            Method::Winograd4 => {
                self.block_by::<FourOutputs, _, _>(block, block_epilogue, out, stride)
            }
        }
    }

    fn block_by<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize>(
        &self,
        block: &Block,
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let WinogradOperands { plan, tiling, .. } = *self;
        let layout = tiling.layout;
        let processor = layout.set.processor();
        let tile_rows = tiling.tile_rows(block.rows.clone());
        let n_tiles = tile_rows.len() * tiling.tiles[1];
        let columns = layout.columns_of(&block.panels);
        let lay = |len: usize| PatchLayout {
            row: len,
            place: n_tiles * len + APART,
        };
        let v_lay = lay(plan.channels.next_multiple_of(layout.set.n_lanes()));
        let m_lay = lay(columns.len());
        let places = PATCH * PATCH;
        let (v_len, m_len) = (places * v_lay.place, places * m_lay.place);
        scratch::with(v_len + m_len, |memory| {
            let (v, m) = memory.split_at_mut(v_len);
            let geometry = Geometry {
                plan,
                tiling,
                tile_rows,
            };
            let mut wild = Vec::new();
            processor.vectorize(Inputs {
                transform: PhantomData::<T>,
                geometry: &geometry,
                input: self.input,
                v: &mut *v,
                lay: v_lay,
                wild: &mut wild,
            });
            let (v, mut parts) = (&*v, Vec::new());
            let filter_len = self.filter.len() / places;
            let filters = self.filter.chunks_exact(filter_len);
            for (place, (elements, m)) in filters.zip(m.chunks_exact_mut(m_lay.place)).enumerate() {
                let rows = &v[place * v_lay.place..][..n_tiles * v_lay.row];
                let right = Panels { layout, elements };
                multiply_rows(rows, v_lay.row, right, block.panels.clone(), m, &mut parts);
            }
            processor.vectorize(Outputs {
                transform: PhantomData::<T>,
                geometry: &geometry,
                m: &*m,
                lay: m_lay,
                n_columns: tiling.columns(block).len(),
                wild: &wild,
                block_epilogue,
                out: &mut *out,
                stride,
            });
            for tile in wild {
                let sums = direct_tile::DirectTile {
                    transform: PhantomData::<T>,
                    geometry: &geometry,
                    sides: *self,
                    panels: block.panels.clone(),
                    tile,
                };
                sums.make(block_epilogue, out, stride);
            }
        });
    }
}

/// Number of elements between the places of patches, so that they don't meet in the same places of the caches.
const APART: usize = 16;

/// Layout of transformed patches: place by place, each with a row for each square.
#[derive(Clone, Copy, Debug)]
struct PatchLayout {
    /// Number of elements from one row to the next.
    row: usize,
    /// Number of elements from one place to the next.
    place: usize,
}

/// Positions of a block's squares and patches.
#[derive(Clone, Debug)]
struct Geometry<'g> {
    plan: &'g ConvPlan,
    tiling: &'g Tiling,
    /// Rows of squares in the block.
    tile_rows: Range<usize>,
}

/// Position of a square of outputs in its image.
#[derive(Clone, Copy, Debug)]
struct SquarePos {
    image: usize,
    /// First row of its outputs, in the image.
    y: usize,
    x: usize,
}

impl Geometry<'_> {
    fn n_tiles(&self) -> usize {
        self.tile_rows.len() * self.tiling.tiles[1]
    }

    /// Returns a square, by its number in the block.
    fn place(&self, tile: usize) -> SquarePos {
        let [rows, columns] = self.tiling.tiles;
        let row = self.tile_rows.start + tile / columns;
        let size = self.tiling.method.tile();
        SquarePos {
            image: row / rows,
            y: row % rows * size,
            x: tile % columns * size,
        }
    }

    /// Returns the place in the image of the element at an offset from the first output's window; `None` in the
    /// padding.
    #[inline(always)]
    fn element(&self, place: SquarePos, y: usize, x: usize) -> Option<usize> {
        let [_, height, width] = &self.plan.windows.0;
        let y = (place.y + y).wrapping_sub(height.before);
        let x = (place.x + x).wrapping_sub(width.before);
        (y < height.input && x < width.input)
            .then(|| ((place.image * height.input + y) * width.input + x) * self.plan.channels)
    }

    /// Returns the number of an output in the block; `None` if there is no such output.
    #[inline(always)]
    fn output(&self, place: SquarePos, y: usize, x: usize) -> Option<usize> {
        let [rows, columns] = self.tiling.outputs;
        let (y, x) = (place.y + y, place.x + x);
        let first = self.tiling.first_output(self.tile_rows.start);
        (y < rows && x < columns).then(|| (place.image * rows + y) * columns + x - first)
    }
}

#[cfg(test)]
mod tests;
