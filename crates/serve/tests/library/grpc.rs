//! Calls of gRPC: messages by the numbers of their fields, and the status that ends each.

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tfrt_serve::{Limits, Server, Source, VersionPolicy};

use crate::support::{Control, Folder, ROWS, double, floats, post, repository, serve, start};

#[derive(Clone, PartialEq, Message)]
pub struct Infer {
    #[prost(string, tag = "1")]
    model: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(string, tag = "3")]
    id: String,
    #[prost(message, repeated, tag = "5")]
    tensors: Vec<InferTensor>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    raw_outputs: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    raw_inputs: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct InferTensor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    datatype: String,
    #[prost(int64, repeated, tag = "3")]
    shape: Vec<i64>,
    #[prost(message, optional, tag = "5")]
    contents: Option<Contents>,
}

#[derive(Clone, PartialEq, Message)]
struct Contents {
    #[prost(int64, repeated, tag = "3")]
    int64s: Vec<i64>,
    #[prost(float, repeated, tag = "6")]
    floats: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    number: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Streamed {
    #[prost(string, tag = "1")]
    error: String,
    #[prost(message, optional, tag = "2")]
    response: Option<Infer>,
}

/// The end of a call: status, message, and the messages before it.
pub struct Ended {
    pub code: u32,
    pub message: String,
    pub messages: Vec<Bytes>,
}

impl Ended {
    pub fn only<M: Message + Default>(&self) -> M {
        assert_eq!((self.code, self.messages.len()), (0, 1), "{}", self.message);
        M::decode(self.messages[0].clone()).unwrap()
    }
}

/// A connection on a runtime of its own.
pub struct Client {
    runtime: tokio::runtime::Runtime,
    sender: SendRequest<Full<Bytes>>,
    /// Headers that each call has beside its own.
    pub headers: Vec<(&'static str, String)>,
}

pub fn framed(message: &impl Message) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut bytes).unwrap();
    bytes
}

impl Client {
    pub fn new(server: &Server) -> Client {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let address = server.addresses()[0];
        let sender = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
            tokio::spawn(connection);
            sender
        });
        Client {
            runtime,
            sender,
            headers: Vec::new(),
        }
    }

    fn request(method: &str, body: BytesMut, timeout: Option<&str>) -> Request<Full<Bytes>> {
        let mut request = Request::post(format!("http://x/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(timeout) = timeout {
            request = request.header("grpc-timeout", timeout);
        }
        request.body(Full::new(body.freeze())).unwrap()
    }

    pub fn call(&mut self, method: &str, body: BytesMut, timeout: Option<&str>) -> Ended {
        let mut request = Client::request(method, body, timeout);
        for (name, value) in &self.headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let answered = self.sender.send_request(request);
        self.runtime.block_on(async {
            let response = answered.await.unwrap();
            assert_eq!(response.status(), 200);
            let (head, body) = response.into_parts();
            let collected = body.collect().await.unwrap();
            let trailers = collected.trailers().cloned().unwrap_or(head.headers);
            let text = |name: &str| {
                trailers
                    .get(name)
                    .map_or("", |value| value.to_str().unwrap())
            };
            let mut bytes = collected.to_bytes();
            let mut messages = Vec::new();
            while !bytes.is_empty() {
                let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
                drop(bytes.split_to(5));
                messages.push(bytes.split_to(length));
            }
            Ended {
                code: text("grpc-status").parse().unwrap(),
                message: text("grpc-message")
                    .replace("%20", " ")
                    .replace("%60", "`")
                    .replace("%27", "'"),
                messages,
            }
        })
    }

    fn kserve(&mut self, method: &str, message: &impl Message) -> Ended {
        let method = format!("inference.GRPCInferenceService/{method}");
        self.call(&method, framed(message), None)
    }
}

