//! Clients that mean harm, or have died: half messages, bodies of unknown length, answers that nobody reads, and frames of
//! HTTP/2 that make work for nothing. Each ends within a limit, and others are answered.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Frame};
use hyper::client::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{AnyAsyncValue, RequestContext};
use tfrt_serve::{Description, Limits, Place, Servable, Server};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use crate::support::{Client, Control, ROWS, Same, Times, double, post, start};

/// A body that begins, and never ends.
struct Half(Option<Bytes>);

impl Body for Half {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// Runs something beside which connections are driven.
fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(work)
}

/// Begins a call of gRPC whose message is announced to have so many bytes, of which some are sent. Returns the status.
fn half_call(server: &Server, method: &str, announced: u32, sent: usize) -> String {
    let head = [&[0][..], &announced.to_be_bytes()].concat();
    let bytes = [head, vec![0; sent]].concat();
    run(async {
        let stream = tokio::net::TcpStream::connect(server.addresses()[0])
            .await
            .unwrap();
        let builder = Builder::new(TokioExecutor::new());
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::post(format!("http://x/inference.GRPCInferenceService/{method}"))
            .header("content-type", "application/grpc")
            .body(Half(Some(bytes.into())))
            .unwrap();
        let mut answer = sender.send_request(request).await.unwrap();
        let mut headers = answer.headers().clone();
        while let Some(frame) = answer.body_mut().frame().await {
            if let Ok(trailers) = frame.unwrap().into_trailers() {
                headers.extend(trailers);
            }
        }
        let text = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
        format!("{} {}", text("grpc-status"), text("grpc-message"))
    })
}

fn with(limits: Limits) -> Server {
    start(vec![("double", Arc::new(Times::new(2.0)))], limits)
}

