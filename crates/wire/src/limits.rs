//! [`Limits`]: how much a peer may take of memory, and how long it may be silent.

use std::time::Duration;

use crate::frame::CHUNK_BYTES;

/// Bounds of a link.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The time between two signs of life. Nothing heard for half as long again makes a peer suspect, for three times as
    /// long lost.
    pub heartbeat: Duration,
    /// The time for which a peer may be silent before all that waits for it fails. Until then, a peer that was lost is
    /// met again where it was left.
    pub lease: Duration,
    /// The time for which what is sent waits for a peer that was never met.
    pub join_timeout: Duration,
    /// The time for a handshake.
    pub hello_timeout: Duration,
    /// The longest time between two attempts to dial.
    pub max_redial: Duration,
    /// The time for which an acknowledgement may wait for a frame to ride in.
    pub ack_delay: Duration,
    /// The most connections, and the most peers.
    pub max_connections: usize,
    /// The most connections whose peers have not proved yet who they are.
    pub max_handshakes: usize,
    /// The most bytes of a request or reply.
    pub max_message_bytes: u32,
    /// The most bytes of messages to a peer that it has not acknowledged. Above, requests are refused on both sides.
    pub max_unacknowledged_bytes: usize,
    /// The most requests of a peer that are not answered.
    pub max_requests: usize,
    /// The most bytes of values of a peer that are being received.
    pub max_admitted_bytes: u64,
    /// The most bytes of values that a peer may send ahead; at least one chunk.
    pub credit_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            heartbeat: Duration::from_secs(1),
            lease: Duration::from_secs(10),
            join_timeout: Duration::from_secs(60),
            hello_timeout: Duration::from_secs(5),
            max_redial: Duration::from_secs(1),
            ack_delay: Duration::from_millis(10),
            max_connections: 4_096,
            max_handshakes: 128,
            max_message_bytes: 4 << 20,
            max_unacknowledged_bytes: 64 << 20,
            max_requests: 1_024,
            max_admitted_bytes: 1 << 30,
            credit_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// The most messages to a peer that it has not acknowledged, however small: a peer that never acknowledges is none.
    pub const MAX_UNACKNOWLEDGED: usize = 1 << 16;

    /// Returns the time of silence after which a peer is suspect.
    pub(crate) fn suspect_after(&self) -> Duration {
        self.heartbeat * 3 / 2
    }

    /// Returns the time of silence after which a peer is lost.
    pub(crate) fn lost_after(&self) -> Duration {
        self.heartbeat * 3
    }

    /// Returns the bytes of values that a peer may send ahead.
    pub(crate) fn credit(&self) -> u64 {
        self.credit_bytes.max(CHUNK_BYTES as u64)
    }
}
