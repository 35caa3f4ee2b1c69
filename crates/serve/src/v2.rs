//! KServe's protocol, version 2, with Triton's extensions, over HTTP: what its documents mean.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response};
use tfrt_tensor::Tensor;

use crate::http::{Exchange, Payload, Upload, read, unless_gone};
use crate::inference::{self, Surroundings, count_failure};
use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::traces::Trace;

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
    let shared = &exchange.shared;
    let model = shared.repository.find(name, version)?;
    let counted = Counted::new(&model, exchange.began, &exchange.trace);
    let ticket = Arc::new(shared.admit(upload.expected_bytes())?);
    let json_length = json_length(headers)?;
    let body = read(upload, &shared.limits, &ticket, json_length.unwrap_or(0)).await?;
    let request = match json_length {
        Some(0) => request::raw(&model, body)?,
        _ => request::parse(&model, body, json_length)?,
    };
    let surroundings = Surroundings {
        host: &shared.host,
        limits: &shared.limits,
        ticket: &ticket,
        began: exchange.began,
        timeout: request.timeout,
        trace: &exchange.trace,
    };
    counted.counts_itself();
    let call = inference::infer(&surroundings, &model, request.inputs);
    let inferred = unless_gone(&exchange.socket, call).await??;
    let writing = Instant::now();
    let tensors: Vec<(usize, bool, &Tensor)> = request
        .outputs
        .iter()
        .map(|wanted| {
            (
                wanted.index,
                wanted.is_binary,
                &inferred.outputs[wanted.index],
            )
        })
        .collect();
    let written = response::write(&model, request.id.as_deref(), &tensors);
    let written = written.inspect_err(|refusal| {
        count_failure(&model, exchange.began, &refusal.error);
    })?;
    let mut times = inferred.times;
    times.output = writing.elapsed();
    model.statistics.succeed(times, inferred.n_rows);
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

/// A guard that counts a request as failed when it is dropped before it is called.
pub(crate) struct Counted<'m> {
    model: Option<&'m Arc<Loaded>>,
    began: Instant,
}

impl<'m> Counted<'m> {
    /// Begins a request to a model, which its span names from now on.
    pub fn new(model: &'m Arc<Loaded>, began: Instant, trace: &Trace) -> Counted<'m> {
        trace.calls(model);
        Counted {
            model: Some(model),
            began,
        }
    }

    /// Leaves it to the call.
    pub fn counts_itself(mut self) {
        self.model = None;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(model) = self.model {
            model.statistics.fail(self.began.elapsed());
        }
    }
}
