//! [`Upload`]: the body of a request, read within the limits on its length and its time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use hyper::{HeaderMap, StatusCode};
use tfrt_host::ErrorCode;
use tokio::time::{Instant, timeout_at};

use super::encoding::Encoding;
use crate::admission::Ticket;
use crate::limits::Limits;
use crate::refusal::Refusal;

/// Bytes, and the time, for which a client that was refused may go on sending before its connection is closed.
const DISCARDED_BYTES: usize = 1 << 20;
const DISCARDED_TIME: Duration = Duration::from_secs(1);

/// The most bytes of a body without tensors. These are not counted for a request, and are few on all connections together.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// Where the part of a body that is not JSON begins in memory: so that most tensors lie as their elements must.
const ALIGNMENT: usize = 64;

/// The body of a request, of which some may have been read.
pub(crate) struct Upload {
    body: Incoming,
    /// The bytes that it has, if the client has said so.
    length: Option<u64>,
    encoding: Result<Option<Encoding>, Refusal>,
}

impl Upload {
    pub fn new(headers: &HeaderMap, body: Incoming) -> Upload {
        Upload {
            length: body.size_hint().exact(),
            encoding: Encoding::of(headers),
            body,
        }
    }

    /// Returns the bytes that the client has said to send, 0 for a body of unknown length.
    pub fn expected_bytes(&self) -> usize {
        let length = self.length.unwrap_or(0);
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await?;
            match frame.map(|frame| frame.into_data()) {
                Ok(Ok(bytes)) => return Some(Ok(bytes)),
                Ok(Err(_trailers)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Reads on for a while without keeping anything, so that a client that sends before it listens hears the answer.
    pub async fn discard(&mut self) {
        if self.body.is_end_stream() || self.expected_bytes() > DISCARDED_BYTES {
            return;
        }
        let until = Instant::now() + DISCARDED_TIME;
        let mut n_bytes = 0;
        while n_bytes < DISCARDED_BYTES {
            match timeout_at(until, self.next()).await {
                Ok(Some(Ok(bytes))) => n_bytes += bytes.len(),
                _ => return,
            }
        }
    }
}

/// Reads a body with tensors to its end, whose bytes are counted for the request as they come, and as they are unpacked.
/// The byte at `split`, where JSON ends, lies at an address that elements of tensors may have.
///
/// # Errors
///
/// 413 for a body over the limit, 408 for one that comes too slowly, 415 for one that is encoded in another way
/// than gzip and deflate; `Unavailable` if there are too many bytes of all requests; `InvalidArgument` if it ends before
/// its end.
pub(crate) async fn read(
    upload: &mut Upload,
    limits: &Limits,
    ticket: &Arc<Ticket>,
    split: usize,
) -> Result<Bytes, Refusal> {
    let max = limits.max_request_bytes;
    let hold = |n_bytes| ticket.hold(n_bytes);
    match upload.encoding.clone()? {
        None => read_as_is(upload, limits, max, &hold, split).await,
        Some(encoding) => {
            let packed = read_as_is(upload, limits, max, &hold, 0).await?;
            encoding.decode(packed, max, ticket.clone(), split).await
        }
    }
}

/// Reads a body without tensors.
///
/// # Errors
///
/// Those of [`read`].
pub(crate) async fn read_document(upload: &mut Upload, limits: &Limits) -> Result<Bytes, Refusal> {
    let max = limits.max_request_bytes.min(MAX_DOCUMENT_BYTES);
    if upload.encoding.clone()?.is_some() {
        return Err(Refusal::with_status(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::Unimplemented,
            "expected a body as it is: only those with tensors may be compressed",
        ));
    }
    read_as_is(upload, limits, max, &|_| Ok(()), 0).await
}

/// Reads a body of `max` bytes at most as it was sent, and tells `hold` how many have come.
async fn read_as_is(
    upload: &mut Upload,
    limits: &Limits,
    max: usize,
    hold: &(dyn Fn(usize) -> Result<(), Refusal> + Sync),
    split: usize,
) -> Result<Bytes, Refusal> {
    let length = upload.expected_bytes();
    if length > max {
        return Err(too_large(max));
    }
    let began = Instant::now();
    let first = match timeout_at(began + limits.time_of_body(0), upload.next()).await {
        Err(_) => return Err(too_slow(0)),
        Ok(None) => return Ok(Bytes::new()),
        Ok(Some(part)) => part.map_err(|error| cut(&error, 0, length))?,
    };
    // Mostly the whole body has come with the head.
    hold(first.len())?;
    if first.len() == length && is_aligned(&first, split) {
        return Ok(first);
    }
    let mut whole = Aligned::new(split, length.max(first.len()).min(max));
    let mut part = first;
    loop {
        if whole.len() + part.len() > max {
            return Err(too_large(max));
        }
        hold(whole.len() + part.len())?;
        whole.push(&part);
        let until = began + limits.time_of_body(whole.len());
        part = match timeout_at(until, upload.next()).await {
            Err(_) => return Err(too_slow(whole.len())),
            Ok(None) => return Ok(whole.finish()),
            Ok(Some(part)) => part.map_err(|error| cut(&error, whole.len(), length))?,
        };
    }
}

fn is_aligned(bytes: &Bytes, split: usize) -> bool {
    split == 0 || split >= bytes.len() || (bytes.as_ptr() as usize + split).is_multiple_of(8)
}

/// A body that grows behind a few bytes of padding.
pub(super) struct Aligned {
    bytes: Vec<u8>,
    n_padding: usize,
}

impl Aligned {
    pub fn new(split: usize, length: usize) -> Aligned {
        let mut bytes: Vec<u8> = Vec::with_capacity(length + ALIGNMENT);
        let begins = bytes.as_ptr() as usize + split % ALIGNMENT;
        let n_padding = begins.next_multiple_of(ALIGNMENT) - begins;
        bytes.resize(n_padding, 0);
        Aligned { bytes, n_padding }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.n_padding
    }

    pub fn finish(self) -> Bytes {
        Bytes::from(self.bytes).slice(self.n_padding..)
    }
}

pub(super) fn too_large(max: usize) -> Refusal {
    let message = format!("the body of a request may have {max} bytes, but this one has more");
    Refusal::with_status(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::InvalidArgument,
        message,
    )
}

pub(crate) fn too_slow(n_bytes: usize) -> Refusal {
    let message = format!("the body came too slowly: {n_bytes} bytes in the time that there was");
    Refusal::with_status(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::DeadlineExceeded,
        message,
    )
}

fn cut(error: &hyper::Error, n_bytes: usize, length: usize) -> Refusal {
    match length {
        0 => Refusal::invalid(format!("the body can't be read: {error}")),
        _ => Refusal::invalid(format!(
            "the body ended after {n_bytes} of {length} bytes: {error}"
        )),
    }
}
