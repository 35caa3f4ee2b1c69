//! [`ScalarHostTensor`]: a tensor whose elements are all the same.

use std::fmt;
use std::sync::Arc;

use tfrt_host::{DType, Error, HostAllocator};

use crate::{
    DenseHostTensor, Element, TensorMetadata, TensorShape, from_bytes, to_bytes, with_element,
};

/// The most bytes that an element takes.
const MAX_ELEMENT_BYTES: usize = 16;

/// A tensor of any shape whose elements all have one value.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{ScalarHostTensor, TensorShape};
///
/// let sevens = ScalarHostTensor::new(TensorShape::new(&[5, 3])?, 7_i32);
/// assert_eq!(sevens.to_string(), "ScalarHostTensor dtype = i32, shape = [5, 3], value = 7");
/// assert_eq!(sevens.value::<i32>()?, 7);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct ScalarHostTensor {
    metadata: TensorMetadata,
    // Invariant: the first bytes are those of an element of the type that the metadata says.
    bytes: Aligned,
}

/// Room for any element.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Aligned([u8; MAX_ELEMENT_BYTES]);

impl ScalarHostTensor {
    /// Returns a tensor of this shape with this value everywhere.
    pub fn new<T: Element>(shape: TensorShape, value: T) -> ScalarHostTensor {
        const { assert!(size_of::<T>() <= MAX_ELEMENT_BYTES) };
        let mut bytes = Aligned([0; MAX_ELEMENT_BYTES]);
        bytes.0[..size_of::<T>()].copy_from_slice(to_bytes(&[value]));
        ScalarHostTensor {
            metadata: TensorMetadata::new(T::DTYPE, shape),
            bytes,
        }
    }

    /// Returns a tensor whose every element has these bytes; `None` if elements of its type have another size.
    pub fn from_element_bytes(
        metadata: TensorMetadata,
        element: &[u8],
    ) -> Option<ScalarHostTensor> {
        if metadata.dtype.size_bytes() != Some(element.len()) {
            return None;
        }
        let mut bytes = Aligned([0; MAX_ELEMENT_BYTES]);
        bytes.0.get_mut(..element.len())?.copy_from_slice(element);
        Some(ScalarHostTensor { metadata, bytes })
    }

    /// Returns the bytes of the element.
    pub(crate) fn element_bytes(&self) -> &[u8] {
        &self.bytes.0[..self.dtype().size_bytes().unwrap_or(0)]
    }

    /// Type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        &self.metadata
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.metadata.dtype
    }

    /// Returns the value as a tensor of another shape.
    pub fn with_shape(&self, shape: TensorShape) -> ScalarHostTensor {
        ScalarHostTensor {
            metadata: TensorMetadata::new(self.dtype(), shape),
            bytes: self.bytes,
        }
    }

    /// Returns the value of all elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no `T`.
    pub fn value<T: Element>(&self) -> Result<T, Error> {
        self.metadata.expect_dtype(T::DTYPE)?;
        Ok(from_bytes::<T>(&self.bytes.0[..size_of::<T>()])?[0])
    }

    /// Returns a dense tensor of the same elements.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, `InvalidArgument` if there never could be.
    pub fn to_dense(&self, allocator: &Arc<dyn HostAllocator>) -> Result<DenseHostTensor, Error> {
        let mut tensor = DenseHostTensor::zeroed(allocator, self.metadata.clone())?;
        with_element!(self.dtype(), T => {
            let value = self.value::<T>()?;
            if let Some(elements) = tensor.elements_mut::<T>()? {
                elements.fill(value);
            }
        }, else ());
        Ok(tensor)
    }
}

/// `ScalarHostTensor dtype = i32, shape = [5, 3], value = 7`
impl fmt::Display for ScalarHostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorMetadata { dtype, shape } = &self.metadata;
        write!(
            f,
            "ScalarHostTensor dtype = {dtype}, shape = {shape}, value = "
        )?;
        with_element!(*dtype, T => match self.value::<T>() {
            Ok(value) => value.print(f),
            Err(_) => Err(fmt::Error),
        }, else Ok(()))
    }
}

impl fmt::Debug for ScalarHostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex;
    use tfrt_host::{HostContext, kernel::KernelRegistry};

    #[test]
    fn a_scalar_becomes_dense() {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let value = Complex {
            real: 1.0_f64,
            imaginary: 2.0,
        };
        let tensor = ScalarHostTensor::new(TensorShape::new(&[2]).unwrap(), value);
        let one = tensor.with_shape(TensorShape::SCALAR);
        assert_eq!(one.metadata().to_string(), "complex128 []");
        assert_eq!(one.value::<Complex<f64>>().unwrap(), value);
        let dense = tensor.to_dense(host.allocator()).unwrap();
        assert_eq!(
            dense.read().unwrap().elements::<Complex<f64>>().unwrap(),
            [value, value]
        );
        assert!(tensor.value::<f32>().is_err());
        let large = ScalarHostTensor::new(TensorShape::new(&[1 << 60, 8]).unwrap(), 1_u8);
        assert!(large.to_dense(host.allocator()).is_err());
    }
}
