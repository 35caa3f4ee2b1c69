//! Bytes on their way: parts that are sent without a copy, and memory that values are received into.

use std::any::Any;
use std::fmt;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use zerocopy::FromZeros;

use crate::frame::{HEADER_BYTES, Header};

/// Bytes that are sent from where they are. They stay there, and may be sent again, until the receiver has them.
pub type Part = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Returns the number of bytes in parts.
pub fn len_bytes(parts: &[Part]) -> usize {
    parts.iter().map(|part| (**part).as_ref().len()).sum()
}

/// A range of a part.
#[derive(Clone)]
struct Piece {
    part: Part,
    range: Range<usize>,
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        &(*self.part).as_ref()[self.range.clone()]
    }
}

/// A frame that is ready to be written.
pub struct Outgoing {
    head: [u8; HEADER_BYTES],
    payload: Vec<Piece>,
    len_bytes: usize,
}

impl Outgoing {
    /// Returns the frame of a header, whose length and checksum are filled in, and a range of parts.
    pub(crate) fn new(header: Header, parts: &[Part], range: Range<usize>, sums: bool) -> Outgoing {
        let len = range.len();
        let payload = pieces(parts, range);
        let crc = payload
            .iter()
            .filter(|_| sums)
            .fold(0, |crc, piece| crc32c::crc32c_append(crc, piece.bytes()));
        let header = Header {
            payload_len_bytes: u32::try_from(len).expect("payloads are below a limit"),
            payload_crc: crc,
            ..header
        };
        Outgoing {
            head: header.encode(),
            payload,
            len_bytes: HEADER_BYTES + len,
        }
    }

    /// Returns the length of the frame.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Adds the bytes from `skip` on to a list of slices, to be written together.
    pub fn slices<'s>(&'s self, mut skip: usize, slices: &mut Vec<IoSlice<'s>>) {
        let head = std::iter::once(&self.head[..]);
        for bytes in head.chain(self.payload.iter().map(Piece::bytes)) {
            if skip < bytes.len() {
                slices.push(IoSlice::new(&bytes[skip..]));
            }
            skip = skip.saturating_sub(bytes.len());
        }
    }

    /// Returns the bytes of the frame in one piece.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut slices = Vec::new();
        self.slices(0, &mut slices);
        let mut bytes = Vec::with_capacity(self.len_bytes);
        for slice in slices {
            bytes.extend_from_slice(&slice);
        }
        bytes
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len_bytes;
        f.debug_struct("Outgoing").field("len_bytes", &len).finish()
    }
}

fn pieces(parts: &[Part], range: Range<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for part in parts {
        let end = begin + (**part).as_ref().len();
        let (from, to) = (range.start.max(begin), range.end.min(end));
        if from < to {
            pieces.push(Piece {
                part: part.clone(),
                range: from - begin..to - begin,
            });
        }
        begin = end;
    }
    pieces
}

/// Memory that a value is received into.
pub trait Landing: Send {
    /// Returns the memory, as long as the value. Its contents don't matter.
    fn bytes(&mut self) -> &mut [u8];

    /// Returns the memory as whoever gave it knows it.
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl fmt::Debug for dyn Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Landing")
    }
}

/// Memory of the system that begins at a multiple of 64 bytes.
///
/// # Examples
///
/// ```
/// use tfrt_wire::payload::{AlignedBytes, Landing};
///
/// let mut memory = AlignedBytes::new(100).unwrap();
/// assert_eq!((memory.bytes().len(), memory.bytes().as_ptr() as usize % 64), (100, 0));
/// ```
pub struct AlignedBytes {
    // Memory that asks the system for no alignment, since that gives zeros without writing them.
    bytes: Vec<u8>,
    // Invariant: `begin + len_bytes <= bytes.len()`, and `bytes[begin]` is aligned.
    begin: usize,
    len_bytes: usize,
}

/// The alignment of that memory.
const ALIGN: usize = 64;

impl AlignedBytes {
    /// Returns memory of this length, all zeros; nothing if there is none.
    pub fn new(len_bytes: usize) -> Option<AlignedBytes> {
        let bytes = u8::new_vec_zeroed(len_bytes.checked_add(ALIGN)?).ok()?;
        let begin = bytes.as_ptr().addr().wrapping_neg() % ALIGN;
        Some(AlignedBytes {
            bytes,
            begin,
            len_bytes,
        })
    }
}

impl Landing for AlignedBytes {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..][..self.len_bytes]
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.begin..][..self.len_bytes]
    }
}
