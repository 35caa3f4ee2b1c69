//! [`OpaqueTensors`]: tensors whose elements are moved without being read.
//!
//! Numbers are moved as they are, by code that knows the sizes of elements alone. Of strings the numbers are moved, from 1
//! on; 0, which is what padding adds, is the empty string.

use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, HostAllocator};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::{DType, DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

use super::{NodeCall, Outputs};
use crate::tensor::strings::no_memory;

/// Tensors of one type whose elements are moved without being read. Strings are represented by numbers while they
/// move.
pub(crate) struct OpaqueTensors {
    /// The tensors; of strings, the numbers that represent them.
    pub tensors: Vec<DenseHostTensor>,
    kind: Kind,
}

/// The type of the elements.
#[derive(Clone)]
enum Kind {
    /// Numbers of this type.
    Numbers(DType),
    /// Strings, with the allocator of results.
    Strings(Vec<StringHostTensor>, Arc<dyn HostAllocator>),
}

impl OpaqueTensors {
    /// Takes tensors to be moved.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not of one type.
    pub fn new(node: &NodeCall<'_>, tensors: &[&Tensor]) -> Result<OpaqueTensors, Error> {
        OpaqueTensors::of(node.execution, tensors).map_err(|error| node.with_name(&error))
    }

    /// As [`new`](Self::new), outside of an operation.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn of(execution: &ExecutionContext, tensors: &[&Tensor]) -> Result<OpaqueTensors, Error> {
        let dtype = tensors
            .first()
            .map_or(DType::F32, |first| first.metadata().dtype);
        if let Some(other) = tensors.iter().find(|other| other.metadata().dtype != dtype) {
            let found = other.metadata().dtype;
            let message = format!("expected tensors of one type, found {dtype} and {found}");
            return Err(Error::invalid_argument(message));
        }
        if dtype != DType::String {
            let numbers = tensors.iter().map(|tensor| tensor.as_dense().cloned());
            return Ok(OpaqueTensors {
                tensors: numbers.collect::<Result<_, Error>>()?,
                kind: Kind::Numbers(dtype),
            });
        }
        let strings: Vec<StringHostTensor> = tensors
            .iter()
            .map(|tensor| tensor.as_strings().cloned())
            .collect::<Result<_, _>>()?;
        let mut next = 1_u64;
        let number = |strings: &StringHostTensor| {
            let n_strings = strings.strings().len() as u64;
            let numbers: Vec<u64> = (next..next + n_strings).collect();
            next += n_strings;
            let shape = &strings.metadata().shape;
            let allocator = execution.host().allocator();
            let numbers = DenseHostTensor::from_slice(allocator, &shape.to_dims(), &numbers);
            numbers.map_err(|_| no_memory(shape))
        };
        Ok(OpaqueTensors {
            tensors: strings.iter().map(number).collect::<Result<_, _>>()?,
            kind: Kind::Strings(strings, execution.host().allocator().clone()),
        })
    }

    /// Allocates a tensor for a result, which the operation must write completely; for strings a tensor of numbers,
    /// initially those of empty strings.
    ///
    /// # Errors
    ///
    /// See [`NodeCall::output`].
    pub fn output(&self, node: &NodeCall<'_>, extents: &[usize]) -> Result<DenseHostTensor, Error> {
        self.output_in(node.execution, extents)
    }

    /// As [`output`](Self::output), outside of an operation.
    ///
    /// # Errors
    ///
    /// See [`output`](Self::output).
    pub fn output_in(
        &self,
        execution: &ExecutionContext,
        extents: &[usize],
    ) -> Result<DenseHostTensor, Error> {
        let shape = TensorShape::new(extents)?;
        let allocator = execution.host().allocator();
        match &self.kind {
            Kind::Numbers(dtype) => {
                let metadata = TensorMetadata::new(*dtype, shape);
                DenseHostTensor::unspecified(allocator, metadata)
            }
            Kind::Strings(..) => {
                let metadata = TensorMetadata::new(DType::Ui64, shape.clone());
                DenseHostTensor::zeroed(allocator, metadata).map_err(|_| no_memory(&shape))
            }
        }
    }

    /// Returns a result that was made of the tensors, with strings again, as a value that is there when the chain is.
    ///
    /// # Errors
    ///
    /// Those of reading them.
    pub fn finish(
        &self,
        result: DenseHostTensor,
        chain: AsyncValue<Chain>,
    ) -> Result<AnyAsyncValue, Error> {
        let kind = self.kind.clone();
        match chain.get() {
            Some(Ok(_)) => Ok(AnyAsyncValue::new(kind.restore(result)?)),
            _ => Ok(chain.try_map(move |_| kind.restore(result)).into_any()),
        }
    }

    /// Returns a result as [`finish`](Self::finish) does, as the only one.
    ///
    /// # Errors
    ///
    /// See [`finish`](Self::finish).
    pub fn outputs(
        &self,
        result: DenseHostTensor,
        chain: AsyncValue<Chain>,
    ) -> Result<Outputs, Error> {
        let mut outputs = Outputs::new();
        outputs.push(self.finish(result, chain)?);
        Ok(outputs)
    }
}

