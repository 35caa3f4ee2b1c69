//! Values that a call lends without counting them: [`Borrowed`] ones of its caller, among them its inputs ([`LentCall`]), and
//! [`View`]s of its inputs and outputs.
//!
//! A kernel that ends when its function returns uses inputs, outputs and surroundings for a known time. To count each of
//! them up and down costs more than the rest of a small call.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use tfrt_corert::Call;
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};
use tfrt_tensor::DenseHostTensor;

use crate::dtype;
use crate::handle::Words;
use crate::raw::Memory;
use crate::value::{Storage, Tensor, known};

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

/// Memory of the host that needs no right.
#[derive(Clone)]
pub struct Buffer {
    /// The handle that keeps it.
    pub buffer: HostBuffer,
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
            buffer: buffer.clone(),
            is_written: false,
        })
    }

    /// Returns memory that nobody else holds, to be written, if it is such.
    #[inline]
    pub fn new(mut buffer: HostBuffer) -> Option<Buffer> {
        let bytes = buffer.as_bytes_mut()?;
        Some(Buffer {
            memory: Memory::at(NonNull::from(bytes).cast()),
            buffer,
            is_written: true,
        })
    }
}

/// The call of an operation whose kernel ends when its function returns: it lends its inputs to the context.
///
/// One thread owns the call: the one that runs the kernel's function. It alone takes inputs, with the context locked, and
/// may read them without that. Other threads, to which the plugin has given the context, read them with the context locked.
pub struct LentCall(NonNull<Call<'static>>);

// SAFETY: see the type.
unsafe impl Send for LentCall {}

const _: () = {
    const fn is_sync<T: Sync>() {}
    is_sync::<tfrt_tensor::Tensor>();
};

impl LentCall {
    /// Borrows a call.
    ///
    /// # Safety
    ///
    /// The call is not moved, used otherwise or dropped before the result is dropped.
    #[inline]
    pub unsafe fn new(call: &mut Call<'_>) -> LentCall {
        LentCall(NonNull::from(call).cast())
    }

    /// Returns the address of the call, by which its thread finds it.
    #[inline]
    pub fn address(&self) -> *const Call<'static> {
        self.0.as_ptr()
    }

    /// Returns the call.
    #[inline]
    pub fn get(&self) -> &Call<'static> {
        // SAFETY: it is there, and nobody changes it while the context is locked.
        unsafe { self.0.as_ref() }
    }

    /// Takes an input that was given for good and that nobody else holds.
    ///
    /// # Safety
    ///
    /// This thread owns the call, and no view of the input is there.
    pub unsafe fn take_sole(&mut self, index: usize) -> Option<DenseHostTensor> {
        // SAFETY: the caller says so: no other thread uses the call while the context is locked.
        unsafe { self.0.as_mut() }.take_sole(index)
    }
}

/// A plugin's view of a dense tensor of few, small extents, which is not counted: the tensor stays where it is, and as it is,
/// for as long as the view is there. A tensor that counts the memory is made of it when a function asks for more than facts.
pub struct View {
    tensor: NonNull<DenseHostTensor>,
    memory: Memory,
    code: i32,
    is_written: bool,
}

// SAFETY: it reads the tensor, which any thread may.
unsafe impl Send for View {}

const _: () = {
    const fn is_sync<T: Sync>() {}
    is_sync::<DenseHostTensor>();
};

impl View {
    /// Makes a view of a tensor whose memory is frozen and lies as kernels rely on, if it is such.
    ///
    /// # Safety
    ///
    /// The tensor is not moved, changed or dropped before the view is dropped or made a [tensor](Self::tensor).
    #[inline(always)]
    pub unsafe fn new(tensor: &DenseHostTensor) -> Option<View> {
        let start = tensor.buffer().frozen_start()?;
        let is_aligned = start.addr().get().is_multiple_of(BUFFER_ALIGNMENT);
        if !is_aligned {
            return None;
        }
        let code = dtype::code(tensor.dtype())?;
        View::at(tensor, code, Memory::at(start), false)
    }

    /// Makes a view of a tensor that nobody else holds, to be written at `memory`.
    ///
    /// # Safety
    ///
    /// See [`new`](Self::new).
    #[inline(always)]
    pub unsafe fn written(code: i32, memory: Memory, tensor: &DenseHostTensor) -> Option<View> {
        View::at(tensor, code, memory, true)
    }

    #[inline(always)]
    fn at(tensor: &DenseHostTensor, code: i32, memory: Memory, is_written: bool) -> Option<View> {
        tensor.shape().as_small()?;
        dtype::size_log2(code)?;
        Some(View {
            tensor: NonNull::from(tensor),
            memory,
            code,
            is_written,
        })
    }

    #[inline(always)]
    fn dense(&self) -> &DenseHostTensor {
        // SAFETY: whoever made this has promised that the tensor is there.
        unsafe { self.tensor.as_ref() }
    }

    /// Returns the tensor, which counts the memory.
    #[cold]
    pub fn tensor(&self) -> Tensor {
        let tensor = self.dense();
        Tensor {
            code: self.code,
            shape: tensor.shape().clone(),
            storage: Storage::Buffer(Buffer {
                buffer: tensor.buffer().clone(),
                memory: self.memory,
                is_written: self.is_written,
            }),
        }
    }

    /// Returns the facts of the tensor.
    #[inline(always)]
    pub fn facts(&self) -> Words {
        known::small(self.code, self.dense(), self.memory)
    }
}
