//! Cumulative sums, products and extrema: at each place along a dimension, the reduction of all elements before it.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::reduce::{Product, Reduce, Sum};
use super::{Family, parallel, vectorized_for};
use crate::{
    BF16, Complex, DType, DenseHostTensor, Element, F16, TensorView, TensorViewMut, from_bytes,
    from_bytes_mut, to_bytes, to_bytes_mut, with_floating,
};

/// Number of neighbouring results that are made side by side.
const SIDE_BY_SIDE: usize = 256;

/// The operation of a cumulative reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cumulation {
    /// The sum; integers wrap around.
    Sum,
    /// The product; integers wrap around.
    Product,
}

/// Direction of a scan, and whether each place includes its own element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanOrder {
    /// Whether the element at a place itself is left out.
    pub exclusive: bool,
    /// Whether the scan runs from the end to the beginning.
    pub reverse: bool,
}

/// Extents before, of and behind the scanned dimension.
#[derive(Clone, Copy, Debug)]
struct CumulativePlan {
    extent: usize,
    inner: usize,
    order: ScanOrder,
}

/// Calculates, at each place along a dimension, the sum or product of all elements up to it.
///
/// Elements are taken in one after the other, in the type of sums, and each result is rounded from that.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not, if there is no such dimension, or if the elements are no numbers.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::cumulative::{Cumulation, ScanOrder, cumulative};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3], &[3])?;
/// let mut out = [0; 3];
/// let mut result = TensorViewMut::new(&mut out, &[3])?;
/// cumulative(Cumulation::Sum, &x, 0, ScanOrder::default(), &mut result)?;
/// assert_eq!(out, [1, 3, 6]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn cumulative<T: Element>(
    cumulation: Cumulation,
    x: &TensorView<'_, T>,
    dimension: usize,
    order: ScanOrder,
    out: &mut TensorViewMut<'_, T>,
) -> Result<(), Error> {
    let run = cumulation.run(T::DTYPE)?;
    let plan = CumulativePlan::new(x.extents(), dimension, order, out.extents())?;
    let out = to_bytes_mut(out.as_mut_slice());
    match x.as_slice() {
        Some(x) => run(&plan, to_bytes(x), out),
        None => run(&plan, to_bytes(&x.iter().collect::<Vec<T>>()), out),
    }
}

/// Applies [`cumulative()`] to dense tensors, on the workers of the request's queue if they are large: what differs
/// in a dimension before `dimension` is made side by side.
///
/// # Errors
///
/// Those of [`cumulative()`], `InvalidArgument` if the types differ, and those of [`parallel::fill_bytes`].
pub fn cumulative_into(
    execution: &ExecutionContext,
    cumulation: Cumulation,
    x: &DenseHostTensor,
    dimension: usize,
    order: ScanOrder,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let run = cumulation.run(x.dtype())?;
    out.metadata().expect_dtype(x.dtype())?;
    let extents = x.shape().to_dims();
    let plan = CumulativePlan::new(&extents, dimension, order, &out.shape().to_dims())?;
    let x = x.clone();
    let chunk = parallel::chunk_len(2, plan.extent.saturating_mul(plan.inner));
    let size = x.dtype().size_bytes().unwrap_or(1);
    parallel::fill_bytes(execution, out, chunk, move |first, part| {
        let reading = x.read()?;
        run(&plan, &reading.bytes()[first * size..][..part.len()], part)
    })
}

/// Loop that makes whole slabs, of elements given as bytes.
type Run = fn(&CumulativePlan, &[u8], &mut [u8]) -> Result<(), Error>;

impl Cumulation {
    /// Returns the loops for elements of a type.
    fn run(self, dtype: DType) -> Result<Run, Error> {
        match self {
            Cumulation::Sum => run_of::<Sum>(dtype),
            Cumulation::Product => run_of::<Product>(dtype),
        }
    }
}

fn run_of<R>(dtype: DType) -> Result<Run, Error>
where
    R: Reduce<f32> + Reduce<f64> + Reduce<F16> + Reduce<BF16>,
    R: Reduce<u8> + Reduce<u16> + Reduce<u32> + Reduce<u64>,
    R: Reduce<Complex<f32>> + Reduce<Complex<f64>>,
{
    fn run<R: Reduce<T>, T: Element>(
        plan: &CumulativePlan,
        x: &[u8],
        out: &mut [u8],
    ) -> Result<(), Error> {
        plan.run::<R, T>(from_bytes(x)?, from_bytes_mut(out)?);
        Ok(())
    }
    // What wraps around is the same bits whether there is a sign or not.
    match dtype {
        DType::Ui8 | DType::I8 => Ok(run::<R, u8>),
        DType::Ui16 | DType::I16 => Ok(run::<R, u16>),
        DType::Ui32 | DType::I32 => Ok(run::<R, u32>),
        DType::Ui64 | DType::I64 => Ok(run::<R, u64>),
        DType::Complex64 => Ok(run::<R, Complex<f32>>),
        DType::Complex128 => Ok(run::<R, Complex<f64>>),
        dtype => {
            with_floating!(dtype, T => Ok(run::<R, T>), else Err(Family::Numbers.lacks(dtype)))
        }
    }
}