fn is_well(server: &Server) {
    let answer = Client::new(server).post("/v2/models/double/infer", ROWS);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn half_messages_of_grpc_end_as_slow_bodies_do() {
    let server = with(Limits {
        body_time: Duration::from_millis(200),
        max_in_flight: 1,
        ..Limits::default()
    });
    for method in ["ModelInfer", "ServerLive", "ModelStreamInfer"] {
        let ended = half_call(&server, method, 1000, 3);
        let expected = "4 the body came too slowly: 8 bytes";
        assert!(ended.replace("%20", " ").starts_with(expected), "{ended}");
        // The place of the call is free again.
        is_well(&server);
    }
}

#[test]
fn messages_without_tensors_are_short() {
    let server = double();
    let ended = half_call(&server, "ServerLive", 1 << 20, 3);
    assert!(ended.starts_with("11 "), "{ended}");
    let long = " ".repeat(100_000);
    let answer = Client::new(&server).post("/v2/repository/index", long);
    assert_eq!(answer.status, 413, "{}", answer.text());
    let headers = "content-encoding: gzip\r\n";
    let packed = post("/v2/repository/index", headers, "x");
    assert_eq!(Client::new(&server).send(packed).answer().status, 415);
}

/// Beside a request that is there, others may not have more bytes than the limit, however they send them.
#[test]
fn bytes_of_unknown_number_are_counted_as_they_come() {
    let control = Control::new();
    let limits = Limits {
        max_in_flight_bytes: 1000,
        ..Limits::default()
    };
    let double = Arc::new(Times::new(2.0));
    let server = start(
        vec![("slow", control.model.clone()), ("double", double)],
        limits,
    );
    let mut first = Client::new(&server);
    first.send(post("/v2/models/slow/infer", "", ROWS));
    control.wait_for_call();

    let long = ROWS.replace("\"id\"", &format!("{}\"id\"", " ".repeat(2000)));
    let chunked = format!(
        "POST /v2/models/double/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    let mut packed = Vec::new();
    let level = flate2::Compression::best();
    flate2::read::GzEncoder::new(long.as_bytes(), level)
        .read_to_end(&mut packed)
        .unwrap();
    let packed = post(
        "/v2/models/double/infer",
        "content-encoding: gzip\r\n",
        packed,
    );
    for sent in [chunked.as_bytes(), &packed] {
        let answer = Client::new(&server).send(sent).answer();
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(answer.error().contains("1000 bytes"), "{}", answer.error());
    }
    for method in ["ModelInfer", "ModelStreamInfer"] {
        let ended = half_call(&server, method, 10_000, 2000);
        assert!(ended.starts_with("14 "), "{ended}");
    }
    is_well(&server);
    control.finish();
    assert_eq!(first.answer().status, 200);
    let metrics = Client::new(&server).get("/metrics");
    let text = metrics.text();
    assert!(text.contains("tfrt_in_flight_bytes 0\n"), "{text}");
}

/// Elements that take more memory than their text: each empty string has a vector of its own.
#[test]
fn memory_of_strings_is_counted() {
    let control = Control::new();
    let limits = Limits {
        max_in_flight_bytes: 10_000,
        ..Limits::default()
    };
    let strings = Arc::new(Same::new(&[("s", DType::String)]));
    let server = start(
        vec![("slow", control.model.clone()), ("strings", strings)],
        limits,
    );
    let many = vec!["\"\""; 1000].join(",");
    let body = format!(
        r#"{{"inputs": [{{"name": "s", "shape": [1000], "datatype": "BYTES", "data": [{many}]}}]}}"#
    );
    let request = post("/v2/models/strings/infer", "", &body);
    assert_eq!(Client::new(&server).send(&request).answer().status, 200);
    let mut first = Client::new(&server);
    first.send(post("/v2/models/slow/infer", "", ROWS));
    control.wait_for_call();
    assert_eq!(Client::new(&server).send(&request).answer().status, 503);
    control.finish();
    assert_eq!(first.answer().status, 200);
}

/// A model whose answer has more bytes than sockets hold.
struct Large(Times);

const LARGE_BYTES: usize = 32 << 20;

impl Servable for Large {
    fn description(&self) -> &Description {
        self.0.description()
    }

    fn call(
        &self,
        _: &Arc<RequestContext>,
        _: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        let shape = TensorShape::new(&[LARGE_BYTES]).unwrap();
        let metadata = TensorMetadata::new(DType::Ui8, shape);
        let zeros = HostBuffer::from_owner(vec![0_u8; LARGE_BYTES]);
        let tensor = DenseHostTensor::new(metadata, zeros).unwrap();
        vec![AnyAsyncValue::new(Tensor::from(tensor))]
    }
}

/// A server whose answers have to be taken within 300 ms, as soon as they are seen to be slower.
fn large() -> Server {
    let limits = Limits {
        answer_time: Duration::from_millis(300),
        body_time: Duration::from_secs(10),
        min_body_rate: 1 << 40,
        ..Limits::default()
    };
    start(vec![("large", Arc::new(Large(Times::new(1.0))))], limits)
}

/// The request for it, whose answer has bytes.
fn for_bytes() -> String {
    ROWS.replace(
        "\"id\"",
        "\"parameters\": {\"binary_data_output\": true}, \"id\"",
    )
}

#[test]
fn answers_that_nobody_reads_are_let_go() {
    let server = large();
    let request = post("/v2/models/large/infer", "", for_bytes());
    let mut client = Client::new(&server);
    client.send(&request);
    // The head comes at once; then nothing is read until the server has closed the connection, which a write hears.
    client.stream.read_exact(&mut [0]).unwrap();
    while client.stream.write_all(b"GET / HTTP/1.1\r\n").is_ok() {
        std::thread::yield_now();
    }
    // One who reads gets all of it.
    let server = start(
        vec![("large", Arc::new(Large(Times::new(1.0))))],
        Limits::default(),
    );
    let answer = Client::new(&server).send(&request).answer();
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() > LARGE_BYTES);
}

#[test]
fn answers_that_no_window_lets_through_are_let_go() {
    let server = large();
    run(async {
        let stream = tokio::net::TcpStream::connect(server.addresses()[0])
            .await
            .unwrap();
        let mut builder = Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(1000);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = Request::post("http://x/v2/models/large/infer")
            .body(http_body_util::Full::new(Bytes::from(for_bytes())))
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        // Its body is not read; the server ends the connection.
        let _ = connection.await.unwrap();
        drop(answer);
    });
}

/// Writes a frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Writes fields of a head as HPACK has them literally.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let field = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    fields.iter().flat_map(field).collect()
}

fn get() -> Vec<u8> {
    fields(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", "/v2"),
    ])
}

