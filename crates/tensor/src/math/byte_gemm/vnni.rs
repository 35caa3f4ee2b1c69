//! Products of bytes by VNNI, which adds four products to a sum: in vectors of 512 bits, or of 256.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::{
    __m256i, __m512i, _mm256_dpbusd_avx_epi32, _mm256_set1_epi32, _mm256_setzero_si256,
    _mm512_dpbusd_epi32, _mm512_set1_epi32, _mm512_setzero_si512,
};

use pulp::bytemuck::cast;

use super::quads::{BLOCK, COLUMNS, Left, QUADS, Quads, Sums};

/// Numbers of rows of a tile, the largest first.
pub(super) const N_ROWS: [usize; 7] = [12, 8, 6, 4, 3, 2, 1];
/// Number of rows of the largest tile in vectors of 256 bits.
pub(super) const MAX_HALF_ROWS: usize = 6;

/// Calls the function that is compiled for a number of rows: `match n { 1 => wide::<1, _>(..), .. }`.
macro_rules! of_rows {
    ($n:expr, [$($rows:literal)*], $function:ident($left:expr, $row:expr, $panels:expr, $sums:expr)) => {
        match $n {
            // SAFETY: the caller has checked that the processor has the instructions.
            $($rows => unsafe { $function::<$rows, _>($left, $row, $panels, $sums) },)*
            n => unreachable!("tiles don't have {n} rows"),
        }
    };
}

/// Multiplies `n_rows` rows from one on, a number of [`N_ROWS`], by one panel or two, in vectors of 512 bits. Of one panel,
/// the second half of sums is left as it is.
///
/// # Panics
///
/// If rows or panels don't have as many bytes, or the processor does not have the instructions.
pub(super) fn multiply(
    left: &Left<'_>,
    (row, n_rows): (usize, usize),
    panels: &[&[Quads]],
    sums: &mut Sums,
) {
    assert!(has!("avx512f") && has!("avx512vnni"));
    match *panels {
        [one] => of_rows!(n_rows, [1 2 3 4 6 8 12], wide(left, row, [one], sums)),
        [one, two] => {
            of_rows!(n_rows, [1 2 3 4 6 8 12], wide(left, row, [one, two], sums))
        }
        _ => unreachable!("one panel or two"),
    }
}

/// Runs [`multiply`] in vectors of 256 bits, for at most [`MAX_HALF_ROWS`].
///
/// # Panics
///
/// As for [`multiply`].
pub(super) fn multiply_half(
    left: &Left<'_>,
    (row, n_rows): (usize, usize),
    panels: &[&[Quads]],
    sums: &mut Sums,
) {
    assert!(has!("avx2") && has!("avxvnni"));
    match *panels {
        [one] => of_rows!(n_rows, [1 2 3 4 6], half(left, row, [one], sums)),
        [one, two] => of_rows!(n_rows, [1 2 3 4 6], half(left, row, [one, two], sums)),
        _ => unreachable!("one panel or two"),
    }
}

/// Returns the fours of bytes of `N` rows in a block of the depth.
#[inline(always)]
fn fours<'a, const N: usize>(
    left: &Left<'a>,
    row: usize,
    offset: usize,
    n_quads: usize,
) -> [&'a [[u8; 4]]; N] {
    let mut rows: [&[[u8; 4]]; N] = [&[]; N];
    for index in 0..N {
        let start = (row + index) * left.stride() + offset;
        rows[index] = left.bytes()[start..][..4 * n_quads].as_chunks().0;
    }
    rows
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn wide<const N: usize, const P: usize>(
    left: &Left<'_>,
    row: usize,
    panels: [&[Quads]; P],
    sums: &mut Sums,
) {
    let mut all = [[_mm512_setzero_si512(); P]; N];
    for (block, offset) in left.offsets().iter().enumerate() {
        let n = left.n_quads(block);
        let rows = fours::<N>(left, row, *offset, n);
        let mut columns: [&[Quads]; P] = [&[]; P];
        for panel in 0..P {
            columns[panel] = &panels[panel][block * QUADS..][..n];
        }
        for quad in 0..n {
            let mut right = [_mm512_setzero_si512(); P];
            for panel in 0..P {
                right[panel] = cast::<_, __m512i>(columns[panel][quad].0);
            }
            for index in 0..N {
                let four = _mm512_set1_epi32(i32::from_ne_bytes(rows[index][quad]));
                for panel in 0..P {
                    all[index][panel] = _mm512_dpbusd_epi32(all[index][panel], four, right[panel]);
                }
            }
        }
    }
    for index in 0..N {
        for panel in 0..P {
            let to = &mut sums.0[index].as_chunks_mut::<COLUMNS>().0[panel];
            *to = cast(all[index][panel]);
        }
    }
}

#[target_feature(enable = "avx2,avxvnni")]
fn half<const N: usize, const P: usize>(
    left: &Left<'_>,
    row: usize,
    panels: [&[Quads]; P],
    sums: &mut Sums,
) {
    for panel in 0..P {
        let mut all = [[_mm256_setzero_si256(); 2]; N];
        for (block, offset) in left.offsets().iter().enumerate() {
            let n = left.n_quads(block);
            let rows = fours::<N>(left, row, *offset, n);
            let columns = &panels[panel][block * QUADS..][..n];
            for quad in 0..n {
                let right: [__m256i; 2] = cast(columns[quad].0);
                for index in 0..N {
                    let four = _mm256_set1_epi32(i32::from_ne_bytes(rows[index][quad]));
                    for half in 0..2 {
                        all[index][half] =
                            _mm256_dpbusd_avx_epi32(all[index][half], four, right[half]);
                    }
                }
            }
        }
        for index in 0..N {
            let to = &mut sums.0[index].as_chunks_mut::<COLUMNS>().0[panel];
            *to = cast(all[index]);
        }
    }
}

const _: () = assert!(BLOCK == 4 * QUADS);
