//! [`StringHostTensor`]: a tensor of strings.

use std::fmt;
use std::sync::Arc;

use tfrt_host::memory::MemoryReservation;
use tfrt_host::{DType, Error, HostAllocator};

use crate::text::MAX_PRINTED;
use crate::{TensorMetadata, TensorShape};

/// Number of strings from which on the text of a tensor says that there are more than it shows.
const ELIDED_FROM: usize = 33;

/// Memory of a string beside its bytes: its place in the list, and the heap's overhead of a block.
const BYTES_PER_STRING: usize = size_of::<Vec<u8>>() + 16;

/// Strings in row-major order; they need not be UTF-8. Clones share them until one is changed.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{StringHostTensor, TensorShape};
///
/// let tensor = StringHostTensor::new(TensorShape::new(&[2])?, vec![b"a".to_vec(), b"b".to_vec()])?;
/// assert_eq!(tensor.to_string(), r#"StringHostTensor shape = [2], values = ["a", "b"]"#);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StringHostTensor {
    metadata: TensorMetadata,
    // Invariant: as many as the shape says.
    strings: Arc<Vec<Vec<u8>>>,
    /// Reservation of memory for the strings, where there is a limit.
    aside: Option<Arc<MemoryReservation>>,
}

impl StringHostTensor {
    /// Returns a tensor of strings that are made one by one. Memory for them is reserved with the allocator as long
    /// as there is the tensor, so that a limit counts their memory on the heap before there are many of them.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the allocator has no memory for them, and those of [`new`](Self::new).
    pub fn collect(
        allocator: &Arc<dyn HostAllocator>,
        shape: TensorShape,
        strings: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<StringHostTensor, Error> {
        let (mut list, mut aside) = (Vec::new(), MemoryReservation::new(allocator));
        for string in strings {
            let is_refused = !aside.add(string.len().saturating_add(BYTES_PER_STRING));
            if is_refused || list.try_reserve(1).is_err() {
                let message = format!("Cannot allocate tensor of str {shape}");
                return Err(Error::resource_exhausted(message));
            }
            list.push(string);
        }
        let tensor = StringHostTensor::new(shape, list)?;
        Ok(StringHostTensor {
            aside: Some(Arc::new(aside)),
            ..tensor
        })
    }

    /// Returns a tensor of these strings, which no limit on memory counts.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as the shape says.
    pub fn new(shape: TensorShape, strings: Vec<Vec<u8>>) -> Result<StringHostTensor, Error> {
        if shape.n_elements() != Some(strings.len()) {
            let message = format!(
                "{} strings are not a tensor of shape {shape}",
                strings.len()
            );
            return Err(Error::invalid_argument(message));
        }
        Ok(StringHostTensor {
            metadata: TensorMetadata::new(DType::String, shape),
            strings: Arc::new(strings),
            aside: None,
        })
    }

    /// Type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        &self.metadata
    }

    /// Returns the strings with another shape, not copied.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shape does not have as many.
    pub fn reshape(&self, shape: TensorShape) -> Result<StringHostTensor, Error> {
        if shape.n_elements() != Some(self.strings.len()) {
            let own = &self.metadata.shape;
            let message = format!("a tensor of shape {own} can't be seen as one of {shape}");
            return Err(Error::invalid_argument(message));
        }
        Ok(StringHostTensor {
            metadata: TensorMetadata::new(DType::String, shape),
            strings: self.strings.clone(),
            aside: self.aside.clone(),
        })
    }

    /// Returns the strings, in row-major order.
    pub fn strings(&self) -> &[Vec<u8>] {
        &self.strings
    }

    /// Returns the strings for changes; copies them if they are shared.
    pub fn strings_mut(&mut self) -> &mut [Vec<u8>] {
        Arc::make_mut(&mut self.strings).as_mut_slice()
    }
}

/// `StringHostTensor shape = [2], values = ["a", "b"]`: at most 16 strings, as they are.
impl fmt::Display for StringHostTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "StringHostTensor shape = {}, values = [",
            self.metadata.shape
        )?;
        for (index, string) in self.strings.iter().take(MAX_PRINTED).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}\"{}\"", String::from_utf8_lossy(string))?;
        }
        f.write_str(if self.strings.len() >= ELIDED_FROM {
            ", ... ]"
        } else {
            "]"
        })
    }
}
