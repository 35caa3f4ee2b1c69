//! `graph-store`: packs weights once, when a file is compiled.
//!
//! In functions that make the constants of models (`graph-lower`), kernels that take constants alone are run by
//! an [`Evaluator`], and a kernel takes their place that has what they made in its attributes. What they took
//! goes, if nobody else takes it. Tensors that are much larger than what they are made of are still made when
//! the model is opened, as in `graph-fold`; packed weights, whatever their size, are not. So is what can't be
//! evaluated.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId};

use super::scope;
use crate::legalize::Context;
use crate::onnx::{EvaluatedValue, Evaluator};
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-store",
    summary: "Runs what makes packed weights of constants, and keeps what comes of it",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

/// The kernel of a constant.
const CONSTANT: &str = "cpu.onnx.Constant";

/// The kernel of a constant whose elements stay in a file; nothing is calculated of it here.
const EXTERNAL: &str = "cpu.onnx.External";

/// The kernel of an operand that is left out.
const NO_VALUE: &str = "cpu.onnx.NoValue";

/// The prefixes of kernels that an evaluator has: it has none of rows that a format adds.
const OURS: [&str; 4] = ["cpu.graph.", "cpu.onnx.", "cpu.fused.", "cpu.stored."];

/// The bytes of constants of a batch of kernels that are evaluated together, which bounds the memory that is held
/// twice.
const BATCH_BYTES: u64 = 64 << 20;

/// The bytes of a tensor that is kept whatever it is made of.
const SMALL_BYTES: u64 = 1 << 16;

/// The greatest ratio of a tensor's size to that of its constants.
const MOST_GROWTH: u64 = 2;

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    let evaluator = context.evaluator;
    for function in scope::functions(module) {
        let name = module.symbol_name(function).unwrap_or_default();
        let makes_constants = name.strip_suffix(".constants").map(str::to_owned);
        let is_made =
            makes_constants.is_some_and(|of| *tfrt_bef::Model::constants_of(&of) == *name);
        if let (true, [block]) = (is_made, &scope::region_blocks(module, function)[..]) {
            store(module, *block, evaluator);
        }
    }
}

fn store(module: &mut Module, block: BlockId, evaluator: &dyn Evaluator) {
    let known = ConstantKernels::new(module, block);
    let wanted: Vec<OpId> = known.wanted(module, block);
    let (mut batch, mut batch_bytes) = (Vec::new(), 0_u64);
    let mut made = HashMap::new();
    for (at, op) in wanted.iter().enumerate() {
        batch.push(*op);
        batch_bytes = batch_bytes.saturating_add(known.bytes[op]);
        if batch_bytes >= BATCH_BYTES || at + 1 == wanted.len() {
            known.evaluate(module, &batch, evaluator, &mut made);
            batch.clear();
            batch_bytes = 0;
        }
    }
    replace(module, block, &made);
    remove_unused(module, block);
}

/// The kernels of a block on constants alone, with the bytes of these.
struct ConstantKernels {
    /// The kernels in order, with constants among them.
    operations: Vec<OpId>,
    bytes: HashMap<OpId, u64>,
}

/// The operations that restore values, by value.
type StoredValues = HashMap<ValueId, OpState>;

impl ConstantKernels {
    fn new(module: &Module, block: BlockId) -> ConstantKernels {
        let mut known = ConstantKernels {
            operations: Vec::new(),
            bytes: HashMap::new(),
        };
        for &op in module.block(block).operations() {
            let data = module.op(op);
            let is_ours = OURS.iter().any(|kernels| data.name().starts_with(kernels))
                && *data.name() != EXTERNAL;
            if !is_ours || !data.regions().is_empty() || data.results().is_empty() {
                continue;
            }
            let of_operand =
                |value: &ValueId| known.bytes.get(&module.defining_op(*value)?).copied();
            let bytes = match data.attribute("value") {
                Some(Attribute::Dense(dense)) if *data.name() == CONSTANT => {
                    Some(dense.bytes().len() as u64)
                }
                _ => data.operands().iter().map(of_operand).sum(),
            };
            if let Some(bytes) = bytes {
                known.operations.push(op);
                known.bytes.insert(op, bytes);
            }
        }
        known
    }

    /// Returns the kernels whose results are returned, or used by kernels that can't be evaluated.
    fn wanted(&self, module: &Module, block: BlockId) -> Vec<OpId> {
        let last = module.block(block).last();
        let is_outside = |user: OpId| Some(user) == last || !self.bytes.contains_key(&user);
        let is_wanted = |op: &&OpId| {
            let data = module.op(**op);
            let is_made = *data.name() != CONSTANT && *data.name() != NO_VALUE;
            let mut users = data
                .results()
                .iter()
                .flat_map(|result| module.users(*result));
            is_made && !data.operands().is_empty() && users.any(|user| is_outside(user.op))
        };
        self.operations.iter().filter(is_wanted).copied().collect()
    }

