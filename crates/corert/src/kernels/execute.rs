//! Kernels that call operations, by name or found before.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;
use tfrt_host::kernel::param::kinds::Itself;
use tfrt_host::kernel::{
    Attr, Completion, Function, KernelFrame, KernelParam, KernelRegistry, KernelReturn,
    LentContext, Mismatch, NodeState, Part, Rest, Results,
};
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext};

use super::decode::Pairs;
use super::{handle_as_value, runtime, take_handle};
use crate::TensorHandle;
use crate::attributes::{AttrValue, FrozenOpAttrs, OpAttrs, OpAttrsRef};
use crate::handler::{OpHandler, OpHandlerRef};
use crate::inputs::Inputs;
use crate::op::{self, CoreRuntimeOp, FastPath, Handles, Op, OpCall};
use crate::runtime::RuntimeId;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.executeop", execute)
        .add("corert.executeop.seq", execute_in_order)
        .add("corert.execute_crt_op", execute_made)
        .add("corert.make_composite_op", make_composite)
        .add("corert_sync.executeop", execute_synchronously);
}

/// `%r = corert.executeop(%handler) "name"(%a) {..} : 1`
fn execute(
    handler: &OpHandlerRef,
    operands: Rest,
    attrs: Pairs<'_>,
    functions: Pairs<'_>,
    name: Attr<&str>,
    node: Node<'_>,
) -> Result<Results, Error> {
    let asked = ExecuteCall::new(operands, [Some(attrs), Some(functions)], &node)?;
    asked.run_by(handler, *name, None).map(values)
}

/// `%c1, %r = corert.executeop.seq(%handler, %c0) "name"(%a) {..} : 1`
fn execute_in_order(
    handler: &OpHandlerRef,
    chain: Chain,
    operands: Rest,
    attrs: Pairs<'_>,
    functions: Pairs<'_>,
    name: Attr<&str>,
    node: Node<'_>,
) -> Result<Results, Error> {
    let mut asked = ExecuteCall::new(operands, [Some(attrs), Some(functions)], &node)?;
    asked.n_results = node.n_results.saturating_sub(1);
    let mut chain = AsyncValue::available(chain);
    let Results(mut all) = asked.run_by(handler, *name, Some(&mut chain)).map(values)?;
    all.insert(0, chain.into_any());
    Ok(Results(all))
}

/// `%r = "corert.execute_crt_op"(%op, %a) {op_attrs = [], op_func_attrs = []}`
///
/// Nothing orders its side effects.
fn execute_made(
    op: &CoreRuntimeOp,
    operands: Rest,
    attrs: Pairs<'_>,
    functions: Pairs<'_>,
    node: Node<'_>,
) -> Result<Results, Error> {
    let asked = ExecuteCall::new(operands, [Some(attrs), Some(functions)], &node)?;
    let mut chain = AsyncValue::available(Chain);
    let (attrs, runtime) = (asked.attrs()?, runtime(node.execution).id());
    let call = (runtime, attrs.as_ref(), Some(&mut chain));
    asked
        .run(|call| op.try_fast(call), |call| op.run(call), call)
        .map(values)
}

/// `%op = "corert.make_composite_op"() {fn = @f}`
fn make_composite(
    function: Function,
    execution: &ExecutionContext,
) -> Result<CoreRuntimeOp, Error> {
    runtime(execution).composite(function)
}

/// `%r = corert_sync.executeop(%handler) "name"(%a) {..} : 1`
fn execute_synchronously(
    handler: &OpHandlerRef,
    operands: Rest,
    attrs: Pairs<'_>,
    name: Attr<&str>,
    node: Node<'_>,
) -> Result<ReadyResults, Error> {
    let asked = ExecuteCall::new(operands, [Some(attrs), None], &node)?;
    let mut chain = AsyncValue::available(Chain);
    let handles = asked.run_by(handler, *name, Some(&mut chain))?;
    let finished = |handle: TensorHandle| match handle.tensor() {
        Some(Ok(_)) => Ok(AnyAsyncValue::new(handle)),
        Some(Err(error)) => Err(error.clone()),
        None => {
            let name = *name;
            Err(Error::failed_precondition(format!(
                "{name} goes on after the call: a synchronous function can't call it"
            )))
        }
    };
    Ok(ReadyResults(
        handles
            .into_iter()
            .map(finished)
            .collect::<Result<_, _>>()?,
    ))
}

/// Results of a synchronous call, all there, as many as the program asks for.
struct ReadyResults(Vec<AnyAsyncValue>);

impl KernelReturn<Itself> for ReadyResults {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Synchronous)];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        for value in self.0 {
            frame.put_result(value);
        }
    }
}

/// Returns the results as values of registers.
fn values(handles: Handles) -> Results {
    Results(handles.into_iter().map(handle_as_value).collect())
}

/// The node that runs: the surroundings of its kernel.
struct Node<'a> {
    n_results: usize,
    state: NodeState<'a>,
    execution: &'a ExecutionContext,
}

