//! Ensembles of decision trees.
//!
//! Trees are given as lists of nodes that name their branches by number, and laid out once for fast walks
//! (`trees/flat.rs`): several paths are followed side by side, so that the processor has something to do while it waits
//! for a node. A path is followed with a loop, and has no more steps than there are nodes: trees that lead back to
//! themselves are refused.

use tfrt_host::Error;

use super::number::Floating;

mod flat;

use flat::{FlatTrees, LANES};

/// The question that a node asks of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum Question<T> {
    /// Whether the feature is at most this number.
    AtMost(T),
    /// Whether the feature is less than this number.
    Less(T),
    /// Whether the feature is at least this number.
    AtLeast(T),
    /// Whether the feature is greater than this number.
    Greater(T),
    /// Whether the feature is this number.
    Equal(T),
    /// Whether the feature is not this number.
    NotEqual(T),
    /// Whether the feature is one of these numbers.
    OneOf(Vec<T>),
}

/// Destination of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// To a node.
    Node(usize),
    /// To a leaf.
    Leaf(usize),
}

/// A node of a tree.
#[derive(Clone, Debug)]
pub struct Node<T> {
    /// The feature that is looked at.
    pub feature: usize,
    /// Question about the feature.
    pub question: Question<T>,
    /// The answer if the feature is no number; else questions but [`Question::NotEqual`] have the answer no.
    pub missing_is_yes: bool,
    /// Destination if the answer is yes.
    pub yes: Branch,
    /// Destination if the answer is no.
    pub no: Branch,
}

/// A contribution of a leaf to a result.
#[derive(Clone, Copy, Debug)]
pub struct Vote<T> {
    /// Index of the result.
    pub target: usize,
    /// Amount that is added.
    pub weight: T,
}

/// Leaves of trees, each with any number of votes.
#[derive(Clone, Debug)]
pub struct Leaves<T> {
    // Invariant: begins with 0, does not fall, ends with the number of votes.
    starts: Vec<usize>,
    votes: Vec<Vote<T>>,
}

impl<T> Leaves<T> {
    /// Without leaves, to be pushed.
    pub fn new() -> Leaves<T> {
        Leaves {
            starts: vec![0],
            votes: Vec::new(),
        }
    }

    /// Adds a leaf.
    pub fn push(&mut self, votes: impl IntoIterator<Item = Vote<T>>) {
        self.votes.extend(votes);
        self.starts.push(self.votes.len());
    }

    /// Returns the number of leaves.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn of(&self, leaf: usize) -> &[Vote<T>] {
        &self.votes[self.starts[leaf]..self.starts[leaf + 1]]
    }
}

impl<T> Default for Leaves<T> {
    fn default() -> Leaves<T> {
        Leaves::new()
    }
}

/// Aggregation of the trees' votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The sum over trees divided by their number.
    Average,
    /// The sum.
    Sum,
    /// The least vote; 0 without votes.
    Least,
    /// The greatest vote; 0 without votes.
    Greatest,
}

/// Trees over the same features, which together give some numbers.
#[derive(Clone, Debug)]
pub struct Trees<T> {
    flat: FlatTrees<T>,
    // Invariant: targets are less than `n_targets`.
    leaves: Leaves<T>,
    n_targets: usize,
    aggregate: Aggregate,
}

impl<T: Floating> Trees<T> {
    /// Returns an ensemble.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a branch, root or vote leads nowhere, or a path leads back to where it was;
    /// `ResourceExhausted` if there are too many nodes or features.
    pub fn new(
        nodes: Vec<Node<T>>,
        leaves: Leaves<T>,
        roots: Vec<Branch>,
        n_targets: usize,
        aggregate: Aggregate,
    ) -> Result<Trees<T>, Error> {
        let leads_somewhere = |branch: &Branch| match branch {
            Branch::Node(index) => *index < nodes.len(),
            Branch::Leaf(index) => *index < leaves.len(),
        };
        let branches = nodes.iter().flat_map(|node| [&node.yes, &node.no]);
        if let Some(branch) = branches
            .chain(&roots)
            .find(|branch| !leads_somewhere(branch))
        {
            let (n_nodes, n_leaves) = (nodes.len(), leaves.len());
            let message =
                format!("a branch leads to {branch:?} of {n_nodes} nodes and {n_leaves} leaves");
            return Err(Error::invalid_argument(message));
        }
        if let Some(vote) = leaves.votes.iter().find(|vote| vote.target >= n_targets) {
            let message = format!("a leaf adds to result {} of {n_targets}", vote.target);
            return Err(Error::invalid_argument(message));
        }
        if let Some(index) = node_on_cycle(&nodes) {
            let message = format!("a path from node {index} leads back to it");
            return Err(Error::invalid_argument(message));
        }
        Ok(Trees {
            flat: FlatTrees::new(nodes, &roots)?,
            leaves,
            n_targets,
            aggregate,
        })
    }

