//! A tile: some rows times one panel of columns. All its sums stay in the processor's registers until
//! they are complete, what follows the product included.
//!
//! | Instructions | Vector | Rows | Columns | Sums in registers |
//! | --- | --- | --- | --- | --- |
//! | AVX-512 | 16 | 14 | 32 | 28 of 32 |
//! | AVX2 and FMA | 8 | 6 | 16 | 12 of 16 |
//! | plain | 4 | 4 | 8 | 8 of 16 |
//!
//! A narrow last panel is of one vector; with AVX-512 it may be half a one, whose products take half the time.
//!
//! Each sum is taken in the order of the depth, so its bits depend neither on how rows are cut into tiles nor
//! on the vector's length. AVX2 and AVX-512 round once for each product and sum, the plain one twice.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use pulp::{Simd, WithSimd};

use super::instructions::Processor;
use super::prefetch;

/// Epilogue of a tile's sums: `sum * scale + shift + residual`, clamped to `least` and `greatest`.
///
/// NaN stays NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileEpilogue<'t> {
    /// A factor for each column.
    pub scale: Option<&'t [f32]>,
    /// A summand for each column.
    pub shift: Option<&'t [f32]>,
    pub residual: Residual<'t>,
    pub least: f32,
    pub greatest: f32,
}

/// The addend of a product's sums.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Residual<'t> {
    /// No addend.
    None,
    /// The result's old elements, times a factor.
    Result(f32),
    /// Elements of rows, and the distance between rows.
    Rows(&'t [f32], usize),
}

/// Source of a tile's left rows.
pub(crate) trait RowSource: Copy {
    /// Checks that the source has `n_rows` rows.
    ///
    /// # Panics
    ///
    /// If it is not.
    fn check(self, n_rows: usize);

    /// Adds the products of each row and a panel to the sums, in the order of the depth.
    ///
    /// The sums go in and out by value: that keeps the compiler from giving them a place in memory, which costs
    /// three quarters of the speed.
    fn add_products<S: Simd, const N_ROWS: usize, const N_VECTORS: usize>(
        self,
        simd: S,
        panel: &[S::f32s],
        sums: Sums<S, N_ROWS, N_VECTORS>,
    ) -> Sums<S, N_ROWS, N_VECTORS>;
}

/// The sums of a tile.
pub(crate) type Sums<S, const N_ROWS: usize, const N_VECTORS: usize> =
    [[<S as Simd>::f32s; N_VECTORS]; N_ROWS];

/// Rows in parts that lie anywhere in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowParts<'t> {
    /// Contiguous slices: the first part of all rows, then the second part of all rows.
    pub parts: &'t [&'t [f32]],
    /// Number of elements of a part that count.
    pub part_len: usize,
}

/// Rows whose elements of one depth are adjacent in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdjacentRows<'t> {
    pub elements: &'t [f32],
    /// For each depth the offset of the first row's element; those of the other rows follow it.
    pub offsets: &'t [usize],
}

/// Operands and output of a tile.
#[derive(Debug)]
pub(crate) struct Tile<'t, R> {
    pub rows: R,
    pub n_rows: usize,
    /// Panel: for each depth a factor for each column.
    pub panel: &'t [f32],
    pub finish: TileEpilogue<'t>,
    /// Output rows that begin `stride` elements apart, of as many columns as the panel has.
    pub out: &'t mut [f32],
    pub stride: usize,
}

/// Number of elements of a cache line.
const LINE: usize = 16;

/// Number of panel rows that are prefetched ahead: memory is some hundred cycles away.
const AHEAD: usize = 16;

/// Number of vectors of a whole panel.
pub(super) const VECTORS: usize = 2;

impl<R: RowSource> Tile<'_, R> {
    /// Makes the tile, whose panel has `width` columns.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than what the tile reads or writes, or if there are more rows than the
    /// instruction set takes.
    #[inline(always)]
    pub(super) fn make(self, processor: Processor, width: usize) {
        let set = processor.set();
        assert!(
            (1..=set.max_rows()).contains(&self.n_rows),
            "a tile has rows, and no more than registers"
        );
        self.rows.check(self.n_rows);
        match width.div_ceil(set.n_lanes()) {
            VECTORS => processor.run(TileOfWidth::<R, VECTORS>(self)),
            _ if width < set.n_lanes() => processor.run_half(TileOfWidth::<R, 1>(self)),
            _ => processor.run(TileOfWidth::<R, 1>(self)),
        }
    }
}

/// A tile whose panel has `N_VECTORS` vectors.
pub(super) struct TileOfWidth<'t, R, const N_VECTORS: usize>(Tile<'t, R>);

