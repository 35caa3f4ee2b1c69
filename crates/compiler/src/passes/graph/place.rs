//! `graph-place`: places nodes on a device beside the host that has kernels for them.
//!
//! ```mlir
//! %0 = "graph.copy"(%x) {device = "FAKE:0"} : (tensor<4xf32>) -> tensor<4xf32>
//! %1 = "graph.relu"(%0) {place.device = "FAKE:0", place.kind = "fake"} : (tensor<4xf32>) -> tensor<4xf32>
//! %y = "graph.copy"(%1) {device = "CPU:0"} : (tensor<4xf32>) -> tensor<4xf32>
//! ```
//!
//! A value is copied once to each side where it is used; what a kernel reads on the host stays there. Arguments, results
//! of functions and what regions see are on the host; constants are copied when a model is opened. A node of integers or
//! truth values alone goes to the device only if one of its operands is there: else it calculates extents or positions,
//! and copies would cost more than it does. What asks for extents alone stays on the host, and takes its operand where that
//! is: elements are not read. Passes behind this one leave placed nodes as they are, and never join what is
//! on two devices.

use std::collections::HashMap;

use tfrt_bef::DType;
use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId};

use tfrt_ops::{Attrs, KernelQuery, OpDef, Table};

use super::{GRAPH, NO_VALUE, attrs, graphs, is_terminator, lower, node, scope};
use crate::legalize::Context;
use crate::onnx::{Evaluator, Placement, PlacementReport};
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "graph-place",
    summary: "Gives nodes to a device that has kernels for them, and copies what goes there and comes back",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::WithContext(run),
};

/// The attribute with the name of the device that a node is placed on.
pub(super) const DEVICE: &str = "place.device";

/// The attribute with the kind of that device.
pub(super) const KIND: &str = "place.kind";

/// The attribute with the element types of a node's operands, as ONNX numbers them, 0 for an unknown one; of nodes
/// that are prepared.
pub(super) const TYPES: &str = "place.types";

/// The operation that copies a tensor to a device.
pub(super) const COPY: &str = "graph.copy";

/// The name of the host's processor.
const HOST: &str = "CPU:0";

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    let Some(device) = context.evaluator.device() else {
        return;
    };
    let mut report = PlacementReport {
        device: device.name.clone(),
        ..PlacementReport::default()
    };
    let rows = &context.dialects.rows;
    for (_, block) in graphs(module) {
        Placing {
            module,
            evaluator: context.evaluator,
            rows,
            device: &device,
            there: HashMap::new(),
            here: HashMap::new(),
        }
        .block(block);
        count(module, context, block, &mut report);
    }
    context.evaluator.placed(report);
}

/// Counts the nodes of a block that was placed, but for those that run when the model is opened.
fn count(module: &Module, context: &Context<'_>, block: BlockId, report: &mut PlacementReport) {
    let rows = &context.dialects.rows;
    let operations = module.block(block).operations();
    let known = lower::load_time_ops(module, rows, operations);
    for &op in operations.iter().filter(|op| !known.contains(*op)) {
        let data = module.op(op);
        let name = data.name().as_str();
        if is_placed(module, op) {
            report.n_placed += 1;
        } else if name == COPY {
            match data.attribute("device").and_then(Attribute::as_str) == Some(HOST) {
                true => report.n_copies_back += 1,
                false => report.n_copies_there += 1,
            }
        } else if asks_for_extents(module, op) || has_kernel(module, op, rows, context.evaluator) {
            report.n_kept += 1;
        } else if name != NO_VALUE && !is_terminator(module, op) {
            let name = name.strip_prefix(GRAPH).unwrap_or(name);
            let kind = data.attribute("kind").and_then(Attribute::as_str);
            let operation = match kind {
                Some(kind) => format!("{name} {kind}"),
                None => name.to_owned(),
            };
            report.keep(operation, types(module, op));
        }
    }
}

/// Returns whether a node is placed on a device beside the host.
pub(super) fn is_placed(module: &Module, op: OpId) -> bool {
    module.op(op).attribute(DEVICE).is_some()
}

/// Returns the types of the operands of a node, as far as they are known.
pub(super) fn types(module: &Module, op: OpId) -> Vec<Option<DType>> {
    let operands = module.op(op).operands().iter();
    let types = operands.map(|value| node::element(module.value_type(*value)));
    types.map(|ty| attrs::dtype(&ty?)).collect()
}

/// Returns whether a node looks at the extents of its operand, and not at elements.
fn asks_for_extents(module: &Module, op: OpId) -> bool {
    ["graph.shape", "onnx.Shape", "onnx.Size"].contains(&module.op(op).name().as_str())
}

/// Returns whether all operands and results of a node are tensors of integers or truth values.
fn is_integral(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    let mut values = data.operands().iter().chain(data.results());
    values.all(|value| {
        let element = node::element(module.value_type(*value));
        element.is_some_and(|ty| matches!(ty, Type::Integer(_)))
    })
}