impl CumulativePlan {
    fn new(
        x: &[usize],
        dimension: usize,
        order: ScanOrder,
        out: &[usize],
    ) -> Result<CumulativePlan, Error> {
        let Some((extent, rest)) = x.get(dimension..).and_then(<[usize]>::split_first) else {
            let rank = x.len();
            let message = format!("there is no dimension {dimension}: the tensor has {rank}");
            return Err(Error::invalid_argument(message));
        };
        if x != out {
            let message = format!("expected a result of shape {x:?}, found {out:?}");
            return Err(Error::invalid_argument(message));
        }
        Ok(CumulativePlan {
            extent: *extent,
            // Of a tensor without elements the other extents may have any product.
            inner: rest.iter().fold(1, |product, e| product.saturating_mul(*e)),
            order,
        })
    }

    /// Makes whole slabs: all that differs in the dimension and behind.
    fn run<R: Reduce<T>, T: Element>(&self, x: &[T], out: &mut [T]) {
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
    fn columns<R: Reduce<T>, T: Element>(&self, x: &[T], out: &mut [T], start: usize, n: usize) {
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
            vectorized_for::<T, _>(
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
    use crate::math::number::Real;
    use crate::math::testing::{coordinates, layouts};
    use proptest::prelude::*;

    /// Calculates the results by the definition: for each place a fold over its elements.
    fn folds<R: Reduce<T>, T: Element>(
        x: &TensorView<'_, T>,
        dimension: usize,
        order: ScanOrder,
    ) -> Vec<T> {
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

    fn check<R: Reduce<T>, T: Element>(
        cumulation: Cumulation,
        x: &TensorView<'_, T>,
        dimension: usize,
        order: ScanOrder,
    ) -> Result<(), TestCaseError> {
        let wanted = folds::<R, T>(x, dimension, order);
        let mut out = vec![T::ZERO; wanted.len()];
        let mut view = TensorViewMut::new(&mut out, x.extents()).unwrap();
        cumulative(cumulation, x, dimension, order, &mut view).unwrap();
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
            let order = ScanOrder { exclusive, reverse };
            // A sum of several that are no number has one or the other's bits.
            let x: Vec<f32> = values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect();
            let halves: Vec<F16> = values.iter().map(|x| F16(half::f16::from_f32(x.clamp(-9.0, 9.0)).to_bits())).collect();
            let small: Vec<i8> = values.iter().map(|x| i8::from_f64((*x).into())).collect();
            let brief: Vec<BF16> = values.iter().map(|x| BF16(half::bf16::from_f32(x.clamp(-9.0, 9.0)).to_bits())).collect();
            if x[..layout.len].iter().all(|x| x.is_finite()) {
                check::<Sum, f32>(Cumulation::Sum, &layout.view(&x), dimension, order)?;
            }
            check::<Sum, i8>(Cumulation::Sum, &layout.view(&small), dimension, order)?;
            check::<Product, i8>(Cumulation::Product, &layout.view(&small), dimension, order)?;
            if values[..layout.len].iter().all(|x| x.is_finite()) {
                check::<Sum, F16>(Cumulation::Sum, &layout.view(&halves), dimension, order)?;
                check::<Product, BF16>(Cumulation::Product, &layout.view(&brief), dimension, order)?;
            }
        }
    }

    #[test]
    fn what_has_no_result_is_told() {
        let x = TensorView::new(&[1.0_f32, f32::NAN, 2.0], &[3]).unwrap();
        let mut out = [0.0; 3];
        let mut view = TensorViewMut::new(&mut out, &[3]).unwrap();
        let exclusive = ScanOrder {
            exclusive: true,
            reverse: false,
        };
        assert!(cumulative(Cumulation::Sum, &x, 1, exclusive, &mut view).is_err());
        cumulative(Cumulation::Sum, &x, 0, ScanOrder::default(), &mut view).unwrap();
        assert!(out[0] == 1.0 && out[1].is_nan() && out[2].is_nan());
        let scalar = TensorView::new(&[1.0_f32], &[]).unwrap();
        let mut out = [0.0];
        let mut view = TensorViewMut::new(&mut out, &[]).unwrap();
        assert!(cumulative(Cumulation::Sum, &scalar, 0, exclusive, &mut view).is_err());
        let large = [0, 1 << 40, 1 << 40];
        let x = TensorView::<f32>::new(&[], &large).unwrap();
        let mut view = TensorViewMut::new(&mut [], &large).unwrap();
        cumulative(Cumulation::Sum, &x, 1, exclusive, &mut view).unwrap();
    }
}
