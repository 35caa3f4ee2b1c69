//! Spans of requests, as a collector gets them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use prost::Message;
use tfrt_serve::{Batching, Limits, Repository, Servable, Server, VersionPolicy};

use crate::grpc;
use crate::support::{Client, Control, PATIENCE, ROWS, Times, builder, post, repository};

/// The headers of a client that has a span of its own, with the numbers `TRACE` and `PARENT`, which is recorded.
const TRACEPARENT: &str =
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

#[derive(Clone, PartialEq, Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(string, tag = "3")]
    state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    began_ns: u64,
    #[prost(fixed64, tag = "8")]
    ended_ns: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(bool, optional, tag = "2")]
    truth: Option<bool>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}

/// Returns the value of an attribute, as text.
fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|own| own.key == key)?;
    let value = found.value.as_ref()?;
    let number = || value.number.map(|number| number.to_string());
    let truth = || value.truth.map(|truth| truth.to_string());
    value.text.clone().or_else(number).or_else(truth)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Span {
    fn of(&self, key: &str) -> String {
        attribute(&self.attributes, key).unwrap_or_default()
    }

    /// Returns 2 for an error, 0 for none.
    fn code(&self) -> i32 {
        self.status.as_ref().map_or(0, |status| status.code)
    }
}

/// A collector, which takes messages of spans and tells the test of them.
struct Collector {
    endpoint: String,
    taken: mpsc::Receiver<(String, Export)>,
}

impl Collector {
    fn new() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, taken) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let sender = sender.clone();
                std::thread::spawn(move || take(stream.unwrap(), &sender));
            }
        });
        Collector { endpoint, taken }
    }

    /// Ends a server, and returns all spans that it has sent, those of requests first.
    fn spans_of(&self, server: Server) -> Vec<Span> {
        assert!(server.stop(PATIENCE));
        let mut spans: Vec<Span> = Vec::new();
        for (path, export) in self.taken.try_iter() {
            assert_eq!(path, "/v1/traces");
            for own in export.resources {
                let name = attribute(&own.resource.unwrap().attributes, "service.name");
                assert_eq!(name.as_deref(), Some("tfrt"));
                spans.extend(own.scopes.into_iter().flat_map(|scope| scope.spans));
            }
        }
        spans.sort_by_key(|span| (span.kind != 2, span.began_ns));
        spans
    }
}

/// Reads messages of a connection, and answers each with nothing.
fn take(mut stream: TcpStream, sender: &mpsc::Sender<(String, Export)>) {
    let mut bytes = Vec::new();
    let mut more = [0; 65536];
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let whole = end.and_then(|end| {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            let path = head.split(' ').nth(1)?.to_owned();
            let body = bytes.get(end + 4..end + 4 + length)?;
            Some((end + 4 + length, path, Export::decode(body).unwrap()))
        });
        if let Some((length, path, export)) = whole {
            bytes.drain(..length);
            let _ = sender.send((path, export));
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
            continue;
        }
        match stream.read(&mut more) {
            Ok(n_bytes @ 1..) => bytes.extend_from_slice(&more[..n_bytes]),
            _ => return,
        }
    }
}

fn models(model: Arc<dyn Servable>) -> Repository {
    let repository = repository(Vec::new(), VersionPolicy::default());
    repository.add("m", model).unwrap();
    repository
}

fn traced(repository: Repository, endpoint: &str) -> Server {
    warning(repository, endpoint, |_| ())
}

fn warning(
    repository: Repository,
    endpoint: &str,
    warn: impl Fn(&str) + Send + Sync + 'static,
) -> Server {
    let builder = builder(repository).limits(Limits {
        deadline: Duration::from_secs(600),
        ..Limits::default()
    });
    let builder = builder.traces(Some(endpoint)).unwrap();
    let builder = builder.on_warning(warn);
    builder.listen("127.0.0.1:0").unwrap().start().unwrap()
}

fn double(endpoint: &str) -> Server {
    traced(models(Arc::new(Times::new(2.0))), endpoint)
}

