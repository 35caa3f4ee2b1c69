//! Functions of `tf_buffer.h`: bytes that both sides read and fill, in a public structure.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault;
use crate::guard::Callback;
use crate::raw::{Buffer, Memory, Out};

/// A structure that the host has given out: three words, which plugins read and write.
struct Given {
    words: Arc<[AtomicUsize; 3]>,
    /// The bytes that the host has put into it.
    bytes: Box<[u8]>,
}

/// Structures that the host has given out, by address.
static BUFFERS: Mutex<BTreeMap<usize, Given>> = Mutex::new(BTreeMap::new());

const _: () = assert!(size_of::<[AtomicUsize; 3]>() == size_of::<Buffer>());

/// A pointer to a buffer: `TF_Buffer*`.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct BufferRef(Option<NonNull<Buffer>>);

fn buffers() -> MutexGuard<'static, BTreeMap<usize, Given>> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a buffer that holds these bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> BufferRef {
    let words: Arc<[AtomicUsize; 3]> = Arc::default();
    let address = Arc::as_ptr(&words).cast_mut().cast::<Buffer>();
    let bytes: Box<[u8]> = bytes.into();
    let made = BufferRef(NonNull::new(address));
    let filled = Buffer {
        data: match bytes.is_empty() {
            true => Memory::default(),
            false => Memory::at(NonNull::from(&*bytes).cast()),
        },
        len_bytes: bytes.len(),
        deallocator: Callback::NONE,
    };
    made.place().set_if(filled);
    buffers().insert(made.address(), Given { words, bytes });
    made
}

impl BufferRef {
    fn address(self) -> usize {
        self.0.map_or(0, |buffer| buffer.addr().get())
    }

    fn place(self) -> Out<Buffer> {
        Out::at(self.0)
    }

    /// Returns a copy of the bytes. Records a fault for a null pointer.
    pub fn bytes(self, argument: &str) -> Option<Vec<u8>> {
        let buffer = self.place().get(argument)?;
        let bytes = buffer.data.bytes(buffer.len_bytes, argument);
        bytes.map(<[u8]>::to_vec)
    }

    /// Fills the structure with bytes of the host's. Those of before are freed.
    pub fn fill(self, bytes: &[u8], argument: &str) {
        let Some(before) = self.place().get(argument) else {
            return;
        };
        free(before);
        let bytes: Box<[u8]> = bytes.into();
        let made = Buffer {
            data: Memory::at(NonNull::from(&*bytes).cast()),
            len_bytes: bytes.len(),
            deallocator: Callback::NONE,
        };
        self.place().set_if(made);
        match buffers().get_mut(&self.address()) {
            Some(given) => given.bytes = bytes,
            // A structure of the plugin's own: nobody else frees the bytes.
            None => drop(Box::leak(bytes)),
        }
    }
}

fn free(buffer: Buffer) {
    let arguments = [buffer.data.address(), buffer.len_bytes];
    if let Err(exception) = buffer.deallocator.call(&arguments) {
        fault::record(format_args!("the deallocator of a buffer {exception}"));
    }
}

pub(crate) fn new() -> BufferRef {
    of_bytes(&[])
}

pub(crate) fn of_string(bytes: Memory, n: usize) -> BufferRef {
    of_bytes(bytes.bytes(n, "proto").unwrap_or_default())
}

const UNKNOWN: &str = "expected a TF_Buffer, found one that was deleted or is not of the host";

pub(crate) fn delete(buffer: BufferRef) {
    if buffer.0.is_none() {
        return;
    }
    let given = buffers().remove(&buffer.address());
    let Some(given) = given else {
        return fault::argument("buffer", UNKNOWN);
    };
    if let Some(left) = buffer.place().get("buffer") {
        free(left);
    }
    drop((given.words, given.bytes));
}

pub(crate) fn get(buffer: BufferRef) -> Buffer {
    if !buffers().contains_key(&buffer.address()) {
        fault::argument("buffer", UNKNOWN);
        return Buffer::default();
    }
    buffer.place().get("buffer").unwrap_or_default()
}
