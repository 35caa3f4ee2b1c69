//! Trees of `TreeEnsembleRegressor` and `TreeEnsembleClassifier`, whose nodes are identified by tree and number.

use std::collections::{HashMap, HashSet};

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::trees::{
    Aggregate, Branch, Leaves, Node as TreeNode, Question, Trees, Vote,
};

use super::super::super::NodeCall;
use super::super::super::dispatch::to_f64;

/// Returns numbers that are a list of floats, or a tensor, whose attribute has `_as_tensor` in its name; and whether
/// they need more than `f32`. Without the attribute there are none.
pub(super) fn numbers(node: &NodeCall<'_>, name: &str) -> Result<(Vec<f64>, bool), Error> {
    let allocator = node.execution.host().allocator();
    let tensor = node
        .attributes
        .tensor(&format!("{name}_as_tensor"), allocator)?;
    let list = node.attributes.floats(name)?.unwrap_or(&[]);
    match tensor {
        Some(tensor) if list.is_empty() => {
            let tensor = tensor.as_dense()?;
            Ok((to_f64(tensor)?, tensor.dtype() == DType::F64))
        }
        _ => Ok((list.iter().copied().map(f64::from).collect(), false)),
    }
}

/// Makes the error for a list of another length.
pub(super) fn other_len(node: &NodeCall<'_>, name: &str, expected: usize, found: usize) -> Error {
    let message = format_args!("is expected to have {expected} elements, found {found}");
    node.attributes.error(name, message)
}

/// The identifiers of nodes, in two lists: trees and numbers.
struct NodeIds<'a> {
    trees: &'a [i64],
    nodes: &'a [i64],
}

impl NodeIds<'_> {
    fn get(&self, index: usize) -> (i64, i64) {
        (self.trees[index], self.nodes[index])
    }
}

/// Reads the trees, whose leaves vote for targets or classes, and whether their numbers need more than `f32`.
pub(super) fn trees(
    node: &NodeCall<'_>,
    votes: &str,
    n_targets: usize,
) -> Result<(Trees<f64>, bool), Error> {
    let integers = |name: &str, expected: Option<usize>| {
        let list = node.attributes.integers(name)?;
        let list = list.ok_or_else(|| node.attributes.missing(name))?;
        match expected.filter(|expected| *expected != list.len()) {
            Some(expected) => Err(other_len(node, name, expected, list.len())),
            None => Ok(list),
        }
    };
    let ids = integers("nodes_nodeids", None)?;
    let n = ids.len();
    let names = NodeIds {
        trees: integers("nodes_treeids", Some(n))?,
        nodes: ids,
    };
    let features = integers("nodes_featureids", Some(n))?;
    let yes = integers("nodes_truenodeids", Some(n))?;
    let no = integers("nodes_falsenodeids", Some(n))?;
    let missing = node
        .attributes
        .integers("nodes_missing_value_tracks_true")?;
    let missing = missing.unwrap_or(&[]);
    if !missing.is_empty() && missing.len() != n {
        let name = "nodes_missing_value_tracks_true";
        return Err(other_len(node, name, n, missing.len()));
    }
    let modes = node.attributes.strings("nodes_modes")?;
    let modes = modes.ok_or_else(|| node.attributes.missing("nodes_modes"))?;
    if modes.len() != n {
        return Err(other_len(node, "nodes_modes", n, modes.len()));
    }
    let (values, wide_values) = numbers(node, "nodes_values")?;
    if values.len() != n {
        return Err(other_len(node, "nodes_values", n, values.len()));
    }
    let LeafTable {
        leaves_at,
        leaves,
        is_wide: wide_weights,
    } = leaves(node, votes, &names, &modes)?;

    // What each node becomes: leaves are numbered, and so are the others.
    let mut places: HashMap<(i64, i64), Branch> = HashMap::with_capacity(n);
    let mut roots: Vec<Branch> = Vec::new();
    let mut n_inner = 0;
    let mut seen_trees: HashSet<i64> = HashSet::new();
    for (index, leaf) in leaves_at.iter().copied().enumerate() {
        let branch = match leaf {
            Some(leaf) => Branch::Leaf(leaf),
            None => Branch::Node(n_inner),
        };
        n_inner += usize::from(leaf.is_none());
        let (tree, number) = names.get(index);
        if places.insert((tree, number), branch).is_some() {
            let message = format_args!("node {number} of tree {tree} is there twice");
            return Err(node.error(message));
        }
        // The first node of a tree is its root.
        if seen_trees.insert(tree) {
            roots.push(branch);
        }
    }
    let mut nodes = Vec::with_capacity(n_inner);
    for index in (0..n).filter(|index| leaves_at[*index].is_none()) {
        let tree = names.trees[index];
        let branch = |number: i64| {
            let place = places.get(&(tree, number)).copied();
            place.ok_or_else(|| {
                node.error(format_args!(
                    "node {} of tree {tree} leads to node {number}, which is not there",
                    names.nodes[index]
                ))
            })
        };
        nodes.push(TreeNode {
            feature: usize::try_from(features[index])
                .map_err(|_| node.error(format_args!("there is no feature {}", features[index])))?,
            question: question(node, modes[index], values[index])?,
            missing_is_yes: missing.get(index).is_some_and(|flag| *flag == 1),
            yes: branch(yes[index])?,
            no: branch(no[index])?,
        });
    }
    let trees = Trees::new(nodes, leaves, roots, n_targets, aggregate(node)?);
    let trees = trees.map_err(|error| node.with_name(&error))?;
    Ok((trees, wide_values || wide_weights))
}

