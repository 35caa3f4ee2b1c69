//! Requests of gRPC: KServe's service with Triton's calls, TensorFlow Serving's, and the health service.
//!
//! Each call is one path, `/package.Service/Method`. Messages are in `messages.rs`; framing, trailers and limits on
//! messages are tonic's. The deadline of a call is the runtime's own: what `grpc-timeout` says becomes the deadline of the
//! request, whose error has the right code.

use std::any::TypeId;
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response};
use prost::Message;
use tfrt_host::ErrorCode;
use tfrt_tensor::Tensor;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, ServerStreamingService, StreamingService, UnaryService};
use tonic::{Code, Status, Streaming};

use self::arriving::{Arriving, Taken, Takes};
use self::messages::InferRequest;
use crate::admission::Ticket;
use crate::http::Payload;
use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::security::Scope;
use crate::server::Shared;
use crate::traces::Trace;

mod arriving;
mod convert;
mod fields;
mod health;
mod inference;
mod messages;
mod stream;
mod tensorflow;

/// A call on its way: what all methods are given.
#[derive(Clone)]
struct Call {
    shared: Arc<Shared>,
    began: Instant,
    /// The time that the client gives it.
    timeout: Option<Duration>,
    /// The place among the requests to models that are there, of a call with one message.
    ticket: Option<Arc<Ticket>>,
    /// Told of the messages that are taken, of a call with any number of them.
    taken: Option<Taken>,
    /// The most bytes of a message.
    max_bytes: usize,
    trace: Arc<Trace>,
}

impl Call {
    /// Returns the place among the requests to models of a message: that of the call, or, for one of a stream with so many
    /// bytes, its own.
    fn admitted(&self, n_bytes: impl FnOnce() -> usize) -> Result<Arc<Ticket>, Refusal> {
        match &self.ticket {
            Some(ticket) => Ok(ticket.clone()),
            None => Ok(Arc::new(self.shared.admit_message(n_bytes())?)),
        }
    }
}

/// Returns whether a request is one of gRPC, by its head.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(hyper::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a call.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    began: Instant,
    request: Request<Incoming>,
) -> Result<Response<Payload>, Infallible> {
    let timeout = match timeout_of(request.headers()) {
        Ok(timeout) => timeout,
        Err(status) => return Ok(status.into_http::<tonic::body::Body>().map(Payload::Grpc)),
    };
    let path = request.uri().path().to_owned();
    if let Err(refusal) = shared.security.check(request.headers(), scope_of(&path)) {
        let response = status(refusal).into_http::<tonic::body::Body>();
        return Ok(response.map(Payload::Grpc));
    }
    let trace = Arc::new(match calls_model(&path) {
        None => Trace::none(),
        Some(is_stream) => Trace::of_grpc(&shared, request.headers(), &path, is_stream),
    });
    let takes = match takes(&shared, &path) {
        Ok(takes) => takes,
        Err(refusal) => {
            let status = status(refusal);
            trace.end_grpc(status.code());
            return Ok(status.into_http::<tonic::body::Body>().map(Payload::Grpc));
        }
    };
    let (ticket, taken) = match &takes {
        Takes::Plain => (None, None),
        Takes::Tensors(ticket) => (Some(ticket.clone()), None),
        Takes::Stream(taken) => (None, Some(taken.clone())),
    };
    let call = Call {
        began,
        timeout,
        ticket,
        taken,
        max_bytes: takes.max_bytes(&shared),
        trace: trace.clone(),
        shared,
    };
    let request = request.map(|body| Arriving::new(body, &call, takes));
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let answered = match parts {
        Some(("inference.GRPCInferenceService", method)) => {
            inference::answer(call, method, request).await
        }
        Some(("tensorflow.serving.PredictionService", method)) => {
            tensorflow::predictions(call, method, request).await
        }
        Some(("tensorflow.serving.ModelService", method)) => {
            tensorflow::models(call, method, request).await
        }
        Some(("grpc.health.v1.Health", method)) => health::answer(call, method, request).await,
        _ => Err(unknown(&path)),
    };
    let response = answered.unwrap_or_else(|status| status.into_http());
    // An answer of one message tells its status here if it is an error, and behind the message if not.
    let failed = Status::from_header_map(response.headers());
    trace.end_grpc(failed.map_or(Code::Ok, |status| status.code()));
    Ok(response.map(Payload::Grpc))
}

/// Returns, of a method that calls a model, whether it does so for any number of messages.
fn calls_model(path: &str) -> Option<bool> {
    match path {
        "/inference.GRPCInferenceService/ModelInfer"
        | "/tensorflow.serving.PredictionService/Predict" => Some(false),
        "/inference.GRPCInferenceService/ModelStreamInfer" => Some(true),
        _ => None,
    }
}

/// Returns which messages a method takes, of which those with inputs of a model are counted before anything is read.
fn takes(shared: &Shared, path: &str) -> Result<Takes, Refusal> {
    match calls_model(path) {
        Some(false) => Ok(Takes::Tensors(Arc::new(shared.admit(0)?))),
        Some(true) => Ok(Takes::Stream(Taken::new(shared.admission.stream()))),
        None => Ok(Takes::Plain),
    }
}

