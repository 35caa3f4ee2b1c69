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
        let unpacked = tokio::task::spawn_blocking(move || match self {
            // Of any number of members, one behind the other.
            Encoding::Gzip => unpack(
                MultiGzDecoder::new(&body[..]),
                body.len(),
                max,
                &ticket,
                split,
            ),
            Encoding::Deflate => {
                let mut decoder = ZlibDecoder::new(&body[..]);
                let unpacked = unpack(&mut decoder, body.len(), max, &ticket, split)?;
                match body.len() as u64 - decoder.total_in() {
                    0 => Ok(unpacked),
                    n_left => Err(Refusal::invalid(format!(
                        "the body can't be unpacked: {n_left} bytes are left behind its end"
                    ))),
                }
            }
        });
        let unpacked = unpacked.await;
        unpacked.unwrap_or_else(|_| Err(Error::internal("unpacking the body has panicked").into()))
    }
}

fn unpack(
    mut decoder: impl Read,
    n_packed: usize,
    max: usize,
    ticket: &Ticket,
    split: usize,
) -> Result<Bytes, Refusal> {
    let mut whole = Aligned::new(split, (n_packed.saturating_mul(2)).min(max));
    let mut step = vec![0; STEP];
    loop {
        let n_bytes = decoder.read(&mut step).map_err(|error| {
            let so_far = whole.len();
            Refusal::invalid(format!(
                "the body can't be unpacked behind {so_far} bytes: {error}"
            ))
        })?;
        if n_bytes == 0 {
            return Ok(whole.finish());
        }
        let length = whole.len() + n_bytes;
        if length > max {
            return Err(too_large(max));
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
        ticket.hold(n_packed + length)?;
        whole.push(&step[..n_bytes]);
    }
}
