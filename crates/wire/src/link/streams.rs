//! Values on their way: [`Sending`] to a peer, [`Receiving`] from it, and how far each side may go ahead, [`Flow`].

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::frame::{CHUNK_BYTES, Header, Kind};
use crate::message::Open;
use crate::payload::{Landing, Outgoing, Part};

/// A value that is being sent.
pub struct Sending {
    /// The bytes, kept until the peer has them all.
    pub parts: Vec<Part>,
    /// Their number.
    pub total: u64,
    /// The bytes that were sent, and need not be sent again as far as is known.
    pub sent: u64,
    /// The number of the frame that opens the stream.
    pub opened_by: u64,
}

/// A value that is being received.
pub struct Receiving {
    /// The context that the sender gave.
    pub context: u64,
    /// Its description.
    pub open: Open,
    /// The memory that it is received into, as long as the value.
    pub landing: Box<dyn Landing>,
    /// The bytes that are there.
    pub received: u64,
}

/// How many bytes of values have gone over a connection, and how many may.
#[derive(Default)]
pub struct Flow {
    /// Bytes that we have sent.
    pub sent: u64,
    /// Bytes that we may send.
    pub allowed: u64,
    /// Bytes that have come.
    pub received: u64,
    /// Bytes that the peer was told it may send.
    pub granted: u64,
}

impl Flow {
    /// Returns how far the peer may go, if it is to be told: when half of what it had is used up.
    pub fn grant(&mut self, credit: u64) -> Option<u64> {
        let left = self.granted - self.received;
        if self.granted > 0 && left > credit / 2 {
            return None;
        }
        self.granted = self.received + credit;
        Some(self.granted)
    }
}

/// The values that are being sent, in the order of their ids.
#[derive(Default)]
pub struct Senders {
    all: BTreeMap<u64, Sending>,
    /// The id of the stream that sent last.
    last: u64,
}

impl Senders {
    /// Adds a value.
    pub fn insert(&mut self, stream: u64, sending: Sending) {
        self.all.insert(stream, sending);
    }

    /// Takes a value out.
    pub fn remove(&mut self, stream: u64) -> Option<Sending> {
        self.all.remove(&stream)
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns all values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&u64, &mut Sending)> {
        self.all.iter_mut()
    }

    /// Takes all values out.
    pub fn take(&mut self) -> BTreeMap<u64, Sending> {
        std::mem::take(&mut self.all)
    }

    /// Returns the next chunk that may be sent: streams take turns. `is_open` says of a frame's number whether it was
    /// sent.
    pub fn next(
        &mut self,
        flow: &mut Flow,
        is_open: impl Fn(u64) -> bool,
        incarnation: u64,
        sums: bool,
    ) -> Option<Outgoing> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let turn = self.all.range(behind).chain(self.all.range(..=self.last));
        let is_ready =
            |sending: &Sending| sending.sent < sending.total && is_open(sending.opened_by);
        let stream = turn
            .filter(|(_, sending)| is_ready(sending))
            .map(|(stream, _)| *stream)
            .next()?;
        let sending = self.all.get_mut(&stream)?;
        let len = (sending.total - sending.sent).min(CHUNK_BYTES as u64);
        if flow.allowed - flow.sent < len {
            return None;
        }
        self.last = stream;
        let (from, to) = (sending.sent, sending.sent + len);
        sending.sent = to;
        flow.sent += len;
        let following = (sending.total - to).div_ceil(CHUNK_BYTES as u64);
        let header = Header {
            stream,
            incarnation,
            sequence: from / CHUNK_BYTES as u64,
            offset: from,
            n_following: u32::try_from(following).unwrap_or(u32::MAX),
            ..Header::new(Kind::Data)
        };
        let index = |at: u64| usize::try_from(at).expect("it is in memory");
        let range = index(from)..index(to);
        Some(Outgoing::new(header, &sending.parts, range, sums))
    }
}