/// Returns whether the device has a kernel for a node all of whose operands are tensors.
fn has_kernel(module: &Module, op: OpId, rows: &Table, evaluator: &dyn Evaluator) -> bool {
    let data = module.op(op);
    let name = data.name().strip_prefix(GRAPH).unwrap_or(data.name());
    let row = node::row_of(module, rows, op).filter(|row| row.name == name);
    let mut values = data.operands().iter().chain(data.results());
    let is_whole = !data.operands().is_empty()
        && values.all(|value| node::element(module.value_type(*value)).is_some())
        && data.regions().is_empty();
    let runs = |row: &OpDef| ask(module, op, row, |node| evaluator.runs_on_device(node));
    is_whole && row.as_ref().is_some_and(runs)
}

/// Asks about the kernel that a device has for a node.
pub(super) fn ask<R>(
    module: &Module,
    op: OpId,
    row: &OpDef,
    answer: impl FnOnce(&KernelQuery<'_>) -> R,
) -> R {
    answer(&KernelQuery {
        op: row.name,
        attrs: Attrs::new(&attrs::OpAttrs { module, op }, row.attrs),
        types: &types(module, op),
        n_results: Some(module.op(op).results().len()),
    })
}

/// The state of placing the nodes of a block.
struct Placing<'m> {
    module: &'m mut Module,
    evaluator: &'m dyn Evaluator,
    rows: &'m Table,
    device: &'m Placement,
    /// Values of the host, by their copies on the device.
    there: HashMap<ValueId, ValueId>,
    /// Values of the device, by their copies on the host, where they are used there.
    here: HashMap<ValueId, Option<ValueId>>,
}

impl Placing<'_> {
    fn block(&mut self, block: BlockId) {
        let operations = self.module.block(block).operations().to_vec();
        let mut all = Vec::with_capacity(operations.len());
        for op in operations {
            match self.is_for_device(op) {
                true => self.place(op, &mut all),
                false => self.keep(op, &mut all),
            }
            all.push(op);
        }
        self.module.set_operations(block, all);
    }

    /// Returns whether a node is for the device: it has a kernel there, and is not one of integers of the host.
    fn is_for_device(&self, op: OpId) -> bool {
        let data = self.module.op(op);
        if asks_for_extents(self.module, op) {
            return false;
        }
        let is_near = data.operands().iter().any(|it| self.here.contains_key(it))
            || !is_integral(self.module, op);
        is_near && has_kernel(self.module, op, self.rows, self.evaluator)
    }

    fn place(&mut self, op: OpId, all: &mut Vec<OpId>) {
        let read_here = self.read_on_host(op);
        for index in 0..self.module.op(op).operands().len() {
            let value = self.module.op(op).operands()[index];
            if read_here.contains(&index) {
                self.bring(op, index, op, all);
                continue;
            }
            if self.here.contains_key(&value) {
                continue;
            }
            let copied = match self.there.get(&value) {
                Some(copied) => *copied,
                None => {
                    let copied = self.copy(value, &self.device.name.clone(), op, all);
                    self.there.insert(value, copied);
                    copied
                }
            };
            self.module.set_operand(op, index, copied);
        }
        let Placement { name, kind } = self.device;
        self.module
            .set_attribute(op, DEVICE, Attribute::string(name));
        self.module.set_attribute(op, KIND, Attribute::string(kind));
        let results = self.module.op(op).results().iter().copied();
        self.here.extend(results.map(|result| (result, None)));
    }

    /// Keeps an operation on the host, and copies the values that its regions use.
    fn keep(&mut self, op: OpId, all: &mut Vec<OpId>) {
        if asks_for_extents(self.module, op) {
            return;
        }
        let mut inner = vec![op];
        for block in scope::region_blocks(self.module, op) {
            for &child in self.module.block(block).operations() {
                self.module.walk_pre_order(child, &mut |op| inner.push(op));
            }
        }
        for user in inner {
            for index in 0..self.module.op(user).operands().len() {
                self.bring(user, index, op, all);
            }
        }
    }

    /// Has an operand on the host: a copy of it, if it is on the device.
    fn bring(&mut self, user: OpId, index: usize, like: OpId, all: &mut Vec<OpId>) {
        let value = self.module.op(user).operands()[index];
        let copied = match self.here.get(&value) {
            None => return,
            Some(Some(copied)) => *copied,
            Some(None) => {
                let copied = self.copy(value, HOST, like, all);
                self.here.insert(value, Some(copied));
                copied
            }
        };
        self.module.set_operand(user, index, copied);
    }

    /// Returns the places of the operands that the device's kernel reads on the host.
    fn read_on_host(&self, op: OpId) -> &'static [usize] {
        let row = node::row_of(self.module, self.rows, op);
        row.map_or(&[], |row| {
            ask(self.module, op, &row, |node| {
                self.evaluator.read_on_host(node)
            })
        })
    }

    fn copy(&mut self, value: ValueId, to: &str, like: OpId, all: &mut Vec<OpId>) -> ValueId {
        let ty = self.module.value_type(value).clone();
        let state = OpState::new(COPY)
            .operand(value)
            .attribute("device", Attribute::string(to))
            .result(ty);
        let location = self.module.op(like).location().clone();
        let copy = self.module.create(state.location(location));
        all.push(copy);
        self.module.op(copy).results()[0]
    }
}

#[cfg(test)]
mod tests;
