//! Operations, executed by name or made before.

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

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.executeop", execute)
        .add("corert.executeop.seq", execute_in_order)
        .add("corert.execute_crt_op", execute_made)
        .add("corert.make_composite_op", make_composite)
        .add("corert_sync.executeop", execute_synchronously);
}

type Given = SmallVec<[TensorHandle; 4]>;

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
    let attrs = attributes(&attrs, Some(&functions))?;
    let op = runtime(execution).op(*name, &handler.0)?;
    let handles = run(&op, given(operands.0)?, &attrs, n.0, None, execution)?;
    Ok(Results(handles.into_iter().map(handle_as_value).collect()))
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
    let attrs = attributes(&attrs, Some(&functions))?;
    let op = runtime(execution).op(*name, &handler.0)?;
    let mut chain = AsyncValue::available(chain);
    let n = n.0.saturating_sub(1);
    let handles = run(
        &op,
        given(operands.0)?,
        &attrs,
        n,
        Some(&mut chain),
        execution,
    )?;
    let mut results = vec![chain.into_any()];
    results.extend(handles.into_iter().map(handle_as_value));
    Ok(Results(results))
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
    let attrs = attributes(&attrs, Some(&functions))?;
    let mut chain = AsyncValue::available(Chain);
    let handles = run(
        op,
        given(operands.0)?,
        &attrs,
        n.0,
        Some(&mut chain),
        execution,
    )?;
    Ok(Results(handles.into_iter().map(handle_as_value).collect()))
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
) -> Result<Finished, Error> {
    let attrs = attributes(&attrs, None)?;
    let op = runtime(execution).op(*name, &handler.0)?;
    let mut chain = AsyncValue::available(Chain);
    let handles = run(
        &op,
        given(operands.0)?,
        &attrs,
        n.0,
        Some(&mut chain),
        execution,
    )?;
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
    Ok(Finished(
        handles
            .into_iter()
            .map(finished)
            .collect::<Result<_, _>>()?,
    ))
}

/// As many results as the program asks for, all of which are there.
struct Finished(Vec<AnyAsyncValue>);

impl KernelReturn<Itself> for Finished {
    const PARTS: &'static [&'static Part] = &[&Part::AnyResults(Completion::Synchronous)];

    fn put(self, frame: &mut KernelFrame<'_, '_>) {
        for value in self.0 {
            frame.put_result(value);
        }
    }
}

fn attributes(values: &Pairs, functions: Option<&Pairs>) -> Result<OpAttrs, Error> {
    let mut attrs = OpAttrs::new();
    values.add_to(&mut attrs)?;
    if let Some(functions) = functions {
        functions.add_functions_to(&mut attrs)?;
    }
    Ok(attrs)
}

/// The operands as handles.
fn given(operands: Vec<AnyAsyncValue>) -> Result<Given, Error> {
    let handle = |(index, operand): (usize, AnyAsyncValue)| {
        let found = operand.type_name().unwrap_or("a value of unknown type");
        take_handle(operand).ok_or_else(|| {
            let message = format!("operand {index}: expected a tensor handle, found {found}");
            Error::invalid_argument(message)
        })
    };
    operands.into_iter().enumerate().map(handle).collect()
}

fn run(
    op: &CoreRuntimeOp,
    mut given: Given,
    attrs: &OpAttrs,
    n_results: usize,
    chain: Option<&mut AsyncValue<Chain>>,
    execution: &ExecutionContext,
) -> Result<Handles, Error> {
    let runtime = runtime(execution);
    let inputs = Inputs::owned(&mut given);
    let mut call = OpCall::by_kernel(&runtime, execution, inputs, attrs.as_ref());
    call.n_results = Some(n_results);
    call.chain = chain;
    if n_results == 1
        && let Some(only) = op.run_short(&mut call)?
    {
        return Ok(Handles::from_iter([only]));
    }
    op.run(call)
}
