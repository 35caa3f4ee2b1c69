//! Legalizes constants and control flow to the forms that lowering knows.

use tfrt_ir::{Attribute, BlockId, Diagnostics, Location, Module, OpId, OpState, Type, ValueId};
use tfrt_ops::OpDef;
use tfrt_ops::names::{NameAttr, onnx};

use crate::codes;
use crate::passes::graph::{EXTERNAL, NO_VALUE, PREPARE, YIELD};
use crate::passes::scope;

/// Operations of graphs that are no rows.
const MARKERS: [&str; 4] = [NO_VALUE, YIELD, EXTERNAL, PREPARE];

/// Rows that are lowered from ONNX's form.
pub(super) const ROWS: [&str; 3] = ["constant", "if", "scan"];

/// Returns whether an operation of this name is no row, but part of a graph's structure.
pub(super) fn is_marker(name: &str) -> bool {
    MARKERS.contains(&name)
}

/// Converts an operation of one of [`ROWS`] to ONNX's form.
///
/// # Errors
///
/// What can't be said in that form.
pub(super) fn restore(module: &mut Module, op: OpId, row: &OpDef) -> Result<(), String> {
    if row.name == "if" {
        if module.op(op).operands().len() > 1 {
            let message = "expected one operand, the condition: regions see what is around them";
            return Err(message.to_owned());
        }
        // ONNX has the regions in the order of their names.
        module.swap_regions(op, 0, 1);
    }
    let mut names = onnx::NAMES.iter().filter(|name| name.row == row.name);
    let name = names.next().ok_or("has no form that is lowered")?;
    for attr in name.attrs {
        if let NameAttr::Renamed(own, other) = attr
            && let Some(value) = module.remove_attribute(op, own)
        {
            module.set_attribute(op, *other, value);
        }
    }
    module.set_name(op, format!("onnx.{}", name.name));
    let version = Attribute::integer(onnx::NEWEST, Type::I64);
    module.set_attribute(op, "onnx.opset", version);
    Ok(())
}

/// The row that becomes a loop of ONNX, whose turns ask for the condition first.
const WHILE: &str = "graph.while";

/// Converts `graph.while` to loops of ONNX, those inside others first:
///
/// ```mlir
/// %r = "onnx.Loop"(%none, %none, %values) ({
/// ^bb0(%turn, %go, %v):
///   %c = ..                                                       // the condition of %v
///   %w = "onnx.If"(%c) ({ yield %v }, { yield .. }) : ..          // the body of %v, if it holds
///   "graph.yield"(%c, %w)
/// })
/// ```
pub(super) fn loops(module: &mut Module, diagnostics: &mut Diagnostics) {
    for block in scope::blocks(module).into_iter().rev() {
        let operations = module.block(block).operations().to_vec();
        if !operations.iter().any(|op| *module.op(*op).name() == WHILE) {
            continue;
        }
        let (mut kept, mut gone) = (Vec::with_capacity(operations.len()), Vec::new());
        for op in operations {
            if *module.op(op).name() != WHILE {
                kept.push(op);
                continue;
            }
            match repeat(module, op, &mut kept) {
                Ok(()) => gone.push(op),
                Err(message) => {
                    kept.push(op);
                    diagnostics.push(module.op_error(codes::GRAPH, op, message));
                }
            }
        }
        super::finish(module, block, kept, gone);
    }
}

fn repeat(module: &mut Module, op: OpId, kept: &mut Vec<OpId>) -> Result<(), String> {
    let operands = module.op(op).operands().to_vec();
    let n = operands.len();
    let [condition, body] = scope::region_blocks(module, op)[..] else {
        return Err("expected two regions of one block, the condition and the body".to_owned());
    };
    let takes = |block: BlockId| module.block(block).arguments().len();
    let gives = |block: BlockId| {
        let last = module.block(block).last();
        last.map_or(0, |last| module.op(last).operands().len())
    };
    let n_results = module.op(op).results().len();
    if [n_results, takes(condition), takes(body), gives(body)] != [n; 4] || gives(condition) != 1 {
        let message = format!(
            "expected {n} results, regions of {n} arguments, a condition that gives one value and a body that gives {n}"
        );
        return Err(message);
    }
    let location = module.op(op).location().clone();
    let region = module.create_region();
    let inner = module.create_block(region);
    for ty in [Type::I64, Type::I1] {
        module.add_argument(inner, Type::tensor(Vec::new(), ty), Location::Unknown);
    }
    let mut values: Vec<ValueId> = Vec::with_capacity(n);
    for old in module.block(condition).arguments().to_vec() {
        let ty = module.value_type(old).clone();
        values.push(module.add_argument(inner, ty, Location::Unknown));
    }
    for block in [condition, body] {
        for (old, new) in module
            .block(block)
            .arguments()
            .to_vec()
            .into_iter()
            .zip(&values)
        {
            module.replace_all_uses(old, *new);
        }
    }
    let (mut all, asked) = taken(module, condition);
    let (turn, given) = taken(module, body);
    let types: Vec<Type> = values
        .iter()
        .map(|value| module.value_type(*value).clone())
        .collect();
    let mut choice = OpState::new("onnx.If")
        .operands(asked.clone())
        .results(types);
    // ONNX has the regions in the order of their names.
    for (mut operations, given) in [(Vec::new(), values), (turn, given)] {
        let region = module.create_region();
        let branch = module.create_block(region);
        operations.push(module.create(OpState::new(YIELD).operands(given)));
        module.set_operations(branch, operations);
        choice = choice.region(region);
    }
    let version = || Attribute::integer(onnx::NEWEST, Type::I64);
    let choice = choice
        .attribute("onnx.opset", version())
        .location(location.clone());
    let choice = module.create(choice);
    all.push(choice);
    let chosen = module.op(choice).results().to_vec();
    all.push(module.create(OpState::new(YIELD).operands(asked.into_iter().chain(chosen))));
    module.set_operations(inner, all);
    let none = OpState::new(NO_VALUE)
        .result(Type::None)
        .location(location.clone());
    let none = module.create(none);
    let left_out = module.op(none).results()[0];
    let results = module.op(op).results().iter();
    let types: Vec<Type> = results
        .map(|result| module.value_type(*result).clone())
        .collect();
    let repeated = OpState::new("onnx.Loop")
        .operands([left_out; 2].into_iter().chain(operands))
        .results(types)
        .region(region)
        .attribute("onnx.opset", version())
        .location(location);
    let repeated = module.create(repeated);
    kept.extend([none, repeated]);
    let results = module.op(repeated).results().to_vec();
    scope::replace(module, op, &results);
    Ok(())
}

/// Takes all operations but the last out of a block; returns them, and the operands of the last.
fn taken(module: &mut Module, block: BlockId) -> (Vec<OpId>, Vec<ValueId>) {
    let mut operations = module.block(block).operations().to_vec();
    let Some(last) = operations.pop() else {
        return (operations, Vec::new());
    };
    let given = module.op(last).operands().to_vec();
    module.set_operands(last, &[]);
    module.set_operations(block, vec![last]);
    (operations, given)
}
