//! [`FixedRankShape`]: extents of a rank that is part of the type.

use std::fmt;

use tfrt_host::{Error, Heap, Value};

use crate::{TensorShape, text};

/// The extents of a tensor with `RANK` dimensions, 0 to 3 where it is in a program.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::{FixedRankShape, TensorShape};
///
/// let shape = FixedRankShape::<2>::new(&TensorShape::new(&[3, 4])?)?;
/// assert_eq!(shape.extents(), &[3, 4]);
/// let error = FixedRankShape::<1>::new(&TensorShape::new(&[3, 4])?).unwrap_err();
/// assert_eq!(error.message(), "shape [3, 4] has 2 dimensions, expected 1");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedRankShape<const RANK: usize>([usize; RANK]);

impl<const RANK: usize> FixedRankShape<RANK> {
    /// Returns the extents of a shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has more or fewer dimensions.
    pub fn new(shape: &TensorShape) -> Result<Self, Error> {
        let extents = shape.to_dims();
        match <[usize; RANK]>::try_from(extents.as_slice()) {
            Ok(extents) => Ok(FixedRankShape(extents)),
            Err(_) => {
                let rank = extents.len();
                let message = format!("shape {shape} has {rank} dimensions, expected {RANK}");
                Err(Error::invalid_argument(message))
            }
        }
    }

    /// Returns the extents, outermost first.
    pub fn extents(&self) -> &[usize; RANK] {
        &self.0
    }
}

/// `[3, 4]`; nothing between the brackets if there are no elements, as the original has it.
impl<const RANK: usize> fmt::Display for FixedRankShape<RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(&0) {
            true => f.write_str("[]"),
            false => text::list(self.0, f),
        }
    }
}

/// `values!(2 "!ts.fixed_rank_shape.2")` makes a `FixedRankShape<2>` a value of type `!ts.fixed_rank_shape.2`.
macro_rules! values {
    ($($rank:literal $name:literal),*) => {$(
        impl Value for FixedRankShape<$rank> {
            const NAME: &'static str = $name;
            type Storage = Heap;
        }
    )*};
}

values!(0 "!ts.fixed_rank_shape.0", 1 "!ts.fixed_rank_shape.1");
values!(2 "!ts.fixed_rank_shape.2", 3 "!ts.fixed_rank_shape.3");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_elements_no_extent_is_printed() {
        let printed = |extents: &[usize]| {
            let shape = TensorShape::new(extents).unwrap();
            FixedRankShape::<2>::new(&shape).unwrap().to_string()
        };
        assert_eq!(printed(&[2, 3]), "[2, 3]");
        assert_eq!(printed(&[2, 0]), "[]");
    }
}
