//! `onnx-to-graph`: operations of dialect `onnx` that are rows of the table become operations of dialect `graph`.
//!
//! Names and attributes are data ([`tfrt_ops::names::onnx`]). What has no row of `graph` stays as it is: library
//! operations, control flow, constants, and forms so old that they mean something else. Passes behind this one look at
//! rows; [`restored`] is the way back, for kernels, which have ONNX's names.

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, Name as Word, OpId, OpState, Type};
use tfrt_ops::names::{NameAttr, onnx};

use crate::graph;
use crate::passes::graph::attrs::{self, OpAttrs};
use crate::passes::graph::{graphs, lower, node};
use crate::passes::scope;
use crate::pipeline::{Pass, Property, Run};

pub(crate) const PASS: Pass = Pass {
    name: "onnx-to-graph",
    summary: "Makes operations of dialect graph of those of dialect onnx that are rows",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: Run::Alone(run),
};

/// Operations that stay: passes look at them as what they are.
const STAY: &[&str] = &["constant", "if", "scan"];

fn run(module: &mut Module, _: &mut Diagnostics) {
    for (_, block) in graphs(module) {
        legalize(module, block);
    }
}

/// Recursion is bounded by the limit of the text, or the importer, on nesting.
fn legalize(module: &mut Module, block: BlockId) {
    let (mut all, mut gone) = (Vec::new(), Vec::new());
    for op in module.block(block).operations().to_vec() {
        for inner in scope::region_blocks(module, op) {
            legalize(module, inner);
        }
        let Some(state) = of_graph(module, op) else {
            all.push(op);
            continue;
        };
        let types = module
            .op(op)
            .results()
            .iter()
            .map(|value| module.value_type(*value).clone());
        let state = state.results(types.collect::<Vec<_>>());
        let made = module.create(state.location(module.op(op).location().clone()));
        let values = module.op(made).results().to_vec();
        scope::replace(module, op, &values);
        all.push(made);
        gone.push(op);
    }
    module.set_operations(block, all);
    for op in gone {
        module.erase(op);
    }
}

/// Returns the operation of `graph` that one is, without results.
fn of_graph(module: &Module, op: OpId) -> Option<OpState> {
    let data = module.op(op);
    let name = data.name().strip_prefix("onnx.")?;
    let version = lower::stated_opset(module, op).unwrap_or(i64::MAX);
    let own = onnx::name(name).filter(|own| own.is_row(version, &OpAttrs { module, op }))?;
    if STAY.contains(&own.row) {
        return None;
    }
    // One with an attribute of another kind stays as well: its kernel says so.
    let row = tfrt_ops::find(own.row)?;
    let is_wrong = |name: &str, value: &Attribute| {
        let attr = row.attr(name);
        attr.is_some_and(|attr| !graph::kind(attr).accepts(value))
    };
    let mut state =
        OpState::new(format!("graph.{}", own.row)).operands(data.operands().iter().copied());
    for (stated, value) in data.attributes() {
        if stated.starts_with("onnx.") {
            continue;
        }
        match own.attrs.iter().find(|attr| attr.source() == Some(stated)) {
            None if is_wrong(stated, value) => return None,
            None => state = state.attribute(stated.clone(), value.clone()),
            Some(NameAttr::Type(row, _)) => {
                // A number that stands for no type says that it follows from the operands.
                let ty = value
                    .as_i64()
                    .and_then(onnx::dtype)
                    .and_then(attrs::element);
                if let Some(ty) = ty {
                    state = state.attribute(*row, Attribute::Type(ty));
                }
            }
            Some(attr) if is_wrong(attr.row(), value) => return None,
            Some(attr) => state = state.attribute(attr.row(), value.clone()),
        }
    }
    for attr in own.attrs {
        match attr {
            NameAttr::Text(row, text) => state = state.attribute(*row, Attribute::string(*text)),
            NameAttr::Int(row, value) => {
                state = state.attribute(*row, Attribute::integer(*value, Type::I64))
            }
            _ => {}
        }
    }
    Some(state)
}

/// Returns the name and the attributes that an operation of `graph` has in ONNX, if it has any there.
pub(in crate::passes) fn restored(
    module: &Module,
    op: OpId,
) -> Option<(&'static str, Vec<(Word, Attribute)>)> {
    let row = node::row(module, op).filter(|row| row.dialect() == "graph")?;
    let own = onnx::of_row(row, &OpAttrs { module, op })?;
    let mut all = Vec::new();
    for (stated, value) in module.op(op).attributes() {
        match own.attrs.iter().find(|attr| attr.row() == stated.as_str()) {
            None => all.push((stated.clone(), value.clone())),
            Some(NameAttr::Renamed(_, name)) => all.push(((*name).into(), value.clone())),
            Some(NameAttr::Type(_, name)) => {
                let number = match value {
                    Attribute::Type(ty) => attrs::dtype(ty).and_then(onnx::number),
                    _ => None,
                };
                all.push(((*name).into(), Attribute::integer(number?, Type::I64)));
            }
            Some(_) => {}
        }
    }
    Some((own.name, all))
}
