//! [`BefBuffer`]: the bytes of a file, aligned, counted and immutable.
//!
//! The module is allowed `unsafe` for one reason: mapping a file trusts everybody
//! else who can write to it. All other ways in copy.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek},
    path::Path,
    sync::Arc,
};

use crate::layout::FILE_ALIGNMENT;
use memmap2::Mmap;

/// A file's bytes, which start on an eight-byte boundary and never change.
///
/// Cloning counts; it copies nothing.
///
/// # Examples
///
/// ```
/// use tfrt_bef::BefBuffer;
///
/// let buffer = BefBuffer::copy_from(&[0x0b, 0xef, 0x00]);
/// assert_eq!(buffer.as_bytes(), [0x0b, 0xef, 0x00]);
/// ```
#[derive(Clone)]
pub struct BefBuffer {
    storage: Arc<Storage>,
}

enum Storage {
    /// A copy in memory: the file's bytes are those from `start` on.
    // Invariant: these begin at a multiple of `ELEMENT_ALIGNMENT`, and so of `FILE_ALIGNMENT`.
    Bytes { bytes: Vec<u8>, start: usize },
    /// Invariant: whoever mapped it vouched that the file stays as it is.
    Mapped(Mmap),
}

impl BefBuffer {
    /// Takes `bytes` over, moving them to where elements of attributes are aligned as in a mapped file, or copying
    /// them if they take much more memory than they need.
    pub fn from_vec(mut bytes: Vec<u8>) -> BefBuffer {
        let len_bytes = bytes.len();
        if bytes.capacity() - len_bytes > len_bytes / 8 {
            return BefBuffer::copy_from(&bytes);
        }
        if is_aligned(&bytes) {
            return BefBuffer::new(bytes, 0);
        }
        bytes.reserve_exact(ELEMENT_ALIGNMENT);
        let start = padding(&bytes);
        bytes.resize(len_bytes + start, 0);
        bytes.copy_within(..len_bytes, start);
        BefBuffer::new(bytes, start)
    }

    /// Copies `bytes` to memory where elements of attributes are aligned as in a mapped file.
    pub fn copy_from(bytes: &[u8]) -> BefBuffer {
        let mut copy = Vec::with_capacity(bytes.len() + ELEMENT_ALIGNMENT);
        let start = pad(&mut copy);
        copy.extend_from_slice(bytes);
        BefBuffer::new(copy, start)
    }

    /// Reads the file at `path` into memory.
    ///
    /// # Errors
    ///
    /// Returns what the operating system reports.
    pub fn read(path: impl AsRef<Path>) -> io::Result<BefBuffer> {
        BefBuffer::read_from(&mut File::open(path)?)
    }

    /// Reads the rest of a file into memory, where it lies once, elements aligned as in a mapped file.
    ///
    /// # Errors
    ///
    /// Returns what the operating system reports; `OutOfMemory` if there is not as much.
    pub fn read_from(file: &mut File) -> io::Result<BefBuffer> {
        let position = file.stream_position()?;
        let left = file.metadata()?.len().saturating_sub(position);
        let len_bytes = usize::try_from(left).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(len_bytes.saturating_add(ELEMENT_ALIGNMENT));
        reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
        let start = pad(&mut bytes);
        file.read_to_end(&mut bytes)?;
        // A file that has grown meanwhile may have moved them.
        match is_aligned(&bytes[start..]) {
            true => Ok(BefBuffer::new(bytes, start)),
            false => Ok(BefBuffer::copy_from(&bytes[start..])),
        }
    }

    fn new(bytes: Vec<u8>, start: usize) -> BefBuffer {
        debug_assert!(is_aligned(&bytes[start..]));
        BefBuffer {
            storage: Arc::new(Storage::Bytes { bytes, start }),
        }
    }

