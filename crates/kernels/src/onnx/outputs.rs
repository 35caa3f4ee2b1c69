//! [`Outputs`]: the results of an operation, available or pending.

use tfrt_host::kernel::Results;
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, Value};
use tfrt_tensor::op::OpResults;
use tfrt_tensor::{
    Bool, DType, DenseHostTensor, Element, Optional, Sequence, StringHostTensor, Tensor,
    TensorMetadata, TensorShape,
};

use super::NodeCall;

/// Conversion of a task's value, or the reason why the task was not started, to one value.
pub(super) trait IntoValue {
    /// Returns the value.
    fn into_value(self) -> AsyncValue<Chain>;
}

impl IntoValue for Result<AsyncValue<Chain>, Error> {
    fn into_value(self) -> AsyncValue<Chain> {
        self.unwrap_or_else(AsyncValue::from_error)
    }
}

/// The results of an operation, in their order.
#[derive(Debug, Default)]
pub struct Outputs(OpResults);

impl Outputs {
    /// Makes an empty list.
    pub fn new() -> Outputs {
        Outputs::default()
    }

    /// Makes one result, whose elements are there when the chain is.
    pub fn later(tensor: DenseHostTensor, chain: AsyncValue<Chain>) -> Outputs {
        Outputs::new().and_later(tensor, chain)
    }

    /// Appends a value.
    #[must_use]
    pub fn and<T: Value>(mut self, value: T) -> Outputs {
        self.0.push(AnyAsyncValue::new(value));
        self
    }

    /// Appends a tensor.
    #[must_use]
    pub fn and_tensor(self, tensor: impl Into<Tensor>) -> Outputs {
        self.and::<Tensor>(tensor.into())
    }

    /// Appends a tensor whose elements are there when the chain is.
    #[must_use]
    pub fn and_later(mut self, tensor: impl Into<Tensor>, chain: AsyncValue<Chain>) -> Outputs {
        let tensor = tensor.into();
        let value = match chain.get() {
            Some(Ok(_)) => AnyAsyncValue::new(tensor),
            _ => chain.map(move |_| tensor).into_any(),
        };
        self.0.push(value);
        self
    }

    /// Appends a value of any type, available or pending.
    pub fn push(&mut self, value: AnyAsyncValue) {
        self.0.push(value);
    }

    /// Returns as many results as the program uses.
    pub(super) fn into_results(self, node: &NodeCall<'_>) -> Result<Results, Error> {
        self.into_requested(node)
            .map(|results| Results(results.into_vec()))
    }

    /// Returns as many results as the caller uses.
    pub(super) fn into_requested(mut self, node: &NodeCall<'_>) -> Result<OpResults, Error> {
        node.workspace.until_settled(&self.0);
        let (found, wanted) = (self.0.len(), node.n_results);
        if found < wanted {
            return Err(node.error(format_args!(
                "{wanted} results are asked for, the operation has {found}"
            )));
        }
        self.0.truncate(wanted);
        Ok(self.0)
    }
}

impl From<Tensor> for Outputs {
    fn from(tensor: Tensor) -> Outputs {
        Outputs::new().and(tensor)
    }
}

impl From<DenseHostTensor> for Outputs {
    fn from(tensor: DenseHostTensor) -> Outputs {
        Outputs::new().and_tensor(tensor)
    }
}

impl From<StringHostTensor> for Outputs {
    fn from(tensor: StringHostTensor) -> Outputs {
        Outputs::new().and_tensor(tensor)
    }
}

impl From<Sequence> for Outputs {
    fn from(sequence: Sequence) -> Outputs {
        Outputs::new().and(sequence)
    }
}

impl From<Optional> for Outputs {
    fn from(optional: Optional) -> Outputs {
        Outputs::new().and(optional)
    }
}

impl NodeCall<'_> {
    /// Allocates a tensor for a result. Its contents are unspecified: the operation must write every element.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` or `ResourceExhausted` if there is no memory for it.
    pub fn output(&self, dtype: DType, extents: &[usize]) -> Result<DenseHostTensor, Error> {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents)?);
        DenseHostTensor::unspecified(self.execution.host().allocator(), metadata)
    }

    /// Allocates a tensor of zeros, for an operation that writes some elements only.
    ///
    /// # Errors
    ///
    /// See [`output`](Self::output) for errors.
    pub fn zeros(&self, dtype: DType, extents: &[usize]) -> Result<DenseHostTensor, Error> {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents)?);
        DenseHostTensor::zeroed(self.execution.host().allocator(), metadata)
    }

    /// Makes a tensor of elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not as many as the extents say, `ResourceExhausted` if there is no memory
    /// for them.
    pub fn tensor_of<T: Element>(
        &self,
        extents: &[usize],
        elements: &[T],
    ) -> Result<DenseHostTensor, Error> {
        DenseHostTensor::from_slice(self.execution.host().allocator(), extents, elements)
    }

    /// Makes a tensor of strings, which are made one by one.
    ///
    /// # Errors
    ///
    /// Those of [`StringHostTensor::collect`].
    pub fn strings_of(
        &self,
        shape: TensorShape,
        strings: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<StringHostTensor, Error> {
        StringHostTensor::collect(self.execution.host().allocator(), shape, strings)
    }

    /// Makes a scalar of one truth value.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it.
    pub fn truth(&self, value: bool) -> Result<DenseHostTensor, Error> {
        self.tensor_of(&[], &[Bool::from(value)])
    }

    /// Returns the index of an axis, counted from the end if it is below 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Error> {
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let axis_from_start = if axis < 0 {
            axis.saturating_add(signed)
        } else {
            axis
        };
        let found = usize::try_from(axis_from_start)
            .ok()
            .filter(|axis| *axis < rank);
        found.ok_or_else(|| {
            self.error(format_args!(
                "axis {axis} is none of a tensor of {rank} dimensions"
            ))
        })
    }
}
