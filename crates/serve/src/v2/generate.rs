//! Triton's generate extension: `generate`, which answers with one object, and `generate_stream`, with an event for each.

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::response;
use crate::http::{Exchange, ModelCall, Payload, Upload, error_text, json_text, refused};
use crate::refusal::Refusal;

pub(crate) mod request;

/// Answers `POST /v2/models/NAME/generate`.
pub(crate) async fn once(
    exchange: &Exchange,
    name: &str,
    version: Option<u64>,
    upload: &mut Upload,
) -> Result<Response<Payload>, Refusal> {
    let written = answer(exchange, name, version, upload).await??;
    Ok(json_text(written.into()))
}

/// Answers `POST /v2/models/NAME/generate_stream`. A call that fails is told as an event, with the status of its error; a
/// request that is not called, or does not fit the model, as by any other endpoint.
pub(crate) async fn stream(
    exchange: &Exchange,
    name: &str,
    version: Option<u64>,
    upload: &mut Upload,
) -> Result<Response<Payload>, Refusal> {
    let (mut response, json) = match answer(exchange, name, version, upload).await? {
        Ok(json) => (Response::default(), json),
        Err(refusal) if refusal.status() == StatusCode::BAD_REQUEST => return Err(refusal),
        Err(refusal) => (refused(&refusal), error_text(&refusal)),
    };
    *response.body_mut() = Payload::from(event(&json));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Calls the model, and writes its answer; within it, why the call has failed.
async fn answer(
    exchange: &Exchange,
    name: &str,
    version: Option<u64>,
    upload: &mut Upload,
) -> Result<Result<Vec<u8>, Refusal>, Refusal> {
    let (mut call, body) = ModelCall::begin(exchange, name, version, upload, Ok(0)).await?;
    let request = request::parse(&call.model, &body)?;
    drop(body);
    let inferred = match call.infer(request.inputs, request.timeout).await? {
        Ok(inferred) => inferred,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let written = call.answer(inferred, |model, outputs| {
        response::write_members(model, request.id.as_deref(), outputs)
    })?;
    Ok(Ok(written))
}

/// Returns a document, which has no line breaks, as an event.
fn event(json: &[u8]) -> Bytes {
    [b"data: ", json, b"\n\n"].concat().into()
}
