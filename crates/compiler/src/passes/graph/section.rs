//! `graph-section`: makes a function of what runs on a device without the host in between.
//!
//! ```mlir
//! %y = "graph.call"(%x, %w) {callee = @main.section0, place.device = "GPU:0", place.kind = "cuda", section.fixed = [1]}
//! ```
//!
//! Such a call becomes a kernel of the device, which may record what the function gives to the device, and have the device do
//! it again. Nodes are of one section if no path between them leads over the host. Short sections stay as they are.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Diagnostics, Location, Module, OpId, OpState, Type, ValueId};

use super::calls::{CALL, CALLEE};
use super::{GRAPH, graphs, is_terminator, lower, place};
use crate::legalize::Context;
use crate::onnx::Placement;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "graph-section",
    summary: "Makes functions of what runs on a device without the host in between",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::WithContext(run),
};

/// The attribute with the places of the operands that are the same in all calls.
pub(super) const FIXED: &str = "section.fixed";

/// The most nodes of a section that is left as it is, but for those that move nothing.
const MOST_LEFT: usize = 8;

/// Rows whose results are their operands' elements.
const VIEWS: [&str; 5] = [
    "graph.reshape",
    "graph.identity",
    "onnx.Flatten",
    "onnx.Squeeze",
    "onnx.Unsqueeze",
];

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    let device = context.evaluator.device();
    let Some(device) = device.filter(|_| context.evaluator.replays_sections()) else {
        return;
    };
    for (function, block) in graphs(module) {
        lower::hoist_constants(module, block);
        let operations = module.block(block).operations().to_vec();
        let known = lower::load_time_ops(module, &context.dialects.rows, &operations);
        let layers = Layers::new(module, &operations, &known);
        if !layers.on_device.iter().any(|ops| is_long(module, ops)) {
            continue;
        }
        let moved = layers.on_device.iter().filter(|ops| is_long(module, ops));
        let moved: HashSet<OpId> = moved.flatten().copied().collect();
        let left = operations.iter().copied();
        let left = left.filter(|op| !moved.contains(op)).collect();
        module.set_operations(block, left);
        let name = module.symbol_name(function).unwrap_or("main").to_owned();
        let mut all: Vec<OpId> = layers.first;
        let mut n_sections = 0;
        for (host, there) in layers.on_host.into_iter().zip(layers.on_device) {
            all.extend(host);
            if is_long(module, &there) {
                let name = format!("{name}.section{n_sections}");
                n_sections += 1;
                all.push(outline(module, &known, &device, &name, there));
            } else {
                all.extend(there);
            }
        }
        all.extend(layers.last);
        module.set_operations(block, all);
    }
}

/// Returns whether a section has more nodes than its own call costs.
fn is_long(module: &Module, ops: &[OpId]) -> bool {
    let names = ops.iter().map(|op| module.op(*op).name().as_str());
    names.filter(|name| !VIEWS.contains(name)).count() > MOST_LEFT
}

/// The operations of a block in layers: those of the host, and behind them those of a device that wait for them.
#[derive(Default)]
struct Layers {
    /// Operations that run when the model is opened.
    first: Vec<OpId>,
    on_host: Vec<Vec<OpId>>,
    on_device: Vec<Vec<OpId>>,
    /// The terminator.
    last: Vec<OpId>,
}

impl Layers {
    /// Puts operations into the first layer in which all that they need is there.
    fn new(module: &Module, operations: &[OpId], known: &HashSet<OpId>) -> Layers {
        let mut layers = Layers::default();
        // The layer of each value, and whether it is made on the device.
        let mut made: HashMap<ValueId, (usize, bool)> = HashMap::new();
        for &op in operations {
            if known.contains(&op) {
                layers.first.push(op);
                continue;
            }
            if is_terminator(module, op) {
                layers.last.push(op);
                continue;
            }
            let is_there = place::is_placed(module, op);
            let mut inner = Vec::new();
            module.walk_pre_order(op, &mut |op| inner.push(op));
            let operands = inner.iter().flat_map(|op| module.op(*op).operands());
            let needed = operands.filter_map(|value| made.get(value));
            let layer = needed.map(|&(layer, there)| layer + usize::from(there && !is_there));
            let layer = layer.max().unwrap_or(0);
            while layers.on_host.len() <= layer {
                layers.on_host.push(Vec::new());
                layers.on_device.push(Vec::new());
            }
            match is_there {
                true => layers.on_device[layer].push(op),
                false => layers.on_host[layer].push(op),
            }
            let results = module.op(op).results().iter();
            made.extend(results.map(|result| (*result, (layer, is_there))));
        }
        layers
    }
}

