//! The pipeline from a graph to a program of kernels, and the interface to those who run kernels meanwhile.

use std::fmt;
use std::str::FromStr;

use tfrt_bef::DType;
use tfrt_ir::{Attribute, Diagnostics, Module, Name};
use tfrt_ops::KernelQuery;

use crate::legalize::Context;
use crate::pipeline::Pipeline;

/// An interface to run kernels while a graph is compiled.
///
/// Compilers know no kernels; who has some says by this what an operation on constants gives.
pub trait Evaluator {
    /// Calls `@main` of a module of kernels, which takes no arguments.
    ///
    /// Returns what stands for each of its results, or nothing where nothing does: since a kernel failed,
    /// or gave what no file can hold. The list is empty if the module can't be called at all.
    fn evaluate(&self, module: Module) -> Vec<Option<EvaluatedValue>>;

    /// Returns whether there is a kernel for a row.
    fn has_kernel(&self, _row: &str) -> bool {
        true
    }

    /// Returns the device on which nodes are placed where it has kernels for them, if there is one beside the host.
    fn device(&self) -> Option<Placement> {
        None
    }

    /// Returns whether the device has a kernel for a node.
    fn runs_on_device(&self, _node: &KernelQuery<'_>) -> bool {
        false
    }

    /// Returns the places of the operands that the device's kernel for a node reads on the host: extents, positions.
    fn read_on_host(&self, _node: &KernelQuery<'_>) -> &'static [usize] {
        &[]
    }

    /// Returns whether the device has a kernel for sections: functions of nodes that run there without the host in between.
    fn replays_sections(&self) -> bool {
        false
    }

    /// Hears which nodes were placed on the device, and which were not.
    fn placed(&self, _report: PlacementReport) {}

    /// Returns the constants that the kernel of a row prepares when a model is opened, if it prepares any.
    fn prepares(&self, _row: &str) -> Option<PrepareRule> {
        None
    }

    /// Returns the constants that the device's kernel for a node prepares, if it prepares any.
    fn prepares_on_device(&self, _node: &KernelQuery<'_>) -> Option<PrepareRule> {
        None
    }
}

/// The device on which nodes are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The device's name, by which a program finds it.
    pub name: String,
    /// The device's kind, with which the names of its kernels begin.
    pub kind: String,
}

/// The nodes of a model that run on a device beside the host, those that don't, and the copies that this costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementReport {
    /// The device's name.
    pub device: String,
    /// The number of nodes that run on the device.
    pub n_placed: usize,
    /// The nodes that run on the host in each call since the device has no kernel for them, by kinds, in the order of their
    /// names.
    pub on_host: Vec<HostNodes>,
    /// The number of nodes that stay on the host though the device has a kernel, or needs none: they calculate integers of
    /// the host, or ask for extents.
    pub n_kept: usize,
    /// The number of tensors that each call copies to the device. Constants are copied when the model is opened.
    pub n_copies_there: usize,
    /// The number of tensors that each call copies from the device.
    pub n_copies_back: usize,
}

/// Nodes of one kind that a device has no kernel for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostNodes {
    /// The name of the operation, with its attribute `kind` if it has one: `conv`, `reduce any`.
    pub operation: String,
    /// The types of the operands' elements, as far as they are known.
    pub types: Vec<Option<DType>>,
    /// The number of such nodes.
    pub count: usize,
}

impl PlacementReport {
    /// Returns the number of nodes that the device has no kernel for.
    pub fn n_on_host(&self) -> usize {
        self.on_host.iter().map(|nodes| nodes.count).sum()
    }

    /// Adds a node that runs on the host.
    pub(crate) fn keep(&mut self, operation: String, types: Vec<Option<DType>>) {
        let place = |nodes: &HostNodes| (&nodes.operation, &nodes.types).cmp(&(&operation, &types));
        match self.on_host.binary_search_by(place) {
            Ok(index) => self.on_host[index].count += 1,
            Err(index) => {
                let nodes = HostNodes {
                    operation,
                    types,
                    count: 1,
                };
                self.on_host.insert(index, nodes);
            }
        }
    }
}

impl fmt::Display for HostNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |dtype: &Option<DType>| dtype.map_or_else(|| "?".to_owned(), |dtype| dtype.to_string());
        let types: Vec<String> = self.types.iter().map(name).collect();
        write!(f, "{} ({})", self.operation, types.join(", "))?;
        match self.count {
            1 => Ok(()),
            count => write!(f, ", {count} nodes"),
        }
    }
}

