//! [`Rewrite`]: replaces operations of a block by new ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tfrt_ir::{
    Attribute, BlockId, Module, Name, OpId, OpState, Type, ValueId,
    attributes::{DenseAttribute, DenseElements},
};

use tfrt_bef::DType;
use tfrt_ops::{OpDef, Table};

use super::{CONSTANT, calls, node};

/// A rewrite of a block, from its first operation to its last.
pub(in crate::passes) struct Rewrite<'m> {
    pub(in crate::passes) module: &'m mut Module,
    block: BlockId,
    operations: Vec<OpId>,
    /// The new values of old ones that are gone.
    pub(in crate::passes) values: HashMap<ValueId, ValueId>,
}

impl<'m> Rewrite<'m> {
    /// Begins a rewrite; returns the block's operations, too, none of which is in the new block yet.
    pub(in crate::passes) fn new(
        module: &'m mut Module,
        block: BlockId,
    ) -> (Rewrite<'m>, Vec<OpId>) {
        let old = module.block(block).operations().to_vec();
        let operations = Vec::with_capacity(old.len());
        let rewrite = Rewrite {
            module,
            block,
            operations,
            values: HashMap::new(),
        };
        (rewrite, old)
    }

    /// Returns the new value of an old one.
    pub(in crate::passes) fn mapped(&self, value: ValueId) -> ValueId {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// Appends a new operation, and returns its first result.
    pub(in crate::passes) fn add(&mut self, state: OpState, like: OpId) -> ValueId {
        let location = self.module.op(like).location().clone();
        let op = self.module.create(state.location(location));
        self.operations.push(op);
        self.module.op(op).results()[0]
    }

    /// Appends an old operation, with new operands.
    pub(in crate::passes) fn keep(&mut self, op: OpId) {
        for index in 0..self.module.op(op).operands().len() {
            let old = self.module.op(op).operands()[index];
            let new = self.mapped(old);
            if old != new {
                self.module.set_operand(op, index, new);
            }
        }
        self.operations.push(op);
    }

    /// Moves an operation to the end of those that were appended.
    pub(in crate::passes) fn move_to_end(&mut self, moved: OpId) {
        // It is near the end mostly.
        if let Some(at) = self.operations.iter().rposition(|op| *op == moved) {
            self.operations.remove(at);
        }
        self.operations.push(moved);
    }

    /// Appends a constant.
    pub(in crate::passes) fn constant(&mut self, value: DenseAttribute, like: OpId) -> ValueId {
        let ty = value.ty.clone();
        let value = Attribute::Dense(Arc::new(value));
        let state = OpState::new(CONSTANT).attribute("value", value);
        self.add(state.result(ty), like)
    }

    /// Appends a constant list of integers.
    pub(in crate::passes) fn integers(&mut self, list: &[i64], like: OpId) -> ValueId {
        self.constant(integers(list), like)
    }

    /// Finishes the rewrite. Uses in regions follow, and operations that are in no block are erased.
    pub(in crate::passes) fn finish(self, old: &[OpId]) {
        let Rewrite {
            module,
            block,
            operations,
            values,
        } = self;
        module.set_operations(block, operations);
        for (old, new) in values {
            // Of uses in regions, and by what stands before.
            module.replace_all_uses(old, new);
        }
        for &op in old.iter().rev() {
            if module.op(op).parent().is_none() {
                module.set_operands(op, &[]);
            }
        }
    }
}

/// Returns a list of integers as a constant.
pub(in crate::passes) fn integers(list: &[i64]) -> DenseAttribute {
    let bytes: Vec<u8> = list
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let n = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let is_splat = !list.is_empty() && list.iter().all(|number| *number == list[0]);
    let bytes = if is_splat { bytes[..8].to_vec() } else { bytes };
    DenseAttribute {
        ty: Type::tensor(vec![n], Type::I64),
        elements: DenseElements::Bytes(bytes.into()),
        splat: is_splat,
    }
}

/// Returns a list of integers of a type, `i32` or `i64`, as a constant. Numbers that `i32` does not hold are `i64`.
pub(in crate::passes) fn integers_of(dtype: DType, list: &[i64]) -> DenseAttribute {
    let narrow: Option<Vec<i32>> = list
        .iter()
        .map(|number| i32::try_from(*number).ok())
        .collect();
    let (Some(narrow), DType::I32) = (narrow, dtype) else {
        return integers(list);
    };
    let wide = integers(list);
    let n = if wide.splat { 1 } else { narrow.len() };
    let bytes: Vec<u8> = narrow[..n]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    DenseAttribute {
        ty: Type::tensor(wide.shape(), Type::I32),
        elements: DenseElements::Bytes(bytes.into()),
        splat: wide.splat,
    }
}

/// Returns an array of integers as an attribute.
pub(in crate::passes) fn list(numbers: &[i64]) -> Attribute {
    let one = |number: &i64| Attribute::integer(*number, Type::I64);
    Attribute::array(numbers.iter().map(one).collect())
}

/// Removes operations of a block without users and without effects, by built-in and added rows.
pub(in crate::passes) fn remove_unused(module: &mut Module, rows: &Table, block: BlockId) {
    let (mut kept, mut effects) = (Vec::new(), Effects::default());
    for &op in module.block(block).operations().to_vec().iter().rev() {
        let is_unused = super::scope::is_unused(module, op) && !super::is_terminator(module, op);
        if is_unused && !effects.has(module, rows, op) {
            erase(module, op);
            continue;
        }
        kept.push(op);
    }
    kept.reverse();
    module.set_operations(block, kept);
}

/// Erases an unused operation, with its regions.
fn erase(module: &mut Module, op: OpId) {
    let mut all = Vec::new();
    module.walk_pre_order(op, &mut |inner| all.push(inner));
    for &inner in all.iter().rev() {
        module.set_operands(inner, &[]);
    }
    module.erase(op);
}

/// The effects of operations. Those of an operation without a row are unknown.
#[derive(Default)]
struct Effects {
    /// The functions with effects, directly or by functions that they call: found when the first call is asked about.
    functions: Option<HashSet<String>>,
}

impl Effects {
    /// Returns whether an operation, or one in its regions, has effects.
    fn has(&mut self, module: &Module, rows: &Table, op: OpId) -> bool {
        let (mut own, called) = has_own_effects(module, rows, op);
        if !own && !called.is_empty() {
            let functions = self
                .functions
                .get_or_insert_with(|| functions_with_effects(module, rows));
            own = called.iter().any(|name| functions.contains(*name));
        }
        own
    }
}

/// Returns whether an operation, or one in its regions, has effects but for calls, and the functions that are called
/// there.
fn has_own_effects<'m>(module: &'m Module, rows: &Table, op: OpId) -> (bool, Vec<&'m str>) {
    let (mut has_effects, mut called) = (false, Vec::new());
    module.walk_pre_order(op, &mut |inner| {
        let is_row = |row: OpDef| !row.has_effects();
        has_effects |= !is_part(module, inner)
            && !is_made_by_passes(module, inner)
            && !node::row_of(module, rows, inner).is_some_and(is_row);
        called.extend(calls::name(module, inner));
    });
    (has_effects, called)
}