/// Opens a connection of HTTP/2, sends bytes, and reads until the server ends it. Returns the kinds of frames that came.
fn attack(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let client = Client::new(server);
    let mut stream = client.stream;
    let begin = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &*frame(SETTINGS, 0, 0, b""),
    ];
    let sending = {
        let mut stream = stream.try_clone().unwrap();
        let all = [&begin.concat(), bytes].concat();
        // It may be cut off before all is sent.
        std::thread::spawn(move || drop(stream.write_all(&all)))
    };
    let mut read = Vec::new();
    // The end may be a reset, since more is on its way.
    let _ = stream.read_to_end(&mut read);
    sending.join().unwrap();
    let (mut kinds, mut rest) = (Vec::new(), &read[..]);
    while let [a, b, c, kind, _, _, _, _, _, behind @ ..] = rest {
        kinds.push(*kind);
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        rest = behind.get(length..).unwrap_or_default();
    }
    kinds
}

#[test]
fn frames_that_make_work_for_nothing_end_their_connection() {
    let server = with(Limits {
        idle_time: Duration::from_millis(300),
        ..Limits::default()
    });
    let head = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &get());
    let open = |stream| frame(HEADERS, END_HEADERS, stream, &get());
    let many = |n: u32, one: &dyn Fn(u32) -> Vec<u8>| (0..n).flat_map(one).collect::<Vec<u8>>();
    let reset =
        |index: u32| [head(1 + 2 * index), frame(RESET, 0, 1 + 2 * index, &[0; 4])].concat();
    let padding = fields(&[("a", &"x".repeat(120))]);
    let huge = many(500, &|_| frame(CONTINUATION, 0, 1, &padding));
    for (name, bytes) in [
        ("rapid reset", many(5000, &reset)),
        (
            "a head without end",
            [frame(HEADERS, 0, 1, &get()), huge].concat(),
        ),
        (
            "empty continuations",
            [
                frame(HEADERS, 0, 1, &get()),
                many(5000, &|_| frame(CONTINUATION, 0, 1, b"")),
            ]
            .concat(),
        ),
        (
            "a frame of 16 MiB",
            [&[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1][..], &[0; 100]].concat(),
        ),
        ("an even stream", head(2)),
        ("a stream twice", [head(3), head(1)].concat()),
        ("data of no stream", frame(DATA, 0, 7, b"x")),
        (
            "a field of no table",
            frame(HEADERS, END_HEADERS, 1, &[0xff; 20]),
        ),
        (
            "a window that overflows",
            many(2, &|_| {
                frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])
            }),
        ),
        ("a window of nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
        ("settings of 5 bytes", frame(SETTINGS, 0, 0, b"12345")),
        (
            "data beyond the window",
            [open(1), many(600, &|_| frame(DATA, 0, 1, &[0; 16000]))].concat(),
        ),
    ] {
        let kinds = attack(&server, &bytes);
        assert!(
            kinds.contains(&GOAWAY) || kinds.contains(&RESET) || kinds.is_empty(),
            "{name}: {kinds:?}"
        );
    }
    // These are no mistakes, but cost no more than they do their sender: answered one by one, until the client is silent.
    for (name, bytes, kind) in [
        (
            "settings",
            many(5000, &|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
            SETTINGS,
        ),
        ("pings", many(5000, &|_| frame(PING, 0, 0, &[0; 8])), PING),
    ] {
        let kinds = attack(&server, &bytes);
        let n_answers = kinds.iter().filter(|own| **own == kind).count();
        assert!(n_answers <= 5002, "{name}: {n_answers}");
    }
    is_well(&server);
}

#[test]
fn streams_over_the_limit_are_refused_and_the_connection_goes_on() {
    let control = Control::new();
    let limits = Limits {
        max_streams: 4,
        idle_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = start(vec![("slow", control.model.clone())], limits);
    let path = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", "/v2/models/slow/infer"),
    ];
    let call = |stream| {
        let head = frame(HEADERS, END_HEADERS, stream, &fields(&path));
        [head, frame(DATA, END_STREAM, stream, ROWS.as_bytes())].concat()
    };
    let mut calls: Vec<u8> = (0..4).flat_map(|index| call(1 + 2 * index)).collect();
    for stream in [9, 11] {
        let head = fields(&path);
        calls.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &head));
    }
    let kinds = attack(&server, &calls);
    let n_refused = kinds.iter().filter(|kind| **kind == RESET).count();
    assert_eq!(n_refused, 2, "{kinds:?}");
    for _ in 0..4 {
        control.wait_for_call();
        assert_eq!(control.wait_for_cancellation(), "the client has gone");
    }
}