/// A change that spoils a request, and the code and the message that it gets.
type Mistake = (fn(&mut Infer), u32, &'static str);

/// A request for a row of `double`, or of a model like it.
pub fn rows(model: &str) -> Infer {
    Infer {
        model: model.to_owned(),
        id: "7".to_owned(),
        tensors: vec![InferTensor {
            name: "x".to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![1, 2],
            contents: None,
        }],
        raw_inputs: vec![floats(&[1.0, 2.5])],
        ..Infer::default()
    }
}

#[test]
fn server_and_models_describe_themselves() {
    let server = double();
    let mut client = Client::new(&server);
    let named = |name: &str| Named {
        name: name.to_owned(),
        ..Named::default()
    };
    for method in ["ServerLive", "ServerReady"] {
        assert_eq!(client.kserve(method, &named("")).only::<Number>().number, 1);
    }
    assert_eq!(
        client
            .kserve("ModelReady", &named("double"))
            .only::<Number>()
            .number,
        1
    );
    assert_eq!(
        client
            .kserve("ModelReady", &named("nope"))
            .only::<Number>()
            .number,
        0
    );
    assert_eq!(
        client
            .kserve("ModelMetadata", &named("double"))
            .only::<Named>()
            .name,
        "double"
    );
    assert_eq!(client.kserve("ModelMetadata", &named("nope")).code, 5);
    let health = |client: &mut Client, name: &str| {
        client.call("grpc.health.v1.Health/Check", framed(&named(name)), None)
    };
    assert_eq!(health(&mut client, "").only::<Number>().number, 1);
    assert_eq!(health(&mut client, "nope").code, 5);
    for method in ["inference.GRPCInferenceService/Nothing", "a.B/C"] {
        assert_eq!(
            client.call(method, BytesMut::new(), None).code,
            12,
            "{method}"
        );
    }
}

/// Each becomes a value of hundreds of bytes, although it has two here.
#[test]
fn message_of_many_fields_is_refused_before_they_are_read() {
    let server = double();
    let mut client = Client::new(&server);
    let service = "inference.GRPCInferenceService/ModelInfer";
    let predict = "tensorflow.serving.PredictionService/Predict";
    // Parameters of one input lie within its field.
    let parameters = [0x22, 0].repeat(20_000);
    let mut input = vec![0x2a];
    prost::encoding::encode_varint(parameters.len() as u64, &mut input);
    input.extend(parameters);
    for (method, fields) in [
        (service, [0x2a, 0].repeat(20_000)),
        (service, [0x3a, 0].repeat(20_000)),
        (service, input),
        (predict, [0x1a, 0].repeat(20_000)),
    ] {
        let mut message = BytesMut::new();
        message.put_u8(0);
        message.put_u32(u32::try_from(fields.len()).unwrap());
        message.put_slice(&fields);
        let ended = client.call(method, message, None);
        assert_eq!(ended.code, 3);
        let expected = "a message has 16384 fields at most";
        assert!(ended.message.starts_with(expected), "{}", ended.message);
    }
}

#[test]
fn rows_are_answered_as_bytes() {
    let server = double();
    let mut client = Client::new(&server);
    let answer = client.kserve("ModelInfer", &rows("double")).only::<Infer>();
    assert_eq!(
        (&*answer.model, &*answer.version, &*answer.id),
        ("double", "1", "7")
    );
    assert_eq!(
        (&*answer.tensors[0].name, &answer.tensors[0].shape),
        ("y", &vec![1, 2])
    );
    assert_eq!(answer.raw_outputs, [floats(&[2.0, 5.0])]);

    let mut typed = rows("double");
    typed.raw_inputs.clear();
    typed.tensors[0].contents = Some(Contents {
        floats: vec![3.0, 4.0],
        ..Contents::default()
    });
    let answer = client.kserve("ModelInfer", &typed).only::<Infer>();
    assert_eq!(answer.raw_outputs, [floats(&[6.0, 8.0])]);
}

#[test]
fn mistakes_have_a_code_and_a_message() {
    let server = double();
    let mut client = Client::new(&server);
    let mistakes: [Mistake; 8] = [
        (
            |own| own.model = "nope".to_owned(),
            5,
            "Request for unknown model: 'nope' is not found",
        ),
        (
            |own| own.version = "2".to_owned(),
            5,
            "Request for unknown model: 'double' version 2 is not found",
        ),
        (
            |own| own.version = "two".to_owned(),
            3,
            "failed to get model version from 'two': expected a number",
        ),
        (
            |own| own.tensors[0].datatype = "INT8".to_owned(),
            3,
            "input 'x': expected datatype FP32, found INT8",
        ),
        (
            |own| own.tensors[0].shape = vec![i64::MAX, 4],
            3,
            "input 'x': ",
        ),
        (
            |own| own.raw_inputs.push(Vec::new()),
            3,
            "expected as many `raw_input_contents` as inputs, found 2 for 1",
        ),
        (
            |own| own.raw_inputs[0].truncate(7),
            3,
            "input 'x': FP32 of shape [1, 2] has 8 bytes, found 7",
        ),
        (
            |own| {
                own.raw_inputs.clear();
                own.tensors[0].contents = Some(Contents {
                    int64s: vec![1, 2],
                    ..Contents::default()
                });
            },
            3,
            "input 'x': `contents` has 2 elements in fields that are not for FP32",
        ),
    ];
    for (spoil, code, message) in mistakes {
        let mut request = rows("double");
        spoil(&mut request);
        let ended = client.kserve("ModelInfer", &request);
        let told = ended.message;
        assert_eq!(ended.code, code, "{told}");
        assert!(told.starts_with(message), "{told}");
    }
    let garbage = BytesMut::from(&[0, 0, 0, 0, 2, 0xff, 0xff][..]);
    let ended = client.call("inference.GRPCInferenceService/ModelInfer", garbage, None);
    assert_eq!(ended.code, 3, "{}", ended.message);
}

#[test]
fn message_over_the_limit_is_refused() {
    let limits = Limits {
        max_request_bytes: 100,
        ..Limits::default()
    };
    let server = start(vec![], limits);
    let mut request = rows("double");
    request.id = "x".repeat(1000);
    let ended = Client::new(&server).kserve("ModelInfer", &request);
    assert!(
        [8, 11].contains(&ended.code),
        "{} {}",
        ended.code,
        ended.message
    );
}

#[test]
fn stream_goes_on_behind_a_request_that_fails() {
    let server = double();
    let mut client = Client::new(&server);
    let mut body = framed(&rows("double"));
    body.unsplit(framed(&rows("nope")));
    body.unsplit(framed(&rows("double")));
    let ended = client.call(
        "inference.GRPCInferenceService/ModelStreamInfer",
        body,
        None,
    );
    assert_eq!(ended.code, 0, "{}", ended.message);
    let answers = ended
        .messages
        .into_iter()
        .map(|bytes| Streamed::decode(bytes).unwrap());
    let told: Vec<_> = answers
        .map(|answer| (answer.error, answer.response.is_some()))
        .collect();
    let unknown = "Request for unknown model: 'nope' is not found".to_owned();
    assert_eq!(
        told,
        [
            (String::new(), true),
            (unknown, false),
            (String::new(), true)
        ]
    );
}

#[test]
fn deadline_and_a_client_that_goes_end_a_call() {
    let control = Control::new();
    let server = start(vec![("slow", control.model.clone())], Limits::default());
    let mut client = Client::new(&server);
    let method = "inference.GRPCInferenceService/ModelInfer";
    let ended = client.call(method, framed(&rows("slow")), Some("30m"));
    assert_eq!(ended.code, 4, "{}", ended.message);
    control.wait_for_call();
    assert!(
        control
            .wait_for_cancellation()
            .starts_with("Deadline exceeded")
    );

    let answered = client
        .sender
        .send_request(Client::request(method, framed(&rows("slow")), None));
    let waiting = client.runtime.spawn(answered);
    control.wait_for_call();
    waiting.abort();
    assert_eq!(control.wait_for_cancellation(), "the client has gone");
}

#[test]
fn health_is_told_when_it_changes_until_the_server_ends() {
    let folder = Folder::new("watch");
    folder.write("three.number", "3");
    let source = vec![Source::Folder(folder.0.clone())];
    let repository = repository(source, VersionPolicy::default());
    repository.load_all().unwrap();
    let server = serve(repository, Limits::default());
    let mut client = Client::new(&server);
    let named = Named {
        name: "three".to_owned(),
        ..Named::default()
    };
    let method = "grpc.health.v1.Health/Watch";
    let watching = client
        .sender
        .send_request(Client::request(method, framed(&named), None));
    let mut body = client.runtime.block_on(watching).unwrap().into_body();
    let mut next = |client: &Client| {
        let frame = client.runtime.block_on(body.frame()).unwrap().unwrap();
        frame.into_data().ok().map(|bytes| bytes.to_vec())
    };
    let state = |number: u8| Some(vec![0, 0, 0, 0, 2, 8, number]);
    assert_eq!(next(&client), state(1));
    let mut other = crate::support::Client::new(&server);
    other.post("/v2/repository/models/three/unload", "");
    assert_eq!(next(&client), state(3));
    other.post("/v2/repository/models/three/load", "");
    assert_eq!(next(&client), state(1));
    server.stopper().refuse();
    assert_eq!(next(&client), state(2));
    server.stopper().drain();
    assert_eq!(next(&client), None, "the trailers come");
}

#[test]
fn bytes_over_the_capacity_are_refused_as_they_come() {
    let control = Control::new();
    let limits = Limits {
        max_in_flight_bytes: 10_000,
        ..Limits::default()
    };
    let server = start(vec![("slow", control.model.clone())], limits);
    let mut busy = crate::support::Client::new(&server);
    busy.send(post("/v2/models/slow/infer", "", ROWS));
    control.wait_for_call();
    let mut large = rows("slow");
    large.id = "x".repeat(20_000);
    let ended = Client::new(&server).kserve("ModelInfer", &large);
    assert_eq!(ended.code, 14, "{}", ended.message);
    assert!(
        ended.message.contains("limit of 10000 bytes"),
        "{}",
        ended.message
    );
    control.finish();
    assert_eq!(busy.answer().status, 200);
}
