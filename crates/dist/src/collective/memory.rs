//! [`Tensors`]: the tensors of a collective in a host's memory, on which its actions are done.
//!
//! Memory is used for as long as an action takes, and elements that are sent are copied: nobody else reads a program's
//! tensors, and whoever uses them at the wrong time gets an error.

use std::ops::Range;
use std::sync::Arc;

use tfrt_async::Error;
use tfrt_async::HostAllocator;
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{DType, DenseHostTensor, DenseReading, TensorMetadata, TensorShape};

use super::arithmetic::{self, Value};
use super::{Action, Function, Memory, Payload, Source, Span};
use crate::reduction::Step;

/// Elements that have arrived, as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Elements(pub HostBuffer);

impl Payload for Elements {
    fn len_bytes(&self) -> usize {
        self.0.len_bytes()
    }
}

/// The tensors of a member.
pub(crate) struct Tensors {
    allocator: Arc<dyn HostAllocator>,
    dtype: DType,
    inputs: Vec<DenseHostTensor>,
    /// Memory for what members reduce of several inputs, each as large as the result.
    scratch: Vec<DenseHostTensor>,
    /// The result; of a gathering of any shape it is made when all shapes are known.
    result: Option<DenseHostTensor>,
    /// Whether the input is the result, too.
    is_in_place: bool,
}

impl Tensors {
    /// Makes those of a reduction, whose result may be written over the input.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the two overlap in part, and there is no memory for a copy.
    pub fn reduced(
        allocator: &Arc<dyn HostAllocator>,
        input: &DenseHostTensor,
        result: &DenseHostTensor,
    ) -> Result<Tensors, Error> {
        let place = |tensor: &DenseHostTensor| {
            let buffer = tensor.buffer();
            (buffer.address(), buffer.len_bytes())
        };
        let is_in_place = place(input) == place(result);
        let dtype = result.dtype();
        let of = |input| Tensors::new(allocator, dtype, input, Some(result.clone()));
        match is_in_place {
            true => Ok(Tensors {
                is_in_place,
                ..of(None)?
            }),
            false => of(Some(input)),
        }
    }

    /// Makes those of a reduction of several leaves, none of which may overlap the result.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if one does, and there is no memory for a copy.
    pub fn of_leaves(
        allocator: &Arc<dyn HostAllocator>,
        leaves: &[DenseHostTensor],
        result: &DenseHostTensor,
    ) -> Result<Tensors, Error> {
        let mut tensors = Tensors::new(allocator, result.dtype(), None, Some(result.clone()))?;
        for leaf in leaves {
            let one = Tensors::new(allocator, result.dtype(), Some(leaf), Some(result.clone()))?;
            tensors.inputs.extend(one.inputs);
        }
        Ok(tensors)
    }

    /// Makes those of a collective whose input is to be kept apart from its result.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the two overlap, and there is no memory for a copy.
    pub fn new(
        allocator: &Arc<dyn HostAllocator>,
        dtype: DType,
        input: Option<&DenseHostTensor>,
        result: Option<DenseHostTensor>,
    ) -> Result<Tensors, Error> {
        let overlaps = |input: &DenseHostTensor| {
            let result = result.as_ref();
            result.is_some_and(|result| result.buffer().overlaps(input.buffer()))
        };
        let input = input.map(|input| match overlaps(input) {
            true => input.deep_copy(allocator),
            false => Ok(input.clone()),
        });
        Ok(Tensors {
            allocator: allocator.clone(),
            dtype,
            inputs: input.transpose()?.into_iter().collect(),
            scratch: Vec::new(),
            result,
            is_in_place: false,
        })
    }

    /// Returns the result.
    ///
    /// # Errors
    ///
    /// `Internal` if it was never made.
    pub fn result(&self) -> Result<&DenseHostTensor, Error> {
        let result = self.result.as_ref();
        result.ok_or_else(|| Error::internal("a collective has a result when it is asked for it"))
    }

    /// Copies elements that are to be sent.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` without memory, `FailedPrecondition` if somebody is writing the tensor.
    pub fn copy(&self, spans: &[Span]) -> Result<HostBuffer, Error> {
        let bytes = |span: &Span| self.bytes_of(&span.elements);
        let len_bytes = spans.iter().map(|span| bytes(span).len()).sum();
        let copy = HostBuffer::unspecified(&self.allocator, len_bytes, BUFFER_ALIGNMENT);
        let mut copy = copy.ok_or_else(|| {
            Error::resource_exhausted(format!("no memory for {len_bytes} bytes to be sent"))
        })?;
        let mut rest = copy.as_bytes_mut().unwrap_or_default();
        for span in spans {
            let (part, behind) = rest.split_at_mut(bytes(span).len());
            part.copy_from_slice(&self.memory(span.memory)?.read()?.bytes()[bytes(span)]);
            rest = behind;
        }
        Ok(copy)
    }

