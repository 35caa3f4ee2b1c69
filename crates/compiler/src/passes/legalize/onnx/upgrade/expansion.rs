//! [`Expansion`]: replaces an operation by several.

use tfrt_ir::{Attribute, BlockId, Module, Name, OpId, OpState, Type, ValueId};

use crate::legalize::unknown;
use crate::passes::graph::{CONSTANT, NO_VALUE, node};
use crate::passes::scope;

/// The version of the operations that are made.
const VERSION: i64 = 18;

/// The replacement of an operation, which is built operation by operation.
pub(super) struct Expansion<'m> {
    pub(super) module: &'m mut Module,
    /// The new operations of the block.
    pub(super) kept: &'m mut Vec<OpId>,
    /// The operation that is replaced.
    pub(super) like: OpId,
}

impl Expansion<'_> {
    /// Appends an operation with one result, whose type is inferred later.
    pub(super) fn add(
        &mut self,
        name: &str,
        operands: &[ValueId],
        attributes: &[(&'static str, Attribute)],
    ) -> ValueId {
        let mut state = OpState::new(format!("onnx.{name}")).operands(operands.iter().copied());
        for (name, value) in attributes {
            state = state.attribute(Name::from(*name), value.clone());
        }
        let state = state.attribute("onnx.opset", integer(VERSION));
        self.append(state.result(unknown()))
    }

    /// Appends an operation of the dialect `graph` with results of which no type is known yet.
    pub(super) fn rows(
        &mut self,
        row: &str,
        operands: &[ValueId],
        attributes: &[(&'static str, Attribute)],
        n_results: usize,
    ) -> Vec<ValueId> {
        let mut state = OpState::new(format!("graph.{row}")).operands(operands.iter().copied());
        for (name, value) in attributes {
            state = state.attribute(Name::from(*name), value.clone());
        }
        self.append_all(state.results(vec![unknown(); n_results]))
    }

    /// Appends an operation of the format with several results of which no type is known yet.
    pub(super) fn library(
        &mut self,
        name: &str,
        operands: &[ValueId],
        attributes: &[(&'static str, Attribute)],
        n_results: usize,
    ) -> Vec<ValueId> {
        let mut state = OpState::new(format!("onnx.{name}")).operands(operands.iter().copied());
        for (name, value) in attributes {
            state = state.attribute(Name::from(*name), value.clone());
        }
        let state = state.attribute("onnx.opset", integer(VERSION));
        self.append_all(state.results(vec![unknown(); n_results]))
    }

    /// Appends what stands for an operand that is left out.
    pub(super) fn none(&mut self) -> ValueId {
        self.append(OpState::new(NO_VALUE).result(Type::None))
    }

    /// Appends a constant tensor.
    pub(super) fn constant(&mut self, value: Attribute) -> ValueId {
        let ty = match &value {
            Attribute::Dense(dense) => dense.ty.clone(),
            _ => Type::None,
        };
        self.append(OpState::new(CONSTANT).attribute("value", value).result(ty))
    }

    /// Appends a list of integers.
    pub(super) fn integers(&mut self, numbers: &[i64]) -> ValueId {
        let n = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
        self.constant(super::integers(vec![n], numbers))
    }

    /// Appends floats of a shape.
    pub(super) fn floats(&mut self, shape: Vec<i64>, numbers: &[f32]) -> ValueId {
        let bytes = numbers.iter().map(|number| number.to_le_bytes().to_vec());
        self.constant(super::dense(
            Type::tensor(shape, Type::F32),
            bytes.collect(),
        ))
    }

    /// Appends a concatenation of lists.
    pub(super) fn list(&mut self, parts: &[ValueId]) -> ValueId {
        self.add("Concat", parts, &[("axis", integer(0))])
    }

    /// Appends a transposition.
    pub(super) fn transposed(&mut self, value: ValueId, order: &[i64]) -> ValueId {
        let order = order.iter().map(|place| integer(*place)).collect();
        self.add("Transpose", &[value], &[("perm", Attribute::array(order))])
    }

    /// Returns an extent, if it is known.
    pub(super) fn extent(&self, value: ValueId, axis: usize) -> Option<i64> {
        let shape = node::shape(self.module, value)?;
        shape.get(axis).copied().filter(|extent| *extent >= 0)
    }

    /// Appends the extents of a value from one axis to another, as a list.
    pub(super) fn extents(&mut self, value: ValueId, start: i64, end: i64) -> ValueId {
        let range = [("start", integer(start)), ("end", integer(end))];
        self.add("Shape", &[value], &range)
    }

    /// Moves the operations of a graph with one argument and one result here; returns the result for a value.
    pub(super) fn inline(&mut self, graph: BlockId, value: ValueId) -> ValueId {
        let argument = self.module.block(graph).arguments()[0];
        self.module.replace_all_uses(argument, value);
        let mut operations = self.module.block(graph).operations().to_vec();
        let Some(last) = operations.pop() else {
            return value;
        };
        let given = self.module.op(last).operands()[0];
        self.module.set_operations(graph, vec![last]);
        self.kept.extend(operations);
        given
    }

    /// Gives a new value the type that the model states of an old result. An argument of a function, which an
    /// operation may return, keeps its type.
    pub(super) fn state_type(&mut self, value: ValueId, result: usize) {
        if self.module.defining_op(value).is_none() {
            return;
        }
        let stated = self.module.op(self.like).results()[result];
        let stated = self.module.value_type(stated).clone();
        self.module.set_value_type(value, stated);
    }

    /// Appends an operation with one result.
    pub(super) fn append(&mut self, state: OpState) -> ValueId {
        self.append_all(state)[0]
    }

    /// Appends an operation, and returns its results.
    pub(super) fn append_all(&mut self, state: OpState) -> Vec<ValueId> {
        let location = self.module.op(self.like).location().clone();
        let op = self.module.create(state.location(location));
        self.kept.push(op);
        self.module.op(op).results().to_vec()
    }
}

/// Replaces the operations for which `make` makes something, those inside others first.
pub(super) fn expand(
    module: &mut Module,
    is_one: fn(&Module, OpId) -> bool,
    make: fn(&mut Expansion<'_>) -> Option<Vec<ValueId>>,
) {
    let make = |here: &mut Expansion<'_>| {
        let made = make(here)?;
        Some(Ok(made.into_iter().map(Some).collect()))
    };
    try_expand(module, is_one, make, &mut |_, _, _| {});
}

/// Puts what `make` makes in the place of operations for which it makes something, those inside others first: a value for
/// each result, or nothing for one that nobody uses. What it can't make is told to `refuse`, and stays as it is. Returns how many
/// are gone.
pub(super) fn try_expand(
    module: &mut Module,
    is_one: impl Fn(&Module, OpId) -> bool,
    make: impl Fn(&mut Expansion<'_>) -> Option<Result<Vec<Option<ValueId>>, String>>,
    refuse: &mut dyn FnMut(&Module, OpId, String),
) -> usize {
    let mut n_made = 0;
    for block in scope::blocks(module).into_iter().rev() {
        let operations = module.block(block).operations().to_vec();
        if !operations.iter().any(|op| is_one(module, *op)) {
            continue;
        }
        let (mut kept, mut gone) = (Vec::with_capacity(operations.len()), Vec::new());
        for op in operations {
            if !is_one(module, op) {
                kept.push(op);
                continue;
            }
            let mut here = Expansion {
                module,
                kept: &mut kept,
                like: op,
            };
            let n_kept = here.kept.len();
            let results = match make(&mut here) {
                Some(Ok(results)) => results,
                failed => {
                    // What was made until then.
                    for made in kept.drain(n_kept..).rev() {
                        module.erase(made);
                    }
                    kept.push(op);
                    if let Some(Err(message)) = failed {
                        refuse(module, op, message);
                    }
                    continue;
                }
            };
            let old = here.module.op(op).results().to_vec();
            for (index, (old, new)) in old.into_iter().zip(results).enumerate() {
                if let Some(new) = new {
                    here.state_type(new, index);
                    here.module.replace_all_uses(old, new);
                }
            }
            gone.push(op);
            n_made += 1;
        }
        module.set_operations(block, kept);
        for op in gone {
            for inner in scope::region_blocks(module, op) {
                if let Some(last) = module.block(inner).last() {
                    module.set_operands(last, &[]);
                }
            }
            module.set_operands(op, &[]);
            module.erase(op);
        }
    }
    n_made
}

pub(super) fn integer(value: i64) -> Attribute {
    Attribute::integer(value, Type::I64)
}
