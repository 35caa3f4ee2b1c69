//! Tests of the crate's border.

mod endpoint;
mod frame;
mod message;
mod simulation;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(all(feature = "tls", target_os = "linux"))]
mod tls;
