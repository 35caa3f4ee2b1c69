//! The border of the server: bytes on sockets, as clients send and read them.

mod bad_requests;
mod batches;
mod endings;
mod faults;
mod generate;
mod grpc;
mod requests;
mod security;
mod support;
mod tensorflow;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod v1;
