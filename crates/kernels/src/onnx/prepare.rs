//! Preparation of constants, once for each node of a model: `cpu.graph.prepare`.
//!
//! ```mlir
//! %p = "cpu.graph.prepare"(%none, %w, %r) {attributes = [..], op = "rnn", opset = 27 : i64} : (..) -> !graph.prepared
//! %y = "cpu.graph.rnn"(%x, %p) {attributes = [..]} : (..) -> !t.tensor
//! ```
//!
//! The compiler makes these two of a `graph.rnn` whose weights are constants. What was prepared is the last operand of
//! the kernel; the operands that it stands for are not among the others.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tfrt_host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Rest};
use tfrt_host::{AnyAsyncValue, DType, Error, ExecutionContext, Value};
use tfrt_tensor::op::{Prepared, PreparedState};

use super::{
    Attributes, Inputs, NodeCall, Outputs, Workspace, conv, matmul, microsoft, ml, rnn, rows,
    tokenizer,
};
use crate::graph;

/// A kernel with its constants in a form of its own, which runs any number of times.
pub(super) trait PreparedKernel: fmt::Debug + Send + Sync + 'static {
    /// Runs a node, whose constants are left out.
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error>;

    /// Writes the prepared form for a file, laid out for the encoder's target; `None` if files keep the constants
    /// instead.
    fn encode(&self, _: &mut Encoder) -> Option<Result<(), Error>> {
        None
    }
}

/// A function that prepares the constants of a node, whose other operands are left out.
pub(crate) type MakeState = fn(&NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error>;

/// A function that reads the form which [`PreparedState::encode`] wrote.
type RestoreState =
    fn(&mut Decoder<'_>, &DecodeContext<'_>) -> Result<Arc<dyn PreparedState>, Error>;

/// The preparation of the constants of a row, or of a fused kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrepareRow {
    /// The row, or the kernel without `cpu`.
    pub(crate) op: &'static str,
    /// The indices of the operands that are prepared.
    pub(crate) inputs: &'static [usize],
    /// The element types that the first of them may have; any if the list is empty.
    pub(crate) types: &'static [DType],
    /// Whether attributes are prepared, too.
    pub(crate) takes_attributes: bool,
    /// Prepares the constants; `None` where the constants themselves do as well.
    pub(crate) make: MakeState,
    /// Reads the prepared form from a file, if files keep it.
    pub(crate) restore: Option<RestoreState>,
}

/// All preparations.
const ROWS: &[&[PrepareRow]] = &[
    conv::PREPARE,
    matmul::PREPARE,
    microsoft::PREPARE,
    ml::PREPARE,
    rnn::PREPARE,
    tokenizer::PREPARE,
    graph::PREPARE,
];

/// Returns the preparation of a row's constants, if there is one.
pub(crate) fn find(op: &str) -> Option<&'static PrepareRow> {
    ROWS.iter().copied().flatten().find(|row| row.op == op)
}

/// The prepared state of a row.
#[derive(Debug)]
struct ErasedKernel(Arc<dyn PreparedKernel>);

/// Returns a prepared kernel with its type erased.
pub(super) fn erase(state: impl PreparedKernel) -> Arc<dyn PreparedState> {
    Arc::new(ErasedKernel(Arc::new(state)))
}

impl PreparedState for ErasedKernel {
    fn encode(&self, encoder: &mut Encoder) -> Option<Result<(), Error>> {
        self.0.encode(encoder)
    }
}

/// Constants that a row takes as they are.
#[derive(Debug)]
struct Constants(Vec<AnyAsyncValue>);

impl PreparedState for Constants {}

impl PrepareRow {
    /// Prepares a node.
    pub(super) fn prepare(&self, node: &NodeCall<'_>) -> Result<Option<Prepared>, Error> {
        let state = (self.make)(node)?;
        Ok(state.map(|state| Prepared { op: self.op, state }))
    }
}

