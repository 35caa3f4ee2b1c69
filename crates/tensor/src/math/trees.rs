//! Ensembles of decision trees.
//!
//! Trees are lists of nodes that name their branches by number. A path through them is followed with a loop, and has
//! no more steps than there are nodes: trees that lead back to themselves are refused.

use tfrt_host::Error;

use super::number::Floating;

/// What a node asks of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum Question<T> {
    /// Whether it is at most this.
    AtMost(T),
    /// Whether it is less.
    Less(T),
    /// Whether it is at least this.
    AtLeast(T),
    /// Whether it is greater.
    Greater(T),
    /// Whether it is this.
    Equal(T),
    /// Whether it is not this.
    NotEqual(T),
    /// Whether it is one of these.
    OneOf(Vec<T>),
}

/// Where a branch leads.
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
    /// What is asked of it.
    pub question: Question<T>,
    /// The answer if the feature is no number; else questions but [`Question::NotEqual`] have the answer no.
    pub missing_is_yes: bool,
    /// Where yes leads.
    pub yes: Branch,
    /// Where no leads.
    pub no: Branch,
}

/// What a path through a tree adds.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<T> {
    /// To which of the results.
    pub target: usize,
    /// How much.
    pub weight: T,
}

/// What results are made of what trees say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The sum over trees divided by their number.
    Average,
    /// The sum.
    Sum,
    /// The least; where no tree says something, 0.
    Least,
    /// The greatest; where no tree says something, 0.
    Greatest,
}

/// Trees over the same features, which together give some numbers.
#[derive(Clone, Debug)]
pub struct Trees<T> {
    // Invariant: branches lead to nodes and leaves that there are, no node leads back to itself, features are less
    // than `n_features`, targets less than `n_targets`.
    nodes: Vec<Node<T>>,
    leaves: Vec<Leaf<T>>,
    roots: Vec<Branch>,
    n_features: usize,
    n_targets: usize,
    aggregate: Aggregate,
}

impl<T: Floating> Trees<T> {
    /// Returns an ensemble.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a branch, root or target leads nowhere, or a path leads back to where it was.
    pub fn new(
        nodes: Vec<Node<T>>,
        leaves: Vec<Leaf<T>>,
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
        if let Some(leaf) = leaves.iter().find(|leaf| leaf.target >= n_targets) {
            let message = format!("a leaf adds to result {} of {n_targets}", leaf.target);
            return Err(Error::invalid_argument(message));
        }
        if let Some(index) = node_on_cycle(&nodes) {
            let message = format!("a path from node {index} leads back to it");
            return Err(Error::invalid_argument(message));
        }
        let features = nodes.iter().map(|node| node.feature.saturating_add(1));
        Ok(Trees {
            n_features: features.max().unwrap_or(0),
            nodes,
            leaves,
            roots,
            n_targets,
            aggregate,
        })
    }

    /// How many features a row has at least.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// How many results there are.
    pub fn n_targets(&self) -> usize {
        self.n_targets
    }

    /// How many trees there are.
    pub fn n_trees(&self) -> usize {
        self.roots.len()
    }

    /// Calculates the results of one row of features. Sums are taken in the order of trees.
    ///
    /// # Panics
    ///
    /// If the row is shorter than [`n_features`](Self::n_features), or there is no room for
    /// [`n_targets`](Self::n_targets) results.
    pub fn run(&self, row: &[T], out: &mut [T]) {
        let out = &mut out[..self.n_targets];
        let n_trees = T::from_f64(self.roots.len() as f64);
        let mut is_set = vec![false; self.n_targets];
        out.fill(T::ZERO);
        for root in &self.roots {
            let Leaf { target, weight } = self.leaf(*root, row);
            let own = out[target];
            let first = !std::mem::replace(&mut is_set[target], true);
            out[target] = match self.aggregate {
                Aggregate::Average => own.plus(weight.over(n_trees)),
                Aggregate::Sum => own.plus(weight),
                Aggregate::Least | Aggregate::Greatest if first => weight,
                Aggregate::Least => own.least(weight),
                Aggregate::Greatest => own.greatest(weight),
            };
        }
    }

