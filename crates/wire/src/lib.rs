//! Messages and values between processes: what lies below a transport of the distributed runtime, and below servers.
//!
//! | To know | See |
//! | --- | --- |
//! | how a message is laid out in bytes | [`frame`], [`message`] |
//! | what a task does with its peers: requests, values, signs of life, what is left after a cut | [`endpoint`] |
//! | what happens there | [`event`] |
//! | what a peer may take | [`limits`] |
//! | how two tasks prove that they know the same secret | [`proof`] |
//! | how they prove their names by certificates, and encrypt (feature `tls`) | `tls` |
//! | how all of this goes over Unix and TCP sockets | [`socket`] |
//! | how bytes are handed over without a copy | [`payload`] |
//!
//! Nothing but sockets does input or output or reads a clock: bytes, times and random numbers are handed in.

#![forbid(unsafe_code)]

pub mod endpoint;
pub mod event;
pub mod frame;
pub mod limits;
mod link;
pub mod message;
pub mod payload;
pub mod proof;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(feature = "tls")]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "sockets alone begin connections")
)]
pub mod tls;

/// Returns the checksum of a payload, as [`Header::payload_crc`](frame::Header::payload_crc) has it.
pub fn checksum(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}
