//! [`Header`]: the 64 bytes in front of each message, as a codec without input and output.
//!
//! All numbers are little-endian. The payload follows the header, and is empty for most kinds.
//!
//! | at | field | at | field |
//! | --- | --- | --- | --- |
//! | 0 | magic, `TFD1` | 32 | sequence, u64 |
//! | 4, 6 | version, u16; kind, u16 | 40 | offset, u64 |
//! | 8 | context, u64 | 48 | length of the payload in bytes, u32 |
//! | 16 | low half of the sender's incarnation, u64 | 52 | frames of the value still to come, u32 |
//! | 24 | stream, u64 | 56 | crc32c of the payload, u32; 0 where payloads aren't summed |
//! | 32 | | 60 | crc32c of the 60 bytes before, u32 |
//!
//! Which fields a kind has says [`Kind`]; the others are zero, so that there is one way to write a frame. A header is
//! checked whole before anything is allocated for its payload.

use std::fmt;

/// The bytes of a header.
pub const HEADER_BYTES: usize = 64;

/// The first bytes of each frame.
pub const MAGIC: [u8; 4] = *b"TFD1";

/// The version of the protocol.
pub const VERSION: u16 = 1;

/// The most bytes of a value in one frame.
pub const CHUNK_BYTES: usize = 1 << 20;

/// The most bytes of a request or reply, whatever the limits say.
pub const MAX_MESSAGE_BYTES: u32 = 64 << 20;

const CONTEXT: u8 = 1;
const STREAM: u8 = 2;
const SEQUENCE: u8 = 4;
const OFFSET: u8 = 8;
const FOLLOWING: u8 = 16;

