//! [`HostBuffer`]: shared bytes of a host, held whole or in parts.
//!
//! A kernel that fills a tensor writes into memory that others hold too, and only chains order them.
//! A program may get that wrong, so nobody touches the bytes without a right from the memory's
//! [`RangeLock`]: who comes at the wrong time is refused, and the kernel fails with an error that
//! says so. The only holder needs no right ([`HostBuffer::as_bytes_mut`]), nor does who reads memory
//! that is never written: that of a foreign owner.
//!
//! # Invariants
//!
//! * B1. The bytes of a [`Memory`] are initialised, lie at one place for its whole life, and are reached
//!   through its handles only.
//! * B2. A part's range lies in its memory.
//! * B3. Bytes are read by holders of a right for reading, written by holders of one for writing, or
//!   by the only handle of the memory. Memory of a foreign owner is never written, and read without a right.
//!   Holders of rights borrow a handle, or own one ([`OwnedReading`](super::OwnedReading),
//!   [`OwnedWriting`](super::OwnedWriting)), so that the only handle, borrowed for writing, has no right beside it:
//!   then the lock may be frozen and thawed.
//!
//! Bytes of an allocator lie in one block with their lock and their count, which take the line of the
//! cache before them.

use std::alloc::Layout;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use tfrt_async::{Contents, Error, Heap, Hold, HostAllocator, RangeLock, SharedBlock, Value};

/// Whole buffers are aligned to this many bytes at least: a line of the cache, and the widest vector
/// that processors load.
pub const BUFFER_ALIGNMENT: usize = 64;

/// A buffer of host memory, counted: clones and slices share it.
///
/// # Examples
///
/// ```
/// use tfrt_host::memory::HostBuffer;
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let buffer = HostBuffer::copy_of(host.allocator(), &[1, 2, 3, 4]).unwrap();
/// let half = buffer.slice(2..4).unwrap();
/// half.write()?.fill(9);
/// assert_eq!(*buffer.read()?, [1, 2, 9, 9]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct HostBuffer {
    memory: Memory,
    // B2.
    range: Range<usize>,
}

/// A handle to bytes.
#[derive(Clone)]
enum Memory {
    /// Memory from an allocator, behind its lock.
    Own(SharedBlock<RangeLock>),
    Foreign(Arc<Foreign>),
}

/// Memory of another owner, who frees it.
struct Foreign {
    bytes: NonNull<u8>,
    len_bytes: usize,
    /// The owner. Counted rather than boxed: moving a box claims what is in it for itself.
    #[expect(dead_code, reason = "it is dropped")]
    owner: Arc<dyn Send + Sync>,
    /// A copy that is aligned, once somebody has asked for one.
    aligned: OnceLock<HostBuffer>,
}