    /// Returns a program that calculates the results of some kernels.
    fn program(&self, module: &Module, wanted: &[OpId]) -> Module {
        let mut needed: HashSet<OpId> = wanted.iter().copied().collect();
        let mut makers = Vec::new();
        for op in self
            .operations
            .iter()
            .rev()
            .filter(|op| self.bytes.contains_key(op))
        {
            if needed.contains(op) {
                makers.push(*op);
                let operands = module.op(*op).operands().iter();
                needed.extend(operands.filter_map(|value| module.defining_op(*value)));
            }
        }
        let mut into = Module::new();
        let region = into.create_region();
        let body = into.create_block(region);
        let mut values: HashMap<ValueId, ValueId> = HashMap::new();
        for &op in makers.iter().rev() {
            let data = module.op(op);
            let operands = data.operands().iter().map(|value| values[value]);
            let types = data.results().iter();
            let types = types.map(|value| module.value_type(*value).clone());
            let mut state = OpState::new(data.name().clone())
                .operands(operands)
                .results(types);
            for (name, value) in data.attributes() {
                state = state.attribute(name.clone(), value.clone());
            }
            let made = into.create(state);
            into.append(body, made);
            let news = into.op(made).results().iter().copied();
            values.extend(data.results().iter().copied().zip(news));
        }
        let returned = results(module, wanted);
        let returned = returned.iter().map(|value| values[value]);
        let last = into.create(OpState::new("tfrt.return").operands(returned));
        into.append(body, last);
        let function = super::lower::function(&into, "main", region, body);
        let function = into.create(function);
        let top = into.body();
        into.append(top, function);
        into
    }

    fn evaluate(
        &self,
        module: &Module,
        wanted: &[OpId],
        evaluator: &dyn Evaluator,
        made: &mut StoredValues,
    ) {
        let found = evaluator.evaluate(self.program(module, wanted));
        for (value, evaluated) in results(module, wanted).into_iter().zip(found) {
            let state = match evaluated {
                Some(EvaluatedValue::Constant(value_of)) => {
                    let sources = module.defining_op(value).map_or(0, |op| self.bytes[&op]);
                    let most_bytes = sources.saturating_mul(MOST_GROWTH).max(SMALL_BYTES);
                    let is_kept = matches!(&value_of, Attribute::Dense(dense)
                        if super::fold::evaluate::least_bytes(&dense.ty) <= most_bytes);
                    if !is_kept || !crate::emit::is_encodable(&value_of) {
                        continue;
                    }
                    OpState::new(CONSTANT)
                        .attribute("value", value_of)
                        .result(Type::dialect("!t.tensor"))
                }
                Some(EvaluatedValue::StoredWeights { kernel, attributes }) => {
                    let mut state = OpState::new(kernel);
                    for (name, value) in attributes {
                        state = state.attribute(name, value);
                    }
                    state.result(module.value_type(value).clone())
                }
                None => continue,
            };
            made.insert(value, state);
        }
    }
}

/// Returns the results of kernels.
fn results(module: &Module, operations: &[OpId]) -> Vec<ValueId> {
    let results = operations.iter().flat_map(|op| module.op(*op).results());
    results.copied().collect()
}

/// Removes kernels without users: none in such a function has effects.
fn remove_unused(module: &mut Module, block: BlockId) {
    let mut kept = Vec::new();
    for &op in module.block(block).operations().to_vec().iter().rev() {
        let makes = !module.op(op).results().is_empty();
        if makes && scope::is_unused(module, op) {
            module.set_operands(op, &[]);
            module.erase(op);
            continue;
        }
        kept.push(op);
    }
    kept.reverse();
    module.set_operations(block, kept);
}

/// Puts the operations that restore values in front of the kernels that made them.
fn replace(module: &mut Module, block: BlockId, made: &StoredValues) {
    let mut operations = Vec::new();
    for op in module.block(block).operations().to_vec() {
        for result in module.op(op).results().to_vec() {
            let Some(state) = made.get(&result) else {
                continue;
            };
            let location = module.op(op).location().clone();
            let again = module.create(state.clone().location(location));
            operations.push(again);
            let new = module.op(again).results()[0];
            module.replace_all_uses(result, new);
        }
        operations.push(op);
    }
    module.set_operations(block, operations);
}