    fn leaf(&self, mut branch: Branch, row: &[T]) -> Leaf<T> {
        loop {
            match branch {
                Branch::Leaf(index) => return self.leaves[index],
                Branch::Node(index) => {
                    let node = &self.nodes[index];
                    let x = row[node.feature];
                    let is_missing = !x.same(x);
                    let is_yes = (is_missing && node.missing_is_yes) || node.question.ask(x);
                    branch = if is_yes { node.yes } else { node.no };
                }
            }
        }
    }
}

impl<T: Floating> Question<T> {
    fn ask(&self, x: T) -> bool {
        match self {
            Question::AtMost(limit) => x.less(*limit) || x.same(*limit),
            Question::Less(limit) => x.less(*limit),
            Question::AtLeast(limit) => limit.less(x) || limit.same(x),
            Question::Greater(limit) => limit.less(x),
            Question::Equal(value) => x.same(*value),
            Question::NotEqual(value) => !x.same(*value),
            Question::OneOf(values) => values.iter().any(|value| x.same(*value)),
        }
    }
}

/// A node from which a path leads back to it, if there is one: what is left when nodes that lead to leaves alone are
/// taken away, one after the other.
fn node_on_cycle<T>(nodes: &[Node<T>]) -> Option<usize> {
    let targets = |node: &Node<T>| {
        [node.yes, node.no]
            .into_iter()
            .filter_map(|branch| match branch {
                Branch::Node(index) => Some(index),
                Branch::Leaf(_) => None,
            })
    };
    let mut n_open: Vec<usize> = nodes.iter().map(|node| targets(node).count()).collect();
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        for target in targets(node) {
            parents[target].push(index);
        }
    }
    let mut ready: Vec<usize> = (0..nodes.len())
        .filter(|index| n_open[*index] == 0)
        .collect();
    while let Some(index) = ready.pop() {
        for parent in &parents[index] {
            n_open[*parent] -= 1;
            if n_open[*parent] == 0 {
                ready.push(*parent);
            }
        }
    }
    n_open.iter().position(|n_open| *n_open > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(question: Question<f32>, yes: Branch, no: Branch) -> Node<f32> {
        Node {
            feature: 0,
            question,
            missing_is_yes: false,
            yes,
            no,
        }
    }

    const LEAVES: [Leaf<f32>; 3] = [
        Leaf {
            target: 0,
            weight: 1.0,
        },
        Leaf {
            target: 1,
            weight: 2.0,
        },
        Leaf {
            target: 1,
            weight: -4.0,
        },
    ];

    fn results(aggregate: Aggregate, x: f32) -> [f32; 2] {
        let nodes = vec![
            node(Question::AtMost(0.5), Branch::Leaf(0), Branch::Node(1)),
            node(
                Question::OneOf(vec![2.0, 3.0]),
                Branch::Leaf(1),
                Branch::Leaf(2),
            ),
        ];
        let roots = vec![Branch::Node(0), Branch::Node(1)];
        let trees = Trees::new(nodes, LEAVES.to_vec(), roots, 2, aggregate).unwrap();
        let mut out = [9.0; 2];
        trees.run(&[x], &mut out);
        out
    }

    #[test]
    fn rows_find_their_leaves() {
        assert_eq!(results(Aggregate::Sum, 0.5), [1.0, -4.0]);
        assert_eq!(results(Aggregate::Sum, 3.0), [0.0, 4.0]);
        assert_eq!(results(Aggregate::Average, 3.0), [0.0, 2.0]);
        assert_eq!(results(Aggregate::Least, 9.0), [0.0, -4.0]);
        assert_eq!(results(Aggregate::Greatest, f32::NAN), [0.0, -4.0]);
    }

    #[test]
    fn paths_that_do_not_end_are_refused() {
        let nodes = |last| {
            vec![
                node(Question::Less(0.0), Branch::Node(1), Branch::Leaf(0)),
                node(Question::Less(0.0), last, Branch::Leaf(0)),
            ]
        };
        let of = |last| {
            let roots = vec![Branch::Node(0)];
            Trees::new(nodes(last), LEAVES.to_vec(), roots, 2, Aggregate::Sum).map(|_| ())
        };
        assert!(of(Branch::Leaf(2)).is_ok());
        let message = |last| of(last).unwrap_err().message().to_owned();
        assert_eq!(
            message(Branch::Node(0)),
            "a path from node 0 leads back to it"
        );
        assert!(message(Branch::Leaf(3)).starts_with("a branch leads to Leaf(3)"));
    }
}
