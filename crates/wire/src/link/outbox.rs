//! [`Outbox`]: numbered frames to a peer, kept until it acknowledges them, and sent again after a cut.

use std::collections::VecDeque;

use crate::frame::Header;
use crate::payload::{Outgoing, Part, len_bytes};

/// Numbered frames that the peer has not acknowledged, in order.
#[derive(Default)]
pub struct Outbox {
    frames: VecDeque<Numbered>,
    /// The number of the last frame that was acknowledged.
    acknowledged: u64,
    /// The number of the last frame that was written on this connection, or had been acknowledged before it.
    sent: u64,
    /// The number of the last frame that was ever written.
    highest_sent: u64,
    len_bytes: usize,
}

struct Numbered {
    header: Header,
    parts: Vec<Part>,
    len_bytes: usize,
}

impl Outbox {
    /// Adds a frame and returns its number.
    pub fn push(&mut self, header: Header, parts: Vec<Part>) -> u64 {
        let sequence = self.last() + 1;
        let header = Header { sequence, ..header };
        let len_bytes = len_bytes(&parts);
        self.len_bytes += len_bytes;
        self.frames.push_back(Numbered {
            header,
            parts,
            len_bytes,
        });
        sequence
    }

    /// Returns the next frame to write, which acknowledges the peer's up to `received`.
    pub fn next(&mut self, received: u64, incarnation: u64) -> Option<Outgoing> {
        let index = usize::try_from(self.sent - self.acknowledged).expect("frames fit in memory");
        let frame = self.frames.get(index)?;
        self.sent = frame.header.sequence;
        self.highest_sent = self.highest_sent.max(self.sent);
        let header = Header {
            offset: received,
            incarnation,
            ..frame.header
        };
        // Messages are summed on any connection: they are short.
        Some(Outgoing::new(
            header,
            &frame.parts,
            0..frame.len_bytes,
            true,
        ))
    }

    /// Drops the frames up to a number, and returns whether that was ever sent.
    pub fn acknowledge(&mut self, number: u64) -> bool {
        if number > self.highest_sent {
            return false;
        }
        while self.acknowledged < number {
            let Some(frame) = self.frames.pop_front() else {
                break;
            };
            self.len_bytes -= frame.len_bytes;
            self.acknowledged = frame.header.sequence;
        }
        self.sent = self.sent.max(self.acknowledged);
        true
    }

    /// Begins anew behind the last frame that the peer has received. Returns whether it can have received that.
    pub fn rewind(&mut self, received: u64) -> bool {
        if received < self.acknowledged || !self.acknowledge(received) {
            return false;
        }
        self.sent = self.acknowledged;
        true
    }

    /// Returns the number of the last frame that was added.
    pub fn last(&self) -> u64 {
        self.acknowledged + self.frames.len() as u64
    }

    /// Returns whether the frame of a number was written on this connection, or has been received.
    pub fn is_sent(&self, sequence: u64) -> bool {
        sequence <= self.sent
    }

    /// Returns whether the frame of a number was ever written.
    pub fn was_ever_sent(&self, sequence: u64) -> bool {
        sequence <= self.highest_sent
    }

    /// Returns whether no frame was ever written.
    pub fn is_untouched(&self) -> bool {
        self.highest_sent == 0
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the bytes of the frames' payloads.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}
