//! Inputs that say where and how much: shapes, axes, paddings. They are integers of 32 or 64 bits.
//!
//! Metadata functions read them, too, if they are there.

use smallvec::SmallVec;
use tfrt_host::{DType, Error};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorShape};

use crate::call::Call;
use crate::definition::MetadataCall;

/// Integers of an input.
pub(super) type Integers = SmallVec<[i64; 8]>;

/// Metadata functions read no more integers than this, which are more than a tensor has dimensions.
const MOST_BEFORE: usize = 64;

/// The integers of a tensor, in row-major order; `what` says what they are.
fn integers(op: &str, tensor: &DenseHostTensor, what: &str) -> Result<Integers, Error> {
    let reading = tensor.read()?;
    match tensor.dtype() {
        DType::I32 => {
            let elements = reading.elements::<i32>()?.iter();
            Ok(elements.map(|element| i64::from(*element)).collect())
        }
        DType::I64 => Ok(Integers::from_slice(reading.elements::<i64>()?)),
        dtype => Err(no_integers(op, what, dtype)),
    }
}

#[cold]
fn no_integers(op: &str, what: &str, dtype: DType) -> Error {
    Error::invalid_argument(format!(
        "{op}: expected {what} of i32 or i64, found {dtype}"
    ))
}

fn expect_vector(op: &str, shape: &TensorShape, what: &str) -> Result<(), Error> {
    match shape.rank() {
        1 => Ok(()),
        _ => Err(Error::invalid_argument(format!(
            "{op}: expected {what} in a vector, found {shape}"
        ))),
    }
}

fn expect_one(op: &str, shape: &TensorShape, what: &str) -> Result<(), Error> {
    match shape.n_elements() {
        Some(1) => Ok(()),
        _ => Err(Error::invalid_argument(format!(
            "{op}: expected {what} in a tensor of one element, found {shape}"
        ))),
    }
}

impl MetadataCall<'_> {
    /// The integers of the input at `index`, as [`Call::integers`]; nothing if they are to come, or many.
    ///
    /// # Errors
    ///
    /// As of that, also if the integers are to come.
    pub(super) fn integers(&self, index: usize, what: &str) -> Result<Option<Integers>, Error> {
        let Some(metadata) = self.inputs.get(index) else {
            return Ok(None);
        };
        if !matches!(metadata.dtype, DType::I32 | DType::I64) {
            return Err(no_integers(self.op, what, metadata.dtype));
        }
        match self.handles.get(index).tensor() {
            Some(Ok(Tensor::Dense(tensor))) if tensor.n_elements() <= MOST_BEFORE => {
                integers(self.op, tensor, what).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The same, of a tensor of one dimension.
    ///
    /// # Errors
    ///
    /// As of [`integers`](Self::integers), and if there are more dimensions, or none.
    pub(super) fn vector(&self, index: usize, what: &str) -> Result<Option<Integers>, Error> {
        if let Some(metadata) = self.inputs.get(index) {
            expect_vector(self.op, &metadata.shape, what)?;
        }
        self.integers(index, what)
    }

    /// The only integer of the input at `index`.
    ///
    /// # Errors
    ///
    /// As of [`integers`](Self::integers), and if there are more, or none.
    pub(super) fn integer(&self, index: usize, what: &str) -> Result<Option<i64>, Error> {
        let read = self.integers(index, what)?;
        if let Some(metadata) = self.inputs.get(index) {
            expect_one(self.op, &metadata.shape, what)?;
        }
        Ok(read.and_then(|integers| integers.first().copied()))
    }
}

impl Call<'_> {
    /// The integers of the input at `index`, in row-major order; `what` says what they are.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no dense tensor of `i32` or `i64`.
    pub(super) fn integers(&self, index: usize, what: &str) -> Result<Integers, Error> {
        integers(self.op(), self.dense(index)?, what)
    }

    /// The same, of a tensor of one dimension.
    ///
    /// # Errors
    ///
    /// As of [`integers`](Self::integers), and if there are more dimensions, or none.
    pub(super) fn vector(&self, index: usize, what: &str) -> Result<Integers, Error> {
        expect_vector(self.op(), self.dense(index)?.shape(), what)?;
        self.integers(index, what)
    }

    /// The only integer of the input at `index`.
    ///
    /// # Errors
    ///
    /// As of [`integers`](Self::integers), and if there are more, or none.
    pub(super) fn integer(&self, index: usize, what: &str) -> Result<i64, Error> {
        let read = self.integers(index, what)?;
        expect_one(self.op(), self.dense(index)?.shape(), what)?;
        // There is one.
        Ok(read.first().copied().unwrap_or_default())
    }

    /// The dimension that the only integer of the input at `index` names in a tensor of this rank.
    ///
    /// # Errors
    ///
    /// As of [`integer`](Self::integer), and if there is no such dimension.
    pub(super) fn axis(&self, index: usize, rank: usize) -> Result<usize, Error> {
        let axis = self.integer(index, "an axis")?;
        named_axis(self.op(), axis, rank)
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

/// The same for an operation.
///
/// # Errors
///
/// `InvalidArgument` if there is no such dimension.
pub(super) fn named_axis(op: &str, axis: i64, rank: usize) -> Result<usize, Error> {
    dimension(axis, rank).ok_or_else(|| {
        Error::invalid_argument(format!(
            "{op}: there is no axis {axis} in a tensor of rank {rank}"
        ))
    })
}
