//! Softmax, and its logarithm.
//!
//! The largest element is subtracted first, so that nothing overflows; sums are taken in the order of
//! [`reduce`](super::reduce). Rows of halves are calculated as `f32`, so that each result is rounded once.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::functions::Float;
use super::number::Floating;
use super::pointwise::halves;
use super::reduce::{BLOCK, Reduce, Sum, block, block_by};
use super::rows::{Row, chunk_len, each_row, is_streamed};
use super::{parallel, scratch, vectorized};
use crate::math::Family;
use crate::{DType, DenseHostTensor, TensorView, TensorViewMut};
use crate::{to_bytes, to_bytes_mut, with_floating};

/// Softmax or its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftmaxKind {
    /// e^x / the sum of all e^x
    Softmax,
    /// x - ln(the sum of all e^x)
    LogSoftmax,
}

/// Makes each row along the last dimension to positive numbers whose sum is 1, or to their logarithms.
///
/// A row of minus infinities has no softmax: its results are no numbers.
///
/// # Shapes
///
/// `x` and `out` are of one shape, with one dimension or more.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::softmax::{SoftmaxKind, softmax};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1000.0_f32, 1000.0], &[2])?;
/// let mut out = [0.0; 2];
/// softmax(SoftmaxKind::Softmax, &x, &mut TensorViewMut::new(&mut out, &[2])?)?;
/// assert_eq!(out, [0.5, 0.5]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn softmax<T: Floating>(
    kind: SoftmaxKind,
    x: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let row = row_len(x.extents(), out.extents())?;
    match x.as_slice() {
        Some(x) => {
            let out = out.as_mut_slice();
            rows(kind, row, x, is_streamed::<T>(out.len(), row), out);
        }
        None => {
            super::elementwise::unary::<super::elementwise::Identity, T>(x, out)?;
            let rows = out.as_mut_slice().chunks_exact_mut(row.max(1));
            rows.for_each(|row| row_in_place(kind, row));
        }
    }
    Ok(())
}

/// Applies [`softmax`] on the workers of the request's queue if the tensors are large.
///
/// # Errors
///
/// Those of [`softmax`], and those of [`parallel::fill`].
pub fn softmax_into(
    execution: &ExecutionContext,
    kind: SoftmaxKind,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => softmax_of::<T>(execution, kind, x, out), else Err(Family::Floats.lacks(dtype)))
}

fn softmax_of<T: Floating>(
    execution: &ExecutionContext,
    kind: SoftmaxKind,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    let row = row_len(&x.shape().to_dims(), &out.shape().to_dims())?;
    let x = x.clone();
    let is_streamed = is_streamed::<T>(out.n_elements(), row);
    let chunk = chunk_len(is_streamed, 32, row);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let reading = x.read()?;
        let x = &reading.elements::<T>()?[first..first + part.len()];
        rows(kind, row, x, is_streamed, part);
        Ok(())
    })
}

fn row_len(x: &[usize], out: &[usize]) -> Result<usize, Error> {
    match x.last() {
        Some(row) if x == out => Ok(*row),
        _ => Err(Error::invalid_argument(format!(
            "softmax of shape {x:?} with a result of shape {out:?}: expected one shape, with at least one \
             dimension"
        ))),
    }
}

/// Calculates rows. The slices are of one length.
fn rows<T: Floating>(kind: SoftmaxKind, row: usize, x: &[T], is_streamed: bool, out: &mut [T]) {
    let row = row.max(1);
    if is_half::<T>() {
        let some = (WIDENED / row).max(1) * row;
        scratch::with(some.min(out.len()), |wide| {
            for (x, out) in x.chunks(some).zip(out.chunks_mut(some)) {
                let wide = &mut wide[..x.len()];
                halves::widen(T::DTYPE, to_bytes(x), to_bytes_mut(wide));
                wide.chunks_exact_mut(row)
                    .for_each(|row| row_in_place(kind, row));
                halves::narrow(T::DTYPE, to_bytes(wide), to_bytes_mut(out));
            }
        });
        return;
    }
    with_results(kind, row, |results| {
        each_row(
            x,
            row,
            out,
            is_streamed,
            #[inline(always)]
            |row| make_row(kind, row, results),
        );
    });
}

