//! `merge-chains`: makes `tfrt.merge.chains` as small as possible.
//!
//! ```text
//! merge(a, a, b)                 = merge(a, b)
//! merge(merge(a, b), c)          = merge(a, b, c)
//! merge(a, new.chain)            = merge(a)
//! merge(a, b), b = op(.., a)     = merge(b)          b implies a
//! merge(a)                       = a                 where a is used elsewhere too
//! ```
//!
//! A value *implies* a chain if its operation, or one that it waits for, takes the
//! chain: it cannot be there before. An error of the chain reaches it too. What a
//! non-strict operation gives implies nothing.
//!
//! A merge of one chain that nothing else uses stays, as in the original: it costs
//! nothing, and the function keeps its shape. Merges made smaller by this pass are
//! replaced without that scruple.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{BlockId, Diagnostics, Module, OpId, ValueId};

use super::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "merge-chains",
    summary: "Makes merges of chains smaller: duplicates, nested merges, chains that others imply",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

/// The most operations in the search for the values that one merge's operands imply.
const BUDGET: usize = 1_000;

/// The most operands of a merge that is merged into others.
const MAX_NESTED: usize = 64;

pub(super) fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    while simplify(module) {}
    super::dce::run(module, diagnostics);
}

/// Simplifies every merge once; returns whether anything changed.
pub(super) fn simplify(module: &mut Module) -> bool {
    let mut changed = false;
    for block in scope::blocks(module) {
        changed |= simplify_block(module, block);
    }
    changed
}

fn is_merge(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    *data.name() == "tfrt.merge.chains"
        && data.results().len() == 1
        && data.attribute("bef.nonstrict").is_none()
}

fn simplify_block(module: &mut Module, block: BlockId) -> bool {
    let operations = module.block(block).operations().to_vec();
    let positions: HashMap<OpId, usize> = operations.iter().copied().zip(0..).collect();
    let mut gone = HashSet::new();
    let mut changed = false;
    for op in operations {
        if !is_merge(module, op) {
            continue;
        }
        let before = module.op(op).operands().to_vec();
        let after = smallest(module, &before, &positions);
        if after.len() < before.len() || after.iter().ne(&before) {
            module.set_operands(op, &after);
            changed = true;
        }
        let &[only] = after.as_slice() else {
            continue;
        };
        let is_shared = module.users(only).any(|user| user.op != op);
        if module.value_type(only).is_chain() && (is_shared || before.len() > 1) {
            scope::replace(module, op, &[only]);
            gone.insert(op);
            changed = true;
        }
    }
    scope::retain(module, block, |op| !gone.contains(&op));
    changed
}

/// Returns the smallest set of operands with which a merge waits for the same operations.
fn smallest(
    module: &Module,
    operands: &[ValueId],
    positions: &HashMap<OpId, usize>,
) -> Vec<ValueId> {
    let mut flat = Vec::new();
    let mut seen = HashSet::new();
    for &operand in operands {
        let inner = module.defining_op(operand).filter(|&op| {
            // Others keep the inner merge alive; then it is better used than copied.
            is_merge(module, op)
                && module.users(operand).nth(1).is_none()
                && module.op(op).operands().len() <= MAX_NESTED
        });
        let parts = inner.map_or(vec![operand], |op| module.op(op).operands().to_vec());
        flat.extend(parts.into_iter().filter(|&part| seen.insert(part)));
    }
    let is_new = |value: &ValueId| {
        let op = module.defining_op(*value);
        op.is_some_and(|op| *module.op(op).name() == "tfrt.new.chain")
    };
    if flat.len() > 1 && !flat.iter().all(is_new) {
        flat.retain(|value| !is_new(value));
    } else if flat.len() > 1 {
        flat.truncate(1);
    }
    if flat.len() > 1 {
        let implied = implied(module, &flat, positions);
        flat.retain(|value| !implied.contains(value));
    }
    flat
}

