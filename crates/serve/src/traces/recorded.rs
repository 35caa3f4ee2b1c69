//! [`Trace`]: the spans of one request, made when it ends.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode, Version};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tonic::Code;

use super::{Exporter, Step};
use crate::model::Loaded;
use crate::server::Shared;

/// The spans of a request; empty for one that is not recorded. When it is dropped before its end, the request was given up.
pub(crate) struct Trace(Option<Box<Recorded>>);

struct Recorded {
    exporter: Arc<Exporter>,
    /// The span that the client names, or one that is none.
    parent: SpanContext,
    own: SpanContext,
    name: Cow<'static, str>,
    began: Instant,
    began_at: SystemTime,
    rest: Mutex<Rest>,
}

/// The part of a trace that grows.
#[derive(Default)]
struct Rest {
    attributes: Vec<KeyValue>,
    /// Finished spans within that of the request.
    steps: Vec<SpanData>,
    has_ended: bool,
}

impl Trace {
    /// Returns the trace of a request that is not recorded.
    pub fn none() -> Trace {
        Trace(None)
    }

    /// Begins the span of a request over HTTP, to a path of this template.
    pub fn of_http(shared: &Shared, head: &Parts, template: &'static str) -> Trace {
        let Some(exporter) = &shared.traces else {
            return Trace(None);
        };
        let version = match head.version {
            Version::HTTP_2 => "2",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        };
        #[cfg(feature = "tls")]
        let is_encrypted = shared.security.tls().is_some();
        #[cfg(not(feature = "tls"))]
        let is_encrypted = false;
        let attributes = || {
            vec![
                KeyValue::new("http.request.method", head.method.to_string()),
                KeyValue::new("http.route", template),
                KeyValue::new("url.path", head.uri.path().to_owned()),
                KeyValue::new("url.scheme", if is_encrypted { "https" } else { "http" }),
                KeyValue::new("network.protocol.version", version),
            ]
        };
        let name = format!("{} {template}", head.method);
        Trace::begin(
            exporter,
            exporter.parent(&head.headers),
            name.into(),
            attributes,
        )
    }

    /// Begins the span of a call of gRPC, of a path with service and method. That of a stream is none itself, but begins those
    /// of its messages.
    pub fn of_grpc(shared: &Shared, headers: &HeaderMap, path: &str, is_stream: bool) -> Trace {
        let Some(exporter) = &shared.traces else {
            return Trace(None);
        };
        let name = path.strip_prefix('/').unwrap_or(path).to_owned();
        let method = name.clone();
        let attributes = move || {
            vec![
                KeyValue::new("rpc.system.name", "grpc"),
                KeyValue::new("rpc.method", method),
            ]
        };
        let trace = Trace::begin(exporter, exporter.parent(headers), name.into(), attributes);
        if let Some(stream) = trace.0.as_ref().filter(|_| is_stream) {
            stream.change(|rest| rest.has_ended = true);
        }
        trace
    }

    fn begin(
        exporter: &Arc<Exporter>,
        parent: SpanContext,
        name: Cow<'static, str>,
        attributes: impl FnOnce() -> Vec<KeyValue>,
    ) -> Trace {
        let Some(own) = exporter.sampled(&parent, &name) else {
            return Trace(None);
        };
        Trace(Some(Box::new(Recorded {
            exporter: exporter.clone(),
            parent,
            own,
            name,
            began: Instant::now(),
            began_at: SystemTime::now(),
            rest: Mutex::new(Rest {
                attributes: attributes(),
                ..Rest::default()
            }),
        })))
    }

    /// Begins the span of the next message of a stream.
    pub fn next(&self) -> Trace {
        let Some(stream) = &self.0 else {
            return Trace(None);
        };
        let attributes = stream.change(|rest| rest.attributes.clone());
        let (exporter, parent) = (&stream.exporter, stream.parent.clone());
        Trace::begin(exporter, parent, stream.name.clone(), || attributes)
    }

    /// Notes which model is called.
    pub fn calls(&self, model: &Loaded) {
        if let Some(recorded) = &self.0 {
            let version = i64::try_from(model.version).unwrap_or(i64::MAX);
            recorded.change(|rest| {
                let name = model.name.to_string();
                rest.attributes.push(KeyValue::new("tfrt.model.name", name));
                let version = KeyValue::new("tfrt.model.version", version);
                rest.attributes.push(version);
            });
        }
    }

