//! [`Carried`]: tensors whose elements are moved and not looked at.
//!
//! Elements of all types of a size are moved by the same code: they are seen as words of that size. Of strings the
//! numbers are moved, from 1 on; 0, which is what padding adds, is the empty string.

use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, HostAllocator};
use tfrt_tensor::math::movement::Movement;
use tfrt_tensor::{DType, DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

use super::{Node, Outputs};
use crate::tensor::strings::no_memory;

/// Does something for the Rust type of words: `with_word!(dtype, T => body)`, where `dtype` is that of
/// [`Carried::words`].
macro_rules! with_word {
    ($dtype:expr, $T:ident => $body:expr) => {{
        // Expands to `match dtype { DType::Ui8 => { type T = u8; body } ... }`.
        macro_rules! arm {
            ($type:ty) => {{
                type $T = $type;
                $body
            }};
        }
        match $dtype {
            tfrt_tensor::DType::Ui8 => arm!(u8),
            tfrt_tensor::DType::Ui16 => arm!(u16),
            tfrt_tensor::DType::Ui32 => arm!(u32),
            tfrt_tensor::DType::Complex128 => arm!(tfrt_tensor::Complex<f64>),
            _ => arm!(u64),
        }
    }};
}

pub(super) use with_word;

/// Tensors of one type, as words.
pub(super) struct Carried {
    /// The tensors, of unsigned integers, or complex numbers of 16 bytes.
    pub words: Vec<DenseHostTensor>,
    kind: Kind,
}

/// What the words are.
#[derive(Clone)]
enum Kind {
    Numbers(DType),
    Strings(Vec<StringHostTensor>, Arc<dyn HostAllocator>),
}

impl Carried {
    /// Sees tensors as words.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not of one type.
    pub fn new(node: &Node<'_>, tensors: &[&Tensor]) -> Result<Carried, Error> {
        Carried::of(node.execution, tensors).map_err(|error| node.told(&error))
    }

    /// As [`new`](Self::new), outside of an operation.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn of(execution: &ExecutionContext, tensors: &[&Tensor]) -> Result<Carried, Error> {
        let dtype = tensors
            .first()
            .map_or(DType::F32, |first| first.metadata().dtype);
        if let Some(other) = tensors.iter().find(|other| other.metadata().dtype != dtype) {
            let found = other.metadata().dtype;
            let message = format!("expected tensors of one type, found {dtype} and {found}");
            return Err(Error::invalid_argument(message));
        }
        if dtype != DType::String {
            let words = tensors.iter().map(|tensor| as_words(tensor.as_dense()?));
            return Ok(Carried {
                words: words.collect::<Result<_, Error>>()?,
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
        Ok(Carried {
            words: strings.iter().map(number).collect::<Result<_, _>>()?,
            kind: Kind::Strings(strings, execution.host().allocator().clone()),
        })
    }

    /// Makes a tensor of words that are 0, for a result.
    ///
    /// # Errors
    ///
    /// As of [`Node::output`].
    pub fn output(&self, node: &Node<'_>, extents: &[usize]) -> Result<DenseHostTensor, Error> {
        self.output_in(node.execution, extents)
    }

    /// As [`output`](Self::output), outside of an operation.
    ///
    /// # Errors
    ///
    /// As of [`output`](Self::output).
    pub fn output_in(
        &self,
        execution: &ExecutionContext,
        extents: &[usize],
    ) -> Result<DenseHostTensor, Error> {
        let shape = TensorShape::new(extents)?;
        let zeroed = |dtype| {
            let metadata = TensorMetadata::new(dtype, shape.clone());
            DenseHostTensor::zeroed(execution.host().allocator(), metadata)
        };
        match &self.kind {
            // Where there is no memory, the type is told that the elements have.
            Kind::Numbers(dtype) => as_words(&zeroed(*dtype)?),
            Kind::Strings(..) => zeroed(DType::Ui64).map_err(|_| no_memory(&shape)),
        }
    }

    /// Returns words as the elements that they are, when they are there.
    ///
    /// # Errors
    ///
    /// Those of reading them.
    pub fn finish(
        &self,
        words: DenseHostTensor,
        chain: AsyncValue<Chain>,
    ) -> Result<AnyAsyncValue, Error> {
        let kind = self.kind.clone();
        match chain.get() {
            Some(Ok(_)) => Ok(AnyAsyncValue::new(kind.restore(&words)?)),
            _ => Ok(chain.try_map(move |_| kind.restore(&words)).into_any()),
        }
    }

    /// As [`finish`](Self::finish), as the only result.
    ///
    /// # Errors
    ///
    /// As of [`finish`](Self::finish).
    pub fn outputs(
        &self,
        words: DenseHostTensor,
        chain: AsyncValue<Chain>,
    ) -> Result<Outputs, Error> {
        let mut outputs = Outputs::new();
        outputs.push(self.finish(words, chain)?);
        Ok(outputs)
    }
}

impl Kind {
    fn restore(&self, words: &DenseHostTensor) -> Result<Tensor, Error> {
        match self {
            Kind::Numbers(dtype) => retyped(words, *dtype).map(Tensor::from),
            Kind::Strings(tensors, allocator) => {
                let all: Vec<&Vec<u8>> =
                    tensors.iter().flat_map(|tensor| tensor.strings()).collect();
                let reading = words.read()?;
                let string = |number: &u64| {
                    let index = usize::try_from(*number).unwrap_or(0).checked_sub(1);
                    index
                        .and_then(|index| all.get(index))
                        .map_or_else(Vec::new, |string| (*string).clone())
                };
                let strings = reading.elements::<u64>()?.iter().map(string);
                let shape = words.shape().clone();
                StringHostTensor::collect(allocator, shape, strings).map(Tensor::from)
            }
        }
    }
}

impl Node<'_> {
    /// Moves the elements of a tensor; what is put around is 0, or the empty string.
    ///
    /// # Errors
    ///
    /// Those of [`Movement::run_into`].
    pub(super) fn moved(
        &self,
        tensor: &Tensor,
        movement: &Movement,
    ) -> Result<AnyAsyncValue, Error> {
        let carried = Carried::new(self, &[tensor])?;
        let out = carried.output(self, movement.extents())?;
        let chain = movement.run_into(self.execution, &carried.words[0], &out)?;
        carried.finish(out, chain)
    }
}

/// The type of words that are as large as elements of a type.
fn word(dtype: DType) -> DType {
    match dtype.size_bytes() {
        Some(1) => DType::Ui8,
        Some(2) => DType::Ui16,
        Some(4) => DType::Ui32,
        Some(16) => DType::Complex128,
        _ => DType::Ui64,
    }
}

/// The same bytes as words.
pub(super) fn as_words(tensor: &DenseHostTensor) -> Result<DenseHostTensor, Error> {
    retyped(tensor, word(tensor.dtype()))
}

/// The same bytes as elements of another type of the same size.
pub(super) fn retyped(tensor: &DenseHostTensor, dtype: DType) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(dtype, tensor.shape().clone());
    DenseHostTensor::new(metadata, tensor.buffer().clone())
}

/// The same elements with other extents.
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

/// The extents of a tensor.
pub(super) fn extents(tensor: &Tensor) -> tfrt_tensor::Dims {
    tensor.metadata().shape.to_dims()
}

/// The number of elements of a tensor that there is, whatever the extents beside one of 0.
pub(super) fn count(extents: &[usize]) -> usize {
    match extents.contains(&0) {
        true => 0,
        false => extents
            .iter()
            .fold(1, |product: usize, extent| product.saturating_mul(*extent)),
    }
}

/// Parts or slices that a tensor may have though it has fewer elements.
const MOST_EMPTY: usize = 1 << 16;

impl Node<'_> {
    /// Refuses to look at each of `n` slices of a tensor if there are many more of them than elements: of those that
    /// are empty, a few bytes may promise any number.
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
