//! [`CooHostTensor`]: a sparse tensor, as a list of coordinates and values.

use std::fmt::Write;
use std::sync::Arc;

use tfrt_host::{DType, Error, HostAllocator};

use crate::dense::print_elements;
use crate::{DenseHostTensor, Element, TensorMetadata, TensorShape, with_element};

/// The elements of a tensor that are not 0, each with its coordinates.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{CooHostTensor, DenseHostTensor};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let dense = DenseHostTensor::from_slice(host.allocator(), &[2, 2], &[0, 5, 0, 6])?;
/// let sparse = CooHostTensor::from_dense(host.allocator(), &dense)?;
/// assert_eq!(sparse.indices().read()?.elements::<i64>()?, [0, 1, 1, 1]);
/// assert_eq!(sparse.values().read()?.elements::<i32>()?, [5, 6]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CooHostTensor(
    // Behind one address, so that tensors of any format are small: few are of this one.
    Arc<Parts>,
);

#[derive(Debug)]
struct Parts {
    metadata: TensorMetadata,
    // Invariant: i64, `[n_values, rank]`.
    indices: DenseHostTensor,
    // Invariant: of the type that the metadata says, `[n_values]`.
    values: DenseHostTensor,
}

impl CooHostTensor {
    /// Puts a sparse tensor together.
    ///
    /// # Shapes
    ///
    /// `indices: i64 [n_values, rank]`, `values: [n_values]`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shapes differ from these, or an index is out of the tensor's shape.
    pub fn new(
        shape: TensorShape,
        indices: DenseHostTensor,
        values: DenseHostTensor,
    ) -> Result<CooHostTensor, Error> {
        let n_values = values.n_elements();
        let wanted = TensorMetadata::new(DType::I64, TensorShape::new(&[n_values, shape.rank()])?);
        if *indices.metadata() != wanted || values.shape().rank() != 1 {
            let (indices, values) = (indices.metadata(), values.metadata());
            let message = format!(
                "indices and values do not match: {indices} and {values} for a tensor of shape {shape}, \
                 expected i64 [number of values, {}] and one dimension of values",
                shape.rank()
            );
            return Err(Error::invalid_argument(message));
        }
        if shape.rank() > 0 {
            let reading = indices.read()?;
            for (value, coordinates) in reading.elements::<i64>()?.chunks(shape.rank()).enumerate()
            {
                for (dimension, (index, extent)) in
                    coordinates.iter().zip(shape.extents()).enumerate()
                {
                    if usize::try_from(*index).is_ok_and(|index| index < extent) {
                        continue;
                    }
                    let message = format!(
                        "value {value} is at index {index} of dimension {dimension}, whose extent is \
                         {extent}"
                    );
                    return Err(Error::invalid_argument(message));
                }
            }
        }
        Ok(CooHostTensor(Arc::new(Parts {
            metadata: TensorMetadata::new(values.dtype(), shape),
            indices,
            values,
        })))
    }

    /// Makes a sparse tensor of the elements of a dense one that are not 0, in row-major order.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for the list, `FailedPrecondition` if somebody is
    /// writing the tensor.
    pub fn from_dense(
        allocator: &Arc<dyn HostAllocator>,
        dense: &DenseHostTensor,
    ) -> Result<CooHostTensor, Error> {
        let (extents, strides) = (dense.shape().to_dims(), dense.shape().strides());
        let reading = dense.read()?;
        with_element!(dense.dtype(), T => {
            // Counted first, so that all memory is the host's, and no more than it allows.
            let elements = reading.elements::<T>()?;
            let listed = || elements.iter().enumerate().filter(|(_, element)| **element != T::ZERO);
            let n_values = listed().count();
            let of = |dtype, extents: &[usize]| {
                DenseHostTensor::zeroed(allocator, TensorMetadata::new(dtype, TensorShape::new(extents)?))
            };
            let mut indices = of(DType::I64, &[n_values, extents.len()])?;
            let mut values = of(T::DTYPE, &[n_values])?;
            if let (Some(mut indices), Some(values)) =
                (indices.elements_mut::<i64>()?, values.elements_mut::<T>()?)
            {
                for ((offset, element), value) in listed().zip(values) {
                    let (own, rest) = indices.split_at_mut(extents.len());
                    for ((index, extent), stride) in own.iter_mut().zip(&extents).zip(&strides) {
                        *index = (offset / stride % extent) as i64;
                    }
                    *value = *element;
                    indices = rest;
                }
            }
            CooHostTensor::new(dense.shape().clone(), indices, values)
        }, else Err(Error::invalid_argument("a dense tensor has elements of one size")))
    }

    /// Returns a dense tensor with the values at their places and 0 elsewhere. If values share a place, the last
    /// counts.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, `InvalidArgument` if there never could be or if
    /// an index was overwritten by one that is out of the shape.
    pub fn to_dense(&self, allocator: &Arc<dyn HostAllocator>) -> Result<DenseHostTensor, Error> {
        let mut dense = DenseHostTensor::zeroed(allocator, self.0.metadata.clone())?;
        let strides = self.0.metadata.shape.strides();
        let (indices, values) = (self.0.indices.read()?, self.0.values.read()?);
        let indices = indices.elements::<i64>()?;
        with_element!(self.0.metadata.dtype, T => {
            if let Some(elements) = dense.elements_mut::<T>()? {
                for (position, value) in values.elements::<T>()?.iter().enumerate() {
                    let coordinates = &indices[position * strides.len()..][..strides.len()];
                    let offset: Option<usize> = coordinates
                        .iter()
                        .zip(&strides)
                        .try_fold(0_usize, |offset, (index, stride)| {
                            let step = usize::try_from(*index).ok()?.checked_mul(*stride)?;
                            offset.checked_add(step)
                        });
                    // The buffer of the indices may be shared with somebody who writes.
                    let place = offset.and_then(|offset| elements.get_mut(offset));
                    *place.ok_or_else(|| {
                        Error::invalid_argument(format!("value {position} is out of the tensor"))
                    })? = *value;
                }
            }
        }, else ());
        Ok(dense)
    }

    /// Type and shape, as if the tensor were dense.
    pub fn metadata(&self) -> &TensorMetadata {
        &self.0.metadata
    }

    /// Returns the coordinates: `i64 [n_values, rank]`.
    pub fn indices(&self) -> &DenseHostTensor {
        &self.0.indices
    }

    /// Returns the values: `[n_values]`.
    pub fn values(&self) -> &DenseHostTensor {
        &self.0.values
    }

    /// Returns the tensor as it is printed, with a line break at the end as the original has it:
    /// `CooHostTensor dtype = i32, shape = [2, 2], indices = [0, 1], values = [5]`.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing the tensor.
    pub fn to_text(&self) -> Result<String, Error> {
        let TensorMetadata { dtype, shape } = &self.0.metadata;
        let mut text = format!("CooHostTensor dtype = {dtype}, shape = {shape}, indices = ");
        let (indices, values) = (self.0.indices.read()?, self.0.values.read()?);
        let indices = indices.elements::<i64>()?;
        let infallible = "a string takes all";
        print_elements(indices, indices.len(), &mut text).expect(infallible);
        text.push_str(", values = ");
        with_element!(*dtype, T => {
            let values = values.elements::<T>()?;
            print_elements(values, values.len(), &mut text).expect(infallible);
        }, else ());
        text.write_char('\n').expect(infallible);
        Ok(text)
    }
}