impl<R: RowSource, const N_VECTORS: usize> TileOfWidth<'_, R, N_VECTORS> {
    /// Chooses the code for the number of rows.
    #[inline(always)]
    pub(super) fn with_wide(self, code: impl SimdTarget) {
        match self.0.n_rows {
            14 => code.run(RegisterTile::<R, 14, N_VECTORS>(self.0)),
            13 => code.run(RegisterTile::<R, 13, N_VECTORS>(self.0)),
            12 => code.run(RegisterTile::<R, 12, N_VECTORS>(self.0)),
            11 => code.run(RegisterTile::<R, 11, N_VECTORS>(self.0)),
            10 => code.run(RegisterTile::<R, 10, N_VECTORS>(self.0)),
            9 => code.run(RegisterTile::<R, 9, N_VECTORS>(self.0)),
            8 => code.run(RegisterTile::<R, 8, N_VECTORS>(self.0)),
            7 => code.run(RegisterTile::<R, 7, N_VECTORS>(self.0)),
            _ => self.with_middle(code),
        }
    }

    /// Chooses the code for up to six rows.
    #[inline(always)]
    pub(super) fn with_middle(self, code: impl SimdTarget) {
        match self.0.n_rows {
            6 => code.run(RegisterTile::<R, 6, N_VECTORS>(self.0)),
            5 => code.run(RegisterTile::<R, 5, N_VECTORS>(self.0)),
            _ => self.with_few(code),
        }
    }

    /// Chooses the code for up to four rows.
    #[inline(always)]
    pub(super) fn with_few(self, code: impl SimdTarget) {
        match self.0.n_rows {
            4 => code.run(RegisterTile::<R, 4, N_VECTORS>(self.0)),
            3 => code.run(RegisterTile::<R, 3, N_VECTORS>(self.0)),
            2 => code.run(RegisterTile::<R, 2, N_VECTORS>(self.0)),
            _ => code.run(RegisterTile::<R, 1, N_VECTORS>(self.0)),
        }
    }
}

/// Vector type that the code of tiles is compiled for.
pub(super) trait SimdTarget {
    fn run(self, rows: impl WithSimd<Output = ()>);
}

/// Full vectors of an instruction set.
pub(super) struct FullVectors<S>(pub S);

impl<S: Simd> SimdTarget for FullVectors<S> {
    #[inline(always)]
    fn run(self, rows: impl WithSimd<Output = ()>) {
        self.0.vectorize(rows);
    }
}

/// Shorter vectors (`half`) in the registers of `wide`, of which there are more.
pub(super) struct HalfVectors<S, H> {
    pub wide: S,
    pub half: H,
}

impl<S: Simd, H: Simd> SimdTarget for HalfVectors<S, H> {
    #[inline(always)]
    fn run(self, rows: impl WithSimd<Output = ()>) {
        struct WithVectors<R, H>(R, H);
        impl<R: WithSimd<Output = ()>, H: Simd> WithSimd for WithVectors<R, H> {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) {
                self.0.with_simd(self.1);
            }
        }
        self.wide.vectorize(WithVectors(rows, self.half));
    }
}

/// A tile of `N_ROWS` rows and `N_VECTORS` vectors.
struct RegisterTile<'t, R, const N_ROWS: usize, const N_VECTORS: usize>(Tile<'t, R>);

impl<R: RowSource, const N_ROWS: usize, const N_VECTORS: usize> WithSimd
    for RegisterTile<'_, R, N_ROWS, N_VECTORS>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let tile = self.0;
        let sums = [[simd.splat_f32s(0.0); N_VECTORS]; N_ROWS];
        let (panel, _) = S::as_simd_f32s(tile.panel);
        // While sums are taken, what they go to comes nearer.
        for row in 0..N_ROWS {
            let row = &tile.out[row * tile.stride..][..N_VECTORS * S::F32_LANES];
            for line in row.chunks(LINE) {
                prefetch::for_writing(&line[0]);
            }
            prefetch::for_writing(&row[row.len() - 1]);
        }
        let sums = tile.rows.add_products(simd, panel, sums);
        finish(simd, sums, tile.finish, tile.out, tile.stride);
    }
}

impl RowSource for RowParts<'_> {
    fn check(self, n_rows: usize) {
        assert_eq!(self.parts.len() % n_rows, 0, "all rows have parts");
    }

    #[inline(always)]
    fn add_products<S: Simd, const N_ROWS: usize, const N_VECTORS: usize>(
        self,
        simd: S,
        panel: &[S::f32s],
        mut sums: Sums<S, N_ROWS, N_VECTORS>,
    ) -> Sums<S, N_ROWS, N_VECTORS> {
        let piece_len = self.part_len * N_VECTORS;
        let n_pieces = self.parts.len() / N_ROWS;
        let panel = &panel[..n_pieces * piece_len];
        let pieces = panel.chunks_exact(piece_len.max(1));
        for (parts, piece) in self.parts.chunks_exact(N_ROWS).zip(pieces) {
            let mut rows: [&[f32]; N_ROWS] = [&[]; N_ROWS];
            for row in 0..N_ROWS {
                rows[row] = &parts[row][..self.part_len];
            }
            sums = add_part(simd, rows, piece, self.part_len, sums);
        }
        sums
    }
}

