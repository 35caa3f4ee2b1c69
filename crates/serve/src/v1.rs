//! TensorFlow Serving's protocol over HTTP: status, metadata, and `predict` by rows and by columns.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tfrt_tensor::Tensor;

use crate::http::{Exchange, ModelCall, Payload, Upload, json_text};
use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::repository::IndexEntry;
use crate::servable::{Dim, TensorInfo};
use crate::server::Shared;
use crate::v2::data;

mod column;
pub(crate) mod types;
mod write;

/// The only function of a model that is served.
pub(crate) const SIGNATURE: &str = "serving_default";

/// The kind of that function.
pub(crate) const METHOD: &str = "tensorflow/serving/predict";

#[derive(Deserialize)]
struct Document<'b> {
    #[serde(borrow, default)]
    signature_name: Option<Cow<'b, str>>,
    #[serde(borrow, default)]
    instances: Option<&'b RawValue>,
    #[serde(borrow, default)]
    inputs: Option<&'b RawValue>,
}

/// Answers `POST /v1/models/NAME:predict`.
pub(crate) async fn predict(
    exchange: &Exchange,
    name: &str,
    version: Option<u64>,
    upload: &mut Upload,
) -> Result<Response<Payload>, Refusal> {
    let (mut call, body) = ModelCall::begin(exchange, name, version, upload, Ok(0)).await?;
    let (by_rows, inputs) = inputs_of(&call.model, &body)?;
    drop(body);
    let inferred = call.infer(inputs, None).await??;
    let written = call.answer(inferred, |model, outputs| match by_rows {
        true => write::rows(model.description(), outputs),
        false => write::columns(model.description(), outputs),
    })?;
    Ok(json_text(written.into()))
}

/// Reads the inputs of a request, and whether they are rows.
pub(crate) fn inputs_of(
    model: &Loaded,
    body: &Bytes,
) -> Result<(bool, Vec<(String, Tensor)>), Refusal> {
    let description = model.description();
    let repaired = data::with_non_finite_as_strings(body);
    let text = repaired.as_deref().unwrap_or(body);
    let document: Document<'_> = serde_json::from_slice(text)
        .map_err(|error| Refusal::invalid(format!("failed to parse the request JSON: {error}")))?;
    check_signature(document.signature_name.as_deref().unwrap_or_default())?;
    match (document.instances, document.inputs) {
        (Some(rows), None) => Ok((true, column::of_rows(description, rows.get())?)),
        (None, Some(columns)) => Ok((false, column::of_columns(description, columns.get())?)),
        (Some(_), Some(_)) => Err(Refusal::invalid(
            "expected `instances` or `inputs`, found both",
        )),
        (None, None) => Err(Refusal::invalid(
            "expected `instances`, which are rows, or `inputs`, which are columns, found neither",
        )),
    }
}

/// Checks the function of a model that a request names, if it does.
pub(crate) fn check_signature(name: &str) -> Result<(), Refusal> {
    match name {
        "" | SIGNATURE => Ok(()),
        other => Err(Refusal::invalid(format!(
            "there is no signature '{}': the model has '{SIGNATURE}'",
            other.escape_debug()
        ))),
    }
}

/// Returns the versions of a model that are known, or the one of a number.
pub(crate) fn versions(
    shared: &Shared,
    name: &str,
    version: Option<u64>,
) -> Result<Vec<IndexEntry>, Refusal> {
    let entries = shared.repository.index().into_iter();
    let own = entries.filter(|entry| entry.name == name);
    let own: Vec<IndexEntry> = own
        .filter(|entry| version.is_none_or(|version| entry.version == version))
        .collect();
    if own.is_empty() {
        let version = version
            .map(|version| format!(" version {version}"))
            .unwrap_or_default();
        return Err(Refusal::not_found(format!(
            "Could not find any versions of model '{}'{version}",
            name.escape_debug()
        )));
    }
    Ok(own)
}

/// Describes the states of the versions of a model.
pub(crate) fn status(shared: &Shared, name: &str, version: Option<u64>) -> Result<Value, Refusal> {
    let own = versions(shared, name, version)?;
    let line = |entry: &IndexEntry| {
        let (state, code) = match (entry.is_ready, entry.reason.is_empty()) {
            (true, _) => ("AVAILABLE", "OK"),
            (false, _) => ("END", "UNKNOWN"),
        };
        let message = match entry.is_ready {
            true => "",
            false => &entry.reason,
        };
        json!({
            "version": entry.version.to_string(),
            "state": state,
            "status": {"error_code": code, "error_message": message},
        })
    };
    Ok(json!({ "model_version_status": own.iter().map(line).collect::<Vec<_>>() }))
}

/// Describes the inputs and outputs of a model.
pub(crate) fn metadata(model: &Loaded) -> Value {
    let tensor = |info: &TensorInfo| {
        let size = |dim: &Dim| match dim {
            Dim::Fixed(extent) => json!({"size": extent.to_string(), "name": ""}),
            Dim::Symbol(name) => json!({"size": "-1", "name": name}),
            Dim::Unknown => json!({"size": "-1", "name": ""}),
        };
        let dims: Vec<Value> = info.dims.iter().flatten().map(size).collect();
        json!({
            "dtype": types::name_of(info.dtype),
            "tensor_shape": {"dim": dims, "unknown_rank": info.dims.is_none()},
            "name": info.name,
        })
    };
    let tensors = |infos: &[TensorInfo]| -> serde_json::Map<String, Value> {
        infos
            .iter()
            .map(|info| (info.name.clone(), tensor(info)))
            .collect()
    };
    let description = model.description();
    let signature = json!({
        "inputs": tensors(&description.inputs),
        "outputs": tensors(&description.outputs),
        "method_name": METHOD,
    });
    json!({
        "model_spec": {"name": &*model.name, "signature_name": "", "version": model.version.to_string()},
        "metadata": {"signature_def": {"signature_def": {SIGNATURE: signature}}},
    })
}