/// Moves operations into a function of their own, and returns the call of it.
fn outline(
    module: &mut Module,
    known: &HashSet<OpId>,
    device: &Placement,
    name: &str,
    ops: Vec<OpId>,
) -> OpId {
    let own: HashSet<OpId> = ops.iter().copied().collect();
    let region = module.create_region();
    let body = module.create_block(region);
    let (mut given, mut fixed) = (Vec::new(), Vec::new());
    let mut arguments: HashMap<ValueId, ValueId> = HashMap::new();
    for &op in &ops {
        for index in 0..module.op(op).operands().len() {
            let value = module.op(op).operands()[index];
            let maker = module.defining_op(value);
            if maker.is_some_and(|maker| own.contains(&maker)) {
                continue;
            }
            let argument = match arguments.get(&value) {
                Some(argument) => *argument,
                None => {
                    if maker.is_some_and(|maker| known.contains(&maker)) {
                        let at = i64::try_from(given.len()).unwrap_or(i64::MAX);
                        fixed.push(Attribute::integer(at, Type::I64));
                    }
                    let ty = module.value_type(value).clone();
                    let argument = module.add_argument(body, ty, Location::Unknown);
                    arguments.insert(value, argument);
                    given.push(value);
                    argument
                }
            };
            module.set_operand(op, index, argument);
        }
    }
    let is_outside =
        |module: &Module, value: ValueId| module.users(value).any(|user| !own.contains(&user.op));
    let results = ops.iter().flat_map(|op| module.op(*op).results().to_vec());
    let results: Vec<ValueId> = results.filter(|value| is_outside(module, *value)).collect();
    let types = results
        .iter()
        .map(|value| module.value_type(*value).clone());
    let types: Vec<Type> = types.collect();
    let location = module.op(ops[0]).location().clone();
    let state = OpState::new(CALL)
        .operands(given)
        .results(types)
        .attribute(CALLEE, Attribute::symbol(name))
        .attribute(place::DEVICE, Attribute::string(&device.name))
        .attribute(place::KIND, Attribute::string(&device.kind))
        .attribute(FIXED, Attribute::array(fixed))
        .location(location.clone());
    let call = module.create(state);
    for (index, &value) in results.iter().enumerate() {
        let new = module.op(call).results()[index];
        let users: Vec<_> = module.users(value).collect();
        for user in users.into_iter().filter(|user| !own.contains(&user.op)) {
            module.set_operand(user.op, user.operand as usize, new);
        }
    }
    let last = module.create(OpState::new("tfrt.return").operands(results));
    append_function(module, name, (region, body), ops, last, location);
    call
}

/// Adds a private function of operations to the module.
fn append_function(
    module: &mut Module,
    name: &str,
    (region, body): (tfrt_ir::RegionId, BlockId),
    mut ops: Vec<OpId>,
    last: OpId,
    location: Location,
) {
    ops.push(last);
    module.set_operations(body, ops);
    let state = lower::function(module, name, region, body)
        .attribute("sym_visibility", Attribute::string("private"))
        .location(location);
    let function = module.create(state);
    let top = module.body();
    module.append(top, function);
}

/// Returns the name of the kernel that calls a section, if the operation is such a call.
pub(super) fn kernel_of(module: &Module, op: OpId) -> Option<String> {
    let data = module.op(op);
    data.attribute(FIXED)?;
    let kind = data.attribute(place::KIND)?.as_str()?;
    Some(format!("{kind}.{GRAPH}section"))
}

#[cfg(test)]
mod tests;