impl RowSource for AdjacentRows<'_> {
    fn check(self, _: usize) {}

    #[inline(always)]
    fn add_products<S: Simd, const N_ROWS: usize, const N_VECTORS: usize>(
        self,
        simd: S,
        panel: &[S::f32s],
        mut sums: Sums<S, N_ROWS, N_VECTORS>,
    ) -> Sums<S, N_ROWS, N_VECTORS> {
        let panel = &panel[..self.offsets.len() * N_VECTORS];
        let columns = panel.chunks_exact(N_VECTORS);
        for (&offset, columns) in self.offsets.iter().zip(columns) {
            let rows = &self.elements[offset..][..N_ROWS];
            for row in 0..N_ROWS {
                let element = simd.splat_f32s(rows[row]);
                for vector in 0..N_VECTORS {
                    let sum = sums[row][vector];
                    sums[row][vector] = multiply_add(simd, element, columns[vector], sum);
                }
            }
        }
        sums
    }
}

/// Adds the products of a part of each row and a piece of the panel.
#[inline(always)]
fn add_part<S: Simd, const N_ROWS: usize, const N_VECTORS: usize>(
    simd: S,
    rows: [&[f32]; N_ROWS],
    piece: &[S::f32s],
    len: usize,
    mut sums: Sums<S, N_ROWS, N_VECTORS>,
) -> Sums<S, N_ROWS, N_VECTORS> {
    let columns = piece.chunks_exact(N_VECTORS);
    for (depth, columns) in (0..len).zip(columns) {
        // One vector waits for loads, of which this would be one more; the processor fetches so narrow a panel by itself.
        if N_VECTORS > 1 {
            for vector in 0..N_VECTORS {
                prefetch::for_reading(&columns[vector], AHEAD * N_VECTORS);
            }
        }
        for row in 0..N_ROWS {
            let element = simd.splat_f32s(rows[row][depth]);
            for vector in 0..N_VECTORS {
                let sum = sums[row][vector];
                sums[row][vector] = multiply_add(simd, element, columns[vector], sum);
            }
        }
    }
    sums
}

/// `a * b + c`.
#[inline(always)]
pub(crate) fn multiply_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    // Without an instruction for both, rounding once would be a call.
    match S::F32_LANES > 4 {
        true => simd.mul_add_e_f32s(a, b, c),
        false => simd.add_f32s(simd.mul_f32s(a, b), c),
    }
}

/// Applies the epilogue to the sums of some rows, and writes them to rows that begin `stride` elements apart.
#[inline(always)]
pub(crate) fn finish<S: Simd, const N_ROWS: usize, const N_VECTORS: usize>(
    simd: S,
    mut sums: [[S::f32s; N_VECTORS]; N_ROWS],
    finish: TileEpilogue<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let n_columns = N_VECTORS * S::F32_LANES;
    if finish.scale.is_some() || finish.shift.is_some() {
        for vector in 0..N_VECTORS {
            let of = |list: Option<&[f32]>, otherwise: f32| match list {
                Some(list) => S::as_simd_f32s(&list[..n_columns]).0[vector],
                None => simd.splat_f32s(otherwise),
            };
            let (scale, shift) = (of(finish.scale, 1.0), of(finish.shift, 0.0));
            for row in 0..N_ROWS {
                sums[row][vector] = multiply_add(simd, sums[row][vector], scale, shift);
            }
        }
    }
    match finish.residual {
        Residual::None => {}
        Residual::Result(factor) => {
            let factor = simd.splat_f32s(factor);
            for row in 0..N_ROWS {
                let (before, _) = S::as_simd_f32s(&out[row * stride..][..n_columns]);
                for vector in 0..N_VECTORS {
                    let sum = sums[row][vector];
                    sums[row][vector] = multiply_add(simd, before[vector], factor, sum);
                }
            }
        }
        Residual::Rows(rows, stride) => {
            for row in 0..N_ROWS {
                let (added, _) = S::as_simd_f32s(&rows[row * stride..][..n_columns]);
                for vector in 0..N_VECTORS {
                    sums[row][vector] = simd.add_f32s(sums[row][vector], added[vector]);
                }
            }
        }
    }
    if finish.least > f32::NEG_INFINITY || finish.greatest < f32::INFINITY {
        let (least, greatest) = (
            simd.splat_f32s(finish.least),
            simd.splat_f32s(finish.greatest),
        );
        for row in 0..N_ROWS {
            for vector in 0..N_VECTORS {
                sums[row][vector] = within(simd, sums[row][vector], least, greatest);
            }
        }
    }
    for row in 0..N_ROWS {
        let (row_out, _) = S::as_mut_simd_f32s(&mut out[row * stride..][..n_columns]);
        row_out.copy_from_slice(&sums[row]);
    }
}

/// Clamps to a range; what is no number stays that.
#[inline(always)]
pub(super) fn within<S: Simd>(simd: S, sum: S::f32s, least: S::f32s, greatest: S::f32s) -> S::f32s {
    match S::F32_LANES > 4 {
        // The instructions of x86 give the second where one is no number.
        true => simd.min_f32s(greatest, simd.max_f32s(least, sum)),
        false => {
            let sum = simd.select_f32s(simd.less_than_f32s(sum, least), least, sum);
            simd.select_f32s(simd.greater_than_f32s(sum, greatest), greatest, sum)
        }
    }
}
