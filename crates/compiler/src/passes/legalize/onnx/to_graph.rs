//! `onnx-to-graph`: operations of dialect `onnx` that are rows of the table become operations of dialect `graph`.
//!
//! Names and attributes are data ([`tfrt_ops::names::onnx`]). What has no row of `graph` stays as it is: library
//! operations, control flow, constants, and forms so old that they mean something else. Passes behind this one look at
//! rows, and kernels are rows'.

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type};
use tfrt_ops::names::{NameAttr, onnx};

use crate::codes;
use crate::graph;
use crate::passes::graph::attrs::{self, OpAttrs};
use crate::passes::graph::{graphs, lower};
use crate::passes::legalize::structure;
use crate::passes::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "onnx-to-graph",
    summary: "Makes operations of dialect graph of those of dialect onnx that are rows",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    for (_, block) in graphs(module) {
        legalize(module, block, diagnostics);
    }
}

/// Converts the operations of a block. Recursion is bounded by the limit of the text, or the importer, on nesting.
fn legalize(module: &mut Module, block: BlockId, diagnostics: &mut Diagnostics) {
    let (mut all, mut gone) = (Vec::new(), Vec::new());
    for op in module.block(block).operations().to_vec() {
        for inner in scope::region_blocks(module, op) {
            legalize(module, inner, diagnostics);
        }
        let state = match of_graph(module, op) {
            Ok(Some(state)) => state,
            Ok(None) => {
                all.push(op);
                continue;
            }
            Err(message) => {
                diagnostics.push(module.op_error(codes::GRAPH, op, message));
                all.push(op);
                continue;
            }
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

/// Returns the operation of `graph` that an operation is, without results, if it is one. Attributes that neither
/// ONNX's newest version nor the row has are dropped.
fn of_graph(module: &Module, op: OpId) -> Result<Option<OpState>, String> {
    let data = module.op(op);
    let version = lower::stated_opset(module, op).unwrap_or(i64::MAX);
    let name = data.name().strip_prefix("onnx.").and_then(onnx::name);
    let own = name.filter(|own| own.is_row(version, &OpAttrs { module, op }));
    let own = own.filter(|own| !structure::ROWS.contains(&own.row));
    let found = own.and_then(|own| Some((own, tfrt_ops::find(own.row)?)));
    let Some((own, row)) = found else {
        return Ok(None);
    };
    let fitting = |stated: &str, name: &str, value: &Attribute| match row.attr(name) {
        Some(attr) if !graph::kind(attr).accepts(value) => Err(format!(
            "attribute '{stated}': expected {}, found {value}",
            graph::kind(attr).name()
        )),
        _ => Ok(value.clone()),
    };
    let mut state =
        OpState::new(format!("graph.{}", own.row)).operands(data.operands().iter().copied());
    for (stated, value) in data.attributes() {
        if stated.starts_with("onnx.") {
            continue;
        }
        match own.attrs.iter().find(|attr| attr.source() == Some(stated)) {
            None if row.attr(stated).is_none() => {}
            None => state = state.attribute(stated.clone(), fitting(stated, stated, value)?),
            Some(NameAttr::Type(row, _)) => {
                let number = value.as_i64();
                match number.and_then(onnx::dtype).and_then(attrs::element) {
                    Some(ty) => state = state.attribute(*row, Attribute::Type(ty)),
                    // It says that the type follows from the operands.
                    None if number == Some(0) => {}
                    None => {
                        return Err(format!(
                            "attribute '{stated}': expected the number of a type, found {value}"
                        ));
                    }
                }
            }
            Some(attr) => state = state.attribute(attr.row(), fitting(stated, attr.row(), value)?),
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
    Ok(Some(state))
}
