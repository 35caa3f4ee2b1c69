//! [`DenseHostTensor`]: elements in row-major order, in a buffer of the host.

use std::fmt;
use std::sync::Arc;

use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer, Reading, UninitBuffer, Writing};
use tfrt_host::{DType, Error, HostAllocator};

use crate::text::MAX_PRINTED;
use crate::{
    Dims, Element, TensorMetadata, TensorShape, TensorView, TensorViewMut, from_bytes,
    from_bytes_mut, to_bytes, with_element,
};

/// Elements in row-major order. Clones share the buffer.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::DenseHostTensor;
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let tensor = DenseHostTensor::from_slice(host.allocator(), &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(tensor.read()?.view::<f32>()?.get(&[1, 0]), Some(3.0));
/// tensor.write()?.elements_mut::<f32>()?[3] = 0.5;
/// assert_eq!(tensor.read()?.elements::<f32>()?, [1.0, 2.0, 3.0, 0.5]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DenseHostTensor {
    metadata: TensorMetadata,
    // Invariant: of the size that the metadata says, and aligned for its elements.
    buffer: HostBuffer,
}

impl DenseHostTensor {
    /// Wraps a buffer as a tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the buffer is not of the size of the tensor, or begins where its elements may
    /// not.
    pub fn new(metadata: TensorMetadata, buffer: HostBuffer) -> Result<Self, Error> {
        let (wanted, found) = (metadata.len_bytes()?, buffer.len_bytes());
        if wanted != found {
            let message =
                format!("a tensor of {metadata} takes {wanted} bytes, the buffer has {found}");
            return Err(Error::invalid_argument(message));
        }
        let alignment = metadata.dtype.alignment_bytes().unwrap_or(1);
        // A power of two.
        let n_behind = buffer.address() & (alignment - 1);
        if n_behind != 0 && wanted > 0 {
            let message = format!(
                "a tensor of {metadata} begins at a multiple of {alignment} bytes in memory, the buffer \
                 {n_behind} bytes behind one"
            );
            return Err(Error::invalid_argument(message));
        }
        Ok(DenseHostTensor { metadata, buffer })
    }

    /// Returns a tensor of zeros.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`TensorMetadata::len_bytes`].
    #[inline]
    pub fn zeroed(
        allocator: &Arc<dyn HostAllocator>,
        metadata: TensorMetadata,
    ) -> Result<Self, Error> {
        let len_bytes = metadata.len_bytes()?;
        let buffer = HostBuffer::zeroed(allocator, len_bytes, BUFFER_ALIGNMENT)
            .ok_or_else(|| no_memory(&metadata))?;
        Ok(DenseHostTensor { metadata, buffer })
    }

    /// Allocates a tensor whose contents are unspecified: the caller must write every element before the tensor
    /// leaves the kernel. The memory of former tensors is not cleared.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`TensorMetadata::len_bytes`].
    #[inline]
    pub fn unspecified(
        allocator: &Arc<dyn HostAllocator>,
        metadata: TensorMetadata,
    ) -> Result<Self, Error> {
        let len_bytes = metadata.len_bytes()?;
        let buffer = HostBuffer::unspecified(allocator, len_bytes, BUFFER_ALIGNMENT)
            .ok_or_else(|| no_memory(&metadata))?;
        Ok(DenseHostTensor { metadata, buffer })
    }

    /// Allocates a tensor of this one's shape, with elements of `dtype` in `len_bytes` bytes, which `write` fills.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it.
    #[inline(always)]
    pub(crate) fn written_like(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        (dtype, len_bytes): (DType, usize),
        write: impl FnOnce(&mut [u8]),
    ) -> Result<Self, Error> {
        match UninitBuffer::allocate(allocator, len_bytes, BUFFER_ALIGNMENT) {
            Some(buffer) => Ok(DenseHostTensor {
                metadata: TensorMetadata::new(dtype, self.shape().clone()),
                buffer: buffer.written(write),
            }),
            None => Err(no_memory(&TensorMetadata::new(dtype, self.shape().clone()))),
        }
    }

