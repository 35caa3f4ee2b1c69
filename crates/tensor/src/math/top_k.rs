//! The largest or smallest elements along a dimension, in order: also the way to sort.
//!
//! # Order
//!
//! NaN counts as larger than all numbers, as NumPy sorts it; -0 and 0 are the same. Of equal
//! elements the one at the lower position comes first. So positions are the same whatever the way there.

use std::cmp::Ordering;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Real;
use super::{Family, parallel};
use crate::{DType, DenseHostTensor, Dims, TensorView, TensorViewMut, from_bytes, with_real};

/// The order of top-k results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKOrder {
    /// The largest, which come first.
    Largest,
    /// The smallest, which come first.
    Smallest,
}

/// Extents around the searched dimension.
#[derive(Clone, Debug)]
struct TopKPlan {
    which: TopKOrder,
    n_wanted: usize,
    extents: Dims,
    strides: Dims,
    dimension: usize,
}

/// Finds the `k` largest or smallest elements along a dimension, and their positions.
///
/// With as many as there are, this sorts.
///
/// # Shapes
///
/// `values` and `positions` of the shape of `x`, but for `dimension`: there their extent is `k`, no more than
/// that of `x`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes are not that, or if there is no such dimension.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::top_k::{TopKOrder, top_k};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[3.0_f32, 9.0, 1.0, 9.0], &[4])?;
/// let (mut values, mut positions) = ([0.0; 3], [0; 3]);
/// let (v, p) = (TensorViewMut::new(&mut values, &[3])?, TensorViewMut::new(&mut positions, &[3])?);
/// top_k(TopKOrder::Largest, &x, 0, v, p)?;
/// assert_eq!((values, positions), ([9.0, 9.0, 3.0], [1, 3, 0]));
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn top_k<T: Real>(
    which: TopKOrder,
    x: &TensorView<'_, T>,
    dimension: usize,
    mut values: TensorViewMut<'_, T>,
    mut positions: TensorViewMut<'_, i64>,
) -> Result<(), Error> {
    let seen = (x.extents(), x.strides());
    let plan = TopKPlan::new(which, seen, dimension, positions.extents())?;
    if values.extents() != positions.extents() {
        let (found, wanted) = (values.extents(), positions.extents());
        let message = format!("expected values of shape {wanted:?}, found {found:?}");
        return Err(Error::invalid_argument(message));
    }
    let values = values.as_mut_slice();
    plan.run(x.elements(), 0, positions.as_mut_slice(), |index, value| {
        values[index] = value;
    });
    Ok(())
}

/// Finds the positions of the `k` largest or smallest elements along a dimension of a dense tensor, on the workers of
/// the request's queue if there is much to do.
///
/// The elements themselves are what [`gather_elements_into`](super::layout_copy::gather_elements_into) takes from
/// there.
///
/// # Shapes
///
/// Those of [`top_k()`].
///
/// # Errors
///
/// Those of [`top_k()`], `InvalidArgument` if the elements are no real numbers, and those of [`parallel::fill`].
pub fn top_k_positions_into(
    execution: &ExecutionContext,
    which: TopKOrder,
    x: &DenseHostTensor,
    dimension: usize,
    positions: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let find = find_of(x.dtype())?;
    let (extents, strides) = (x.shape().to_dims(), x.shape().strides());
    let out = positions.shape().to_dims();
    let plan = TopKPlan::new(which, (&extents, &strides), dimension, &out)?;
    let inner = out[dimension..]
        .iter()
        .fold(1_usize, |product, extent| product.saturating_mul(*extent));
    let ratio = extents[dimension] / plan.n_wanted.max(1);
    let x = x.clone();
    let chunk = parallel::chunk_len(ratio.saturating_mul(16), inner);
    parallel::fill(execution, positions, chunk, move |first, part| {
        find(&plan, x.read()?.bytes(), first, part)
    })
}

/// Loop that makes positions from one on, of elements given as bytes.
type Find = fn(&TopKPlan, &[u8], usize, &mut [i64]) -> Result<(), Error>;

fn find_of(dtype: DType) -> Result<Find, Error> {
    fn find<T: Real>(
        plan: &TopKPlan,
        x: &[u8],
        first: usize,
        positions: &mut [i64],
    ) -> Result<(), Error> {
        plan.run::<T>(from_bytes(x)?, first, positions, |_, _| ());
        Ok(())
    }
    with_real!(dtype, T => Ok(find::<T>), else Err(Family::Reals.lacks(dtype)))
}

impl TopKPlan {
    fn new(
        which: TopKOrder,
        (extents, strides): (&[usize], &[usize]),
        dimension: usize,
        out: &[usize],
    ) -> Result<TopKPlan, Error> {
        let Some(extent) = extents.get(dimension) else {
            let rank = extents.len();
            let message = format!("there is no dimension {dimension}: the tensor has {rank}");
            return Err(Error::invalid_argument(message));
        };
        let n_wanted = out.get(dimension).copied().unwrap_or(0);
        let mut wanted = Dims::from_slice(extents);
        wanted[dimension] = n_wanted;
        if wanted[..] != *out || n_wanted > *extent {
            return Err(Error::invalid_argument(format!(
                "expected a result of the shape {extents:?}, with no more than these elements of dimension \
                 {dimension}, found {out:?}"
            )));
        }
        Ok(TopKPlan {
            which,
            n_wanted,
            extents: Dims::from_slice(extents),
            strides: Dims::from_slice(strides),
            dimension,
        })
    }

