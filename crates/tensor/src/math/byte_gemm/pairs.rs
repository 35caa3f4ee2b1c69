//! Products of bytes by pairs, for processors without instructions that multiply bytes.
//!
//! A panel has for each two rows the pairs of its columns, as signed bytes. Rows of the left side are made numbers of 16 bits
//! without their zero points, so that two products are a sum of 32 bits, which does not saturate; that of a row, times the
//! columns' zero points, is taken off at last.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use super::{ByteInstructions, LeftRows, flip};
use crate::math::vectorized;

/// Number of columns of a panel.
pub(super) const COLUMNS: usize = 16;
/// Number of rows of a tile.
pub(super) const ROWS: usize = 4;

/// The pairs of a panel's columns in two rows.
type Pairs = [[i8; 2]; COLUMNS];
/// The sums of a row and a panel.
type Sums = [i32; COLUMNS];

/// A right side in panels of pairs.
#[derive(Debug)]
pub(super) struct PairPanels {
    set: ByteInstructions,
    /// For each panel its pairs of rows.
    panels: Vec<Pairs>,
    n_pairs: usize,
    /// The zero points of the columns, of signed bytes; empty if all are 0.
    zeros: Vec<i32>,
}

impl PairPanels {
    /// Packs a matrix, `[depth, columns]`, whose signed bytes have no zero point, one, or one for each column.
    pub(super) fn new(
        set: ByteInstructions,
        [depth, n_columns]: [usize; 2],
        (bytes, less): (&[u8], i32),
        zeros: Vec<i32>,
    ) -> PairPanels {
        let n_pairs = depth.div_ceil(2);
        let mut panels = vec![[[0; 2]; COLUMNS]; n_columns.div_ceil(COLUMNS) * n_pairs];
        for (row, bytes) in bytes.chunks_exact(n_columns.max(1)).enumerate() {
            for (panel, bytes) in bytes.chunks(COLUMNS).enumerate() {
                let pairs = &mut panels[panel * n_pairs + row / 2];
                for (pair, byte) in pairs.iter_mut().zip(bytes) {
                    pair[row % 2] = (byte ^ flip(less)).cast_signed();
                }
            }
        }
        PairPanels {
            set,
            panels,
            n_pairs,
            zeros,
        }
    }

    /// Multiplies as many rows by the columns from one on, which begins a panel, into rows of the result; of one row
    /// perhaps some columns alone.
    pub(super) fn multiply(
        &self,
        rows: &LeftRows<'_>,
        n_rows: usize,
        column: usize,
        out: &mut [i32],
    ) {
        let n_pairs = self.n_pairs;
        let width = out.len().checked_div(n_rows).unwrap_or(0);
        // Rows of a group stay near while all panels pass by.
        let group = GROUP_PAIRS.div_ceil(n_pairs.max(1)).next_multiple_of(ROWS);
        let mut pairs = Vec::new();
        let mut sums = Vec::new();
        for (index, out) in out.chunks_mut((group * width).max(1)).enumerate() {
            let first = index * group;
            let n_rows = out.len() / width;
            pairs.clear();
            sums.clear();
            for row in first..first + n_rows {
                sums.push(rows.widen(row, &mut pairs));
            }
            let group = Group {
                set: self.set,
                pairs: &pairs,
                n_pairs,
                sums: &sums,
            };
            for start in (0..width).step_by(COLUMNS) {
                let panel = (column + start) / COLUMNS;
                let panel = &self.panels[panel * n_pairs..][..n_pairs];
                group.multiply(panel, (column + start, &self.zeros), (start, width), out);
            }
        }
    }
}

impl LeftRows<'_> {
    /// Appends a row's pairs without its zero point, and returns its sum.
    fn widen(&self, row: usize, pairs: &mut Vec<[i16; 2]>) -> i32 {
        let bytes = &self.bytes[row * self.depth..][..self.depth];
        let zero = self.zeros.get(row).or(self.zeros.first());
        let (flip, zero) = (flip(self.less), zero.copied().unwrap_or(0) - self.less);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "zero points and differences of two bytes have 9 bits"
        )]
        let zero = zero as i16;
        let one = move |byte: u8| i16::from((byte ^ flip).cast_signed()) - zero;
        let (whole, rest) = bytes.as_chunks::<2>();
        let first = pairs.len();
        pairs.resize(first + bytes.len().div_ceil(2), [0; 2]);
        let pairs = &mut pairs[first..];
        vectorized(
            #[inline(always)]
            || {
                for (pair, [x, y]) in pairs.iter_mut().zip(whole) {
                    *pair = [one(*x), one(*y)];
                }
                if let ([byte], Some(pair)) = (rest, pairs.last_mut()) {
                    *pair = [one(*byte), 0];
                }
                let sums = pairs.iter().map(|[x, y]| i32::from(*x) + i32::from(*y));
                sums.sum()
            },
        )
    }
}

/// Number of pairs of rows that are widened at a time: they fit the second cache.
const GROUP_PAIRS: usize = 1 << 14;

/// Rows that are multiplied by one panel after the other.
struct Group<'a> {
    set: ByteInstructions,
    pairs: &'a [[i16; 2]],
    /// Number of pairs of a row.
    n_pairs: usize,
    /// The sum of each row.
    sums: &'a [i32],
}