impl KernelParam<Itself> for Node<'_> {
    type Guard<'f> = (usize, NodeState<'f>, LentContext<'f>);
    type Item<'a> = Node<'a>;

    const PART: &'static Part = &Part::Surroundings;

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Self::Guard<'f>, Mismatch> {
        Ok((frame.n_results(), frame.node_state(), frame.lent_context()))
    }

    fn item<'a>((n_results, state, context): &'a mut Self::Guard<'_>) -> Node<'a> {
        Node {
            n_results: *n_results,
            state: *state,
            execution: context.get(),
        }
    }
}

/// Operation and attributes of a node, found by its first call: all calls of a node are alike.
struct KnownCall {
    /// The handler that has found the operation. It is not kept alive: it may lead to the host, or to programs.
    handler: Weak<dyn OpHandler>,
    runtime: RuntimeId,
    op: Arc<dyn Op>,
    /// The attributes; `None` if tensors are among them, which lie in the program.
    attrs: Option<FrozenOpAttrs>,
}

impl KnownCall {
    fn is_by(&self, handler: &OpHandlerRef) -> bool {
        std::ptr::addr_eq(self.handler.as_ptr(), Arc::as_ptr(&handler.0))
    }
}

/// An operation call that a kernel's operands and attributes describe.
struct ExecuteCall<'a> {
    node: &'a Node<'a>,
    inputs: SmallVec<[TensorHandle; 4]>,
    /// Attributes that are values, and those that are names of functions.
    pairs: [Option<Pairs<'a>>; 2],
    n_results: usize,
}

impl<'a> ExecuteCall<'a> {
    /// Reads operands.
    fn new(
        operands: Rest,
        pairs: [Option<Pairs<'a>>; 2],
        node: &'a Node<'a>,
    ) -> Result<Self, Error> {
        let handle = |(index, operand): (usize, AnyAsyncValue)| {
            let found = operand.type_name().unwrap_or("a value of unknown type");
            take_handle(operand).ok_or_else(|| {
                let message = format!("operand {index}: expected a tensor handle, found {found}");
                Error::invalid_argument(message)
            })
        };
        let inputs = operands.0.into_iter().enumerate().map(handle);
        Ok(ExecuteCall {
            node,
            inputs: inputs.collect::<Result<_, _>>()?,
            pairs,
            n_results: node.n_results,
        })
    }

    /// Reads the attributes.
    fn attrs(&self) -> Result<OpAttrs, Error> {
        let mut all = OpAttrs::new();
        let [attrs, functions] = &self.pairs;
        attrs.map_or(Ok(()), |attrs| attrs.add_to(&mut all))?;
        functions.map_or(Ok(()), |functions| functions.add_functions_to(&mut all))?;
        Ok(all)
    }

    /// Calls the operation of a name that a handler finds: the node keeps it, if it may be kept.
    fn run_by(
        self,
        handler: &OpHandlerRef,
        name: &str,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        let state = self.node.state;
        if let Some(known) = state.get::<KnownCall>()
            && known.is_by(handler)
        {
            return self.run_known(known, handler, chain);
        }
        let runtime = runtime(self.node.execution);
        let attrs = self.attrs()?;
        let op = runtime.op(name, &handler.0)?;
        if let Some(own) = op.for_node() {
            let lie_in_program =
                |(_, value): (&str, &AttrValue)| matches!(value, AttrValue::Dense(_));
            let are_kept = !attrs.as_ref().iter().any(lie_in_program);
            let known = state.get_or_init(|| KnownCall {
                handler: Arc::downgrade(&handler.0),
                runtime: runtime.id(),
                op: own,
                attrs: are_kept.then(|| attrs.freeze()),
            });
            if let Some(known) = known
                && known.is_by(handler)
            {
                return self.run_known(known, handler, chain);
            }
        }
        let call = (runtime.id(), attrs.as_ref(), chain);
        self.run(|call| op.try_fast(call), |call| op.run(call), call)
    }

    fn run_known(
        self,
        known: &KnownCall,
        handler: &OpHandlerRef,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        let read;
        let attrs = match &known.attrs {
            Some(kept) => kept.as_ref(),
            None => {
                read = self.attrs()?;
                read.as_ref()
            }
        };
        self.run(
            |call| op::try_fast(&*known.op, call),
            |call| op::run(&*known.op, || handler.0.name(), call),
            (known.runtime, attrs, chain),
        )
    }

    fn run(
        mut self,
        try_fast: impl FnOnce(&mut OpCall<'_>) -> FastPath,
        run: impl FnOnce(OpCall<'_>) -> Result<Handles, Error>,
        (runtime, attrs, chain): (RuntimeId, OpAttrsRef<'_>, Option<&mut AsyncValue<Chain>>),
    ) -> Result<Handles, Error> {
        let inputs = Inputs::owned(&mut self.inputs);
        let mut call = OpCall::of_node(runtime, self.node.execution, inputs, attrs);
        call.n_results = Some(self.n_results);
        call.chain = chain;
        if self.n_results == 1 {
            match try_fast(&mut call) {
                Ok(only) => return Ok(Handles::from_iter([only])),
                Err(Some(error)) => return Err(error),
                Err(None) => (),
            }
        }
        run(call)
    }
}