// SAFETY: the bytes belong to the owner, which is `Send + Sync` itself, and are only read (B3).
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl HostBuffer {
    /// Allocates so many bytes that are 0, aligned to [`BUFFER_ALIGNMENT`] at least, if `allocator` has them.
    /// `alignment` is a power of two, or `None` is returned.
    pub fn zeroed(
        allocator: &Arc<dyn HostAllocator>,
        len_bytes: usize,
        alignment: usize,
    ) -> Option<HostBuffer> {
        HostBuffer::initialised(allocator, len_bytes, alignment, Contents::Zeros)
    }

    /// Allocates so many bytes whose contents are unspecified, perhaps what another buffer held, aligned to
    /// [`BUFFER_ALIGNMENT`] at least, if `allocator` has them: for callers that write all of them before anybody reads
    /// them. `alignment` is a power of two, or `None` is returned.
    ///
    /// In builds for development all of them are 0xff, which no float and few integers survive: so tests find who
    /// relies on zeros.
    pub fn unspecified(
        allocator: &Arc<dyn HostAllocator>,
        len_bytes: usize,
        alignment: usize,
    ) -> Option<HostBuffer> {
        let contents = Contents::Unspecified;
        let mut buffer = HostBuffer::initialised(allocator, len_bytes, alignment, contents)?;
        if cfg!(debug_assertions)
            && let Some(bytes) = buffer.as_bytes_mut()
        {
            bytes.fill(0xff);
        }
        Some(buffer)
    }

    fn initialised(
        allocator: &Arc<dyn HostAllocator>,
        len_bytes: usize,
        alignment: usize,
        contents: Contents,
    ) -> Option<HostBuffer> {
        let layout = Layout::from_size_align(len_bytes, alignment).ok()?;
        let layout = layout.align_to(BUFFER_ALIGNMENT).ok()?;
        let block =
            SharedBlock::allocate_initialised(allocator, layout, contents, RangeLock::new())?;
        Some(HostBuffer {
            range: 0..len_bytes,
            memory: Memory::Own(block),
        })
    }

    /// Returns a copy of bytes, aligned to [`BUFFER_ALIGNMENT`], if `allocator` has room for it.
    pub fn copy_of(allocator: &Arc<dyn HostAllocator>, bytes: &[u8]) -> Option<HostBuffer> {
        let mut buffer = UninitBuffer::allocate(allocator, bytes.len(), BUFFER_ALIGNMENT)?;
        buffer.as_bytes_mut().write_copy_of_slice(bytes);
        // SAFETY: all bytes were just written.
        Some(unsafe { buffer.assume_init() })
    }

    /// Returns the bytes of an owner, such as a mapped file, for reading only.
    pub fn from_owner<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> HostBuffer {
        let owner = Arc::new(owner);
        let bytes: &[u8] = (*owner).as_ref();
        let range = 0..bytes.len();
        let memory = Memory::Foreign(Arc::new(Foreign {
            bytes: NonNull::from(bytes).cast(),
            len_bytes: bytes.len(),
            owner,
            aligned: OnceLock::new(),
        }));
        HostBuffer { memory, range }
    }

    /// Returns a [frozen](Self::freeze) copy of the bytes that is aligned to [`BUFFER_ALIGNMENT`], for readers that rely on
    /// it; `None` if `allocator` has no room. Memory of a foreign owner keeps the copy of all its bytes for whoever asks next.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing some of the bytes.
    pub fn aligned_copy(
        &self,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Option<HostBuffer>, Error> {
        let kept = match &self.memory {
            Memory::Foreign(foreign) if self.len_bytes() == foreign.len_bytes => {
                Some(&foreign.aligned)
            }
            _ => None,
        };
        if let Some(copy) = kept.and_then(OnceLock::get) {
            return Ok(Some(copy.clone()));
        }
        let reading = self.read()?;
        let Some(mut copy) = HostBuffer::copy_of(allocator, &reading) else {
            return Ok(None);
        };
        copy.freeze();
        Ok(Some(match kept {
            Some(kept) => kept.get_or_init(|| copy).clone(),
            None => copy,
        }))
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.range.len()
    }

    /// Returns the address of the first byte, for people and for asking how it is aligned.
    pub fn address(&self) -> usize {
        self.memory.start().addr().get() + self.range.start
    }

    /// Returns a part of the bytes, shared with this buffer; `None` if it is not within it.
    pub fn slice(&self, range: Range<usize>) -> Option<HostBuffer> {
        if range.start > range.end || range.end > self.len_bytes() {
            return None;
        }
        if let Memory::Own(lock) = &self.memory
            && range.len() < self.memory.len_bytes()
        {
            lock.divide();
        }
        Some(HostBuffer {
            memory: self.memory.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        })
    }

    /// Returns whether two buffers have bytes in common.
    pub fn overlaps(&self, other: &HostBuffer) -> bool {
        let [a, b] = [&self.range, &other.range];
        self.memory.is(&other.memory) && a.start.max(b.start) < a.end.min(b.end)
    }

    /// Returns whether rights to the bytes go through a table of parts, which is slower than one word: after a part was
    /// [sliced](Self::slice) off, until the only holder asks for the bytes, freezes or thaws them.
    pub fn is_divided(&self) -> bool {
        match &self.memory {
            Memory::Own(lock) => lock.is_divided(),
            Memory::Foreign(_) => false,
        }
    }

    /// Makes the buffer read-only except for its only holder, if this is the only one now; so readers need not be
    /// counted.
    #[inline]
    pub fn freeze(&mut self) {
        if let Memory::Own(block) = &mut self.memory
            && let Some(lock) = block.get_mut()
        {
            lock.freeze();
        }
    }

    /// Lets the bytes be written again that were [frozen](Self::freeze); returns whether this is their only holder, and
    /// they may be written; otherwise nothing changes.
    #[inline]
    pub fn thaw(&mut self) -> bool {
        let Memory::Own(block) = &mut self.memory else {
            return false;
        };
        let Some(lock) = block.get_mut() else {
            return false;
        };
        lock.thaw();
        true
    }

    /// Returns the address of the bytes, if nobody writes them for as long as this handle or a clone of it is kept beside
    /// others: if they are [frozen](Self::freeze), or a foreign owner's. Readers of such bytes need no right.
    #[inline]
    pub fn frozen_start(&self) -> Option<NonNull<u8>> {
        match &self.memory {
            Memory::Own(lock) if !lock.is_frozen() => None,
            Memory::Own(_) | Memory::Foreign(_) => Some(self.start()),
        }
    }

    /// Lends the bytes for reading.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing some of them.
    #[inline]
    pub fn read(&self) -> Result<Reading<'_>, Error> {
        let hold = self.hold_for_reading()?;
        Ok(Reading { buffer: self, hold })
    }

    /// Takes a right to read the bytes; memory that is never written needs none.
    #[inline]
    pub(super) fn hold_for_reading(&self) -> Result<Option<Hold>, Error> {
        match &self.memory {
            Memory::Own(lock) => match lock.try_read(self.range.clone()) {
                Some(hold) => Ok(Some(hold)),
                None => Err(busy("written")),
            },
            Memory::Foreign(_) => Ok(None),
        }
    }

    /// Lends the bytes for writing.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is reading or writing some of them, if they are [frozen](Self::freeze), or a
    /// foreign owner's.
    #[inline]
    pub fn write(&self) -> Result<Writing<'_>, Error> {
        let hold = Some(self.hold_for_writing()?);
        Ok(Writing { buffer: self, hold })
    }

    /// Takes the right to write the bytes.
    #[inline]
    pub(super) fn hold_for_writing(&self) -> Result<Hold, Error> {
        let lock = self.writable()?;
        match lock.try_write(self.range.clone()) {
            Some(hold) => Ok(hold),
            None if lock.is_frozen() => Err(frozen()),
            None => Err(busy("used")),
        }
    }

    /// Gives back a right to the bytes that was taken through this handle.
    #[inline]
    pub(super) fn release(&self, hold: Hold) {
        self.memory.release(hold);
    }

    /// Returns the bytes.
    ///
    /// # Safety
    ///
    /// The caller holds a right to read or to write them, or they are a foreign owner's, and nobody writes them while
    /// the result is in use.
    #[inline]
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: in range (B2); the caller says that nobody writes them.
        unsafe { self.memory.bytes(&self.range) }
    }

    /// Returns the address of the first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        // SAFETY: in range (B2).
        unsafe { self.memory.start().add(self.range.start) }
    }

    /// Returns the bytes, to be written.
    ///
    /// # Safety
    ///
    /// The caller holds the right to write them, and nobody else uses them while the result is in use.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller says that nobody else does")]
    pub(super) unsafe fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: in range (B2), of an allocator, since only such are lent for writing; the caller says that nobody
        // else uses them.
        unsafe { self.memory.bytes_mut(&self.range) }
    }

    /// Returns the lock of memory that may be written.
    #[inline]
    fn writable(&self) -> Result<&RangeLock, Error> {
        match &self.memory {
            Memory::Own(lock) => Ok(lock),
            Memory::Foreign(_) => Err(Error::failed_precondition(
                "the buffer is for reading only: its bytes belong to a file or to the caller",
            )),
        }
    }

    /// Lends the bytes for writing if this is the only holder of the memory, and it may be written.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> Option<&mut [u8]> {
        let Memory::Own(block) = &mut self.memory else {
            return None;
        };
        block.get_mut()?.unite();
        // SAFETY: the bytes are initialised (B1) and in range (B2). Rights are held by borrowers of
        // handles, of which this is the only one, borrowed for writing.
        Some(unsafe { self.memory.bytes_mut(&self.range) })
    }

    /// Returns whether this is the only holder of the memory.
    #[inline]
    pub fn is_unique(&mut self) -> bool {
        self.memory.is_unique()
    }
}

