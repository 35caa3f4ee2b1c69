//! Kernels that call operations, by name or found before.

use smallvec::SmallVec;
use tfrt_host::kernel::param::kinds::Itself;
use tfrt_host::kernel::{
    Attr, Completion, Function, KernelFrame, KernelRegistry, KernelReturn, Part, Rest, ResultCount,
    Results,
};
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext};

use super::decode::Pairs;
use super::{handle_as_value, runtime, take_handle};
use crate::TensorHandle;
use crate::attributes::OpAttrs;
use crate::handler::OpHandlerRef;
use crate::inputs::Inputs;
use crate::op::{CoreRuntimeOp, Handles, OpCall};
use crate::runtime::CoreRuntime;

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
    attrs: Pairs,
    functions: Pairs,
    name: Attr<&str>,
    n: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let asked = ExecuteCall::new(operands, [Some(&attrs), Some(&functions)], n.0, execution)?;
    let op = asked.runtime.op(*name, &handler.0)?;
    asked.run(&op, None).map(values)
}

/// `%c1, %r = corert.executeop.seq(%handler, %c0) "name"(%a) {..} : 1`
#[expect(
    clippy::too_many_arguments,
    reason = "the operands and attributes of a kernel"
)]
fn execute_in_order(
    handler: &OpHandlerRef,
    chain: Chain,
    operands: Rest,
    attrs: Pairs,
    functions: Pairs,
    name: Attr<&str>,
    n: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let n = n.0.saturating_sub(1);
    let asked = ExecuteCall::new(operands, [Some(&attrs), Some(&functions)], n, execution)?;
    let op = asked.runtime.op(*name, &handler.0)?;
    let mut chain = AsyncValue::available(chain);
    let Results(mut all) = asked.run(&op, Some(&mut chain)).map(values)?;
    all.insert(0, chain.into_any());
    Ok(Results(all))
}

/// `%r = "corert.execute_crt_op"(%op, %a) {op_attrs = [], op_func_attrs = []}`
///
/// Nothing orders its side effects.
fn execute_made(
    op: &CoreRuntimeOp,
    operands: Rest,
    attrs: Pairs,
    functions: Pairs,
    n: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let asked = ExecuteCall::new(operands, [Some(&attrs), Some(&functions)], n.0, execution)?;
    let mut chain = AsyncValue::available(Chain);
    asked.run(op, Some(&mut chain)).map(values)
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
    attrs: Pairs,
    name: Attr<&str>,
    n: ResultCount,
    execution: &ExecutionContext,
) -> Result<ReadyResults, Error> {
    let asked = ExecuteCall::new(operands, [Some(&attrs), None], n.0, execution)?;
    let op = asked.runtime.op(*name, &handler.0)?;
    let mut chain = AsyncValue::available(Chain);
    let handles = asked.run(&op, Some(&mut chain))?;
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

/// An operation call that a kernel's operands and attributes describe.
struct ExecuteCall<'a> {
    runtime: CoreRuntime,
    execution: &'a ExecutionContext,
    inputs: SmallVec<[TensorHandle; 4]>,
    attrs: OpAttrs,
    n_results: usize,
}

impl<'a> ExecuteCall<'a> {
    /// Reads operands and attributes: values, and names of functions.
    fn new(
        operands: Rest,
        [attrs, functions]: [Option<&Pairs>; 2],
        n_results: usize,
        execution: &'a ExecutionContext,
    ) -> Result<Self, Error> {
        let handle = |(index, operand): (usize, AnyAsyncValue)| {
            let found = operand.type_name().unwrap_or("a value of unknown type");
            take_handle(operand).ok_or_else(|| {
                let message = format!("operand {index}: expected a tensor handle, found {found}");
                Error::invalid_argument(message)
            })
        };
        let inputs = operands.0.into_iter().enumerate().map(handle);
        let inputs = inputs.collect::<Result<_, _>>()?;
        let mut all = OpAttrs::new();
        attrs.map_or(Ok(()), |attrs| attrs.add_to(&mut all))?;
        functions.map_or(Ok(()), |functions| functions.add_functions_to(&mut all))?;
        Ok(ExecuteCall {
            runtime: runtime(execution),
            execution,
            inputs,
            attrs: all,
            n_results,
        })
    }

    fn run(
        mut self,
        op: &CoreRuntimeOp,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        let inputs = Inputs::owned(&mut self.inputs);
        let attrs = self.attrs.as_ref();
        let mut call = OpCall::by_kernel(&self.runtime, self.execution, inputs, attrs);
        call.n_results = Some(self.n_results);
        call.chain = chain;
        if self.n_results == 1 {
            match op.try_fast(&mut call) {
                Ok(only) => return Ok(Handles::from_iter([only])),
                Err(Some(error)) => return Err(error),
                Err(None) => (),
            }
        }
        op.run(call)
    }
}
