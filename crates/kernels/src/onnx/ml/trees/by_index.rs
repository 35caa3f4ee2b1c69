//! Trees of `TreeEnsemble`, whose nodes and leaves are identified by their positions.

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::trees::{
    Aggregate, Branch, Leaves, Node as TreeNode, Question, Trees, Vote,
};

use super::super::super::NodeCall;
use super::super::super::dispatch::to_f64;

/// Reads the trees, and whether their numbers need more than `f32`.
pub(super) fn trees(node: &NodeCall<'_>) -> Result<(Trees<f64>, bool), Error> {
    let integers = |name| {
        let list = node.attributes.integers(name)?;
        list.ok_or_else(|| node.attributes.missing(name))
    };
    let numbers = |name| -> Result<Option<Vec<f64>>, Error> {
        let tensor = node
            .attributes
            .tensor(name, node.execution.host().allocator())?;
        tensor.map(|tensor| to_f64(tensor.as_dense()?)).transpose()
    };
    let needed = |name| numbers(name)?.ok_or_else(|| node.attributes.missing(name));
    let features = integers("nodes_featureids")?;
    let (modes, splits) = (needed("nodes_modes")?, needed("nodes_splits")?);
    let (yes, no) = (
        integers("nodes_truenodeids")?,
        integers("nodes_falsenodeids")?,
    );
    let (yes_leaf, no_leaf) = (integers("nodes_trueleafs")?, integers("nodes_falseleafs")?);
    let missing = node
        .attributes
        .integers("nodes_missing_value_tracks_true")?
        .unwrap_or(&[]);
    let n = features.len();
    let lens = [
        modes.len(),
        splits.len(),
        yes.len(),
        no.len(),
        yes_leaf.len(),
        no_leaf.len(),
    ];
    if lens.iter().any(|len| *len != n) || (!missing.is_empty() && missing.len() != n) {
        return Err(node.error(format_args!(
            "expected attributes of {n} nodes, found {lens:?}"
        )));
    }
    let branch = |id: i64, is_leaf: i64| match usize::try_from(id) {
        Ok(index) if is_leaf != 0 => Ok(Branch::Leaf(index)),
        Ok(index) => Ok(Branch::Node(index)),
        Err(_) => Err(node.error(format_args!("a branch leads to number {id}"))),
    };
    let mut members = MemberSets::new(numbers("membership_values")?.unwrap_or_default());
    let mut nodes = Vec::with_capacity(n);
    for index in 0..n {
        let feature = usize::try_from(features[index])
            .ok()
            .filter(|feature| *feature < usize::MAX);
        let limit = splits[index];
        nodes.push(TreeNode {
            feature: feature.ok_or_else(|| {
                node.error(format_args!("there is no feature {}", features[index]))
            })?,
            question: match modes[index] {
                0.0 => Question::AtMost(limit),
                1.0 => Question::Less(limit),
                2.0 => Question::AtLeast(limit),
                3.0 => Question::Greater(limit),
                4.0 => Question::Equal(limit),
                5.0 => Question::NotEqual(limit),
                6.0 => Question::OneOf(members.next_set().ok_or_else(|| {
                    node.attributes.error(
                        "membership_values",
                        "has not a list for each node that needs one",
                    )
                })?),
                other => return Err(node.error(format_args!("there is no mode {other}"))),
            },
            missing_is_yes: missing.get(index).is_some_and(|flag| *flag != 0),
            yes: branch(yes[index], yes_leaf[index])?,
            no: branch(no[index], no_leaf[index])?,
        });
    }
    let (targets, weights) = (integers("leaf_targetids")?, needed("leaf_weights")?);
    if targets.len() != weights.len() {
        let message = format_args!(
            "expected as many targets as weights of leaves, found {} and {}",
            targets.len(),
            weights.len()
        );
        return Err(node.error(message));
    }
    let mut leaves = Leaves::new();
    for (target, weight) in targets.iter().zip(weights) {
        let target = usize::try_from(*target).unwrap_or(usize::MAX);
        leaves.push([Vote { target, weight }]);
    }
    let roots = integers("tree_roots")?
        .iter()
        .map(|root| root_of(&nodes, branch(*root, 0)?));
    let roots = roots.collect::<Result<Vec<_>, Error>>()?;
    let n_targets = node.attributes.size_or("n_targets", 1)?;
    let aggregate = match node.attributes.integer_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Least,
        3 => Aggregate::Greatest,
        other => {
            return Err(node.attributes.error(
                "aggregate_function",
                format_args!("has no meaning for {other}"),
            ));
        }
    };
    let trees = Trees::new(nodes, leaves, roots, n_targets, aggregate);
    let trees = trees.map_err(|error| node.with_name(&error))?;
    let weights = node
        .attributes
        .tensor("leaf_weights", node.execution.host().allocator())?;
    let is_wide = weights.is_some_and(|weights| weights.metadata().dtype == DType::F64);
    Ok((trees, is_wide))
}

/// Returns the root of a tree: a leaf if both branches of the node are that leaf.
fn root_of(nodes: &[TreeNode<f64>], root: Branch) -> Result<Branch, Error> {
    let Branch::Node(index) = root else {
        return Ok(root);
    };
    match nodes.get(index) {
        Some(node) if node.yes == node.no && matches!(node.yes, Branch::Leaf(_)) => Ok(node.yes),
        _ => Ok(root),
    }
}

/// Sets of members, one after the other in a list, each ended by a NaN.
struct MemberSets {
    values: std::vec::IntoIter<f64>,
}

impl MemberSets {
    fn new(values: Vec<f64>) -> MemberSets {
        MemberSets {
            values: values.into_iter(),
        }
    }

    fn next_set(&mut self) -> Option<Vec<f64>> {
        if self.values.as_slice().is_empty() {
            return None;
        }
        let set = self.values.by_ref().take_while(|value| !value.is_nan());
        Some(set.collect())
    }
}
