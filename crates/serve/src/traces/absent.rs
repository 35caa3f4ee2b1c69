//! [`Trace`] without the cargo feature `otel`: nothing is recorded.

use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use tonic::Code;

use super::Step;
use crate::model::Loaded;
use crate::server::Shared;

/// The spans of a request, of which there are none.
pub(crate) struct Trace;

impl Trace {
    pub fn none() -> Trace {
        Trace
    }

    pub fn of_http(_: &Shared, _: &Parts, _: &'static str) -> Trace {
        Trace
    }

    pub fn of_grpc(_: &Shared, _: &HeaderMap, _: &str, _: bool) -> Trace {
        Trace
    }

    #[allow(clippy::unused_self, reason = "what is recorded has another one")]
    pub fn next(&self) -> Trace {
        Trace
    }

    #[allow(clippy::unused_self, reason = "what is recorded has another one")]
    pub fn calls(&self, _: &Loaded) {}

    #[allow(clippy::unused_self, reason = "what is recorded has another one")]
    pub fn step(&self, _: Step) {}

    #[allow(clippy::unused_self, reason = "what is recorded has another one")]
    pub fn batch(&self, _: Step, _: usize, _: Step) {}

    #[allow(clippy::unused_self, reason = "what is recorded has another one")]
    pub fn end_http(&self, _: StatusCode) {}

    #[allow(clippy::unused_self, reason = "what is recorded has another one")]
    pub fn end_grpc(&self, _: Code) {}
}
