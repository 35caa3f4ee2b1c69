//! [`OwnedReading`], [`OwnedView`] and [`OwnedWriting`]: the elements of a [`Tensor`] together with a right to them that
//! borrows nothing.
//!
//! A [`View`](super::View) ends with a function. An array of another language, a thread or a device uses elements for
//! longer, and so holds one more handle to their memory, and the right to read or to write it, until it is dropped.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use tfrt_host::{DType, Error, memory};
use tfrt_tensor::{
    DenseHostTensor, Element, TensorMetadata, TensorShape, from_bytes, from_bytes_mut,
};

use super::Tensor;

/// The bytes of a tensor's elements, for reading, which keep the elements: for an array of another language, or a thread
/// or a device that reads them later. While one is there, a tensor that shares the elements is changed in memory of its
/// own.
///
/// It is `Send`, `Sync` and `'static`, and the elements stay at their address for as long as it lives, also when it is
/// moved. [`Tensor::view_owned`] is the same for elements of a type that is known when the program is compiled.
///
/// # Examples
///
/// A capsule for another language: an address, what lies there, and what has to be dropped in the end.
///
/// ```
/// use std::ffi::c_void;
/// use tfrt::{DType, OwnedReading, Tensor};
///
/// struct Capsule {
///     data: *const c_void,
///     dtype: DType,
///     extents: Vec<i64>,
///     owner: Box<OwnedReading>,
/// }
///
/// fn export(tensor: &Tensor) -> Result<Capsule, tfrt::Error> {
///     let owner = Box::new(tensor.read_owned()?);
///     Ok(Capsule {
///         data: owner.as_ptr().cast(),
///         dtype: owner.dtype(),
///         extents: owner.shape().extents().map(|extent| extent as i64).collect(),
///         owner,
///     })
/// }
///
/// let tensor = Tensor::from_slice(&[1, 2], &[1.5_f32, 2.5])?;
/// let capsule = export(&tensor)?;
/// drop(tensor);
/// assert_eq!((capsule.dtype, &capsule.extents[..]), (DType::F32, &[1, 2][..]));
/// assert_eq!(capsule.owner.elements::<f32>()?, [1.5, 2.5]);
/// assert_eq!(capsule.data, capsule.owner.as_ptr().cast());
/// # Ok::<(), tfrt::Error>(())
/// ```
pub struct OwnedReading {
    // Invariant: of the size of the bytes.
    metadata: TensorMetadata,
    bytes: memory::OwnedReading,
}

impl OwnedReading {
    pub(super) fn new(tensor: &DenseHostTensor) -> Result<Self, Error> {
        Ok(OwnedReading {
            metadata: tensor.metadata().clone(),
            bytes: tensor.buffer().clone().read_owned()?,
        })
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.metadata.dtype
    }

    /// Returns the extents.
    pub fn shape(&self) -> &TensorShape {
        &self.metadata.shape
    }

    /// Returns the elements, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s.
    pub fn elements<T: Element>(&self) -> Result<&[T], Error> {
        self.metadata.expect_dtype(T::DTYPE)?;
        from_bytes(&self.bytes)
    }

    /// Gives the right back, and returns a tensor of the elements.
    pub fn into_tensor(self) -> Tensor {
        tensor_of(self.metadata, self.bytes.into_buffer())
    }
}

impl Deref for OwnedReading {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for OwnedReading {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The elements of a tensor, for reading, which keep the elements: an [`OwnedReading`] that is a slice of `T`s.
///
/// # Examples
///
/// ```
/// use tfrt::Tensor;
///
/// let view = Tensor::from_slice(&[3], &[1_i64, 2, 3])?.view_owned::<i64>()?;
/// let sum = std::thread::spawn(move || view.iter().sum::<i64>());
/// assert_eq!(sum.join().unwrap(), 6);
/// # Ok::<(), tfrt::Error>(())
/// ```
pub struct OwnedView<T> {
    // Invariant: of `T`s.
    reading: OwnedReading,
    elements: PhantomData<[T]>,
}

impl<T: Element> OwnedView<T> {
    pub(super) fn new(tensor: &DenseHostTensor) -> Result<Self, Error> {
        let reading = OwnedReading::new(tensor)?;
        reading.elements::<T>()?;
        Ok(OwnedView {
            reading,
            elements: PhantomData,
        })
    }

    /// Returns the extents.
    pub fn shape(&self) -> &TensorShape {
        self.reading.shape()
    }

    /// Gives the right back, and returns a tensor of the elements.
    pub fn into_tensor(self) -> Tensor {
        self.reading.into_tensor()
    }
}

impl<T: Element> Deref for OwnedView<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let elements = self.reading.elements();
        elements.expect("they were `T`s when the view was made")
    }
}

impl<T: Element> AsRef<[T]> for OwnedView<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

/// The bytes of a tensor's elements, for writing, which nobody else has: for an array of another language, or a thread or
/// a device that writes them later.
///
/// It is `Send`, `Sync` and `'static`, and the elements stay at their address for as long as it lives, also when it is
/// moved.
///
/// # Examples
///
/// ```
/// use tfrt::{DType, Tensor};
///
/// let mut writing = Tensor::zeros(DType::F32, &[2])?.write_owned()?;
/// let writer = std::thread::spawn(move || {
///     writing.elements_mut::<f32>()?.copy_from_slice(&[1.0, 2.0]);
///     Ok::<Tensor, tfrt::Error>(writing.into_tensor())
/// });
/// assert_eq!(writer.join().unwrap()?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), tfrt::Error>(())
/// ```
pub struct OwnedWriting {
    // Invariant: of the size of the bytes.
    metadata: TensorMetadata,
    bytes: memory::OwnedWriting,
}

impl OwnedWriting {
    /// Takes a tensor over that nobody shares.
    pub(super) fn new(tensor: DenseHostTensor) -> Result<Self, Error> {
        Ok(OwnedWriting {
            metadata: tensor.metadata().clone(),
            bytes: tensor.into_buffer().write_owned()?,
        })
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.metadata.dtype
    }

    /// Returns the extents.
    pub fn shape(&self) -> &TensorShape {
        &self.metadata.shape
    }

    /// Returns the elements, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s.
    pub fn elements_mut<T: Element>(&mut self) -> Result<&mut [T], Error> {
        self.metadata.expect_dtype(T::DTYPE)?;
        from_bytes_mut(&mut self.bytes)
    }

    /// Gives the right back, and returns a tensor of the elements.
    pub fn into_tensor(self) -> Tensor {
        tensor_of(self.metadata, self.bytes.into_buffer())
    }
}

impl Deref for OwnedWriting {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for OwnedWriting {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// Returns the tensor that a right was taken of.
fn tensor_of(metadata: TensorMetadata, buffer: memory::HostBuffer) -> Tensor {
    let tensor = DenseHostTensor::new(metadata, buffer);
    tensor.expect("it was a tensor before").into()
}

impl fmt::Debug for OwnedReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedReading({})", self.metadata)
    }
}

impl<T> fmt::Debug for OwnedView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedView({})", self.reading.metadata)
    }
}

impl fmt::Debug for OwnedWriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedWriting({})", self.metadata)
    }
}
