//! Evaluates operations on constants.
//!
//! Kernels are run by an [`Evaluator`], all operations in one program. Not evaluated is what gives
//! something else each time, what belongs to training, and what has regions. Results much larger than the
//! constants that they are made of stay calculations: a file with them would be larger, and not opened
//! any faster. What fails stays, too, and fails in calls.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{
    Attribute, BlockId, Module, OpId, OpState, Type, ValueId, attributes::DenseElements,
};

use tfrt_ops::Table;

use super::super::rewrite::{Rewrite, is_deterministic};
use super::super::{CONSTANT, NO_VALUE, is_terminator, lower, node};
use crate::emit::is_encodable;
use crate::onnx::{EvaluatedValue, Evaluator};

/// The bytes of a result that is kept whatever it is made of.
const SMALL_BYTES: u64 = 1 << 16;

/// The greatest ratio of a result's size to that of its constants.
const MOST_GROWTH: u64 = 2;

/// The most results that are evaluated one by one, if they can't be evaluated together.
const MOST_ALONE: usize = 64;

/// Evaluates the operations of a block on constants, as far as the evaluator can.
pub(super) fn evaluate(module: &mut Module, block: BlockId, evaluator: &dyn Evaluator) {
    let known = ConstantOps::new(module, block);
    let wanted = known.wanted(module);
    if wanted.is_empty() {
        return;
    }
    let mut found = known.evaluate(module, &wanted, evaluator);
    if found.is_empty() && wanted.len() > 1 {
        for value in wanted.iter().take(MOST_ALONE) {
            found.extend(known.evaluate(module, &[*value], evaluator));
        }
    }
    if !found.is_empty() {
        replace(module, block, &found);
    }
}

/// The results of evaluation, by value.
type Constants = HashMap<ValueId, Attribute>;

/// The operations of a block on constants alone.
#[derive(Default)]
struct ConstantOps {
    /// The built-in rows: an evaluator has no kernels of rows that formats add.
    builtin: Table,
    /// The operations in order, with constants and omitted operands among them.
    operations: Vec<OpId>,
    is_known: HashSet<OpId>,
    /// The bytes of the constants that a value is made of.
    sources: HashMap<ValueId, u64>,
}

impl ConstantOps {
    fn new(module: &Module, block: BlockId) -> ConstantOps {
        let mut known = ConstantOps::default();
        let operations = module.block(block).operations();
        for op in constants_outside(module, block)
            .into_iter()
            .chain(operations.iter().copied())
        {
            if let Some(bytes) = known.bytes(module, op) {
                known.operations.push(op);
                known.is_known.insert(op);
                let results = module.op(op).results().iter();
                known.sources.extend(results.map(|result| (*result, bytes)));
            }
        }
        known
    }

    /// Returns the bytes of the constants that the results of an operation are made of, if it can be
    /// evaluated.
    fn bytes(&self, module: &Module, op: OpId) -> Option<u64> {
        let data = module.op(op);
        if *data.name() == CONSTANT {
            return Some(match data.attribute("value") {
                Some(Attribute::Dense(dense)) => dense.bytes().len() as u64,
                _ => 0,
            });
        }
        if *data.name() == NO_VALUE {
            return Some(0);
        }
        let trains = ["training.", "preview."];
        let name = node::name(module, op);
        if name.is_empty()
            || trains.iter().any(|domain| name.starts_with(domain))
            || data.operands().is_empty()
            || is_terminator(module, op)
            || !is_deterministic(module, &self.builtin, op)
        {
            return None;
        }
        let operands = data.operands().iter();
        let operands = operands.map(|value| self.sources.get(value).copied());
        // Values that are used twice, over and over, count as often.
        let mut operands = operands;
        operands.try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
    }

    /// Returns the most bytes that a value may have.
    fn most_bytes(&self, value: ValueId) -> u64 {
        let sources = self.sources.get(&value).copied().unwrap_or(0);
        sources.saturating_mul(MOST_GROWTH).max(SMALL_BYTES)
    }

