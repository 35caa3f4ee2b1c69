//! What kernels make of constants, once for each node of a model: `cpu.graph.prepare`.
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

use super::{Attributes, Inputs, NodeCall, Outputs, Workspace, conv, matmul, ml, rnn, rows};
use crate::graph;

/// A row's own form of constants, which calculates results as often as it is asked to.
pub(super) trait PreparedKernel: fmt::Debug + Send + Sync + 'static {
    /// Calculates the results of a node, whose constants are left out.
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error>;

    /// Writes it for a file, laid out for the encoder's target. Nothing is written if files keep the constants instead.
    fn encode(&self, _: &mut Encoder) -> Option<Result<(), Error>> {
        None
    }
}

/// Makes the state of a node of its constants: all other operands are left out.
pub(crate) type MakeState = fn(&NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error>;

/// Reads what [`PreparedState::encode`] wrote.
type RestoreState =
    fn(&mut Decoder<'_>, &DecodeContext<'_>) -> Result<Arc<dyn PreparedState>, Error>;

/// How the constants of a row, or of a kernel that passes make of several, are prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrepareRow {
    /// The row, or the kernel without `cpu`.
    pub(crate) op: &'static str,
    /// The operands that are taken, in order.
    pub(crate) inputs: &'static [usize],
    /// The types of elements that the first of them may have; any if there are none.
    pub(crate) types: &'static [DType],
    /// Whether attributes are taken, too.
    pub(crate) takes_attributes: bool,
    /// Makes the state; `None` where the constants themselves do as well.
    pub(crate) make: MakeState,
    /// Reads a state from a file, if files keep it.
    pub(crate) restore: Option<RestoreState>,
}

/// All that is prepared.
const ROWS: &[&[PrepareRow]] = &[
    conv::PREPARE,
    matmul::PREPARE,
    ml::PREPARE,
    rnn::PREPARE,
    graph::PREPARE,
];

/// Returns how a row's constants are prepared, if they are.
pub(crate) fn find(op: &str) -> Option<&'static PrepareRow> {
    ROWS.iter().copied().flatten().find(|row| row.op == op)
}

/// The state of a row.
#[derive(Debug)]
struct ErasedKernel(Arc<dyn PreparedKernel>);

/// Returns a state as what is prepared of a row.
pub(super) fn erase(state: impl PreparedKernel) -> Arc<dyn PreparedState> {
    Arc::new(ErasedKernel(Arc::new(state)))
}

impl PreparedState for ErasedKernel {
    fn encode(&self, encoder: &mut Encoder) -> Option<Result<(), Error>> {
        self.0.encode(encoder)
    }
}

/// The constants themselves.
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

/// What a node of a row was prepared as, as its kernel looks at it.
pub(super) enum PreparedForm<'a> {
    Kernel(&'a Arc<dyn PreparedKernel>),
    /// These stand for operands that are left out.
    Constants(&'a [AnyAsyncValue]),
}

/// Returns the state of a type that was prepared for a kernel, which is the last of its operands.
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

/// Returns the form of what was prepared for a row.
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

/// Adds the kernel that prepares, and the codec of what it makes.
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

/// Prepared nodes as files keep them: the row, then what its state writes.
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

/// Whether a file keeps what was prepared, and not the constants.
pub(crate) fn is_kept(prepared: &Prepared) -> bool {
    let state: &dyn Any = &*prepared.state;
    !state.is::<Constants>() && find(prepared.op).is_some_and(|row| row.restore.is_some())
}

fn not_kept(op: &str) -> Error {
    let op = op.escape_debug();
    Error::invalid_argument(format!("files keep nothing that is prepared for '{op}'"))
}