/// Number of halves that are widened together, if their rows are not longer.
const WIDENED: usize = 4096;

fn is_half<T: Floating>() -> bool {
    matches!(T::DTYPE, DType::F16 | DType::Bf16)
}

/// Length up to which a row's scratch memory is at hand: to clear more takes longer than to make such a row.
const FEW: usize = 32;

/// Calls a function with scratch memory for the results of a row, if this kind needs any.
#[inline(always)]
fn with_results<T: Floating>(kind: SoftmaxKind, row: usize, then: impl FnOnce(&mut [T])) {
    match kind {
        SoftmaxKind::Softmax => then(&mut []),
        SoftmaxKind::LogSoftmax if row <= FEW => then(&mut [T::ZERO; FEW]),
        SoftmaxKind::LogSoftmax => then(&mut [T::ZERO; BLOCK]),
    }
}

/// Calculates one row, in place.
pub fn row_in_place<T: Floating>(kind: SoftmaxKind, row: &mut [T]) {
    if is_half::<T>() {
        scratch::with(row.len(), |wide| {
            halves::widen(T::DTYPE, to_bytes(row), to_bytes_mut(wide));
            row_in_place(kind, wide);
            halves::narrow(T::DTYPE, to_bytes(wide), to_bytes_mut(row));
        });
        return;
    }
    with_results(kind, row.len(), |results| {
        vectorized(
            #[inline(always)]
            || make_row(kind, Row::in_place(row), results),
        );
    });
}

/// The largest number; `LOWEST` where there is none. What is no number is passed over: the sum shows it.
struct Largest;

impl<T: Floating> Reduce<T> for Largest {
    type Partial = T;

    #[inline(always)]
    fn empty() -> T {
        T::LOWEST
    }

    #[inline(always)]
    fn take(a: T, b: T) -> T {
        match a.less(b) {
            true => b,
            false => a,
        }
    }

    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        Self::take(a, b)
    }

    #[inline(always)]
    fn finish(largest: T, _: usize) -> T {
        largest
    }
}