/// The constants that a kernel prepares once, when a model is opened, for all calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareRule {
    /// The indices of the operands that are prepared. All that are not left out must be constants.
    pub inputs: &'static [usize],
    /// The element types that the first of the operands may have; any if the list is empty.
    pub types: &'static [DType],
    /// Whether preparation takes the attributes, too: then calls have none.
    pub takes_attributes: bool,
}

/// A value that was calculated while a graph was compiled, in the form that a module holds.
#[derive(Clone, Debug)]
pub enum EvaluatedValue {
    /// A tensor: the attribute `value` of an `onnx.Constant`.
    Constant(Attribute),
    /// A value of another type, such as packed weights: a kernel without operands that makes the value from its
    /// attributes.
    StoredWeights {
        /// The kernel's name.
        kernel: Name,
        /// The kernel's attributes.
        attributes: Vec<(Name, Attribute)>,
    },
}

/// An evaluator without kernels: nothing is evaluated, prepared or fused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvaluator;

impl Evaluator for NoEvaluator {
    fn evaluate(&self, _: Module) -> Vec<Option<EvaluatedValue>> {
        Vec::new()
    }
}

/// The precision in which factors of products and convolutions are taken; sums are of `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As they are.
    #[default]
    F32,
    /// Rounded to `bf16`: 8 bits of 24 are left.
    Bf16,
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Precision, String> {
        match text {
            "f32" => Ok(Precision::F32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err(format!(
                "expected f32 or bf16, found '{}'",
                text.escape_debug()
            )),
        }
    }
}

/// Options of [`pipeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the graph is optimised before it is lowered.
    pub optimize: bool,
    /// Whether an optimised graph calculates with integers what is written between `dequantize` and `quantize`: results may
    /// differ by a step from what is written.
    pub quantize: bool,
    /// The precision of factors in an optimised graph's products and convolutions by constant weights.
    pub precision: Precision,
    /// Whether weights are packed now, for a file, and not when the model is opened.
    pub store: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            optimize: true,
            quantize: true,
            precision: Precision::F32,
            store: false,
        }
    }
}

/// The passes of an optimising pipeline, in order: those up to knowing types, those behind `graph-quantize`, and those behind
/// `graph-quantize-sums`.
const OPTIMIZED: [&str; 3] = [
    "legalize,onnx-upgrade,onnx-to-graph,graph-infer",
    "graph-fold,graph-infer,graph-simplify,tf-to-graph,graph-place,graph-layout",
    "graph-fuse,graph-prepare,graph-lower",
];

/// Compiles a graph to a program of kernels.
///
/// # Errors
///
/// Everything that is wrong with the graph, as the first pass that cannot go on finds it.
///
/// # Examples
///
/// ```
/// use tfrt_compiler::legalize::Context;
/// use tfrt_compiler::onnx::{NoEvaluator, Options, pipeline};
/// use tfrt_ir::{Source, parse};
///
/// let text = r#"func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
///   %y = "onnx.Relu"(%x) : (tensor<2xi8>) -> tensor<2xi8>
///   tfrt.return %y : tensor<2xi8>
/// }"#;
/// let mut module = parse(&Source::new("relu.mlir", text))?;
/// pipeline(&mut module, &Options::default(), &Context::new(&NoEvaluator))?;
/// assert!(module.to_string().contains("cpu.graph.relu"));
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
pub fn pipeline(
    module: &mut Module,
    options: &Options,
    context: &Context<'_>,
) -> Result<Diagnostics, Diagnostics> {
    // What is placed is chosen by types.
    let is_placed = context.evaluator.device().is_some();
    let names = match options.optimize {
        true => {
            let [typed, laid_out, lowered] = OPTIMIZED;
            let (products, sums) = match (options.quantize, is_placed) {
                (false, _) => ("", ""),
                (true, true) => ("", "graph-quantize-sums,"),
                (true, false) => ("graph-quantize,", "graph-quantize-sums,"),
            };
            &format!("{typed},{products}{laid_out},{sums}{lowered}")
        }
        false if is_placed => {
            "legalize,onnx-upgrade,onnx-to-graph,graph-infer,graph-place,graph-prepare,graph-lower"
        }
        false => "legalize,onnx-upgrade,onnx-to-graph,graph-prepare,graph-lower",
    };
    let names = match options.precision {
        Precision::Bf16 if options.optimize => {
            &names.replace(",graph-lower", ",graph-bf16,graph-lower")
        }
        _ => names,
    };
    let names = match is_placed && context.evaluator.replays_sections() {
        true => &names.replace(",graph-lower", ",graph-section,graph-lower"),
        false => names,
    };
    let store = if options.store { ",graph-store" } else { "" };
    let passes = Pipeline::parse(&format!("{names}{store}")).expect("they are passes");
    passes.run_with(module, context, &mut |_, _| {})
}