/// Returns the scope that a token must have for a method; `None` for one that is open to all.
fn scope_of(path: &str) -> Option<Scope> {
    match path.rsplit_once('/').map_or(path, |(_, method)| method) {
        "ServerLive" | "ServerReady" | "Check" | "Watch" => None,
        "ModelInfer" | "ModelStreamInfer" | "Predict" | "Classify" | "Regress"
        | "MultiInference" => Some(Scope::Infer),
        "RepositoryModelLoad" | "RepositoryModelUnload" | "HandleReloadConfigRequest" => {
            Some(Scope::Repository)
        }
        _ => Some(Scope::Metadata),
    }
}

/// Reads the inputs of a message of KServe's service.
pub(crate) fn kserve_inputs_of(
    model: &Loaded,
    message: Bytes,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    convert::inputs(model, &mut decoded(message)?)
}

/// Reads the inputs of a message of TensorFlow Serving's service, which become so many bytes at most.
pub(crate) fn tensorflow_inputs_of(
    model: &Loaded,
    message: Bytes,
    max_bytes: usize,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    tensorflow::inputs_of(model, message, max_bytes)
}

/// Reads a message.
fn decoded<M: Message + Default + 'static>(message: Bytes) -> Result<M, Refusal> {
    let nested: &[u32] = match TypeId::of::<M>() == TypeId::of::<InferRequest>() {
        // Inputs and outputs, which have parameters of their own.
        true => &[5, 6],
        false => &[],
    };
    fields::check(&message, nested)?;
    M::decode(message)
        .map_err(|error| Refusal::invalid(format!("the message can't be read: {error}")))
}

/// Reads a head, for those who check from outside. Returns whether it can be read, and the scope that it needs.
pub(crate) fn read_head(path: &str, headers: &HeaderMap) -> (bool, Option<Scope>) {
    (timeout_of(headers).is_ok(), scope_of(path))
}

/// Returns messages with inputs, of KServe's service and of TensorFlow Serving's.
pub(crate) fn examples() -> [Vec<u8>; 2] {
    [convert::example(), tensorflow::example()]
}

fn unknown(method: &str) -> Status {
    Status::unimplemented(format!("there is no method '{}'", method.escape_debug()))
}

/// Returns the time that a header gives the call: digits and a unit, such as `200m`.
fn timeout_of(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let wrong = || {
        Status::invalid_argument(format!(
            "`grpc-timeout` was expected to be digits and a unit, found '{text}'"
        ))
    };
    let (digits, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(wrong)?;
    let is_number =
        (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits
        .parse()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(wrong)?;
    match unit {
        "H" => Ok(Some(Duration::from_secs(number * 3600))),
        "M" => Ok(Some(Duration::from_secs(number * 60))),
        "S" => Ok(Some(Duration::from_secs(number))),
        "m" => Ok(Some(Duration::from_millis(number))),
        "u" => Ok(Some(Duration::from_micros(number))),
        "n" => Ok(Some(Duration::from_nanos(number))),
        _ => Err(wrong()),
    }
}

/// Answers a call of one message by one message.
async fn unary<M, R, F>(
    call: &Call,
    request: Request<Arriving>,
    run: fn(Call, M) -> F,
) -> Result<Response<tonic::body::Body>, Status>
where
    M: Message + Default + 'static,
    R: Message + 'static,
    F: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    let method = Method {
        call: call.clone(),
        run,
    };
    Ok(grpc::<R, M>(call).unary(method, request).await)
}

/// Returns what reads and writes the messages of a call.
fn grpc<R: Message + 'static, M: Message + Default + 'static>(call: &Call) -> Grpc<Prost<R, M>> {
    Grpc::new(Prost(PhantomData)).max_decoding_message_size(call.max_bytes)
}

/// A method, as tonic takes it: called with what comes in, it returns what goes out.
struct Method<I, O> {
    call: Call,
    run: fn(Call, I) -> O,
}

impl<M, R, F> UnaryService<M> for Method<M, F>
where
    R: Message + 'static,
    F: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    type Response = R;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<R>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<M>) -> Self::Future {
        let answered = (self.run)(self.call.clone(), request.into_inner());
        Box::pin(async move { answered.await.map(tonic::Response::new).map_err(status) })
    }
}

impl<M, R, S> ServerStreamingService<M> for Method<M, S>
where
    R: Message + 'static,
    S: futures_core::Stream<Item = Result<R, Status>> + Send + 'static,
{
    type Response = R;
    type ResponseStream = S;
    type Future = std::future::Ready<Result<tonic::Response<S>, Status>>;

    fn call(&mut self, request: tonic::Request<M>) -> Self::Future {
        let answers = (self.run)(self.call.clone(), request.into_inner());
        std::future::ready(Ok(tonic::Response::new(answers)))
    }
}