impl Memory {
    #[inline]
    fn start(&self) -> NonNull<u8> {
        match self {
            Memory::Own(block) => block.bytes(),
            Memory::Foreign(foreign) => foreign.bytes,
        }
    }

    #[inline]
    fn len_bytes(&self) -> usize {
        match self {
            Memory::Own(block) => block.len_bytes(),
            Memory::Foreign(foreign) => foreign.len_bytes,
        }
    }

    /// Gives back a right to the bytes.
    #[inline]
    fn release(&self, hold: Hold) {
        // Only such memory gives rights.
        if let Memory::Own(lock) = self {
            lock.release(hold);
        }
    }

    /// Returns whether this is the only handle.
    #[inline]
    fn is_unique(&mut self) -> bool {
        match self {
            Memory::Own(block) => block.is_unique(),
            Memory::Foreign(foreign) => Arc::get_mut(foreign).is_some(),
        }
    }

    /// Returns whether two handles lead to the same bytes.
    fn is(&self, other: &Memory) -> bool {
        match (self, other) {
            // Locks are told apart by where they are.
            (Memory::Own(lock), Memory::Own(other)) => std::ptr::eq::<RangeLock>(&**lock, &**other),
            (Memory::Foreign(foreign), Memory::Foreign(other)) => Arc::ptr_eq(foreign, other),
            _ => false,
        }
    }

