//! Positions of largest and smallest elements.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::plan::ReducePlan;
use crate::math::number::Real;
use crate::math::{Family, parallel};
use crate::{DType, DenseHostTensor, Element, TensorView, TensorViewMut, from_bytes, with_real};

/// The extremum that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    /// The largest.
    Greatest,
    /// The smallest.
    Least,
}

/// The element that is taken where several are equally good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The first.
    #[default]
    First,
    /// The last.
    Last,
}

/// Finds the position of the largest or smallest element along a dimension, the first of several. NaN comes before
/// all numbers.
///
/// # Shapes
///
/// Those of [`reduce`](super::reduce()) over one dimension.
///
/// # Errors
///
/// Those of [`reduce`](super::reduce()).
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::reduce::{Extremum, position};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 5, 2, 7, 0, 7], &[2, 3])?;
/// let mut positions = [0_i64; 2];
/// position(Extremum::Greatest, &x, 1, &mut TensorViewMut::new(&mut positions, &[2])?)?;
/// assert_eq!(positions, [1, 0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn position<T: Element>(
    extremum: Extremum,
    x: &TensorView<'_, T>,
    dimension: usize,
    out: &mut TensorViewMut<'_, i64>,
) -> Result<(), Error> {
    let find = find_of(T::DTYPE)?;
    let plan = ReducePlan::new(x.extents(), x.strides(), &[dimension], out.extents())?;
    let out = out.as_mut_slice();
    if plan.n_reduced() == 0 && !out.is_empty() {
        return Err(nothing_there());
    }
    let row = Row {
        extent: x.extents()[dimension],
        stride: x.strides()[dimension],
    };
    let start = |result| plan.start(result);
    find(
        crate::to_bytes(x.elements()),
        row,
        (extremum, Ties::First),
        &start,
        out,
    )
}

/// Finds positions of extrema of a dense tensor, on the workers of the request's queue if there is much to do.
///
/// # Shapes
///
/// `out` has as many elements as `x` has without the dimension, in their order; its shape is not looked at.
///
/// # Errors
///
/// `InvalidArgument` if there is no such dimension, nothing to look at, or another number of results, if the elements
/// are no real numbers, and those of [`parallel::fill`].
pub fn positions_into(
    execution: &ExecutionContext,
    extremum: Extremum,
    x: &DenseHostTensor,
    dimension: usize,
    ties: Ties,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let find = find_of(x.dtype())?;
    let extents = x.shape().to_dims();
    let Some(extent) = extents.get(dimension).copied() else {
        let message = format!("there is no dimension {dimension} in extents {extents:?}");
        return Err(Error::invalid_argument(message));
    };
    let n_results = out.n_elements();
    if extent == 0 && n_results > 0 {
        return Err(nothing_there());
    }
    if n_results.checked_mul(extent) != Some(x.n_elements()) {
        let message = format!("expected a position for each row of {extents:?}, found {n_results}");
        return Err(Error::invalid_argument(message));
    }
    // What lies between neighbours of the dimension; 0 extents have no results.
    let stride = x.shape().strides()[dimension].max(1);
    let x = x.clone();
    let chunk = parallel::chunk_len(extent, 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [i64]| {
        let start = |index| {
            let (outer, inner) = ((first + index) / stride, (first + index) % stride);
            outer * extent * stride + inner
        };
        find(
            x.read()?.bytes(),
            Row { extent, stride },
            (extremum, ties),
            &start,
            part,
        )
    })
}

#[cold]
fn nothing_there() -> Error {
    Error::invalid_argument("there is no element whose position could be found")
}

/// A row of elements to search: their number and stride.
#[derive(Clone, Copy)]
struct Row {
    extent: usize,
    stride: usize,
}

/// Loop that finds a position in each of several rows of elements, given as bytes; a function returns the beginning
/// of each row.
type Find =
    fn(&[u8], Row, (Extremum, Ties), &dyn Fn(usize) -> usize, &mut [i64]) -> Result<(), Error>;

fn find_of(dtype: DType) -> Result<Find, Error> {
    fn find<T: Real>(
        x: &[u8],
        row: Row,
        wanted: (Extremum, Ties),
        start: &dyn Fn(usize) -> usize,
        out: &mut [i64],
    ) -> Result<(), Error> {
        let x = from_bytes::<T>(x)?;
        for (index, out) in out.iter_mut().enumerate() {
            *out = i64::try_from(best(&x[start(index)..], row, wanted)).unwrap_or(i64::MAX);
        }
        Ok(())
    }
    with_real!(dtype, T => Ok(find::<T>), else Err(Family::Reals.lacks(dtype)))
}

fn best<T: Real>(x: &[T], row: Row, (extremum, ties): (Extremum, Ties)) -> usize {
    let (mut best, mut at) = (x[0], 0);
    for position in 1..row.extent {
        let x = x[position * row.stride];
        // What is no number is better than all numbers.
        let is_better = match (best.same(best), x.same(x)) {
            (true, true) => {
                let is_better = match extremum {
                    Extremum::Greatest => best.less(x),
                    Extremum::Least => x.less(best),
                };
                is_better || (ties == Ties::Last && x.same(best))
            }
            (true, false) => true,
            (false, true) => false,
            (false, false) => ties == Ties::Last,
        };
        if is_better {
            (best, at) = (x, position);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<T: Real>(
        extremum: Extremum,
        x: &[T],
        extent: usize,
        stride: usize,
        ties: Ties,
    ) -> usize {
        best(x, Row { extent, stride }, (extremum, ties))
    }

    #[test]
    fn ties_are_broken_as_asked() {
        let row = [1_i32, 9, 7, 9, 1];
        assert_eq!(found(Extremum::Greatest, &row, 5, 1, Ties::First), 1);
        assert_eq!(found(Extremum::Greatest, &row, 5, 1, Ties::Last), 3);
        assert_eq!(found(Extremum::Least, &row, 5, 1, Ties::Last), 4);
        assert_eq!(found(Extremum::Least, &row, 3, 2, Ties::First), 0);
        let row = [1.0, f32::NAN, 3.0, f32::NAN];
        assert_eq!(found(Extremum::Greatest, &row, 4, 1, Ties::First), 1);
        assert_eq!(found(Extremum::Greatest, &row, 4, 1, Ties::Last), 3);
    }
}
