//! [`OwnedReading`] and [`OwnedWriting`]: a handle to bytes together with the right to read or to write them.
//!
//! [`Reading`](super::Reading) borrows its buffer, and so ends with a function. Whoever uses bytes for longer owns
//! them: a copy that a device makes in the background, a loop that several threads run, an array of another language.
//!
//! Invariant: a right that owns its buffer is one more handle to the memory. So while it lives nobody is the memory's
//! only holder, and nobody freezes or thaws it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use tfrt_async::{Error, Hold};

use super::HostBuffer;

/// A guard for reading the bytes of a buffer that owns the buffer: for a thread or a device that reads them later.
///
/// # Examples
///
/// ```
/// use tfrt_host::memory::HostBuffer;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let buffer = HostBuffer::copy_of(host.allocator(), &[1, 2, 3]).unwrap();
/// let reading = buffer.clone().read_owned()?;
/// let sum = std::thread::spawn(move || reading.iter().sum::<u8>());
/// assert_eq!(sum.join().unwrap(), 6);
/// assert!(buffer.write().is_ok(), "the thread has ended, and its right with it");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub struct OwnedReading {
    // Invariant: `held.hold` is a right to read the buffer's bytes; `None` for memory that is never written.
    held: HeldBuffer,
}

/// A guard for writing the bytes of a buffer that owns the buffer: for a thread or a device that writes them later.
///
/// # Examples
///
/// ```
/// use tfrt_host::memory::HostBuffer;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let buffer = HostBuffer::copy_of(host.allocator(), &[0; 3]).unwrap();
/// let mut writing = buffer.clone().write_owned()?;
/// assert!(buffer.read().is_err(), "somebody writes the bytes");
/// std::thread::spawn(move || writing.fill(7)).join().unwrap();
/// assert_eq!(*buffer.read()?, [7, 7, 7]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub struct OwnedWriting {
    // Invariant: `held.hold` is the right to write the buffer's bytes.
    held: HeldBuffer,
}

/// A buffer, and a right to its bytes that is given back before the buffer is let go.
struct HeldBuffer {
    buffer: HostBuffer,
    hold: Option<Hold>,
}

impl HostBuffer {
    /// Takes a right to read the bytes that lasts as long as the result.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing some of them.
    pub fn read_owned(self) -> Result<OwnedReading, Error> {
        let hold = self.hold_for_reading()?;
        let held = HeldBuffer { buffer: self, hold };
        Ok(OwnedReading { held })
    }

    /// Takes the right to write the bytes that lasts as long as the result.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is reading or writing some of them, if they are [frozen](Self::freeze), or a
    /// foreign owner's.
    pub fn write_owned(self) -> Result<OwnedWriting, Error> {
        let hold = Some(self.hold_for_writing()?);
        let held = HeldBuffer { buffer: self, hold };
        Ok(OwnedWriting { held })
    }
}

impl OwnedReading {
    /// Returns the buffer whose bytes are read.
    pub fn buffer(&self) -> &HostBuffer {
        &self.held.buffer
    }

    /// Gives the right back and keeps the buffer.
    pub fn into_buffer(self) -> HostBuffer {
        // The right is given back by the end of this function.
        self.held.buffer.clone()
    }
}

impl OwnedWriting {
    /// Returns the buffer whose bytes are written.
    pub fn buffer(&self) -> &HostBuffer {
        &self.held.buffer
    }

    /// Gives the right back and keeps the buffer.
    pub fn into_buffer(self) -> HostBuffer {
        // The right is given back by the end of this function.
        self.held.buffer.clone()
    }

    /// Returns the address of the bytes, for those who share the writing among them: a device that copies to it, or
    /// threads that each write a part.
    ///
    /// The address is valid for reads and writes of all [bytes](Self::len_bytes) for as long as this right lives, also
    /// when that is moved; whoever uses the address keeps apart from others who do, and from this right's slices.
    pub fn start(&self) -> NonNull<u8> {
        self.held.buffer.start()
    }

    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        self.held.buffer.len_bytes()
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.buffer.release(hold);
        }
    }
}

impl Deref for OwnedReading {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: by the field's invariant there is a right to read them, which keeps writers away, or nobody writes
        // them (B3 of `buffer.rs`).
        unsafe { self.held.buffer.bytes() }
    }
}

impl AsRef<[u8]> for OwnedReading {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for OwnedWriting {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: by the field's invariant there is the right to write them, which keeps everybody else away.
        unsafe { self.held.buffer.bytes() }
    }
}

