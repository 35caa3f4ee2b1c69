//! `graph-prepare`: has kernels prepare the constants of nodes once, when a model is opened.
//!
//! ```mlir
//! %p = "graph.prepare"(%none, %w, %r) {hidden_size = 8 : i64, kind = "lstm", op = "rnn"} : (..) -> !graph.prepared
//! %y = "graph.rnn"(%x, %p) {hidden_size = 8 : i64, kind = "lstm"} : (..) -> tensor<..>
//! ```
//!
//! Which operands a kernel takes is asked of who has the kernels. A node stays as it is if one of these is no constant. For
//! a node that is placed on a device its kernel there prepares, of the constants that were copied to it.

use std::collections::HashSet;

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId};
use tfrt_ops::Table;
use tfrt_ops::names::onnx;

use super::rewrite::list;
use super::{EXTERNAL, GRAPH, NO_VALUE, PREPARE, attrs, graphs, lower, node, place, scope};
use crate::legalize::Context;
use crate::onnx::{Evaluator, PrepareRule};
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "graph-prepare",
    summary: "Has kernels make of constants what they need of them, once for a model",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::WithContext(run),
};

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    let rows = &context.dialects.rows;
    for (_, block) in graphs(module) {
        lower::hoist_constants(module, block);
        let operations = module.block(block).operations().to_vec();
        let mut preparing = Preparing {
            known: lower::load_time_ops(module, rows, &operations),
            module,
            evaluator: context.evaluator,
            rows,
        };
        let mut all = Vec::with_capacity(operations.len());
        for op in operations {
            preparing.operation(op, &mut all);
            all.push(op);
        }
        module.set_operations(block, all);
        super::rewrite::remove_unused(module, rows, block);
    }
}

/// The state of preparing the nodes of a block.
struct Preparing<'m> {
    module: &'m mut Module,
    evaluator: &'m dyn Evaluator,
    rows: &'m Table,
    /// Operations that run when the model is opened.
    known: HashSet<OpId>,
}

impl Preparing<'_> {
    /// Prepares an operation, and those in its regions; appends the preparing operations to `made`.
    ///
    /// Recursion is bounded by the limit of the text, or the importer, on nesting.
    fn operation(&mut self, op: OpId, made: &mut Vec<OpId>) {
        for block in scope::region_blocks(self.module, op) {
            self.block(block, made);
        }
        let Some(row) = self.row(op) else {
            return;
        };
        let prepares = match place::is_placed(self.module, op) {
            true => node::row_of(self.module, self.rows, op).and_then(|row| {
                place::ask(self.module, op, &row, |node| {
                    self.evaluator.prepares_on_device(node)
                })
            }),
            false => self.evaluator.prepares(&row),
        };
        if let Some(prepares) = prepares
            && self.are_constants(op, prepares)
        {
            self.prepare(op, &row, prepares, made);
        }
    }

    fn block(&mut self, block: BlockId, made: &mut Vec<OpId>) {
        for op in self.module.block(block).operations().to_vec() {
            self.operation(op, made);
        }
    }

    /// Returns the name under which an operation is prepared, if it is a row or was fused. An operation that runs
    /// once is not prepared.
    fn row(&self, op: OpId) -> Option<String> {
        let name = self.module.op(op).name();
        match name.strip_prefix("cpu.") {
            Some(fused) => Some(fused.to_owned()),
            None if self.known.contains(&op) => None,
            None if place::is_placed(self.module, op) => {
                name.strip_prefix(GRAPH).map(str::to_owned)
            }
            None => node::row(self.module, op).map(|row| row.name.to_owned()),
        }
    }

    /// Returns whether all operands to prepare are constants, the first of a supported type, and there is at least
    /// one.
    fn are_constants(&self, op: OpId, prepares: PrepareRule) -> bool {
        let is_constant = |value: ValueId| {
            let maker = self.module.defining_op(value);
            let is_known =
                |maker| self.known.contains(&maker) || *self.module.op(maker).name() == EXTERNAL;
            maker.is_some_and(is_known)
        };
        let taken = prepares.inputs.iter();
        let taken = taken.filter_map(|place| node::operand(self.module, op, *place));
        let taken: Vec<ValueId> = taken.collect();
        let is_of_type = |first: &ValueId| {
            let element = node::element(self.module.value_type(*first));
            let dtype = element.and_then(|ty| attrs::dtype(&ty));
            dtype.is_some_and(|dtype| prepares.types.contains(&dtype))
        };
        if !prepares.types.is_empty() && !taken.first().is_some_and(is_of_type) {
            return false;
        }
        (prepares.takes_attributes || !taken.is_empty()) && taken.into_iter().all(is_constant)
    }

    fn prepare(&mut self, op: OpId, row: &str, prepares: PrepareRule, made: &mut Vec<OpId>) {
        let location = self.module.op(op).location().clone();
        let none = OpState::new(NO_VALUE).result(Type::None);
        let none = self.module.create(none.location(location.clone()));
        made.push(none);
        let none = self.module.op(none).results()[0];
        let is_taken = |place: &usize| prepares.inputs.contains(place);
        let operands = self.module.op(op).operands().to_vec();
        let mut constants = Vec::new();
        for (place, value) in operands
            .iter()
            .enumerate()
            .filter(|(place, _)| is_taken(place))
        {
            if node::operand(self.module, op, place).is_some() {
                constants.resize(place, none);
                constants.push(*value);
            }
        }
        let mut state = OpState::new(PREPARE)
            .operands(constants)
            .attribute("op", Attribute::string(row));
        let attributes = self.module.op(op).attributes().to_vec();
        for (name, value) in &attributes {
            if super::is_note(name) {
                continue;
            }
            state = state.attribute(name.clone(), value.clone());
            if prepares.takes_attributes && !name.starts_with("place.") {
                self.module.remove_attribute(op, name);
            }
        }
        if let Some(version) = lower::stated_opset(self.module, op) {
            state = state.attribute("onnx.opset", Attribute::integer(version, Type::I64));
        }
        if place::is_placed(self.module, op) {
            let types = place::types(self.module, op).into_iter();
            let numbers = types.map(|dtype| dtype.and_then(onnx::number).unwrap_or(0));
            state = state.attribute(place::TYPES, list(&numbers.collect::<Vec<i64>>()));
        }
        let state = state.result(super::prepared());
        let prepare = self.module.create(state.location(location));
        made.push(prepare);
        let left = (0..operands.len()).filter(|place| !is_taken(place));
        let mut left: Vec<ValueId> = left.map(|place| operands[place]).collect();
        while left.last().is_some_and(|last| self.is_none(*last)) {
            left.pop();
        }
        left.push(self.module.op(prepare).results()[0]);
        self.module.set_operands(op, &left);
    }

    fn is_none(&self, value: ValueId) -> bool {
        let maker = self.module.defining_op(value);
        maker.is_some_and(|maker| *self.module.op(maker).name() == NO_VALUE)
    }
}

#[cfg(test)]
mod tests;
