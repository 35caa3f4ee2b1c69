//! Messages and values between processes: what lies below a transport of the distributed runtime, and below servers.
//!
//! | To know | See |
//! | --- | --- |
//! | how a message is laid out in bytes | [`frame`], [`message`] |
//!
//! Nothing but sockets does input or output or reads a clock: bytes and times are handed in.

#![forbid(unsafe_code)]

pub mod frame;
pub mod message;

/// Returns the checksum of a payload, as [`Header::payload_crc`](frame::Header::payload_crc) has it.
pub fn checksum(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}
