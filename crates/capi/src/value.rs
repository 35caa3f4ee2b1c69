//! [`Tensor`]: a tensor as a plugin holds it: type, shape, and shared memory.
//!
//! A plugin has the address of memory of the host. It needs no right to what is frozen, as inputs are, nor to what nobody
//! else holds, as outputs until their kernel has run; other memory is held with a right to read it
//! (`tfrt_host::memory`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer, OwnedReading, OwnedWriting};
use tfrt_host::{DType, Error, HostAllocator};
use tfrt_tensor::{
    DenseHostTensor, ObjectTensor, StringHostTensor, TensorFormat, TensorMetadata, TensorShape,
    convert,
};

use crate::cells::Cells;
use crate::dtype;
use crate::foreign::Foreign;
use crate::handle::Words;
use crate::lent::Buffer;
use crate::raw::Memory;

pub mod known;

/// A tensor as a plugin holds it. Clones share the memory.
#[derive(Clone)]
pub struct Tensor {
    /// Type of the elements, `TF_DataType`.
    pub code: i32,
    /// The extents.
    pub shape: TensorShape,
    /// The elements.
    pub storage: Storage,
}

/// Memory of a tensor.
#[derive(Clone)]
pub enum Storage {
    /// None: the tensor has no elements yet.
    Nothing,
    /// Memory of the host that others may write.
    Host(Arc<Held>),
    /// Memory of the host that nobody else writes: it is frozen, or new.
    Buffer(Buffer),
    /// Strings.
    Strings(Arc<Cells>),
    /// Resources or variants.
    Objects(Arc<Objects>),
    /// Memory of the plugin.
    Plugin(Arc<Foreign>),
}

/// Resources or variants, with bytes that a plugin may look at and that mean nothing.
pub struct Objects {
    objects: ObjectTensor,
    bytes: Buffer,
}

/// Memory of the host that others may write, with a right to it.
pub struct Held {
    buffer: HostBuffer,
    memory: Memory,
    /// Whether it is a variable's, which other calls may be changing.
    is_variables: bool,
    right: Mutex<Option<Right>>,
}

#[expect(dead_code, reason = "rights are dropped")]
enum Right {
    Reading(OwnedReading),
    Writing(OwnedWriting),
}

impl Held {
    fn reading(buffer: HostBuffer) -> Result<Held, Error> {
        let reading = buffer.clone().read_owned()?;
        let bytes: &[u8] = &reading;
        Ok(Held {
            memory: Memory::at(std::ptr::NonNull::from(bytes).cast()),
            buffer,
            is_variables: false,
            right: Mutex::new(Some(Right::Reading(reading))),
        })
    }

    /// Takes the right to write the memory of a variable, which nobody else uses.
    fn of_variable(buffer: HostBuffer) -> Result<Held, Error> {
        let writing = buffer.clone().write_owned()?;
        Ok(Held {
            memory: Memory::at(writing.start()),
            buffer,
            is_variables: true,
            right: Mutex::new(Some(Right::Writing(writing))),
        })
    }

