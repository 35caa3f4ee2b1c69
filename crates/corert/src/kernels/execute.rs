//! Kernels that call operations, by name or found before.

use std::sync::{Arc, Weak};

use smallvec::{SmallVec, smallvec};
use tfrt_host::kernel::param::LentAttribute;
use tfrt_host::kernel::param::kinds::Itself;
use tfrt_host::kernel::{
    AttributeSpec, Completion, Function, KernelFrame, KernelParam, KernelRegistry, KernelReturn,
    LentContext, Mismatch, NodeState, Part, with_shortcut,
};
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext};

use super::decode::Pairs;
use super::{handle_as_value, runtime};
use crate::TensorHandle;
use crate::attributes::{AttrValue, FrozenOpAttrs, OpAttrs, OpAttrsRef};
use crate::handler::{OpHandler, OpHandlerRef};
use crate::inputs::Inputs;
use crate::op::{self, CoreRuntimeOp, Op, OpCall};
use crate::rows::Pointwise;
use crate::runtime::RuntimeId;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.executeop", with_shortcut(execute, execute_again))
        .add("corert.executeop.seq", execute_in_order)
        .add("corert.execute_crt_op", execute_made)
        .add("corert.make_composite_op", make_composite)
        .add("corert_sync.executeop", execute_synchronously);
}

/// `%r = corert.executeop(%handler) "name"(%a) {..} : 1`
fn execute(
    handler: &OpHandlerRef,
    operands: HandleOperands<'_>,
    attrs: Pairs<'_>,
    functions: Pairs<'_>,
    name: OpName<'_>,
    node: Node<'_>,
) -> Result<OpResults, Error> {
    let mut asked = ExecuteCall::new(operands.inputs()?, [Some(attrs), Some(functions)], &node);
    asked.run_by(handler, name, None).map(OpResults::of)
}

/// The shortcut of [`execute`]: a call of an operation that the node knows, with one result, and with operands that are there.
#[inline]
fn execute_again(frame: &mut KernelFrame<'_, '_>) -> bool {
    let Some(known) = frame.node_state().get::<KnownCall>() else {
        return false;
    };
    let Some(attrs) = known.attrs.as_ref().map(FrozenOpAttrs::as_ref) else {
        return false;
    };
    let n_inputs = frame.n_operands_left().saturating_sub(1);
    let is_ready = frame.n_results() == 1
        && frame.host().trace().is_none()
        && frame
            .peek_operand(0)
            .and_then(AnyAsyncValue::get)
            .is_some_and(|handler| known.is_by(handler))
        && (1..=n_inputs).all(|index| frame.peek_operand(index).is_some_and(is_handle));
    if !is_ready {
        return false;
    }
    // It leads to the operation, and goes when that has run.
    let handler = frame.take_operand();
    let context = frame.lent_context();
    let mut take = || frame.take_operand().unwrap_or(AnyAsyncValue::empty());
    let result = match n_inputs {
        1 => known.call(&mut [take()], attrs, context),
        2 => known.call(&mut [take(), take()], attrs, context),
        _ => {
            let inputs = (0..n_inputs).map(|_| take());
            let mut inputs: SmallVec<[AnyAsyncValue; FEW_OPERANDS]> = inputs.collect();
            known.call(&mut inputs, attrs, context)
        }
    };
    drop(handler);
    match result {
        Ok(result) => frame.put_result(result),
        Err(error) => frame.fail(error),
    }
    true
}

/// Returns whether a register has a tensor handle itself.
#[inline(always)]
fn is_handle(value: &AnyAsyncValue) -> bool {
    value.is_plain() && value.is::<TensorHandle>()
}

/// `%c1, %r = corert.executeop.seq(%handler, %c0) "name"(%a) {..} : 1`
fn execute_in_order(
    handler: &OpHandlerRef,
    chain: Chain,
    operands: HandleOperands<'_>,
    attrs: Pairs<'_>,
    functions: Pairs<'_>,
    name: OpName<'_>,
    node: Node<'_>,
) -> Result<OpResults, Error> {
    let mut asked = ExecuteCall::new(operands.inputs()?, [Some(attrs), Some(functions)], &node);
    asked.n_results = node.n_results.saturating_sub(1);
    let mut chain = AsyncValue::available(chain);
    let handles = asked.run_by(handler, name, Some(&mut chain))?;
    Ok(OpResults {
        chain: Some(chain),
        values: handles,
    })
}

