//! Dominance: checks that every value is defined before it is used.
//!
//! Within a block that is a comparison of positions. Regions of several blocks
//! get their immediate dominators (Cooper, Harvey and Kennedy: "A Simple, Fast
//! Dominance Algorithm"). In graph regions, the bodies of modules, order means
//! nothing.

use std::collections::HashMap;

use crate::{
    codes,
    diagnostic::Diagnostics,
    dialect::Traits,
    module::{BlockId, Def, Module, OpId, RegionId, ValueId},
    op_spans,
};

/// Positions of operations and dominators of blocks.
pub(super) struct Dominance {
    /// The position of each operation in its block.
    positions: Vec<u32>,
    /// The immediate dominators of the blocks of regions that have several; the entry block's is
    /// itself; unreachable blocks have none.
    dominators: HashMap<BlockId, BlockId>,
}

/// The visibility of a value where it is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Visible,
    NotDominating,
    /// The value is hidden by this operation, which is isolated from above.
    Isolated(OpId),
}

impl Dominance {
    pub fn new(module: &Module) -> Dominance {
        Dominance {
            positions: vec![0; module.n_ops()],
            dominators: HashMap::new(),
        }
    }

    /// Prepares a region; `bad_entry` hears of operations that jump to its
    /// first block.
    pub fn enter_region(
        &mut self,
        module: &Module,
        region: RegionId,
        mut bad_entry: impl FnMut(OpId),
    ) {
        let blocks = module.region(region).blocks();
        for &block in blocks {
            for (position, &op) in (0..).zip(module.block(block).operations()) {
                self.positions[op.index()] = position;
                if module.op(op).successors().contains(&blocks[0]) {
                    bad_entry(op);
                }
            }
        }
        if blocks.len() > 1 {
            self.find_dominators(module, blocks);
        }
    }

    fn find_dominators(&mut self, module: &Module, blocks: &[BlockId]) {
        let order = reverse_post_order(module, blocks[0]);
        let numbers: HashMap<BlockId, usize> = order
            .iter()
            .enumerate()
            .map(|(number, &block)| (block, number))
            .collect();
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
        for (number, &block) in order.iter().enumerate() {
            for target in successors(module, block) {
                if let Some(&target) = numbers.get(&target) {
                    predecessors[target].push(number);
                }
            }
        }
        let mut dominators: Vec<Option<usize>> = vec![None; order.len()];
        dominators[0] = Some(0);
        let mut changed = true;
        while changed {
            changed = false;
            for number in 1..order.len() {
                let known = predecessors[number].iter().copied();
                let mut known = known.filter(|&predecessor| dominators[predecessor].is_some());
                let Some(first) = known.next() else {
                    continue;
                };
                let dominator = known.fold(first, |a, b| intersect(&dominators, a, b));
                if dominators[number] != Some(dominator) {
                    dominators[number] = Some(dominator);
                    changed = true;
                }
            }
        }
        for (number, dominator) in dominators.iter().enumerate() {
            if let Some(dominator) = dominator {
                self.dominators.insert(order[number], order[*dominator]);
            }
        }
    }

    /// Reports operands that are not visible where an operation stands.
    pub fn check_operands(&self, module: &Module, op: OpId, diagnostics: &mut Diagnostics) {
        // A value that is used twice is told once.
        let mut told: Vec<ValueId> = Vec::new();
        for (index, &value) in module.op(op).operands().iter().enumerate() {
            match self.visibility(module, value, op) {
                Visibility::Visible => {}
                _ if told.contains(&value) => {}
                _ if diagnostics.is_full() => return,
                Visibility::Isolated(around) => {
                    let error = module.op_error(
                        codes::UNDEFINED_VALUE,
                        op,
                        "using value defined outside the region",
                    );
                    let note = "required by region isolation constraints";
                    let span = module.op(around).span();
                    told.push(value);
                    diagnostics.push(error.note_at(note, module.source(), span));
                }
                Visibility::NotDominating => {
                    let message = format!("operand #{index} does not dominate this use");
                    let error = module.error_at(codes::USE_BEFORE_DEFINITION, op, message);
                    let span = op_spans::operand(module, op, index);
                    let mut error = error.narrowed(module.source(), span);
                    if let Some(definition) = module.defining_op(value) {
                        let same_block = module.op(definition).parent() == module.op(op).parent();
                        let note = match same_block {
                            true => "operand defined here (op in the same block)",
                            false => "operand defined here",
                        };
                        let span = module.op(definition).span();
                        error = error.note_at(note, module.source(), span);
                        if definition == op {
                            error = error.help("an operation cannot use its own result");
                        }
                    }
                    told.push(value);
                    diagnostics.push(error);
                }
            }
        }
    }

