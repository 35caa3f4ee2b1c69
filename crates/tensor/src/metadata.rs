//! [`TensorMetadata`]: type and shape of a tensor.

use std::fmt;

use smallvec::SmallVec;
use tfrt_host::{DType, Error};
use tfrt_ops::{Dim, Fact};

use crate::TensorShape;

/// Type of a tensor's elements, and its shape.
///
/// # Examples
///
/// ```
/// use tfrt_host::DType;
/// use tfrt_tensor::{TensorMetadata, TensorShape};
///
/// let metadata = TensorMetadata::new(DType::I32, TensorShape::new(&[2, 3])?);
/// assert_eq!(metadata.to_string(), "i32 [2, 3]");
/// assert_eq!(metadata.len_bytes()?, 24);
/// let words = metadata.to_words();
/// assert_eq!(words, [8, 2, 3]);
/// assert_eq!(TensorMetadata::from_words(&words)?, metadata);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMetadata {
    /// The type of the elements.
    pub dtype: DType,
    /// The extents.
    pub shape: TensorShape,
}

impl TensorMetadata {
    /// Puts metadata together.
    #[inline]
    pub fn new(dtype: DType, shape: TensorShape) -> TensorMetadata {
        TensorMetadata { dtype, shape }
    }

    /// Returns the fact about such a tensor, for the rules of rows.
    pub fn to_fact(&self) -> Fact {
        let extents = self.shape.extents().map(Dim::from);
        Fact::new(Some(self.dtype), Some(extents.collect()))
    }

    /// Returns type and shape, if all of both are known.
    pub fn of_fact(fact: &Fact) -> Option<TensorMetadata> {
        let dims = fact.dims.as_ref()?.iter();
        let extents = dims.map(|dim| usize::try_from(dim.value()?).ok());
        let extents: SmallVec<[usize; 6]> = extents.collect::<Option<_>>()?;
        let shape = TensorShape::new(&extents).ok()?;
        Some(TensorMetadata::new(fact.dtype?, shape))
    }

    /// Returns the number of elements.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if no memory could hold them.
    #[inline]
    pub fn n_elements(&self) -> Result<usize, Error> {
        self.shape.n_elements().ok_or_else(|| self.too_large())
    }

    /// Checks the number of elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shape has more or fewer, `ResourceExhausted` if no memory could hold them.
    pub fn expect_elements(&self, found: usize) -> Result<(), Error> {
        let expected = self.n_elements()?;
        if expected == found {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "a tensor of {self} has {expected} elements, found {found}"
        )))
    }

    /// Returns the number of bytes of the elements in a dense tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if elements have no size; `ResourceExhausted` if no memory could hold them.
    #[inline]
    pub fn len_bytes(&self) -> Result<usize, Error> {
        let Some(size) = self.dtype.size_bytes() else {
            let message = format!("elements of type {} are not of one size", self.dtype);
            return Err(Error::invalid_argument(message));
        };
        let len_bytes = self.n_elements()?.checked_mul(size);
        len_bytes
            .filter(|len| isize::try_from(*len).is_ok())
            .ok_or_else(|| self.too_large())
    }

    /// Checks the type of the elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is another.
    #[inline]
    pub fn expect_dtype(&self, dtype: DType) -> Result<(), Error> {
        match self.dtype == dtype {
            true => Ok(()),
            false => Err(self.wrong_dtype(dtype)),
        }
    }

    #[cold]
    fn wrong_dtype(&self, expected: DType) -> Error {
        Error::invalid_argument(format!(
            "expected a tensor of {expected}, found one of {self}"
        ))
    }

    fn too_large(&self) -> Error {
        Error::resource_exhausted(format!("a tensor of {self} does not fit any memory"))
    }

    /// Returns the metadata as words for files: the number of the type, then the extents.
    pub fn to_words(&self) -> Vec<u64> {
        let dtype = u64::from(self.dtype.byte());
        let extents = self.shape.extents().map(|extent| extent as u64);
        std::iter::once(dtype).chain(extents).collect()
    }

    /// Reads metadata from the words of [`to_words`](Self::to_words).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown type, and for extents that a shape can't have.
    pub fn from_words(words: &[u64]) -> Result<TensorMetadata, Error> {
        let Some((dtype, extents)) = words.split_first() else {
            let message = "metadata of a tensor begins with its type, found nothing";
            return Err(Error::invalid_argument(message));
        };
        let known = u8::try_from(*dtype).ok().and_then(DType::from_byte);
        let dtype = known.ok_or_else(|| {
            Error::invalid_argument(format!("no type of elements has the number {dtype}"))
        })?;
        let extents: Result<Vec<i64>, _> =
            extents.iter().map(|word| i64::try_from(*word)).collect();
        let extents = extents
            .map_err(|_| Error::invalid_argument("an extent exceeds the largest 64-bit integer"))?;
        let shape = TensorShape::from_i64(&extents)?;
        Ok(TensorMetadata { dtype, shape })
    }
}

/// `i32 [2, 3]`
impl fmt::Display for TensorMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use tfrt_host::ErrorCode;

    use super::*;

    #[test]
    fn what_fits_no_memory_is_an_error() {
        let large = TensorShape::new(&[1 << 40, 1 << 22]).unwrap();
        assert!(
            TensorMetadata::new(DType::I8, large.clone())
                .len_bytes()
                .is_ok()
        );
        let error = TensorMetadata::new(DType::F32, large)
            .len_bytes()
            .unwrap_err();
        assert_eq!(
            error.message(),
            "a tensor of f32 [1099511627776, 4194304] does not fit any memory"
        );
        assert_eq!(error.code(), ErrorCode::ResourceExhausted);
        let strings = TensorMetadata::new(DType::String, TensorShape::SCALAR);
        assert!(strings.len_bytes().is_err());
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for words in [&[][..], &[0], &[300], &[8, u64::MAX]] {
            assert!(TensorMetadata::from_words(words).is_err(), "{words:?}");
        }
    }
}