    /// # Safety
    ///
    /// The range is within the memory, and nobody writes it while the result is in use.
    #[inline]
    unsafe fn bytes(&self, range: &Range<usize>) -> &[u8] {
        // SAFETY: the caller says that the range is within.
        let start = unsafe { self.start().add(range.start) };
        // SAFETY: as above; initialised (B1), and nobody writes it.
        unsafe { NonNull::slice_from_raw_parts(start, range.len()).as_ref() }
    }

    /// # Safety
    ///
    /// The range is within the memory, which is an allocator's, and nobody else uses it while the
    /// result is in use.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller says that nobody else does")]
    unsafe fn bytes_mut(&self, range: &Range<usize>) -> &mut [u8] {
        // SAFETY: the caller says that the range is within.
        let start = unsafe { self.start().add(range.start) };
        // SAFETY: as above; initialised (B1), and nobody else uses it.
        unsafe { NonNull::slice_from_raw_parts(start, range.len()).as_mut() }
    }
}

#[cold]
fn busy(how: &str) -> Error {
    let message = format!("the buffer is being {how} by another kernel at the same time");
    let note = "kernels that write a tensor in place, and those that use it, are ordered by chains: \
                hand the chain of the one to the other; what a single kernel writes must not be what it reads";
    Error::failed_precondition(message).with_note(note)
}

#[cold]
fn frozen() -> Error {
    Error::failed_precondition("the buffer is for reading only: its tensor is finished")
        .with_note("handles of the core runtime lead to finished tensors: write to a copy")
}

/// Writes `HostBuffer<pointer=0x7f0012345000, size=16>`, as the original prints it.
impl fmt::Display for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, len_bytes) = (self.address(), self.len_bytes());
        write!(f, "HostBuffer<pointer={address:#x}, size={len_bytes}>")
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for HostBuffer {
    const NAME: &'static str = "!ht.host_buffer";
    type Storage = Heap;
}

/// A guard that lends the bytes of a buffer for reading.
pub struct Reading<'b> {
    buffer: &'b HostBuffer,
    // Invariant: a right for reading the buffer's range, there until this is dropped; none of memory that is
    // never written.
    hold: Option<Hold>,
}

