//! `graph-prepare`: constants of nodes become what their kernels make of them, once, when a model is opened.
//!
//! ```mlir
//! %p = "graph.prepare"(%none, %w, %r) {hidden_size = 8 : i64, kind = "lstm", op = "rnn"} : (..) -> !graph.prepared
//! %y = "graph.rnn"(%x, %none, %none, %p) {hidden_size = 8 : i64, kind = "lstm"} : (..) -> tensor<..>
//! ```
//!
//! Which operands a kernel takes is asked of who has the kernels. A node stays as it is if one of these is no constant.

use std::collections::HashSet;

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId};

use super::{EXTERNAL, NO_VALUE, PREPARE, graphs, lower, node, scope};
use crate::legalize::Context;
use crate::onnx::{Evaluator, Prepares};
use crate::pipeline::{Pass, Property, Run};

pub(crate) const PASS: Pass = Pass {
    name: "graph-prepare",
    summary: "Has kernels make of constants what they need of them, once for a model",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: Run::With(run),
};

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    for (_, block) in graphs(module) {
        lower::hoist_constants(module, block);
        let operations = module.block(block).operations().to_vec();
        let mut preparing = Preparing {
            known: lower::known_ahead(module, &operations),
            module,
            evaluator: context.evaluator,
        };
        let mut all = Vec::with_capacity(operations.len());
        for op in operations {
            preparing.operation(op, &mut all);
            all.push(op);
        }
        module.set_operations(block, all);
    }
}

struct Preparing<'m> {
    module: &'m mut Module,
    evaluator: &'m dyn Evaluator,
    /// Operations that run when the model is opened.
    known: HashSet<OpId>,
}

impl Preparing<'_> {
    /// Prepares an operation, and those in its regions; what prepares them is added to `made`.
    ///
    /// Recursion is bounded by the limit of the text, or the importer, on nesting.
    fn operation(&mut self, op: OpId, made: &mut Vec<OpId>) {
        if self.known.contains(&op) {
            return;
        }
        for block in scope::region_blocks(self.module, op) {
            self.block(block, made);
        }
        let row = node::row(self.module, op).map(|row| row.name);
        let found = row.and_then(|row| Some((row, self.evaluator.prepares(row)?)));
        if let Some((row, prepares)) = found
            && let Some(taken) = self.taken(op, prepares)
        {
            self.prepare(op, row, prepares, &taken, made);
        }
    }

    fn block(&mut self, block: BlockId, made: &mut Vec<OpId>) {
        for op in self.module.block(block).operations().to_vec() {
            self.operation(op, made);
        }
    }

    /// Returns the places of the operands that are taken, if all of them are constants.
    fn taken(&self, op: OpId, prepares: Prepares) -> Option<Vec<usize>> {
        let is_constant = |value: ValueId| {
            let maker = self.module.defining_op(value);
            let is_known =
                |maker| self.known.contains(&maker) || *self.module.op(maker).name() == EXTERNAL;
            maker.is_some_and(is_known)
        };
        let mut taken = Vec::new();
        for &index in prepares.inputs {
            match node::operand(self.module, op, index) {
                None => {}
                Some(value) if is_constant(value) => taken.push(index),
                Some(_) => return None,
            }
        }
        (prepares.takes_attributes || !taken.is_empty()).then_some(taken)
    }

    fn prepare(
        &mut self,
        op: OpId,
        row: &str,
        prepares: Prepares,
        taken: &[usize],
        made: &mut Vec<OpId>,
    ) {
        let location = self.module.op(op).location().clone();
        let none = OpState::new(NO_VALUE).result(Type::None);
        let none = self.module.create(none.location(location.clone()));
        made.push(none);
        let none = self.module.op(none).results()[0];
        let operands = self.module.op(op).operands().to_vec();
        let n_taken = taken.last().map_or(0, |last| last + 1);
        let constants = (0..n_taken).map(|index| match taken.contains(&index) {
            true => operands[index],
            false => none,
        });
        let mut state = OpState::new(PREPARE)
            .operands(constants.collect::<Vec<_>>())
            .attribute("op", Attribute::string(row));
        let attributes = self.module.op(op).attributes().to_vec();
        for (name, value) in &attributes {
            if name.starts_with("onnx.") {
                continue;
            }
            state = state.attribute(name.clone(), value.clone());
            if prepares.takes_attributes {
                self.module.remove_attribute(op, name);
            }
        }
        if let Some(version) = lower::stated_opset(self.module, op) {
            state = state.attribute("onnx.opset", Attribute::integer(version, Type::I64));
        }
        let state = state.result(super::prepared());
        let prepare = self.module.create(state.location(location));
        made.push(prepare);
        let mut left: Vec<ValueId> = operands
            .into_iter()
            .enumerate()
            .map(|(index, value)| if taken.contains(&index) { none } else { value })
            .collect();
        left.push(self.module.op(prepare).results()[0]);
        self.module.set_operands(op, &left);
    }
}
