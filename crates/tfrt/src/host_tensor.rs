//! [`Tensor`]: numbers or strings in memory of the host, as models take and give them.
//!
//! It stands on the tensors of the layer below ([`tfrt_tensor`]), of which there are more kinds: here elements are always
//! all there, in row-major order. Whoever changes some of them gets a copy first if somebody else reads them, or if
//! their memory is for reading only.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tfrt_async::SystemAllocator;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error, HostAllocator};
use tfrt_tensor::{
    DenseHostTensor, Element, StringHostTensor, Tensor as Layered, TensorFormat, TensorMetadata,
    TensorShape, convert, to_bytes,
};

mod debug;
#[cfg(feature = "ndarray")]
mod ndarray;
mod owned;
mod view;
mod writing;

pub use owned::{OwnedReading, OwnedView, OwnedWriting};
pub use view::View;

/// A tensor in memory of the host: numbers or strings, with a type and a shape. Clones share the elements, until one of
/// them is changed.
///
/// | From | Elements |
/// | --- | --- |
/// | [`from_slice`](Self::from_slice), [`from_bytes`](Self::from_bytes), [`from_strings`](Self::from_strings) | are copied |
/// | [`from_vec`](Self::from_vec), `Tensor::from(vec)` | stay where the vector has them, and go when the last tensor does |
/// | [`from_owner`](Self::from_owner) | stay where their owner has them, such as a mapped file |
/// | an array of the crate `ndarray` (feature `ndarray`) | stay if they are in row-major order, else are put in order |
///
/// | To | Elements |
/// | --- | --- |
/// | [`view`](Self::view), [`strings`](Self::strings), an array view of `ndarray` ([`View`]) | are lent for reading |
/// | [`read_owned`](Self::read_owned), [`view_owned`](Self::view_owned) | are read by who borrows nothing: another language, say |
/// | [`make_mut`](Self::make_mut), [`get_mut`](Self::get_mut), [`write_owned`](Self::write_owned) | are written where they are, if nobody shares them |
/// | [`to_vec`](Self::to_vec), [`copy_to_slice`](Self::copy_to_slice), an array of `ndarray` | are copied |
///
/// # Examples
///
/// ```
/// use tfrt::{DType, Tensor};
///
/// let x = Tensor::from_vec(&[2, 2], vec![1.0_f32, 2.0, 3.0, 4.0])?;
/// assert_eq!((x.dtype(), x.shape().to_string()), (DType::F32, "[2, 2]".to_owned()));
///
/// // A view is a slice that knows the shape.
/// let view = x.view::<f32>()?;
/// assert_eq!(view[[1, 0]], 3.0);
/// assert_eq!(view.iter().sum::<f32>(), 10.0);
///
/// let words = Tensor::from_strings(&[2], ["to", "be"])?;
/// assert_eq!(words.strings()?[1], b"be");
/// assert_eq!(format!("{words:?}"), r#"Tensor(str [2], ["to", "be"])"#);
/// # drop(view);
///
/// let error = x.view::<i64>().unwrap_err();
/// assert_eq!(error.message(), "expected a tensor of i64, found one of f32 [2, 2]");
/// # Ok::<(), tfrt::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(
    // Invariant: dense, or strings.
    Layered,
);

/// Returns the allocator of tensors that are made by themselves, and not by a request: no limit counts them.
fn allocator() -> &'static Arc<dyn HostAllocator> {
    static SYSTEM: OnceLock<Arc<dyn HostAllocator>> = OnceLock::new();
    SYSTEM.get_or_init(|| Arc::new(SystemAllocator::new()))
}

/// The vector behind a tensor.
struct Owner<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        to_bytes(&self.0)
    }
}

impl Tensor {
    /// Copies elements, in row-major order, into a tensor of these extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as the extents say, `ResourceExhausted` if there is no memory for them.
    pub fn from_slice<T: Element>(extents: &[usize], elements: &[T]) -> Result<Tensor, Error> {
        DenseHostTensor::from_slice(allocator(), extents, elements).map(Tensor::from)
    }

