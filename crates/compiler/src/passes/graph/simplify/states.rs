//! States of loops that no turn changes: the body then takes the value from outside.
//!
//! Exporters pass weights to loops so; as states nothing would be known of them, and outside they are constants.

use tfrt_ir::{BlockId, Module, OpId, ValueId};

use crate::passes::graph::{inner_first, node};
use crate::passes::scope;

/// Has the bodies of a block's loops, and operations behind the loops, use the first values of states that stay as they are.
/// Returns whether such a state was used.
pub(super) fn unchanged(module: &mut Module, block: BlockId) -> bool {
    let mut is_changed = false;
    // A state of a loop outside may be one of a loop inside, whose result is its first value once that is done.
    for block in inner_first(module, block) {
        for op in module.block(block).operations().to_vec() {
            is_changed |= replace(module, op);
        }
    }
    is_changed
}

fn replace(module: &mut Module, op: OpId) -> bool {
    let states = states(module, op);
    // A loop of which nothing is used is removed, and one without an end would have one.
    let is_other = |result: &ValueId| states.iter().all(|state| state.result != *result);
    let mut others = module
        .op(op)
        .results()
        .iter()
        .filter(|result| is_other(result));
    let is_needed = others.any(|result| !module.is_unused(*result));
    let mut is_changed = false;
    // The states themselves stay, so that operands, arguments and results go together.
    for state in states {
        is_changed |= !module.is_unused(state.argument);
        module.replace_all_uses(state.argument, state.first);
        if is_needed {
            is_changed |= !module.is_unused(state.result);
            module.replace_all_uses(state.result, state.first);
        }
    }
    is_changed
}

/// A state that each turn yields as it is given.
struct State {
    first: ValueId,
    argument: ValueId,
    result: ValueId,
}

fn states(module: &Module, op: OpId) -> Vec<State> {
    let data = module.op(op);
    // The number of operands, arguments and yielded values before the states.
    let [n_operands, n_arguments, n_yields] = match data.name().as_str() {
        "onnx.Loop" => [2, 2, 1],
        "onnx.Scan" => [0, 0, 0],
        _ => return Vec::new(),
    };
    let [body] = scope::region_blocks(module, op)[..] else {
        return Vec::new();
    };
    let arguments = module.block(body).arguments();
    let Some(last) = module.block(body).last() else {
        return Vec::new();
    };
    let yields = module.op(last).operands();
    // What a turn takes of the inputs of a `Scan` is no state; before version 9 lengths come first.
    let n_states = match data.name().as_str() {
        "onnx.Scan" if data.operands().len() == arguments.len() => {
            let n_inputs = data.attribute("num_scan_inputs");
            let n_inputs = n_inputs.and_then(|number| number.as_i64());
            let n_inputs = n_inputs.and_then(|number| usize::try_from(number).ok());
            n_inputs.and_then(|n_inputs| arguments.len().checked_sub(n_inputs))
        }
        "onnx.Scan" => None,
        _ => arguments.len().checked_sub(n_arguments),
    };
    let state = |index: usize| {
        let state = State {
            first: node::operand(module, op, n_operands + index)?,
            argument: *arguments.get(n_arguments + index)?,
            result: *data.results().get(index)?,
        };
        let yielded = origin(module, *yields.get(n_yields + index)?);
        (yielded == state.argument || yielded == state.first).then_some(state)
    };
    (0..n_states.unwrap_or(0)).filter_map(state).collect()
}

/// Returns the value that an operation gives on unchanged: an identity, or a choice between branches that yield the same
/// value.
fn origin(module: &Module, value: ValueId) -> ValueId {
    let mut value = behind_identities(module, value);
    while let Some(yielded) = same_of_branches(module, value) {
        value = yielded;
    }
    value
}

/// Returns the value that each branch yields as this result of a choice.
fn same_of_branches(module: &Module, value: ValueId) -> Option<ValueId> {
    let op = module.defining_op(value)?;
    if *module.op(op).name() != "onnx.If" {
        return None;
    }
    let mut results = module.op(op).results().iter();
    let index = results.position(|result| *result == value)?;
    let branches = scope::region_blocks(module, op).into_iter();
    let mut yields = branches.map(|branch| {
        let last = module.block(branch).last()?;
        let yielded = *module.op(last).operands().get(index)?;
        Some(behind_identities(module, yielded))
    });
    let first = yields.next()??;
    yields.all(|other| other == Some(first)).then_some(first)
}

fn behind_identities(module: &Module, mut value: ValueId) -> ValueId {
    while let Some(op) = module.defining_op(value)
        && ["onnx.Identity", "graph.identity"].contains(&module.op(op).name().as_str())
        && let Some(operand) = node::operand(module, op, 0)
    {
        value = operand;
    }
    value
}