    /// Returns the calculated values that other operations use, but for those that are known to be too large.
    fn wanted(&self, module: &Module) -> Vec<ValueId> {
        let is_made = |op: &&OpId| {
            let name = module.op(**op).name();
            *name != CONSTANT && *name != NO_VALUE
        };
        let made = self.operations.iter().filter(is_made);
        let results = made.flat_map(|op| module.op(*op).results()).copied();
        let is_wanted = |value: &ValueId| {
            let ty = module.value_type(*value);
            let mut users = module.users(*value);
            matches!(ty, Type::Tensor(_))
                && users.any(|user| !self.is_known.contains(&user.op))
                && least_bytes(ty) <= self.most_bytes(*value)
        };
        results.filter(is_wanted).collect()
    }

    /// Returns the operations that calculate some values, in order.
    fn makers(&self, module: &Module, values: &[ValueId]) -> Vec<OpId> {
        let mut needed: HashSet<OpId> = HashSet::new();
        needed.extend(values.iter().filter_map(|value| module.defining_op(*value)));
        let mut makers = Vec::new();
        for op in self.operations.iter().rev() {
            if needed.contains(op) {
                makers.push(*op);
                let operands = module.op(*op).operands().iter();
                needed.extend(operands.filter_map(|value| module.defining_op(*value)));
            }
        }
        makers.reverse();
        makers
    }

    fn evaluate(
        &self,
        module: &mut Module,
        values: &[ValueId],
        evaluator: &dyn Evaluator,
    ) -> Constants {
        let makers = self.makers(module, values);
        let Some(program) = lower::constant_program::program(module, &makers, values) else {
            return Constants::new();
        };
        let found = evaluator.evaluate(program).into_iter();
        let found = values.iter().zip(found);
        let kept = found.filter_map(|(value, made)| match made? {
            EvaluatedValue::Constant(attribute) => {
                let Attribute::Dense(dense) = &attribute else {
                    return None;
                };
                let is_small = least_bytes(&dense.ty) <= self.most_bytes(*value);
                let has_bytes = matches!(dense.elements, DenseElements::Bytes(_));
                let is_kept = is_small && has_bytes && is_encodable(&attribute);
                is_kept.then_some((*value, attribute))
            }
            EvaluatedValue::StoredWeights { .. } => None,
        });
        kept.collect()
    }
}

/// Returns the constants from outside of a block that its operations take.
fn constants_outside(module: &Module, block: BlockId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    let operations = module.block(block).operations().iter();
    for value in operations.flat_map(|op| module.op(*op).operands()) {
        let Some(maker) = module.defining_op(*value) else {
            continue;
        };
        let data = module.op(maker);
        let is_made = [CONSTANT, NO_VALUE].contains(&data.name().as_str());
        if is_made && data.parent() != Some(block) && known.insert(maker) {
            found.push(maker);
        }
    }
    found
}

/// Returns the least number of bytes that a tensor of a type has.
pub(in super::super) fn least_bytes(ty: &Type) -> u64 {
    let Some((shape, element)) = ty.as_shaped() else {
        return 0;
    };
    let element_bytes = match element {
        Type::Integer(integer) => u64::from(integer.width.div_ceil(8)),
        Type::Float(kind) => u64::from(kind.width().div_ceil(8)),
        _ => 1,
    };
    let extents = shape.iter().map(|extent| (*extent).max(0));
    extents.fold(element_bytes, |bytes, extent| {
        bytes.saturating_mul(u64::try_from(extent).unwrap_or(0))
    })
}

/// Puts constants in front of the operations that calculated them.
fn replace(module: &mut Module, block: BlockId, found: &Constants) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        for result in rewrite.module.op(op).results().to_vec() {
            let Some(Attribute::Dense(dense)) = found.get(&result) else {
                continue;
            };
            let module = &*rewrite.module;
            let ends = (module.users(result)).any(|user| is_terminator(module, user.op));
            // What a function returns has the type that it says.
            let ty = match ends {
                true => rewrite.module.value_type(result).clone(),
                false => dense.ty.clone(),
            };
            let state = OpState::new(CONSTANT)
                .attribute("value", Attribute::Dense(dense.clone()))
                .result(ty);
            let value = rewrite.add(state, op);
            rewrite.values.insert(result, value);
        }
        rewrite.keep(op);
    }
    rewrite.finish(&old);
}
