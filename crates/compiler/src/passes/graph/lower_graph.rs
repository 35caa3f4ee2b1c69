//! `lower-graph`: pointwise operations of graphs that ONNX has no name for, as programs of one step.

use tfrt_ir::{Attribute, Diagnostics, Module, OpId, OpState, Type};

use tfrt_ops::{Traits, names::onnx};

use super::scope;
use crate::codes;
use crate::graph;
use crate::passes::legalize;
use crate::pipeline::{Pass, Property, Run};

pub(crate) const PASS: Pass = Pass {
    name: "lower-graph",
    summary: "Makes programs of what is left of a graph in dialect graph",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: Run::Alone(run),
};

/// What operations of graphs begin with.
pub(super) const PREFIX: &str = "graph.";

/// Says what is wrong with a row that is none of ONNX's operations with these attributes, and no step.
pub(super) fn no_kernel(row: &str) -> String {
    let mut names = onnx::NAMES.iter();
    match names.any(|name| name.row == row) {
        true => "has no kernel with these attributes".to_owned(),
        false => "has no kernel: nothing here runs it".to_owned(),
    }
}

/// Returns what programs call a row that ONNX has no operation for: its name, if it is pointwise.
pub(super) fn step(row: &str) -> Option<&'static str> {
    let is_named = onnx::NAMES.iter().any(|name| name.row == row);
    let row = tfrt_ops::find(row).filter(|row| row.is(Traits::POINTWISE));
    row.filter(|_| !is_named).map(|row| row.name)
}

fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    for block in scope::blocks(module) {
        let is_ours = |op: &OpId| module.op(*op).name().starts_with(PREFIX);
        let operations = module.block(block).operations().to_vec();
        if !operations.iter().any(is_ours) {
            continue;
        }
        let (mut kept, mut gone) = (Vec::with_capacity(operations.len()), Vec::new());
        for op in operations {
            let Some(row) = module.op(op).name().strip_prefix(PREFIX) else {
                kept.push(op);
                continue;
            };
            match function(module, op, row) {
                Ok(Some(function)) => {
                    kept.extend(program(module, op, function));
                    gone.push(op);
                }
                Ok(None) => kept.push(op),
                Err(message) => {
                    diagnostics.push(module.op_error(codes::GRAPH, op, message));
                    kept.push(op);
                }
            }
        }
        legalize::finish(module, block, kept, gone);
    }
}

/// Returns what programs call an operation, if it is a step of them, after a look at its form.
fn function(module: &Module, op: OpId, name: &str) -> Result<Option<&'static str>, String> {
    let row = tfrt_ops::find(name).ok_or_else(|| legalize::no_row(name))?;
    graph::check(module, op, row)?;
    Ok(step(name))
}

/// Makes a program of one step, and what runs it in the place of an operation.
fn program(module: &mut Module, op: OpId, function: &str) -> [OpId; 2] {
    let operands = module.op(op).operands().to_vec();
    let step = (0..operands.len()).fold(function.to_owned(), |text, index| {
        format!("{text} a{index}")
    });
    let n_inputs = i64::try_from(operands.len()).unwrap_or(i64::MAX);
    let location = module.op(op).location().clone();
    let pack = OpState::new("cpu.pack.program")
        .attribute("inputs", Attribute::integer(n_inputs, Type::I64))
        .attribute("steps", Attribute::array(vec![Attribute::string(step)]))
        .result(Type::dialect("!cpu.graph.program"));
    let pack = module.create(pack.location(location.clone()));
    let result = module.op(op).results()[0];
    let mut state = OpState::new("cpu.graph.elementwise")
        .operand(module.op(pack).results()[0])
        .operands(operands)
        .result(module.value_type(result).clone());
    if let Some(shapes) = module.op(op).attribute("onnx.shapes") {
        state = state.attribute("onnx.shapes", shapes.clone());
    }
    let made = module.create(state.location(location));
    let value = module.op(made).results()[0];
    module.replace_all_uses(result, value);
    [pack, made]
}