/// `%r = "corert.execute_crt_op"(%op, %a) {op_attrs = [], op_func_attrs = []}`
///
/// Nothing orders its side effects.
fn execute_made(
    op: &CoreRuntimeOp,
    operands: HandleOperands<'_>,
    attrs: Pairs<'_>,
    functions: Pairs<'_>,
    node: Node<'_>,
) -> Result<OpResults, Error> {
    let mut asked = ExecuteCall::new(operands.inputs()?, [Some(attrs), Some(functions)], &node);
    let mut chain = AsyncValue::available(Chain);
    let (attrs, runtime) = (asked.attrs()?, runtime(node.execution).id());
    let call = asked.call(runtime, attrs.as_ref(), Some(&mut chain));
    run(op.as_op(), || op.handler(), call).map(OpResults::of)
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
    operands: HandleOperands<'_>,
    attrs: Pairs<'_>,
    name: OpName<'_>,
    node: Node<'_>,
) -> Result<ReadyResults, Error> {
    let mut asked = ExecuteCall::new(operands.inputs()?, [Some(attrs), None], &node);
    let mut chain = AsyncValue::available(Chain);
    let values = asked.run_by(handler, name, Some(&mut chain))?;
    match values.iter().all(AnyAsyncValue::is_settled) {
        true => ReadyResults::of(values),
        false => {
            let name = name.get();
            Err(Error::failed_precondition(format!(
                "{name} goes on after the call: a synchronous function can't call it"
            )))
        }
    }
}

/// Results of a synchronous call, all there, as many as the program asks for.
struct ReadyResults(ResultValues);

impl ReadyResults {
    /// Returns values, all of which are there.
    ///
    /// # Errors
    ///
    /// The first that is an error.
    fn of(values: ResultValues) -> Result<ReadyResults, Error> {
        match values.iter().find_map(AnyAsyncValue::error) {
            Some(error) => Err(error.clone()),
            None => Ok(ReadyResults(values)),
        }
    }
}

impl KernelReturn<Itself> for ReadyResults {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Synchronous)];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        for value in self.0 {
            frame.put_result(value);
        }
    }
}

/// Handles that a call gives, as values of registers.
type ResultValues = SmallVec<[AnyAsyncValue; 1]>;

/// Results of a call, as many as the program asks for, behind the chain of its side effects, if it is one in order.
struct OpResults {
    chain: Option<AsyncValue<Chain>>,
    values: ResultValues,
}

impl OpResults {
    #[inline]
    fn of(values: ResultValues) -> OpResults {
        OpResults {
            chain: None,
            values,
        }
    }
}

impl KernelReturn<Itself> for OpResults {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Asynchronous)];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        if let Some(chain) = self.chain {
            frame.put_result(chain.into_any());
        }
        for value in self.values {
            frame.put_result(value);
        }
    }
}

/// So many operands take no list.
const FEW_OPERANDS: usize = 4;

/// All remaining operands, which are tensor handles. An operation may take those that nobody else reads.
struct HandleOperands<'a>(&'a mut SmallVec<[AnyAsyncValue; FEW_OPERANDS]>);

impl KernelParam<Itself> for HandleOperands<'_> {
    type Guard<'f> = SmallVec<[AnyAsyncValue; FEW_OPERANDS]>;
    type Item<'a> = HandleOperands<'a>;

    const PART: &'static Part = &Part::MoreOperands;

    #[inline]
    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Self::Guard<'f>, Mismatch> {
        let n_left = frame.n_operands_left();
        let mut rest = SmallVec::with_capacity(n_left);
        for _ in 0..n_left {
            let value = frame.take_value()?;
            rest.push(match value.is_plain() {
                true => value,
                false => value.settled(),
            });
        }
        Ok(rest)
    }

    #[inline]
    fn item<'a>(guard: &'a mut Self::Guard<'_>) -> HandleOperands<'a> {
        HandleOperands(guard)
    }
}

impl<'a> HandleOperands<'a> {
    /// Returns the operands as the inputs of an operation.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a value that is no handle.
    #[inline]
    fn inputs(self) -> Result<Inputs<'a>, Error> {
        if let Some(index) = self.0.iter().position(|value| !value.is::<TensorHandle>()) {
            return Err(no_handle(index, &self.0[index]));
        }
        Ok(Inputs::of_values(self.0))
    }
}

#[cold]
fn no_handle(index: usize, operand: &AnyAsyncValue) -> Error {
    let found = operand.type_name().unwrap_or("a value of unknown type");
    Error::invalid_argument(format!(
        "operand {index}: expected a tensor handle, found {found}"
    ))
}

/// The name of an operation, which is read by the first call of a node.
#[derive(Clone, Copy)]
struct OpName<'f>(LentAttribute<'f>);

impl KernelParam<Itself> for OpName<'_> {
    type Guard<'f> = OpName<'f>;
    type Item<'a> = OpName<'a>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: "string",
        readable: |view| view.as_str().is_some(),
    });

    #[inline]
    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<OpName<'f>, Mismatch> {
        frame.lend_attribute().map(OpName)
    }

    #[inline]
    fn item<'a>(guard: &'a mut OpName<'_>) -> OpName<'a> {
        *guard
    }
}

impl<'f> OpName<'f> {
    fn get(self) -> &'f str {
        self.0.view().as_str().unwrap_or_default()
    }
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
    /// The function of elements that the operation is, if it is one and there are no attributes.
    pointwise: Option<Pointwise>,
}