    /// Returns a tensor of these elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as the extents say, `ResourceExhausted` if there is no
    /// memory for them.
    pub fn from_slice<T: Element>(
        allocator: &Arc<dyn HostAllocator>,
        extents: &[usize],
        elements: &[T],
    ) -> Result<Self, Error> {
        let metadata = TensorMetadata::new(T::DTYPE, TensorShape::new(extents)?);
        metadata.expect_elements(elements.len())?;
        Self::from_bytes(allocator, metadata, to_bytes(elements))
    }

    /// Returns a tensor of a function of each element, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the elements are not of type `T`, `FailedPrecondition` if somebody is writing them,
    /// `ResourceExhausted` if there is no memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::{HostContext, kernel::KernelRegistry};
    /// use tfrt_tensor::DenseHostTensor;
    ///
    /// let host = HostContext::builder(KernelRegistry::new()).build();
    /// let x = DenseHostTensor::from_slice(host.allocator(), &[2], &[1.5_f32, -2.0])?;
    /// let y = x.map(host.allocator(), |x: f32| f64::from(x) * 2.0)?;
    /// assert_eq!(y.read()?.elements::<f64>()?, [3.0, -4.0]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn map<T: Element, U: Element>(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        function: impl FnMut(T) -> U,
    ) -> Result<Self, Error> {
        let reading = self.read()?;
        let made: Vec<U> = reading
            .elements::<T>()?
            .iter()
            .copied()
            .map(function)
            .collect();
        Self::from_slice(allocator, &self.shape().to_dims(), &made)
    }

    /// Returns a tensor of elements given as bytes, in the order of the processor.
    ///
    /// # Errors
    ///
    /// See [`from_slice`](Self::from_slice).
    pub fn from_bytes(
        allocator: &Arc<dyn HostAllocator>,
        metadata: TensorMetadata,
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let wanted = metadata.len_bytes()?;
        if wanted != bytes.len() {
            let found = bytes.len();
            let message = format!("a tensor of {metadata} takes {wanted} bytes, found {found}");
            return Err(Error::invalid_argument(message));
        }
        let buffer = HostBuffer::copy_of(allocator, bytes).ok_or_else(|| no_memory(&metadata))?;
        Ok(DenseHostTensor { metadata, buffer })
    }

    /// Returns a tensor without dimensions, of one element.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it.
    pub fn scalar<T: Element>(allocator: &Arc<dyn HostAllocator>, value: T) -> Result<Self, Error> {
        Self::from_slice(allocator, &[], &[value])
    }

    /// Type and shape.
    #[inline]
    pub fn metadata(&self) -> &TensorMetadata {
        &self.metadata
    }

    /// Returns the type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.metadata.dtype
    }

    /// Returns the extents.
    #[inline]
    pub fn shape(&self) -> &TensorShape {
        &self.metadata.shape
    }

    /// Returns the number of elements.
    #[inline]
    pub fn n_elements(&self) -> usize {
        let size = self.dtype().size_bytes().unwrap_or(1);
        self.buffer.len_bytes() / size
    }

    /// Returns the bytes behind the elements.
    pub fn buffer(&self) -> &HostBuffer {
        &self.buffer
    }

    /// Returns the buffer of the elements, and drops the rest of the tensor.
    pub fn into_buffer(self) -> HostBuffer {
        self.buffer
    }

    /// Lends the elements for reading.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing them.
    #[inline]
    pub fn read(&self) -> Result<DenseReading<'_>, Error> {
        Ok(DenseReading {
            metadata: &self.metadata,
            bytes: self.buffer.read()?,
        })
    }

    /// Lends the elements for writing.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is reading or writing them, or if the buffer is for reading
    /// only.
    #[inline]
    pub fn write(&self) -> Result<DenseWriting<'_>, Error> {
        Ok(DenseWriting {
            metadata: &self.metadata,
            bytes: self.buffer.write()?,
        })
    }

    /// Returns the elements for writing if nobody else holds them.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s.
    #[inline]
    pub fn elements_mut<T: Element>(&mut self) -> Result<Option<&mut [T]>, Error> {
        self.metadata.expect_dtype(T::DTYPE)?;
        self.buffer.as_bytes_mut().map(from_bytes_mut).transpose()
    }

    /// Returns the bytes of the elements for writing if nobody else holds them.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.buffer.as_bytes_mut()
    }

    /// Returns whether nobody else holds the memory of the elements, so that it may be written, even if it was
    /// [frozen](Self::freeze).
    #[inline]
    pub fn is_sole(&mut self) -> bool {
        self.buffer.thaw()
    }

    /// Freezes the elements: they are never written again while several tensors hold them. Does nothing if several do
    /// now; see [`HostBuffer::freeze`].
    #[inline]
    pub fn freeze(&mut self) {
        self.buffer.freeze();
    }

    /// Returns the elements with another shape, in the same buffer.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shape does not have as many.
    pub fn reshape(&self, shape: TensorShape) -> Result<Self, Error> {
        if shape.n_elements() != Some(self.n_elements()) {
            let own = self.shape();
            let message = format!("a tensor of shape {own} can't be seen as one of {shape}");
            return Err(Error::invalid_argument(message));
        }
        Ok(DenseHostTensor {
            metadata: TensorMetadata::new(self.dtype(), shape),
            buffer: self.buffer.clone(),
        })
    }

    /// Returns the elements in one dimension, in the same buffer.
    pub fn flatten(&self) -> Self {
        let shape = TensorShape::new(&[self.n_elements()]).expect("so many fit the memory");
        DenseHostTensor {
            metadata: TensorMetadata::new(self.dtype(), shape),
            buffer: self.buffer.clone(),
        }
    }

    /// Returns the slice at these coordinates of the leading dimensions, in the same buffer.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is nothing.
    pub fn chip(&self, coordinates: &[usize]) -> Result<Self, Error> {
        let extents = self.shape().to_dims();
        let n = coordinates.len();
        let is_within = n <= extents.len()
            && coordinates
                .iter()
                .zip(&extents)
                .all(|(coordinate, extent)| coordinate < extent);
        if !is_within {
            let shape = self.shape();
            let message = format!("{coordinates:?} is not in a tensor of shape {shape}");
            return Err(Error::invalid_argument(message));
        }
        let strides = self.shape().strides();
        let start: usize = coordinates
            .iter()
            .zip(&strides)
            .map(|(c, stride)| c * stride)
            .sum();
        let metadata = TensorMetadata::new(self.dtype(), TensorShape::new(&extents[n..])?);
        let size = self.dtype().size_bytes().unwrap_or(1);
        let range = start * size..start * size + metadata.len_bytes()?;
        let buffer = self
            .buffer
            .slice(range)
            .expect("the coordinates are within");
        Ok(DenseHostTensor { metadata, buffer })
    }

    /// Returns a tensor of its own with the same elements.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`read`](Self::read).
    pub fn deep_copy(&self, allocator: &Arc<dyn HostAllocator>) -> Result<Self, Error> {
        Self::from_bytes(allocator, self.metadata.clone(), &self.read()?.bytes)
    }

    /// Copies the elements of a tensor of the same type and shape to this one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another, and those of [`read`](Self::read) and
    /// [`write`](Self::write).
    pub fn copy_from(&self, other: &DenseHostTensor) -> Result<(), Error> {
        if self.metadata != other.metadata {
            let (own, found) = (&self.metadata, &other.metadata);
            let message = format!("a tensor of {own} can't take the elements of one of {found}");
            return Err(Error::invalid_argument(message));
        }
        // Reading first: a tensor that is given to itself is refused, not deadlocked.
        let from = other.read()?;
        self.write()?.bytes.copy_from_slice(&from.bytes);
        Ok(())
    }

    /// Returns the tensor as it is printed: `DenseHostTensor dtype = i32, shape = [2], values = [1, 2]`.
    /// Of more than 16 elements the first 16 are shown.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn to_text(&self) -> Result<String, Error> {
        let reading = self.read()?;
        let mut text = format!(
            "DenseHostTensor dtype = {}, shape = {}, values = ",
            self.dtype(),
            self.shape()
        );
        with_element!(self.dtype(), T => {
            let elements = reading.elements::<T>()?;
            print_elements(&elements[..elements.len().min(MAX_PRINTED)], elements.len(), &mut text)
                .expect("a string takes all");
        }, else ());
        Ok(text)
    }
}