/// Returns the values that are certainly there once the others are.
fn implied(
    module: &Module,
    values: &[ValueId],
    positions: &HashMap<OpId, usize>,
) -> HashSet<ValueId> {
    let wanted: HashSet<ValueId> = values.iter().copied().collect();
    let defining = |value: ValueId| module.defining_op(value);
    let position = |value| defining(value).and_then(|op| positions.get(&op).copied());
    // Nothing in front of the first of them can depend on any of them.
    let first = values.iter().filter_map(|&value| position(value)).min();
    let first = first.unwrap_or(0);
    let has_argument = values.iter().any(|&value| defining(value).is_none());
    let mut implied = HashSet::new();
    let mut seen = HashSet::new();
    let mut open: Vec<OpId> = values.iter().filter_map(|&value| defining(value)).collect();
    while let Some(op) = open.pop() {
        if !seen.insert(op) || seen.len() > BUDGET {
            continue;
        }
        let data = module.op(op);
        if data.attribute("bef.nonstrict").is_some() {
            continue;
        }
        for &operand in data.operands() {
            if wanted.contains(&operand) {
                implied.insert(operand);
            }
            if let Some(definition) = defining(operand) {
                let at = positions.get(&definition).copied().unwrap_or(0);
                if at >= first || has_argument {
                    open.push(definition);
                }
            }
        }
    }
    implied
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::passes::testing;

    fn check(body: &str, expected: Expect) {
        let text = format!(
            "func.func @f(%a: !tfrt.chain, %b: !tfrt.chain, %x: i32) -> (!tfrt.chain, !tfrt.chain) {{\n{body}\n}}"
        );
        testing::check("merge-chains", &text, expected);
    }

    #[test]
    fn duplicates_and_new_chains_go() {
        check(
            "%n = tfrt.new.chain
             %m = tfrt.merge.chains %a, %n, %a : !tfrt.chain, !tfrt.chain, !tfrt.chain
             tfrt.return %m, %b : !tfrt.chain, !tfrt.chain",
            expect![[r#"
                func.func @f(%arg0: !tfrt.chain, %arg1: !tfrt.chain, %arg2: i32) -> (!tfrt.chain, !tfrt.chain) {
                  tfrt.return %arg0, %arg1 : !tfrt.chain, !tfrt.chain
                }
            "#]],
        );
    }

    #[test]
    fn nested_merges_become_one() {
        check(
            "%c = tfrt.print.i32 %x, %a
             %m = tfrt.merge.chains %c, %b : !tfrt.chain, !tfrt.chain
             %n = tfrt.merge.chains %m, %x : !tfrt.chain, i32
             tfrt.return %n, %b : !tfrt.chain, !tfrt.chain",
            expect![[r#"
                func.func @f(%arg0: !tfrt.chain, %arg1: !tfrt.chain, %arg2: i32) -> (!tfrt.chain, !tfrt.chain) {
                  %0 = tfrt.print.i32 %arg2, %arg0
                  %1 = tfrt.merge.chains %0, %arg1 : !tfrt.chain, !tfrt.chain
                  tfrt.return %1, %arg1 : !tfrt.chain, !tfrt.chain
                }
            "#]],
        );
    }

    #[test]
    fn implied_chains_go() {
        check(
            "%c = tfrt.print.i32 %x, %a
             %d = tfrt.print.i32 %x, %c
             %m = tfrt.merge.chains %a, %c, %b, %d : !tfrt.chain, !tfrt.chain, !tfrt.chain, !tfrt.chain
             tfrt.return %m, %d : !tfrt.chain, !tfrt.chain",
            expect![[r#"
                func.func @f(%arg0: !tfrt.chain, %arg1: !tfrt.chain, %arg2: i32) -> (!tfrt.chain, !tfrt.chain) {
                  %0 = tfrt.print.i32 %arg2, %arg0
                  %1 = tfrt.print.i32 %arg2, %0
                  %2 = tfrt.merge.chains %arg1, %1 : !tfrt.chain, !tfrt.chain
                  tfrt.return %2, %1 : !tfrt.chain, !tfrt.chain
                }
            "#]],
        );
    }

    #[test]
    fn merge_of_one_chain_that_nothing_else_uses_stays() {
        check(
            "%m = tfrt.merge.chains %a : !tfrt.chain
             tfrt.return %m, %b : !tfrt.chain, !tfrt.chain",
            expect![[r#"
                func.func @f(%arg0: !tfrt.chain, %arg1: !tfrt.chain, %arg2: i32) -> (!tfrt.chain, !tfrt.chain) {
                  %0 = tfrt.merge.chains %arg0 : !tfrt.chain
                  tfrt.return %0, %arg1 : !tfrt.chain, !tfrt.chain
                }
            "#]],
        );
    }

    #[test]
    fn nonstrict_operations_imply_nothing() {
        check(
            "%c = tfrt.print.i32 %x, %a {bef.nonstrict}
             %m = tfrt.merge.chains %a, %c : !tfrt.chain, !tfrt.chain
             tfrt.return %m, %b : !tfrt.chain, !tfrt.chain",
            expect![[r#"
                func.func @f(%arg0: !tfrt.chain, %arg1: !tfrt.chain, %arg2: i32) -> (!tfrt.chain, !tfrt.chain) {
                  %0 = tfrt.print.i32 %arg2, %arg0 {bef.nonstrict}
                  %1 = tfrt.merge.chains %arg0, %0 : !tfrt.chain, !tfrt.chain
                  tfrt.return %1, %arg1 : !tfrt.chain, !tfrt.chain
                }
            "#]],
        );
    }
}
