//! Descriptions of the server and of models, as documents of HTTP.

use serde::Serialize;

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
    max_batch_size: u32,
    version_policy: VersionPolicyDocument,
    input: Vec<TensorConfig<'m>>,
    output: Vec<TensorConfig<'m>>,
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
    fn of(info: &'m TensorInfo) -> TensorConfig<'m> {
        TensorConfig {
            name: &info.name,
            data_type: config_type(info),
            dims: info.shape(),
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

/// Describes a model as a configuration does. Batches stand in the shapes themselves, so that `max_batch_size` is 0.
pub(crate) fn config(model: &Loaded) -> impl Serialize {
    let description = model.description();
    Config {
        name: &model.name,
        platform: &description.platform,
        backend: "tfrt",
        max_batch_size: 0,
        version_policy: VersionPolicyDocument {
            specific: Specific {
                versions: vec![model.version],
            },
        },
        input: description.inputs.iter().map(TensorConfig::of).collect(),
        output: description.outputs.iter().map(TensorConfig::of).collect(),
    }
}
