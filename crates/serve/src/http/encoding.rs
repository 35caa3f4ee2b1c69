//! [`Encoding`]: compressed bodies, unpacked within limits on what they become.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use hyper::header::CONTENT_ENCODING;
use hyper::{HeaderMap, StatusCode};
use tfrt_host::{Error, ErrorCode};

use super::body::{Aligned, too_large};
use crate::admission::Ticket;
use crate::refusal::Refusal;

/// Bytes up to which a body may become longer by any factor, and the factor beyond.
const FREE_BYTES: usize = 1 << 20;
const MAX_RATIO: usize = 100;

/// Bytes that are unpacked before the limits are looked at again.
const STEP: usize = 64 << 10;

/// A way in which a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    /// The format of zlib, as HTTP has it.
    Deflate,
}

impl Encoding {
    /// Returns how a body is compressed; `None` if it is not.
    ///
    /// # Errors
    ///
    /// 415 for a way that is not known.
    pub fn of(headers: &HeaderMap) -> Result<Option<Encoding>, Refusal> {
        let Some(value) = headers.get(CONTENT_ENCODING) else {
            return Ok(None);
        };
        match value.as_bytes() {
            b"identity" => Ok(None),
            b"gzip" => Ok(Some(Encoding::Gzip)),
            b"deflate" => Ok(Some(Encoding::Deflate)),
            other => {
                let message = format!(
                    "expected a body as it is, or encoded as gzip or deflate, found '{}'",
                    String::from_utf8_lossy(other).escape_debug()
                );
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Err(Refusal::with_status(
                    status,
                    ErrorCode::Unimplemented,
                    message,
                ))
            }
        }
    }

    /// Unpacks a body, on a thread of its own, to `max` bytes at most, which are counted for the request beside those of
    /// the body. The one at `split` lies as elements must.
    ///
    /// # Errors
    ///
    /// 413 for a body that becomes longer, or more than a hundred times as long; `Unavailable` if there are too many bytes
    /// of all requests; `InvalidArgument` for one that is broken.
    pub async fn decode(
        self,
        body: Bytes,
        max: usize,
        ticket: Arc<Ticket>,
        split: usize,
    ) -> Result<Bytes, Refusal> {
        let packed = Packed {
            encoding: self,
            body,
            max,
        };
        let unpacked = tokio::task::spawn_blocking(move || packed.unpack(&ticket, split)).await;
        unpacked.unwrap_or_else(|_| Err(Error::internal("unpacking the body has panicked").into()))
    }
}

/// A compressed body, and the most bytes that it may become.
struct Packed {
    encoding: Encoding,
    body: Bytes,
    max: usize,
}

impl Packed {
    /// Unpacks the body into memory that does not grow: one whose length was not guessed is unpacked twice, the first time
    /// to be measured.
    fn unpack(&self, ticket: &Ticket, split: usize) -> Result<Bytes, Refusal> {
        let mut room = self.guess().min(self.max);
        loop {
            ticket.hold(self.body.len() + room)?;
            let mut whole = Aligned::new(split, room);
            let length = self.read(|bytes, length| {
                if length <= room {
                    whole.push(bytes);
                }
            })?;
            if length <= room {
                return Ok(whole.finish());
            }
            room = length;
        }
    }

    /// Returns the length that the body says it becomes, if that is likely; else a length that most bodies stay below.
    fn guess(&self) -> usize {
        let n_packed = self.body.len();
        let likely = n_packed.saturating_mul(4);
        match (self.encoding, self.body.last_chunk()) {
            // The end of a member, which mostly is the only one.
            (Encoding::Gzip, Some(tail)) => {
                let length = usize::try_from(u32::from_le_bytes(*tail)).unwrap_or(usize::MAX);
                match self.check(length) {
                    Ok(()) => length,
                    Err(_) => likely,
                }
            }
            _ => likely,
        }
    }

    /// Unpacks the body, and gives `take` each piece, with the length up to its end. Returns the length of all.
    fn read(&self, mut take: impl FnMut(&[u8], usize)) -> Result<usize, Refusal> {
        let body = &self.body[..];
        match self.encoding {
            // Of any number of members, one behind the other.
            Encoding::Gzip => self.pieces(MultiGzDecoder::new(body), take),
            Encoding::Deflate => {
                let mut decoder = ZlibDecoder::new(body);
                let length = self.pieces(&mut decoder, &mut take)?;
                match body.len() as u64 - decoder.total_in() {
                    0 => Ok(length),
                    n_left => Err(Refusal::invalid(format!(
                        "the body can't be unpacked: {n_left} bytes are left behind its end"
                    ))),
                }
            }
        }
    }

    fn pieces(
        &self,
        mut decoder: impl Read,
        mut take: impl FnMut(&[u8], usize),
    ) -> Result<usize, Refusal> {
        let (mut step, mut length) = (vec![0; STEP], 0);
        loop {
            let n_bytes = decoder.read(&mut step).map_err(|error| {
                Refusal::invalid(format!(
                    "the body can't be unpacked behind {length} bytes: {error}"
                ))
            })?;
            if n_bytes == 0 {
                return Ok(length);
            }
            length += n_bytes;
            self.check(length)?;
            take(&step[..n_bytes], length);
        }
    }

    /// Checks a length that the body becomes.
    fn check(&self, length: usize) -> Result<(), Refusal> {
        let n_packed = self.body.len();
        if length > self.max {
            return Err(too_large(self.max));
        }
        if length > FREE_BYTES && length / MAX_RATIO > n_packed {
            let message = format!(
                "a body of {n_packed} bytes unpacks to more than {MAX_RATIO} times as many"
            );
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(Refusal::with_status(
                status,
                ErrorCode::InvalidArgument,
                message,
            ));
        }
        Ok(())
    }
}