    /// Maps the file at `path` in place.
    ///
    /// # Safety
    ///
    /// As long as any clone of the buffer lives, nobody may change or truncate the
    /// file: changed bytes undo the checks of [`BefFile::open`](crate::BefFile::open)
    /// under shared references, and a truncated file ends the process.
    ///
    /// # Errors
    ///
    /// Returns what the operating system reports.
    pub unsafe fn map_trusted(path: impl AsRef<Path>) -> io::Result<BefBuffer> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(BefBuffer::copy_from(&[]));
        }
        // SAFETY: the mapping is read-only, and the caller promises that the file is
        // neither changed nor truncated while the mapping lives.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(BefBuffer {
            storage: Arc::new(Storage::Mapped(map)),
        })
    }

    /// Returns the bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &*self.storage {
            Storage::Bytes { bytes, start } => &bytes[*start..],
            Storage::Mapped(map) => map,
        }
    }

    /// Returns how many bytes there are.
    pub fn len_bytes(&self) -> usize {
        self.as_bytes().len()
    }
}

/// The alignment that elements of attributes may count on where memory is ours: that of vectors and cache lines.
const ELEMENT_ALIGNMENT: usize = 64;
const _: () = assert!(ELEMENT_ALIGNMENT.is_multiple_of(FILE_ALIGNMENT));

/// Fills memory up to where elements are aligned; returns how many bytes that takes, less than what
/// [`ELEMENT_ALIGNMENT`] is.
fn pad(bytes: &mut Vec<u8>) -> usize {
    let start = padding(bytes);
    bytes.resize(start, 0);
    start
}

/// Returns the distance from the beginning of `bytes` to where elements are aligned.
fn padding(bytes: &[u8]) -> usize {
    let address = bytes.as_ptr().addr();
    address.next_multiple_of(ELEMENT_ALIGNMENT) - address
}

fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ELEMENT_ALIGNMENT)
}

impl fmt::Debug for BefBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BefBuffer({} bytes)", self.len_bytes())
    }
}

impl AsRef<[u8]> for BefBuffer {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_is_aligned(buffer: &BefBuffer) {
        assert_eq!(buffer.as_bytes().as_ptr().addr() % 64, 0);
    }

    #[test]
    fn bytes_are_aligned_whatever_they_come_from() {
        for len in 0..40 {
            let bytes: Vec<u8> = (0..len).collect();
            for skip in 0..bytes.len() {
                let buffer = BefBuffer::copy_from(&bytes[skip..]);
                assert_is_aligned(&buffer);
                assert_eq!(buffer.as_bytes(), &bytes[skip..]);
            }
            let buffer = BefBuffer::from_vec(bytes.clone());
            assert_is_aligned(&buffer);
            assert_eq!(buffer.as_bytes(), bytes);
            assert_eq!(buffer.as_ref(), bytes);
        }
    }

    #[test]
    fn vector_is_taken_over_if_an_eighth_of_it_is_to_spare_at_most() {
        let capacity_of = |n_spare: usize| {
            let mut bytes = Vec::with_capacity(8_000 + n_spare);
            bytes.resize(8_000, 7);
            let buffer = BefBuffer::from_vec(bytes);
            assert_is_aligned(&buffer);
            assert_eq!(buffer.as_bytes(), [7; 8_000]);
            match &*buffer.storage {
                Storage::Bytes { bytes, .. } => bytes.capacity(),
                Storage::Mapped(_) => unreachable!("it is no file"),
            }
        };
        assert!(capacity_of(1_000) >= 9_000);
        for n_spare in [1_001, 9_000, 64_000] {
            assert!(capacity_of(n_spare) <= 8_000 + ELEMENT_ALIGNMENT);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn mapped_file_has_the_bytes_of_the_file() {
        let path = std::env::temp_dir().join(format!("tfrt-bef-map-{}", std::process::id()));
        std::fs::write(&path, b"some bytes").unwrap();
        // SAFETY: no other process knows the file.
        let mapped = unsafe { BefBuffer::map_trusted(&path) }.unwrap();
        assert_eq!(mapped.as_bytes(), b"some bytes");
        assert_eq!(mapped.len_bytes(), 10);
        let read = BefBuffer::read(&path).unwrap();
        assert_eq!(
            (read.as_bytes(), read.len_bytes()),
            (&b"some bytes"[..], 10)
        );
        drop(mapped);
        std::fs::remove_file(&path).unwrap();
    }
}
