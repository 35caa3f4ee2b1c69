//! A model server: KServe's protocol, version 2, with Triton's extensions, and TensorFlow Serving's, over HTTP and gRPC.
//!
//! A model implements [`Servable`], and a [`Loader`] opens files as such. The crate knows neither formats of models nor
//! kernels: the front crate brings both together, in the command `tfrt serve` and in `tfrt::serve`.
//!
//! The life of a request: a connection (`server`) reads its head, `router` finds the endpoint, [`Limits`] admit it,
//! its body becomes tensors (`v2`, `v1`, `grpc`), `inference` calls the model within one
//! [`RequestContext`](tfrt_host::RequestContext), and the results are written from the tensors' own memory. Whatever ends
//! the request, a deadline or a client that is gone, cancels that context.

#![forbid(unsafe_code)]

mod admission;
mod batch;
mod datatype;
mod grpc;
mod http;
mod inference;
mod limits;
mod metrics;
mod model;
pub mod outside;
mod pace;
mod refusal;
mod repository;
mod security;
mod servable;
mod server;
mod statistics;
mod traces;
mod v1;
mod v2;

pub use batch::Batching;
pub use limits::Limits;
pub use repository::{Check, Repository, Source, VersionPolicy};
#[cfg(feature = "tls")]
pub use security::TlsFiles;
pub use servable::{Description, Dim, Loader, Place, Servable, TensorInfo};
pub use server::{Ended, Server, ServerBuilder, Stopper};
