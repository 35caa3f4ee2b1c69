//! [`Cursor`]: a bounds-checked reader of bytes, whose errors have the offset.

use std::ops::Range;

use crate::{
    codes,
    error::BefError,
    varint::{self, VarintError},
};

/// A reader's position in the bytes of a file, and where to stop.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    /// Every byte from the start of the file to where reading must stop.
    bytes: &'a [u8],
    /// Invariant: at most `bytes.len()`.
    position: usize,
    /// The beginning of error messages.
    context: &'static str,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of `range` of the file `bytes`.
    pub(crate) fn new(bytes: &'a [u8], range: Range<usize>, context: &'static str) -> Cursor<'a> {
        Cursor {
            bytes: &bytes[..range.end],
            position: range.start.min(range.end),
            context,
        }
    }

    /// Sets the beginning of error messages.
    pub(crate) fn set_context(&mut self, context: &'static str) {
        self.context = context;
    }

    /// Returns the position from the start of the file.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Returns how many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Returns whether no byte is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns the error that says `reason` at the current position.
    pub(crate) fn error(&self, code: &'static str, reason: &str) -> BefError {
        self.error_at(code, self.position, reason)
    }

    /// Returns the error that says `reason` at `offset`.
    pub(crate) fn error_at(&self, code: &'static str, offset: usize, reason: &str) -> BefError {
        if self.context.is_empty() {
            return BefError::new(code, offset, reason);
        }
        BefError::new(code, offset, format!("{}: {reason}", self.context))
    }

    /// Reads one byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, BefError> {
        let byte = *self
            .bytes
            .get(self.position)
            .ok_or_else(|| self.error(codes::TRUNCATED, "no byte is left"))?;
        self.position += 1;
        Ok(byte)
    }

    /// Reads a variable-length integer.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, BefError> {
        // Most integers take one byte or two.
        match self.bytes[self.position..] {
            [low @ ..=0x7f, ..] => {
                self.position += 1;
                Ok(u64::from(low))
            }
            [high @ 0x81..=0xff, low @ ..=0x7f, ..] => {
                self.position += 2;
                Ok(u64::from(high & 0x7f) << 7 | u64::from(low))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, BefError> {
        let (value, len) = varint::read(&self.bytes[self.position..])
            .map_err(|error| self.error(integer_code(error), error.reason()))?;
        self.position += len;
        Ok(value)
    }

    /// Reads a variable-length integer of at most 32 bits.
    #[inline]
    pub(crate) fn varint32(&mut self) -> Result<u32, BefError> {
        let start = self.position;
        let value = self.varint()?;
        match u32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => Err(self.too_large(start, value)),
        }
    }

    #[cold]
    fn too_large(&self, start: usize, value: u64) -> BefError {
        let reason = format!("integer {value} exceeds 32 bits");
        self.error_at(codes::NUMBER, start, &reason)
    }

    /// Reads a count of entries that take at least `entry_bytes` each.
    pub(crate) fn count(&mut self, entry_bytes: usize) -> Result<usize, BefError> {
        let start = self.position;
        let count = self.varint()?;
        let most = self.remaining() / entry_bytes;
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => Err(self.error_at(
                codes::TRUNCATED,
                start,
                &format!("count of {count}, but the bytes that are left hold at most {most}"),
            )),
        }
    }

    /// Reads `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], BefError> {
        if len > self.remaining() {
            return Err(self.error(
                codes::TRUNCATED,
                &format!("{len} bytes expected, {} left", self.remaining()),
            ));
        }
        let bytes = &self.bytes[self.position..self.position + len];
        self.position += len;
        Ok(bytes)
    }

    /// Skips to the next multiple of `alignment` from the start of the file.
    pub(crate) fn align(&mut self, alignment: usize) -> Result<(), BefError> {
        let padding = self.position.next_multiple_of(alignment) - self.position;
        self.take(padding).map(|_| ())
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    ///
    /// Bytes are left.
    pub(crate) fn finish(&self) -> Result<(), BefError> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(self.error(
            codes::LEFT_OVER,
            &format!("{} bytes are left over", self.remaining()),
        ))
    }
}

/// Returns the code for bytes that are no integer.
fn integer_code(error: VarintError) -> &'static str {
    match error {
        VarintError::Truncated => codes::TRUNCATED,
        VarintError::TooLarge | VarintError::NotMinimal => codes::NUMBER,
    }
}

/// Returns a vector with room for `n` elements.
///
/// # Errors
///
/// There is no memory for it.
pub(crate) fn reserved<T>(n: usize, offset: usize) -> Result<Vec<T>, BefError> {
    let mut vector = Vec::new();
    reserve(&mut vector, n, offset)?;
    Ok(vector)
}

/// Makes room for `n` more elements.
///
/// # Errors
///
/// There is no memory for it.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, n: usize, offset: usize) -> Result<(), BefError> {
    vector.try_reserve(n).map_err(|_| {
        BefError::new(
            codes::NO_MEMORY,
            offset,
            format!("no memory for a table of {n} entries"),
        )
    })
}

