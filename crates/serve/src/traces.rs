//! Spans of requests to models, as OpenTelemetry has them: [`Trace`] holds those of one request, which an exporter sends to a
//! collector. Without the cargo feature `otel` there are none, and `Trace` is nothing.

#[cfg(not(feature = "otel"))]
mod absent;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod recorded;

#[cfg(not(feature = "otel"))]
pub(crate) use absent::Trace;
#[cfg(feature = "otel")]
pub(crate) use export::{Collector, Exporter, Warn};
#[cfg(feature = "otel")]
pub(crate) use recorded::Trace;

use std::time::Instant;

/// One step of a call, which becomes a span within that of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The name of the span.
    pub name: &'static str,
    pub began: Instant,
    pub ended: Instant,
}

impl Step {
    /// The time in which a request waits for a batch.
    pub const QUEUE: &str = "queue";

    /// The call of a batch, with joining inputs and splitting outputs.
    pub const BATCH: &str = "batch";

    /// The call of the model itself.
    pub const RUN: &str = "run";
}
