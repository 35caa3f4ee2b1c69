//! `graph-simplify`: writes operations in the form that other passes look for.
//!
//! Sums of products that an equation names become products of matrices, and changes of shape move behind products and what
//! is added to them, where extents are known to allow it. Numbers stay as they are but for the order of sums. States of
//! loops that no turn changes are taken from outside.

mod einsum;
mod reshape;
mod states;

use std::collections::HashMap;

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId};
use tfrt_ops::{Dim, Dims};

use super::rewrite::{Rewrite, remove_unused};
use super::{fold, graphs, infer, inner_first, node};
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-simplify",
    summary: "Makes products of equations, and moves changes of shape out of the way of fusion",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

/// A rewrite of an operation with one result; returns what stands for the result.
type Rule = fn(&mut Simplify<'_>, OpId) -> Option<ValueId>;

fn run(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    let mut is_changed = false;
    for (_, block) in graphs(module) {
        is_changed |= states::unchanged(module, block);
    }
    if is_changed {
        refresh(module, context, diagnostics);
    }
    for rule in [einsum::product as Rule, reshape::moved] {
        if apply(module, context, rule) {
            refresh(module, context, diagnostics);
        }
    }
}

/// Has types and constants follow from what was rewritten.
fn refresh(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    infer::run(module, context, diagnostics);
    fold::run(module, context, diagnostics);
    infer::run(module, context, diagnostics);
}

/// Applies a rule to all operations; returns whether one was rewritten.
fn apply(module: &mut Module, context: &Context<'_>, rule: Rule) -> bool {
    let mut is_changed = false;
    for (function, block) in graphs(module) {
        let mut dims = infer::dims(module, context, function, block);
        for block in inner_first(module, block) {
            is_changed |= apply_to(module, block, rule, &mut dims);
            remove_unused(module, &context.dialects.rows, block);
        }
    }
    is_changed
}

fn apply_to(
    module: &mut Module,
    block: BlockId,
    rule: Rule,
    dims: &mut HashMap<ValueId, Dims>,
) -> bool {
    let mut is_changed = false;
    let (rewrite, old) = Rewrite::new(module, block);
    let replaced = HashMap::new();
    let mut simplify = Simplify {
        rewrite,
        dims: std::mem::take(dims),
        replaced,
    };
    for &op in &old {
        let made = match *simplify.rewrite.module.op(op).results() {
            [result] => rule(&mut simplify, op).map(|made| (result, made)),
            _ => None,
        };
        match made {
            None => simplify.rewrite.keep(op),
            Some((result, made)) => {
                // It takes nothing any more.
                simplify.rewrite.module.set_operands(op, &[]);
                simplify.rewrite.values.insert(result, made);
                simplify.replaced.entry(made).or_default().push(result);
                is_changed = true;
            }
        }
    }
    *dims = simplify.dims;
    simplify.rewrite.finish(&old);
    is_changed
}

/// A rewrite of a block, with the extents of old and new values.
struct Simplify<'m> {
    rewrite: Rewrite<'m>,
    /// Extents by value; those of unknown rank have none.
    dims: HashMap<ValueId, Dims>,
    /// The old values for which a value stands.
    replaced: HashMap<ValueId, Vec<ValueId>>,
}

impl Simplify<'_> {
    /// Returns the new value of an operand.
    fn operand(&self, op: OpId, index: usize) -> Option<ValueId> {
        let value = node::operand(self.rewrite.module, op, index)?;
        Some(self.rewrite.mapped(value))
    }

    /// Returns the operation that makes a value, if it is of this name and the value has one user.
    fn alone(&self, value: ValueId, name: &str) -> Option<OpId> {
        let op = self.rewrite.module.defining_op(value)?;
        let is_it = node::name(self.rewrite.module, op) == name && self.n_users(value) == 1;
        is_it.then_some(op)
    }

    /// Returns the number of users of a value, and of the values for which it stands.
    fn n_users(&self, value: ValueId) -> usize {
        let old = self.replaced.get(&value).into_iter().flatten();
        let of = |value: &ValueId| self.rewrite.module.users(*value).count();
        of(&value) + old.map(of).sum::<usize>()
    }

    /// Appends an operation that makes a tensor of these extents, in place of another operation.
    fn add(&mut self, state: OpState, dims: Dims, element: &Type, like: OpId) -> ValueId {
        let size = |dim: &Dim| dim.value().unwrap_or(tfrt_ir::types::DYNAMIC);
        let ty = Type::tensor(dims.iter().map(size).collect(), element.clone());
        let value = self.rewrite.add(state.result(ty), like);
        self.dims.insert(value, dims);
        value
    }

    /// Appends a change of shape by a list that is known to fit.
    fn reshape(&mut self, x: ValueId, list: &ShapeList, dims: Dims, like: OpId) -> Option<ValueId> {
        let element = node::element(self.rewrite.module.value_type(x))?;
        let shape = self.rewrite.integers(&list.sizes, like);
        let mut state = OpState::new("graph.reshape").operands([x, shape]);
        if list.allows_zero {
            state = state.attribute("allow_zero", Attribute::integer(1, Type::I64));
        }
        Some(self.add(state, dims, &element, like))
    }
}

/// The operand of a `reshape` that is the same in all calls.
struct ShapeList {
    sizes: Vec<i64>,
    allows_zero: bool,
}

impl ShapeList {
    /// Returns the list that makes a tensor of some extents of one of others, if there is one. So many of the first dimensions
    /// are the same ones, even where nothing is known of them.
    fn new(from: &[Dim], to: &[Dim], n_kept: usize) -> Option<ShapeList> {
        let numbers: Option<Vec<i64>> = to.iter().map(Dim::value).collect();
        if let Some(sizes) = numbers {
            let allows_zero = sizes.contains(&0);
            return Some(ShapeList { sizes, allows_zero });
        }
        let (mut sizes, mut n_rest) = (Vec::with_capacity(to.len()), 0);
        for (index, dim) in to.iter().enumerate() {
            let is_equal = !dim.is_unknown() && from.get(index) == Some(dim);
            let is_kept = is_equal || index < n_kept;
            sizes.push(match dim.value() {
                Some(0) => return None,
                Some(size) => size,
                None if is_kept => 0,
                None => {
                    n_rest += 1;
                    -1
                }
            });
        }
        (n_rest <= 1).then_some(ShapeList {
            sizes,
            allows_zero: false,
        })
    }
}

#[cfg(test)]
mod tests;
