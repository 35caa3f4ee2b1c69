//! Cumulative sums, products and extrema: at each place along a dimension, the reduction of all before it.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::reduce::Reduction;
use super::{parallel, vectorized};
use crate::{DenseHostTensor, Element, TensorView, TensorViewMut};

/// Results whose elements are neighbours that are made side by side.
const SIDE_BY_SIDE: usize = 256;

/// Which elements are taken in at each place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Those before it, without its own.
    pub exclusive: bool,
    /// Those behind it in place of those before it.
    pub reverse: bool,
}

/// What is before, at and behind a dimension.
#[derive(Clone, Copy, Debug)]
struct Plan {
    extent: usize,
    inner: usize,
    order: Order,
}

/// Reduces, at each place along a dimension, all elements up to it: one of
/// [`reduce`](super::reduce)'s `Sum`, `Product`, `Minimum`, `Maximum`...
///
/// Elements are taken in one after the other, in the type of sums, and each result is rounded from that.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not, if there is no such dimension, or if the order is exclusive and the
/// reduction has no result for nothing.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::cumulative::{Order, cumulative};
/// use tfrt_tensor::math::reduce::Sum;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3], &[3])?;
/// let mut out = [0; 3];
/// cumulative::<Sum, i32>(&x, 0, Order::default(), &mut TensorViewMut::new(&mut out, &[3])?)?;
/// assert_eq!(out, [1, 3, 6]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn cumulative<R: Reduction<T>, T: Element>(
    x: &TensorView<'_, T>,
    dimension: usize,
    order: Order,
    out: &mut TensorViewMut<'_, R::Output>,
) -> Result<(), Error> {
    let plan = Plan::new::<R, T>(x.extents(), dimension, order, out.extents())?;
    match x.as_slice() {
        Some(x) => plan.run::<R, T>(x, out.as_mut_slice()),
        None => plan.run::<R, T>(&x.iter().collect::<Vec<T>>(), out.as_mut_slice()),
    }
    Ok(())
}

/// As [`cumulative()`], of dense tensors, on the workers of the request's queue if they are large: what differs
/// in a dimension before `dimension` is made side by side.
///
/// # Errors
///
/// As of [`cumulative()`], if the types differ, and those of [`parallel::fill`].
pub fn cumulative_into<R: Reduction<T>, T: Element>(
    execution: &ExecutionContext,
    x: &DenseHostTensor,
    dimension: usize,
    order: Order,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(x.metadata())?;
    let extents = x.shape().to_dims();
    let plan = Plan::new::<R, T>(&extents, dimension, order, &out.shape().to_dims())?;
    let x = x.clone();
    let chunk = parallel::chunk_len(2, plan.extent.saturating_mul(plan.inner));
    parallel::fill(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        plan.run::<R, T>(&reading.elements::<T>()?[first..first + part.len()], part);
        Ok(())
    })
}

impl Plan {
    fn new<R: Reduction<T>, T>(
        x: &[usize],
        dimension: usize,
        order: Order,
        out: &[usize],
    ) -> Result<Plan, Error> {
        let Some((extent, rest)) = x.get(dimension..).and_then(<[usize]>::split_first) else {
            let rank = x.len();
            let message = format!("there is no dimension {dimension}: the tensor has {rank}");
            return Err(Error::invalid_argument(message));
        };
        if x != out {
            let message = format!("expected a result of shape {x:?}, found {out:?}");
            return Err(Error::invalid_argument(message));
        }
        if order.exclusive && !R::OF_NOTHING {
            let message =
                "the first place has nothing before it, and the reduction no result for that";
            return Err(Error::invalid_argument(message));
        }
        Ok(Plan {
            extent: *extent,
            // Of a tensor without elements the other extents may have any product.
            inner: rest.iter().fold(1, |product, e| product.saturating_mul(*e)),
            order,
        })
    }

    /// Makes whole slabs: all that differs in the dimension and behind.
    fn run<R: Reduction<T>, T: Element>(&self, x: &[T], out: &mut [R::Output]) {
        if out.is_empty() {
            return;
        }
        let slab = self.extent * self.inner;
        let slabs = x.chunks_exact(slab).zip(out.chunks_exact_mut(slab));
        for (x, out) in slabs {
            for start in (0..self.inner).step_by(SIDE_BY_SIDE) {
                let n = SIDE_BY_SIDE.min(self.inner - start);
                self.columns::<R, T>(x, out, start, n);
            }
        }
    }

