//! [`Inputs`]: the operands of an operation.

use std::fmt;

use tfrt_host::{AnyAsyncValue, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::{
    Bool, DType, DenseHostTensor, Dims, NoValue, Optional, Sequence, StringHostTensor, Tensor,
};

use super::Workspace;

/// The operands of an operation, some of which may be left out.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    operation: &'static str,
    operands: &'a [AnyAsyncValue],
    /// The indices of operands that were prepared and are not among these.
    taken: &'static [usize],
    workspace: &'a Workspace<'a>,
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = self.operands.iter().map(AnyAsyncValue::type_name);
        f.debug_list().entries(types).finish()
    }
}

impl<'a> Inputs<'a> {
    pub(super) fn new(
        operation: &'static str,
        operands: &'a [AnyAsyncValue],
        workspace: &'a Workspace<'a>,
    ) -> Inputs<'a> {
        Inputs {
            operation,
            operands,
            taken: &[],
            workspace,
        }
    }

    /// Returns the last operand, of any type.
    pub(super) fn last(&self) -> Option<&'a AnyAsyncValue> {
        self.operands.last()
    }

    /// Returns the operands without the last one, which was prepared of those at these indices.
    pub(super) fn without_last(self, taken: &'static [usize]) -> Inputs<'a> {
        let operands = self.operands.split_last().map_or(&[][..], |(_, rest)| rest);
        Inputs {
            operands,
            taken,
            ..self
        }
    }

    /// Returns all operands, with others in place of those that are left out.
    pub(super) fn or(&self, others: &[AnyAsyncValue]) -> Vec<AnyAsyncValue> {
        let at = |index| self.any(index).or_else(|| others.get(index));
        let none = || AnyAsyncValue::new(NoValue);
        let n = self.len().max(others.len());
        (0..n)
            .map(|index| at(index).cloned().unwrap_or_else(none))
            .collect()
    }

    /// Returns other operands of this operation.
    pub(super) fn of(self, operands: &'a [AnyAsyncValue]) -> Inputs<'a> {
        Inputs {
            operands,
            taken: &[],
            ..self
        }
    }

    /// Returns the number of operands, with those that are left out before the last.
    pub fn len(&self) -> usize {
        let n = self.operands.len();
        // Places in front of the last operand are counted, whether something stands there or not.
        self.taken
            .iter()
            .fold(n, |n, place| n + usize::from(*place < n))
    }

    /// Returns whether there are no operands.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the operand at `index`, of any type, unless it is left out.
    pub fn any(&self, index: usize) -> Option<&'a AnyAsyncValue> {
        let place = match self.taken {
            [] => index,
            taken if taken.contains(&index) => return None,
            taken => index - taken.iter().filter(|place| **place < index).count(),
        };
        let operand = self.operands.get(place)?;
        (!operand.is::<NoValue>()).then_some(operand)
    }

    /// Returns whether an operand is there.
    pub fn has(&self, index: usize) -> bool {
        self.any(index).is_some()
    }

    /// Returns the tensor that is the operand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn tensor(&self, index: usize) -> Result<&'a Tensor, Error> {
        match self.optional_tensor(index)? {
            Some(tensor) => Ok(tensor),
            None => Err(self.missing(index, "a tensor")),
        }
    }

    /// Returns the tensor that is the operand, unless it is left out.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is something else.
    pub fn optional_tensor(&self, index: usize) -> Result<Option<&'a Tensor>, Error> {
        let Some(operand) = self.any(index) else {
            return Ok(None);
        };
        match operand.get::<Tensor>() {
            Some(tensor) => Ok(Some(tensor)),
            None => match operand.get::<Optional>() {
                Some(Optional::Tensor(tensor)) => Ok(Some(tensor)),
                _ => Err(self.wrong(index, "a tensor")),
            },
        }
    }

    /// Returns the tensor of numbers that is the operand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn dense(&self, index: usize) -> Result<&'a DenseHostTensor, Error> {
        self.as_dense(index, self.tensor(index)?)
    }

    /// Returns the tensor of numbers that is the operand, unless it is left out.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is something else.
    pub fn optional_dense(&self, index: usize) -> Result<Option<&'a DenseHostTensor>, Error> {
        let tensor = self.optional_tensor(index)?;
        tensor
            .map(|tensor| self.as_dense(index, tensor))
            .transpose()
    }

    /// Returns all operands as tensors of numbers.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one is left out, or something else, or if there is none.
    pub fn all_dense(&self) -> Result<Vec<&'a DenseHostTensor>, Error> {
        (0..self.len().max(1))
            .map(|index| self.dense(index))
            .collect()
    }

    fn as_dense(&self, index: usize, tensor: &'a Tensor) -> Result<&'a DenseHostTensor, Error> {
        tensor.as_dense().map_err(|error| self.about(index, &error))
    }

    /// Returns the tensor of strings that is the operand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn strings(&self, index: usize) -> Result<&'a StringHostTensor, Error> {
        let tensor = self.tensor(index)?;
        tensor
            .as_strings()
            .map_err(|error| self.about(index, &error))
    }

    /// Returns the sequence that is the operand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn sequence(&self, index: usize) -> Result<&'a Sequence, Error> {
        let Some(operand) = self.any(index) else {
            return Err(self.missing(index, "a sequence"));
        };
        match operand.get::<Sequence>() {
            Some(sequence) => Ok(sequence),
            None => match operand.get::<Optional>() {
                Some(Optional::Sequence(sequence)) => Ok(sequence),
                _ => Err(self.wrong(index, "a sequence")),
            },
        }
    }

    /// Returns the integers of an operand, in their order: of 32 or 64 bits, of any shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else; `ResourceExhausted` if there is no memory for them.
    pub fn integers(&self, index: usize) -> Result<Vec<i64>, Error> {
        let tensor = self.dense(index)?;
        self.workspace
            .reserve(tensor.n_elements(), size_of::<i64>())?;
        let reading = tensor.read()?;
        match tensor.dtype() {
            DType::I64 => Ok(reading.elements::<i64>()?.to_vec()),
            DType::I32 => {
                let elements = reading.elements::<i32>()?.iter();
                Ok(elements.map(|one| i64::from(*one)).collect())
            }
            found => Err(self.other(index, "integers of 64 or 32 bits", found)),
        }
    }

    /// Returns the integers of an operand, unless it is left out.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is something else.
    pub fn optional_integers(&self, index: usize) -> Result<Option<Vec<i64>>, Error> {
        self.has(index).then(|| self.integers(index)).transpose()
    }

    /// Returns the one integer of an operand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn integer(&self, index: usize) -> Result<i64, Error> {
        self.expect_single(index)?;
        match self.integers(index)?[..] {
            [integer] => Ok(integer),
            ref list => Err(self.not_single(index, list.len())),
        }
    }

    /// Returns the one truth value of an operand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn truth(&self, index: usize) -> Result<bool, Error> {
        let tensor = self.dense(index)?;
        if tensor.dtype() != DType::I1 {
            return Err(self.other(index, "a truth value", tensor.dtype()));
        }
        match tensor.read()?.elements::<Bool>()? {
            [truth] => Ok((*truth).into()),
            list => Err(self.not_single(index, list.len())),
        }
    }

    /// Returns the one number of an operand, of any type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub fn number(&self, index: usize) -> Result<f64, Error> {
        let tensor = self.expect_single(index)?;
        let list = super::dispatch::to_f64(tensor)
            .map_err(|_| self.other(index, "a number", tensor.dtype()))?;
        match list[..] {
            [number] => Ok(number),
            _ => Err(self.not_single(index, list.len())),
        }
    }

    /// Returns the numbers of an operand, of any type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else; `ResourceExhausted` if there is no memory for them.
    pub fn numbers(&self, index: usize) -> Result<Vec<f64>, Error> {
        let tensor = self.dense(index)?;
        self.workspace
            .reserve(tensor.n_elements(), size_of::<f64>())?;
        super::dispatch::to_f64(tensor).map_err(|_| self.other(index, "numbers", tensor.dtype()))
    }

    /// Returns the extents of an operand of `rank` dimensions.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, something else, or of another rank.
    pub fn extents(&self, index: usize, rank: usize) -> Result<Dims, Error> {
        let extents = self.dense(index)?.shape().to_dims();
        if extents.len() != rank {
            return Err(self.error(
                index,
                format_args!("has {rank} dimensions, found extents {extents:?}"),
            ));
        }
        Ok(extents)
    }

    /// Makes an error about an operand: "Relu: operand 0 ...".
    pub fn error(&self, index: usize, message: impl fmt::Display) -> Error {
        let operation = self.operation;
        Error::invalid_argument(format!("{operation}: operand {index} {message}"))
    }

    /// Returns the element type of an operand, which must be of this family.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not, or if the operand is left out, or no tensor of numbers.
    pub fn expect(&self, index: usize, family: Family) -> Result<DType, Error> {
        let dtype = self.dense(index)?.dtype();
        match family.has(dtype) {
            true => Ok(dtype),
            false => Err(self.unsupported(index, dtype)),
        }
    }

    /// Makes the error for an operand of a type that the operation is not defined for.
    pub fn unsupported(&self, index: usize, found: DType) -> Error {
        self.error(
            index,
            format_args!("is of {found}, for which the operation is not defined"),
        )
    }

    fn other(&self, index: usize, expected: &str, found: DType) -> Error {
        self.error(
            index,
            format_args!("is expected to be {expected}, found {found}"),
        )
    }

    /// Returns the dense operand if it has one element; others are not copied to count their elements.
    fn expect_single(&self, index: usize) -> Result<&'a DenseHostTensor, Error> {
        let tensor = self.dense(index)?;
        match tensor.n_elements() {
            1 => Ok(tensor),
            n => Err(self.not_single(index, n)),
        }
    }

    fn not_single(&self, index: usize, n: usize) -> Error {
        self.error(
            index,
            format_args!("is expected to have one element, found {n}"),
        )
    }

    #[cold]
    fn missing(&self, index: usize, expected: &str) -> Error {
        self.error(
            index,
            format_args!("is expected to be {expected}, but left out"),
        )
    }

    #[cold]
    fn wrong(&self, index: usize, expected: &str) -> Error {
        let found = self.operands[index].type_name().unwrap_or("nothing");
        self.error(
            index,
            format_args!("is expected to be {expected}, found {found}"),
        )
    }

    #[cold]
    fn about(&self, index: usize, error: &Error) -> Error {
        self.error(index, format_args!("is wrong: {}", error.message()))
    }
}
