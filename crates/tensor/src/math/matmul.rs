//! Matrix products.
//!
//! Products of `f32` and `f64` go through the crates `gemm-f32` and `gemm-f64`, without threads of their own: rows of the
//! result are cut into chunks for our queue. Those of complex numbers are four products of their parts, those of halves
//! products of `f32`; integers have loops of their own. What is multiplied by again and again is packed once, ahead, for
//! a kernel of our own ([`PackedRhs`]).

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::elementwise::broadcast_extents;
use super::number::Number;
use super::parallel::{self, Parts};
use crate::math::Family;
use crate::with_number;
use crate::{DenseHostTensor, Dims, Element, TensorView, TensorViewMut};

#[allow(unsafe_code, reason = "a listed module")]
mod gemm;
mod gemv;
mod halves;
mod integers;
mod packed;
mod widened;

pub use gemm::MatmulElement;
pub(crate) use gemm::{Matrix, Rows, Sealed, multiply, multiply_widened};
pub use packed::{PackedRhs, matmul_packed, matmul_packed_into};
pub use widened::WidenedRhs;

/// Number of rows that the inner loop of `gemm` makes at once.
const STRIP: usize = 6;
/// Minimum number of rows of a part: each part reads the whole right factor, which has to pay.
const MIN_ROWS: usize = 5 * STRIP;
/// Number of elements of a right factor that the second cache holds. A larger one is rearranged, which pays for more
/// rows ...
const MAX_NEAR: usize = 1 << 19;
/// ... so there are no more parts than this.
const FAR_PARTS: usize = 8;

/// Factors of a product and of the result's old elements: `product * of_product + before * of_result`. Where
/// `of_result` is 0, the old elements are not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale<T> {
    /// The factor of the product.
    pub of_product: T,
    /// The factor of what stood in the result.
    pub of_result: T,
}

impl<T: Number> Default for Scale<T> {
    /// Returns the product alone.
    fn default() -> Self {
        Scale {
            of_product: T::ONE,
            of_result: T::ZERO,
        }
    }
}

impl Scale<f64> {
    /// Returns the factors in the type of the elements.
    fn rounded<T: MatmulElement>(self) -> Scale<T> {
        Scale {
            of_product: T::from_number(self.of_product),
            of_result: T::from_number(self.of_result),
        }
    }
}

/// Calculates products of matrices, or of stacks of matrices.
///
/// A factor that is to be transposed is given as a view whose last dimensions are exchanged
/// ([`TensorView::permute`]).
///
/// # Shapes
///
/// `a: [.., m, k]`, `b: [.., k, n]`, `out: [.., m, n]`; leading dimensions are broadcast.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::matmul::{Scale, matmul};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let a = TensorView::new(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let mut out = [0.0; 4];
/// matmul(Scale::default(), &a, &a.permute(&[1, 0])?, &mut TensorViewMut::new(&mut out, &[2, 2])?)?;
/// assert_eq!(out, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn matmul<T: MatmulElement>(
    scale: Scale<T>,
    a: &TensorView<'_, T>,
    b: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let plan = MatmulPlan::new(
        (a.extents(), a.strides()),
        (b.extents(), b.strides()),
        out.extents(),
    )?;
    let (a, b) = (a.elements(), b.elements());
    plan.run(multiply, scale, (a, b), 0, out.as_mut_slice());
    Ok(())
}

