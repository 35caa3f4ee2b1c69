//! Products that read each element of a factor once, and so are as fast as memory: a row times a matrix, and a
//! column times a row. Rearranging factors for them costs more than it saves.

use super::Scale;
use super::gemm::{Matrix, Rows};
use crate::Element;
use crate::math::number::Number;
use crate::math::vectorized;

/// Number of rows of the right factor that are added to the result at once.
const N_ROWS: usize = 8;

/// Multiplies if a factor is a vector and the rows of `b` are contiguous; returns whether it did.
pub(super) fn multiply<T: Number>(
    scale: Scale<T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut Rows<'_, T>,
) -> bool {
    let ([m, k], [_, n]) = (a.extents, b.extents);
    if (n > 1 && b.strides[1] != 1) || (m != 1 && k != 1) || k == 0 {
        return false;
    }
    match k {
        1 => column_times_row(scale, a, &b.elements[..n], out),
        _ => row_times_matrix(scale, a, b, out),
    }
    true
}

fn column_times_row<T: Number>(scale: Scale<T>, a: Matrix<'_, T>, b: &[T], out: &mut Rows<'_, T>) {
    let (n_rows, stride) = (out.extents[0], out.stride);
    vectorized(
        #[inline(always)]
        || {
            let rows = out.elements.chunks_mut(stride).take(n_rows);
            for (index, row) in rows.enumerate() {
                let factor = scale.of_product.times(a.elements[index * a.strides[0]]);
                let pairs = row[..b.len()].iter_mut().zip(b);
                match scale.of_result {
                    of_result if of_result == T::ONE => {
                        pairs.for_each(|(out, y)| *out = out.plus(factor.times(*y)));
                    }
                    of_result if of_result == <T as Element>::ZERO => {
                        pairs.for_each(|(out, y)| *out = factor.times(*y));
                    }
                    of_result => {
                        pairs.for_each(|(out, y)| {
                            *out = of_result.times(*out).plus(factor.times(*y))
                        });
                    }
                }
            }
        },
    );
}

fn row_times_matrix<T: Number>(
    scale: Scale<T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut Rows<'_, T>,
) {
    out.scale(scale.of_result);
    let n = out.extents[1];
    let out = &mut out.elements[..n];
    let factor = |depth: usize| scale.of_product.times(a.elements[depth * a.strides[1]]);
    let row = |depth: usize| &b.elements[depth * b.strides[0]..][..n];
    let k = a.extents[1];
    vectorized(
        #[inline(always)]
        || {
            for start in (0..k - k % N_ROWS).step_by(N_ROWS) {
                let [f0, f1, f2, f3, f4, f5, f6, f7]: [T; N_ROWS] =
                    std::array::from_fn(|index| factor(start + index));
                let [r0, r1, r2, r3, r4, r5, r6, r7]: [&[T]; N_ROWS] =
                    std::array::from_fn(|index| row(start + index));
                for index in 0..n {
                    let left = f0.times(r0[index]).plus(f1.times(r1[index]));
                    let left = left.plus(f2.times(r2[index]).plus(f3.times(r3[index])));
                    let right = f4.times(r4[index]).plus(f5.times(r5[index]));
                    let right = right.plus(f6.times(r6[index]).plus(f7.times(r7[index])));
                    out[index] = out[index].plus(left.plus(right));
                }
            }
            for depth in k - k % N_ROWS..k {
                let factor = factor(depth);
                for (out, x) in out.iter_mut().zip(row(depth)) {
                    *out = out.plus(factor.times(*x));
                }
            }
        },
    );
}