    /// Makes `n` columns of a slab side by side.
    fn columns<R: Reduction<T>, T: Element>(
        &self,
        x: &[T],
        out: &mut [R::Output],
        start: usize,
        n: usize,
    ) {
        let mut partials = [R::empty(); SIDE_BY_SIDE];
        let partials = &mut partials[..n];
        for number in 0..self.extent {
            let row = match self.order.reverse {
                false => number,
                true => self.extent - 1 - number,
            };
            let at = row * self.inner + start;
            let (x, out) = (&x[at..at + n], &mut out[at..at + n]);
            let exclusive = self.order.exclusive;
            vectorized(
                #[inline(always)]
                || {
                    for ((partial, x), out) in partials.iter_mut().zip(x).zip(out) {
                        let with = R::take(*partial, *x);
                        *out = match exclusive {
                            true => R::finish(*partial, number),
                            false => R::finish(with, number + 1),
                        };
                        *partial = with;
                    }
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::elementwise::{Cast, Unary};
    use crate::math::reduce::{Maximum, Product, Sum};
    use crate::math::testing::{coordinates, layouts};
    use crate::{BF16, F16};
    use proptest::prelude::*;

    /// The results by the definition: for each place a fold over those that it is made of.
    fn folds<R: Reduction<T>, T: Element>(
        x: &TensorView<'_, T>,
        dimension: usize,
        order: Order,
    ) -> Vec<R::Output> {
        let extent = x.extents()[dimension];
        let one = |index: usize| {
            let mut place = coordinates(index, x.extents());
            let own = place[dimension];
            let is_taken = |other: &usize| match (order.reverse, order.exclusive) {
                (false, false) => *other <= own,
                (false, true) => *other < own,
                (true, false) => *other >= own,
                (true, true) => *other > own,
            };
            let mut taken: Vec<usize> = (0..extent).filter(is_taken).collect();
            if order.reverse {
                taken.reverse();
            }
            let n = taken.len();
            let partial = taken.into_iter().fold(R::empty(), |partial, other| {
                place[dimension] = other;
                R::take(partial, x.get(&place).unwrap())
            });
            R::finish(partial, n)
        };
        (0..x.n_elements()).map(one).collect()
    }

    fn check<R: Reduction<T>, T: Element>(
        x: &TensorView<'_, T>,
        dimension: usize,
        order: Order,
    ) -> Result<(), TestCaseError> {
        let wanted = folds::<R, T>(x, dimension, order);
        let mut out = vec![R::Output::ZERO; wanted.len()];
        let mut view = TensorViewMut::new(&mut out, x.extents()).unwrap();
        cumulative::<R, T>(x, dimension, order, &mut view).unwrap();
        prop_assert_eq!(crate::to_bytes(&out), crate::to_bytes(&wanted));
        Ok(())
    }

    proptest! {
        #[test]
        fn each_place_has_the_fold_up_to_it(
            layout in layouts(3, 6),
            dimension in 0..3_usize,
            (exclusive, reverse) in (any::<bool>(), any::<bool>()),
            values in prop::collection::vec(crate::math::testing::floats(), 1024),
        ) {
            prop_assume!(dimension < layout.extents.len() && layout.len <= values.len());
            let order = Order { exclusive, reverse };
            // A sum of several that are no number has one or the other's bits.
            let x: Vec<f32> = values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect();
            let halves: Vec<F16> = values.iter().map(|x| F16(half::f16::from_f32(x.clamp(-9.0, 9.0)).to_bits())).collect();
            let small: Vec<i8> = values.iter().map(|x| <Cast<i8> as Unary<f32>>::apply(*x)).collect();
            let brief: Vec<BF16> = values.iter().map(|x| BF16(half::bf16::from_f32(x.clamp(-9.0, 9.0)).to_bits())).collect();
            if x[..layout.len].iter().all(|x| x.is_finite()) {
                check::<Sum, f32>(&layout.view(&x), dimension, order)?;
            }
            check::<Sum, i8>(&layout.view(&small), dimension, order)?;
            check::<Product, i8>(&layout.view(&small), dimension, order)?;
            if values[..layout.len].iter().all(|x| x.is_finite()) {
                check::<Sum, F16>(&layout.view(&halves), dimension, order)?;
                check::<Product, BF16>(&layout.view(&brief), dimension, order)?;
            }
            let inclusive = Order { exclusive: false, reverse };
            check::<Maximum, f32>(&layout.view(&x), dimension, inclusive)?;
        }
    }

    #[test]
    fn what_has_no_result_is_told() {
        let x = TensorView::new(&[1.0_f32, f32::NAN, 2.0], &[3]).unwrap();
        let mut out = [0.0; 3];
        let mut view = TensorViewMut::new(&mut out, &[3]).unwrap();
        let exclusive = Order {
            exclusive: true,
            reverse: false,
        };
        assert!(cumulative::<Maximum, f32>(&x, 0, exclusive, &mut view).is_err());
        assert!(cumulative::<Sum, f32>(&x, 1, exclusive, &mut view).is_err());
        cumulative::<Sum, f32>(&x, 0, Order::default(), &mut view).unwrap();
        assert!(out[0] == 1.0 && out[1].is_nan() && out[2].is_nan());
        let scalar = TensorView::new(&[1.0_f32], &[]).unwrap();
        let mut out = [0.0];
        let mut view = TensorViewMut::new(&mut out, &[]).unwrap();
        assert!(cumulative::<Sum, f32>(&scalar, 0, exclusive, &mut view).is_err());
        let large = [0, 1 << 40, 1 << 40];
        let x = TensorView::<f32>::new(&[], &large).unwrap();
        let mut view = TensorViewMut::new(&mut [], &large).unwrap();
        cumulative::<Sum, f32>(&x, 1, exclusive, &mut view).unwrap();
    }
}