/// Writes the first of `n_elements` elements as a list.
pub(crate) fn print_elements<T: Element>(
    elements: &[T],
    n_elements: usize,
    f: &mut dyn fmt::Write,
) -> fmt::Result {
    f.write_char('[')?;
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        element.print(f)?;
    }
    // The blank is the original's.
    f.write_str(if n_elements > elements.len() {
        ", ... ]"
    } else {
        "]"
    })
}

#[cold]
pub(crate) fn no_memory(metadata: &TensorMetadata) -> Error {
    Error::resource_exhausted(format!("Cannot allocate tensor of {metadata}"))
}

pub(crate) fn expect_dtype<T: Element>(metadata: &TensorMetadata) -> Result<(), Error> {
    metadata.expect_dtype(T::DTYPE)
}

/// The elements of a tensor, for reading.
#[derive(Debug)]
pub struct DenseReading<'t> {
    metadata: &'t TensorMetadata,
    bytes: Reading<'t>,
}

impl<'t> DenseReading<'t> {
    /// Type and shape.
    pub(crate) fn metadata(&self) -> &'t TensorMetadata {
        self.metadata
    }

    /// Returns all elements, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s, or lie in memory where a `T` may not.
    #[inline]
    pub fn elements<T: Element>(&self) -> Result<&[T], Error> {
        self.metadata.expect_dtype(T::DTYPE)?;
        from_bytes(&self.bytes)
    }

    /// Returns the elements with their shape.
    ///
    /// # Errors
    ///
    /// See [`elements`](Self::elements).
    pub fn view<T: Element>(&self) -> Result<TensorView<'_, T>, Error> {
        let extents: Dims = self.metadata.shape.to_dims();
        TensorView::new(self.elements()?, &extents)
    }

    /// Returns the bytes of all elements.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The elements of a tensor, for writing.
