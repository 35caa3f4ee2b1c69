//! The upper or lower triangle of matrices.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{expect_result, size_of_elements};
use crate::DenseHostTensor;
use crate::math::parallel;

/// The triangle of a matrix that is kept, diagonal included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// Columns at the diagonal and behind it.
    Upper,
    /// Columns at the diagonal and before it.
    Lower,
}

impl Triangle {
    /// Returns the first kept column of a row, and the first behind the kept ones; the diagonal is at the column `row
    /// + diagonal`.
    fn columns(self, row: usize, diagonal: i64, n_columns: usize) -> (usize, usize) {
        let within = |column: i128| {
            usize::try_from(column.max(0))
                .unwrap_or(usize::MAX)
                .min(n_columns)
        };
        let column = row as i128 + i128::from(diagonal);
        match self {
            Triangle::Upper => (within(column), n_columns),
            Triangle::Lower => (0, within(column + 1)),
        }
    }
}

/// Copies a triangle of each matrix in the last two dimensions, and puts zeros elsewhere, on the workers of the
/// request's queue if they are large.
///
/// # Shapes
///
/// `x` and `out` of one shape, `[.., rows, columns]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, and those of [`parallel::fill_bytes`].
pub fn triangle_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    triangle: Triangle,
    diagonal: i64,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let extents = x.shape().to_dims();
    let &[.., n_rows, n_columns] = &extents[..] else {
        let message = format!("expected matrices, found a tensor of shape {}", x.shape());
        return Err(Error::invalid_argument(message));
    };
    expect_result(&extents, &out.shape().to_dims())?;
    out.metadata().expect_dtype(x.dtype())?;
    let size = size_of_elements(x);
    let x = x.clone();
    let chunk = parallel::chunk_len(1, n_columns);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        let row_len = n_columns * size;
        let from = &reading.bytes()[first * size..first * size + part.len()];
        let first_row = first / n_columns.max(1);
        let rows = part
            .chunks_exact_mut(row_len)
            .zip(from.chunks_exact(row_len));
        for (index, (to, from)) in rows.enumerate() {
            let row = (first_row + index) % n_rows;
            let (start, end) = triangle.columns(row, diagonal, n_columns);
            to[..start * size].fill(0);
            to[end * size..].fill(0);
            if start < end {
                to[start * size..end * size].copy_from_slice(&from[start * size..end * size]);
            }
        }
        Ok(())
    })
}
