//! Filters reordered for [`conv`](crate::math::conv): for one convolution, or for many.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use super::{filter_last, moved};
use crate::math::Family;
use crate::math::matmul::{MatmulElement, Sealed, WidenedRhs};
use crate::with_floating;
use crate::{DType, DenseHostTensor, Dims, Element, TensorView};

/// A filter in the order of [`conv`](crate::math::conv), and in the form that it is multiplied in ([`WidenedRhs`]).
///
/// Clones share the elements.
#[derive(Clone, Debug)]
pub struct OrderedFilter {
    /// Extents in the order of [`channels_first`](super).
    extents: Dims,
    // Invariant: in the other order.
    elements: WidenedRhs,
}

impl OrderedFilter {
    /// Reorders a filter. Convolutions by it have the same bits.
    ///
    /// # Shapes
    ///
    /// `filter` as in the table of [`channels_first`](super).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has fewer than two dimensions, or elements that are no floats; `ResourceExhausted` if there is
    /// no memory; `FailedPrecondition` if somebody writes the tensor.
    pub fn new(
        allocator: &Arc<dyn HostAllocator>,
        filter: &DenseHostTensor,
    ) -> Result<OrderedFilter, Error> {
        let (dtype, extents) = (filter.dtype(), filter.shape().to_dims());
        let own = filter_last(&extents)?;
        let ordered = with_floating!(dtype, T => {
            let elements = in_last_order(&filter.read()?.view::<T>()?)?;
            DenseHostTensor::from_slice(allocator, &own, &elements)?
        }, else return Err(Family::Floats.lacks(dtype)));
        let elements = WidenedRhs::new(allocator, &ordered)?;
        Ok(OrderedFilter { extents, elements })
    }

    /// Returns the elements in order.
    pub(super) fn elements(&self) -> &DenseHostTensor {
        self.elements.elements()
    }

    /// Returns the extents that the filter had.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the type of the elements that it was made of.
    pub fn dtype(&self) -> DType {
        self.elements.dtype()
    }

    /// Returns the filter for images of the type that its elements are kept in: of halves, for images of `f32`.
    #[must_use]
    pub fn for_kept_type(&self) -> OrderedFilter {
        OrderedFilter {
            extents: self.extents.clone(),
            elements: self.elements.for_kept_type(),
        }
    }

    /// Replaces the elements by an equal tensor, so that several filters share one.
    #[must_use]
    pub fn map_elements(self, of: impl FnOnce(DenseHostTensor) -> DenseHostTensor) -> Self {
        let elements = self.elements.map_elements(of);
        OrderedFilter { elements, ..self }
    }
}

/// The elements of a filter in order, as they are kept.
#[derive(Debug)]
pub(super) enum FilterElements<K> {
    /// Made for one convolution, and dropped with it.
    Owned(Vec<K>),
    /// Kept by an [`OrderedFilter`], for many convolutions.
    Shared(DenseHostTensor),
}

impl<K: Element> FilterElements<K> {
    /// Reorders a filter for one convolution.
    pub(super) fn of<T: MatmulElement + Sealed<RhsElement = K>>(
        filter: &DenseHostTensor,
    ) -> Result<FilterElements<K>, Error> {
        let elements = in_last_order(&filter.read()?.view::<T>()?)?;
        Ok(FilterElements::Owned(
            T::widen_rhs(elements.into()).into_owned(),
        ))
    }

    /// Takes elements that were brought into order.
    pub(super) fn shared(elements: DenseHostTensor) -> FilterElements<K> {
        FilterElements::Shared(elements)
    }

    /// Calls a function of the elements.
    pub(super) fn with(&self, then: impl FnOnce(&[K]) -> Result<(), Error>) -> Result<(), Error> {
        match self {
            FilterElements::Owned(elements) => then(elements),
            FilterElements::Shared(tensor) => then(tensor.read()?.elements()?),
        }
    }
}

/// Returns the elements of a filter, reordered for [`conv`](crate::math::conv).
pub(super) fn in_last_order<T: Element>(filter: &TensorView<'_, T>) -> Result<Vec<T>, Error> {
    let rank = filter.rank();
    moved(filter, &(2..rank).chain([1, 0]).collect::<Vec<usize>>())
}

#[cfg(test)]
mod tests {
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{AsyncValue, Chain, ExecutionContext, HostContext, RequestContext};

    use super::super::*;
    use super::*;
    use crate::math::window::{Padding, Window};
    use crate::{BF16, F16};