    /// Does an action that concerns memory alone.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` without memory, `FailedPrecondition` if somebody else uses the tensors in a way that excludes
    /// this.
    pub fn act(&mut self, action: Action<Elements>) -> Result<(), Error> {
        match action {
            Action::Allocate { extents } => {
                let metadata = TensorMetadata::new(self.dtype, TensorShape::new(&extents)?);
                self.result = Some(DenseHostTensor::unspecified(&self.allocator, metadata)?);
                Ok(())
            }
            Action::Reduce {
                into,
                values,
                steps,
                function,
                n_terms,
            } => {
                self.make_scratch(into.memory)?;
                let reduction = Reduction {
                    into,
                    values,
                    steps,
                    function,
                    n_terms,
                };
                match self.dtype {
                    DType::I32 => self.reduce::<i32>(&reduction),
                    DType::F32 => self.reduce::<f32>(&reduction),
                    other => Err(Error::unimplemented(format!(
                        "tensors of {other} are not reduced"
                    ))),
                }
            }
            Action::Place {
                from,
                n_blocks,
                block_len,
                offset,
                stride,
            } => self.place(&from, (n_blocks, block_len), (offset, stride)),
            Action::Send { .. } | Action::Done | Action::Failed(_) => Ok(()),
        }
    }

    /// Makes the memory that a reduction writes, if it is not there.
    fn make_scratch(&mut self, memory: Memory) -> Result<(), Error> {
        let Memory::Scratch(index) = memory else {
            return Ok(());
        };
        let metadata = self.result()?.metadata().clone();
        while self.scratch.len() <= index {
            let scratch = DenseHostTensor::unspecified(&self.allocator, metadata.clone())?;
            self.scratch.push(scratch);
        }
        Ok(())
    }

    fn reduce<T: Real>(&self, reduction: &Reduction) -> Result<(), Error> {
        let is_over = |memory| {
            let is_result = reduction.into.memory == Memory::Result;
            self.is_in_place && is_result && memory == Memory::Input(0)
        };
        let tensors = reduction.values.iter().map(|value| match value {
            Source::Span(span) if is_over(span.memory) => Ok(None),
            Source::Span(span) => {
                let tensor = self.memory(span.memory)?.clone();
                Ok(Some((tensor, span.elements.clone())))
            }
            Source::Arrived(elements, range) => Ok(Some((self.arrived(elements)?, range.clone()))),
        });
        let tensors = tensors.collect::<Result<Vec<_>, Error>>()?;
        let readings = tensors.iter().map(|tensor| match tensor {
            Some((tensor, range)) => Ok(Some((tensor.read()?, range.clone()))),
            None => Ok(None),
        });
        let readings =
            readings.collect::<Result<Vec<Option<(DenseReading<'_>, Range<usize>)>>, Error>>()?;
        let values = readings.iter().map(|reading| match reading {
            Some((reading, range)) => Ok(Value::Elements(&reading.elements::<T>()?[range.clone()])),
            None => Ok(Value::Result),
        });
        let values = values.collect::<Result<Vec<Value<'_, T>>, Error>>()?;
        let mut writing = self.memory(reduction.into.memory)?.write()?;
        let result = &mut writing.elements_mut::<T>()?[reduction.into.elements.clone()];
        let Reduction {
            function,
            steps,
            n_terms,
            ..
        } = reduction;
        arithmetic::reduce(*function, steps, &values, result, *n_terms);
        Ok(())
    }

    fn place(
        &self,
        from: &Source<Elements>,
        (n_blocks, block_len): (usize, usize),
        (offset, stride): (usize, usize),
    ) -> Result<(), Error> {
        let (tensor, elements) = match from {
            Source::Span(span) => (self.memory(span.memory)?.clone(), &span.elements),
            Source::Arrived(elements, range) => (self.arrived(elements)?, range),
        };
        let reading = tensor.read()?;
        let mut writing = self.result()?.write()?;
        let (source, target) = (reading.bytes(), writing.bytes_mut());
        for block in 0..n_blocks {
            let from = elements.start + block * block_len;
            let to = offset + block * stride;
            let from = self.bytes_of(&(from..from + block_len));
            let to = self.bytes_of(&(to..to + block_len));
            target[to].copy_from_slice(&source[from]);
        }
        Ok(())
    }

    /// Returns elements that have arrived as a tensor, copied if they lie where they may not.
    fn arrived(&self, elements: &Elements) -> Result<DenseHostTensor, Error> {
        let buffer = &elements.0;
        let n_elements = buffer.len_bytes() / self.element_bytes();
        let metadata = TensorMetadata::new(self.dtype, TensorShape::new(&[n_elements])?);
        let alignment = self.dtype.alignment_bytes().unwrap_or(1);
        match buffer.address().is_multiple_of(alignment) {
            true => DenseHostTensor::new(metadata, buffer.clone()),
            false => DenseHostTensor::from_bytes(&self.allocator, metadata, &buffer.read()?),
        }
    }

    /// Returns memory that is there.
    fn memory(&self, memory: Memory) -> Result<&DenseHostTensor, Error> {
        match memory {
            Memory::Input(0) if self.is_in_place => self.result(),
            Memory::Result => self.result(),
            Memory::Input(index) => self.inputs.get(index).ok_or_else(absent),
            Memory::Scratch(index) => self.scratch.get(index).ok_or_else(absent),
        }
    }

    fn element_bytes(&self) -> usize {
        self.dtype.size_bytes().unwrap_or(1)
    }

    fn bytes_of(&self, elements: &Range<usize>) -> Range<usize> {
        let size = self.element_bytes();
        elements.start * size..elements.end * size
    }
}

fn absent() -> Error {
    Error::internal("a collective reads what it was given, or has written")
}

/// The contents of [`Action::Reduce`].
struct Reduction {
    into: Span,
    values: Vec<Source<Elements>>,
    steps: Vec<Step>,
    function: Function,
    n_terms: Option<usize>,
}