fn functions_with_effects(module: &Module, rows: &Table) -> HashSet<String> {
    let (mut found, mut open) = (HashSet::new(), Vec::new());
    let mut callers: HashMap<&str, Vec<&str>> = HashMap::new();
    for function in super::scope::functions(module) {
        let name = module.symbol_name(function).unwrap_or_default();
        for op in module.children(function) {
            let (has_effects, called) = has_own_effects(module, rows, op);
            open.extend(Some(name).filter(|_| has_effects));
            for callee in called {
                callers.entry(callee).or_default().push(name);
            }
        }
    }
    while let Some(name) = open.pop() {
        if found.insert(name.to_owned()) {
            open.extend(callers.get(name).into_iter().flatten());
        }
    }
    found
}

/// Returns whether equal operands give equal results each time; false for an operation without a row.
pub(in crate::passes) fn is_deterministic(module: &Module, rows: &Table, op: OpId) -> bool {
    let has_none = [super::NO_VALUE, super::EXTERNAL].contains(&module.op(op).name().as_str());
    let is_row = |row: OpDef| row.is_deterministic();
    let is_same = has_none
        || is_made_by_passes(module, op)
        || node::row_of(module, rows, op).is_some_and(is_row);
    is_same && module.op(op).regions().is_empty() && *module.op(op).name() != calls::CALL
}

/// Returns whether an operation is no row, but part of a graph's structure.
fn is_part(module: &Module, op: OpId) -> bool {
    let parts = [super::NO_VALUE, super::EXTERNAL, super::PREPARE];
    super::is_terminator(module, op) || parts.contains(&module.op(op).name().as_str())
}

/// Returns whether an operation is a kernel that a pass made of deterministic rows.
fn is_made_by_passes(module: &Module, op: OpId) -> bool {
    let name = module.op(op).name();
    ["cpu.fused.", "cpu.stored."]
        .iter()
        .any(|kernels| name.starts_with(kernels))
}

/// The note of a convolution of quantised numbers that its sums may be multiplied by a factor in `f32`, and rounded once.
pub(in crate::passes) const ROUNDED_ONCE: &str = "model.rounded_once";

/// Returns the attributes of an operation but for notes of passes.
pub(in crate::passes) fn stated(module: &Module, op: OpId) -> Vec<(Name, Attribute)> {
    let attributes = module.op(op).attributes().iter();
    attributes
        .filter(|(name, _)| !["model.shapes", ROUNDED_ONCE].contains(&name.as_str()))
        .cloned()
        .collect()
}