    /// Spatial extents, windows, and `[groups, channels, filters]`: of one to three dimensions, pointwise, depthwise.
    const CASES: [(&[usize], usize, [usize; 3]); 6] = [
        (&[9], 3, [1, 4, 6]),
        (&[200], 1, [1, 300, 5]),
        (&[5, 6], 2, [2, 4, 6]),
        (&[7, 5], 3, [6, 6, 6]),
        (&[3, 4, 3], 2, [1, 3, 2]),
        (&[2, 2], 2, [2, 2, 0]),
    ];

    fn check<T: MatmulElement + Real>() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let tensor = |extents: &[usize], seed: usize| {
            let number = |index: usize| ((index * 31 + seed) % 193) as f64 / 64.0 - 1.5;
            let n = extents.iter().product();
            let elements: Vec<T> = (0..n).map(|index| T::from_f64(number(index))).collect();
            DenseHostTensor::from_slice(host.allocator(), extents, &elements).unwrap()
        };
        let bytes = |extents: &[usize], make: &dyn Fn(&DenseHostTensor) -> AsyncValue<Chain>| {
            let out = tensor(extents, 4);
            let chain = make(&out);
            host.queue().await_all(&[chain.into_any()]).unwrap();
            out.read().unwrap().bytes().to_vec()
        };
        for (spatial, window, [groups, channels, filters]) in CASES {
            let windows =
                vec![Window::new(window, 1, Padding::Explicit(window - 1, 0)); spatial.len()];
            let extents = |two: [usize; 2], rest: &[usize]| [&two[..], rest].concat();
            let x = tensor(&extents([2, channels], spatial), 1);
            let window = vec![window; spatial.len()];
            let after = TensorConvEpilogue {
                shift: Some(tensor(&[filters], 3)),
                ..TensorConvEpilogue::default()
            };

            let filter = tensor(&extents([filters, channels / groups], &window), 2);
            let kept = OrderedFilter::new(host.allocator(), &filter).unwrap();
            let convolution = Convolution {
                groups,
                ..Convolution::new(&windows)
            };
            let out = extents([2, filters], spatial);
            let wanted = bytes(&out, &|out| {
                convolve_into(&execution, &convolution, [&x, &filter], after.clone(), out).unwrap()
            });
            let found = bytes(&out, &|out| {
                let operands = (&x, &kept);
                convolve_ordered_into(&execution, &convolution, operands, after.clone(), out)
                    .unwrap()
            });
            assert!(found == wanted, "{:?} {spatial:?}", T::DTYPE);

            let filter = tensor(&extents([channels, filters / groups], &window), 2);
            let kept = OrderedFilter::new(host.allocator(), &filter).unwrap();
            let mut transposed = TransposedConvolution::new(&windows);
            transposed.groups = groups;
            let shape = transposed_extents(&transposed, &x.shape().to_dims(), kept.extents());
            let shape = shape.unwrap();
            let wanted = bytes(&shape, &|out| {
                let operands = [&x, &filter];
                convolve_transposed_into(&execution, &transposed, operands, after.clone(), out)
                    .unwrap()
            });
            let found = bytes(&shape, &|out| {
                let operands = (&x, &kept);
                let after = after.clone();
                convolve_transposed_ordered_into(&execution, &transposed, operands, after, out)
                    .unwrap()
            });
            assert!(found == wanted, "transposed {:?} {spatial:?}", T::DTYPE);
        }
    }

    #[test]
    fn convolutions_by_filters_in_order_have_the_same_bits() {
        check::<F16>();
        check::<BF16>();
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn filters_that_do_not_fit_are_told() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let tensor = |extents: &[usize], elements: &[f64]| {
            DenseHostTensor::from_slice(host.allocator(), extents, elements).unwrap()
        };
        let line = tensor(&[2], &[1.0; 2]);
        assert!(OrderedFilter::new(host.allocator(), &line).is_err());
        let filter = tensor(&[1, 1, 2], &[1.0; 2]);
        let filter = OrderedFilter::new(host.allocator(), &filter).unwrap();
        assert_eq!(
            (filter.dtype(), filter.extents()),
            (DType::F64, &[1, 1, 2][..])
        );
        let convolution = Convolution::new(&[Window::new(2, 1, Padding::Valid)]);
        let out = tensor(&[1, 1, 2], &[0.0; 2]);
        let singles = DenseHostTensor::from_slice(host.allocator(), &[1, 1, 3], &[1.0_f32; 3]);
        for x in [tensor(&[1, 2, 3], &[1.0; 6]), singles.unwrap()] {
            let after = TensorConvEpilogue::default();
            let found = convolve_ordered_into(&execution, &convolution, (&x, &filter), after, &out);
            assert!(found.is_err());
        }
    }
}