/// Calculates a row, within [`vectorized`]. `results` is scratch memory ([`with_results`]).
#[inline(always)]
fn make_row<T: Floating>(kind: SoftmaxKind, mut row: Row<'_, T>, results: &mut [T]) {
    let largest = block::<Largest, T>(row.elements());
    match kind {
        SoftmaxKind::Softmax => {
            row.write(
                #[inline(always)]
                move |x| x.minus(largest).map(Float::exp_below_0, Float::exp_below_0),
            );
            let sum = block::<Sum, T>(row.elements());
            let scale = T::ONE.over(T::narrowed(sum));
            row.finish(
                #[inline(always)]
                move |x| x.times(scale),
            );
        }
        SoftmaxKind::LogSoftmax => {
            let sum = block_by::<Sum, T>(
                &mut row,
                results,
                #[inline(always)]
                move |x| x.minus(largest).map(Float::exp_below_0, Float::exp_below_0),
            );
            let logarithm = T::narrowed(sum).map(Float::ln, Float::ln);
            // Two differences: the second of small numbers, where little is lost.
            row.finish(
                #[inline(always)]
                move |x| x.minus(largest).minus(logarithm),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::number::Number;
    use crate::{BF16, F16};
    use proptest::prelude::*;

    fn of(kind: SoftmaxKind, x: &[f32], extents: &[usize]) -> Vec<f32> {
        let mut out = vec![0.0; x.len()];
        let view = TensorView::new(x, extents).unwrap();
        softmax(
            kind,
            &view,
            &mut TensorViewMut::new(&mut out, extents).unwrap(),
        )
        .unwrap();
        out
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_definition(
            (rows, columns) in (0..4_usize, 0..40_usize),
            values in prop::collection::vec(-200.0..200.0_f32, 160),
        ) {
            let values = &values[..rows * columns];
            let soft = of(SoftmaxKind::Softmax, values, &[rows, columns]);
            let logarithms = of(SoftmaxKind::LogSoftmax, values, &[rows, columns]);
            for row in 0..rows {
                let range = row * columns..(row + 1) * columns;
                let wide = |x: &f32| f64::from(*x);
                let largest = values[range.clone()].iter().map(wide).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = values[range.clone()].iter().map(|x| (wide(x) - largest).exp()).sum();
                for index in range {
                    let exact = (wide(&values[index]) - largest).exp() / sum;
                    prop_assert!((wide(&soft[index]) - exact).abs() <= exact * 1e-5 + 1e-37);
                    let exact = wide(&values[index]) - largest - sum.ln();
                    prop_assert!((wide(&logarithms[index]) - exact).abs() <= exact.abs() * 1e-5 + 1e-5);
                }
            }
        }
    }

    #[test]
    fn rows_with_what_is_no_number_have_no_numbers() {
        for n in [3, 40, BLOCK + 9] {
            let numbers: Vec<f32> = (0..n).map(|x| (x % 7) as f32 - 3.0).collect();
            for places in [vec![0], vec![n / 2], vec![n - 1], (0..n).collect()] {
                for beside in [None, Some(f32::NEG_INFINITY), Some(f32::INFINITY)] {
                    // Rows before and behind are not touched by it.
                    let mut x = numbers.repeat(3);
                    let row = &mut x[n..2 * n];
                    row.iter_mut().for_each(|x| *x = beside.unwrap_or(*x));
                    places.iter().for_each(|place| row[*place] = f32::NAN);
                    for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
                        let found = of(kind, &x, &[3, n]);
                        let is_right = |(index, x): (usize, &f32)| x.is_nan() == (index / n == 1);
                        let told = format!("{kind:?} of {n}, at {places:?}, beside {beside:?}");
                        assert!(found.iter().enumerate().all(is_right), "{told}");
                        let mut row = x[n..2 * n].to_vec();
                        row_in_place(kind, &mut row);
                        assert!(row.iter().all(|x| x.is_nan()), "{told}, in place");
                    }
                }
            }
        }
    }

    #[test]
    fn infinities_and_wrong_shapes() {
        let inf = f32::INFINITY;
        assert_eq!(of(SoftmaxKind::Softmax, &[-inf, 0.0], &[2]), [0.0, 1.0]);
        assert!(
            of(SoftmaxKind::Softmax, &[-inf, -inf], &[2])
                .iter()
                .all(|x| x.is_nan())
        );
        let x = TensorView::new(&[1.0_f32], &[]).unwrap();
        let mut out = [0.0];
        let mut out = TensorViewMut::new(&mut out, &[]).unwrap();
        assert!(softmax(SoftmaxKind::Softmax, &x, &mut out).is_err());
    }

    #[test]
    fn halves_are_rounded_once() {
        fn check<T: Floating + Number<Wide = f32>>() {
            for (rows, row) in [(3, 7), (700, 9), (2, WIDENED + 5), (4, 0)] {
                let x: Vec<T> = (0..rows * row)
                    .map(|index| T::narrowed((index * 37 % 101) as f32 / 9.0 - 5.0))
                    .collect();
                let wide: Vec<f32> = x.iter().map(|x| x.widened()).collect();
                for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
                    let exact = of(kind, &wide, &[rows, row]);
                    let exact: Vec<T> = exact.iter().map(|x| T::narrowed(*x)).collect();
                    let (view, mut out) = (TensorView::new(&x, &[rows, row]), x.clone());
                    let mut to = TensorViewMut::new(&mut out, &[rows, row]).unwrap();
                    softmax(kind, &view.unwrap(), &mut to).unwrap();
                    assert!(
                        to_bytes(&out) == to_bytes(&exact),
                        "{kind:?} of {rows} x {row}"
                    );
                    let mut in_place = x.clone();
                    in_place
                        .chunks_exact_mut(row.max(1))
                        .for_each(|row| row_in_place(kind, row));
                    assert!(to_bytes(&in_place) == to_bytes(&exact), "{kind:?} in place");
                }
            }
        }
        check::<F16>();
        check::<BF16>();
    }
}
