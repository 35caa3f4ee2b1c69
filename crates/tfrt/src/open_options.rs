//! [`OpenOptions`]: the options by which a model is opened.

use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_compiler::codes;
use tfrt_compiler::onnx::{self, HostNodes, PlacementReport, Precision};
use tfrt_ir::{Diagnostic, Diagnostics, similar};
use tfrt_tensor::math::packed_gemm::InstructionSet;

use crate::error::OpenError;
use crate::model::{Dim, ValueInfo};

/// Names of dimensions that a message has room for.
const MAX_LISTED: usize = 20;

/// The options by which a model is opened: sizes of its symbolic dimensions, whether its graph is optimized, and where
/// it runs.
///
/// [`Model::open_with`](crate::Model::open_with) and [`Runtime::open_model_with`](crate::Runtime::open_model_with) take it.
///
/// # Examples
///
/// A model of any number of rows, for rows in pairs:
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// use tfrt::{Model, OpenOptions, Runtime, Tensor};
///
/// let options = OpenOptions::new().dim("N", 2);
/// let model = Model::open_with("examples/layer.onnx", &options)?;
/// assert_eq!(model.inputs()[0].to_string(), "x: f32 [2, 2]");
///
/// // Another number of rows is refused at the call.
/// let x = Tensor::from_vec(&[3, 2], vec![1.0_f32; 6])?;
/// let error = model.call(&Runtime::shared().context(), [("x", x)]).wait().unwrap_err();
/// assert_eq!(error.message(), "input 'x' was expected to be f32 [2, 2], found f32 [3, 2]");
///
/// let error = Model::open_with("examples/layer.onnx", &OpenOptions::new().dim("M", 2)).unwrap_err();
/// assert_eq!(error.to_string(), "no input has a dimension 'M': the model has N");
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    dims: Vec<(String, usize)>,
    optimize: bool,
    quantize: bool,
    precision: Precision,
    device: Option<String>,
    strict_device: bool,
    warnings: Option<Warnings>,
    placements: Option<Placements>,
    signature: Option<String>,
    tags: Option<String>,
    weights: Vec<PathBuf>,
}

/// A list of reports that opening models for a device adds to ([`OpenOptions::placements`]). Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    told: Arc<Mutex<Vec<PlacementReport>>>,
}

impl Placements {
    /// Takes what is in the list.
    pub fn take(&self) -> Vec<PlacementReport> {
        mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PartialEq for Placements {
    fn eq(&self, other: &Placements) -> bool {
        Arc::ptr_eq(&self.told, &other.told)
    }
}

impl Eq for Placements {}

/// A list of warnings that opening models adds to ([`OpenOptions::warnings`]). Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    told: Arc<Mutex<Diagnostics>>,
}

impl Warnings {
    /// Takes what is in the list.
    pub fn take(&self) -> Diagnostics {
        mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, told: Diagnostics) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(told);
    }
}

impl PartialEq for Warnings {
    fn eq(&self, other: &Warnings) -> bool {
        Arc::ptr_eq(&self.told, &other.told)
    }
}

impl Eq for Warnings {}

impl OpenOptions {
    /// Creates options that fix no dimension and optimize.
    pub fn new() -> OpenOptions {
        OpenOptions {
            dims: Vec::new(),
            optimize: true,
            quantize: true,
            precision: Precision::F32,
            device: None,
            strict_device: false,
            warnings: None,
            placements: None,
            signature: None,
            tags: None,
            weights: Vec::new(),
        }
    }

    /// Adds a file of weights: the tensors of a `.safetensors` file become constants in place of arguments of a StableHLO
    /// module, which are found by the names in their locations, as `as_text(debug_info=True)` keeps them: the tensor
    /// `Dense_0.kernel`, `params.Dense_0.kernel` or `params/Dense_0/kernel` is the argument `p['params']['Dense_0']['kernel']`.
    /// Tensors that belong to no argument are not read. A model that is compiled already stays as it is.
    ///
    /// Opening fails if the file can't be read, if none of its tensors is an argument or the model is none of StableHLO, if a
    /// tensor may be several arguments, and if it has another type than its argument.
    #[must_use]
    pub fn weights(mut self, path: impl Into<PathBuf>) -> OpenOptions {
        self.weights.push(path.into());
        self
    }

