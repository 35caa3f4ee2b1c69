//! `onnx-names`: operations of graphs by the names that ONNX has for them, which the passes behind speak.
//!
//! `graph.ROW` becomes the operation of ONNX that is the row with these attributes ([`tfrt_ops::names::onnx::of_row`]).
//! What ONNX spells out becomes two operations. Pointwise rows that are neither stay, and become a program of one step
//! when everything else is done (`lower-graph`).

use tfrt_ir::{Attribute, Diagnostics, Module, OpId, OpState, Type};
use tfrt_ops::names::{NameAttr, onnx};
use tfrt_ops::{OpDef, names};

use super::attrs::{self, OpAttrs};
use super::{NO_VALUE, YIELD, lower_graph, scope};
use crate::codes;
use crate::graph;
use crate::legalize::unknown;
use crate::passes::legalize;
use crate::pipeline::{Pass, Property, Run};

pub(crate) const PASS: Pass = Pass {
    name: "onnx-names",
    summary: "Calls operations of graphs by the names of ONNX",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: Run::Alone(run),
};

/// The version of ONNX whose reductions and splits have their lists in attributes; later ones have them in operands.
const LISTS_IN_ATTRIBUTES: i64 = 11;

/// Operations of graphs that are no rows, and what ONNX has for them.
const STRUCTURE: [(&str, &str); 2] = [("none", NO_VALUE), ("yield", YIELD)];

fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    for block in scope::blocks(module) {
        let is_ours = |op: &OpId| module.op(*op).name().starts_with(lower_graph::PREFIX);
        let operations = module.block(block).operations().to_vec();
        if !operations.iter().any(is_ours) {
            continue;
        }
        let mut kept = Vec::with_capacity(operations.len());
        for op in operations {
            kept.push(op);
            let made = rename(module, op, &mut kept);
            if let Err(message) = made {
                diagnostics.push(module.op_error(codes::GRAPH, op, message));
            }
        }
        module.set_operations(block, kept);
    }
}

/// Calls an operation by its name in ONNX, if it has one; what comes behind it stands in `kept`.
fn rename(module: &mut Module, op: OpId, kept: &mut Vec<OpId>) -> Result<(), String> {
    let name = module.op(op).name().clone();
    let Some(name) = name.strip_prefix(lower_graph::PREFIX) else {
        return Ok(());
    };
    if let Some((_, other)) = STRUCTURE.iter().find(|(own, _)| *own == name) {
        module.set_name(op, *other);
        return Ok(());
    }
    let row = tfrt_ops::find(name).filter(|row| !row.name.contains('.'));
    let row = row.ok_or_else(|| legalize::no_row(name))?;
    graph::check(module, op, row)?;
    attrs::unify(module, op, row.attrs);
    match row.name {
        "ne" => negate(module, op, kept),
        "shift_left" => shift(module, op, "LEFT"),
        "shift_right" => shift(module, op, "RIGHT"),
        "if" if module.op(op).operands().len() > 1 => {
            return Err(
                "expected one operand, the condition: regions see what is around them".into(),
            );
        }
        // ONNX has the regions in the order of their names.
        "if" => module.swap_regions(op, 0, 1),
        _ => {}
    }
    if !module.op(op).name().starts_with(lower_graph::PREFIX) {
        return Ok(());
    }
    let found = onnx::of_row(row, &OpAttrs { module, op });
    match found {
        Some(name) => named(module, op, row, name),
        None if lower_graph::step(row.name).is_some() => Ok(()),
        None => Err(lower_graph::no_kernel(row.name)),
    }
}

/// Calls an operation as ONNX does, and so its attributes.
fn named(
    module: &mut Module,
    op: OpId,
    row: &'static OpDef,
    name: &names::Name,
) -> Result<(), String> {
    let mut set = Vec::new();
    for attr in name.attrs {
        let Some(value) = module.remove_attribute(op, attr.row()) else {
            continue;
        };
        match attr {
            NameAttr::Renamed(_, other) => set.push((*other, value)),
            NameAttr::Type(own, other) => {
                let dtype = value.as_type().and_then(attrs::dtype);
                let number = dtype.and_then(onnx::number).ok_or_else(|| {
                    format!("attribute '{own}': expected the type of elements, found {value}")
                })?;
                set.push((*other, Attribute::integer(number, Type::I64)));
            }
            _ => {}
        }
    }
    // What other names of the row state is the default here, of which ONNX knows nothing.
    let others = onnx::NAMES.iter().filter(|other| other.row == row.name);
    for attr in others.flat_map(|other| other.attrs) {
        if attr.fixed().is_some() {
            module.remove_attribute(op, attr.row());
        }
    }
    for (other, value) in set {
        module.set_attribute(op, other, value);
    }
    let has_lists = match row.name {
        "reduce" => module.op(op).attribute("axes").is_some(),
        "split" => module.op(op).attribute("split").is_some(),
        _ => false,
    };
    let version = match has_lists {
        true => LISTS_IN_ATTRIBUTES,
        false => onnx::NEWEST,
    };
    module.set_name(op, format!("onnx.{}", name.name));
    state_version(module, op, version);
    Ok(())
}

fn state_version(module: &mut Module, op: OpId, version: i64) {
    module.set_attribute(op, "onnx.opset", Attribute::integer(version, Type::I64));
}

/// Whether two elements differ: whether they are the same, negated.
fn negate(module: &mut Module, op: OpId, kept: &mut Vec<OpId>) {
    let result = module.op(op).results()[0];
    let state = OpState::new("onnx.Not").result(module.value_type(result).clone());
    let made = module.create(state.location(module.op(op).location().clone()));
    let negated = module.op(made).results()[0];
    module.replace_all_uses(result, negated);
    module.set_operands(made, &[result]);
    module.set_value_type(result, unknown());
    module.set_name(op, "onnx.Equal");
    for op in [op, made] {
        state_version(module, op, onnx::NEWEST);
    }
    kept.push(made);
}

fn shift(module: &mut Module, op: OpId, direction: &str) {
    module.set_name(op, "onnx.BitShift");
    module.set_attribute(op, "direction", Attribute::string(direction));
    state_version(module, op, onnx::NEWEST);
}
