//! Positions of extrema, on the workers of a queue.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::Better;
use crate::DenseHostTensor;
use crate::math::number::Real;
use crate::math::parallel;

/// Which of several elements that are as good is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The first.
    #[default]
    First,
    /// The last.
    Last,
}

/// As [`position`](super::position), of dense tensors, on the workers of the request's queue if there is much to
/// do.
///
/// # Shapes
///
/// `out` has as many elements as `x` has without the dimension, in their order; its shape is not looked at.
///
/// # Errors
///
/// `InvalidArgument` if there is no such dimension, nothing to look at, or another number of results, and those of
/// [`parallel::fill`].
pub fn positions_into<B: Better<T>, T: Real>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    dimension: usize,
    ties: Ties,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    let extents = x.shape().to_dims();
    let Some(extent) = extents.get(dimension).copied() else {
        let message = format!("there is no dimension {dimension} in extents {extents:?}");
        return Err(Error::invalid_argument(message));
    };
    let n_results = out.n_elements();
    if extent == 0 && n_results > 0 {
        let message = "there is no element whose position could be found";
        return Err(Error::invalid_argument(message));
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
        let reading = x.read()?;
        let elements = reading.elements::<T>()?;
        for (index, out) in part.iter_mut().enumerate() {
            let (outer, inner) = ((first + index) / stride, (first + index) % stride);
            let row = &elements[outer * extent * stride + inner..];
            *out = i64::try_from(best::<B, T>(row, extent, stride, ties)).unwrap_or(i64::MAX);
        }
        Ok(())
    })
}

fn best<B: Better<T>, T: Real>(row: &[T], extent: usize, stride: usize, ties: Ties) -> usize {
    let (mut best, mut at) = (row[0], 0);
    for position in 1..extent {
        let x = row[position * stride];
        // What is no number is better than all numbers.
        let is_better = match (best.same(best), x.same(x)) {
            (true, true) => B::better(x, best) || (ties == Ties::Last && x.same(best)),
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
    use super::super::{Greater, Less};
    use super::*;

    #[test]
    fn ties_are_broken_as_asked() {
        let row = [1, 9, 7, 9, 1];
        assert_eq!(best::<Greater, i32>(&row, 5, 1, Ties::First), 1);
        assert_eq!(best::<Greater, i32>(&row, 5, 1, Ties::Last), 3);
        assert_eq!(best::<Less, i32>(&row, 5, 1, Ties::Last), 4);
        assert_eq!(best::<Less, i32>(&row, 3, 2, Ties::First), 0);
        let row = [1.0, f32::NAN, 3.0, f32::NAN];
        assert_eq!(best::<Greater, f32>(&row, 4, 1, Ties::First), 1);
        assert_eq!(best::<Greater, f32>(&row, 4, 1, Ties::Last), 3);
    }
}