/// The kinds of frames.
///
/// Those with "acknowledges" have in `sequence` their own number among these, and in `offset` the number up to which
/// the sender has received the other side's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Kind {
    /// A value is to come on `stream`; the payload is an [`Open`](crate::message::Open). Acknowledges.
    Open = 1,
    /// Bytes of a value from `offset` on, as frame `sequence` of `stream`.
    Data = 2,
    /// The other side may send bytes of values up to `offset`, counted from the connection's begin.
    Credit = 3,
    /// The receiver has the whole value of `stream`. Acknowledges.
    Done = 4,
    /// One side gives up `stream`; the payload is a [`Failure`](crate::message::Failure). Acknowledges.
    Abort = 5,
    /// A sign of life, number `sequence`; `offset` as of those that acknowledge.
    Ping = 6,
    /// The answer to the ping of this number; `offset` as of those that acknowledge.
    Pong = 7,
    /// The end of the connection; the payload is a [`Failure`](crate::message::Failure) that says why.
    Bye = 8,
    /// The first frame of who dials; the payload is a [`Hello`](crate::message::Hello).
    Hello = 9,
    /// The answer to it; the payload is a [`Welcome`](crate::message::Welcome).
    Welcome = 10,
    /// The last frame of a handshake, from both; the payload is a [`Ready`](crate::message::Ready).
    Ready = 11,
    /// A request with the id `stream`; the payload is the caller's. Acknowledges.
    Request = 12,
    /// The reply to request `stream`; the payload is the caller's. Acknowledges.
    Reply = 13,
    /// The reply to request `stream` that failed; the payload is a [`Failure`](crate::message::Failure). Acknowledges.
    Failure = 14,
    /// Requests that are no longer wanted; the payload is a list of their ids. Acknowledges.
    Cancel = 15,
    /// Nothing but an acknowledgement, in `offset`.
    Ack = 16,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 16] = [
        Kind::Open,
        Kind::Data,
        Kind::Credit,
        Kind::Done,
        Kind::Abort,
        Kind::Ping,
        Kind::Pong,
        Kind::Bye,
        Kind::Hello,
        Kind::Welcome,
        Kind::Ready,
        Kind::Request,
        Kind::Reply,
        Kind::Failure,
        Kind::Cancel,
        Kind::Ack,
    ];

    fn of(number: u16) -> Option<Kind> {
        let index = usize::from(number).checked_sub(1)?;
        Kind::ALL.get(index).copied()
    }

    /// Returns whether frames of this kind are numbered, acknowledged, and sent again after a cut.
    pub fn is_sequenced(self) -> bool {
        use Kind::{Abort, Cancel, Done, Failure, Open, Reply, Request};
        matches!(
            self,
            Open | Done | Abort | Request | Reply | Failure | Cancel
        )
    }

    /// Returns whether frames of this kind belong to a handshake, or end a connection at any time.
    pub fn is_of_handshake(self) -> bool {
        matches!(self, Kind::Hello | Kind::Welcome | Kind::Ready | Kind::Bye)
    }

    /// Returns which fields of the header the kind has.
    fn fields(self) -> u8 {
        match self {
            Kind::Open | Kind::Request => CONTEXT | STREAM | SEQUENCE | OFFSET,
            Kind::Done | Kind::Abort | Kind::Reply | Kind::Failure => STREAM | SEQUENCE | OFFSET,
            Kind::Data => STREAM | SEQUENCE | OFFSET | FOLLOWING,
            Kind::Credit | Kind::Ack => OFFSET,
            Kind::Cancel | Kind::Ping | Kind::Pong => SEQUENCE | OFFSET,
            Kind::Bye | Kind::Hello | Kind::Welcome | Kind::Ready => 0,
        }
    }

    /// Returns the least and the most bytes of a payload.
    fn payload_bytes(self, limits: FrameLimits) -> (u32, u32) {
        match self {
            Kind::Data => (1, CHUNK_BYTES as u32),
            Kind::Open => (1, 4 << 10),
            Kind::Abort | Kind::Failure | Kind::Bye => (1, 4 << 10),
            Kind::Hello | Kind::Welcome => (1, 1 << 10),
            Kind::Ready => (1, 20 << 10),
            Kind::Cancel => (8, 8 << 10),
            Kind::Request | Kind::Reply => (0, limits.max_message_bytes.min(MAX_MESSAGE_BYTES)),
            Kind::Credit | Kind::Done | Kind::Ping | Kind::Pong | Kind::Ack => (0, 0),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// The lengths that a receiver takes.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    /// The most bytes of a request or reply; at most [`MAX_MESSAGE_BYTES`] counts.
    pub max_message_bytes: u32,
}

impl Default for FrameLimits {
    fn default() -> FrameLimits {
        FrameLimits {
            max_message_bytes: 4 << 20,
        }
    }
}

/// The front of a frame.
///
/// # Examples
///
/// ```
/// use tfrt_wire::frame::{FrameLimits, Header, Kind};
///
/// let ping = Header { sequence: 7, ..Header::new(Kind::Ping) };
/// let mut bytes = ping.encode();
/// assert_eq!(Header::decode(&bytes, FrameLimits::default()), Ok(ping));
/// bytes[48] = 1;
/// let error = Header::decode(&bytes, FrameLimits::default()).unwrap_err();
/// assert!(error.to_string().starts_with("expected a header with the crc32c"), "{error}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind.
    pub kind: Kind,
    /// The context of a request or value, which the caller gives it.
    pub context: u64,
    /// The low half of the sender's incarnation.
    pub incarnation: u64,
    /// The id of a value's stream or of a request.
    pub stream: u64,
    /// The number of the frame; see [`Kind`].
    pub sequence: u64,
    /// A place in a value, or a number up to which something holds; see [`Kind`].
    pub offset: u64,
    /// The length of the payload.
    pub payload_len_bytes: u32,
    /// The number of frames of this value that follow.
    pub n_following: u32,
    /// The crc32c of the payload; 0 where payloads aren't summed.
    pub payload_crc: u32,
}

impl Header {
    /// Returns a header without a payload, all of whose fields are zero.
    pub fn new(kind: Kind) -> Header {
        Header {
            kind,
            context: 0,
            incarnation: 0,
            stream: 0,
            sequence: 0,
            offset: 0,
            payload_len_bytes: 0,
            n_following: 0,
            payload_crc: 0,
        }
    }

