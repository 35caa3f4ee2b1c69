//! The forms of an encoded value: one buffer, and pieces for vectored writes.
//!
//! | Bytes | Are |
//! | --- | --- |
//! | 8 | `tfrtval` and 0 |
//! | 4 | the version of this form, 1 |
//! | 4 | the version of the codec |
//! | 4 | the length of the type's name |
//! | 4 | the number of parts |
//! | 8 | the length of the head |
//! | 8 each | the lengths of the parts |
//! | as said | the name, then the head |
//! | up to 63 | 0, up to a multiple of 64 |
//! | as said | the first part; then in front of each other one 0 up to a multiple of 64 |
//!
//! Numbers are little-endian. The end of the last part is the end of the value; without parts, that of the head.

use std::io::{self, Write};
use std::sync::Arc;

use tfrt_async::{Error, HostAllocator};

use super::{DecodeContext, EncodedValue};
use crate::memory::{BUFFER_ALIGNMENT, HostBuffer, Reading};

/// The alignment of parts, which is that of the host's buffers.
pub const PART_ALIGNMENT: usize = BUFFER_ALIGNMENT;

const MAGIC: [u8; 8] = *b"tfrtval\0";
const VERSION: u32 = 1;
/// The bytes in front of the lengths of the parts.
const FIXED_BYTES: usize = 32;
const PADDING: [u8; PART_ALIGNMENT] = [0; PART_ALIGNMENT];

/// An encoded value whose parts are held for reading.
#[derive(Debug)]
pub struct EncodedReading<'v> {
    /// The bytes in front of the first part's padding.
    front: Vec<u8>,
    parts: Vec<Reading<'v>>,
}

impl EncodedReading<'_> {
    /// Returns the bytes of the form in pieces, in order: of the parts where they lie.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut len = self.front.len();
        let parts = self.parts.iter().flat_map(move |part| {
            let padding = &PADDING[..padding_after(len)];
            // What comes in front of the part ends at a multiple, and so its own length is enough.
            len = part.len();
            [padding, &**part]
        });
        std::iter::once(&self.front[..]).chain(parts)
    }

    /// Returns the number of bytes of all pieces.
    pub fn len_bytes(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// Writes all pieces.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.pieces().try_for_each(|piece| out.write_all(piece))
    }
}

fn padding_after(len: usize) -> usize {
    len.next_multiple_of(PART_ALIGNMENT) - len
}

