//! The repository of models: its index, and loading and unloading, if the server allows these.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tfrt_host::{Error, ErrorCode};

use crate::refusal::Refusal;
use crate::server::Shared;

#[derive(Deserialize, Default)]
struct IndexRequest {
    #[serde(default)]
    ready: bool,
}

#[derive(Serialize)]
struct IndexDocument {
    name: String,
    version: String,
    state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

#[derive(Deserialize, Default)]
struct ChangeRequest {
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
}

/// Reads a document, of which nothing at all is one without members.
fn document<'b, T: Deserialize<'b> + Default>(body: &'b Bytes) -> Result<T, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    serde_json::from_slice(body)
        .map_err(|error| Refusal::invalid(format!("failed to parse the request JSON: {error}")))
}

/// Returns the name of the state of a version.
pub(crate) fn state_of(is_ready: bool) -> &'static str {
    match is_ready {
        true => "READY",
        false => "UNAVAILABLE",
    }
}

/// Answers `POST /v2/repository/index`.
pub(crate) fn index(shared: &Shared, body: &Bytes) -> Result<impl Serialize + use<>, Refusal> {
    let request: IndexRequest = document(body)?;
    let entries = shared.repository.index().into_iter();
    let entries = entries.filter(|entry| entry.is_ready || !request.ready);
    let line = |entry: crate::repository::IndexEntry| IndexDocument {
        name: entry.name,
        version: entry.version.to_string(),
        state: state_of(entry.is_ready),
        reason: entry.reason,
    };
    Ok(entries.map(line).collect::<Vec<_>>())
}

/// Answers `POST /v2/repository/models/NAME/load` and `unload`.
pub(crate) async fn change(
    shared: &Arc<Shared>,
    name: &str,
    loads: bool,
    body: &Bytes,
) -> Result<(), Refusal> {
    let request: ChangeRequest = document(body)?;
    let parameters = request.parameters.unwrap_or_default();
    let overrides = |key: &&String| key.starts_with("file:") || *key == "config";
    if let Some(parameter) = parameters.keys().find(overrides) {
        return Err(Refusal::unimplemented(format!(
            "parameter `{}`: this server loads what its repository has",
            parameter.escape_debug()
        )));
    }
    change_model(shared, name, loads).await
}

/// Loads or unloads a model, on a thread of its own.
pub(crate) async fn change_model(
    shared: &Arc<Shared>,
    name: &str,
    loads: bool,
) -> Result<(), Refusal> {
    if !shared.allows_changes {
        let message = "this server does not load and unload models: `--allow-repository` lets it";
        return Err(Error::new(ErrorCode::PermissionDenied, message).into());
    }
    let (shared, name) = (shared.clone(), name.to_owned());
    let changed = tokio::task::spawn_blocking(move || match loads {
        true => shared.repository.load(&name),
        false => {
            shared.repository.unload(&name);
            Ok(())
        }
    });
    changed
        .await
        .unwrap_or_else(|_| Err(Error::internal("loading the model has panicked").into()))
}
