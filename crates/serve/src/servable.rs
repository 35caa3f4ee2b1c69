//! [`Servable`]: what answers requests, such as a model; [`Loader`]: what opens files as such.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, RequestContext};
use tfrt_tensor::{DType, Tensor};

/// A model with named inputs and outputs, all of them tensors. It is called from many threads at once.
pub trait Servable: Send + Sync + 'static {
    /// Returns the names and types of inputs and outputs, which never change.
    fn description(&self) -> &Description;

    /// Calls the model with tensors by the names of inputs, and returns a value for each output, in the order of the
    /// description, settled or to come. Cancelling the request, or its deadline, must fail those that are to come.
    ///
    /// Inputs that are missing, unknown, given twice or of the wrong type or shape fail all results with
    /// `InvalidArgument`.
    fn call(
        &self,
        request: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        place: Place,
    ) -> Vec<AnyAsyncValue>;
}

/// The thread on which a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The caller's, as far as the call goes without waiting: for calls that take less time than waking another thread.
    Here,
    /// A worker of the request's queue.
    Queue,
}

/// The names and types of a model's inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The format that the model has, as clients are told: `onnx`, `saved_model`.
    pub platform: String,
    /// The inputs, in order.
    pub inputs: Vec<TensorInfo>,
    /// The outputs, in order.
    pub outputs: Vec<TensorInfo>,
}

/// A named input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name.
    pub name: String,
    /// The type of the elements.
    pub dtype: DType,
    /// The extents, slowest first; `None` if not even their number is known.
    pub dims: Option<Vec<Dim>>,
}

/// One dimension of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// An extent.
    Fixed(usize),
    /// A symbolic dimension: any extent, the same wherever the name stands in one call.
    Symbol(String),
    /// Any extent.
    Unknown,
}

/// Opens files and folders as models.
pub trait Loader: Send + Sync + 'static {
    /// Returns whether a file or folder looks like one that [`load`](Self::load) takes, by its name and kind.
    fn recognises(&self, path: &Path) -> bool;

    /// Opens a model.
    ///
    /// # Errors
    ///
    /// Every reason why it can't be served, as a text of one or more lines that names no folder of the machine.
    fn load(&self, path: &Path) -> Result<Arc<dyn Servable>, String>;
}

impl Description {
    /// Returns the place of the output of a name.
    pub(crate) fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|output| output.name == name)
    }

    /// Returns the input of a name.
    pub(crate) fn input(&self, name: &str) -> Option<&TensorInfo> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

impl TensorInfo {
    /// Returns the extents as the protocols have them: -1 for one that is not fixed. A tensor of unknown rank has one of -1.
    pub(crate) fn shape(&self) -> Vec<i64> {
        let extent = |dim: &Dim| match dim {
            Dim::Fixed(extent) => i64::try_from(*extent).unwrap_or(i64::MAX),
            Dim::Symbol(_) | Dim::Unknown => -1,
        };
        match &self.dims {
            Some(dims) => dims.iter().map(extent).collect(),
            None => vec![-1],
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(extent) => extent.fmt(f),
            Dim::Symbol(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}
