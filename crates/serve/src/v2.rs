//! KServe's protocol, version 2, with Triton's extensions, over HTTP: what its documents mean.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response};
use tfrt_tensor::Tensor;

use crate::http::{Exchange, ModelCall, Payload, Upload};
use crate::model::Loaded;
use crate::refusal::Refusal;

pub(crate) mod data;
pub(crate) mod generate;
pub(crate) mod metadata;
pub(crate) mod parameters;
pub(crate) mod repository;
mod request;
pub(crate) mod response;
pub(crate) mod statistics;
pub(crate) mod tensors;

/// The header that says how many bytes of a body are JSON; what stands behind them are elements.
const JSON_LENGTH: &str = "inference-header-content-length";

/// Answers `POST /v2/models/NAME/infer`.
pub(crate) async fn infer(
    exchange: &Exchange,
    name: &str,
    version: Option<u64>,
    headers: &HeaderMap,
    upload: &mut Upload,
) -> Result<Response<Payload>, Refusal> {
    let length = json_length(headers);
    let n_json = length.clone().map(Option::unwrap_or_default);
    let (mut call, body) = ModelCall::begin(exchange, name, version, upload, n_json).await?;
    let request = match length? {
        Some(0) => request::raw(&call.model, body)?,
        length => request::parse(&call.model, body, length)?,
    };
    let inferred = call.infer(request.inputs, request.timeout).await??;
    let written = call.answer(inferred, |model, outputs| {
        let wanted = request.outputs.iter();
        let wanted = wanted.map(|wanted| (wanted.index, wanted.is_binary, &outputs[wanted.index]));
        let tensors: Vec<(usize, bool, &Tensor)> = wanted.collect();
        response::write(model, request.id.as_deref(), &tensors)
    })?;
    let mut response = Response::new(Payload::from(written.parts));
    let kind = match written.json_length {
        None => "application/json",
        Some(length) => {
            response
                .headers_mut()
                .insert(JSON_LENGTH, HeaderValue::from(length));
            "application/octet-stream"
        }
    };
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Reads the inputs of a body.
pub(crate) fn inputs_of(
    model: &Loaded,
    body: Bytes,
    json_length: Option<usize>,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    request::parse(model, body, json_length).map(|request| request.inputs)
}

/// Returns the length of the JSON in a body, if a header tells it.
pub(crate) fn json_length(headers: &HeaderMap) -> Result<Option<usize>, Refusal> {
    let Some(value) = headers.get(JSON_LENGTH) else {
        return Ok(None);
    };
    let length = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    length.map(Some).ok_or_else(|| {
        Refusal::invalid(format!(
            "header `Inference-Header-Content-Length` was expected to be a number of bytes, found '{}'",
            String::from_utf8_lossy(value.as_bytes()).escape_debug()
        ))
    })
}
