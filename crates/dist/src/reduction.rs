//! The order in which values of many tasks are reduced: one fixed tree, whatever the number of tasks.
//!
//! Floating-point sums depend on their order. A program states a number of leaves, such as eight microbatches. The tree
//! stands over the leaves, not over the tasks: a task has a run of neighbouring leaves, reduces the whole subtrees among
//! them, and hands on their roots. So one task gives the bits that eight tasks give.
//!
//! ```text
//! leaves   0 1 2 3 4 5 6 7        of three tasks the first has leaves 0 to 2, and hands on two roots: of leaves 0
//!          \_/ \_/ \_/ \_/        and 1, and of leaf 2
//!            \_/     \_/
//!              \_____/
//! ```

use std::ops::Range;

/// A balanced binary tree over leaves: neighbours are reduced first, then pairs of neighbours.
///
/// If the number of leaves is no power of two, a node's left part has the largest power of two below its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionTree {
    n_leaves: usize,
}

impl ReductionTree {
    /// Makes a tree.
    pub fn new(n_leaves: usize) -> ReductionTree {
        ReductionTree { n_leaves }
    }

    /// Returns the leaves of a task, one of `n_tasks`: as equal in number as can be, and all in their order.
    ///
    /// A task has none only where there are fewer leaves than tasks.
    pub fn leaves_of(&self, task: usize, n_tasks: usize) -> Range<usize> {
        let begin = |task: usize| {
            let product = self.n_leaves as u128 * task as u128;
            usize::try_from(product.div_ceil(n_tasks.max(1) as u128)).unwrap_or(self.n_leaves)
        };
        begin(task).min(self.n_leaves)..begin(task + 1).min(self.n_leaves)
    }

    /// Returns the largest subtrees whose leaves all lie in a run of leaves, by their leaves and in order.
    pub fn subtrees(&self, run: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        add_subtrees(0..self.n_leaves, &run, &mut found);
        found
    }

    /// Reduces values of subtrees that cover all leaves, in the order of the tree.
    ///
    /// `values` has the leaves of each subtree and its value, in any order. Returns `None` if they do not cover the
    /// leaves once each, or if one is no subtree.
    pub fn reduce<T>(
        &self,
        mut values: Vec<(Range<usize>, T)>,
        mut reduce: impl FnMut(T, T) -> T,
    ) -> Option<T> {
        values.sort_by_key(|(leaves, _)| leaves.start);
        let mut values = values.into_iter();
        let root = self.reduce_node(0..self.n_leaves, &mut values, &mut reduce)?;
        values.next().is_none().then_some(root)
    }

    fn reduce_node<T>(
        &self,
        node: Range<usize>,
        values: &mut std::vec::IntoIter<(Range<usize>, T)>,
        reduce: &mut impl FnMut(T, T) -> T,
    ) -> Option<T> {
        let (next, _) = values.as_slice().first()?;
        if *next == node {
            return values.next().map(|(_, value)| value);
        }
        if node.len() < 2 {
            return None;
        }
        let (left, right) = halves(&node);
        let left = self.reduce_node(left, values, reduce)?;
        let right = self.reduce_node(right, values, reduce)?;
        Some(reduce(left, right))
    }
}

/// A step of a reduction by hand: a stack of values is reduced to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Puts the value of this number onto the stack.
    Term(usize),
    /// Reduces the two values on top, the lower one as the left operand, to one.
    Combine,
}

/// Returns the steps that reduce values of subtrees that cover a run of leaves, which is a subtree itself; `None` if they
/// do not cover it. The values are numbered as they are in `have`.
pub fn steps(run: &Range<usize>, have: &[Range<usize>]) -> Option<Vec<Step>> {
    let tree = ReductionTree::new(run.len());
    let inside = |leaves: &Range<usize>| run.start <= leaves.start && leaves.end <= run.end;
    if !have.iter().all(inside) {
        return None;
    }
    let terms = have.iter().enumerate().map(|(term, leaves)| {
        let leaves = leaves.start - run.start..leaves.end - run.start;
        (leaves, vec![Step::Term(term)])
    });
    tree.reduce(terms.collect(), |mut left, right| {
        left.extend(right);
        left.push(Step::Combine);
        left
    })
}

/// Returns the two parts of a node of two leaves or more.
fn halves(node: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let len = node.len();
    let left_len = 1 << (len - 1).ilog2();
    let middle = node.start + left_len;
    (node.start..middle, middle..node.end)
}

/// Adds the largest subtrees of a node whose leaves all lie in a run.
fn add_subtrees(node: Range<usize>, run: &Range<usize>, found: &mut Vec<Range<usize>>) {
    if node.is_empty() || node.end <= run.start || run.end <= node.start {
        return;
    }
    if run.start <= node.start && node.end <= run.end {
        return found.push(node);
    }
    // Depth: the logarithm of the number of leaves.
    let (left, right) = halves(&node);
    add_subtrees(left, run, found);
    add_subtrees(right, run, found);
}