    /// Makes the results from the `first` on, in whole slabs.
    fn run<T: Real>(
        &self,
        x: &[T],
        first: usize,
        positions: &mut [i64],
        mut value: impl FnMut(usize, T),
    ) {
        if positions.is_empty() {
            return;
        }
        let (extent, stride) = (self.extents[self.dimension], self.strides[self.dimension]);
        let (before, behind) = (
            &self.extents[..self.dimension],
            &self.extents[self.dimension + 1..],
        );
        let inner: usize = behind.iter().product();
        let slab = self.n_wanted * inner;
        let mut row: Vec<(T, usize)> = Vec::with_capacity(extent);
        for (number, slab_positions) in positions.chunks_exact_mut(slab).enumerate() {
            let outer = offset(first / slab + number, before, &self.strides);
            for column in 0..inner {
                let start = outer + offset(column, behind, &self.strides[self.dimension + 1..]);
                row.clear();
                row.extend((0..extent).map(|index| (x[start + index * stride], index)));
                self.select(&mut row);
                for (rank, (element, position)) in row[..self.n_wanted].iter().enumerate() {
                    let index = rank * inner + column;
                    slab_positions[index] = i64::try_from(*position).unwrap_or(i64::MAX);
                    value(number * slab + index, *element);
                }
            }
        }
    }

    /// Moves the results to the front, in their order.
    fn select<T: Real>(&self, row: &mut [(T, usize)]) {
        let order = |x: &(T, usize), y: &(T, usize)| {
            let by_value = match self.which {
                TopKOrder::Largest => compare(y.0, x.0),
                TopKOrder::Smallest => compare(x.0, y.0),
            };
            by_value.then(x.1.cmp(&y.1))
        };
        if let Some(last) = self.n_wanted.checked_sub(1)
            && self.n_wanted < row.len()
        {
            row.select_nth_unstable_by(last, order);
        }
        row[..self.n_wanted].sort_unstable_by(order);
    }
}

/// Compares numbers; what is no number comes last.
#[inline]
fn compare<T: Real>(x: T, y: T) -> Ordering {
    match (x.less(y), y.less(x)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => (!x.same(x)).cmp(&!y.same(y)),
    }
}

/// Returns the offset of an element by its number in row-major order.
fn offset(mut number: usize, extents: &[usize], strides: &[usize]) -> usize {
    let mut offset = 0;
    for (extent, stride) in extents.iter().zip(strides).rev() {
        offset += number % extent * stride;
        number /= extent;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::testing::{coordinates, layouts};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_of_a_stable_sort_are_found(
            layout in layouts(3, 6),
            (dimension, n_wanted) in (0..3_usize, 0..6_usize),
            is_largest in any::<bool>(),
            values in prop::collection::vec(prop_oneof![
                crate::math::testing::floats(), (-2..2_i8).prop_map(f32::from)], 1024),
        ) {
            prop_assume!(dimension < layout.extents.len() && layout.len <= values.len());
            prop_assume!(n_wanted <= layout.extents[dimension]);
            let x = layout.view(&values);
            let mut shape = layout.extents.clone();
            shape[dimension] = n_wanted;
            let n = shape.iter().product();
            let (mut found, mut places) = (vec![0.0; n], vec![0; n]);
            let which = if is_largest { TopKOrder::Largest } else { TopKOrder::Smallest };
            top_k(
                which, &x, dimension,
                TensorViewMut::new(&mut found, &shape).unwrap(),
                TensorViewMut::new(&mut places, &shape).unwrap(),
            ).unwrap();
            for index in 0..n {
                let mut place = coordinates(index, &shape);
                let rank = place[dimension];
                let mut row: Vec<(usize, f32)> = (0..layout.extents[dimension]).map(|i| {
                    place[dimension] = i;
                    (i, x.get(&place).unwrap())
                }).collect();
                // A stable sort by a key that has the order of numbers, and what is none behind them.
                let key = |x: f32| if x.is_nan() { (true, 0.0) } else { (false, x) };
                row.sort_by(|(_, x), (_, y)| {
                    let order = key(*x).partial_cmp(&key(*y)).unwrap();
                    if is_largest { order.reverse() } else { order }
                });
                prop_assert_eq!(usize::try_from(places[index]).unwrap(), row[rank].0);
                prop_assert_eq!(found[index].to_bits(), row[rank].1.to_bits());
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let x = TensorView::new(&[1, 2], &[2]).unwrap();
        let (mut v, mut p) = ([0; 3], [0; 3]);
        let mut of = |n: usize, m: usize, dimension| {
            let v = TensorViewMut::new(&mut v[..n], &[n]).unwrap();
            let p = TensorViewMut::new(&mut p[..m], &[m]).unwrap();
            top_k(TopKOrder::Largest, &x, dimension, v, p)
        };
        assert!(of(3, 3, 0).is_err());
        assert!(of(1, 2, 0).is_err());
        assert!(of(1, 1, 1).is_err());
        assert!(of(0, 0, 0).is_ok());
        let large = [0, 1 << 40, 1 << 40];
        let x = TensorView::<u8>::new(&[], &large).unwrap();
        let v = TensorViewMut::new(&mut [], &large).unwrap();
        let p = TensorViewMut::new(&mut [], &large).unwrap();
        top_k(TopKOrder::Smallest, &x, 2, v, p).unwrap();
    }
}
