//! All-reduces by the tree: the owner of a unit reduces what all members have of it, and sends the result to all.

use super::exchange::unit_number;
use super::*;
use crate::collective::{Operation, plan};

impl<P: Payload> Member<P> {
    pub(super) fn begin_tree(&mut self, actions: &mut Vec<Action<P>>) {
        let is_own = |unit: &plan::Unit| unit.owner.is_none_or(|owner| owner == self.me);
        let (own, others): (Vec<usize>, Vec<usize>) =
            (0..self.plan.units.len()).partition(|index| is_own(&self.plan.units[*index]));
        for index in others {
            let plan::Unit { elements, owner } = self.plan.units[index].clone();
            let roots = self.own_roots(&elements, actions);
            if let Some(owner) = owner.filter(|_| !roots.is_empty()) {
                self.send_piece(owner, Piece::Part(unit_number(index)), roots, actions);
            }
        }
        for index in own {
            let has_roots = |member: &usize| !self.leaves.roots[*member].is_empty();
            let n_missing = self.others().filter(has_roots).count();
            let arrived = self.call.members.iter().map(|_| None).collect();
            let parts = Parts { arrived, n_missing };
            self.parts.insert(unit_number(index), parts);
            self.reduce_if_complete(unit_number(index), actions);
        }
    }

    /// Returns where this member has the roots of its subtrees, of a run of elements; has those reduced that have more
    /// than one leaf.
    pub(super) fn own_roots(
        &self,
        elements: &Range<usize>,
        actions: &mut Vec<Action<P>>,
    ) -> Vec<Span> {
        if self.call.members.len() == 1 {
            return Vec::new();
        }
        let roots = self.leaves.roots[self.me].iter().enumerate();
        let root = |(index, leaves): (usize, &Range<usize>)| {
            if leaves.len() == 1 {
                return self.leaf(leaves.start, elements);
            }
            let into = Span {
                memory: Memory::Scratch(index),
                elements: elements.clone(),
            };
            let values = self.own_leaves(leaves, elements);
            let steps = reduction::steps(leaves, &singles(leaves)).expect(ALL_LEAVES);
            actions.push(self.reduction(into.clone(), values, steps, false));
            into
        };
        roots.map(root).collect()
    }

    /// Returns where a leaf of this member lies.
    fn leaf(&self, leaf: usize, elements: &Range<usize>) -> Span {
        Span {
            memory: Memory::Input(leaf - self.leaves.own.start),
            elements: elements.clone(),
        }
    }

    /// Returns some of this member's leaves as values.
    pub(super) fn own_leaves(
        &self,
        leaves: &Range<usize>,
        elements: &Range<usize>,
    ) -> Vec<Source<P>> {
        let leaves = leaves.clone();
        let values = leaves.map(|leaf| Source::Span(self.leaf(leaf, elements)));
        values.collect()
    }

    /// Returns a reduction; the last one of its elements or not.
    pub(super) fn reduction(
        &self,
        into: Span,
        values: Vec<Source<P>>,
        steps: Vec<Step>,
        is_last: bool,
    ) -> Action<P> {
        let Operation::AllReduce {
            function, leaves, ..
        } = self.call.operation
        else {
            unreachable!("only all-reduces reduce");
        };
        Action::Reduce {
            into,
            values,
            steps,
            function,
            n_terms: is_last.then_some(leaves),
        }
    }

    /// Reduces a unit if all members' parts of it are there.
    pub(super) fn reduce_if_complete(&mut self, unit: u32, actions: &mut Vec<Action<P>>) {
        if self
            .parts
            .get(&unit)
            .is_none_or(|parts| parts.n_missing > 0)
        {
            return;
        }
        let parts = self.parts.remove(&unit).expect("it was there above");
        let elements = self.plan.units[unit as usize].elements.clone();
        let mut have = singles(&self.leaves.own);
        let mut values = self.own_leaves(&self.leaves.own, &elements);
        for (member, data) in parts.arrived.into_iter().enumerate() {
            let Some(data) = data else { continue };
            for (index, leaves) in self.leaves.roots[member].iter().enumerate() {
                let len = elements.len();
                let root = index * len..(index + 1) * len;
                values.push(Source::Arrived(data.clone(), root));
                have.push(leaves.clone());
            }
        }
        let memory = Memory::Result;
        let steps = reduction::steps(&(0..self.leaves.n_leaves), &have).expect(ALL_LEAVES);
        actions.push(self.reduction(Span { memory, elements }, values, steps, true));
        self.pass_on(unit as usize, None, actions);
    }
}

pub(super) const ALL_LEAVES: &str = "members have all leaves between them";

/// Returns each leaf of a run by itself.
pub(super) fn singles(run: &Range<usize>) -> Vec<Range<usize>> {
    run.clone().map(|leaf| leaf..leaf + 1).collect()
}
