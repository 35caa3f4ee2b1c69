//! [`Call`]: the arguments of an operation's author's function.

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext};
use tfrt_tensor::math::pointwise::{BinaryFunction, OperandOrder, UnaryFunction};
pub use tfrt_tensor::op::made;
use tfrt_tensor::op::{Operands, binary_of, unary_of, unsupported};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata};

use crate::attributes::OpAttrsRef;
use crate::definition::Outputs;
use crate::inputs::Inputs;

/// One run of an operation, whose inputs are all there.
pub struct Call<'a> {
    pub(crate) op: &'a str,
    pub(crate) execution: &'a ExecutionContext,
    // Invariant: settled, none failed, and of formats that the operation takes.
    pub(crate) inputs: Inputs<'a>,
    pub(crate) attrs: OpAttrsRef<'a>,
    pub(crate) metadata: &'a [TensorMetadata],
    /// The chain that resolves when side effects have happened that happen later than the results are there.
    pub(crate) effects: Option<AsyncValue<Chain>>,
    /// The chain that resolves when side effects have happened for which later calls on the same resource don't wait.
    pub(crate) waiting: Option<AsyncValue<Chain>>,
}

impl<'a> Call<'a> {
    /// Returns the operation's name.
    pub fn op(&self) -> &'a str {
        self.op
    }

    /// Returns the context of the request that the call belongs to.
    pub fn execution(&self) -> &'a ExecutionContext {
        self.execution
    }

    /// Returns the attributes.
    pub fn attrs(&self) -> OpAttrsRef<'a> {
        self.attrs
    }

    /// Returns the number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the input at `index`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none.
    #[inline]
    pub fn tensor(&self, index: usize) -> Result<&Tensor, Error> {
        self.input(index).ok_or_else(|| self.no_input(index))
    }

    /// Returns the input at `index`, if there is one that the operation has not taken.
    #[inline]
    pub fn input(&self, index: usize) -> Option<&Tensor> {
        Operands::get(&self.inputs, index)
    }

    /// Returns the input at `index`, which is dense.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none, or if it is not dense.
    #[inline]
    pub fn dense(&self, index: usize) -> Result<&DenseHostTensor, Error> {
        self.tensor(index)?.as_dense()
    }

    /// Takes a dense input of this type and shape, to be overwritten, if it was given for good and nobody else holds
    /// its memory.
    #[inline]
    pub fn take_like(&mut self, index: usize, like: &TensorMetadata) -> Option<DenseHostTensor> {
        match self.inputs.get_mut(index)?.metadata()? == like {
            true => self.take_sole(index),
            false => None,
        }
    }

    /// Takes a dense input, to be overwritten, if it was given for good and nobody else holds its memory.
    #[inline]
    pub fn take_sole(&mut self, index: usize) -> Option<DenseHostTensor> {
        self.inputs.get_mut(index)?.take_sole()
    }

    /// Returns type and shape of the result at `index`, as the metadata function has found them.
    ///
    /// # Errors
    ///
    /// `Internal` if it said nothing of it.
    #[inline]
    pub fn result(&self, index: usize) -> Result<&'a TensorMetadata, Error> {
        match self.metadata.get(index) {
            Some(metadata) => Ok(metadata),
            None => {
                let op = self.op;
                let message = format!("nothing is known of result {index} of {op}");
                Err(Error::internal(message))
            }
        }
    }

    /// Allocates a tensor for the result at `index`. Its contents are unspecified: the operation must write every
    /// element.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`result`](Self::result).
    #[inline]
    pub fn output(&self, index: usize) -> Result<DenseHostTensor, Error> {
        self.allocate(self.result(index)?.clone())
    }

    /// Allocates a tensor whose contents are unspecified: the operation must write every element.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it.
    #[inline]
    pub fn allocate(&self, metadata: TensorMetadata) -> Result<DenseHostTensor, Error> {
        DenseHostTensor::unspecified(self.execution.host().allocator(), metadata)
    }

    /// Allocates a tensor of zeros for the result at `index`, for an operation that writes some elements only.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`result`](Self::result).
    pub fn zeros(&self, index: usize) -> Result<DenseHostTensor, Error> {
        let metadata = self.result(index)?.clone();
        DenseHostTensor::zeroed(self.execution.host().allocator(), metadata)
    }

    /// Returns the only output: a tensor that is there when the chain is.
    ///
    /// # Errors
    ///
    /// The chain's, if it has failed.
    #[inline]
    pub fn made(
        &self,
        tensor: DenseHostTensor,
        chain: AsyncValue<Chain>,
    ) -> Result<Outputs, Error> {
        Ok(smallvec![made(tensor, chain)?])
    }

    /// Calculates a function of each element of the only input, in the input's memory if nobody else holds it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the function is not defined for the input's type.
    pub fn unary(&mut self, function: UnaryFunction) -> Result<Outputs, Error> {
        let x = self.dense(0)?.metadata();
        let result = self.expect_defined(function.result(x.dtype), x.dtype)?;
        let result = TensorMetadata::new(result, x.shape.clone());
        unary_of(self.execution, &mut self.inputs, function, &result)
    }

    /// Calculates a function of each pair of elements of the two inputs, in the memory of one of them if nobody else
    /// holds that and it is of the result's type and shape. [`OperandOrder::OtherFirst`] hands the second input's to the function
    /// first.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the function is not defined for the inputs' type, or if they can't be broadcast.
    pub fn binary(
        &mut self,
        function: BinaryFunction,
        order: OperandOrder,
    ) -> Result<Outputs, Error> {
        let dtype = self.dense(0)?.dtype();
        self.expect_defined(function.result(dtype), dtype)?;
        let result = self.result(0)?;
        binary_of(self.execution, &mut self.inputs, (function, order), result)
    }

    /// Says that side effects happen when a chain resolves, which may be later than the results are there.
    pub fn set_effects(&mut self, chain: AsyncValue<Chain>) {
        self.effects = Some(chain);
    }

    fn expect_defined(&self, result: Option<DType>, dtype: DType) -> Result<DType, Error> {
        result.ok_or_else(|| unsupported(self.op, dtype))
    }

    #[cold]
    fn no_input(&self, index: usize) -> Error {
        let (op, n) = (self.op, self.inputs.len());
        Error::invalid_argument(format!(
            "{op} has no input {index}: it was given {n}, or has taken it"
        ))
    }
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("op", &self.op)
            .field("inputs", &self.inputs)
            .field("attrs", &self.attrs)
            .finish_non_exhaustive()
    }
}
