//! Few rows times several panels at once.
//!
//! Of few rows a product is as fast as its right side arrives. Sums of one panel would wait for each other; and
//! several panels are several places in memory, of which the processor fetches ahead by itself. Asking it for more
//! would be in its way.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use pulp::{Simd, WithSimd};
use smallvec::SmallVec;

use super::instructions::{InstructionSet, Processor};
use super::tile::{RowParts, SimdTarget, TileEpilogue, VECTORS, finish, multiply_add};
use super::{BlockEpilogue, LhsBlock, RhsBlock};

/// The most panels that are multiplied by at once.
pub(super) const MAX_PANELS: usize = 4;
/// The most rows that more than one panel is multiplied by at once.
const MAX_ROWS: usize = 3;

/// Returns the number of panels that `n_rows` rows are multiplied by at once: as many as there are registers for
/// sums, and 1 if there are enough rows for a tile.
pub(super) fn n_panels(set: InstructionSet, n_rows: usize) -> usize {
    match n_rows {
        1..=MAX_ROWS => MAX_PANELS.min(set.max_rows() / n_rows),
        _ => 1,
    }
}

impl LhsBlock<'_> {
    /// Makes the product of the rows, of which there are few, and some panels; `out` begins with the block's first
    /// element.
    pub(super) fn times_all(
        &self,
        right: &RhsBlock<'_>,
        n_rows: usize,
        block_epilogue: &BlockEpilogue<'_>,
        out: &mut [f32],
        stride: usize,
    ) {
        let set = right.processor.set();
        let mut together: SmallVec<[FullPanel<'_>; MAX_PANELS]> = SmallVec::new();
        for panel in &right.panels {
            let finish = block_epilogue.of(self.first, panel.held());
            if panel.width < set.n_columns() || !panel.is_whole(right.column, finish.residual) {
                self.times(right, (0..n_rows, panel), block_epilogue, out, stride);
                continue;
            }
            together.push(FullPanel {
                elements: &right.elements[panel.elements.clone()],
                finish,
                first: self.first * stride + panel.first - right.column,
            });
            if together.len() == n_panels(set, n_rows) {
                self.times_some(right.processor, n_rows, &together, out, stride);
                together.clear();
            }
        }
        if !together.is_empty() {
            self.times_some(right.processor, n_rows, &together, out, stride);
        }
    }

    fn times_some(
        &self,
        processor: Processor,
        n_rows: usize,
        panels: &[FullPanel<'_>],
        out: &mut [f32],
        stride: usize,
    ) {
        let few = FewRows {
            rows: RowParts {
                parts: self.parts,
                part_len: self.part_len,
            },
            n_rows,
            panels,
            out,
            stride,
        };
        few.make(processor);
    }
}

/// Operands of a product of few rows and several full panels.
#[derive(Debug)]
pub(super) struct FewRows<'t> {
    rows: RowParts<'t>,
    n_rows: usize,
    /// Full panels, at most `n_panels` of them.
    panels: &'t [FullPanel<'t>],
    /// Rows that begin `stride` elements apart.
    out: &'t mut [f32],
    stride: usize,
}

/// A panel of full width with its epilogue.
#[derive(Clone, Copy, Debug)]
struct FullPanel<'t> {
    elements: &'t [f32],
    finish: TileEpilogue<'t>,
    /// Offset of its first column in the first row of the result.
    first: usize,
}

impl FewRows<'_> {
    /// Makes the product.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than what is read or written, or if there are more rows or panels than there are
    /// registers for.
    fn make(self, processor: Processor) {
        let (set, n) = (processor.set(), self.panels.len());
        assert!(
            self.n_rows > 0 && n <= n_panels(set, self.n_rows),
            "sums are as many as registers"
        );
        processor.run_few(self);
    }

    /// Chooses the code for the number of rows and panels.
    #[inline(always)]
    pub(super) fn with(self, code: impl SimdTarget) {
        match (self.n_rows, self.panels.len()) {
            (1, 4) => code.run(MultiPanelTile::<1, 4>(self)),
            (1, 3) => code.run(MultiPanelTile::<1, 3>(self)),
            (1, 2) => code.run(MultiPanelTile::<1, 2>(self)),
            (1, _) => code.run(MultiPanelTile::<1, 1>(self)),
            (2, 4) => code.run(MultiPanelTile::<2, 4>(self)),
            (2, 3) => code.run(MultiPanelTile::<2, 3>(self)),
            (2, 2) => code.run(MultiPanelTile::<2, 2>(self)),
            (2, _) => code.run(MultiPanelTile::<2, 1>(self)),
            (_, 4) => code.run(MultiPanelTile::<3, 4>(self)),
            (_, 3) => code.run(MultiPanelTile::<3, 3>(self)),
            (_, 2) => code.run(MultiPanelTile::<3, 2>(self)),
            (..) => code.run(MultiPanelTile::<3, 1>(self)),
        }
    }
}

/// A tile of few rows and several panels, whose sizes are known when it is compiled.
struct MultiPanelTile<'t, const N_ROWS: usize, const N_PANELS: usize>(FewRows<'t>);

impl<const N_ROWS: usize, const N_PANELS: usize> WithSimd for MultiPanelTile<'_, N_ROWS, N_PANELS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let few = self.0;
        let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; N_ROWS]; N_PANELS];
        let len = few.rows.part_len;
        for (index, parts) in few.rows.parts.chunks_exact(N_ROWS).enumerate() {
            let mut rows: [&[f32]; N_ROWS] = [&[]; N_ROWS];
            for row in 0..N_ROWS {
                rows[row] = &parts[row][..len];
            }
            let mut pieces: [&[[S::f32s; VECTORS]]; N_PANELS] = [&[]; N_PANELS];
            for panel in 0..N_PANELS {
                let (vectors, _) = S::as_simd_f32s(few.panels[panel].elements);
                pieces[panel] = &vectors.as_chunks().0[index * len..][..len];
            }
            for depth in 0..len {
                for panel in 0..N_PANELS {
                    let columns = pieces[panel][depth];
                    for row in 0..N_ROWS {
                        let element = simd.splat_f32s(rows[row][depth]);
                        for vector in 0..VECTORS {
                            let sum = sums[panel][row][vector];
                            sums[panel][row][vector] =
                                multiply_add(simd, element, columns[vector], sum);
                        }
                    }
                }
            }
        }
        for panel in 0..N_PANELS {
            let held = few.panels[panel];
            finish(
                simd,
                sums[panel],
                held.finish,
                &mut few.out[held.first..],
                few.stride,
            );
        }
    }
}
