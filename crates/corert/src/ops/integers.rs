//! Inputs that say where and how much: shapes, axes, paddings. They are integers of 32 or 64 bits.

use smallvec::SmallVec;
use tfrt_host::{DType, Error};

use crate::call::Call;

/// Integers of an input.
pub(super) type Integers = SmallVec<[i64; 8]>;

impl Call<'_> {
    /// The integers of the input at `index`, in row-major order; `what` says what they are.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no dense tensor of `i32` or `i64`.
    pub(super) fn integers(&self, index: usize, what: &str) -> Result<Integers, Error> {
        let tensor = self.dense(index)?;
        let reading = tensor.read()?;
        match tensor.dtype() {
            DType::I32 => {
                let elements = reading.elements::<i32>()?.iter();
                Ok(elements.map(|element| i64::from(*element)).collect())
            }
            DType::I64 => Ok(Integers::from_slice(reading.elements::<i64>()?)),
            dtype => Err(self.error(format_args!("expected {what} of i32 or i64, found {dtype}"))),
        }
    }

    /// The same, of a tensor of one dimension.
    ///
    /// # Errors
    ///
    /// As of [`integers`](Self::integers), and if there are more dimensions, or none.
    pub(super) fn vector(&self, index: usize, what: &str) -> Result<Integers, Error> {
        let shape = self.dense(index)?.shape();
        match shape.rank() {
            1 => self.integers(index, what),
            _ => Err(self.error(format_args!("expected {what} in a vector, found {shape}"))),
        }
    }

    /// The only integer of the input at `index`.
    ///
    /// # Errors
    ///
    /// As of [`integers`](Self::integers), and if there are more, or none.
    pub(super) fn integer(&self, index: usize, what: &str) -> Result<i64, Error> {
        match self.integers(index, what)?[..] {
            [integer] => Ok(integer),
            _ => {
                let shape = self.dense(index)?.shape();
                Err(self.error(format_args!(
                    "expected {what} in a tensor of one element, found {shape}"
                )))
            }
        }
    }

    /// The dimension that the only integer of the input at `index` names in a tensor of this rank.
    ///
    /// # Errors
    ///
    /// As of [`integer`](Self::integer), and if there is no such dimension.
    pub(super) fn axis(&self, index: usize, rank: usize) -> Result<usize, Error> {
        let axis = self.integer(index, "an axis")?;
        dimension(axis, rank).ok_or_else(|| {
            self.error(format_args!(
                "there is no axis {axis} in a tensor of rank {rank}"
            ))
        })
    }

    /// An error that begins with the operation's name.
    #[cold]
    pub(super) fn error(&self, message: std::fmt::Arguments<'_>) -> Error {
        Error::invalid_argument(format!("{}: {message}", self.op()))
    }
}

/// The dimension that an axis names, which is counted from behind if it is negative.
pub(super) fn dimension(axis: i64, rank: usize) -> Option<usize> {
    let from_front = match axis < 0 {
        true => axis.checked_add(i64::try_from(rank).ok()?)?,
        false => axis,
    };
    usize::try_from(from_front)
        .ok()
        .filter(|dimension| *dimension < rank)
}
