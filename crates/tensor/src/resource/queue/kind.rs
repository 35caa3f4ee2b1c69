//! [`QueueKind`]: what the tuples of a queue must be.

use tfrt_host::{DType, Error};

use super::Element;
use crate::TensorShape;

/// Fixed properties of a [`FifoQueue`](super::FifoQueue).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueKind {
    /// The type of each tensor of a tuple.
    pub types: Vec<DType>,
    /// The shape of each tensor of a tuple; none at all if they may be of any.
    pub shapes: Vec<TensorShape>,
    /// The greatest number of tuples, if there is one.
    pub capacity: Option<usize>,
}

impl QueueKind {
    /// Checks that a tuple is of these types and shapes.
    pub(super) fn check(&self, element: &Element) -> Result<(), Error> {
        self.check_types(element.iter().map(|tensor| tensor.metadata().dtype))?;
        for (index, (tensor, shape)) in element.iter().zip(&self.shapes).enumerate() {
            let found = &tensor.metadata().shape;
            if found != shape {
                let (shape, found) = (extents(shape), extents(found));
                return Err(Error::invalid_argument(format!(
                    "Shape mismatch in tuple component {index}. Expected {shape}, got {found}"
                )));
            }
        }
        Ok(())
    }

    /// Checks that tuples are of these types.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not.
    pub fn check_types(&self, types: impl ExactSizeIterator<Item = DType>) -> Result<(), Error> {
        if types.len() != self.types.len() {
            return Err(Error::invalid_argument(format!(
                "Wrong number of components in tuple. Expected {}, got {}",
                self.types.len(),
                types.len()
            )));
        }
        for (index, (found, own)) in types.zip(&self.types).enumerate() {
            if found != *own {
                return Err(Error::invalid_argument(format!(
                    "Type mismatch in tuple component {index}. Expected {own}, got {found}"
                )));
            }
        }
        Ok(())
    }

    /// Returns the types as messages have them: `f32, i64`.
    pub fn types_text(&self) -> String {
        let all: Vec<String> = self.types.iter().map(ToString::to_string).collect();
        all.join(", ")
    }

    /// Returns the shapes as messages have them: `[[2], [3,4]]`.
    pub fn shapes_text(&self) -> String {
        let all: Vec<String> = self.shapes.iter().map(extents).collect();
        format!("[{}]", all.join(", "))
    }
}

/// Writes extents as TensorFlow does: `[2,3]`.
fn extents(shape: &TensorShape) -> String {
    let all: Vec<String> = shape.extents().map(|extent| extent.to_string()).collect();
    format!("[{}]", all.join(","))
}