impl Group<'_> {
    /// Multiplies the rows by a panel, into the columns from `start` on of rows of `width` elements.
    fn multiply(
        &self,
        panel: &[Pairs],
        (column, zeros): (usize, &[i32]),
        (start, width): (usize, usize),
        out: &mut [i32],
    ) {
        let len = COLUMNS.min(width - start);
        let of_columns = zeros;
        let zeros: Sums = match of_columns {
            [] => [0; COLUMNS],
            [zero] => [*zero; COLUMNS],
            zeros => std::array::from_fn(|index| zeros.get(column + index).copied().unwrap_or(0)),
        };
        let mut row = 0;
        while row < self.sums.len() {
            let n = ROWS.min(self.sums.len() - row);
            let pairs = &self.pairs[row * self.n_pairs..][..n * self.n_pairs];
            let mut tile = [[0; COLUMNS]; ROWS];
            multiply(self.set, pairs, n, panel, &mut tile);
            for (index, tile) in tile.iter().enumerate().take(n) {
                let sum = self.sums[row + index];
                let out = &mut out[(row + index) * width + start..][..len];
                match <&mut Sums>::try_from(&mut *out) {
                    Ok(out) if of_columns.is_empty() => *out = *tile,
                    Ok(out) => without_zeros(tile, sum, &zeros, out),
                    Err(_) => {
                        let mut whole = *tile;
                        without_zeros(tile, sum, &zeros, &mut whole);
                        out.copy_from_slice(&whole[..len]);
                    }
                }
            }
            row += n;
        }
    }
}

/// Takes the sum of a row, times the columns' zero points, off its products.
#[inline]
fn without_zeros(products: &Sums, sum: i32, zeros: &Sums, out: &mut Sums) {
    vectorized(
        #[inline(always)]
        || {
            for column in 0..COLUMNS {
                out[column] = products[column].wrapping_sub(sum.wrapping_mul(zeros[column]));
            }
        },
    );
}

/// Makes the sums of up to [`ROWS`] rows and a panel.
fn multiply(
    set: ByteInstructions,
    pairs: &[[i16; 2]],
    n_rows: usize,
    panel: &[Pairs],
    tile: &mut [Sums; ROWS],
) {
    #[cfg(target_arch = "x86_64")]
    if set == ByteInstructions::Avx2
        && let Some(simd) = avx2::simd()
    {
        return simd.vectorize(avx2::Tile {
            simd,
            pairs,
            n_rows,
            panel,
            tile,
        });
    }
    plain(pairs, n_rows, panel, tile);
}

/// Makes the sums by no particular instructions.
fn plain(pairs: &[[i16; 2]], n_rows: usize, panel: &[Pairs], tile: &mut [Sums; ROWS]) {
    for (row, tile) in tile.iter_mut().enumerate().take(n_rows) {
        let pairs = &pairs[row * panel.len()..][..panel.len()];
        for ([x, y], columns) in pairs.iter().zip(panel) {
            for (sum, [a, b]) in tile.iter_mut().zip(columns) {
                let two = i32::from(*x) * i32::from(*a) + i32::from(*y) * i32::from(*b);
                *sum = sum.wrapping_add(two);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m128i, __m256i};

    use pulp::cast;
    use pulp::x86::V3;

    use super::{Pairs, ROWS, Sums};
    use crate::math::packed_gemm::InstructionSet;

    /// Returns the right to use the instructions, if the processor has them and the process may use them.
    pub(super) fn simd() -> Option<V3> {
        match InstructionSet::Avx2.is_available() {
            true => V3::try_new(),
            false => None,
        }
    }

    /// Operands and sums of a tile.
    pub(super) struct Tile<'a> {
        pub simd: V3,
        pub pairs: &'a [[i16; 2]],
        pub n_rows: usize,
        pub panel: &'a [Pairs],
        pub tile: &'a mut [Sums; ROWS],
    }

    impl pulp::NullaryFnOnce for Tile<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            match self.n_rows {
                1 => self.rows::<1>(),
                2 => self.rows::<2>(),
                3 => self.rows::<3>(),
                _ => self.rows::<ROWS>(),
            }
        }
    }

    impl Tile<'_> {
        #[inline(always)]
        fn rows<const N: usize>(self) {
            let V3 { avx, avx2, .. } = self.simd;
            let depth = self.panel.len();
            let mut rows: [&[[i16; 2]]; N] = [&[]; N];
            for row in 0..N {
                rows[row] = &self.pairs[row * depth..][..depth];
            }
            let mut sums = [[avx._mm256_setzero_si256(); 2]; N];
            for place in 0..depth {
                let [low, high]: [__m128i; 2] = cast(self.panel[place]);
                let columns = [
                    avx2._mm256_cvtepi8_epi16(low),
                    avx2._mm256_cvtepi8_epi16(high),
                ];
                for row in 0..N {
                    let pair = avx._mm256_set1_epi32(cast::<[i16; 2], i32>(rows[row][place]));
                    for half in 0..2 {
                        let two = avx2._mm256_madd_epi16(pair, columns[half]);
                        sums[row][half] = avx2._mm256_add_epi32(sums[row][half], two);
                    }
                }
            }
            for row in 0..N {
                self.tile[row] = cast::<[__m256i; 2], Sums>(sums[row]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_agree() {
        let pairs: Vec<[i16; 2]> = (0..4 * 90_i16)
            .map(|index| [index - 100, 255 - index])
            .collect();
        let panel: Vec<Pairs> = (0..90_usize)
            .map(|row| std::array::from_fn(|column| [(row * column % 256) as u8 as i8, -128]))
            .collect();
        for n_rows in 1..=ROWS {
            let (mut found, mut wanted) = ([[0; COLUMNS]; ROWS], [[0; COLUMNS]; ROWS]);
            multiply(ByteInstructions::Avx2, &pairs, n_rows, &panel, &mut found);
            plain(&pairs, n_rows, &panel, &mut wanted);
            assert_eq!(found, wanted, "{n_rows} rows");
        }
    }
}
