//! Products of bytes by fours: a sum takes four products at a time.
//!
//! The right side is signed, in panels of sixteen columns. A panel has for each four rows the fours of its columns: 64 bytes,
//! which are a vector of 512 bits or a row of a tile. Its depth is filled up with zeros to whole blocks of 64. The left side
//! is unsigned and is read where it lies, also behind the end of a row, where zeros meet it. So the sums are those of other
//! zero points than were asked for; the difference is known for each column from packing, and is added at last.

use std::ops::Range;

use super::{ByteInstructions, LeftRows, flip, flip_into, vnni};
use crate::math::vectorized;

/// Number of columns of a panel.
pub(super) const COLUMNS: usize = 16;
/// Number of columns of a tile: two panels.
pub(super) const WIDTH: usize = 2 * COLUMNS;
/// Number of fours of a block of the depth.
pub(super) const QUADS: usize = 16;
/// Number of bytes of a row in a block of the depth.
pub(super) const BLOCK: usize = 4 * QUADS;
/// The largest number of rows of a tile.
pub(super) const TILE_ROWS: usize = 32;

/// The fours of a panel's columns in four rows.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Quads(pub [[i8; 4]; COLUMNS]);

/// The sums of a tile.
#[repr(align(64))]
pub(super) struct Sums(pub [[i32; WIDTH]; TILE_ROWS]);

/// A right side in panels of fours.
#[derive(Debug)]
pub(super) struct QuadPanels {
    set: ByteInstructions,
    quads: Vec<Quads>,
    /// Where the blocks of a row begin that lies in one piece.
    offsets: Vec<usize>,
    /// Number of fours of a row.
    n_quads: usize,
    /// For each column, also those that fill up the last panels, the sum of its elements without their zero point.
    column_sums: Vec<i32>,
    /// The zero points of these columns, of signed bytes; empty if all are 0.
    zeros: Vec<i32>,
}

impl QuadPanels {
    /// Packs a matrix, `[depth, columns]`, whose signed bytes have no zero point, one, or one for each column.
    pub(super) fn new(
        set: ByteInstructions,
        [depth, n_columns]: [usize; 2],
        (bytes, less): (&[u8], i32),
        zeros: &[i32],
    ) -> QuadPanels {
        let n_blocks = depth.div_ceil(BLOCK);
        let n_panels = n_columns.div_ceil(COLUMNS);
        let in_panel = n_blocks * QUADS;
        let mut quads = vec![Quads([[0; 4]; COLUMNS]); n_panels * in_panel];
        let n_padded = n_columns.next_multiple_of(WIDTH);
        let zeros = match *zeros {
            [] => Vec::new(),
            [zero] => vec![zero; n_padded],
            ref zeros => {
                let mut zeros = zeros.to_vec();
                zeros.resize(n_padded, 0);
                zeros
            }
        };
        // At most 2^15 differences of two bytes.
        let mut column_sums: Vec<i32> = match zeros.is_empty() {
            true => vec![0; n_padded],
            false => zeros.iter().map(|zero| -zero * depth as i32).collect(),
        };
        for (row, bytes) in bytes.chunks_exact(n_columns.max(1)).enumerate() {
            for (panel, bytes) in bytes.chunks(COLUMNS).enumerate() {
                let quads = &mut quads[panel * in_panel + row / 4].0;
                let sums = &mut column_sums[panel * COLUMNS..];
                for ((four, sum), byte) in quads.iter_mut().zip(sums).zip(bytes) {
                    let byte = (byte ^ flip(less)).cast_signed();
                    four[row % 4] = byte;
                    *sum += i32::from(byte);
                }
            }
        }
        QuadPanels {
            set,
            quads,
            offsets: (0..n_blocks).map(|block| block * BLOCK).collect(),
            n_quads: depth.div_ceil(4),
            column_sums,
            zeros,
        }
    }

    /// Returns about how many products are added to a sum in a step.
    pub(super) fn at_a_time(&self) -> usize {
        match self.set {
            ByteInstructions::Amx => 256,
            _ => 64,
        }
    }

    fn panel(&self, index: usize) -> &[Quads] {
        let in_panel = self.offsets.len() * QUADS;
        &self.quads[index * in_panel..][..in_panel]
    }

