//! Finds the operations of a block that must wait for one another.
//!
//! Going down the block, the last writer and the readers since are kept for each
//! object: an operation must wait for those that it conflicts with. Of these, the
//! ones are left out that something else makes it wait for already. What remains is
//! the transitive reduction of the order over data and chains together, since the
//! edges into an operation depend on earlier operations only.
//!
//! An edge is *firm* if whoever takes the value knows that its producer's effects
//! are over: a chain, or any result of an operation without functions or regions.
//! Other results of a call may be there while the function goes on.

use std::collections::BTreeMap;

use super::access::{Access, Accesses, Object};

/// The position of an operation in its block, from 1; 0 is the entry.
pub(super) type OpIndex = usize;

/// An edge into an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub from: OpIndex,
    pub is_firm: bool,
}

/// The most steps of the search for implied edges, for each operation; beyond it superfluous edges may stay.
const BUDGET: usize = 20_000;

/// The most steps for all operations of a block together, beyond some for each of them.
const BLOCK_BUDGET: usize = 20_000_000;

/// The most readers of unknown buffers that stay unordered.
const MAX_UNKNOWN_READERS: usize = 64;

/// The order of a block's operations, as far as it has been walked.
#[derive(Default)]
pub(super) struct Order {
    last: BTreeMap<Object, LastAccesses>,
    /// An operation that every later access to a buffer waits for.
    barrier: Option<OpIndex>,
    /// Operations since then that read unknown buffers.
    unknown_readers: Vec<OpIndex>,
    edges: Vec<Vec<Edge>>,
    seen: Vec<OpIndex>,
    implied: Vec<OpIndex>,
    steps: usize,
}

/// The last operations that accessed an object.
#[derive(Clone, Debug, Default)]
struct LastAccesses {
    writer: Option<OpIndex>,
    readers: Vec<OpIndex>,
}

impl Order {
    /// Adds the next operation with its data edges; returns the operations that it must wait for beyond them, in
    /// order.
    pub fn push(&mut self, accesses: &Accesses, data: Vec<Edge>) -> Vec<OpIndex> {
        let node = self.edges.len();
        let conflicts = self.conflicts(node, accesses);
        self.edges.push(data);
        self.seen.push(0);
        self.implied.push(0);
        let needed = self.reduce(node, conflicts);
        let firm = needed.iter().map(|&from| Edge {
            from,
            is_firm: true,
        });
        self.edges[node].extend(firm);
        needed
    }

    /// Returns the operations that the end of the block must wait for, of those for which `is_visible` is true.
    pub fn finish(mut self, is_visible: impl Fn(OpIndex) -> bool) -> Vec<OpIndex> {
        let node = self.edges.len();
        let mut left: Vec<OpIndex> = self.barrier.into_iter().collect();
        left.extend(&self.unknown_readers);
        for touched in self.last.values() {
            left.extend(touched.writer);
            left.extend(&touched.readers);
        }
        left.retain(|&node| is_visible(node));
        self.edges.push(Vec::new());
        self.seen.push(0);
        self.implied.push(0);
        self.reduce(node, left)
    }

    /// Returns the operations that a new one conflicts with, and notes its accesses.
    fn conflicts(&mut self, node: OpIndex, accesses: &Accesses) -> Vec<OpIndex> {
        let mut found = Vec::new();
        for (object, access) in accesses.iter() {
            let is_unknown = object == Object::Any;
            let floods = self.unknown_readers.len() >= MAX_UNKNOWN_READERS;
            match access {
                Access::Write if is_unknown => self.touch_all(node, &mut found),
                Access::Read if is_unknown && floods => self.touch_all(node, &mut found),
                Access::Read if is_unknown => {
                    found.extend(self.barrier);
                    for (_, touched) in self.last.iter().filter(|(o, _)| **o != Object::World) {
                        found.extend(touched.writer);
                    }
                    self.unknown_readers.push(node);
                }
                _ => self.touch(node, object, access, &mut found),
            }
        }
        found.retain(|&other| other != node);
        found
    }

    fn touch(&mut self, node: OpIndex, object: Object, access: Access, found: &mut Vec<OpIndex>) {
        if object != Object::World {
            found.extend(self.barrier);
        }
        let touched = self.last.entry(object).or_default();
        found.extend(touched.writer);
        match access {
            Access::Read => touched.readers.push(node),
            Access::Write => {
                found.append(&mut touched.readers);
                touched.writer = Some(node);
                if object != Object::World {
                    found.extend(&self.unknown_readers);
                }
            }
        }
    }

    /// Notes a write to any buffer: earlier accesses need not be remembered.
    fn touch_all(&mut self, node: OpIndex, found: &mut Vec<OpIndex>) {
        found.extend(self.barrier.replace(node));
        found.append(&mut self.unknown_readers);
        let world = self.last.remove(&Object::World);
        for touched in std::mem::take(&mut self.last).into_values() {
            found.extend(touched.writer);
            found.extend(touched.readers);
        }
        self.last.extend(world.map(|world| (Object::World, world)));
    }

    /// Returns the candidates that no other edge of a node implies, in order.
    fn reduce(&mut self, node: OpIndex, mut candidates: Vec<OpIndex>) -> Vec<OpIndex> {
        candidates.sort_unstable();
        candidates.dedup();
        let Some(&first) = candidates.first() else {
            return candidates;
        };
        // Marks are made with the node's own number, which is never 0 where there are candidates.
        let mut budget = BUDGET;
        let own: Vec<Edge> = self.edges[node].clone();
        for edge in own {
            self.mark(node, edge, first, &mut budget);
        }
        let mut needed = Vec::new();
        for &candidate in candidates.iter().rev() {
            if self.implied[candidate] == node {
                continue;
            }
            needed.push(candidate);
            let edge = Edge {
                from: candidate,
                is_firm: true,
            };
            self.mark(node, edge, first, &mut budget);
        }
        needed.reverse();
        needed
    }

    /// Marks all operations that are over once an edge's value is there.
    fn mark(&mut self, node: OpIndex, edge: Edge, first: OpIndex, budget: &mut usize) {
        let mut open = vec![edge];
        while let Some(edge) = open.pop() {
            if edge.from < first {
                continue;
            }
            if edge.is_firm {
                self.implied[edge.from] = node;
            }
            if self.seen[edge.from] == node {
                continue;
            }
            let n_edges = self.edges[edge.from].len() + 1;
            if *budget < n_edges || self.steps > BLOCK_BUDGET + 64 * node {
                continue;
            }
            *budget -= n_edges;
            self.steps += n_edges;
            self.seen[edge.from] = node;
            open.extend(&self.edges[edge.from]);
        }
    }
}