fn question(node: &NodeCall<'_>, mode: &[u8], value: f64) -> Result<Question<f64>, Error> {
    Ok(match mode {
        b"BRANCH_LEQ" => Question::AtMost(value),
        b"BRANCH_LT" => Question::Less(value),
        b"BRANCH_GTE" => Question::AtLeast(value),
        b"BRANCH_GT" => Question::Greater(value),
        b"BRANCH_EQ" => Question::Equal(value),
        b"BRANCH_NEQ" => Question::NotEqual(value),
        other => {
            let mode = other.escape_ascii();
            let message = format_args!("has no meaning for '{mode}'");
            return Err(node.attributes.error("nodes_modes", message));
        }
    })
}

fn aggregate(node: &NodeCall<'_>) -> Result<Aggregate, Error> {
    match node.attributes.string_or("aggregate_function", "SUM")? {
        "SUM" => Ok(Aggregate::Sum),
        "AVERAGE" => Ok(Aggregate::Average),
        "MIN" => Ok(Aggregate::Least),
        "MAX" => Ok(Aggregate::Greatest),
        other => Err(node.attributes.error(
            "aggregate_function",
            format_args!("has no meaning for '{}'", other.escape_debug()),
        )),
    }
}

/// The leaves of all trees.
struct LeafTable {
    /// The leaf that each node is, if it is one.
    leaves_at: Vec<Option<usize>>,
    leaves: Leaves<f64>,
    /// Whether votes need more than `f32`.
    is_wide: bool,
}

fn leaves(
    node: &NodeCall<'_>,
    votes: &str,
    names: &NodeIds<'_>,
    modes: &[&[u8]],
) -> Result<LeafTable, Error> {
    let name = |what: &str| format!("{votes}_{what}");
    let (weights, is_wide) = numbers(node, &name("weights"))?;
    let integers = |what: &str| {
        let list = node.attributes.integers(&name(what))?.unwrap_or(&[]);
        match list.len() == weights.len() {
            true => Ok(list),
            false => Err(other_len(node, &name(what), weights.len(), list.len())),
        }
    };
    let (targets, of_trees, of_nodes) =
        (integers("ids")?, integers("treeids")?, integers("nodeids")?);
    let mut index_of: HashMap<(i64, i64), usize> = HashMap::with_capacity(modes.len());
    for index in 0..modes.len() {
        index_of.entry(names.get(index)).or_insert(index);
    }
    // The votes of a node, in the order of the attributes.
    let mut by_node: Vec<(usize, usize)> = Vec::with_capacity(weights.len());
    for (place, (tree, number)) in of_trees.iter().zip(of_nodes).enumerate() {
        let Some(index) = index_of.get(&(*tree, *number)) else {
            let message = format_args!("node {number} of tree {tree} votes, but is not there");
            return Err(node.error(message));
        };
        by_node.push((*index, place));
    }
    by_node.sort_unstable();
    let mut leaves = Leaves::new();
    let mut by_node = by_node.into_iter().peekable();
    let mut at = Vec::with_capacity(modes.len());
    for (index, mode) in modes.iter().enumerate() {
        let mut own = Vec::new();
        while let Some((_, place)) = by_node.next_if(|(of, _)| *of == index) {
            own.push(Vote {
                target: usize::try_from(targets[place]).unwrap_or(usize::MAX),
                weight: weights[place],
            });
        }
        // What is no leaf has no say.
        if *mode == b"LEAF" {
            at.push(Some(leaves.len()));
            leaves.push(own);
        } else {
            at.push(None);
        }
    }
    Ok(LeafTable {
        leaves_at: at,
        leaves,
        is_wide,
    })
}