#[test]
fn request_over_http_is_a_span_below_that_of_its_client() {
    let collector = Collector::new();
    let server = double(&collector.endpoint);
    let mut client = Client::new(&server);
    let request = post("/v2/models/m/versions/1/infer", TRACEPARENT, ROWS);
    assert_eq!(client.send(request).answer().status, 200);
    // What does not call a model is none.
    assert_eq!(client.get("/v2/models/m").status, 200);
    let body = r#"{"instances": [[1, 2]]}"#;
    assert_eq!(client.post("/v1/models/m:predict", body).status, 200);
    let request = post("/v2/models/m/generate", TRACEPARENT, r#"{"x": 1}"#);
    assert_eq!(client.send(request).answer().status, 400);
    drop(client);
    let spans = collector.spans_of(server);
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    let expected = [
        "POST /v2/models/{model}/versions/{version}/infer",
        "POST /v1/models/{model}:predict",
        "POST /v2/models/{model}/generate",
        "run",
        "run",
    ];
    assert_eq!(names, expected);
    let [infer, predict, generate, run, other] = &spans[..] else {
        unreachable!("there are five")
    };
    assert_eq!((&*hex(&infer.trace), &*hex(&infer.parent)), (TRACE, PARENT));
    assert_eq!(infer.state, "a=b");
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v2/models/{model}/versions/{version}/infer"),
        ("url.path", "/v2/models/m/versions/1/infer"),
        ("url.scheme", "http"),
        ("network.protocol.version", "1.1"),
        ("http.response.status_code", "200"),
        ("tfrt.model.name", "m"),
        ("tfrt.model.version", "1"),
    ] {
        assert_eq!(infer.of(key), value, "{key}");
    }
    assert_eq!(
        (&run.trace, &run.parent, run.kind),
        (&infer.trace, &infer.id, 1)
    );
    assert!(infer.began_ns <= run.began_ns && run.began_ns <= run.ended_ns);
    assert!(run.ended_ns <= infer.ended_ns);
    // One without a client's span begins a trace of its own.
    assert!(predict.parent.is_empty() && hex(&predict.trace) != TRACE);
    assert_eq!((&other.trace, &other.parent), (&predict.trace, &predict.id));
    // A mistake of a client is no error of the server.
    assert_eq!(generate.of("http.response.status_code"), "400");
    // What was asked of a model is told with it, whatever was wrong.
    assert_eq!(generate.of("tfrt.model.name"), "m");
    assert_eq!(
        (generate.code(), generate.of("error.type")),
        (0, String::new())
    );
}

#[test]
fn call_of_grpc_is_a_span_below_that_of_its_client() {
    let collector = Collector::new();
    let server = double(&collector.endpoint);
    let mut client = grpc::Client::new(&server);
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    client.headers.push(("traceparent", traceparent));
    let row = grpc::framed(&grpc::rows("m"));
    let service = "inference.GRPCInferenceService";
    let method = format!("{service}/ModelInfer");
    assert_eq!(client.call(&method, row.clone(), None).code, 0);
    let unknown = grpc::framed(&grpc::rows("none"));
    assert_eq!(client.call(&method, unknown, None).code, 5);
    let two = [&row[..], &row[..]].concat();
    let stream = format!("{service}/ModelStreamInfer");
    let two = bytes::BytesMut::from(&two[..]);
    assert_eq!(client.call(&stream, two, None).messages.len(), 2);
    drop(client);
    let spans = collector.spans_of(server);
    let of_calls: Vec<&Span> = spans.iter().filter(|span| span.kind == 2).collect();
    let told = |span: &&Span| {
        let status = span.of("rpc.response.status_code");
        (span.name.clone(), status, span.of("tfrt.model.name"))
    };
    let found: Vec<(String, String, String)> = of_calls.iter().map(told).collect();
    let expected = [
        (&method, "OK", "m"),
        (&method, "NOT_FOUND", ""),
        (&stream, "OK", "m"),
        (&stream, "OK", "m"),
    ]
    .map(|(name, status, model)| (name.clone(), status.to_owned(), model.to_owned()));
    assert_eq!(found, expected);
    for span in &of_calls {
        assert_eq!((&*hex(&span.trace), &*hex(&span.parent)), (TRACE, PARENT));
        assert_eq!(span.of("rpc.system.name"), "grpc");
        assert_eq!(span.of("rpc.method"), span.name);
        assert_eq!(span.code(), 0);
    }
    assert_eq!(spans.len(), 7);
}

#[test]
fn request_of_a_batch_has_spans_of_queue_batch_and_run() {
    let collector = Collector::new();
    let batching = Batching {
        max_rows: 8,
        max_delay: Duration::from_secs(600),
    };
    let server = traced(
        repository(Vec::new(), VersionPolicy::default()).batching(None, batching),
        &collector.endpoint,
    );
    server
        .repository()
        .add("m", Arc::new(Times::new(2.0)))
        .unwrap();
    // Two requests of four rows fill the batch.
    let four = r#"{"x": [1, 2, 3, 4, 5, 6, 7, 8]}"#;
    let mut clients = [Client::new(&server), Client::new(&server)];
    for client in &mut clients {
        client.send(post("/v2/models/m/generate", TRACEPARENT, four));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    drop(clients);
    let spans = collector.spans_of(server);
    assert_eq!(spans.len(), 8);
    for whole in &spans[..2] {
        let within = |parent: &Span| {
            let own = spans.iter().filter(|span| span.parent == parent.id);
            own.cloned().collect::<Vec<Span>>()
        };
        let steps = within(whole);
        let names: Vec<&str> = steps.iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["queue", "batch"]);
        assert_eq!(steps[1].of("tfrt.batch.rows"), "8");
        assert_eq!(steps[0].ended_ns, steps[1].began_ns);
        let run = within(&steps[1]);
        assert_eq!(run.len(), 1);
        assert_eq!((&*run[0].name, &*hex(&run[0].trace)), ("run", TRACE));
    }
}