/// Returns a vector of `n` copies of `value`.
///
/// # Errors
///
/// There is no memory for it.
pub(crate) fn filled<T: Clone>(value: T, n: usize, offset: usize) -> Result<Vec<T>, BefError> {
    let mut vector = reserved(n, offset)?;
    vector.resize(n, value);
    Ok(vector)
}

/// A set of offsets into a section: a bit for each of its bytes, in chunks that are there only if a bit is set, so that
/// large elements cost nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    /// The number of each chunk among those that are there, from 1 on.
    // Invariant: 0, which is none, or a number of chunks that `words` has.
    chunks: Vec<u32>,
    words: Vec<u64>,
}

/// The number of words of a chunk.
const CHUNK_WORDS: usize = 64;
/// The number of bytes of a section that a chunk stands for.
const CHUNK_BYTES: usize = CHUNK_WORDS * u64::BITS as usize;

impl Offsets {
    /// Makes an empty set for a section of this length.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(crate) fn new(len_bytes: usize, offset: usize) -> Result<Offsets, BefError> {
        let chunks = filled(0, len_bytes.div_ceil(CHUNK_BYTES), offset)?;
        let words = Vec::new();
        Ok(Offsets { chunks, words })
    }

    /// Adds an offset, which lies inside the section.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(crate) fn insert(&mut self, offset: usize) -> Result<(), BefError> {
        let (chunk, word) = Offsets::place(offset);
        if self.chunks[chunk] == 0 {
            reserve(&mut self.words, CHUNK_WORDS, offset)?;
            self.words.resize(self.words.len() + CHUNK_WORDS, 0);
            // A section below 4 GiB has a million chunks.
            self.chunks[chunk] = (self.words.len() / CHUNK_WORDS) as u32;
        }
        let first = (self.chunks[chunk] as usize - 1) * CHUNK_WORDS;
        self.words[first + word] |= Offsets::bit(offset);
        Ok(())
    }

    /// Returns whether an offset is in the set.
    #[inline]
    pub(crate) fn contains(&self, offset: usize) -> bool {
        let (chunk, word) = Offsets::place(offset);
        match self.chunks.get(chunk) {
            None | Some(0) => false,
            Some(number) => {
                let first = (*number as usize - 1) * CHUNK_WORDS;
                self.words[first + word] & Offsets::bit(offset) != 0
            }
        }
    }

    /// Returns the chunk of an offset, and the word in it.
    fn place(offset: usize) -> (usize, usize) {
        let word = offset / u64::BITS as usize;
        (word / CHUNK_WORDS, word % CHUNK_WORDS)
    }

    fn bit(offset: usize) -> u64 {
        1 << (offset % u64::BITS as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_does_not_fit_into_memory_is_an_error() {
        let error = reserved::<u64>(usize::MAX, 5).unwrap_err();
        let message = format!("no memory for a table of {} entries", usize::MAX);
        assert_eq!((error.code(), error.offset()), (codes::NO_MEMORY, 5));
        assert_eq!(error.message(), message);
        assert!(filled(0_u64, usize::MAX, 5).is_err());
        let mut entries = reserved::<u8>(7, 5).unwrap();
        assert!(entries.is_empty() && entries.capacity() >= 7);
        entries.resize(7, 0);
        assert!(reserve(&mut entries, usize::MAX, 5).is_err());
        assert!(reserve(&mut entries, 700, 5).is_ok());
        assert!(entries.len() == 7 && entries.capacity() >= 707);
    }

    #[test]
    fn set_takes_memory_where_offsets_are() {
        let len_bytes = 1 << 20;
        let mut offsets = Offsets::new(len_bytes, 0).unwrap();
        assert_eq!((offsets.chunks.len(), offsets.words.len()), (256, 0));
        for offset in [0, 4_095, 8_192, len_bytes - 1] {
            offsets.insert(offset).unwrap();
        }
        // A bit for each byte of three chunks, the first, the third and the last.
        assert_eq!(offsets.words.len() * 64, 3 * 4_096);
        assert_eq!(Offsets::new(len_bytes + 1, 0).unwrap().chunks.len(), 257);
    }

    /// A section of some chunks and a part of one.
    const LEN_BYTES: usize = 3 * CHUNK_BYTES + 100;

    proptest! {
        #[test]
        fn offsets_are_those_that_were_added(added: BTreeSet<u16>) {
            let added: BTreeSet<usize> =
                added.into_iter().map(|offset| usize::from(offset) % LEN_BYTES).collect();
            let mut offsets = Offsets::new(LEN_BYTES, 0).unwrap();
            for offset in &added {
                offsets.insert(*offset).unwrap();
            }
            for offset in 0..LEN_BYTES + CHUNK_BYTES {
                prop_assert_eq!(offsets.contains(offset), added.contains(&offset));
            }
        }
    }
}