    /// Returns whether a value is made earlier in the block of its user, as most are.
    fn is_earlier_in_block(&self, module: &Module, value: ValueId, user: OpId) -> bool {
        let block = module.op(user).parent();
        match module.value_def(value) {
            Def::Argument(made_in, _) => block == Some(made_in),
            Def::Result(maker, _) => {
                self.positions.get(maker.index()) < self.positions.get(user.index())
                    && block.is_some()
                    && module.op(maker).parent() == block
            }
        }
    }

    fn visibility(&self, module: &Module, value: ValueId, user: OpId) -> Visibility {
        if self.is_earlier_in_block(module, value, user) {
            return Visibility::Visible;
        }
        let Some(block) = module.value_block(value) else {
            return Visibility::NotDominating;
        };
        let region = module.block(block).parent();
        // The operation around the use, or the user, in the value's region.
        let mut at = user;
        let mut barrier = None;
        while module.parent_region(at) != Some(region) {
            let Some(parent) = module.parent_op(at) else {
                return Visibility::NotDominating;
            };
            at = parent;
            if barrier.is_none() && has(module, at, Traits::ISOLATED) {
                barrier = Some(at);
            }
        }
        if let Some(barrier) = barrier {
            return Visibility::Isolated(barrier);
        }
        let is_graph = module
            .region(region)
            .parent()
            .is_some_and(|op| has(module, op, Traits::GRAPH));
        let is_visible = is_graph
            || match module.op(at).parent() {
                Some(used_in) if used_in == block => match module.defining_op(value) {
                    Some(definition) => {
                        self.positions[definition.index()] < self.positions[at.index()]
                    }
                    None => true,
                },
                Some(used_in) => self.dominates(block, used_in),
                None => false,
            };
        if is_visible {
            Visibility::Visible
        } else {
            Visibility::NotDominating
        }
    }

    /// Returns whether each way to a block leads through another; true for
    /// blocks that cannot be reached.
    fn dominates(&self, block: BlockId, other: BlockId) -> bool {
        let mut at = other;
        while let Some(&dominator) = self.dominators.get(&at) {
            if dominator == block {
                return true;
            }
            if dominator == at {
                return false;
            }
            at = dominator;
        }
        true
    }
}

fn has(module: &Module, op: OpId, traits: Traits) -> bool {
    module
        .op(op)
        .definition()
        .is_some_and(|definition| definition.is(traits))
}

fn successors(module: &Module, block: BlockId) -> Vec<BlockId> {
    let operations = module.block(block).operations();
    operations
        .iter()
        .flat_map(|&op| module.op(op).successors().iter().copied())
        .collect()
}

/// Returns the reachable blocks, each after one that leads to it.
fn reverse_post_order(module: &Module, entry: BlockId) -> Vec<BlockId> {
    let mut order = Vec::new();
    let mut seen = std::collections::HashSet::from([entry]);
    let mut stack = vec![(entry, successors(module, entry).into_iter())];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.next() {
            Some(next) if seen.insert(next) => {
                stack.push((next, successors(module, next).into_iter()));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Returns the nearest common dominator of two blocks, given by their numbers.
fn intersect(dominators: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while a > b {
            a = dominators[a].unwrap_or(0);
        }
        while b > a {
            b = dominators[b].unwrap_or(0);
        }
    }
    a
}