impl EncodedValue {
    /// Lends the bytes of all parts for reading.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing one of them, `InvalidArgument` if there are too many.
    pub fn read(&self) -> Result<EncodedReading<'_>, Error> {
        let count = |n: usize| {
            u32::try_from(n).map_err(|_| {
                let message = format!("{n} parts, or bytes of a name: expected fewer than 2^32");
                Error::invalid_argument(message)
            })
        };
        let (name_len, n_parts) = (count(self.type_name.len())?, count(self.parts.len())?);
        let parts = self.parts.iter().map(HostBuffer::read);
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let mut front = Vec::new();
        front.extend_from_slice(&MAGIC);
        for number in [VERSION, self.version, name_len, n_parts] {
            front.extend_from_slice(&number.to_le_bytes());
        }
        let lengths = std::iter::once(self.head.len()).chain(parts.iter().map(|part| part.len()));
        for len in lengths {
            front.extend_from_slice(&(len as u64).to_le_bytes());
        }
        front.extend_from_slice(self.type_name.as_bytes());
        front.extend_from_slice(&self.head);
        Ok(EncodedReading { front, parts })
    }

    /// Writes the value to one buffer.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the allocator has no memory for it, and those of [`read`](Self::read).
    pub fn to_buffer(&self, allocator: &Arc<dyn HostAllocator>) -> Result<HostBuffer, Error> {
        let reading = self.read()?;
        let len_bytes = reading.len_bytes();
        let no_memory = || {
            let message = format!("there are no {len_bytes} bytes for an encoded value");
            Error::resource_exhausted(message)
        };
        let mut buffer =
            HostBuffer::zeroed(allocator, len_bytes, PART_ALIGNMENT).ok_or_else(no_memory)?;
        let mut rest = buffer.as_bytes_mut().ok_or_else(no_memory)?;
        for piece in reading.pieces() {
            let (to, others) = rest.split_at_mut(piece.len());
            to.copy_from_slice(piece);
            rest = others;
        }
        Ok(buffer)
    }

    /// Finds the parts of a value in a buffer, whose bytes may be anything. Parts share the buffer; where it begins at
    /// no multiple of [`PART_ALIGNMENT`] in memory, they are copied.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the bytes are no encoded value, or none of this form; `ResourceExhausted` if it exceeds the
    /// limits, or there is no memory for copies; `FailedPrecondition` if somebody is writing the buffer.
    pub fn from_buffer(
        buffer: &HostBuffer,
        context: &DecodeContext<'_>,
    ) -> Result<EncodedValue, Error> {
        let reading = buffer.read()?;
        let bytes: &[u8] = &reading;
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
            let found = bytes.len();
            return Err(wrong(&format!(
                "{FIXED_BYTES} bytes or more, found {found}"
            )));
        };
        if fixed[..8] != MAGIC {
            return Err(wrong("the bytes that each begins with"));
        }
        let word = |at: usize| {
            let bytes = fixed[at..at + 4].try_into().expect("there are 4 bytes");
            u32::from_le_bytes(bytes)
        };
        if word(8) != VERSION {
            let found = word(8);
            return Err(wrong(&format!(
                "version {VERSION} of the form, found {found}"
            )));
        }
        let [name_len, n_parts] = [word(16), word(20)].map(|n| n as usize);
        let head_len = size(fixed[24..].try_into().expect("there are 8 bytes"))?;
        let limits = context.limits();
        if head_len > limits.max_head_bytes || n_parts > limits.max_parts {
            return Err(Error::resource_exhausted(format!(
                "an encoded value of {n_parts} parts and {head_len} bytes in front of them exceeds the limits of {} and {}",
                limits.max_parts, limits.max_head_bytes
            )));
        }
        let mut fields = Fields { bytes, rest };
        let lengths = fields.take(n_parts.checked_mul(8))?;
        let name = std::str::from_utf8(fields.take(Some(name_len))?);
        let name = name.map_err(|_| wrong("a name in UTF-8"))?;
        let head = fields.take(Some(head_len))?.to_vec();
        let mut parts = Vec::with_capacity(n_parts);
        for len in lengths.as_chunks::<8>().0 {
            let len = size(*len)?;
            let padding = padding_after(fields.at());
            if fields.take(Some(padding))?.iter().any(|byte| *byte != 0) {
                return Err(wrong("0 in front of a part"));
            }
            let start = fields.at();
            let part = fields.take(Some(len))?;
            let is_aligned = part.as_ptr().addr().is_multiple_of(PART_ALIGNMENT);
            parts.push(match is_aligned || part.is_empty() {
                true => buffer.slice(start..start + len).expect("it was taken"),
                false => HostBuffer::copy_of(context.allocator(), part).ok_or_else(|| {
                    let message = format!("there are no {len} bytes for a part");
                    Error::resource_exhausted(message)
                })?,
            });
        }
        if !fields.rest.is_empty() {
            let found = fields.rest.len();
            return Err(wrong(&format!("an end, found {found} more bytes")));
        }
        Ok(EncodedValue::new(name, word(12), head, parts))
    }
}

/// A reader of a form's bytes: those that are left.
struct Fields<'b> {
    bytes: &'b [u8],
    // Invariant: the end of `bytes`.
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    fn at(&self) -> usize {
        self.bytes.len() - self.rest.len()
    }

    fn take(&mut self, len: Option<usize>) -> Result<&'b [u8], Error> {
        let taken = len.and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = taken else {
            let (at, found) = (self.at(), self.rest.len());
            return Err(wrong(&format!("more than {found} bytes behind byte {at}")));
        };
        self.rest = rest;
        Ok(taken)
    }
}

fn size(bytes: [u8; 8]) -> Result<usize, Error> {
    let len = u64::from_le_bytes(bytes);
    usize::try_from(len).map_err(|_| wrong(&format!("a length, found {len}")))
}

#[cold]
fn wrong(expected: &str) -> Error {
    Error::invalid_argument(format!("bytes of an encoded value: expected {expected}"))
}
