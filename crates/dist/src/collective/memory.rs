//! [`Tensors`]: the tensors of a collective in a host's memory, on which its actions are done.
//!
//! Memory is used for as long as an action takes, and only the elements that it is about; whoever uses them at the wrong
//! time gets an error. Elements that are sent are lent where nobody writes over them until the collective is done, and
//! copied elsewhere.

use std::ops::Range;
use std::sync::Arc;

use tfrt_async::Error;
use tfrt_async::HostAllocator;
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{BF16, DType, DenseHostTensor, DenseReading, F16, TensorMetadata, TensorShape};

use super::arithmetic::{self, Value};
use super::{Action, EAGER_BYTES, Function, Memory, Payload, Source, Span};
use crate::reduction::Step;

/// Elements that have arrived, as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Elements(pub HostBuffer);

impl Payload for Elements {
    fn len_bytes(&self) -> usize {
        self.0.len_bytes()
    }
}

/// The tensors of a member. Its leaves lie in one input, one behind the other.
pub(crate) struct Tensors {
    allocator: Arc<dyn HostAllocator>,
    dtype: DType,
    input: Option<DenseHostTensor>,
    /// The elements of a leaf, where the input has several.
    leaf_len: usize,
    /// Memory for subtrees of leaves.
    scratch: Vec<Option<DenseHostTensor>>,
    /// The result; of a gathering of any shape it is made when all shapes are known.
    result: Option<DenseHostTensor>,
    /// Whether the input is the result, too.
    is_in_place: bool,
}

impl Tensors {
    /// Makes those of a reduction, whose result may be written over the input if that is one leaf.
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
            false => {
                let leaf_len = result.n_elements();
                Ok(Tensors {
                    leaf_len,
                    ..of(Some(input))?
                })
            }
        }
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
            input: input.transpose()?,
            leaf_len: 0,
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

    /// Returns elements that are to be sent where they lie, if the collective does not write over them: those of an input
    /// that is no result, and parts of the result that are `final`.
    pub fn lent(&self, spans: &[Span], is_final: bool) -> Option<HostBuffer> {
        let [span] = spans else { return None };
        let may_lend = match span.memory {
            Memory::Input(_) => !self.is_in_place,
            Memory::Result => is_final,
            Memory::Scratch(_) => false,
        };
        if !may_lend || self.bytes_of(&span.elements).len() <= EAGER_BYTES {
            return None;
        }
        let (tensor, elements) = self.place_of(span).ok()?;
        tensor.buffer().slice(self.bytes_of(&elements))
    }

    /// Copies elements that are to be sent.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` without memory, `FailedPrecondition` if somebody is writing the tensor.
    pub fn copy(&self, spans: &[Span]) -> Result<HostBuffer, Error> {
        let len_of = |span: &Span| self.bytes_of(&span.elements).len();
        let len_bytes = spans.iter().map(len_of).sum();
        let copy = HostBuffer::unspecified(&self.allocator, len_bytes, BUFFER_ALIGNMENT);
        let mut copy = copy.ok_or_else(|| {
            Error::resource_exhausted(format!("no memory for {len_bytes} bytes to be sent"))
        })?;
        let mut rest = copy.as_bytes_mut().unwrap_or_default();
        for span in spans {
            let (part, behind) = rest.split_at_mut(len_of(span));
            part.copy_from_slice(self.part(span)?.read()?.bytes());
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
                self.make_scratch(&into)?;
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
                    DType::I64 => self.reduce::<i64>(&reduction),
                    DType::F64 => self.reduce::<f64>(&reduction),
                    DType::F16 => self.reduce::<F16>(&reduction),
                    DType::Bf16 => self.reduce::<BF16>(&reduction),
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

    fn reduce<T: Real>(&self, reduction: &Reduction) -> Result<(), Error> {
        let tensors = reduction.values.iter().map(|value| match value {
            Source::Span(span) if self.is_written_over(span, &reduction.into) => Ok(None),
            Source::Span(span) => {
                let part = self.part(span)?;
                let all = 0..part.n_elements();
                Ok(Some((part, all)))
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
        let target = self.part(&reduction.into)?;
        let mut writing = target.write()?;
        let result = writing.elements_mut::<T>()?;
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
            Source::Span(span) => {
                let (tensor, elements) = self.place_of(span)?;
                (tensor.clone(), elements)
            }
            Source::Arrived(elements, range) => (self.arrived(elements)?, range.clone()),
        };
        let reading = tensor.read()?;
        // One block is all that is written; of several the result is written as a whole.
        let (target, offset) = match n_blocks {
            1 => {
                let (memory, elements) = (Memory::Result, offset..offset + block_len);
                (self.part(&Span { memory, elements })?, 0)
            }
            _ => (self.result()?.clone(), offset),
        };
        let mut writing = target.write()?;
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

    /// Returns elements as a tensor of their own.
    fn part(&self, span: &Span) -> Result<DenseHostTensor, Error> {
        let (tensor, elements) = self.place_of(span)?;
        let buffer = tensor.buffer().slice(self.bytes_of(&elements));
        let buffer =
            buffer.ok_or_else(|| Error::internal("the elements of a collective are there"))?;
        let metadata = TensorMetadata::new(self.dtype, TensorShape::new(&[elements.len()])?);
        DenseHostTensor::new(metadata, buffer)
    }

    /// Returns the tensor that elements lie in, and which they are there.
    fn place_of(&self, span: &Span) -> Result<(&DenseHostTensor, Range<usize>), Error> {
        let elements = span.elements.clone();
        match span.memory {
            Memory::Input(0) if self.is_in_place => Ok((self.result()?, elements)),
            Memory::Result => Ok((self.result()?, elements)),
            Memory::Input(leaf) => {
                let begin = leaf * self.leaf_len;
                let input = self.input.as_ref();
                let input = input
                    .ok_or_else(|| Error::internal("a collective that reads an input has one"))?;
                Ok((input, begin + elements.start..begin + elements.end))
            }
            Memory::Scratch(index) => {
                let scratch = self.scratch.get(index).and_then(Option::as_ref);
                let scratch = scratch
                    .ok_or_else(|| Error::internal("scratch memory is written, then read"))?;
                Ok((scratch, elements))
            }
        }
    }

    /// Returns whether a value lies where the result of a reduction goes.
    fn is_written_over(&self, value: &Span, into: &Span) -> bool {
        let is_result = |span: &Span| {
            span.memory == Memory::Result || self.is_in_place && span.memory == Memory::Input(0)
        };
        is_result(value) && is_result(into)
    }

    /// Makes memory for subtrees where a reduction goes there.
    fn make_scratch(&mut self, into: &Span) -> Result<(), Error> {
        let Memory::Scratch(index) = into.memory else {
            return Ok(());
        };
        if self.scratch.len() <= index {
            self.scratch.resize(index + 1, None);
        }
        if self.scratch[index].is_none() {
            let len = TensorShape::new(&[self.result()?.n_elements()])?;
            let metadata = TensorMetadata::new(self.dtype, len);
            let made = DenseHostTensor::unspecified(&self.allocator, metadata)?;
            self.scratch[index] = Some(made);
        }
        Ok(())
    }

    fn element_bytes(&self) -> usize {
        self.dtype.size_bytes().unwrap_or(1)
    }

    fn bytes_of(&self, elements: &Range<usize>) -> Range<usize> {
        let size = self.element_bytes();
        elements.start * size..elements.end * size
    }
}

/// The contents of [`Action::Reduce`].
struct Reduction {
    into: Span,
    values: Vec<Source<Elements>>,
    steps: Vec<Step>,
    function: Function,
    n_terms: Option<usize>,
}
