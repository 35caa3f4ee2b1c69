//! [`Arriving`]: the body of a call, whose bytes are counted as they come, before there is a message, and which may not come
//! too slowly.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Call, status};
use crate::admission::Ticket;
use crate::http::too_slow;
use crate::server::Shared;

/// The most bytes of a message without tensors. These are not counted.
const MAX_PLAIN_BYTES: usize = 64 << 10;

/// The messages that a method takes.
pub(super) enum Takes {
    /// One, without tensors.
    Plain,
    /// One with the inputs of a model, whose request is admitted.
    Tensors(Arc<Ticket>),
    /// Any number of these, each of which is admitted once it is there.
    Stream(Taken),
}

/// The bytes of a stream that belong to no message yet: shared by the body, and by whoever takes messages out of it.
#[derive(Clone)]
pub(super) struct Taken {
    ticket: Arc<Ticket>,
    /// Whether a message was taken since the body was last asked for bytes.
    is_new: Arc<AtomicBool>,
}

/// The body of a call. One that is over the capacity, or comes too slowly, ends with the refusal.
pub(super) struct Arriving {
    body: Incoming,
    shared: Arc<Shared>,
    takes: Takes,
    /// When the message began that is on its way; `None` between the messages of a stream, which may rest.
    began: Option<Instant>,
    /// The bytes of that message.
    n_bytes: usize,
    /// Ends the wait for more bytes, if there is one.
    due: Option<Pin<Box<Sleep>>>,
}

impl Takes {
    /// Returns the most bytes of a message.
    pub fn max_bytes(&self, shared: &Shared) -> usize {
        let max = shared.limits.max_request_bytes;
        match self {
            Takes::Plain => max.min(MAX_PLAIN_BYTES),
            Takes::Tensors(_) | Takes::Stream(_) => max,
        }
    }
}

impl Taken {
    pub fn new(ticket: Ticket) -> Taken {
        Taken {
            ticket: Arc::new(ticket),
            is_new: Arc::default(),
        }
    }

    /// Notes that a message was taken, which is counted by itself from now on.
    pub fn note(&self) {
        self.ticket.let_go();
        // Ordering: the task that takes messages is the one that asks the body for bytes.
        self.is_new.store(true, Ordering::Relaxed);
    }
}

impl Arriving {
    pub fn new(body: Incoming, call: &Call, takes: Takes) -> Arriving {
        let began = match takes {
            Takes::Plain | Takes::Tensors(_) => Some(call.began.into()),
            Takes::Stream(_) => None,
        };
        Arriving {
            body,
            shared: call.shared.clone(),
            takes,
            began,
            n_bytes: 0,
            due: None,
        }
    }

    /// Counts bytes that have come.
    fn count(&mut self, n_bytes: usize) -> Result<(), tonic::Status> {
        self.n_bytes += n_bytes;
        self.began.get_or_insert_with(Instant::now);
        self.due = None;
        let ticket = match &self.takes {
            Takes::Plain => return Ok(()),
            Takes::Tensors(ticket) => ticket,
            Takes::Stream(taken) => &taken.ticket,
        };
        ticket.hold(self.n_bytes).map_err(status)
    }

    /// Waits until the message has taken too long, if one is on its way.
    fn poll_slow(&mut self, context: &mut Context<'_>) -> Poll<tonic::Status> {
        let Some(began) = self.began else {
            return Poll::Pending;
        };
        let allowed = self.shared.limits.time_of_body(self.n_bytes);
        let due = self
            .due
            .get_or_insert_with(|| Box::pin(sleep_until(began + allowed)));
        ready!(due.as_mut().poll(context));
        Poll::Ready(status(too_slow(self.n_bytes)))
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Takes::Stream(taken) = &self.takes
            && taken.is_new.swap(false, Ordering::Relaxed)
        {
            (self.began, self.n_bytes, self.due) = (None, 0, None);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending => {
                let slow = ready!(self.poll_slow(context));
                Poll::Ready(Some(Err(slow.into())))
            }
            Poll::Ready(Some(Ok(frame))) => {
                let counted = frame.data_ref().map_or(Ok(()), |it| self.count(it.len()));
                Poll::Ready(Some(counted.map(|()| frame).map_err(Into::into)))
            }
            Poll::Ready(end) => Poll::Ready(end.map(|frame| frame.map_err(Into::into))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
