//! Values that a call lends without counting them: [`Borrowed`] ones of its caller, and [`Shared`] handles to memory that the
//! call itself holds.
//!
//! A kernel that ends when its function returns uses inputs, outputs and surroundings for a known time. To count each of
//! them up and down costs more than the rest of a small call.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};
use tfrt_tensor::{DenseHostTensor, TensorShape};

use crate::dtype;
use crate::handle::Words;
use crate::raw::Memory;
use crate::value::{Storage, Tensor, is_aligned, known};

/// A reference without a lifetime, to a value that stays where it is, and as it is, for as long as this is there.
pub struct Borrowed<T>(NonNull<T>);

// SAFETY: it gives out shared references alone.
unsafe impl<T: Sync> Send for Borrowed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Borrowed<T> {}

impl<T> Borrowed<T> {
    /// Borrows a value.
    ///
    /// # Safety
    ///
    /// The value is not moved, changed or dropped before the result is.
    #[inline]
    pub unsafe fn new(value: &T) -> Borrowed<T> {
        Borrowed(NonNull::from(value))
    }
}

impl<T> Deref for Borrowed<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: whoever made this has promised that the value is there.
        unsafe { self.0.as_ref() }
    }
}

/// A value that is counted, or borrowed from somebody who counts it.
pub enum Lent<T> {
    /// Counted.
    Own(Arc<T>),
    /// Borrowed.
    Borrowed(Borrowed<T>),
}

impl<T> Deref for Lent<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Lent::Own(own) => own,
            Lent::Borrowed(borrowed) => borrowed,
        }
    }
}

/// A handle to a buffer that is counted, or that another, counted handle stands for. Clones are counted.
pub struct Shared {
    // Invariant: to be dropped if `is_counted` says so.
    buffer: ManuallyDrop<HostBuffer>,
    is_counted: bool,
}

impl Shared {
    /// Keeps a handle.
    #[inline]
    pub fn counted(buffer: HostBuffer) -> Shared {
        Shared {
            buffer: ManuallyDrop::new(buffer),
            is_counted: true,
        }
    }

    /// Copies a handle without counting the copy.
    ///
    /// # Safety
    ///
    /// A handle to this memory is kept until the result is dropped or [counted](Self::count), and nobody changes the bytes
    /// by way of that handle's being the only one.
    #[inline(always)]
    pub unsafe fn uncounted(of: &HostBuffer) -> Shared {
        // SAFETY: the copy is never dropped while it is not counted, and the original outlives it.
        let buffer = unsafe { std::ptr::from_ref(of).read() };
        Shared {
            buffer: ManuallyDrop::new(buffer),
            is_counted: false,
        }
    }

    /// Counts the handle, if it is not.
    #[inline]
    pub fn count(&mut self) {
        if !self.is_counted {
            self.buffer = ManuallyDrop::new(HostBuffer::clone(&self.buffer));
            self.is_counted = true;
        }
    }

    /// Returns the handle, counted.
    #[inline]
    pub fn into_buffer(mut self) -> HostBuffer {
        self.count();
        let mut own = ManuallyDrop::new(self);
        // SAFETY: it is counted, and neither read nor dropped again.
        unsafe { ManuallyDrop::take(&mut own.buffer) }
    }

    /// Returns whether this is the only handle to the memory.
    #[inline]
    pub fn is_unique(&mut self) -> bool {
        self.is_counted && self.buffer.is_unique()
    }
}

impl Deref for Shared {
    type Target = HostBuffer;

    #[inline]
    fn deref(&self) -> &HostBuffer {
        &self.buffer
    }
}

