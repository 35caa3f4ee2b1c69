//! [`StringHostTensor`]: a tensor of strings.

use std::fmt;
use std::sync::Arc;

use tfrt_host::{DType, Error};

use crate::text::MAX_PRINTED;
use crate::{TensorMetadata, TensorShape};

/// From so many strings on, the text of a tensor says that there are more than it shows.
const ELIDED_FROM: usize = 33;

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
}

impl StringHostTensor {
    /// Returns a tensor of these strings.
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
        })
    }

    /// Type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        &self.metadata
    }

    /// The same strings with another shape, not copied.
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
        })
    }

    /// The strings, in row-major order.
    pub fn strings(&self) -> &[Vec<u8>] {
        &self.strings
    }

    /// The strings, to be changed; copies them if they are shared.
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
