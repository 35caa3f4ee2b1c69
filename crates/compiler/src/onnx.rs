//! From a graph to a module of kernels, all passes at once.

use tfrt_bef::DType;
use tfrt_ir::{Attribute, Diagnostics, Module, Name};

use crate::legalize::Context;
use crate::pipeline::Pipeline;

/// Runs kernels while a graph is compiled.
///
/// Compilers know no kernels; who has some says by this what an operation on constants gives.
pub trait Evaluator {
    /// Calls `@main` of a module of kernels, which takes nothing.
    ///
    /// Returns what stands for each of its results, or nothing where nothing does: since a kernel failed,
    /// or gave what no file can hold. The list is empty if the module can't be called at all.
    fn evaluate(&self, module: &Module) -> Vec<Option<EvaluatedValue>>;

    /// Returns whether there is a kernel for a row.
    fn has_kernel(&self, _row: &str) -> bool {
        true
    }

    /// Returns the device that nodes are placed on where there are kernels for them, if there is one beside the host.
    fn device(&self) -> Option<Placement> {
        None
    }

    /// Returns whether a kernel runs a row on that device, for operands of these types, as far as they are known.
    fn runs_on_device(&self, _row: &str, _types: &[Option<DType>]) -> bool {
        false
    }

    /// Returns what the kernel of a row makes of constants when a model is opened, if it makes anything.
    fn prepares(&self, _row: &str) -> Option<PrepareRule> {
        None
    }

    /// Returns the same of the kernel that runs a row on that device, for operands of these types.
    fn prepares_on_device(&self, _row: &str, _types: &[Option<DType>]) -> Option<PrepareRule> {
        None
    }
}

/// A device that nodes are placed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its name, by which a program finds it.
    pub name: String,
    /// Its kind, which the names of its kernels begin with.
    pub kind: String,
}

/// The constants that a kernel prepares once, when a model is opened, and calls use from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareRule {
    /// The operands, by their places. All that are not left out must be constants.
    pub inputs: &'static [usize],
    /// The types of elements that the first of them may have; any if there are none.
    pub types: &'static [DType],
    /// Whether it takes the attributes, too: then calls have none.
    pub takes_attributes: bool,
}

/// What stands for a value that was made while a graph was compiled.
#[derive(Clone, Debug)]
pub enum EvaluatedValue {
    /// A tensor: the attribute `value` of an `onnx.Constant`.
    Constant(Attribute),
    /// A value of another type: the kernel that makes it again, which takes attributes alone.
    StoredWeights {
        /// Its name.
        kernel: Name,
        /// Its attributes.
        attributes: Vec<(Name, Attribute)>,
    },
}

/// Has no kernels: nothing is evaluated, prepared or fused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvaluator;

impl Evaluator for NoEvaluator {
    fn evaluate(&self, _: &Module) -> Vec<Option<EvaluatedValue>> {
        Vec::new()
    }
}

/// What [`pipeline`] does beyond what it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the graph is made faster before it is lowered.
    pub optimize: bool,
    /// Whether packed weights are made now, for a file, and not when the model is opened.
    pub store: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            optimize: true,
            store: false,
        }
    }
}

/// The passes, in order.
const OPTIMIZED: &str = "legalize,onnx-upgrade,onnx-to-graph,graph-infer,graph-fold,graph-infer,graph-place,graph-layout,graph-fuse,graph-prepare,graph-lower";

/// Makes a program of a graph.
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
        true => OPTIMIZED,
        false if is_placed => {
            "legalize,onnx-upgrade,onnx-to-graph,graph-infer,graph-place,graph-prepare,graph-lower"
        }
        false => "legalize,onnx-upgrade,onnx-to-graph,graph-prepare,graph-lower",
    };
    let store = if options.store { ",graph-store" } else { "" };
    let passes = Pipeline::parse(&format!("{names}{store}")).expect("they are passes");
    passes.run_with(module, context, &mut |_, _| {})
}