    /// Multiplies rows by some columns, of which the first begins a panel, and hands the sums on, tile by tile; those of a
    /// row perhaps several times. `bias` is added to the sums of each column; it may be empty.
    pub(super) fn multiply(
        &self,
        rows: &LeftRows<'_>,
        n_rows: usize,
        columns: Range<usize>,
        bias: &[i32],
        finish: &mut impl Finish,
    ) {
        let (depth, padded) = (rows.depth, self.offsets.len() * BLOCK);
        let in_place = match rows.less {
            _ if depth == 0 => n_rows,
            128 if rows.bytes.len() >= padded => (rows.bytes.len() - padded) / depth + 1,
            _ => 0,
        };
        let in_place = in_place.min(n_rows);
        let mut product = Product {
            panels: self,
            columns,
            bias,
            zeros: rows.zeros,
            added: 128 - rows.less,
            row_sums: match self.zeros.is_empty() {
                true => Vec::new(),
                false => row_sums(rows, n_rows),
            },
            finish,
        };
        if in_place > 0 {
            let left = Left::new(rows.bytes, depth, &self.offsets, (in_place, self.n_quads));
            product.run(&left, 0);
        }
        if in_place < n_rows {
            let flip = flip(rows.less) ^ 0x80;
            let mut copies = vec![0; (n_rows - in_place) * padded];
            let given = rows.bytes[in_place * depth..].chunks_exact(depth);
            for (copy, row) in copies.chunks_exact_mut(padded).zip(given) {
                flip_into(row, flip, &mut copy[..depth]);
            }
            let rows = (n_rows - in_place, self.n_quads);
            let left = Left::new(&copies, padded, &self.offsets, rows);
            product.run(&left, in_place);
        }
    }
}

impl QuadPanels {
    /// Returns whether columns have no zero points, so that sums of rows are not asked for.
    pub(super) fn is_symmetric(&self) -> bool {
        self.zeros.is_empty()
    }

    /// Multiplies rows of unsigned bytes, with one zero point, whose blocks of the depth lie at offsets.
    pub(super) fn multiply_blocks(
        &self,
        left: &Left<'_>,
        zero: i32,
        bias: &[i32],
        finish: &mut impl Finish,
    ) {
        assert!(self.is_symmetric() && left.n_quads == self.n_quads);
        let mut product = Product {
            panels: self,
            columns: 0..bias.len(),
            bias,
            zeros: &[zero],
            added: 0,
            row_sums: Vec::new(),
            finish,
        };
        product.run(left, 0);
    }
}

/// Rows of unsigned bytes, whose blocks of the depth lie at offsets from the beginnings of rows.
pub(super) struct Left<'a> {
    bytes: &'a [u8],
    stride: usize,
    offsets: &'a [usize],
    // Invariant: the blocks of as many rows lie within the bytes.
    n_rows: usize,
    /// Number of fours of a row; the last block may have less than the others.
    n_quads: usize,
}

impl<'a> Left<'a> {
    /// Makes the left side of some rows of as many fours.
    ///
    /// # Panics
    ///
    /// If blocks don't lie within the bytes, or are not as many as fours need.
    pub(super) fn new(
        bytes: &'a [u8],
        stride: usize,
        offsets: &'a [usize],
        (n_rows, n_quads): (usize, usize),
    ) -> Left<'a> {
        assert_eq!(n_quads.div_ceil(QUADS), offsets.len());
        if let (Some(last), Some(most)) = (n_rows.checked_sub(1), offsets.iter().max()) {
            let end = last
                .checked_mul(stride)
                .and_then(|start| start.checked_add(*most));
            let end = end.and_then(|start| start.checked_add(BLOCK));
            assert!(end.is_some_and(|end| end <= bytes.len()), "rows lie within");
        }
        Left {
            bytes,
            stride,
            offsets,
            n_rows,
            n_quads,
        }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of bytes from row to row.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Returns where the blocks of the depth begin, from the beginning of a row.
    pub(super) fn offsets(&self) -> &'a [usize] {
        self.offsets
    }

    /// Returns the number of rows, whose blocks lie within the bytes.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the number of fours of a block.
    pub(super) fn n_quads(&self, block: usize) -> usize {
        QUADS.min(self.n_quads - block * QUADS)
    }
}

/// A function that takes sums.
pub(super) trait Finish {
    /// Takes the sums of some rows, from one on, and of columns, at most [`WIDTH`]; to those of each column a number is
    /// added yet.
    fn finish(
        &mut self,
        row: usize,
        columns: Range<usize>,
        sums: &[[i32; WIDTH]],
        added: &[i32; WIDTH],
    );
}