impl Clone for Shared {
    #[inline]
    fn clone(&self) -> Shared {
        Shared::counted(HostBuffer::clone(&self.buffer))
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        if self.is_counted {
            // SAFETY: it is counted, and not used again.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

/// Memory of the host that needs no right.
#[derive(Clone)]
pub struct Buffer {
    /// The handle that keeps it.
    pub buffer: Shared,
    /// The memory.
    pub memory: Memory,
    /// Whether the plugin may write: then this and its clones are the only holders.
    pub is_written: bool,
}

impl Buffer {
    /// Returns memory that nobody writes as long as this holds it, if it is such.
    #[inline]
    pub fn frozen(buffer: &HostBuffer) -> Option<Buffer> {
        Some(Buffer {
            memory: Memory::at(buffer.frozen_start()?),
            buffer: Shared::counted(buffer.clone()),
            is_written: false,
        })
    }

    /// Returns memory that nobody else holds, to be written, if it is such.
    #[inline]
    pub fn new(mut buffer: HostBuffer) -> Option<Buffer> {
        let bytes = buffer.as_bytes_mut()?;
        Some(Buffer {
            memory: Memory::at(NonNull::from(bytes).cast()),
            buffer: Shared::counted(buffer),
            is_written: true,
        })
    }
}

/// A plugin's view of a dense tensor of few, small extents: as much of a [`Tensor`] as handles tell, and nothing that must be
/// dropped. The tensor is made of it when a function asks for more.
pub struct View {
    /// Invariant: not counted; whoever made the view keeps another handle for as long as the view, or a tensor made of it
    /// that is not [counted](Tensor::count), is there.
    buffer: ManuallyDrop<HostBuffer>,
    memory: Memory,
    // In whole words, as facts have it: parts of words that are moved one by one hold up who reads the words.
    shape: [u64; 2],
    code: i32,
    is_written: bool,
}

impl View {
    /// Makes a view of a tensor whose memory is frozen and lies as kernels rely on, if it is such.
    ///
    /// # Safety
    ///
    /// See [`Tensor::uncounted`].
    #[inline(always)]
    pub unsafe fn new(tensor: &DenseHostTensor) -> Option<View> {
        let buffer = tensor.buffer();
        let start = buffer.frozen_start()?;
        let is_aligned = start.addr().get().is_multiple_of(BUFFER_ALIGNMENT);
        if !is_aligned {
            return None;
        }
        let code = dtype::code(tensor.dtype())?;
        // SAFETY: the caller says so.
        unsafe { View::at(tensor, code, Memory::at(start), false) }
    }

    /// Makes a view of a tensor that nobody else holds, to be written.
    ///
    /// # Safety
    ///
    /// See [`Tensor::uncounted`].
    #[inline(always)]
    pub unsafe fn written(code: i32, tensor: &mut DenseHostTensor) -> Option<View> {
        let memory = Memory::at(NonNull::from(tensor.bytes_mut()?).cast());
        // SAFETY: the caller says so.
        unsafe { View::at(tensor, code, memory, true) }
    }

    /// # Safety
    ///
    /// See [`Tensor::uncounted`].
    #[inline(always)]
    unsafe fn at(
        tensor: &DenseHostTensor,
        code: i32,
        memory: Memory,
        is_written: bool,
    ) -> Option<View> {
        let shape = known::packed(tensor.shape())?;
        dtype::size_log2(code)?;
        // SAFETY: the copy is never dropped, and the original outlives it.
        let buffer = unsafe { std::ptr::from_ref(tensor.buffer()).read() };
        Some(View {
            buffer: ManuallyDrop::new(buffer),
            memory,
            shape,
            code,
            is_written,
        })
    }

    /// Returns the memory.
    #[inline]
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Returns the tensor, which does not count the memory either.
    #[cold]
    pub fn tensor(&self) -> Tensor {
        let (rank, extents) = known::unpacked(self.shape);
        let extents = extents.map(i64::from);
        let shape = TensorShape::from_i64(extents.get(..rank.into()).unwrap_or_default());
        // SAFETY: by the invariant another handle is kept for as long as the copy.
        let buffer = unsafe { Shared::uncounted(&self.buffer) };
        Tensor {
            code: self.code,
            shape: shape.expect("small extents are those of a shape"),
            storage: Storage::Buffer(Buffer {
                buffer,
                memory: self.memory,
                is_written: self.is_written,
            }),
        }
    }

    /// Returns the facts of the tensor.
    #[inline(always)]
    pub fn facts(&self) -> Words {
        let len_bytes = self.buffer.len_bytes();
        known::small(self.code, self.shape, self.memory, len_bytes)
    }
}

impl Tensor {
    /// Makes a plugin's view of a dense tensor that does not count its memory, if that is frozen and lies as kernels rely on.
    ///
    /// # Safety
    ///
    /// A handle to the memory is kept until the result is dropped or [counted](Self::count), and is not used as the only one.
    #[inline(always)]
    pub unsafe fn uncounted(tensor: &DenseHostTensor) -> Option<Tensor> {
        let buffer = tensor.buffer();
        let start = buffer.frozen_start().filter(|_| is_aligned(buffer))?;
        Some(Tensor {
            code: dtype::code(tensor.dtype())?,
            shape: tensor.shape().clone(),
            storage: Storage::Buffer(Buffer {
                memory: Memory::at(start),
                // SAFETY: the caller says so.
                buffer: unsafe { Shared::uncounted(buffer) },
                is_written: false,
            }),
        })
    }

    /// Makes a plugin's view of a dense tensor that nobody else holds, to be written, which does not count its memory. `None`
    /// if somebody else holds it.
    ///
    /// # Safety
    ///
    /// See [`uncounted`](Self::uncounted).
    #[inline(always)]
    pub unsafe fn uncounted_written(code: i32, tensor: &mut DenseHostTensor) -> Option<Tensor> {
        let memory = Memory::at(NonNull::from(tensor.bytes_mut()?).cast());
        Some(Tensor {
            code,
            shape: tensor.shape().clone(),
            storage: Storage::Buffer(Buffer {
                memory,
                // SAFETY: the caller says so.
                buffer: unsafe { Shared::uncounted(tensor.buffer()) },
                is_written: true,
            }),
        })
    }

    /// Makes a plugin's view of a dense tensor that it writes at `memory`, as an [uncounted](Self::uncounted_written) view does.
    pub fn of_written(code: i32, memory: Memory, tensor: DenseHostTensor) -> Tensor {
        Tensor {
            code,
            shape: tensor.shape().clone(),
            storage: Storage::Buffer(Buffer {
                memory,
                buffer: Shared::counted(tensor.into_buffer()),
                is_written: true,
            }),
        }
    }

    /// Returns a copy that does not count the memory, where a clone would count it.
    ///
    /// # Safety
    ///
    /// This, or a clone, is kept until the result is dropped or [counted](Self::count), and is not used as the only holder.
    #[inline]
    pub unsafe fn uncounted_clone(&self) -> Tensor {
        let Storage::Buffer(own) = &self.storage else {
            return self.clone();
        };
        Tensor {
            code: self.code,
            shape: self.shape.clone(),
            storage: Storage::Buffer(Buffer {
                memory: own.memory,
                // SAFETY: the caller says so.
                buffer: unsafe { Shared::uncounted(&own.buffer) },
                is_written: own.is_written,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfrt_async::SystemAllocator;
    use tfrt_host::HostAllocator;

    #[test]
    fn handle_that_is_not_counted_becomes_one_that_is() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let mut own = HostBuffer::copy_of(&allocator, b"abc").unwrap();
        // SAFETY: `own` is kept until the copy is counted.
        let mut copy = unsafe { Shared::uncounted(&own) };
        assert!(own.is_unique() && !copy.is_unique());
        let clone = copy.clone();
        assert!(!own.is_unique());
        drop(clone);
        copy.count();
        assert!(!own.is_unique());
        drop(own);
        assert!(copy.is_unique());
        assert_eq!(*copy.into_buffer().read().unwrap(), *b"abc");
    }
}
