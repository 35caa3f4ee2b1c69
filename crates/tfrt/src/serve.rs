//! A model server (feature `serve`): [`ModelLoader`] opens models of all formats for a [`Repository`], and a [`Model`] is
//! something that a [`Server`] serves.
//!
//! # Examples
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tfrt::Runtime;
//! use tfrt::serve::{ModelLoader, Repository, Server, Source, VersionPolicy};
//!
//! let runtime = Runtime::new();
//! let layer = Source::Model { name: None, path: "examples/layer.onnx".into() };
//! let loader = Arc::new(ModelLoader::new(&runtime));
//! let repository = Repository::new(loader, vec![layer], VersionPolicy::default());
//! for verdict in repository.load_all()? {
//!     assert_eq!((&verdict.name[..], verdict.reason), ("layer", None));
//! }
//! let server = Server::builder(runtime.host(), repository).listen("127.0.0.1:0")?.start()?;
//! println!("curl http://{}/v2/models/layer", server.addresses()[0]);
//! server.stop(Duration::from_secs(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, RequestContext};
use tfrt_import::FileHead;
pub use tfrt_serve::*;
use tfrt_tensor::Tensor;

use crate::context::Context;
use crate::error::AnyError;
use crate::model::{self, Model, ValueInfo};
use crate::open_options::OpenOptions;
use crate::runtime::Runtime;

/// The endings of files of models that are of no format: programs that were compiled, and text.
const PROGRAMS: [&str; 2] = ["bef", "mlir"];

/// Opens models in all formats of a runtime.
#[derive(Clone, Debug)]
pub struct ModelLoader {
    runtime: Runtime,
    options: OpenOptions,
}

impl ModelLoader {
    /// Makes a loader, whose models run on a runtime.
    pub fn new(runtime: &Runtime) -> ModelLoader {
        ModelLoader {
            runtime: runtime.clone(),
            options: OpenOptions::new(),
        }
    }

    /// Sets the options by which models are opened.
    pub fn options(mut self, options: OpenOptions) -> ModelLoader {
        self.options = options;
        self
    }
}

impl Loader for ModelLoader {
    fn recognises(&self, path: &Path) -> bool {
        let formats = self.runtime.formats();
        let head = FileHead {
            bytes: &[],
            path: Some(path),
            is_folder: path.is_dir(),
        };
        if head.is_folder {
            return formats.recognise(&head).is_some();
        }
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        let is_program = suffix.is_some_and(|suffix| PROGRAMS.contains(&suffix));
        is_program || formats.of_name(path).is_some()
    }

    fn load(&self, path: &Path) -> Result<Arc<dyn Servable>, String> {
        let opened = self.runtime.open_model_with(path, &self.options);
        let model = opened.map_err(|error| {
            let problems = AnyError::from(error).problems();
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            // Clients read this, too, who are not told where on the machine models lie.
            let (whole, name) = (path.to_string_lossy(), path.file_name().unwrap_or_default());
            lines.join("\n").replace(&*whole, &name.to_string_lossy())
        })?;
        let platform = match path.extension().and_then(|suffix| suffix.to_str()) {
            _ if path.is_dir() => "tensorflow_savedmodel",
            Some("onnx") => "onnxruntime_onnx",
            _ => "tfrt",
        };
        Ok(Arc::new(ServedModel::new(model, platform)?))
    }
}

/// A model of which all inputs and outputs are tensors.
struct ServedModel {
    model: Model,
    description: Description,
}

impl ServedModel {
    fn new(model: Model, platform: &str) -> Result<ServedModel, String> {
        let described = |kind: &str, values: &[ValueInfo]| -> Result<Vec<TensorInfo>, String> {
            values.iter().map(|value| described(kind, value)).collect()
        };
        let description = Description {
            platform: platform.to_owned(),
            inputs: described("input", model.inputs())?,
            outputs: described("output", model.outputs())?,
        };
        Ok(ServedModel { model, description })
    }
}

fn described(kind: &str, value: &ValueInfo) -> Result<TensorInfo, String> {
    let tensor = value.kind.as_tensor();
    let tensor =
        tensor.ok_or_else(|| format!("{kind} `{value}` is no tensor, and can't be served"))?;
    let dtype = tensor.element;
    let dtype = dtype.ok_or_else(|| {
        format!("{kind} `{value}` has elements of no known type, and can't be served")
    })?;
    let dim = |dim: &model::Dim| match dim {
        model::Dim::Fixed(extent) => Dim::Fixed(*extent),
        model::Dim::Symbol(name) => Dim::Symbol(name.clone()),
        model::Dim::Unknown => Dim::Unknown,
    };
    Ok(TensorInfo {
        name: value.name.clone(),
        dtype,
        dims: tensor
            .dims
            .as_ref()
            .map(|dims| dims.iter().map(dim).collect()),
    })
}

impl Servable for ServedModel {
    fn description(&self) -> &Description {
        &self.description
    }

    fn call(
        &self,
        request: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        place: Place,
    ) -> Vec<AnyAsyncValue> {
        let context = Context::from(request.clone());
        let call = match place {
            Place::Here => self.model.call(&context, inputs),
            Place::Queue => self.model.spawn(&context, inputs),
        };
        call.into_call().into_results()
    }
}
