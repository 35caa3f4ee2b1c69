//! Products of halves, as products of `f32`, block by block: each sum is rounded to a half once.

use std::borrow::Cow;

use super::Scale;
use super::gemm::{MatmulElement, Matrix, Rows, Sealed, multiply};
use crate::math::number::{Number, Real};
use crate::math::pointwise::halves;
use crate::math::scratch;
use crate::{BF16, Element, F16, to_bytes, to_bytes_mut};

/// Rows, depth and columns of a block: the factors as `f32` and their sums are some 900 KB.
const BLOCK: [usize; 3] = [120, 256, 512];

macro_rules! halves {
    ($($type:ty),*) => {$(
        #[expect(private_interfaces, reason = "nobody else calls it")]
        impl Sealed for $type {
            type RhsElement = f32;

            fn from_number(value: f64) -> Self {
                Real::from_f64(value)
            }

            fn widen_rhs(elements: Cow<'_, [Self]>) -> Cow<'_, [f32]> {
                let mut wide = vec![0.0; elements.len()];
                halves::widen(Self::DTYPE, to_bytes(&*elements), to_bytes_mut(&mut wide));
                Cow::Owned(wide)
            }

            #[inline(always)]
            fn times_widened(self, factor: f32) -> Self {
                Self::narrowed(self.widened() * factor)
            }

            fn multiply(scale: Scale<Self>, a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: Rows<'_, Self>) {
                by_blocks(scale, a, Rhs::Halves(b), out);
            }

            fn multiply_widened(scale: Scale<Self>, a: Matrix<'_, Self>, b: Matrix<'_, f32>, out: Rows<'_, Self>) {
                by_blocks(scale, a, Rhs::Wide(b), out);
            }
        }
    )*};
}

halves!(F16, BF16);

/// A right factor.
#[derive(Clone, Copy, Debug)]
enum Rhs<'a, T> {
    /// Halves, to be converted block by block.
    Halves(Matrix<'a, T>),
    /// Halves that were widened ahead.
    Wide(Matrix<'a, f32>),
}

impl<T: Number<Wide = f32>> Rhs<'_, T> {
    fn n_columns(&self) -> usize {
        match self {
            Rhs::Halves(matrix) => matrix.extents[1],
            Rhs::Wide(matrix) => matrix.extents[1],
        }
    }

    /// Returns the number of elements of a block of `n`.
    fn len(&self, n: usize) -> usize {
        match self {
            Rhs::Halves(_) => n,
            Rhs::Wide(_) => 0,
        }
    }

    fn block<'m>(
        &'m self,
        from: [usize; 2],
        extents: [usize; 2],
        memory: &'m mut [f32],
    ) -> Matrix<'m, f32> {
        match *self {
            Rhs::Halves(matrix) => widened(matrix, from, extents, memory),
            Rhs::Wide(matrix) => {
                let start = from[0] * matrix.strides[0] + from[1] * matrix.strides[1];
                Matrix::new(matrix.elements, start, extents, matrix.strides)
            }
        }
    }
}

fn by_blocks<T: MatmulElement + Number<Wide = f32>>(
    scale: Scale<T>,
    a: Matrix<'_, T>,
    b: Rhs<'_, T>,
    out: Rows<'_, T>,
) {
    let ([m, k], n) = (a.extents, b.n_columns());
    let [rows, depths, columns] = [m.min(BLOCK[0]), k.clamp(1, BLOCK[1]), n.min(BLOCK[2])];
    let (stride, elements) = (out.stride, out.elements);
    let (of_product, of_result) = (scale.of_product.widened(), scale.of_result.widened());
    let reads_out = scale.of_result != <T as Element>::ZERO;
    scratch::with(
        rows * depths + b.len(depths * columns) + rows * columns,
        |memory| {
            let (left, memory) = memory.split_at_mut(rows * depths);
            let (right, sums) = memory.split_at_mut(b.len(depths * columns));
            for row in (0..m).step_by(rows) {
                for column in (0..n).step_by(columns) {
                    let (n_rows, n_columns) = (rows.min(m - row), columns.min(n - column));
                    let sums = &mut sums[..n_rows * n_columns];
                    let places = |index: usize| {
                        let first = (row + index) * stride + column;
                        first..first + n_columns
                    };
                    if reads_out {
                        for (index, sums) in sums.chunks_exact_mut(n_columns).enumerate() {
                            halves::widen(
                                T::DTYPE,
                                to_bytes(&elements[places(index)]),
                                to_bytes_mut(sums),
                            );
                        }
                        sums.iter_mut().for_each(|sum| *sum *= of_result);
                    } else {
                        sums.fill(0.0);
                    }
                    for depth in (0..k).step_by(depths) {
                        let n_depths = depths.min(k - depth);
                        let scale = Scale {
                            of_product,
                            of_result: 1.0,
                        };
                        multiply(
                            scale,
                            widened(a, [row, depth], [n_rows, n_depths], left),
                            b.block([depth, column], [n_depths, n_columns], right),
                            Rows::new(sums, [n_rows, n_columns], n_columns),
                        );
                    }
                    for (index, sums) in sums.chunks_exact(n_columns).enumerate() {
                        halves::narrow(
                            T::DTYPE,
                            to_bytes(sums),
                            to_bytes_mut(&mut elements[places(index)]),
                        );
                    }
                }
            }
        },
    );
}

/// Converts a block of a matrix, whose first element lies at `from`, to `f32`: its rows, or its columns if those are
/// contiguous.
fn widened<'m, T: Number<Wide = f32>>(
    matrix: Matrix<'_, T>,
    from: [usize; 2],
    extents: [usize; 2],
    memory: &'m mut [f32],
) -> Matrix<'m, f32> {
    let [row_stride, column_stride] = matrix.strides;
    let is_turned = column_stride != 1 && row_stride == 1;
    let ([n_lines, len], [line_stride, stride]) = match is_turned {
        false => (extents, matrix.strides),
        true => ([extents[1], extents[0]], [column_stride, row_stride]),
    };
    let first = from[0] * row_stride + from[1] * column_stride;
    for (index, line) in memory.chunks_exact_mut(len).take(n_lines).enumerate() {
        let elements = &matrix.elements[first + index * line_stride..];
        match stride {
            1 => halves::widen(T::DTYPE, to_bytes(&elements[..len]), to_bytes_mut(line)),
            _ => {
                for (index, wide) in line.iter_mut().enumerate() {
                    *wide = elements[index * stride].widened();
                }
            }
        }
    }
    match is_turned {
        false => Matrix::new(memory, 0, extents, [len, 1]),
        true => Matrix::new(memory, 0, extents, [1, len]),
    }
}