impl Kind {
    fn restore(&self, result: DenseHostTensor) -> Result<Tensor, Error> {
        match self {
            Kind::Numbers(_) => Ok(result.into()),
            Kind::Strings(tensors, allocator) => {
                let all: Vec<&Vec<u8>> =
                    tensors.iter().flat_map(|tensor| tensor.strings()).collect();
                let reading = result.read()?;
                let string = |number: &u64| {
                    let index = usize::try_from(*number).unwrap_or(0).checked_sub(1);
                    index
                        .and_then(|index| all.get(index))
                        .map_or_else(Vec::new, |string| (*string).clone())
                };
                let strings = reading.elements::<u64>()?.iter().map(string);
                let shape = result.shape().clone();
                StringHostTensor::collect(allocator, shape, strings).map(Tensor::from)
            }
        }
    }
}

impl NodeCall<'_> {
    /// Moves the elements of a tensor; padding is 0, or the empty string.
    ///
    /// # Errors
    ///
    /// Those of [`LayoutCopy::run_into`].
    pub(super) fn moved(
        &self,
        tensor: &Tensor,
        movement: &LayoutCopy,
    ) -> Result<AnyAsyncValue, Error> {
        let opaque = OpaqueTensors::new(self, &[tensor])?;
        let out = opaque.output(self, movement.extents())?;
        let chain = movement.run_into(self.execution, &opaque.tensors[0], &out)?;
        opaque.finish(out, chain)
    }
}

/// Reinterprets elements as another type of the same size.
pub(super) fn retyped(tensor: &DenseHostTensor, dtype: DType) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(dtype, tensor.shape().clone());
    DenseHostTensor::new(metadata, tensor.buffer().clone())
}

/// Reshapes a tensor.
///
/// # Errors
///
/// `InvalidArgument` if the extents do not have as many.
pub(super) fn reshaped(tensor: &Tensor, extents: &[usize]) -> Result<Tensor, Error> {
    let shape = TensorShape::new(extents)?;
    match tensor {
        Tensor::String(tensor) => tensor.reshape(shape).map(Tensor::from),
        other => other.as_dense()?.reshape(shape).map(Tensor::from),
    }
}

/// Returns the extents of a tensor.
pub(super) fn extents(tensor: &Tensor) -> tfrt_tensor::Dims {
    tensor.metadata().shape.to_dims()
}

/// Returns the number of elements of an existing tensor, which is 0 with an extent of 0 whatever the others are.
pub(super) fn count(extents: &[usize]) -> usize {
    match extents.contains(&0) {
        true => 0,
        false => extents
            .iter()
            .fold(1, |product: usize, extent| product.saturating_mul(*extent)),
    }
}

/// The most empty slices of a tensor with fewer elements.
const MOST_EMPTY: usize = 1 << 16;

impl NodeCall<'_> {
    /// Refuses to visit each of `n` slices of a tensor if they are many more than its elements: a few bytes may
    /// promise any number of empty slices.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there are too many.
    pub(super) fn expect_slices(&self, extents: &[usize], n: usize) -> Result<(), Error> {
        if n <= count(extents).max(MOST_EMPTY) {
            return Ok(());
        }
        let name = self.name;
        let message = format!("{name}: a tensor of shape {extents:?} has too many empty slices");
        Err(Error::resource_exhausted(message))
    }
}