impl KnownCall {
    fn is_by(&self, handler: &OpHandlerRef) -> bool {
        std::ptr::addr_eq(self.handler.as_ptr(), Arc::as_ptr(&handler.0))
    }

    /// Calls the operation with registers that are handles, for its only result.
    #[inline]
    fn call(
        &self,
        inputs: &mut [AnyAsyncValue],
        attrs: OpAttrsRef<'_>,
        context: LentContext<'_>,
    ) -> Result<AnyAsyncValue, Error> {
        let execution = context.get();
        if let Some(pointwise) = self.pointwise
            && !execution.request().is_cancelled()
            && let Some(index) = pointwise.try_in_place(inputs, self.runtime)?
        {
            return Ok(std::mem::replace(
                &mut inputs[index],
                AnyAsyncValue::empty(),
            ));
        }
        let inputs = Inputs::of_values(inputs);
        let mut call = OpCall::of_node(self.runtime, execution, inputs, attrs);
        call.n_results = Some(1);
        match self.op.try_fast(&mut call) {
            Ok(only) => return Ok(call.inputs.into_value(only)),
            Err(Some(error)) => return Err(error),
            Err(None) => (),
        }
        let only = self.op.call(call)?.pop();
        only.map(handle_as_value)
            .ok_or_else(|| no_result(self.op.name()))
    }
}

#[cold]
fn no_result(op: &str) -> Error {
    Error::internal(format!("{op} has no result: expected one"))
}

/// An operation call that a kernel's operands and attributes describe.
struct ExecuteCall<'a> {
    node: &'a Node<'a>,
    inputs: Inputs<'a>,
    /// Attributes that are values, and those that are names of functions.
    pairs: [Option<Pairs<'a>>; 2],
    n_results: usize,
}

impl<'a> ExecuteCall<'a> {
    fn new(inputs: Inputs<'a>, pairs: [Option<Pairs<'a>>; 2], node: &'a Node<'a>) -> Self {
        ExecuteCall {
            node,
            inputs,
            pairs,
            n_results: node.n_results,
        }
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
    #[inline]
    fn run_by(
        &mut self,
        handler: &OpHandlerRef,
        name: OpName<'_>,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<ResultValues, Error> {
        if let Some(known) = self.node.state.get::<KnownCall>()
            && known.is_by(handler)
        {
            return self.run_known(known, handler, chain);
        }
        self.run_new(handler, name.get(), chain)
    }

    #[cold]
    fn run_new(
        &mut self,
        handler: &OpHandlerRef,
        name: &str,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<ResultValues, Error> {
        let runtime = runtime(self.node.execution);
        let attrs = self.attrs()?;
        let op = runtime.op(name, &handler.0)?;
        if let Some(own) = op.for_node() {
            let lie_in_program =
                |(_, value): (&str, &AttrValue)| matches!(value, AttrValue::Dense(_));
            let are_kept = !attrs.as_ref().iter().any(lie_in_program);
            let known = self.node.state.get_or_init(|| KnownCall {
                handler: Arc::downgrade(&handler.0),
                runtime: runtime.id(),
                pointwise: own.pointwise().filter(|_| attrs.as_ref().is_empty()),
                op: own,
                attrs: are_kept.then(|| attrs.freeze()),
            });
            if let Some(known) = known
                && known.is_by(handler)
            {
                return self.run_known(known, handler, chain);
            }
        }
        let call = self.call(runtime.id(), attrs.as_ref(), chain);
        run(op.as_op(), || op.handler(), call)
    }

    #[inline]
    fn run_known(
        &mut self,
        known: &KnownCall,
        handler: &OpHandlerRef,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<ResultValues, Error> {
        let read;
        let attrs = match &known.attrs {
            Some(kept) => kept.as_ref(),
            None => {
                read = self.attrs()?;
                read.as_ref()
            }
        };
        let call = self.call(known.runtime, attrs, chain);
        run(&*known.op, || handler.0.name(), call)
    }

    #[inline]
    fn call<'c>(
        &'c mut self,
        runtime: RuntimeId,
        attrs: OpAttrsRef<'c>,
        chain: Option<&'c mut AsyncValue<Chain>>,
    ) -> OpCall<'c> {
        let inputs = self.inputs.reborrow();
        let mut call = OpCall::of_node(runtime, self.node.execution, inputs, attrs);
        call.n_results = Some(self.n_results);
        call.chain = chain;
        call
    }
}

/// Calls an operation that a handler of a name has found, on its fast path if there is one.
#[inline]
fn run<'n>(
    op: &dyn Op,
    handler: impl FnOnce() -> &'n str,
    mut call: OpCall<'_>,
) -> Result<ResultValues, Error> {
    if call.n_results == Some(1) {
        match op::try_fast(op, &mut call) {
            Ok(only) => return Ok(smallvec![call.inputs.into_value(only)]),
            Err(Some(error)) => return Err(error),
            Err(None) => (),
        }
    }
    let handles = op::run(op, handler, call)?;
    Ok(handles.into_iter().map(handle_as_value).collect())
}
