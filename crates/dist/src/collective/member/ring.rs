//! All-reduces by a ring: splits go from neighbour to neighbour, first to be reduced, then as results.
//!
//! Member `r` works at step `s` on split `(r - s) mod n`. It sends its own split at step 0; up to step `n - 1` it reduces
//! what arrives with its own leaves; from step `n` on it keeps what arrives. It passes on each but the last.

use super::tree::{ALL_LEAVES, singles};
use super::*;

/// The state of a reduction by a ring.
pub(super) struct Ring<P> {
    /// The number of the next step; 0 before it has begun.
    next: usize,
    /// Elements of later steps, which wait for their turn.
    arrived: BTreeMap<usize, P>,
}

impl<P> Ring<P> {
    pub fn new() -> Ring<P> {
        Ring {
            next: 0,
            arrived: BTreeMap::new(),
        }
    }

    pub fn forget(&mut self) {
        self.arrived.clear();
    }
}

impl<P: Payload> Member<P> {
    pub(super) fn begin_ring(&mut self, actions: &mut Vec<Action<P>>) {
        let (elements, own) = (self.ring_elements(0), self.leaves.own.clone());
        let mut values = self.own_leaves(&own, &elements);
        let data = match (values.pop(), values.is_empty()) {
            (Some(Source::Span(only)), true) => only,
            (last, _) => {
                values.extend(last);
                let memory = Memory::Scratch(0);
                let into = Span { memory, elements };
                let steps = reduction::steps(&own, &singles(&own)).expect(ALL_LEAVES);
                actions.push(self.reduction(into.clone(), values, steps, false));
                into
            }
        };
        self.ring.next = 1;
        self.send_right(1, data, actions);
    }

    /// Returns whether a member is the neighbour that sends to this one.
    pub(super) fn is_left(&self, member: usize) -> bool {
        (member + 1) % self.call.members.len() == self.me
    }

    pub(super) fn ring_is_done(&self) -> bool {
        self.ring.next == 2 * self.call.members.len() - 1
    }

    /// Returns the number of elements of a piece, if the ring has it.
    pub(super) fn expected_by_ring(&self, from: usize, piece: Piece) -> Option<usize> {
        let n_members = self.call.members.len();
        let (steps, step) = match piece {
            Piece::Part(step) => (1..n_members, step as usize),
            Piece::Result(step) => (n_members..2 * n_members - 1, step as usize),
        };
        let is_meant = self.is_left(from) && steps.contains(&step);
        is_meant.then(|| self.ring_elements(step).len())
    }

    /// Returns the elements that a step is about.
    fn ring_elements(&self, step: usize) -> Range<usize> {
        let n_members = self.call.members.len();
        let split = (self.me + 2 * n_members - step) % n_members;
        self.plan.units[split].elements.clone()
    }

    fn send_right(&self, step: usize, span: Span, actions: &mut Vec<Action<P>>) {
        let n_members = self.call.members.len();
        let number = exchange::unit_number(step);
        let piece = match step < n_members {
            true => Piece::Part(number),
            false => Piece::Result(number),
        };
        let right = (self.me + 1) % n_members;
        self.send_piece(right, piece, vec![span], actions);
    }

    /// Takes what arrived for a step, and does the steps whose turn it is.
    pub(super) fn turn_ring(&mut self, step: u32, data: P, actions: &mut Vec<Action<P>>) {
        let (n_members, step) = (self.call.members.len(), step as usize);
        if step < self.ring.next {
            return;
        }
        self.ring.arrived.entry(step).or_insert(data);
        while let Some(data) = self.ring.arrived.remove(&self.ring.next) {
            let step = self.ring.next;
            let elements = self.ring_elements(step);
            let arrived = Source::Arrived(data, 0..elements.len());
            let memory = Memory::Result;
            let into = Span {
                memory,
                elements: elements.clone(),
            };
            if step < n_members {
                let mut values = vec![arrived];
                values.extend(self.own_leaves(&self.leaves.own, &elements));
                let is_last = step == n_members - 1;
                actions.push(self.reduction(into.clone(), values, self.ring_steps(), is_last));
            } else {
                actions.push(Action::Place {
                    from: arrived,
                    n_blocks: 1,
                    block_len: elements.len(),
                    offset: elements.start,
                    stride: 0,
                });
            }
            self.ring.next = step + 1;
            if !self.ring_is_done() {
                self.send_right(step + 1, into, actions);
            }
        }
    }

    /// Returns the order of a step: this member's leaves in the order of a tree, then what arrived before them.
    fn ring_steps(&self) -> Vec<Step> {
        let own = &self.leaves.own;
        let tree = reduction::steps(own, &singles(own)).expect(ALL_LEAVES);
        let tree = tree.into_iter().map(|step| match step {
            Step::Term(term) => Step::Term(term + 1),
            Step::Combine => Step::Combine,
        });
        let first = [Step::Term(0)].into_iter();
        first.chain(tree).chain([Step::Combine]).collect()
    }
}