impl Deref for Reading<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: in range (B2); the right keeps writers away, or nobody writes (B3).
        unsafe { self.buffer.memory.bytes(&self.buffer.range) }
    }
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.buffer.memory.release(hold);
        }
    }
}

/// A guard that lends the bytes of a buffer for writing.
pub struct Writing<'b> {
    buffer: &'b HostBuffer,
    // Invariant: a right for writing the buffer's range, there until this is dropped.
    hold: Option<Hold>,
}

impl Deref for Writing<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: in range (B2); the right keeps everybody else away (B3).
        unsafe { self.buffer.memory.bytes(&self.buffer.range) }
    }
}

impl DerefMut for Writing<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: in range (B2), of an allocator, since only such are lent for writing; the right
        // keeps everybody else away (B3), and this handle is borrowed for writing.
        unsafe { self.buffer.memory.bytes_mut(&self.buffer.range) }
    }
}

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.buffer.memory.release(hold);
        }
    }
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reading({})", self.buffer)
    }
}

impl fmt::Debug for Writing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writing({})", self.buffer)
    }
}

/// A buffer that is not initialised, which becomes a [`HostBuffer`] once all of its bytes are written.
///
/// # Examples
///
/// ```
/// use tfrt_host::memory::{BUFFER_ALIGNMENT, UninitBuffer};
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let buffer = UninitBuffer::allocate(host.allocator(), 3, BUFFER_ALIGNMENT).unwrap();
/// assert_eq!(*buffer.fill(7).read()?, [7, 7, 7]);
/// let buffer = UninitBuffer::allocate(host.allocator(), 2, BUFFER_ALIGNMENT).unwrap();
/// assert_eq!(*buffer.written(|bytes| bytes[1] = 3).read()?, [0, 3]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub struct UninitBuffer {
    // Invariant: the only handle.
    block: SharedBlock<RangeLock>,
}

impl UninitBuffer {
    /// Allocates so many bytes of `allocator`, aligned to [`BUFFER_ALIGNMENT`] at least. `None` if it has none left, or
    /// if `alignment` is no power of two.
    #[inline]
    pub fn allocate(
        allocator: &Arc<dyn HostAllocator>,
        len_bytes: usize,
        alignment: usize,
    ) -> Option<UninitBuffer> {
        let alignment = alignment.max(BUFFER_ALIGNMENT);
        let layout = Layout::from_size_align(len_bytes, alignment).ok()?;
        let block = SharedBlock::allocate(allocator, layout, RangeLock::new())?;
        Some(UninitBuffer { block })
    }

    /// Borrows the bytes, to be written.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        let bytes = self.block.bytes().cast();
        // SAFETY: the block has so many bytes by its layout, nobody else uses them, and they need not
        // be initialised.
        unsafe { NonNull::slice_from_raw_parts(bytes, self.block.len_bytes()).as_mut() }
    }

    /// Writes one value to all bytes.
    #[inline]
    pub fn fill(mut self, byte: u8) -> HostBuffer {
        self.as_bytes_mut().fill(MaybeUninit::new(byte));
        // SAFETY: all bytes were just written.
        unsafe { self.assume_init() }
    }

    /// Lets all bytes be written, which are 0 before.
    #[inline]
    pub fn written(mut self, write: impl FnOnce(&mut [u8])) -> HostBuffer {
        let bytes = self.as_bytes_mut();
        bytes.fill(MaybeUninit::new(0));
        let (first, len_bytes) = (bytes.as_mut_ptr().cast::<u8>(), bytes.len());
        // SAFETY: these are the bytes that were just written, by the only handle; the slice borrows them no longer than
        // `bytes` would.
        write(unsafe { std::slice::from_raw_parts_mut(first, len_bytes) });
        // SAFETY: all bytes were just written.
        unsafe { self.assume_init() }
    }

    /// Returns the buffer.
    ///
    /// # Safety
    ///
    /// All bytes were written.
    #[inline]
    pub unsafe fn assume_init(mut self) -> HostBuffer {
        // SAFETY: the caller says so; from here on bytes are written as such. By the field's invariant it is the only
        // handle.
        unsafe { self.block.assume_initialised() };
        HostBuffer {
            range: 0..self.block.len_bytes(),
            memory: Memory::Own(self.block),
        }
    }
}

