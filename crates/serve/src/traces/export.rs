//! [`Exporter`]: sends spans to a collector by OTLP, on a thread of its own. Requests hand their spans over and go on: when
//! the collector is slow or gone, the queue is full, and spans are dropped and counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::{HeaderMap, Uri};
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{Protocol, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Config, SamplingDecision, SpanData, SpanExporter};
use tfrt_host::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::server::first;

/// Requests whose spans wait to be sent at most; of each there are four spans at most.
const MAX_WAITING: usize = 2048;

/// The spans of a message to the collector, about.
const BATCH_SPANS: usize = 512;

/// How long spans wait for others.
const DELAY: Duration = Duration::from_secs(5);

/// How long the end of the server waits for the last spans.
const LAST: Duration = Duration::from_secs(2);

/// A collector of spans, as it was configured.
pub(crate) struct Collector {
    endpoint: String,
    exporter: opentelemetry_otlp::SpanExporter,
}

/// Function that hears of what goes wrong beside requests.
pub(crate) type Warn = Arc<dyn Fn(&str) + Send + Sync>;

impl Collector {
    /// Configures the collector at an address, or, without one, that of the environment; `None` if it names none. An environment
    /// that can't be followed is a warning: it may be meant for other programs.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an address that is none or wants encryption.
    pub fn new(
        endpoint: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Collector>, Error> {
        if let Some(endpoint) = endpoint {
            return Collector::at("the collector", in_full(endpoint)).map(Some);
        }
        let found = from_environment().and_then(|found| {
            found
                .map(|(name, endpoint)| Collector::at(&name, endpoint))
                .transpose()
        });
        Ok(found.unwrap_or_else(|error| {
            warnings.push(format!("no spans are sent: {}", error.message()));
            None
        }))
    }

    fn at(name: &str, endpoint: String) -> Result<Collector, Error> {
        let wrong = |reason: &str| {
            let endpoint = endpoint.escape_debug();
            Error::invalid_argument(format!("{name} '{endpoint}': {reason}"))
        };
        let uri: Uri = endpoint
            .parse()
            .map_err(|_| wrong("expected an address such as http://127.0.0.1:4318"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong(
                    "spans are sent as they are, without encryption: expected http://, such as that of a collector beside the server",
                ));
            }
            _ => return Err(wrong("expected an address such as http://127.0.0.1:4318")),
        }
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&endpoint)
            .build()
            .map_err(|error| wrong(&error.to_string()))?;
        Ok(Collector { endpoint, exporter })
    }

    /// Starts to export, under the name of the server unless the environment has one.
    ///
    /// # Errors
    ///
    /// Those of the system: there are no threads or file descriptors left.
    pub fn start(mut self, server: &str, warn: Warn) -> io::Result<Arc<Exporter>> {
        let is_named = Resource::builder().build().iter().any(|(key, value)| {
            key.as_str() == "service.name" && !value.as_str().starts_with("unknown_service")
        });
        let resource = match is_named {
            true => Resource::builder().build(),
            false => Resource::builder()
                .with_service_name(server.to_owned())
                .build(),
        };
        self.exporter.set_resource(&resource);
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let (ends, ending) = watch::channel(false);
        let (done_sender, done) = std::sync::mpsc::channel();
        let exporter = Arc::new(Exporter {
            sender,
            counts: Arc::default(),
            config: Config::default(),
            propagator: TraceContextPropagator::new(),
            ends,
            done: Mutex::new(done),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let work = Work {
            receiver,
            endpoint: self.endpoint,
            exporter: self.exporter,
            counts: exporter.counts.clone(),
            ends: ending,
            warn,
            is_failing: false,
        };
        let run = move || {
            runtime.block_on(work.run());
            runtime.shutdown_background();
            let _ = done_sender.send(());
        };
        let name = "tfrt-serve-spans".to_owned();
        std::thread::Builder::new().name(name).spawn(run)?;
        Ok(exporter)
    }
}

/// Returns the address to which spans are sent, of one that may be that of the collector alone.
fn in_full(endpoint: &str) -> String {
    let path = "/v1/traces";
    let endpoint = endpoint.strip_suffix('/').unwrap_or(endpoint);
    match endpoint.ends_with(path) {
        true => endpoint.to_owned(),
        false => format!("{endpoint}{path}"),
    }
}

/// Returns the variable of the environment that names a collector, and the address of it in full, if one does.
fn from_environment() -> Result<Option<(String, String)>, Error> {
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_off = read("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || read("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    if is_off {
        return Ok(None);
    }
    let (traces, all) = ("OTEL_EXPORTER_OTLP_TRACES", "OTEL_EXPORTER_OTLP");
    let own = format!("{traces}_ENDPOINT");
    let general = format!("{all}_ENDPOINT");
    let found = match (read(&own), read(&general)) {
        (Some(endpoint), _) => (own, endpoint),
        (None, Some(endpoint)) => (general, in_full(&endpoint)),
        (None, None) => return Ok(None),
    };
    for name in [format!("{traces}_PROTOCOL"), format!("{all}_PROTOCOL")] {
        match read(&name) {
            None => {}
            Some(protocol) if protocol == "http/protobuf" => break,
            Some(protocol) => {
                let protocol = protocol.escape_debug();
                return Err(Error::invalid_argument(format!(
                    "{name}: spans are exported by http/protobuf alone, found '{protocol}'"
                )));
            }
        }
    }
    Ok(Some(found))
}

/// Takes spans, and sends them on.
pub(crate) struct Exporter {
    sender: mpsc::Sender<Vec<SpanData>>,
    counts: Arc<Counts>,
    /// The sampler and the generator of numbers, as the environment has them.
    config: Config,
    propagator: TraceContextPropagator,
    /// Whether the server ends.
    ends: watch::Sender<bool>,
    done: Mutex<std::sync::mpsc::Receiver<()>>,
}

/// The spans that ended, counted.
#[derive(Default)]
struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Exporter {
    /// Returns the span that the head of a request names as its own parent; one that is none if there is none.
    pub fn parent(&self, headers: &HeaderMap) -> SpanContext {
        let empty = Context::new();
        let extracted = self
            .propagator
            .extract_with_context(&empty, &HeaderExtractor(headers));
        extracted.span().span_context().clone()
    }

    /// Returns a new span below a parent, or in a trace of its own, if it is to be recorded.
    pub fn sampled(&self, parent: &SpanContext, name: &str) -> Option<SpanContext> {
        let has_parent = parent.is_valid();
        let trace_id: TraceId = match has_parent {
            true => parent.trace_id(),
            false => self.config.id_generator.new_trace_id(),
        };
        let context = has_parent.then(|| Context::new().with_remote_span_context(parent.clone()));
        let sampler = &self.config.sampler;
        let sampled = sampler.should_sample(
            context.as_ref(),
            trace_id,
            name,
            &SpanKind::Server,
            &[],
            &[],
        );
        (sampled.decision == SamplingDecision::RecordAndSample).then(|| {
            let flags = TraceFlags::SAMPLED;
            SpanContext::new(
                trace_id,
                self.new_span_id(),
                flags,
                false,
                sampled.trace_state,
            )
        })
    }

    pub fn new_span_id(&self) -> SpanId {
        self.config.id_generator.new_span_id()
    }

    /// Takes the spans of a request, unless too many wait.
    pub fn send(&self, spans: Vec<SpanData>) {
        let n_spans = spans.len() as u64;
        if self.sender.try_send(spans).is_err() {
            // Ordering: statistics.
            self.counts.dropped.fetch_add(n_spans, Ordering::Relaxed);
        }
    }

    /// Returns the numbers of spans that a collector has taken, and of those that were dropped.
    pub fn counts(&self) -> (u64, u64) {
        let counts = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&counts.exported), read(&counts.dropped))
    }

    /// Sends what is left, for a short time at most.
    pub fn finish(&self) {
        self.ends.send_replace(true);
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = done.recv_timeout(LAST);
    }
}