    /// Returns the minimum number of features of a row: one, and those that nodes look at.
    pub fn n_features(&self) -> usize {
        self.flat.n_features()
    }

    /// Returns the number of results.
    pub fn n_targets(&self) -> usize {
        self.n_targets
    }

    /// Returns the number of trees.
    pub fn n_trees(&self) -> usize {
        self.flat.roots().len()
    }

    /// Converts the trees' numbers to another type.
    pub fn map<U: Floating>(&self, mut number: impl FnMut(T) -> U) -> Trees<U> {
        let votes = self.leaves.votes.iter().map(|vote| Vote {
            target: vote.target,
            weight: number(vote.weight),
        });
        Trees {
            leaves: Leaves {
                starts: self.leaves.starts.clone(),
                votes: votes.collect(),
            },
            flat: self.flat.map(number),
            n_targets: self.n_targets,
            aggregate: self.aggregate,
        }
    }

    /// Calculates the results of some rows, which lie behind one another with `n_features` features each, and
    /// whether any tree has said something on each result. Sums are taken in the order of trees.
    ///
    /// # Panics
    ///
    /// If rows have fewer features than [`n_features`](Self::n_features), or there are not
    /// [`n_targets`](Self::n_targets) results for each of them.
    pub fn run(&self, rows: &[T], n_features: usize, out: &mut [T], said: &mut [bool]) {
        assert!(n_features >= self.n_features(), "rows are too short");
        let n_rows = rows.len() / n_features;
        assert!(out.len() == n_rows * self.n_targets && said.len() == out.len());
        out.fill(T::ZERO);
        said.fill(false);
        if n_rows < LANES {
            for row in 0..n_rows {
                self.across_trees(rows, row * n_features, row, out, said);
            }
        } else {
            for root in self.flat.roots() {
                self.across_rows(*root, rows, n_features, out, said);
            }
        }
        if self.aggregate == Aggregate::Average {
            let n_trees = T::from_f64(self.n_trees() as f64);
            out.iter_mut().for_each(|out| *out = out.over(n_trees));
        }
    }

    /// A row through all trees.
    fn across_trees(&self, rows: &[T], base: usize, row: usize, out: &mut [T], said: &mut [bool]) {
        for roots in self.flat.roots().chunks(LANES) {
            let mut at = [roots[0]; LANES];
            at[..roots.len()].copy_from_slice(roots);
            let leaves = self.flat.walk(at, rows, [base; LANES]);
            for leaf in &leaves[..roots.len()] {
                self.count(*leaf, row, out, said);
            }
        }
    }

    /// All rows through a tree.
    fn across_rows(
        &self,
        root: u32,
        rows: &[T],
        n_features: usize,
        out: &mut [T],
        said: &mut [bool],
    ) {
        let n_rows = rows.len() / n_features;
        for first in (0..n_rows).step_by(LANES) {
            let base = std::array::from_fn(|lane| (first + lane).min(n_rows - 1) * n_features);
            let leaves = self.flat.walk([root; LANES], rows, base);
            for (row, leaf) in (first..n_rows).zip(leaves) {
                self.count(leaf, row, out, said);
            }
        }
    }

    #[inline(always)]
    fn count(&self, leaf: usize, row: usize, out: &mut [T], said: &mut [bool]) {
        for Vote { target, weight } in self.leaves.of(leaf) {
            let at = row * self.n_targets + target;
            let own = out[at];
            let first = !std::mem::replace(&mut said[at], true);
            out[at] = match self.aggregate {
                Aggregate::Average | Aggregate::Sum => own.plus(*weight),
                Aggregate::Least | Aggregate::Greatest if first => *weight,
                Aggregate::Least => own.least(*weight),
                Aggregate::Greatest => own.greatest(*weight),
            };
        }
    }
}

/// Returns a node on a cycle, or behind one: a node that is left when nodes without incoming branches are removed one
/// after the other.
fn node_on_cycle<T>(nodes: &[Node<T>]) -> Option<usize> {
    let next = |node: &Node<T>| {
        let branches = [node.yes, node.no].into_iter();
        branches.filter_map(|branch| match branch {
            Branch::Node(index) => Some(index),
            Branch::Leaf(_) => None,
        })
    };
    let mut n_before = vec![0_usize; nodes.len()];
    for index in nodes.iter().flat_map(next) {
        n_before[index] += 1;
    }
    let mut ready: Vec<usize> = (0..nodes.len())
        .filter(|index| n_before[*index] == 0)
        .collect();
    while let Some(index) = ready.pop() {
        for after in next(&nodes[index]) {
            n_before[after] -= 1;
            if n_before[after] == 0 {
                ready.push(after);
            }
        }
    }
    n_before.iter().position(|n_before| *n_before > 0)
}

#[cfg(test)]
mod tests;
