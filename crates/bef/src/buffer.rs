//! [`BefBuffer`]: the bytes of a file, aligned, counted and immutable.
//!
//! The module is allowed `unsafe` for one reason: mapping a file trusts everybody
//! else who can write to it. All other ways in copy.

use std::{fmt, fs::File, io, path::Path, sync::Arc};

use memmap2::Mmap;
use zerocopy::IntoBytes;

use crate::layout::FILE_ALIGNMENT;

/// Bytes that start on an eight-byte boundary and never change.
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
    /// Invariant: the bytes start on an eight-byte boundary.
    Bytes(Box<[u8]>),
    /// The first `len_bytes` bytes of the words.
    Words { words: Box<[u64]>, len_bytes: usize },
    /// Invariant: whoever mapped it vouched that the file stays as it is.
    Mapped(Mmap),
}

impl BefBuffer {
    /// Takes `bytes` over, copying them only if they are not aligned.
    pub fn from_vec(bytes: Vec<u8>) -> BefBuffer {
        if is_aligned(&bytes) && bytes.len() == bytes.capacity() {
            return BefBuffer {
                storage: Arc::new(Storage::Bytes(bytes.into_boxed_slice())),
            };
        }
        BefBuffer::copy_from(&bytes)
    }

    /// Copies `bytes` to aligned memory.
    pub fn copy_from(bytes: &[u8]) -> BefBuffer {
        let mut words = vec![0u64; bytes.len().div_ceil(FILE_ALIGNMENT)].into_boxed_slice();
        words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        BefBuffer {
            storage: Arc::new(Storage::Words {
                words,
                len_bytes: bytes.len(),
            }),
        }
    }

    /// Reads the file at `path` into memory.
    ///
    /// # Errors
    ///
    /// Returns what the operating system reports.
    pub fn read(path: impl AsRef<Path>) -> io::Result<BefBuffer> {
        Ok(BefBuffer::from_vec(std::fs::read(path)?))
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
            Storage::Bytes(bytes) => bytes,
            Storage::Words { words, len_bytes } => &words.as_bytes()[..*len_bytes],
            Storage::Mapped(map) => map,
        }
    }

    /// Returns how many bytes there are.
    pub fn len_bytes(&self) -> usize {
        self.as_bytes().len()
    }
}

fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(FILE_ALIGNMENT)
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

    #[test]
    fn bytes_are_aligned_whatever_they_come_from() {
        for len in 0..40 {
            let bytes: Vec<u8> = (0..len).collect();
            for skip in 0..bytes.len() {
                let buffer = BefBuffer::copy_from(&bytes[skip..]);
                assert!(is_aligned(buffer.as_bytes()));
                assert_eq!(buffer.as_bytes(), &bytes[skip..]);
            }
            let buffer = BefBuffer::from_vec(bytes.clone());
            assert!(is_aligned(buffer.as_bytes()));
            assert_eq!(buffer.as_bytes(), bytes);
        }
    }

    #[test]
    fn mapped_file_has_the_bytes_of_the_file() {
        let path = std::env::temp_dir().join(format!("tfrt-bef-map-{}", std::process::id()));
        std::fs::write(&path, b"some bytes").unwrap();
        // SAFETY: no other process knows the file.
        let mapped = unsafe { BefBuffer::map_trusted(&path) }.unwrap();
        assert_eq!(mapped.as_bytes(), b"some bytes");
        assert_eq!(BefBuffer::read(&path).unwrap().as_bytes(), b"some bytes");
        drop(mapped);
        std::fs::remove_file(&path).unwrap();
    }
}