    /// Returns the bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(4, &VERSION.to_le_bytes());
        put(6, &(self.kind as u16).to_le_bytes());
        put(8, &self.context.to_le_bytes());
        put(16, &self.incarnation.to_le_bytes());
        put(24, &self.stream.to_le_bytes());
        put(32, &self.sequence.to_le_bytes());
        put(40, &self.offset.to_le_bytes());
        put(48, &self.payload_len_bytes.to_le_bytes());
        put(52, &self.n_following.to_le_bytes());
        put(56, &self.payload_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it: magic, version, checksum, kind, a field that the kind does not have, a
    /// length out of the kind's bounds.
    pub fn decode(bytes: &[u8; HEADER_BYTES], limits: FrameLimits) -> Result<Header, FrameError> {
        let u16_at = |at| u16::from_le_bytes(field(bytes, at));
        let u32_at = |at| u32::from_le_bytes(field(bytes, at));
        let u64_at = |at| u64::from_le_bytes(field(bytes, at));
        let magic = field(bytes, 0);
        if magic != MAGIC {
            return Err(FrameError::Magic(magic));
        }
        if u16_at(4) != VERSION {
            return Err(FrameError::Version(u16_at(4)));
        }
        let (expected, found) = (u32_at(60), crc32c::crc32c(&bytes[..60]));
        if expected != found {
            return Err(FrameError::HeaderChecksum { expected, found });
        }
        let header = Header {
            kind: Kind::of(u16_at(6)).ok_or(FrameError::Kind(u16_at(6)))?,
            context: u64_at(8),
            incarnation: u64_at(16),
            stream: u64_at(24),
            sequence: u64_at(32),
            offset: u64_at(40),
            payload_len_bytes: u32_at(48),
            n_following: u32_at(52),
            payload_crc: u32_at(56),
        };
        header.check(limits)?;
        Ok(header)
    }

    fn check(&self, limits: FrameLimits) -> Result<(), FrameError> {
        let kind = self.kind;
        let fields = [
            (CONTEXT, "context", self.context),
            (STREAM, "stream", self.stream),
            (SEQUENCE, "sequence", self.sequence),
            (OFFSET, "offset", self.offset),
            (FOLLOWING, "frames to come", u64::from(self.n_following)),
        ];
        for (bit, field, found) in fields {
            if kind.fields() & bit == 0 && found != 0 {
                return Err(FrameError::Field { kind, field, found });
            }
        }
        let (least, most) = kind.payload_bytes(limits);
        let found = self.payload_len_bytes;
        if !(least..=most).contains(&found) {
            return Err(FrameError::Length {
                kind,
                least,
                most,
                found,
            });
        }
        if found == 0 && self.payload_crc != 0 {
            let (field, found) = ("checksum of the payload", self.payload_crc.into());
            return Err(FrameError::Field { kind, field, found });
        }
        Ok(())
    }
}

fn field<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// A mistake in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The first bytes are others.
    Magic([u8; 4]),
    /// The frame is of another version of the protocol.
    Version(u16),
    /// The header is not as it was sent.
    HeaderChecksum {
        /// The checksum in the header.
        expected: u32,
        /// The checksum of the bytes that came.
        found: u32,
    },
    /// There is no such kind.
    Kind(u16),
    /// A field is set that the kind does not have.
    Field {
        /// The kind.
        kind: Kind,
        /// The field.
        field: &'static str,
        /// The value in it.
        found: u64,
    },
    /// The payload is too long or too short.
    Length {
        /// The kind.
        kind: Kind,
        /// The fewest bytes that it may have.
        least: u32,
        /// The most bytes that it may have.
        most: u32,
        /// The length in the header.
        found: u32,
    },
    /// The payload is not as it was sent.
    PayloadChecksum {
        /// The kind.
        kind: Kind,
        /// The checksum in the header.
        expected: u32,
        /// The checksum of the bytes that came.
        found: u32,
    },
    /// The payload is not what the kind has.
    Payload {
        /// The kind.
        kind: Kind,
        /// The part of the payload, and what is wrong with it.
        wrong: String,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Magic(found) => write!(
                f,
                "expected a frame that begins with 'TFD1', found '{}'",
                found.escape_ascii()
            ),
            FrameError::Version(found) => {
                write!(
                    f,
                    "expected version {VERSION} of the protocol, found {found}"
                )
            }
            FrameError::HeaderChecksum { expected, found } => write!(
                f,
                "expected a header with the crc32c {expected:#010x}, found {found:#010x}"
            ),
            FrameError::Kind(found) => {
                write!(f, "expected a kind of frame from 1 to 16, found {found}")
            }
            FrameError::Field { kind, field, found } => {
                write!(
                    f,
                    "expected no {field} in a frame '{kind}', found {found:#x}"
                )
            }
            FrameError::Length {
                kind,
                least,
                most,
                found,
            } => write!(
                f,
                "expected {least} to {most} bytes in a frame '{kind}', found {found}"
            ),
            FrameError::PayloadChecksum {
                kind,
                expected,
                found,
            } => write!(
                f,
                "expected a payload of '{kind}' with the crc32c {expected:#010x}, found {found:#010x}"
            ),
            FrameError::Payload { kind, wrong } => write!(f, "in a frame '{kind}': {wrong}"),
        }
    }
}

impl std::error::Error for FrameError {}