/// The prepared form of a node, as its kernel sees it.
pub(super) enum PreparedForm<'a> {
    Kernel(&'a Arc<dyn PreparedKernel>),
    /// Constants that replace the operands that are left out.
    Constants(&'a [AnyAsyncValue]),
}

/// Returns the prepared state of a kernel, the last of its operands, and the other operands.
///
/// # Errors
///
/// `InvalidArgument` if the last operand is something else.
pub(crate) fn state<T: PreparedState>(
    operands: &[AnyAsyncValue],
) -> Result<(&T, &[AnyAsyncValue]), Error> {
    let found = operands.split_last().and_then(|(last, others)| {
        let state: &dyn Any = &*last.get::<Prepared>()?.state;
        Some((state.downcast_ref::<T>()?, others))
    });
    found.ok_or_else(|| {
        Error::invalid_argument("expected what was prepared for the kernel as the last operand")
    })
}

/// Returns the form in which a row was prepared.
pub(super) fn prepared_form<'a>(
    op: &str,
    prepared: &'a Prepared,
) -> Result<PreparedForm<'a>, Error> {
    let state: &dyn Any = &*prepared.state;
    if prepared.op == op {
        if let Some(ErasedKernel(state)) = state.downcast_ref::<ErasedKernel>() {
            return Ok(PreparedForm::Kernel(state));
        }
        if let Some(Constants(list)) = state.downcast_ref::<Constants>() {
            return Ok(PreparedForm::Constants(list));
        }
    }
    let found = prepared.op;
    Err(Error::invalid_argument(format!(
        "{op}: expected what was prepared for it, found what was prepared for {found}"
    )))
}

/// Adds the kernel `cpu.graph.prepare`.
pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add("cpu.graph.prepare", prepare);
}

/// `%p = "cpu.graph.prepare"(%none, %w, %r) {attributes = [..], op = "rnn", opset = 27 : i64}`
fn prepare(
    operands: Rest,
    attributes: Attr<AttributeView<'_>>,
    op: Attr<&str>,
    opset: Attr<i64>,
    execution: &ExecutionContext,
) -> Result<Prepared, Error> {
    let row = find(&op).ok_or_else(|| {
        let op = op.escape_debug();
        Error::invalid_argument(format!("'{op}' is no operation that is prepared"))
    })?;
    let name = rows::short(row.op);
    let workspace = Workspace::new(name, execution);
    let node = NodeCall {
        name,
        inputs: Inputs::new(name, &operands, &workspace),
        own_target: None,
        attributes: Attributes::new(name, *attributes)?,
        opset: *opset,
        n_results: 0,
        execution,
        workspace: &workspace,
    };
    let prepared = row.prepare(&node)?;
    Ok(prepared.unwrap_or_else(|| Prepared {
        op: row.op,
        state: Arc::new(Constants(operands.0)),
    }))
}

/// The codec of prepared nodes: the row, then what its state writes.
pub(crate) const CODEC: ValueCodec = ValueCodec {
    type_name: Prepared::NAME,
    version: 1,
    encode: |value, encoder| {
        let prepared = expect::<Prepared>(value)?;
        encoder.str(prepared.op);
        let written = prepared.state.encode(encoder);
        written.unwrap_or_else(|| Err(not_kept(prepared.op)))
    },
    decode: |decoder, context| {
        let op = decoder.str()?;
        let row = find(op).and_then(|row| Some((row, row.restore?)));
        let (row, restore) = row.ok_or_else(|| not_kept(op))?;
        let state = restore(decoder, context)?;
        Ok(AnyAsyncValue::new(Prepared { op: row.op, state }))
    },
};

/// Returns whether a file keeps the prepared form, and not the constants.
pub(crate) fn is_storable(prepared: &Prepared) -> bool {
    let state: &dyn Any = &*prepared.state;
    !state.is::<Constants>() && find(prepared.op).is_some_and(|row| row.restore.is_some())
}

fn not_kept(op: &str) -> Error {
    let op = op.escape_debug();
    Error::invalid_argument(format!("files keep nothing that is prepared for '{op}'"))
}
