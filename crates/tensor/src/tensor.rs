//! [`Tensor`]: a tensor of any format, the value of a register.

use std::fmt;

use tfrt_host::{Error, Heap, Value};

use crate::{
    CooHostTensor, DenseHostTensor, DeviceTensor, GrowableTensor, ObjectTensor, ScalarHostTensor,
    StringHostTensor, TensorMetadata,
};

/// Storage format of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorFormat {
    /// [`DenseHostTensor`]
    DenseHost,
    /// [`ScalarHostTensor`]
    ScalarHost,
    /// [`CooHostTensor`]
    CooHost,
    /// [`StringHostTensor`]
    StringHost,
    /// [`GrowableTensor`]
    GrowableHost,
    /// [`DeviceTensor`]
    Device,
    /// [`ObjectTensor`]
    ObjectHost,
}

impl TensorFormat {
    /// Returns the name that programs and messages use.
    pub fn name(self) -> &'static str {
        match self {
            TensorFormat::DenseHost => "DenseHost",
            TensorFormat::ScalarHost => "ScalarHost",
            TensorFormat::CooHost => "CooHost",
            TensorFormat::StringHost => "StringHost",
            TensorFormat::GrowableHost => "GrowableHost",
            TensorFormat::Device => "Device",
            TensorFormat::ObjectHost => "ObjectHost",
        }
    }
}

impl fmt::Display for TensorFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A tensor in memory of the host or of a device. Clones share their elements.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{ScalarHostTensor, Tensor, TensorShape};
///
/// let tensor = Tensor::from(ScalarHostTensor::new(TensorShape::new(&[2])?, 1.5_f32));
/// assert_eq!(tensor.metadata().to_string(), "f32 [2]");
/// let error = tensor.as_dense().unwrap_err();
/// assert_eq!(error.message(), "expected a DenseHost tensor, found a ScalarHost tensor of f32 [2]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Tensor {
    /// Elements in a row.
    Dense(DenseHostTensor),
    /// Elements that are all the same.
    Scalar(ScalarHostTensor),
    /// Elements of which most are 0.
    Coo(CooHostTensor),
    /// Strings.
    String(StringHostTensor),
    /// Elements with room for more behind them.
    Growable(GrowableTensor),
    /// Elements in memory that only a device reads: [`transfer`](crate::transfer) brings them to the host.
    Device(DeviceTensor),
    /// Elements that are counted objects: handles of resources, and variants.
    Object(ObjectTensor),
}

impl Tensor {
    /// Type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        match self {
            Tensor::Dense(tensor) => tensor.metadata(),
            Tensor::Scalar(tensor) => tensor.metadata(),
            Tensor::Coo(tensor) => tensor.metadata(),
            Tensor::String(tensor) => tensor.metadata(),
            Tensor::Growable(tensor) => tensor.metadata(),
            Tensor::Device(tensor) => tensor.metadata(),
            Tensor::Object(tensor) => tensor.metadata(),
        }
    }

    /// Returns the storage format of the elements.
    pub fn format(&self) -> TensorFormat {
        match self {
            Tensor::Dense(_) => TensorFormat::DenseHost,
            Tensor::Scalar(_) => TensorFormat::ScalarHost,
            Tensor::Coo(_) => TensorFormat::CooHost,
            Tensor::String(_) => TensorFormat::StringHost,
            Tensor::Growable(_) => TensorFormat::GrowableHost,
            Tensor::Device(_) => TensorFormat::Device,
            Tensor::Object(_) => TensorFormat::ObjectHost,
        }
    }

    /// Returns the dense tensor that this is. Of one that grows it is a copy, made once.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another format, or on a device; `ResourceExhausted` if there is no memory for a
    /// copy.
    #[inline]
    pub fn as_dense(&self) -> Result<&DenseHostTensor, Error> {
        match self {
            Tensor::Dense(tensor) => Ok(tensor),
            Tensor::Growable(tensor) => tensor.as_dense(),
            _ => Err(self.is_not(TensorFormat::DenseHost)),
        }
    }

    /// Returns the sparse tensor that this is.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another format.
    pub fn as_coo(&self) -> Result<&CooHostTensor, Error> {
        match self {
            Tensor::Coo(tensor) => Ok(tensor),
            _ => Err(self.is_not(TensorFormat::CooHost)),
        }
    }

    /// Returns the tensor of strings that this is.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another format.
    pub fn as_strings(&self) -> Result<&StringHostTensor, Error> {
        match self {
            Tensor::String(tensor) => Ok(tensor),
            _ => Err(self.is_not(TensorFormat::StringHost)),
        }
    }

    /// Returns the tensor of objects that this is.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another format.
    #[inline]
    pub fn as_object(&self) -> Result<&ObjectTensor, Error> {
        match self {
            Tensor::Object(tensor) => Ok(tensor),
            _ => Err(self.is_not(TensorFormat::ObjectHost)),
        }
    }

    #[cold]
    fn is_not(&self, expected: TensorFormat) -> Error {
        let (found, metadata) = (self.format(), self.metadata());
        if let Tensor::Device(tensor) = self {
            let name = tensor.device().name();
            return Error::invalid_argument(format!(
                "expected a {expected} tensor, found a tensor of {metadata} on the device {name}: transfer it to the host"
            ));
        }
        let article = |format: TensorFormat| match format {
            TensorFormat::ObjectHost => "an",
            _ => "a",
        };
        let (of_expected, of_found) = (article(expected), article(found));
        Error::invalid_argument(format!(
            "expected {of_expected} {expected} tensor, found {of_found} {found} tensor of {metadata}"
        ))
    }

    /// Returns the tensor as it is printed.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing its elements.
    pub fn to_text(&self) -> Result<String, Error> {
        match self {
            Tensor::Dense(tensor) => tensor.to_text(),
            Tensor::Scalar(tensor) => Ok(tensor.to_string()),
            Tensor::Coo(tensor) => tensor.to_text(),
            Tensor::String(tensor) => Ok(tensor.to_string()),
            Tensor::Growable(tensor) => tensor.as_dense()?.to_text(),
            Tensor::Device(tensor) => Ok(tensor.to_string()),
            Tensor::Object(tensor) => Ok(tensor.to_string()),
        }
    }
}

/// `formats!(DenseHostTensor => Dense)` makes a `Tensor::Dense` of a `DenseHostTensor`.
macro_rules! formats {
    ($($type:ident => $variant:ident),*) => {$(
        impl From<$type> for Tensor {
            fn from(tensor: $type) -> Tensor {
                Tensor::$variant(tensor)
            }
        }
    )*};
}

formats!(DenseHostTensor => Dense, ScalarHostTensor => Scalar, CooHostTensor => Coo, StringHostTensor => String);
formats!(GrowableTensor => Growable, DeviceTensor => Device, ObjectTensor => Object);

impl Value for Tensor {
    const NAME: &'static str = "!t.tensor";
    type Storage = Heap;
    const RECORD: &'static tfrt_host::Record<Self> = {
        static RECORD: tfrt_host::Record<Tensor> = tfrt_host::Record::new();
        &RECORD
    };
}
