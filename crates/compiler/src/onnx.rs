//! From a module in dialect `onnx` to a module of kernels, all passes at once.

use tfrt_ir::{Attribute, Diagnostics, Module};

use crate::pipeline::Pipeline;

/// Runs kernels while a graph is compiled.
///
/// Compilers know no kernels; who has some says by this what an operation on constants gives.
pub trait Evaluator {
    /// Calls `@main` of a module of kernels, which takes nothing.
    ///
    /// Returns for each of its results a constant as `onnx.Constant` has it in its attribute `value`,
    /// or nothing if there is none: since a kernel failed, is not there, or gave something that is no
    /// tensor.
    fn evaluate(&self, module: &Module) -> Vec<Option<Attribute>>;
}

/// Evaluates nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvaluator;

impl Evaluator for NoEvaluator {
    fn evaluate(&self, _: &Module) -> Vec<Option<Attribute>> {
        Vec::new()
    }
}

/// What [`pipeline`] does beyond what it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the graph is made faster before it is lowered.
    pub optimize: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { optimize: true }
    }
}

/// The passes, in order.
const OPTIMIZED: &str =
    "onnx-upgrade,onnx-shapes,onnx-fold,onnx-shapes,onnx-layout,onnx-fuse,lower-onnx";

/// Makes a program of a graph.
///
/// # Errors
///
/// Everything that is wrong with the graph, as the first pass that cannot go on finds it.
///
/// # Examples
///
/// ```
/// use tfrt_compiler::onnx::{NoEvaluator, Options, pipeline};
/// use tfrt_ir::{Source, parse};
///
/// let text = r#"func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
///   %y = "onnx.Relu"(%x) : (tensor<2xi8>) -> tensor<2xi8>
///   tfrt.return %y : tensor<2xi8>
/// }"#;
/// let mut module = parse(&Source::new("relu.mlir", text))?;
/// pipeline(&mut module, &Options::default(), &NoEvaluator)?;
/// assert!(module.to_string().contains("cpu.onnx.Relu"));
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
pub fn pipeline(
    module: &mut Module,
    options: &Options,
    evaluator: &dyn Evaluator,
) -> Result<Diagnostics, Diagnostics> {
    let _ = evaluator;
    let names = match options.optimize {
        true => OPTIMIZED,
        false => "onnx-upgrade,lower-onnx",
    };
    let passes = Pipeline::parse(names).expect("they are passes");
    passes.run(module)
}
