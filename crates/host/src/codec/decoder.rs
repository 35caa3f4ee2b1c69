//! [`Decoder`]: a reader of one value's bytes, for its codec.

use std::fmt;

use tfrt_async::Error;

use crate::memory::HostBuffer;

/// A reader of one value's bytes, from the front: they may be anything, so that each read may fail.
pub struct Decoder<'b> {
    type_name: &'static str,
    head: &'b [u8],
    parts: std::slice::Iter<'b, HostBuffer>,
}

impl<'b> Decoder<'b> {
    pub(super) fn new(
        type_name: &'static str,
        head: &'b [u8],
        parts: &'b [HostBuffer],
    ) -> Decoder<'b> {
        Decoder {
            type_name,
            head,
            parts: parts.iter(),
        }
    }

    /// Returns the error for bytes that no value of the type has: `wrong(format_args!("a rank, found {found}"))`.
    #[cold]
    pub fn wrong(&self, expected: fmt::Arguments<'_>) -> Error {
        let name = self.type_name;
        Error::invalid_argument(format!("an encoded {name}: expected {expected}"))
    }

    /// Reads so many bytes of the head.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many left.
    pub fn bytes(&mut self, len: usize) -> Result<&'b [u8], Error> {
        let Some((bytes, rest)) = self.head.split_at_checked(len) else {
            let found = self.head.len();
            return Err(self.wrong(format_args!("{len} more bytes, found {found}")));
        };
        self.head = rest;
        Ok(bytes)
    }

    /// Reads an array of bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("there are N bytes"))
    }

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if none is left.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a number.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if fewer than 4 bytes are left.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if fewer than 8 bytes are left.
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a size.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if fewer than 8 bytes are left, or if the number does not fit.
    pub fn usize(&mut self) -> Result<usize, Error> {
        let number = self.u64()?;
        usize::try_from(number).map_err(|_| self.wrong(format_args!("a size, found {number}")))
    }

    /// Reads how many things follow, each of which takes so many bytes of the head at least: no more than there
    /// is room for, so that memory for all may be taken at once.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no room for as many.
    pub fn count(&mut self, min_bytes_each: usize) -> Result<usize, Error> {
        let (count, left) = (self.usize()?, self.head.len());
        match count.checked_mul(min_bytes_each.max(1)) {
            Some(least) if least <= left => Ok(count),
            _ => Err(self.wrong(format_args!("at most {left} bytes of {count} things"))),
        }
    }

    /// Reads a text behind its length.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none, or if it is not UTF-8.
    pub fn str(&mut self) -> Result<&'b str, Error> {
        let len = self.count(1)?;
        let bytes = self.bytes(len)?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong(format_args!("a text in UTF-8")))
    }

    /// Takes the next part, which the value may keep.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if none is left.
    pub fn part(&mut self) -> Result<HostBuffer, Error> {
        match self.parts.next() {
            Some(part) => Ok(part.clone()),
            None => Err(self.wrong(format_args!("one more part"))),
        }
    }

    /// Checks that all was read.
    pub(super) fn finish(self) -> Result<(), Error> {
        match (self.head.len(), self.parts.len()) {
            (0, 0) => Ok(()),
            (bytes, parts) => {
                let expected = format_args!("an end, found {bytes} more bytes and {parts} parts");
                Err(self.wrong(expected))
            }
        }
    }
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("type_name", &self.type_name)
            .field("bytes_left", &self.head.len())
            .field("parts_left", &self.parts.len())
            .finish()
    }
}
