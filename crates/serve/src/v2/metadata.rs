//! Descriptions of the server and of models, as documents of HTTP.

use serde::Serialize;

use crate::batch::Batching;
use crate::datatype::shown;
use crate::model::Loaded;
use crate::servable::TensorInfo;
use crate::server::Shared;

/// The extensions that the server has, by Triton's names.
pub(crate) const EXTENSIONS: &[&str] = &[
    "binary_tensor_data",
    "model_configuration",
    "model_repository",
    "statistics",
];

/// `GET /v2/health/live`. Triton's clients look at the status alone, KServe's at the member.
#[derive(Serialize)]
pub(crate) struct ServerLive {
    pub live: bool,
}

/// `GET /v2/health/ready`
#[derive(Serialize)]
pub(crate) struct ServerReady {
    pub ready: bool,
}

/// `GET /v2/models/NAME/ready`
#[derive(Serialize)]
pub(crate) struct Ready<'n> {
    pub name: &'n str,
    pub ready: bool,
}

/// `GET /v2`
#[derive(Serialize)]
pub(crate) struct Server<'s> {
    pub name: &'s str,
    pub version: &'s str,
    pub extensions: &'static [&'static str],
}

#[derive(Serialize)]
struct Model<'m> {
    name: &'m str,
    versions: Vec<String>,
    platform: &'m str,
    inputs: Vec<TensorDocument<'m>>,
    outputs: Vec<TensorDocument<'m>>,
}

#[derive(Serialize)]
struct TensorDocument<'m> {
    name: &'m str,
    datatype: &'static str,
    shape: Vec<i64>,
}

impl<'m> TensorDocument<'m> {
    fn of(info: &'m TensorInfo) -> TensorDocument<'m> {
        TensorDocument {
            name: &info.name,
            datatype: shown(info.dtype),
            shape: info.shape(),
        }
    }
}

#[derive(Serialize)]
struct Config<'m> {
    name: &'m str,
    platform: &'m str,
    backend: &'static str,
    max_batch_size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamic_batching: Option<DynamicBatching>,
    version_policy: VersionPolicyDocument,
    input: Vec<TensorConfig<'m>>,
    output: Vec<TensorConfig<'m>>,
}

/// How requests are joined, by the names that Triton has for it.
#[derive(Serialize)]
struct DynamicBatching {
    preferred_batch_size: [u32; 0],
    max_queue_delay_microseconds: u64,
}

#[derive(Serialize)]
struct VersionPolicyDocument {
    specific: Specific,
}

#[derive(Serialize)]
struct Specific {
    versions: Vec<u64>,
}

#[derive(Serialize)]
struct TensorConfig<'m> {
    name: &'m str,
    data_type: String,
    dims: Vec<i64>,
}

impl<'m> TensorConfig<'m> {
    fn of(model: &Loaded, info: &'m TensorInfo) -> TensorConfig<'m> {
        TensorConfig {
            name: &info.name,
            data_type: config_type(info),
            dims: config_dims(model, info),
        }
    }
}

/// Describes the server.
pub(crate) fn server(shared: &Shared) -> Server<'_> {
    Server {
        name: &shared.name,
        version: env!("CARGO_PKG_VERSION"),
        extensions: EXTENSIONS,
    }
}

/// Describes a model, of which these versions are ready.
pub(crate) fn model(model: &Loaded, versions: &[u64]) -> impl Serialize {
    let description = model.description();
    Model {
        name: &model.name,
        versions: versions.iter().map(u64::to_string).collect(),
        platform: &description.platform,
        inputs: description.inputs.iter().map(TensorDocument::of).collect(),
        outputs: description.outputs.iter().map(TensorDocument::of).collect(),
    }
}

/// Returns the name that configurations have for a type of elements.
pub(crate) fn config_type(info: &TensorInfo) -> String {
    match shown(info.dtype) {
        "BYTES" => "TYPE_STRING".to_owned(),
        name => format!("TYPE_{name}"),
    }
}

/// Returns the extents that configurations have: without that of batches, where requests are joined.
pub(crate) fn config_dims(model: &Loaded, info: &TensorInfo) -> Vec<i64> {
    let mut shape = info.shape();
    if model.batcher.is_some() {
        shape.remove(0);
    }
    shape
}

/// Returns the time that a request waits for others, in the unit of configurations.
pub(crate) fn delay_us(batching: &Batching) -> u64 {
    u64::try_from(batching.max_delay.as_micros()).unwrap_or(u64::MAX)
}

/// Describes a model as a configuration does. Where requests are not joined, batches stand in the shapes themselves, so
/// that `max_batch_size` is 0.
pub(crate) fn config(model: &Loaded) -> impl Serialize {
    let description = model.description();
    let batching = model.batching();
    let tensor = |info| TensorConfig::of(model, info);
    Config {
        name: &model.name,
        platform: &description.platform,
        backend: "tfrt",
        max_batch_size: batching.map_or(0, |batching| batching.max_rows),
        dynamic_batching: batching.map(|batching| DynamicBatching {
            preferred_batch_size: [],
            max_queue_delay_microseconds: delay_us(batching),
        }),
        version_policy: VersionPolicyDocument {
            specific: Specific {
                versions: vec![model.version],
            },
        },
        input: description.inputs.iter().map(tensor).collect(),
        output: description.outputs.iter().map(tensor).collect(),
    }
}
