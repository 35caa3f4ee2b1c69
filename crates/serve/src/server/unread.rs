//! [`Unread`]: answers that a client does not take. Their memory is held until they are sent, so that a connection on which
//! they lie for too long is closed.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use crate::http::Payload;
use crate::limits::Limits;

/// The least bytes of a piece that is watched. Smaller ones are few: a stream sends no more before they are taken.
const WATCHED_BYTES: usize = 64 << 10;

/// The pieces of answers that one connection holds.
#[derive(Default)]
pub(super) struct Unread {
    pieces: Mutex<Pieces>,
    /// Told when there are pieces where there were none.
    is_begun: Notify,
}

/// Pieces on their way.
#[derive(Default)]
struct Pieces {
    n_held: usize,
    /// When the first came, since when there were always some; `None` if there are none.
    began: Option<Instant>,
    /// The bytes of all that came since then.
    n_bytes: usize,
}

/// The body of an answer, whose pieces are watched.
pub(super) struct Watched {
    payload: Payload,
    unread: Arc<Unread>,
}

impl Unread {
    /// Watches the body of an answer.
    pub fn watch(self: Arc<Self>, payload: Payload) -> Watched {
        Watched {
            payload,
            unread: self,
        }
    }

    /// Waits until a client has taken less than it has to: as slowly as a body may be sent, its answers may be read.
    pub async fn stalled(&self, limits: &Limits) {
        loop {
            let due = {
                let pieces = self.lock();
                let allowed = limits.time_of_body(pieces.n_bytes);
                pieces.began.map(|began| began + allowed)
            };
            match due {
                None => self.is_begun.notified().await,
                Some(due) if due <= Instant::now() => return,
                Some(due) => sleep_until(due).await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns bytes that are watched until they are dropped, which is when they have been sent.
    fn hold(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        if bytes.len() < WATCHED_BYTES {
            return bytes;
        }
        let mut pieces = self.lock();
        pieces.n_held += 1;
        pieces.n_bytes += bytes.len();
        if pieces.began.is_none() {
            pieces.began = Some(Instant::now());
            self.is_begun.notify_one();
        }
        drop(pieces);
        let unread = self.clone();
        Bytes::from_owner(Piece { bytes, unread })
    }
}

/// A piece of an answer, until it was sent.
struct Piece {
    bytes: Bytes,
    unread: Arc<Unread>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut pieces = self.unread.lock();
        pieces.n_held -= 1;
        if pieces.n_held == 0 {
            *pieces = Pieces::default();
        }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.payload).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| match frame.into_data() {
                Ok(bytes) => Frame::data(self.unread.hold(bytes)),
                Err(trailers) => trailers,
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.payload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.payload.size_hint()
    }
}