/// The work of the thread that exports.
struct Work {
    receiver: mpsc::Receiver<Vec<SpanData>>,
    endpoint: String,
    exporter: opentelemetry_otlp::SpanExporter,
    counts: Arc<Counts>,
    ends: watch::Receiver<bool>,
    warn: Warn,
    /// Whether the collector did not take the last spans, which was said then.
    is_failing: bool,
}

impl Work {
    async fn run(mut self) {
        while let Some(Some(mut spans)) = first(end(&self.ends), self.receiver.recv()).await {
            let enough = async {
                let delay = sleep_until(Instant::now() + DELAY);
                first(delay, end(&self.ends)).await;
            };
            let more = async {
                while spans.len() < BATCH_SPANS {
                    match self.receiver.recv().await {
                        Some(more) => spans.extend(more),
                        None => return,
                    }
                }
            };
            first(enough, more).await;
            self.export(spans).await;
        }
        self.receiver.close();
        let mut spans = Vec::new();
        while let Some(more) = self.receiver.recv().await {
            spans.extend(more);
            if spans.len() >= BATCH_SPANS {
                self.export(std::mem::take(&mut spans)).await;
            }
        }
        self.export(spans).await;
    }

    async fn export(&mut self, spans: Vec<SpanData>) {
        if spans.is_empty() {
            return;
        }
        let (n_spans, endpoint) = (spans.len() as u64, &self.endpoint);
        let exported = self.exporter.export(spans).await;
        let count = match &exported {
            Ok(()) => &self.counts.exported,
            Err(_) => &self.counts.dropped,
        };
        count.fetch_add(n_spans, Ordering::Relaxed);
        match (exported, self.is_failing) {
            (Err(error), false) => (self.warn)(&format!(
                "spans can't be sent to {endpoint}, and are dropped until they can: {error}"
            )),
            (Ok(()), true) => (self.warn)(&format!("spans are sent to {endpoint} again")),
            (Ok(()), false) | (Err(_), true) => return,
        }
        self.is_failing = !self.is_failing;
    }
}

/// Waits for the end of the server.
async fn end(ends: &watch::Receiver<bool>) {
    // An error says that the server is gone.
    let _ = ends.clone().wait_for(|ends| *ends).await;
}