impl fmt::Debug for UninitBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UninitBuffer({} bytes)", self.block.len_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfrt_async::{ErrorCode, SystemAllocator};

    fn allocator() -> Arc<dyn HostAllocator> {
        Arc::new(SystemAllocator::new())
    }

    #[test]
    fn slices_share_their_bytes() {
        let whole = HostBuffer::zeroed(&allocator(), 16, 1).unwrap();
        assert_eq!(whole.address() % BUFFER_ALIGNMENT, 0);
        let middle = whole.slice(4..12).unwrap();
        let end = middle.slice(4..8).unwrap();
        end.write().unwrap().fill(1);
        assert_eq!(*middle.read().unwrap(), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(end.overlaps(&whole) && !end.overlaps(&whole.slice(0..8).unwrap()));
        let nothing = whole.slice(4..4).unwrap();
        assert!(!nothing.overlaps(&whole) && !whole.overlaps(&nothing));
        assert!(whole.slice(8..17).is_none());
        #[expect(clippy::reversed_empty_ranges, reason = "it is what is tested")]
        let reversed = whole.slice(8..4);
        assert!(reversed.is_none());
    }

    #[test]
    fn foreign_bytes_are_copied_once_for_who_wants_them_aligned() {
        let bytes: Vec<u8> = (0..200).collect();
        let foreign = HostBuffer::from_owner(bytes.clone());
        let [first, second] = [&foreign, &foreign.clone()]
            .map(|own| own.aligned_copy(&allocator()).unwrap().unwrap());
        assert_eq!(first.address() % BUFFER_ALIGNMENT, 0);
        assert_eq!(first.address(), second.address());
        assert!(first.frozen_start().is_some() && *first.read().unwrap() == bytes[..]);
        let part = foreign.slice(3..5).unwrap();
        let copy = part.aligned_copy(&allocator()).unwrap().unwrap();
        assert_eq!(*copy.read().unwrap(), [3, 4]);
    }

    #[test]
    fn writers_of_two_threads_take_turns() {
        let buffer = HostBuffer::zeroed(&allocator(), 1, 1).unwrap();
        // Nobody writes twice in a row, so that each sees what the other has written.
        let count = |own: u8| {
            let mut n_written = 0;
            while n_written < 100 {
                // Nobody who waits for a turn holds the right to write.
                let turn = buffer.write().ok();
                match turn.filter(|bytes| bytes[0] % 2 == own) {
                    Some(mut bytes) => {
                        bytes[0] += 1;
                        n_written += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| count(0));
            scope.spawn(|| count(1));
        });
        assert_eq!(*buffer.read().unwrap(), [200]);
    }

    #[test]
    fn who_comes_at_the_wrong_time_is_refused() {
        let buffer = HostBuffer::zeroed(&allocator(), 16, 1).unwrap();
        let other = buffer.clone();
        let reading = buffer.read().unwrap();
        assert_eq!(
            other.write().unwrap_err().code(),
            ErrorCode::FailedPrecondition
        );
        assert!(other.read().is_ok());
        drop(reading);
        let writing = other.write().unwrap();
        assert!(buffer.read().is_err());
        drop(writing);
        let (left, right) = (buffer.slice(0..8).unwrap(), buffer.slice(8..16).unwrap());
        let both = (left.write(), right.write());
        assert!(both.0.is_ok() && both.1.is_ok());
    }

    #[test]
    fn the_only_holder_needs_no_right() {
        let mut buffer = HostBuffer::copy_of(&allocator(), b"abc").unwrap();
        buffer.as_bytes_mut().unwrap()[0] = b'x';
        let other = buffer.clone();
        assert!(buffer.as_bytes_mut().is_none());
        drop(other);
        assert_eq!(buffer.as_bytes_mut().unwrap(), b"xbc");
    }

    #[test]
    fn frozen_bytes_are_read_until_their_only_holder_thaws_them() {
        let mut buffer = HostBuffer::copy_of(&allocator(), b"abc").unwrap();
        let mut other = buffer.clone();
        buffer.freeze();
        assert!(other.write().is_ok(), "somebody else has it");
        drop(other);
        buffer.freeze();
        other = buffer.clone();
        assert_eq!(*other.read().unwrap(), *b"abc");
        let error = other.write().unwrap_err();
        assert_eq!(
            error.message(),
            "the buffer is for reading only: its tensor is finished"
        );
        assert!(!other.thaw() && other.write().is_err());
        assert!(buffer.slice(1..2).unwrap().write().is_err());
        drop(other);
        buffer.as_bytes_mut().unwrap()[0] = b'x';
        assert!(buffer.thaw());
        buffer.write().unwrap()[1] = b'y';
        assert_eq!(*buffer.read().unwrap(), *b"xyc");
        let mut foreign = HostBuffer::from_owner(vec![1_u8]);
        foreign.freeze();
        assert!(!foreign.thaw());
    }

    #[test]
    fn bytes_that_were_sliced_are_whole_again_for_their_only_holder() {
        let by_bytes = |buffer: &mut HostBuffer| _ = buffer.as_bytes_mut();
        let by_thaw = |buffer: &mut HostBuffer| _ = buffer.thaw();
        let ways: [fn(&mut HostBuffer); 3] = [by_bytes, by_thaw, HostBuffer::freeze];
        for unite in ways {
            let mut buffer = HostBuffer::zeroed(&allocator(), 16, 1).unwrap();
            let part = buffer.slice(0..8).unwrap();
            part.write().unwrap().fill(1);
            unite(&mut buffer);
            assert!(buffer.is_divided(), "somebody else has a part");
            drop(part);
            unite(&mut buffer);
            assert!(!buffer.is_divided());
            assert_eq!(buffer.read().unwrap()[7..9], [1, 0]);
        }
    }

    #[test]
    fn foreign_bytes_are_read_only_and_given_back() {
        let owner = Arc::new(vec![1_u8, 2, 3]);
        struct Shared(Arc<Vec<u8>>);
        impl AsRef<[u8]> for Shared {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let mut buffer = HostBuffer::from_owner(Shared(owner.clone()));
        assert_eq!(*buffer.read().unwrap(), [1, 2, 3]);
        assert!(buffer.write().is_err() && buffer.as_bytes_mut().is_none());
        drop(buffer);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn memory_is_zeros_or_unspecified_also_when_it_was_used_before() {
        for len_bytes in [0, 100, 100_000, 5_000_000] {
            for _ in 0..3 {
                let mut zeros = HostBuffer::zeroed(&allocator(), len_bytes, 1).unwrap();
                let bytes = zeros.as_bytes_mut().unwrap();
                assert!(bytes.iter().all(|byte| *byte == 0) && bytes.len() == len_bytes);
                bytes.fill(0xab);
                drop(zeros);
                let any = HostBuffer::unspecified(&allocator(), len_bytes, 256).unwrap();
                assert_eq!((any.len_bytes(), any.address() % 256), (len_bytes, 0));
                if cfg!(debug_assertions) {
                    assert!(any.read().unwrap().iter().all(|byte| *byte == 0xff));
                }
            }
        }
    }

    #[test]
    fn memory_that_there_is_not_is_refused() {
        assert!(HostBuffer::unspecified(&allocator(), usize::MAX, 1).is_none());
        assert!(HostBuffer::unspecified(&allocator(), 8, 96).is_none());
        assert!(HostBuffer::zeroed(&allocator(), usize::MAX, 1).is_none());
        assert!(HostBuffer::zeroed(&allocator(), 8, 96).is_none());
        let empty = HostBuffer::zeroed(&allocator(), 0, 1).unwrap();
        assert_eq!(*empty.read().unwrap(), []);
    }
}