    /// Takes a vector over, without a copy, as the elements of a tensor of these extents, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as the extents say.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Tensor;
    ///
    /// let elements = vec![0.5_f32; 6];
    /// let address = elements.as_ptr();
    /// let x = Tensor::from_vec(&[2, 3], elements)?;
    /// assert_eq!(x.view::<f32>()?.as_ptr(), address);
    /// # Ok::<(), tfrt::Error>(())
    /// ```
    pub fn from_vec<T: Element>(extents: &[usize], elements: Vec<T>) -> Result<Tensor, Error> {
        let metadata = TensorMetadata::new(T::DTYPE, TensorShape::new(extents)?);
        metadata.expect_elements(elements.len())?;
        DenseHostTensor::new(metadata, HostBuffer::from_owner(Owner(elements))).map(Tensor::from)
    }

    /// Copies elements given as bytes, in the order of the processor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as type and extents say, `ResourceExhausted` if there is no memory for them.
    pub fn from_bytes(dtype: DType, extents: &[usize], bytes: &[u8]) -> Result<Tensor, Error> {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents)?);
        DenseHostTensor::from_bytes(allocator(), metadata, bytes).map(Tensor::from)
    }

    /// Sees the bytes of an owner, in the order of the processor, as a tensor: nothing is copied, and the owner is dropped
    /// after the last tensor that shares them.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as type and extents say, or begin in memory where such an element may not.
    pub fn from_owner(
        dtype: DType,
        extents: &[usize],
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Tensor, Error> {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents)?);
        DenseHostTensor::new(metadata, HostBuffer::from_owner(owner)).map(Tensor::from)
    }

    /// Makes a tensor of strings, which need not be UTF-8.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as the extents say.
    pub fn from_strings<S: Into<Vec<u8>>>(
        extents: &[usize],
        strings: impl IntoIterator<Item = S>,
    ) -> Result<Tensor, Error> {
        let strings = strings.into_iter().map(Into::into).collect();
        StringHostTensor::new(TensorShape::new(extents)?, strings).map(Tensor::from)
    }

    /// Makes a tensor without dimensions, of one element.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::from_vec(&[], vec![value]).expect("one element fills no dimensions")
    }

    /// Makes a tensor of zeros, such as one that a call is to write its output to.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a type without numbers, `ResourceExhausted` if there is no memory for them.
    pub fn zeros(dtype: DType, extents: &[usize]) -> Result<Tensor, Error> {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents)?);
        DenseHostTensor::zeroed(allocator(), metadata).map(Tensor::from)
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.metadata().dtype
    }

    /// Returns the extents, from the outermost dimension to the innermost.
    pub fn shape(&self) -> &TensorShape {
        &self.metadata().shape
    }

    /// Returns type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        self.0.metadata()
    }

    /// Returns the number of elements.
    pub fn n_elements(&self) -> usize {
        self.shape().n_elements().unwrap_or(0)
    }

    /// Lends the elements for reading, as a slice that knows its shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s; `FailedPrecondition` if a kernel is writing them.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>, Error> {
        self.metadata().expect_dtype(T::DTYPE)?;
        View::new(self.as_dense()?)
    }

    /// Takes a right to read the elements that borrows nothing, and keeps them.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is a tensor of strings; `FailedPrecondition` if a kernel is writing it.
    pub fn read_owned(&self) -> Result<OwnedReading, Error> {
        OwnedReading::new(self.as_dense()?)
    }

    /// Takes a right to read the elements, as a slice, that borrows nothing, and keeps them.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s; `FailedPrecondition` if a kernel is writing them.
    pub fn view_owned<T: Element>(&self) -> Result<OwnedView<T>, Error> {
        OwnedView::new(self.as_dense()?)
    }

    /// Copies the elements, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s; `FailedPrecondition` if a kernel is writing them.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        Ok(self.view::<T>()?.to_vec())
    }

    /// Copies the elements, in row-major order, to memory of the caller's that is no tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s, or if there is room for more or fewer of them; `FailedPrecondition` if a kernel is
    /// writing them.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Tensor;
    ///
    /// let mut kept = [0.0_f32; 4];
    /// Tensor::from([1.0_f32, 2.0]).copy_to_slice(&mut kept[2..])?;
    /// assert_eq!(kept, [0.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), tfrt::Error>(())
    /// ```
    pub fn copy_to_slice<T: Element>(&self, target: &mut [T]) -> Result<(), Error> {
        let view = self.view::<T>()?;
        if view.len() != target.len() {
            let (found, room) = (self.metadata(), target.len());
            let message = format!("a tensor of {found} can't be copied to {room} elements");
            return Err(Error::invalid_argument(message));
        }
        target.copy_from_slice(&view);
        Ok(())
    }

    /// Returns the only element.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no `T`, or if there is not one; `FailedPrecondition` if a kernel is writing it.
    pub fn item<T: Element>(&self) -> Result<T, Error> {
        match self.view::<T>()?[..] {
            [only] => Ok(only),
            _ => Err(Error::invalid_argument(format!(
                "expected a tensor of one element, found {}",
                self.metadata()
            ))),
        }
    }

    /// Returns the strings, in row-major order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is a tensor of numbers.
    pub fn strings(&self) -> Result<&[Vec<u8>], Error> {
        match &self.0 {
            Layered::String(strings) => Ok(strings.strings()),
            other => {
                let found = other.metadata();
                let message = format!("expected a tensor of strings, found one of {found}");
                Err(Error::invalid_argument(message))
            }
        }
    }

    /// Sees the elements, which are shared, with other extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the extents ask for another number of them.
    pub fn reshape(&self, extents: &[usize]) -> Result<Tensor, Error> {
        let shape = TensorShape::new(extents)?;
        match &self.0 {
            Layered::String(strings) => strings.reshape(shape).map(Tensor::from),
            _ => self.as_dense()?.reshape(shape).map(Tensor::from),
        }
    }

    /// Returns the tensor of numbers of the layer below.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is a tensor of strings.
    pub fn as_dense(&self) -> Result<&DenseHostTensor, Error> {
        match &self.0 {
            Layered::Dense(dense) => Ok(dense),
            other => Err(not_numbers(other)),
        }
    }

    /// Returns the tensor of the layer below.
    pub fn as_inner(&self) -> &Layered {
        &self.0
    }
}