    /// Adds a span of a step.
    pub fn step(&self, step: Step) {
        if let Some(recorded) = &self.0 {
            let span = recorded.within(recorded.own.span_id(), step, Vec::new());
            recorded.change(|rest| rest.steps.push(span));
        }
    }

    /// Adds a span of a batch of so many rows, and within it one of the model's call.
    pub fn batch(&self, step: Step, n_rows: usize, run: Step) {
        if let Some(recorded) = &self.0 {
            let n_rows = i64::try_from(n_rows).unwrap_or(i64::MAX);
            let attributes = vec![KeyValue::new("tfrt.batch.rows", n_rows)];
            let span = recorded.within(recorded.own.span_id(), step, attributes);
            let run = recorded.within(span.span_context.span_id(), run, Vec::new());
            recorded.change(|rest| rest.steps.extend([span, run]));
        }
    }

    /// Ends the span by the status of an answer over HTTP.
    pub fn end_http(&self, status: StatusCode) {
        // The number for a client that has gone, which may as well be seen by the connection.
        if status.as_u16() == 499 {
            return self.give_up();
        }
        let code = i64::from(status.as_u16());
        let error = status
            .is_server_error()
            .then(|| status.as_u16().to_string());
        self.end(KeyValue::new("http.response.status_code", code), error);
    }

    /// Ends the span by the status of a call of gRPC.
    pub fn end_grpc(&self, code: Code) {
        let name = name_of(code);
        // As the conventions have it for servers: others are mistakes of clients.
        let is_error = matches!(
            code,
            Code::Unknown
                | Code::DeadlineExceeded
                | Code::Unimplemented
                | Code::Internal
                | Code::Unavailable
                | Code::DataLoss
        );
        let error = is_error.then(|| name.to_owned());
        self.end(KeyValue::new("rpc.response.status_code", name), error);
    }

    /// Ends the span of a request whose client has gone, or which the server closes.
    fn give_up(&self) {
        let status = KeyValue::new("tfrt.cancelled", true);
        self.end(status, Some("cancelled".to_owned()));
    }

    fn end(&self, status: KeyValue, error: Option<String>) {
        let Some(recorded) = &self.0 else {
            return;
        };
        let ended = Rest {
            has_ended: true,
            ..Rest::default()
        };
        let taken = |rest: &mut Rest| {
            let is_first = !rest.has_ended;
            is_first.then(|| std::mem::replace(rest, ended))
        };
        let Some(mut rest) = recorded.change(taken) else {
            return;
        };
        rest.attributes.push(status);
        let status = match error {
            None => Status::Unset,
            Some(error) => {
                rest.attributes.push(KeyValue::new("error.type", error));
                Status::error("")
            }
        };
        let whole = SpanData {
            parent_span_id: recorded.parent.span_id(),
            parent_span_is_remote: recorded.parent.is_valid(),
            span_kind: SpanKind::Server,
            status,
            ..recorded.span(
                recorded.own.clone(),
                recorded.name.clone(),
                [recorded.began, Instant::now()],
                rest.attributes,
            )
        };
        let mut spans = rest.steps;
        spans.insert(0, whole);
        recorded.exporter.send(spans);
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Recorded {
    fn change<R>(&self, change: impl FnOnce(&mut Rest) -> R) -> R {
        change(&mut self.rest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the span of a step within another span.
    fn within(&self, parent: SpanId, step: Step, attributes: Vec<KeyValue>) -> SpanData {
        let context = SpanContext::new(
            self.own.trace_id(),
            self.exporter.new_span_id(),
            TraceFlags::SAMPLED,
            false,
            self.own.trace_state().clone(),
        );
        SpanData {
            parent_span_id: parent,
            ..self.span(
                context,
                step.name.into(),
                [step.began, step.ended],
                attributes,
            )
        }
    }

    fn span(
        &self,
        span_context: SpanContext,
        name: Cow<'static, str>,
        times: [Instant; 2],
        attributes: Vec<KeyValue>,
    ) -> SpanData {
        let [start_time, end_time] = times.map(|time| {
            let since = time.saturating_duration_since(self.began);
            let before = self.began.saturating_duration_since(time);
            let at = self.began_at.checked_add(since).unwrap_or(self.began_at);
            at.checked_sub(before).unwrap_or(at)
        });
        SpanData {
            span_context,
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name,
            start_time,
            end_time,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder("tfrt-serve")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        }
    }
}

/// Returns the name of a status of gRPC, as its specification writes it.
fn name_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
