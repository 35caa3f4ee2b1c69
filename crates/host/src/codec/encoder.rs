//! [`Encoder`]: a writer of one value's bytes, for its codec.

use std::fmt;
use std::sync::Arc;

use tfrt_async::HostAllocator;

use crate::memory::HostBuffer;

/// A writer of one value's bytes. Numbers are little-endian.
pub struct Encoder {
    head: Vec<u8>,
    parts: Vec<HostBuffer>,
    allocator: Arc<dyn HostAllocator>,
    target: Option<&'static str>,
}

impl Encoder {
    /// Makes an encoder; what a codec has to make anew is in memory of the allocator.
    pub fn new(allocator: &Arc<dyn HostAllocator>) -> Encoder {
        Encoder {
            head: Vec::new(),
            parts: Vec::new(),
            allocator: allocator.clone(),
            target: None,
        }
    }

    /// Writes for another machine than this one, whose best instruction set has this name.
    pub fn for_target(mut self, target: &'static str) -> Encoder {
        self.target = Some(target);
        self
    }

    /// Returns the best instruction set of the machine that is to read the value; `None` if it is
    /// this machine.
    pub fn target(&self) -> Option<&'static str> {
        self.target
    }

    /// Returns the allocator.
    pub fn allocator(&self) -> &Arc<dyn HostAllocator> {
        &self.allocator
    }

    /// Writes bytes to the head, as many as the decoder knows to expect.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    /// Writes a byte to the head.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Writes a number to the head.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Writes a number to the head.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Writes a size or a count to the head, as 64 bits.
    pub fn usize(&mut self, value: usize) {
        self.u64(value as u64);
    }

    /// Writes a text to the head, behind its length.
    pub fn str(&mut self, text: &str) {
        self.usize(text.len());
        self.bytes(text.as_bytes());
    }

    /// Adds a part: the buffer's bytes, which are not copied.
    pub fn part(&mut self, buffer: HostBuffer) {
        self.parts.push(buffer);
    }

    /// Adds a part of bytes that the codec has put together.
    pub fn own_part(&mut self, bytes: Vec<u8>) {
        self.part(HostBuffer::from_owner(bytes));
    }

    /// Returns head and parts.
    pub(super) fn finish(self) -> (Vec<u8>, Vec<HostBuffer>) {
        (self.head, self.parts)
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("head_bytes", &self.head.len())
            .field("n_parts", &self.parts.len())
            .finish_non_exhaustive()
    }
}