/// Applies [`matmul`] to dense tensors, on the workers of the request's queue if there is much to do.
///
/// With `transpose` a factor's last two dimensions are exchanged first: that of `a`, that of `b`.
///
/// # Errors
///
/// Those of [`matmul`], and those of [`parallel::fill`].
pub fn matmul_into(
    execution: &ExecutionContext,
    scale: Scale<f64>,
    factors: [&DenseHostTensor; 2],
    transpose: [bool; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = factors[0].dtype();
    with_number!(dtype, T => matmul_of::<T>(execution, scale.rounded(), factors, transpose, out), else Err(Family::Numbers.lacks(dtype)))
}

/// Multiplies dense tensors as [`matmul_into`] does, with factors in the type of the elements: an `i64` may be no
/// `f64`.
///
/// # Errors
///
/// See [`matmul_into`]; `InvalidArgument` if the elements are no `T`s.
pub fn matmul_of<T: MatmulElement>(
    execution: &ExecutionContext,
    scale: Scale<T>,
    [a, b]: [&DenseHostTensor; 2],
    transpose: [bool; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(a.metadata())?;
    crate::dense::expect_dtype::<T>(b.metadata())?;
    fill::<T, T>(execution, multiply, scale, [a, b], transpose, out)
}

/// Calculates [`matmul_into`] by a widened right factor.
///
/// # Errors
///
/// See [`matmul_into`].
pub fn matmul_widened_into(
    execution: &ExecutionContext,
    scale: Scale<f64>,
    (a, b): (&DenseHostTensor, &WidenedRhs),
    transpose: [bool; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = b.dtype();
    let factors = [a, b.elements()];
    with_number!(dtype, T => {
        crate::dense::expect_dtype::<T>(a.metadata())?;
        fill::<T, <T as Sealed>::RhsElement>(execution, multiply_widened, scale.rounded(), factors, transpose, out)
    }, else Err(Family::Numbers.lacks(dtype)))
}

/// Function that multiplies two matrices, whose elements may differ in type.
type Multiply<T, R> = fn(Scale<T>, Matrix<'_, T>, Matrix<'_, R>, Rows<'_, T>);

/// Multiplies dense tensors on the workers of the request's queue.
fn fill<T: MatmulElement, R: Element>(
    execution: &ExecutionContext,
    by: Multiply<T, R>,
    scale: Scale<T>,
    [a, b]: [&DenseHostTensor; 2],
    transpose: [bool; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let seen = |tensor: &DenseHostTensor, transpose: bool| {
        let (mut extents, mut strides) = (tensor.shape().to_dims(), tensor.shape().strides());
        if let (true, Some(last)) = (transpose, extents.len().checked_sub(2)) {
            extents.swap(last, last + 1);
            strides.swap(last, last + 1);
        }
        (extents, strides)
    };
    let (a_seen, b_seen) = (seen(a, transpose[0]), seen(b, transpose[1]));
    let plan = MatmulPlan::new(
        (&a_seen.0, &a_seen.1),
        (&b_seen.0, &b_seen.1),
        &out.shape().to_dims(),
    )?;
    let parts = plan.parts();
    let (a, b) = (a.clone(), b.clone());
    parallel::fill_parts(execution, out, parts, move |first, part| {
        let (a, b) = (a.read()?, b.read()?);
        let factors = (a.elements()?, b.elements()?);
        plan.run(by, scale, factors, first, part);
        Ok(())
    })
}

/// Extents and strides of a product's matrices.
#[derive(Clone, Debug)]
struct MatmulPlan {
    m: usize,
    n: usize,
    k: usize,
    /// The leading dimensions of the result.
    batch: Dims,
    a: Factor,
    b: Factor,
}

/// Strides of a factor: of its broadcast leading dimensions, of rows, and of columns.
#[derive(Clone, Debug)]
struct Factor {
    batch: Dims,
    row: usize,
    column: usize,
}

impl Factor {
    /// Returns the offset of a matrix by its number.
    fn offset(&self, mut number: usize, batch: &[usize]) -> usize {
        let mut offset = 0;
        for (extent, stride) in batch.iter().zip(&self.batch).rev() {
            offset += number % extent * stride;
            number /= extent;
        }
        offset
    }
}

impl MatmulPlan {
    fn new(
        (a, a_strides): (&[usize], &[usize]),
        (b, b_strides): (&[usize], &[usize]),
        out: &[usize],
    ) -> Result<MatmulPlan, Error> {
        let ([a_batch @ .., m, k], [b_batch @ .., b_k, n]) = (a, b) else {
            let message = format!("expected matrices, found shapes {a:?} and {b:?}");
            return Err(Error::invalid_argument(message));
        };
        if k != b_k {
            return Err(Error::invalid_argument(format!(
                "MatMul input tensors inner dimension mismatch: {a:?} vs. {b:?}"
            )));
        }
        let batch = broadcast_extents(&[a_batch, b_batch])?;
        let fits = out
            .split_last_chunk::<2>()
            .is_some_and(|(out_batch, last)| out_batch == &batch[..] && *last == [*m, *n]);
        if !fits {
            return Err(Error::invalid_argument(format!(
                "MatMul output shape {out:?} does not match product shape of inputs: {a:?} * {b:?}"
            )));
        }
        let factor = |extents: &[usize], strides: &[usize]| {
            let own = extents.len();
            let missing = batch.len() - own;
            let stride = |dimension: usize| match dimension.checked_sub(missing) {
                Some(index) if extents[index] != 1 => strides[index],
                _ => 0,
            };
            Factor {
                batch: (0..batch.len()).map(stride).collect(),
                row: strides[own],
                column: strides[own + 1],
            }
        };
        Ok(MatmulPlan {
            m: *m,
            n: *n,
            k: *k,
            a: factor(a_batch, a_strides),
            b: factor(b_batch, b_strides),
            batch,
        })
    }

    /// Returns the parts of the result: strips of rows, or parts of a row if matrices have one.
    fn parts(&self) -> Parts {
        // Where one extent is 0, the others may be of any size.
        let times = |product: usize, extent: &usize| product.saturating_mul(*extent);
        let n_matrices = self.batch.iter().fold(1, times);
        let n_rows = n_matrices.saturating_mul(self.m);
        let n_elements = n_rows.saturating_mul(self.n);
        if self.m == 1 {
            return Parts::of_chunks(n_elements, parallel::chunk_len(self.k / 4, 64));
        }
        let most = match self.k.saturating_mul(self.n) > MAX_NEAR {
            true => n_matrices.saturating_mul(FAR_PARTS),
            false => usize::MAX,
        };
        let is_short = self.m < MIN_ROWS;
        let strip = match is_short {
            true => self.m,
            false => STRIP,
        };
        // Short matrices that share a right factor go through it together; those that have their own can't.
        let has_own_right = self.b.batch.iter().any(|stride| *stride != 0);
        let most = match is_short && has_own_right {
            true => most.min(n_matrices),
            false => most.min(n_rows / MIN_ROWS),
        };
        Parts::even(n_elements, strip.saturating_mul(self.n), self.k / 16, most)
    }

    /// Makes the elements of the result from the `first` on: part of a row, whole rows, part of a row, over as many
    /// matrices as they span.
    fn run<T: MatmulElement, R>(
        &self,
        by: Multiply<T, R>,
        scale: Scale<T>,
        (a, b): (&[T], &[R]),
        first: usize,
        mut out: &mut [T],
    ) {
        let (mut position, len) = (first, out.len());
        if len == 0 {
            return;
        }
        let end = first + len;
        while position < end {
            let (row, column) = (position / self.n, position % self.n);
            let (number, row) = (row / self.m, row % self.m);
            let left = end - position;
            let (n_rows, n_columns) = match column == 0 && left >= self.n {
                true => ((left / self.n).min(self.m - row), self.n),
                false => (1, left.min(self.n - column)),
            };
            let (part, rest) = std::mem::take(&mut out).split_at_mut(n_rows * n_columns);
            let a_start = self.a.offset(number, &self.batch) + row * self.a.row;
            let b_start = self.b.offset(number, &self.batch) + column * self.b.column;
            let a = Matrix::new(a, a_start, [n_rows, self.k], [self.a.row, self.a.column]);
            let b = Matrix::new(b, b_start, [self.k, n_columns], [self.b.row, self.b.column]);
            by(scale, a, b, Rows::new(part, [n_rows, n_columns], n_columns));
            out = rest;
            position += n_rows * n_columns;
        }
    }
}

#[cfg(test)]
mod tests;
