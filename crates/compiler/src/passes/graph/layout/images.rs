//! [`ImageLayouts`]: the values of a block in both layouts, with channels first and channels last.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::{self, Rewrite};

/// The permutation of dimensions from channels first to channels last.
pub(in crate::passes) const LAST: [usize; 4] = [0, 2, 3, 1];

/// The permutation of dimensions from channels last to channels first.
pub(in crate::passes) const FIRST: [usize; 4] = [0, 3, 1, 2];

/// Images in both layouts, by the values of the old block.
#[derive(Default)]
pub(super) struct ImageLayouts {
    /// The images with channels last.
    last: HashMap<ValueId, ValueId>,
    /// The images with channels first, of those that were made with channels last.
    first: HashMap<ValueId, ValueId>,
    /// Old values that lie with channels last, of images that were made so.
    lying_last: HashSet<ValueId>,
    /// Operations that were fused with one before them.
    skipped: HashSet<OpId>,
    /// Images with channels last that are affine functions of others.
    pub(super) scaled: HashMap<ValueId, AffineImage>,
}

/// An image as an affine function of another: factors and summands of channels, lists that are known when a model is
/// opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct AffineImage {
    pub image: ValueId,
    pub factors: Option<ValueId>,
    pub summands: Option<ValueId>,
}

impl ImageLayouts {
    /// Returns whether a value was made with channels last.
    pub(super) fn is_native(&self, value: ValueId) -> bool {
        self.last.contains_key(&value) && self.first.get(&value) != Some(&value)
    }

    /// Returns whether a value exists with channels last.
    pub(super) fn has_last(&self, value: ValueId) -> bool {
        self.last.contains_key(&value)
    }

    /// Returns whether a value lies with channels last in the old block, and was made so.
    pub(super) fn lies_last(&self, value: ValueId) -> bool {
        self.lying_last.contains(&value)
    }

    /// Notes that `made` is `old`, both with channels last.
    pub(super) fn set_lying_last(
        &mut self,
        rewrite: &mut Rewrite<'_>,
        old: ValueId,
        made: ValueId,
    ) {
        rewrite.values.insert(old, made);
        self.lying_last.insert(old);
    }

    /// Notes that operations were fused with one before them.
    pub(super) fn skip(&mut self, operations: [OpId; 2]) {
        self.skipped.extend(operations);
    }

    /// Returns whether an operation was fused with one before it.
    pub(super) fn is_skipped(&self, op: OpId) -> bool {
        self.skipped.contains(&op)
    }

    /// Notes that `made` is `old` with channels last.
    pub(super) fn set(&mut self, old: ValueId, made: ValueId) {
        self.last.insert(old, made);
    }

    /// Returns a value with channels last, if it exists so.
    pub(super) fn made_last(&self, value: ValueId) -> Option<ValueId> {
        self.last.get(&value).copied()
    }

    /// Returns a value of rank 4 with channels last, transposed if it does not exist yet.
    pub(super) fn last(
        &mut self,
        rewrite: &mut Rewrite<'_>,
        value: ValueId,
        like: OpId,
    ) -> ValueId {
        if let Some(made) = self.last.get(&value) {
            return *made;
        }
        let now = rewrite.mapped(value);
        let ty = permuted(rewrite.module.value_type(value), LAST);
        let made = transpose(rewrite, now, LAST, ty, like);
        self.last.insert(value, made);
        // It is there with channels first already.
        self.first.insert(value, value);
        made
    }

    /// Ensures that a value exists with channels first, under its old name.
    pub(super) fn first(&mut self, rewrite: &mut Rewrite<'_>, value: ValueId, like: OpId) {
        if !self.is_native(value) || self.first.contains_key(&value) {
            return;
        }
        let made = self.last[&value];
        let ty = rewrite.module.value_type(value).clone();
        let shape = node::shape(rewrite.module, value).unwrap_or_default();
        let back = match shape[..] {
            // Elements lie the same.
            [_, channels, 1, 1] if channels > 0 => {
                let to = rewrite.integers(&[0, channels, 1, 1], like);
                let state = OpState::new("graph.reshape")
                    .operands([made, to])
                    .result(ty);
                rewrite.add(state, like)
            }
            _ => transpose(rewrite, made, FIRST, ty, like),
        };
        self.first.insert(value, back);
        rewrite.values.insert(value, back);
    }
}

fn transpose(
    rewrite: &mut Rewrite<'_>,
    value: ValueId,
    order: [usize; 4],
    ty: Type,
    like: OpId,
) -> ValueId {
    let state = OpState::new("graph.transpose")
        .operand(value)
        .attribute("perm", rewrite::list(&order.map(|at| at as i64)))
        .result(ty);
    rewrite.add(state, like)
}

/// Returns a type of rank 4 with its dimensions in another order.
pub(in crate::passes) fn permuted(ty: &Type, order: [usize; 4]) -> Type {
    match ty.as_shaped() {
        Some((shape, element)) if shape.len() == 4 => {
            Type::tensor(order.map(|at| shape[at]).to_vec(), element.clone())
        }
        _ => ty.clone(),
    }
}