#[cold]
fn not_numbers(found: &Layered) -> Error {
    let found = found.metadata();
    Error::invalid_argument(format!(
        "expected a tensor of numbers, found one of {found}"
    ))
}

/// Writes type, shape and the first elements, as programs print tensors.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_text() {
            Ok(text) => f.write_str(&text),
            Err(_) => write!(f, "{} that is being written", self.metadata()),
        }
    }
}

impl From<DenseHostTensor> for Tensor {
    fn from(tensor: DenseHostTensor) -> Tensor {
        Tensor(tensor.into())
    }
}

impl From<StringHostTensor> for Tensor {
    fn from(tensor: StringHostTensor) -> Tensor {
        Tensor(tensor.into())
    }
}

impl From<&Tensor> for Tensor {
    fn from(tensor: &Tensor) -> Tensor {
        tensor.clone()
    }
}

/// Takes a vector over as a tensor of one dimension.
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(elements: Vec<T>) -> Tensor {
        let extents = [elements.len()];
        Tensor::from_vec(&extents, elements).expect("there are as many")
    }
}

/// Copies an array to a tensor of one dimension.
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(elements: [T; N]) -> Tensor {
        Tensor::from(Vec::from(elements))
    }
}

/// Takes a tensor of the layer below. Of one that is kept in another way the elements are written out.
impl TryFrom<Layered> for Tensor {
    type Error = Error;

    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory to write elements out.
    fn try_from(tensor: Layered) -> Result<Tensor, Error> {
        match tensor {
            Layered::Dense(_) | Layered::String(_) => Ok(Tensor(tensor)),
            other => convert::to_format(&other, TensorFormat::DenseHost, allocator()).map(Tensor),
        }
    }
}

impl From<Tensor> for Layered {
    fn from(tensor: Tensor) -> Layered {
        tensor.0
    }
}
