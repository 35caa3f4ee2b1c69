//! [`WidenedRhs`]: a factor of many products, in the form that it is multiplied in.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use super::gemm::Sealed;
use crate::math::Family;
use crate::with_number;
use crate::{DType, DenseHostTensor, TensorMetadata, TensorShape};

/// A right factor of products, or a filter, in the form that is multiplied: halves widened to `f32`, other types as
/// they are. Products by it have the same bits.
///
/// Clones share the elements.
#[derive(Clone, Debug)]
pub struct WidenedRhs {
    /// Type of the elements before widening.
    dtype: DType,
    // Invariant: of the type that elements of `dtype` are kept as.
    elements: DenseHostTensor,
}

impl WidenedRhs {
    /// Widens a tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if its elements are no numbers, `ResourceExhausted` if there is no memory, `FailedPrecondition` if
    /// somebody writes the tensor.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::kernel::KernelRegistry;
    /// use tfrt_tensor::math::matmul::WidenedRhs;
    /// use tfrt_tensor::{DType, DenseHostTensor, F16};
    ///
    /// let host = tfrt_host::HostContext::builder(KernelRegistry::new()).build();
    /// let ones = DenseHostTensor::from_slice(host.allocator(), &[2], &[F16(0x3c00); 2])?;
    /// let kept = WidenedRhs::new(host.allocator(), &ones)?;
    /// assert_eq!((kept.dtype(), kept.elements().dtype()), (DType::F16, DType::F32));
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn new(
        allocator: &Arc<dyn HostAllocator>,
        tensor: &DenseHostTensor,
    ) -> Result<WidenedRhs, Error> {
        let dtype = tensor.dtype();
        let elements = with_number!(dtype, T => kept::<T>(allocator, tensor)?, else return Err(Family::Numbers.lacks(dtype)));
        Ok(WidenedRhs { dtype, elements })
    }

    /// Returns the type of the elements that it was made of.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the factor for products of the type that its elements are kept in: of halves, for products of `f32`.
    #[must_use]
    pub fn for_kept_type(&self) -> WidenedRhs {
        WidenedRhs {
            dtype: self.elements.dtype(),
            elements: self.elements.clone(),
        }
    }

    /// Returns the elements in the form that they are multiplied in.
    pub fn elements(&self) -> &DenseHostTensor {
        &self.elements
    }

    /// Returns the same factor with other extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has another number of elements than that.
    pub fn reshape(&self, shape: TensorShape) -> Result<WidenedRhs, Error> {
        let (dtype, elements) = (self.dtype, self.elements.reshape(shape)?);
        Ok(WidenedRhs { dtype, elements })
    }

    /// Replaces the elements by an equal tensor, so that several factors share one.
    #[must_use]
    pub fn map_elements(mut self, of: impl FnOnce(DenseHostTensor) -> DenseHostTensor) -> Self {
        let elements = of(self.elements.clone());
        if elements.metadata() == self.elements.metadata() {
            self.elements = elements;
        }
        self
    }
}

fn kept<T: super::MatmulElement>(
    allocator: &Arc<dyn HostAllocator>,
    tensor: &DenseHostTensor,
) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(
        <<T as Sealed>::RhsElement as crate::Element>::DTYPE,
        tensor.shape().clone(),
    );
    if metadata.dtype == tensor.dtype() {
        return Ok(tensor.clone());
    }
    let reading = tensor.read()?;
    let elements = T::widen_rhs(reading.elements::<T>()?.into());
    DenseHostTensor::from_bytes(allocator, metadata, crate::to_bytes(&elements))
}

#[cfg(test)]
mod tests {
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{ExecutionContext, HostContext, RequestContext};

    use super::super::{MatmulElement, Scale, matmul_into, matmul_widened_into};
    use super::*;
    use crate::{BF16, Complex, F16};

    /// More than a block of rows, of depth and of columns, and single ones of each.
    const EXTENTS: [[usize; 3]; 8] = [
        [1, 1, 1],
        [1, 300, 70],
        [3, 17, 1],
        [2, 1, 9],
        [31, 257, 33],
        [121, 40, 520],
        [1, 600, 513],
        [4, 0, 3],
    ];

    fn check<T: MatmulElement>() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let tensor = |extents: [usize; 2], seed: usize| {
            let number = |index: usize| ((index * 31 + seed) % 193) as f64 / 64.0 - 1.5;
            let elements = (0..extents[0] * extents[1]).map(|index| T::from_number(number(index)));
            let elements: Vec<T> = elements.collect();
            DenseHostTensor::from_slice(host.allocator(), &extents, &elements).unwrap()
        };
        for ([m, k, n], flips) in EXTENTS.iter().flat_map(|extents| {
            [[false; 2], [true; 2], [false, true]].map(|flips| (*extents, flips))
        }) {
            let turned = |[a, b]: [usize; 2], flips: bool| if flips { [b, a] } else { [a, b] };
            let a = tensor(turned([m, k], flips[0]), 1);
            let b = tensor(turned([k, n], flips[1]), 2);
            let kept = WidenedRhs::new(host.allocator(), &b).unwrap();
            for of_result in [0.0, 0.75] {
                let scale = Scale {
                    of_product: 1.25,
                    of_result,
                };
                let bytes = |product: &dyn Fn(&DenseHostTensor)| {
                    let out = tensor([m, n], 3);
                    product(&out);
                    out.read().unwrap().bytes().to_vec()
                };
                let wanted = bytes(&|out| {
                    let chain = matmul_into(&execution, scale, [&a, &b], flips, out).unwrap();
                    host.queue().await_all(&[chain.into_any()]).unwrap();
                });
                let found = bytes(&|out| {
                    let factors = (&a, &kept);
                    let chain =
                        matmul_widened_into(&execution, scale, factors, flips, out).unwrap();
                    host.queue().await_all(&[chain.into_any()]).unwrap();
                });
                assert!(found == wanted, "{:?} {m} {k} {n} {flips:?}", T::DTYPE);
            }
        }
    }

    #[test]
    fn products_by_what_is_kept_have_the_same_bits() {
        check::<F16>();
        check::<BF16>();
        check::<f32>();
        check::<f64>();
        check::<i32>();
        check::<Complex<f32>>();
    }

    #[test]
    fn what_is_no_number_is_not_kept() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let truths =
            DenseHostTensor::from_slice(host.allocator(), &[2], &[crate::Bool::from(true); 2]);
        let error = WidenedRhs::new(host.allocator(), &truths.unwrap()).unwrap_err();
        assert!(error.message().contains("i1"), "{error}");
    }
}
