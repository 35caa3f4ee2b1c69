//! Determinants and inverses of matrices.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Real;
use super::parallel;
use crate::DenseHostTensor;
use crate::math::Family;
use crate::with_floating;

/// Finds the determinants of square matrices, by elimination with the largest pivots, in `f64`.
///
/// # Shapes
///
/// `x`: `[.., n, n]`, `out`: `[..]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, and those of [`parallel::fill`].
pub fn determinants_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => determinants_of::<T>(execution, x, out), else Err(Family::Floats.lacks(dtype)))
}

fn determinants_of<T: Real>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    let extents = x.shape().to_dims();
    let n = match extents.split_last_chunk::<2>() {
        Some((batch, [m, n])) if m == n && out.shape().to_dims()[..] == *batch => *n,
        _ => {
            let (found, result) = (x.shape(), out.shape());
            let message =
                format!("expected squares and a number for each, found {found} and {result}");
            return Err(Error::invalid_argument(message));
        }
    };
    let x = x.clone();
    let cost = n.saturating_mul(n).saturating_mul(n);
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(cost, 1),
        move |first, part: &mut [T]| {
            let reading = x.read()?;
            let elements = reading.elements::<T>()?;
            for (index, out) in part.iter_mut().enumerate() {
                let matrix = &elements[(first + index) * n * n..][..n * n];
                let matrix = matrix.iter().map(|one| one.to_f64()).collect();
                *out = T::from_f64(determinant(matrix, n));
            }
            Ok(())
        },
    )
}

/// Finds the inverses of square matrices, by elimination with the largest pivots, in `f64`. That of a matrix without one
/// has elements that are not finite.
///
/// # Shapes
///
/// `x` and `out`: `[.., n, n]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, and those of [`parallel::fill`].
pub fn inverses_into(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => inverses_of::<T>(execution, x, out), else Err(Family::Floats.lacks(dtype)))
}

fn inverses_of<T: Real>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    let extents = x.shape().to_dims();
    let n = match extents.last_chunk::<2>() {
        Some([m, n]) if m == n && out.shape() == x.shape() => *n,
        _ => {
            let (found, result) = (x.shape(), out.shape());
            let message = format!("expected squares and as many, found {found} and {result}");
            return Err(Error::invalid_argument(message));
        }
    };
    let (x, square) = (x.clone(), n.saturating_mul(n));
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(n, square),
        move |first, part: &mut [T]| {
            let reading = x.read()?;
            let elements = &reading.elements::<T>()?[first..];
            let matrices = elements.chunks_exact(square).zip(part.chunks_mut(square));
            for (matrix, out) in matrices {
                let matrix = matrix.iter().map(|one| one.to_f64()).collect();
                for (out, one) in out.iter_mut().zip(inverse(matrix, n)) {
                    *out = T::from_f64(one);
                }
            }
            Ok(())
        },
    )
}

/// Makes ones of the diagonal of a matrix, nothing of the rest, and does the same to the matrix that is one.
fn inverse(mut matrix: Vec<f64>, n: usize) -> Vec<f64> {
    let mut result = vec![0.0; n * n];
    result.iter_mut().step_by(n + 1).for_each(|one| *one = 1.0);
    for column in 0..n {
        let size = |row: &usize| matrix[row * n + column].abs();
        let pivot = (column..n)
            .max_by(|a, b| size(a).total_cmp(&size(b)))
            .unwrap_or(column);
        let divisor = matrix[pivot * n + column];
        for list in [&mut matrix, &mut result] {
            for index in 0..n {
                list.swap(pivot * n + index, column * n + index);
                list[column * n + index] /= divisor;
            }
        }
        for row in (0..n).filter(|row| *row != column) {
            let factor = matrix[row * n + column];
            for list in [&mut matrix, &mut result] {
                for index in 0..n {
                    list[row * n + index] -= factor * list[column * n + index];
                }
            }
        }
    }
    result
}

fn determinant(mut matrix: Vec<f64>, n: usize) -> f64 {
    let mut product = 1.0;
    for column in 0..n {
        let rows = column..n;
        let size = |row: &usize| matrix[row * n + column].abs();
        let pivot = rows
            .max_by(|a, b| size(a).total_cmp(&size(b)))
            .unwrap_or(column);
        if pivot != column {
            for index in 0..n {
                matrix.swap(pivot * n + index, column * n + index);
            }
            product = -product;
        }
        let divisor = matrix[column * n + column];
        product *= divisor;
        if divisor == 0.0 {
            return product;
        }
        for row in column + 1..n {
            let factor = matrix[row * n + column] / divisor;
            for index in column..n {
                matrix[row * n + index] -= factor * matrix[column * n + index];
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the determinant by expansion along the first row.
    fn expanded(matrix: &[f64], n: usize) -> f64 {
        if n == 0 {
            return 1.0;
        }
        let minor = |column: usize| -> Vec<f64> {
            let kept = (n..n * n).filter(|index| index % n != column);
            kept.map(|index| matrix[index]).collect()
        };
        let term = |column: usize| {
            let sign = if column.is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * matrix[column] * expanded(&minor(column), n - 1)
        };
        (0..n).map(term).sum()
    }

    #[test]
    fn elimination_is_as_expansion() {
        for n in 0..6 {
            let matrix: Vec<f64> = (0..n * n)
                .map(|index| ((index * 7 + 3) % 11) as f64 - 5.0)
                .collect();
            let (found, wanted) = (determinant(matrix.clone(), n), expanded(&matrix, n));
            assert!(
                (found - wanted).abs() < 1e-9 * (1.0 + wanted.abs()),
                "{n}: {found} {wanted}"
            );
        }
        assert_eq!(determinant(vec![0.0, 1.0, 1.0, 0.0], 2), -1.0);
        assert_eq!(determinant(vec![1.0, 2.0, 2.0, 4.0], 2), 0.0);
    }
}
