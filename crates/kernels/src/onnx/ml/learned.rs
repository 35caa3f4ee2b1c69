//! Operators that have all they know in attributes: these are read once, when a model is opened.
//!
//! ```mlir
//! %p = "cpu.pack.learned"() {attributes = [..], operator = "TreeEnsembleRegressor", opset = 3 : i64}
//!     : () -> !cpu.graph.learned
//! %y = "cpu.graph.learned"(%p, %x) {attributes = [], opset = 3 : i64} : (!cpu.graph.learned, !t.tensor) -> !t.tensor
//! ```
//!
//! The compiler makes these two of `onnx.ml.TreeEnsembleRegressor`; `cpu.onnx.ml.TreeEnsembleRegressor`, which does
//! both each time, is there, too.

use std::fmt;
use std::sync::Arc;

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Rest, ResultCount, Results};
use tfrt_host::{Error, ExecutionContext, Heap, Value};

use super::super::{Attributes, Beside, Inputs, Node, Outputs, add};
use super::{linear, maps, trees, vectors};

/// What was learned: calculates results as often as it is asked to.
pub(super) trait Learned: fmt::Debug + Send + Sync + 'static {
    /// Calculates the results of a node, whose attributes were read before.
    fn run(self: Arc<Self>, node: &Node<'_>) -> Result<Outputs, Error>;
}

/// Reads the attributes of a node, which has no operands yet.
type Prepare = fn(&Node<'_>) -> Result<Arc<dyn Learned>, Error>;

/// Operators by their names. The compiler has the same list, in its pass `onnx-upgrade`; a test of `tfrt` compares them.
const OPERATORS: [(&str, Prepare); 9] = [
    ("ml.CastMap", maps::cast_map),
    ("ml.DictVectorizer", maps::dict_vectorizer),
    ("ml.LinearClassifier", linear::classifier),
    ("ml.SVMClassifier", vectors::classifier),
    ("ml.SVMRegressor", vectors::regressor),
    ("ml.TreeEnsemble", trees::ensemble),
    ("ml.TreeEnsembleClassifier", trees::classifier),
    ("ml.TreeEnsembleRegressor", trees::regressor),
    ("ml.ZipMap", maps::zip_map),
];

/// Adds the kernels.
pub(in crate::onnx) fn register(registry: &mut KernelRegistry) {
    registry
        .add("cpu.pack.learned", pack)
        .add("cpu.graph.learned", run);
    for (name, prepare) in OPERATORS {
        add(registry, name, move |node| prepare(node)?.run(node));
    }
}

/// An operator that was read.
#[derive(Clone, Debug)]
struct Prepared {
    name: &'static str,
    learned: Arc<dyn Learned>,
}

impl Value for Prepared {
    const NAME: &'static str = "!cpu.graph.learned";
    type Storage = Heap;
}

/// `%p = "cpu.pack.learned"() {attributes = [..], operator = "SVMRegressor", opset = 1 : i64}`
fn pack(
    attributes: Attr<AttributeView<'_>>,
    operator: Attr<&str>,
    opset: Attr<i64>,
    execution: &ExecutionContext,
) -> Result<Prepared, Error> {
    let named = |(name, _): &&(&str, Prepare)| name.strip_prefix("ml.") == Some(*operator);
    let Some((name, prepare)) = OPERATORS.iter().find(named) else {
        let operator = operator.escape_debug();
        let message = format!("'{operator}' is no operator that is read when a model is opened");
        return Err(Error::invalid_argument(message));
    };
    let beside = Beside::new(name, execution);
    let node = Node {
        name,
        inputs: Inputs::new(name, &[], &beside),
        attributes: Attributes::new(name, *attributes)?,
        opset: *opset,
        n_results: 0,
        execution,
        beside: &beside,
    };
    let learned = prepare(&node)?;
    Ok(Prepared { name, learned })
}

/// `%y, .. = "cpu.graph.learned"(%p, %x, ..) {attributes = [], opset = 1 : i64}`
fn run(
    operands: Rest,
    attributes: Attr<AttributeView<'_>>,
    opset: Attr<i64>,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let prepared = operands.first().and_then(|value| value.get::<Prepared>());
    let Some(Prepared { name, learned }) = prepared else {
        return Err(Error::invalid_argument(
            "operand 0: expected an operator that was read",
        ));
    };
    let beside = Beside::new(name, execution);
    let node = Node {
        name,
        inputs: Inputs::new(name, &operands[1..], &beside),
        attributes: Attributes::new(name, *attributes)?,
        opset: *opset,
        n_results: n_results.0,
        execution,
        beside: &beside,
    };
    learned.clone().run(&node)?.into_results(&node)
}