impl DerefMut for OwnedWriting {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the field's invariant there is the right to write them, which keeps everybody else away; this
        // handle to it is borrowed for writing.
        unsafe { self.held.buffer.bytes_mut() }
    }
}

impl fmt::Debug for OwnedReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedReading({})", self.held.buffer)
    }
}

impl fmt::Debug for OwnedWriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedWriting({})", self.held.buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tfrt_async::{ErrorCode, HostAllocator, SystemAllocator};

    fn allocator() -> Arc<dyn HostAllocator> {
        Arc::new(SystemAllocator::new())
    }

    fn is_static_and_sent<T: Send + Sync + 'static>(_: &T) {}

    #[test]
    fn an_owned_reading_keeps_the_bytes_and_keeps_writers_away() {
        let buffer = HostBuffer::copy_of(&allocator(), b"abc").unwrap();
        let reading = buffer.clone().read_owned().unwrap();
        is_static_and_sent(&reading);
        let error = buffer.write().unwrap_err();
        assert_eq!(error.code(), ErrorCode::FailedPrecondition);
        assert!(buffer.read().is_ok() && buffer.clone().read_owned().is_ok());
        drop(buffer);
        assert_eq!(*reading, *b"abc");
        let mut buffer = reading.into_buffer();
        assert_eq!(buffer.as_bytes_mut().unwrap(), b"abc");
    }

    #[test]
    fn an_owned_writing_keeps_everybody_away_until_it_is_dropped() {
        let buffer = HostBuffer::copy_of(&allocator(), b"abc").unwrap();
        let mut writing = buffer.clone().write_owned().unwrap();
        is_static_and_sent(&writing);
        assert!(buffer.read().is_err() && buffer.clone().read_owned().is_err());
        assert!(buffer.write().is_err() && buffer.clone().write_owned().is_err());
        writing[0] = b'x';
        assert_eq!((&*writing, writing.len_bytes()), (&b"xbc"[..], 3));
        drop(writing);
        assert_eq!(*buffer.read().unwrap(), *b"xbc");
    }

    #[test]
    fn owned_rights_to_parts_are_held_apart() {
        let whole = HostBuffer::zeroed(&allocator(), 4, 1).unwrap();
        let [left, right] = [0..2, 2..4].map(|range| whole.slice(range).unwrap());
        let mut left = left.write_owned().unwrap();
        let mut right = right.write_owned().unwrap();
        left.fill(1);
        right.fill(2);
        assert!(whole.clone().read_owned().is_err());
        let right = right.into_buffer();
        assert_eq!(*right.read_owned().unwrap(), [2, 2]);
        drop(left);
        assert_eq!(*whole.read().unwrap(), [1, 1, 2, 2]);
    }

    #[test]
    fn a_buffer_whose_bytes_somebody_owns_a_right_to_has_no_only_holder() {
        let mut buffer = HostBuffer::copy_of(&allocator(), b"abc").unwrap();
        let reading = buffer.clone().read_owned().unwrap();
        buffer.freeze();
        assert!(!buffer.thaw() && buffer.as_bytes_mut().is_none());
        drop(reading);
        buffer.freeze();
        let reading = buffer.clone().read_owned().unwrap();
        assert!(!buffer.thaw() && buffer.clone().write_owned().is_err());
        drop(reading);
        assert!(buffer.thaw() && buffer.write_owned().is_ok());
    }

    #[test]
    fn foreign_bytes_are_owned_for_reading_alone() {
        let buffer = HostBuffer::from_owner(vec![1_u8, 2]);
        let error = buffer.clone().write_owned().unwrap_err();
        assert_eq!(error.code(), ErrorCode::FailedPrecondition);
        assert_eq!(*buffer.read_owned().unwrap(), [1, 2]);
    }

    #[test]
    fn parts_written_through_the_address_are_seen_when_the_right_has_ended() {
        let buffer = HostBuffer::zeroed(&allocator(), 4, 1).unwrap();
        let writing = buffer.clone().write_owned().unwrap();
        let start = writing.start();
        let writing = Box::new(writing);
        for index in 0..writing.len_bytes() {
            // SAFETY: the index is below the number of bytes.
            let at = unsafe { start.add(index) };
            // SAFETY: the right lives, and nobody uses its slices.
            unsafe { at.write(7) };
        }
        drop(writing);
        assert_eq!(*buffer.read().unwrap(), [7; 4]);
    }
}