    fn has_right(&self) -> bool {
        let right = self.right.lock();
        right.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Ends the right: the plugin has written, or read, what it wanted.
    fn release(&self) {
        let right = self.right.lock();
        drop(right.unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Tensor {
    /// Makes a tensor of zeros, or of empty strings.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a type or for a shape that no tensor has, `ResourceExhausted` if there is no memory.
    pub fn zeroed(
        allocator: &Arc<dyn HostAllocator>,
        code: i32,
        shape: TensorShape,
    ) -> Result<Tensor, Error> {
        let Some(n) = shape.n_elements() else {
            return Err(Error::invalid_argument(format!(
                "expected extents of a tensor, found {shape}"
            )));
        };
        let storage = match code {
            dtype::STRING => {
                let room = n.checked_mul(dtype::STRING_BYTES);
                if room.is_none_or(|room| room > isize::MAX as usize / 2) {
                    return Err(Error::resource_exhausted("too many strings"));
                }
                Storage::Strings(Arc::new(Cells::new(n)))
            }
            _ => match dtype::size_bytes(code) {
                0 => {
                    let metadata = metadata(code, shape.clone())?;
                    let tensor = DenseHostTensor::zeroed(allocator, metadata)?;
                    new_buffer(tensor.into_buffer())?
                }
                size => {
                    let len_bytes = n.checked_mul(size);
                    let buffer = len_bytes
                        .and_then(|len| HostBuffer::zeroed(allocator, len, BUFFER_ALIGNMENT));
                    new_buffer(buffer.ok_or_else(|| no_memory(code, &shape))?)?
                }
            },
        };
        Ok(Tensor {
            code,
            shape,
            storage,
        })
    }

    /// Makes a tensor in memory of the plugin.
    pub fn of_plugin(code: i32, shape: TensorShape, memory: Foreign) -> Tensor {
        Tensor {
            code,
            shape,
            storage: Storage::Plugin(Arc::new(memory)),
        }
    }

    /// Makes a tensor of elements that stay as they are, in memory of no allocator: definitions of operations have such,
    /// for good.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for types and shapes that no tensor has; `Internal` if there are other bytes than these need.
    pub fn constant(code: i32, shape: TensorShape, bytes: &[u8]) -> Result<Tensor, Error> {
        let expected = metadata(code, shape.clone())?.len_bytes()?;
        if bytes.len() != expected {
            let found = bytes.len();
            let message = format!("expected {expected} bytes of a constant, found {found}");
            return Err(Error::internal(message));
        }
        let buffer = HostBuffer::from_owner(AlignedBytes::new(bytes));
        let buffer = Buffer::frozen(&buffer);
        let buffer = buffer.ok_or_else(|| Error::internal("a constant can be written"))?;
        Ok(Tensor {
            code,
            shape,
            storage: Storage::Buffer(buffer),
        })
    }

    /// Makes a tensor without type and elements, to be filled by the host.
    pub fn empty() -> Tensor {
        Tensor {
            code: dtype::FLOAT,
            shape: TensorShape::SCALAR,
            storage: Storage::Nothing,
        }
    }

    /// Makes a plugin's view of a tensor of the runtime.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for types that plugins don't have, and for tensors on devices; `FailedPrecondition` if somebody
    /// is writing the tensor.
    pub fn of_host(
        tensor: &tfrt_tensor::Tensor,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        let metadata = tensor.metadata();
        let code = code_of(metadata)?;
        let dense;
        let storage = match tensor {
            tfrt_tensor::Tensor::String(strings) => {
                Storage::Strings(Arc::new(Cells::viewing(strings.clone())))
            }
            tfrt_tensor::Tensor::Dense(own) if is_aligned(own.buffer()) => {
                match Buffer::frozen(own.buffer()) {
                    Some(frozen) => Storage::Buffer(frozen),
                    None => Storage::Host(Arc::new(Held::reading(own.buffer().clone())?)),
                }
            }
            tfrt_tensor::Tensor::Object(objects) => {
                let size = dtype::object_bytes(code);
                let bytes = DenseHostTensor::zeroed(
                    allocator,
                    TensorMetadata::new(
                        DType::Ui8,
                        TensorShape::new(&[objects.cells().len() * size])?,
                    ),
                )?;
                let bytes = Buffer::new(bytes.into_buffer());
                let bytes = bytes.ok_or_else(|| Error::internal("new memory is shared"))?;
                Storage::Objects(Arc::new(Objects {
                    objects: objects.clone(),
                    bytes,
                }))
            }
            // Kernels rely on the alignment: a part of a tensor, or a constant in a file, may have another.
            tfrt_tensor::Tensor::Dense(own) => {
                let copy = own.buffer().aligned_copy(allocator)?;
                let copy =
                    copy.ok_or_else(|| Error::resource_exhausted("no memory for an input"))?;
                match Buffer::frozen(&copy) {
                    Some(frozen) => Storage::Buffer(frozen),
                    None => Storage::Host(Arc::new(Held::reading(copy)?)),
                }
            }
            other => {
                dense = convert::to_format(other, TensorFormat::DenseHost, allocator)?;
                let buffer = dense.as_dense()?.buffer().clone();
                Storage::Host(Arc::new(Held::reading(buffer)?))
            }
        };
        Ok(Tensor {
            code,
            shape: metadata.shape.clone(),
            storage,
        })
    }

    /// Makes a plugin's view of a dense tensor that nobody else holds, to be written.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for types that plugins don't have.
    pub fn of_sole(tensor: DenseHostTensor) -> Result<Tensor, Error> {
        let code = code_of(tensor.metadata())?;
        let mut tensor = tensor;
        if !tensor.is_sole() {
            return Err(Error::internal(
                "a tensor that was given for good is shared",
            ));
        }
        Ok(Tensor {
            code,
            shape: tensor.shape().clone(),
            storage: new_buffer(tensor.into_buffer())?,
        })
    }

    /// Makes a plugin's view of a variable's memory, which nobody else uses, to be changed in place until it is
    /// [released](Self::release).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for types that plugins don't have; `FailedPrecondition` if somebody uses the memory.
    pub fn of_variable(tensor: DenseHostTensor) -> Result<Tensor, Error> {
        Ok(Tensor {
            code: code_of(tensor.metadata())?,
            shape: tensor.shape().clone(),
            storage: Storage::Host(Arc::new(Held::of_variable(tensor.into_buffer())?)),
        })
    }

    /// Ends the plugin's right to memory of the host.
    pub fn release(&self) {
        if let Storage::Host(held) = &self.storage {
            held.release();
        }
    }

    /// Returns the tensor of the runtime. The plugin's right to write it ends.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the memory does not fit type and shape.
    pub fn into_host(
        self,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<tfrt_tensor::Tensor, Error> {
        match self.storage {
            Storage::Strings(cells) => {
                let strings = cells.to_strings();
                let strings = StringHostTensor::collect(allocator, self.shape, strings)?;
                Ok(strings.into())
            }
            Storage::Host(held) if held.is_variables && held.has_right() => {
                // Other calls that have the variable locked for readers go on to change it.
                let metadata = metadata(self.code, self.shape)?;
                let bytes = held.memory.bytes(metadata.len_bytes()?, "tensor");
                let copy =
                    DenseHostTensor::from_bytes(allocator, metadata, bytes.unwrap_or_default())?;
                Ok(copy.into())
            }
            Storage::Host(held) => {
                held.release();
                let metadata = metadata(self.code, self.shape)?;
                Ok(DenseHostTensor::new(metadata, held.buffer.clone())?.into())
            }
            Storage::Buffer(own) => {
                let metadata = metadata(self.code, self.shape)?;
                Ok(DenseHostTensor::new(metadata, own.buffer)?.into())
            }
            Storage::Objects(own) => Ok(own.objects.clone().into()),
            Storage::Plugin(memory) => {
                let metadata = metadata(self.code, self.shape)?;
                let buffer = HostBuffer::from_owner(memory.first(metadata.len_bytes()?));
                Ok(DenseHostTensor::new(metadata, buffer)?.into())
            }
            Storage::Nothing => Err(Error::internal("the plugin's tensor has no elements")),
        }
    }

    /// Returns what is read of the tensor without taking its place; see [`known`].
    #[inline(always)]
    pub fn facts(&self) -> Words {
        known::words(self)
    }

    /// Returns the number of elements.
    #[inline]
    pub fn n_elements(&self) -> usize {
        self.shape.n_elements().unwrap_or(0)
    }

    /// Returns the number of bytes of the memory.
    #[inline(always)]
    pub fn len_bytes(&self) -> usize {
        match &self.storage {
            Storage::Nothing => 0,
            Storage::Host(held) => held.buffer.len_bytes(),
            Storage::Buffer(own) => own.buffer.len_bytes(),
            Storage::Objects(own) => own.bytes.buffer.len_bytes(),
            Storage::Strings(cells) => cells.len() * dtype::STRING_BYTES,
            Storage::Plugin(memory) => memory.len_bytes(),
        }
    }

    /// Returns the memory of the elements.
    #[inline(always)]
    pub fn memory(&self) -> Memory {
        match &self.storage {
            Storage::Nothing => Memory::default(),
            Storage::Host(held) => held.memory,
            Storage::Buffer(own) => own.memory,
            Storage::Objects(own) => own.bytes.memory,
            Storage::Strings(cells) => cells.memory(),
            Storage::Plugin(memory) => memory.memory(),
        }
    }

    /// Returns whether nobody else holds the memory.
    pub fn is_alone(&mut self) -> bool {
        match &mut self.storage {
            Storage::Host(held) => Arc::strong_count(held) == 1,
            Storage::Buffer(own) => own.buffer.is_unique(),
            Storage::Objects(own) => Arc::strong_count(own) == 1,
            Storage::Strings(cells) => Arc::strong_count(cells) == 1,
            Storage::Plugin(memory) => Arc::strong_count(memory) == 1,
            Storage::Nothing => true,
        }
    }

    /// Returns whether this is the only holder of memory of the host that may be written: then another tensor may take
    /// the memory over. Of no memory everybody is.
    pub fn is_sole(&mut self) -> bool {
        if self.len_bytes() == 0 {
            return true;
        }
        match &mut self.storage {
            Storage::Buffer(own) => own.is_written && own.buffer.is_unique(),
            Storage::Strings(cells) => Arc::strong_count(cells) == 1,
            Storage::Nothing | Storage::Host(_) | Storage::Objects(_) | Storage::Plugin(_) => false,
        }
    }
}

/// Bytes that lie as kernels rely on.
struct AlignedBytes {
    all: Vec<u8>,
    range: std::ops::Range<usize>,
}

impl AlignedBytes {
    fn new(bytes: &[u8]) -> AlignedBytes {
        let mut all: Vec<u8> = Vec::with_capacity(bytes.len() + BUFFER_ALIGNMENT);
        let address = all.as_ptr().addr();
        let start = address.next_multiple_of(BUFFER_ALIGNMENT) - address;
        all.resize(start, 0);
        all.extend_from_slice(bytes);
        let range = start..all.len();
        AlignedBytes { all, range }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.all[self.range.clone()]
    }
}

#[cold]
fn no_memory(code: i32, shape: &TensorShape) -> Error {
    let name = dtype::name(code);
    Error::resource_exhausted(format!("no memory for a tensor of {name} {shape}"))
}

/// Returns the storage of a buffer that nobody else holds.
fn new_buffer(buffer: HostBuffer) -> Result<Storage, Error> {
    let own = Buffer::new(buffer);
    own.map(Storage::Buffer)
        .ok_or_else(|| Error::internal("memory that is to be written is shared"))
}

/// Returns whether a buffer begins where kernels expect a tensor to begin.
#[inline]
pub fn is_aligned(buffer: &HostBuffer) -> bool {
    buffer.len_bytes() == 0 || buffer.address().is_multiple_of(BUFFER_ALIGNMENT)
}

fn code_of(metadata: &TensorMetadata) -> Result<i32, Error> {
    dtype::code(metadata.dtype).ok_or_else(|| {
        let dtype = metadata.dtype;
        Error::invalid_argument(format!("plugins have no type of elements {dtype}"))
    })
}

/// Returns type and shape as the runtime has them.
///
/// # Errors
///
/// `InvalidArgument` for a type that no tensor has.
pub fn metadata(code: i32, shape: TensorShape) -> Result<TensorMetadata, Error> {
    let dtype = dtype::of_code(code).ok_or_else(|| {
        let name = dtype::name(code);
        Error::invalid_argument(format!("expected a type of elements, found {name}"))
    })?;
    Ok(TensorMetadata::new(dtype, shape))
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", dtype::name(self.code), self.shape)
    }
}