#[test]
fn errors_and_clients_that_go_are_told_and_others_are_not_recorded() {
    let collector = Collector::new();
    let control = Control::new();
    let server = traced(models(control.model.clone()), &collector.endpoint);
    let path = "/v2/models/m/generate";
    let mut client = Client::new(&server);
    let late = r#"{"x": [1, 2], "timeout": 30000}"#;
    assert_eq!(client.post(path, late).status, 504);
    control.wait_for_call();
    control.wait_for_cancellation();
    // A client that says that its trace is not recorded.
    let unsampled = TRACEPARENT.replace("-01", "-00");
    let answer = client.send(post(path, &unsampled, late)).answer();
    assert_eq!(answer.status, 504);
    control.wait_for_call();
    control.wait_for_cancellation();
    client.send(post(path, "", r#"{"x": [1, 2]}"#));
    control.wait_for_call();
    drop(client);
    control.wait_for_cancellation();
    let spans = collector.spans_of(server);
    let told: Vec<(i32, String)> = spans
        .iter()
        .filter(|span| span.kind == 2)
        .map(|span| (span.code(), span.of("error.type")))
        .collect();
    let expected = ["504", "cancelled"].map(|kind| (2, kind.to_owned()));
    assert_eq!(told, expected);
}

/// Waits until spans were dropped that no collector has taken.
fn wait_for_drops(client: &mut Client) {
    let until = Instant::now() + PATIENCE;
    loop {
        let metrics = client.get("/metrics");
        let line = "\ntfrt_spans_dropped_total ";
        let count = metrics.text().split(line).nth(1).unwrap();
        let count: u64 = count.split('\n').next().unwrap().parse().unwrap();
        if count > 500 {
            let none = "\ntfrt_spans_exported_total 0\n";
            assert!(metrics.text().contains(none), "{}", metrics.text());
            return;
        }
        assert!(Instant::now() < until, "{count} spans are dropped");
        std::thread::yield_now();
    }
}

#[test]
fn collector_that_is_gone_or_silent_holds_nothing_up() {
    // Nothing listens at the first, and nothing is taken from the second.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (address, is_gone) in [(gone, true), (silent.local_addr().unwrap(), false)] {
        let (sender, warnings) = mpsc::channel();
        let warn = move |text: &str| sender.send(text.to_owned()).unwrap();
        let model = models(Arc::new(Times::new(2.0)));
        let server = warning(model, &format!("http://{address}/"), warn);
        let mut client = Client::new(&server);
        for _ in 0..600 {
            let answer = client.post("/v2/models/m/infer", ROWS);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        if is_gone {
            wait_for_drops(&mut client);
        }
        drop(client);
        let began = Instant::now();
        assert!(server.stop(PATIENCE));
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(8), "it took {waited:?}");
        if is_gone {
            // Once, though several messages could not be sent.
            let told: Vec<String> = warnings.iter().collect();
            let message = format!("spans can't be sent to http://{address}/v1/traces, and");
            assert!(told[0].starts_with(&message), "{told:?}");
            assert_eq!(told.len(), 1, "{told:?}");
        }
    }
}

#[test]
fn addresses_that_are_none_are_refused() {
    for (endpoint, reason) in [
        (
            "",
            "the collector '/v1/traces': expected an address such as http://127.0.0.1:4318",
        ),
        (
            "127.0.0.1:4318",
            "the collector '127.0.0.1:4318/v1/traces': expected an address such as http://127.0.0.1:4318",
        ),
        (
            "ftp://a",
            "the collector 'ftp://a/v1/traces': expected an address such as http://127.0.0.1:4318",
        ),
        (
            "https://a:4318/v1/traces",
            "the collector 'https://a:4318/v1/traces': spans are sent as they are, without encryption",
        ),
    ] {
        let builder = builder(models(Arc::new(Times::new(2.0))));
        let Err(error) = builder.traces(Some(endpoint)) else {
            panic!("'{endpoint}' is taken");
        };
        assert!(error.message().starts_with(reason), "{}", error.message());
    }
}
