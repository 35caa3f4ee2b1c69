//! [`Payload`]: the body of an answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Parts that are written one behind the other. They may be the memory of tensors, which is not copied.
    Parts(VecDeque<Bytes>),
    /// Messages of gRPC, and the status behind them.
    Grpc(tonic::body::Body),
}

impl Payload {
    /// Leaves nothing of it, as the answer to a `HEAD` has it.
    pub fn clear(&mut self) {
        *self = Payload::default();
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::Parts(VecDeque::new())
    }
}

impl From<Bytes> for Payload {
    fn from(part: Bytes) -> Payload {
        Payload::Parts(VecDeque::from([part]))
    }
}

impl From<Vec<Bytes>> for Payload {
    fn from(parts: Vec<Bytes>) -> Payload {
        Payload::Parts(parts.into())
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.get_mut() {
            Payload::Parts(parts) => {
                Poll::Ready(parts.pop_front().map(|part| Ok(Frame::data(part))))
            }
            Payload::Grpc(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Payload::Parts(parts) => parts.is_empty(),
            Payload::Grpc(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Payload::Parts(parts) => {
                SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum())
            }
            Payload::Grpc(body) => body.size_hint(),
        }
    }
}