/// A product of rows and some columns.
struct Product<'a, F> {
    panels: &'a QuadPanels,
    columns: Range<usize>,
    bias: &'a [i32],
    /// The zero points of rows as they were given: none, one, or one for each row.
    zeros: &'a [i32],
    /// The number that elements of the left side are above those given.
    added: i32,
    /// The sum of each row, if columns have zero points.
    row_sums: Vec<i32>,
    finish: &'a mut F,
}

impl<F: Finish> Product<'_, F> {
    /// Multiplies rows, the first of which is row `first` of the result.
    fn run(&mut self, left: &Left<'_>, first: usize) {
        let n_rows = left.n_rows();
        #[cfg(target_os = "linux")]
        if self.panels.set == ByteInstructions::Amx && self.is_worth_tiles(left) {
            let rows = n_rows.div_ceil(n_rows.div_ceil(TILE_ROWS));
            let groups = match rows {
                ..=16 => [rows, 0],
                _ => [rows.div_ceil(2), rows / 2],
            };
            let tiles = crate::math::amx::Tiles::new(groups);
            return self.tiles((first, n_rows), rows, |row, panels, sums| {
                tiles.multiply_bytes(left, row, panels, sums);
            });
        }
        match self.panels.set {
            ByteInstructions::AvxVnni => {
                let rows = even_rows(n_rows, vnni::MAX_HALF_ROWS);
                self.tiles((first, n_rows), rows, |row, panels, sums| {
                    vnni::multiply_half(left, (row, rows), panels, sums);
                });
            }
            _ => {
                let rows = even_rows(n_rows, vnni::N_ROWS[0]);
                self.tiles((first, n_rows), rows, |row, panels, sums| {
                    vnni::multiply(left, (row, rows), panels, sums);
                });
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn is_worth_tiles(&self, left: &Left<'_>) -> bool {
        let n_rows = left.n_rows();
        let n_blocks = n_rows * self.columns.len() * left.offsets().len();
        n_rows >= FEWEST_ROWS && left.n_quads >= FEWEST_QUADS && n_blocks >= FEWEST_BLOCKS
    }

    /// Makes all tiles, each of as many rows: the last ones overlap those before.
    fn tiles(
        &mut self,
        (first, n_rows): (usize, usize),
        rows: usize,
        multiply: impl Fn(usize, &[&[Quads]], &mut Sums),
    ) {
        let mut sums = Sums([[0; WIDTH]; TILE_ROWS]);
        for column in self.columns.clone().step_by(WIDTH) {
            let columns = column..self.columns.end.min(column + WIDTH);
            let panel = |index: usize| self.panels.panel(column / COLUMNS + index);
            let panels = match columns.len() {
                ..=COLUMNS => &[panel(0)][..],
                _ => &[panel(0), panel(1)],
            };
            let added = self.added_to(&columns);
            let mut row = 0;
            loop {
                multiply(row, panels, &mut sums);
                let made = &mut sums.0[..rows];
                self.correct(first + row, column, made);
                self.finish
                    .finish(first + row, columns.clone(), made, &added);
                if row + rows >= n_rows {
                    break;
                }
                row = (row + rows).min(n_rows - rows);
            }
        }
    }

    /// Returns the numbers that are added to all sums of the columns of a tile.
    fn added_to(&self, columns: &Range<usize>) -> [i32; WIDTH] {
        let mut added = [0_i32; WIDTH];
        if let Some(bias) = self.bias.get(columns.clone()) {
            added[..bias.len()].copy_from_slice(bias);
        }
        let zero = match *self.zeros {
            [] => self.added,
            [zero] => zero + self.added,
            // Those of rows differ.
            _ => return added,
        };
        for (added, sum) in added
            .iter_mut()
            .zip(&self.panels.column_sums[columns.start..])
        {
            *added = added.wrapping_sub(zero.wrapping_mul(*sum));
        }
        added
    }

    /// Takes off what rows have that differ: their zero points, and their sums if columns have zero points.
    fn correct(&self, row: usize, column: usize, sums: &mut [[i32; WIDTH]]) {
        let columns = self.panels;
        let of_tile = |list: &[i32]| {
            let mut own = [0; WIDTH];
            let list = list.get(column..).unwrap_or_default();
            let n = list.len().min(WIDTH);
            own[..n].copy_from_slice(&list[..n]);
            own
        };
        if self.zeros.len() > 1 {
            let own = of_tile(&columns.column_sums);
            let zeros = self.zeros[row..].iter().map(|zero| zero + self.added);
            take_off(sums, zeros, &own);
        }
        if !columns.zeros.is_empty() {
            let own = of_tile(&columns.zeros);
            take_off(sums, self.row_sums[row..].iter().copied(), &own);
        }
    }
}

/// Takes the product of a number for each row and one for each column off sums.
fn take_off(sums: &mut [[i32; WIDTH]], rows: impl Iterator<Item = i32>, columns: &[i32; WIDTH]) {
    for (sums, row) in sums.iter_mut().zip(rows) {
        vectorized(
            #[inline(always)]
            || {
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = sum.wrapping_sub(row.wrapping_mul(*column));
                }
            },
        );
    }
}

/// Returns the sum of each row's elements, as unsigned bytes.
fn row_sums(rows: &LeftRows<'_>, n_rows: usize) -> Vec<i32> {
    let flip = flip(rows.less) ^ 0x80;
    let row = |row: usize| &rows.bytes[row * rows.depth..][..rows.depth];
    let sum = |row: &[u8]| {
        vectorized(
            #[inline(always)]
            || row.iter().map(|byte| i32::from(byte ^ flip)).sum(),
        )
    };
    (0..n_rows).map(|index| sum(row(index))).collect()
}

/// The least number of rows that tiles are worth.
#[cfg(target_os = "linux")]
const FEWEST_ROWS: usize = 3;
/// The least number of fours of a row that tiles, which have no less than [`QUADS`], are worth.
#[cfg(target_os = "linux")]
const FEWEST_QUADS: usize = 9;
/// The least number of rows, times columns, times blocks of the depth, that tiles are worth.
#[cfg(target_os = "linux")]
const FEWEST_BLOCKS: usize = 1 << 8;

/// Returns the number of rows of tiles of at most `most` rows, which may overlap.
fn even_rows(n_rows: usize, most: usize) -> usize {
    let fitting = vnni::N_ROWS
        .into_iter()
        .filter(|rows| *rows <= n_rows.min(most));
    // Columns are read for each tile.
    fitting
        .min_by_key(|rows| n_rows.div_ceil(*rows) * (rows + 2))
        .unwrap_or(1)
}

/// Rows of a product of which only the first of each line are wanted.
pub(super) struct Lines<F> {
    pub(super) finish: F,
    /// Number of rows of a line.
    pub(super) n_rows: usize,
    /// Number of those that are wanted.
    pub(super) n_wanted: usize,
}

impl<F: Finish> Finish for Lines<F> {
    fn finish(
        &mut self,
        row: usize,
        columns: Range<usize>,
        sums: &[[i32; WIDTH]],
        added: &[i32; WIDTH],
    ) {
        let (mut row, mut sums) = (row, sums);
        while !sums.is_empty() {
            let (line, place) = (row / self.n_rows, row % self.n_rows);
            let (of_line, rest) = sums.split_at(sums.len().min(self.n_rows - place));
            let wanted = of_line.len().min(self.n_wanted.saturating_sub(place));
            if wanted > 0 {
                let row = line * self.n_wanted + place;
                self.finish
                    .finish(row, columns.clone(), &of_line[..wanted], added);
            }
            (row, sums) = (row + of_line.len(), rest);
        }
    }
}

/// Sums of `i32` in rows.
pub(super) struct SumRows<'a> {
    pub(super) out: &'a mut [i32],
    /// Number of elements of a row.
    pub(super) width: usize,
    /// The column that rows begin with.
    pub(super) first: usize,
}

impl Finish for SumRows<'_> {
    fn finish(
        &mut self,
        row: usize,
        columns: Range<usize>,
        sums: &[[i32; WIDTH]],
        added: &[i32; WIDTH],
    ) {
        let start = row * self.width + columns.start - self.first;
        let out = self.out[start..].chunks_mut(self.width);
        vectorized(
            #[inline(always)]
            || {
                for (sums, out) in sums.iter().zip(out) {
                    let out = &mut out[..columns.len()];
                    match <&mut [i32; WIDTH]>::try_from(&mut *out) {
                        Ok(out) => add(out, sums, added),
                        Err(_) => add(out, sums, added),
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn add(out: &mut [i32], sums: &[i32; WIDTH], added: &[i32; WIDTH]) {
    for ((out, sum), added) in out.iter_mut().zip(sums).zip(added) {
        *out = sum.wrapping_add(*added);
    }
}