    /// Returns the files of weights, in the order in which they were added.
    pub(crate) fn weight_files(&self) -> &[PathBuf] {
        &self.weights
    }

    /// Sets which function of the model is meant, where the format has several with names of their own: the signature of a SavedModel
    /// [default: `serving_default`]. Models of other formats have one alone, and ignore it.
    #[must_use]
    pub fn signature(mut self, name: impl Into<String>) -> OpenOptions {
        self.signature = Some(name.into());
        self
    }

    /// Sets which graph of the model is meant, where the format has several: that of a SavedModel with these tags and no others,
    /// with commas between them [default: `serve`, alone or among others]. Models of other formats have one alone, and ignore it.
    #[must_use]
    pub fn tags(mut self, tags: impl Into<String>) -> OpenOptions {
        self.tags = Some(tags.into());
        self
    }

    /// Returns the part of the model that is meant.
    pub(crate) fn part(&self) -> tfrt_import::Part<'_> {
        tfrt_import::Part {
            signature: self.signature.as_deref(),
            tags: self.tags.as_deref(),
        }
    }

    /// Fixes a symbolic dimension of the inputs to a size, wherever its name stands. Extents that follow from it are known
    /// when the model is compiled, and calls with inputs of another size fail. Of a model that is compiled already, only
    /// the latter holds.
    ///
    /// Opening fails if no input has a dimension of the name, if the size is 0, if one name is given twice, and if the
    /// type of an input says another size.
    #[must_use]
    pub fn dim(mut self, name: impl Into<String>, size: usize) -> OpenOptions {
        self.dims.push((name.into(), size));
        self
    }

    /// Sets whether the graph is made faster before it becomes a program: without, each node becomes one kernel. Default:
    /// `true`. A model that is compiled already stays as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    /// use tfrt::{Model, OpenOptions};
    ///
    /// let plain = OpenOptions::new().optimize(false);
    /// let model = Model::open_with("examples/layer.onnx", &plain)?;
    /// assert_eq!(model.inputs()[0].to_string(), "x: f32 [N, 2]");
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    #[must_use]
    pub fn optimize(mut self, optimize: bool) -> OpenOptions {
        self.optimize = optimize;
        self
    }

    /// Sets whether a graph that is made faster calculates with integers what a quantised model writes as floats between
    /// `DequantizeLinear` and `QuantizeLinear`: each quantised value is at most one step from what is written, given the same
    /// inputs. Default: `true`.
    #[must_use]
    pub fn quantize(mut self, quantize: bool) -> OpenOptions {
        self.quantize = quantize;
        self
    }

    /// Sets the precision of factors in products and convolutions by constant weights, of a graph that is made faster. With
    /// [`Precision::Bf16`] they are rounded to `bf16`, on processors that have AMX: about twice as fast for large models, and
    /// each result is off by about a part in 256 of its largest terms. On others nothing is rounded, which is a
    /// [warning](Self::warnings). Default: [`Precision::F32`].
    ///
    /// # Examples
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    /// use tfrt::{Model, OpenOptions, Precision};
    ///
    /// let fast = OpenOptions::new().precision(Precision::Bf16);
    /// let model = Model::open_with("examples/layer.onnx", &fast)?;
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> OpenOptions {
        self.precision = precision;
        self
    }

    /// Places nodes on a device of the runtime, by its name: those that it has kernels for
    /// ([`RuntimeBuilder::op_kernels`](crate::RuntimeBuilder::op_kernels)), where the types of their operands are known.
    /// All others run on the host, and tensors are copied where they go from one to the other. Weights are copied when the
    /// model is opened. A model that is compiled already stays as it is.
    ///
    /// Opening fails if the runtime has no such device. `examples/fake_device` has a model that runs half on a device.
    #[must_use]
    pub fn device(mut self, name: impl Into<String>) -> OpenOptions {
        self.device = Some(name.into());
        self
    }

    /// Sets whether a model is refused of which some nodes have no kernel on the [device](Self::device), instead of running
    /// these on the host; the error names them. Default: `false`. A model that is compiled already stays as it is.
    #[must_use]
    pub fn strict_device(mut self, strict: bool) -> OpenOptions {
        self.strict_device = strict;
        self
    }

    /// Sets where it is told which nodes of a model run on the [device](Self::device), which on the host, and how many tensors
    /// are copied between in each call. Default: nowhere.
    #[must_use]
    pub fn placements(mut self, placements: Placements) -> OpenOptions {
        self.placements = Some(placements);
        self
    }

    /// Hears how the nodes of a model were placed.
    ///
    /// # Errors
    ///
    /// The list of the nodes without a kernel on the device, if there are any and these are not to run elsewhere.
    pub(crate) fn placed(&self, report: &PlacementReport) -> Result<(), Diagnostics> {
        if let Some(Placements { told }) = &self.placements {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push(report.clone());
        }
        if !self.strict_device || report.on_host.is_empty() {
            return Ok(());
        }
        let listed = report.on_host.iter().take(MAX_LISTED);
        let mut listed: Vec<String> = listed.map(HostNodes::to_string).collect();
        match report.on_host.len() - listed.len() {
            0 => {}
            more => listed.push(format!("and {more} more")),
        }
        let (n, device) = (report.n_on_host(), report.device.escape_debug());
        let nodes = if n == 1 { "node has" } else { "nodes have" };
        let message = format!("{n} {nodes} no kernel on {device}: {}", listed.join("; "));
        let mut errors = Diagnostics::default();
        errors.push(Diagnostic::error(tfrt_compiler::codes::GRAPH, message));
        errors.into_result()
    }

    /// Returns the name of the device that nodes are placed on.
    pub fn device_name(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Sets where warnings go that are made while a model is compiled: on operations that fail whatever the inputs are. They
    /// keep no model from being opened, since the kernel may be more lenient. Default: nowhere. A graph that is not optimized
    /// is not looked at.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::input::Input;
    /// use tfrt::ir::Source;
    /// use tfrt::{OpenOptions, Runtime, Warnings};
    ///
    /// let text = r#"func.func @main(%x: tensor<2x3xf32>, %y: tensor<2xf32>) -> tensor<*xf32>
    ///     attributes {model.input_names = ["x", "y"], model.output_names = ["z"]} {
    ///   %z = "graph.add"(%x, %y) : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<*xf32>
    ///   tfrt.return %z : tensor<*xf32>
    /// }"#;
    /// let warnings = Warnings::default();
    /// let options = OpenOptions::new().warnings(warnings.clone());
    /// Runtime::shared().load_model_with(&Input::Text(Source::new("z.mlir", text)), &options)?;
    /// let told = warnings.take();
    /// let first = told.iter().next().unwrap().message();
    /// assert!(first.starts_with("'graph.add' op fails with any input: "), "{first}");
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    #[must_use]
    pub fn warnings(mut self, warnings: Warnings) -> OpenOptions {
        self.warnings = Some(warnings);
        self
    }

    /// Adds warnings to the list of [`OpenOptions::warnings`].
    pub(crate) fn warn(&self, told: Diagnostics) {
        if let Some(warnings) = &self.warnings {
            warnings.add(told);
        }
    }

    /// Returns the dimensions that are fixed, with their sizes, in the order in which they were given.
    pub fn dims(&self) -> &[(String, usize)] {
        &self.dims
    }

    /// Returns whether the graph is optimized.
    pub fn is_optimized(&self) -> bool {
        self.optimize
    }

    /// Returns whether what a quantised model writes as floats is calculated with integers.
    pub fn is_quantized(&self) -> bool {
        self.quantize
    }

    /// Returns the options of the passes; with `store` weights are packed for a file.
    pub(crate) fn passes(&self, store: bool) -> onnx::Options {
        onnx::Options {
            optimize: self.optimize,
            quantize: self.quantize,
            precision: self.precision,
            store,
        }
    }

    /// Warns of a precision that this processor can't calculate in.
    pub(crate) fn warn_of_precision(&self) {
        let is_there = InstructionSet::AmxBf16.is_available();
        if self.optimize && self.precision == Precision::Bf16 && !is_there {
            let message = "precision bf16: this processor has no AMX, or the system keeps it from this process; the model \
                           is calculated in f32";
            self.warn(Diagnostics::from(Diagnostic::warning(
                codes::NO_PRECISION,
                message,
            )));
        }
    }

    /// Returns the size that a dimension is fixed to.
    pub(crate) fn size_of(&self, name: &str) -> Option<usize> {
        let mut dims = self.dims.iter();
        dims.find(|(known, _)| known == name).map(|(_, size)| *size)
    }

    /// Checks that a model with these symbols can have the dimensions.
    pub(crate) fn check_dims(&self, symbols: &[Symbol<'_>]) -> Result<(), OpenError> {
        for (index, (name, size)) in self.dims.iter().enumerate() {
            let refused = |why: String| {
                let message = format!("dimension '{name}' can't be fixed to {size}: {why}");
                Err(OpenError::Dimension(message))
            };
            if self.dims[..index].iter().any(|(other, _)| other == name) {
                return Err(OpenError::Dimension(format!(
                    "dimension '{name}' is given twice"
                )));
            }
            if *size == 0 || i64::try_from(*size).is_err() {
                return refused(format!("expected a number from 1 to {}", i64::MAX));
            }
            let mut named = symbols.iter().filter(|symbol| symbol.name == name);
            if named.clone().next().is_none() {
                return Err(unknown(name, symbols));
            }
            let other = named.find_map(|symbol| {
                let found = symbol.size.filter(|found| found != size)?;
                Some((symbol.input, found))
            });
            if let Some((input, found)) = other {
                return refused(format!("it is {found} in input '{input}'"));
            }
        }
        Ok(())
    }

    /// Checks that no dimensions are fixed, of what is no model.
    pub(crate) fn check_without_model(&self) -> Result<(), OpenError> {
        match self.dims.first() {
            None => Ok(()),
            Some((name, size)) => Err(OpenError::Dimension(format!(
                "dimension '{name}' can't be fixed to {size}: the program is no model"
            ))),
        }
    }

    /// Fixes the dimensions in the types of inputs or outputs.
    pub(crate) fn fix(&self, values: &mut [ValueInfo]) {
        for value in values {
            for dim in value.kind.dims_mut() {
                if let Dim::Symbol(name) = dim
                    && let Some(size) = self.size_of(name)
                {
                    *dim = Dim::Fixed(size);
                }
            }
        }
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

/// A symbolic dimension of an input.
pub(crate) struct Symbol<'m> {
    pub(crate) name: &'m str,
    /// The name of the input.
    pub(crate) input: &'m str,
    /// The size in the input's type, if it has one.
    pub(crate) size: Option<usize>,
}

/// Returns the error of a name that no input has.
fn unknown(name: &str, symbols: &[Symbol<'_>]) -> OpenError {
    let mut names: Vec<&str> = Vec::new();
    for symbol in symbols {
        if !names.contains(&symbol.name) {
            names.push(symbol.name);
        }
    }
    let n_more = names.len().saturating_sub(MAX_LISTED);
    let listed = names[..names.len() - n_more].join(", ");
    let more = match n_more {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    let known = match names.is_empty() {
        true => "the sizes of all its inputs are fixed, or have no names".to_owned(),
        false => format!("the model has {listed}{more}"),
    };
    let nearest = similar::nearest(name, names.iter().copied());
    let nearest = nearest.map(|nearest| format!("; did you mean '{nearest}'?"));
    let nearest = nearest.unwrap_or_default();
    OpenError::Dimension(format!(
        "no input has a dimension '{name}': {known}{nearest}"
    ))
}
