//! [`Unread`]: answers that a client does not take. Their memory is held, and counted, until they are sent, so that a
//! connection on which they lie for too long is closed.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use crate::admission::{Admission, Ticket};
use crate::http::Payload;
use crate::limits::Limits;

/// The least bytes of a piece that is watched. Smaller ones are few: a stream sends no more before they are taken.
const WATCHED_BYTES: usize = 64 << 10;

/// The pieces of answers that one connection holds.
pub(super) struct Unread {
    admission: Arc<Admission>,
    pieces: Mutex<Pieces>,
    /// The bytes that the system has taken for the client.
    n_sent: AtomicU64,
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
    pub fn new(admission: &Arc<Admission>) -> Unread {
        Unread {
            admission: admission.clone(),
            pieces: Mutex::default(),
            n_sent: AtomicU64::new(0),
            is_begun: Notify::new(),
        }
    }

    /// Notes that the system has taken bytes.
    pub fn sent(&self, n_bytes: usize) {
        // Ordering: a count, which orders no memory.
        self.n_sent.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    /// Watches the body of an answer.
    pub fn watch(self: Arc<Self>, payload: Payload) -> Watched {
        Watched {
            payload,
            unread: self,
        }
    }

    /// Waits until a client has taken less than it has to, within a while or in all.
    pub async fn stalled(&self, limits: &Limits) {
        loop {
            let (from, n_sent) = (Instant::now(), self.n_sent.load(Ordering::Relaxed));
            if self.lock().began.is_none() {
                self.is_begun.notified().await;
                continue;
            }
            sleep_until(from + limits.answer_time).await;
            let n_sent = self.n_sent.load(Ordering::Relaxed) - n_sent;
            if self.lock().is_slow(from, n_sent, limits) {
                return;
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
        let ticket = self.admission.stream();
        ticket.count(bytes.len());
        Bytes::from_owner(Piece {
            bytes,
            unread: self.clone(),
            _ticket: ticket,
        })
    }
}

impl Pieces {
    /// Returns whether they are taken too slowly, of which so many bytes were since a moment.
    fn is_slow(&self, from: Instant, n_sent: u64, limits: &Limits) -> bool {
        let Some(began) = self.began else {
            return false;
        };
        let rate = limits.min_body_rate as f64;
        let least = rate * limits.answer_time.as_secs_f64();
        let in_all = limits.answer_time.as_secs_f64() + self.n_bytes as f64 / rate.max(1.0);
        began <= from && (n_sent as f64) < least || began.elapsed().as_secs_f64() > in_all
    }
}

/// A piece of an answer, until it was sent.
struct Piece {
    bytes: Bytes,
    unread: Arc<Unread>,
    _ticket: Ticket,
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
