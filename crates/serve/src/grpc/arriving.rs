//! [`Arriving`]: the body of a call, whose bytes are admitted as they come, before there is a message.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{Call, status};
use crate::admission::Ticket;
use crate::server::Shared;

/// The body of a call. One that is over the capacity ends with the refusal.
pub(super) struct Arriving {
    body: Incoming,
    shared: Arc<Shared>,
    /// Where bytes are counted, of calls with inputs of models.
    ticket: Option<Arc<Mutex<Ticket>>>,
}

impl Arriving {
    pub fn new(body: Incoming, call: &Call) -> Arriving {
        Arriving {
            body,
            shared: call.shared.clone(),
            ticket: call.ticket.clone(),
        }
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let frame = match frame {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end.map(|frame| frame.map_err(Into::into))),
        };
        if let (Some(ticket), Some(bytes)) = (&self.ticket, frame.data_ref()) {
            let mut ticket = ticket.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(refusal) = ticket.grow(bytes.len(), &self.shared.limits) {
                return Poll::Ready(Some(Err(status(refusal).into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