impl<M, R, S> StreamingService<M> for Method<Streaming<M>, S>
where
    R: Message + 'static,
    S: futures_core::Stream<Item = Result<R, Status>> + Send + 'static,
{
    type Response = R;
    type ResponseStream = S;
    type Future = std::future::Ready<Result<tonic::Response<S>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<M>>) -> Self::Future {
        let answers = (self.run)(self.call.clone(), request.into_inner());
        std::future::ready(Ok(tonic::Response::new(answers)))
    }
}

/// Answers a call of one message by any number of messages.
async fn watching<M, R, S>(
    call: &Call,
    request: Request<Arriving>,
    run: fn(Call, M) -> S,
) -> Result<Response<tonic::body::Body>, Status>
where
    M: Message + Default + 'static,
    R: Message + 'static,
    S: futures_core::Stream<Item = Result<R, Status>> + Send + 'static,
{
    let method = Method {
        call: call.clone(),
        run,
    };
    Ok(grpc::<R, M>(call).server_streaming(method, request).await)
}

/// Answers a call of any number of messages by any number of messages.
async fn streaming<M, R, S>(
    call: &Call,
    request: Request<Arriving>,
    run: fn(Call, Streaming<M>) -> S,
) -> Result<Response<tonic::body::Body>, Status>
where
    M: Message + Default + 'static,
    R: Message + 'static,
    S: futures_core::Stream<Item = Result<R, Status>> + Send + 'static,
{
    let method = Method {
        call: call.clone(),
        run,
    };
    Ok(grpc::<R, M>(call).streaming(method, request).await)
}

/// Returns the status of a refusal.
fn status(refusal: Refusal) -> Status {
    Status::new(code(&refusal), refusal.message())
}

/// Returns the code of a refusal.
fn code(refusal: &Refusal) -> Code {
    match refusal.error.code() {
        ErrorCode::Ok => Code::Ok,
        ErrorCode::Cancelled | ErrorCode::RpcCancelled => Code::Cancelled,
        ErrorCode::InvalidArgument => Code::InvalidArgument,
        ErrorCode::DeadlineExceeded | ErrorCode::RpcDeadlineExceeded => Code::DeadlineExceeded,
        ErrorCode::NotFound | ErrorCode::DeviceNotFound | ErrorCode::TaskNotFound => Code::NotFound,
        ErrorCode::AlreadyExists => Code::AlreadyExists,
        ErrorCode::PermissionDenied => Code::PermissionDenied,
        ErrorCode::ResourceExhausted => Code::ResourceExhausted,
        ErrorCode::FailedPrecondition => Code::FailedPrecondition,
        ErrorCode::Aborted => Code::Aborted,
        ErrorCode::OutOfRange => Code::OutOfRange,
        ErrorCode::Unimplemented => Code::Unimplemented,
        ErrorCode::Unavailable | ErrorCode::RpcUnavailable => Code::Unavailable,
        ErrorCode::DataLoss => Code::DataLoss,
        ErrorCode::Unauthenticated => Code::Unauthenticated,
        ErrorCode::Unknown | ErrorCode::RpcUnknown => Code::Unknown,
        _ => Code::Internal,
    }
}

/// The codec of protocol buffers: writes `R`s, reads `M`s.
struct Prost<R, M>(PhantomData<fn() -> (R, M)>);

impl<R: Message + 'static, M: Message + Default + 'static> Codec for Prost<R, M> {
    type Encode = R;
    type Decode = M;
    type Encoder = ProstEncoder<R>;
    type Decoder = ProstDecoder<M>;

    fn encoder(&mut self) -> ProstEncoder<R> {
        ProstEncoder(PhantomData)
    }

    fn decoder(&mut self) -> ProstDecoder<M> {
        ProstDecoder(PhantomData)
    }
}

struct ProstEncoder<R>(PhantomData<fn() -> R>);

impl<R: Message> Encoder for ProstEncoder<R> {
    type Item = R;
    type Error = Status;

    fn encode(&mut self, message: R, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(message.encoded_len());
        debug_assert!(
            buffer.remaining_mut() >= message.encoded_len(),
            "it was reserved"
        );
        message
            .encode(buffer)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

struct ProstDecoder<M>(PhantomData<fn() -> M>);

impl<M: Message + Default + 'static> Decoder for ProstDecoder<M> {
    type Item = M;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<M>, Status> {
        // Bytes of tensors become parts of this one piece, without a copy.
        let message = buffer.copy_to_bytes(buffer.remaining());
        decoded(message).map(Some).map_err(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_all_units() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            timeout_of(&headers).map_err(|status| status.code())
        };
        assert_eq!(read("2H"), Ok(Some(Duration::from_secs(7200))));
        assert_eq!(
            read("99999999m"),
            Ok(Some(Duration::from_millis(99_999_999)))
        );
        assert_eq!(read("5u"), Ok(Some(Duration::from_micros(5))));
        for wrong in ["", "m", "5", "5x", "-5m", "+5m", "999999999m", "1.5S"] {
            assert_eq!(read(wrong), Err(Code::InvalidArgument), "{wrong}");
        }
    }
}
