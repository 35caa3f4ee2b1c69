//! [`Event`]: what happens on a link, for whoever uses it.

use tfrt_async::Error;

use crate::payload::Landing;

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerState {
    /// It was never met, or a new start of it is awaited.
    Connecting,
    /// It answers.
    Live,
    /// A sign of life was missed, or the connection was cut.
    Suspect,
    /// Nothing was heard for three times as long as signs of life take.
    Lost,
}

/// A request of a peer, to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// Which of the sessions with the peer it belongs to.
    pub(crate) epoch: u64,
    /// The number that the peer gave it.
    pub(crate) id: u64,
}

impl CallId {
    /// Returns the number that the peer has given the request; those of one start of its process differ.
    pub fn number(self) -> u64 {
        self.id
    }
}

/// An occurrence on a link.
#[derive(Debug)]
pub enum Event {
    /// The peer is in another state.
    State(PeerState),
    /// The peer asks for something.
    Request {
        /// The id by which it is answered.
        call: CallId,
        /// The context that the caller gave.
        context: u64,
        /// The request.
        body: Vec<u8>,
    },
    /// The peer no longer wants answers to these requests, or is lost.
    Cancelled(Vec<CallId>),
    /// A request of ours was answered.
    Reply {
        /// The id that [`request`](crate::endpoint::Endpoint::request) gave.
        id: u64,
        /// The answer.
        body: Vec<u8>,
    },
    /// A request of ours failed: there, or since the peer is lost.
    Failed {
        /// The id that [`request`](crate::endpoint::Endpoint::request) gave.
        id: u64,
        /// The reason.
        error: Error,
        /// Whether the peer may have begun with it.
        may_have_run: bool,
    },
    /// A value has come as a whole.
    Value {
        /// The context that the sender gave.
        context: u64,
        /// The key that the sender gave.
        key: Vec<u8>,
        /// The codec by which it is read.
        codec: String,
        /// The memory that [`Admission::admit`](crate::endpoint::Admission::admit) gave, filled.
        value: Box<dyn Landing>,
    },
    /// A value that was admitted will not come.
    ValueFailed {
        /// The context that the sender gave.
        context: u64,
        /// The key that the sender gave.
        key: Vec<u8>,
        /// The reason.
        error: Error,
    },
    /// A value of ours has arrived as a whole.
    Sent(u64),
    /// A value of ours was refused, or the peer is lost.
    SendFailed {
        /// The id that [`send`](crate::endpoint::Endpoint::send) gave.
        stream: u64,
        /// The reason.
        error: Error,
    },
    /// The session is over: all that waited has failed, and what is asked of the peer from now on belongs to another.
    Ended(Error),
}
