//! Products of integers: tiles of sums that stay in registers. Arithmetic wraps around in the type of the elements,
//! so that neither the order nor the width of sums shows.

use super::gemm::{Matrix, Rows, Sealed, rhs_as_it_is};
use super::{Scale, gemv};
use crate::math::number::{Number, Real};
use crate::math::vectorized;
use crate::{Element, from_bytes, from_bytes_mut, to_bytes, to_bytes_mut};

/// Number of rows of a tile.
const N_ROWS: usize = 4;
/// Number of columns of a tile.
const N_COLUMNS: usize = 16;
/// Depth of a block of columns that is rearranged.
const MAX_DEPTH: usize = 512;

/// `integers!(i32 as u32)` multiplies matrices of `i32` as if they were of `u32`, whose products wrap around to the same bits.
macro_rules! integers {
    ($($type:ty as $unsigned:ty),*) => {$(
        #[expect(private_interfaces, reason = "nobody else calls it")]
        impl Sealed for $type {
            rhs_as_it_is!();

            fn from_number(value: f64) -> Self {
                Real::from_f64(value)
            }

            fn multiply(scale: Scale<Self>, a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: Rows<'_, Self>) {
                const SAME: &str = "integers that differ in sign alone lie in memory the same way";
                fn matrix(matrix: Matrix<'_, $type>) -> Matrix<'_, $unsigned> {
                    Matrix {
                        elements: from_bytes(to_bytes(matrix.elements)).expect(SAME),
                        extents: matrix.extents,
                        strides: matrix.strides,
                    }
                }
                let scale = Scale {
                    of_product: scale.of_product as $unsigned,
                    of_result: scale.of_result as $unsigned,
                };
                let out = Rows {
                    elements: from_bytes_mut(to_bytes_mut(out.elements)).expect(SAME),
                    extents: out.extents,
                    stride: out.stride,
                };
                by_tiles::<$unsigned>(scale, matrix(a), matrix(b), out);
            }
        }
    )*};
}

integers!(
    u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64
);

fn by_tiles<T: Number>(scale: Scale<T>, a: Matrix<'_, T>, b: Matrix<'_, T>, mut out: Rows<'_, T>) {
    if gemv::multiply(scale, a, b, &mut out) {
        return;
    }
    let ([m, k], [_, n]) = (a.extents, b.extents);
    out.scale(scale.of_result);
    let mut panel = vec![[<T as Element>::ZERO; N_COLUMNS]; k.min(MAX_DEPTH)];
    for column in (0..n).step_by(N_COLUMNS) {
        let width = N_COLUMNS.min(n - column);
        for depth in (0..k).step_by(MAX_DEPTH) {
            let panel = &mut panel[..MAX_DEPTH.min(k - depth)];
            for (index, panel) in panel.iter_mut().enumerate() {
                let first = (depth + index) * b.strides[0] + column * b.strides[1];
                for (index, panel) in panel[..width].iter_mut().enumerate() {
                    *panel = b.elements[first + index * b.strides[1]];
                }
            }
            for row in (0..m).step_by(N_ROWS) {
                let height = N_ROWS.min(m - row);
                // Rows that are missing are another's; their sums go nowhere.
                let rows = std::array::from_fn(|index| {
                    let row = row + index.min(height - 1);
                    &a.elements[row * a.strides[0] + depth * a.strides[1]..]
                });
                let sums = vectorized(
                    #[inline(always)]
                    || tile(rows, a.strides[1], panel),
                );
                for (index, sums) in sums.iter().take(height).enumerate() {
                    let out = &mut out.elements[(row + index) * out.stride + column..][..width];
                    for (out, sum) in out.iter_mut().zip(sums) {
                        *out = out.plus(scale.of_product.times(*sum));
                    }
                }
            }
        }
    }
}

/// Returns the sums of products of some rows, whose elements lie `stride` apart, and a panel of columns.
#[inline(always)]
fn tile<T: Number>(
    rows: [&[T]; N_ROWS],
    stride: usize,
    panel: &[[T; N_COLUMNS]],
) -> [[T; N_COLUMNS]; N_ROWS] {
    let mut sums = [[<T as Element>::ZERO; N_COLUMNS]; N_ROWS];
    for (depth, columns) in panel.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            let factor = row[depth * stride];
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = sum.plus(factor.times(*column));
            }
        }
    }
    sums
}