#[derive(Debug)]
pub struct DenseWriting<'t> {
    metadata: &'t TensorMetadata,
    bytes: Writing<'t>,
}

impl<'t> DenseWriting<'t> {
    /// Type and shape.
    pub(crate) fn metadata(&self) -> &'t TensorMetadata {
        self.metadata
    }

    /// Returns all elements, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s, or lie in memory where a `T` may not.
    #[inline]
    pub fn elements_mut<T: Element>(&mut self) -> Result<&mut [T], Error> {
        self.metadata.expect_dtype(T::DTYPE)?;
        from_bytes_mut(&mut self.bytes)
    }

    /// Returns the elements with their shape.
    ///
    /// # Errors
    ///
    /// See [`elements_mut`](Self::elements_mut).
    pub fn view_mut<T: Element>(&mut self) -> Result<TensorViewMut<'_, T>, Error> {
        let extents: Dims = self.metadata.shape.to_dims();
        TensorViewMut::new(self.elements_mut()?, &extents)
    }

    /// Returns the bytes of all elements.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BF16, Bool, Complex, F16, Quantized};
    use tfrt_host::{HostContext, kernel::KernelRegistry};

    fn allocator() -> Arc<dyn HostAllocator> {
        let host = HostContext::builder(KernelRegistry::new()).build();
        host.allocator().clone()
    }

    fn of<T: Element>(extents: &[usize], elements: &[T]) -> DenseHostTensor {
        DenseHostTensor::from_slice(&allocator(), extents, elements).unwrap()
    }

    #[track_caller]
    fn prints(tensor: &DenseHostTensor, values: &str) {
        let text = tensor.to_text().unwrap();
        assert_eq!(text.split_once("values = ").unwrap().1, values);
    }

    #[test]
    fn tensors_print_as_the_original_prints_them() {
        let tensor = of(&[2, 2], &[1.0_f32, -0.5, 0.0, 1e10]);
        assert_eq!(
            tensor.to_text().unwrap(),
            "DenseHostTensor dtype = f32, shape = [2, 2], values = [1.000000e+00, -5.000000e-01, \
             0.000000e+00, 1.000000e+10]"
        );
        prints(&of(&[2], &[Bool::from(true), false.into()]), "[1, 0]");
        prints(&of(&[2], &[-1_i8, 2]), "[-1, 2]");
        prints(&of(&[1], &[F16(7)]), "[fp16(7)]");
        prints(&of(&[1], &[BF16(8)]), "[bf16(8)]");
        prints(&of(&[1], &[Quantized(2_u8)]), "[qu8(2)]");
        let complex = Complex {
            real: 1.0_f64,
            imaginary: -2.0,
        };
        prints(&of(&[1], &[complex]), "[(1.000000e+00,-2.000000e+00)]");
        prints(&of::<i32>(&[0], &[]), "[]");
        let many: Vec<i32> = (0..17).collect();
        let first = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15";
        prints(&of(&[17], &many), &format!("[{first}, ... ]"));
        prints(&of(&[16], &many[..16]), &format!("[{first}]"));
    }

    #[test]
    fn reshaped_tensors_and_chips_share_elements() {
        let tensor = of(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let row = tensor.chip(&[1]).unwrap();
        row.write().unwrap().elements_mut::<i32>().unwrap()[0] = 40;
        prints(&tensor, "[1, 2, 3, 40, 5, 6]");
        prints(&tensor.chip(&[1, 2]).unwrap(), "[6]");
        assert!(tensor.chip(&[2]).is_err());
        let shape = TensorShape::new(&[3, 2]).unwrap();
        let reshaped = tensor.reshape(shape).unwrap();
        assert!(reshaped.buffer().overlaps(tensor.buffer()));
        assert!(tensor.reshape(TensorShape::SCALAR).is_err());
        assert_eq!(tensor.flatten().shape().to_string(), "[6]");
        assert_eq!(of(&[], &[1]).flatten().shape().to_string(), "[1]");
        let copy = tensor.deep_copy(&allocator()).unwrap();
        assert!(!copy.buffer().overlaps(tensor.buffer()));
        assert!(tensor.copy_from(&row).is_err());
        assert!(tensor.copy_from(&tensor).is_err());
        tensor.copy_from(&copy).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let tensor = of(&[2], &[1, 2]);
        let error = tensor.read().unwrap().elements::<f32>().unwrap_err();
        assert_eq!(
            error.message(),
            "expected a tensor of f32, found one of i32 [2]"
        );
        let buffer = tensor.buffer().slice(1..5).unwrap();
        let metadata = TensorMetadata::new(DType::I32, TensorShape::SCALAR);
        let error = DenseHostTensor::new(metadata.clone(), buffer).unwrap_err();
        assert_eq!(
            error.message(),
            "a tensor of i32 [] begins at a multiple of 4 bytes in memory, the buffer 1 bytes behind one"
        );
        let error = DenseHostTensor::new(metadata, tensor.buffer().clone()).unwrap_err();
        assert_eq!(
            error.message(),
            "a tensor of i32 [] takes 4 bytes, the buffer has 8"
        );
    }
}
