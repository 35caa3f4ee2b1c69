//! The domain `ai.onnx.ml`: labels, limits, decision trees.

use std::collections::HashMap;

use tfrt_host::Error;
use tfrt_tensor::math::number::{Floating, Number, Real};
use tfrt_tensor::math::parallel;
use tfrt_tensor::math::trees::{Aggregate, Branch, Leaf, Node as TreeNode, Question, Trees};
use tfrt_tensor::{DType, Element, StringHostTensor, Tensor};

use super::dispatch::{to_f64, with_floating, with_real};
use super::{Node, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("ml.Binarizer", binarizer),
    ("ml.LabelEncoder", label_encoder),
    ("ml.TreeEnsemble", tree_ensemble),
];

/// `ml.Binarizer(x)`, attribute `threshold`: 1 where the element is above it, else 0.
fn binarizer(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let threshold = f64::from(node.attributes.float_or("threshold", 0.0)?);
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = with_real!(x.dtype(), T => {
        let from = x.clone();
        parallel::fill::<T>(node.execution, &out, parallel::chunk_len(2, 1), move |first, part| {
            let reading = from.read()?;
            let from = &reading.elements::<T>()?[first..first + part.len()];
            for (out, x) in part.iter_mut().zip(from) {
                *out = if x.to_f64() > threshold { T::ONE } else { T::ZERO };
            }
            Ok(())
        })?
    }, else return Err(node.inputs.unsupported(0, x.dtype())));
    Ok(Outputs::later(out, chain))
}

/// What labels are compared by: bytes of a string, bits of a number, all of what is no number alike.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Text(Vec<u8>),
    Integer(i64),
    Bits(u64),
}

impl Key {
    fn of_float(value: f64) -> Key {
        Key::Bits(match value {
            _ if value.is_nan() => f64::NAN.to_bits(),
            // Both zeros are the same.
            _ if value == 0.0 => 0,
            _ => value.to_bits(),
        })
    }

    /// The keys of a tensor's elements.
    fn of(tensor: &Tensor) -> Result<Vec<Key>, Error> {
        if let Tensor::String(strings) = tensor {
            return Ok(strings.strings().iter().cloned().map(Key::Text).collect());
        }
        let dense = tensor.as_dense()?;
        let reading = dense.read()?;
        match dense.dtype() {
            DType::I64 => Ok(reading
                .elements::<i64>()?
                .iter()
                .copied()
                .map(Key::Integer)
                .collect()),
            DType::Ui64 => {
                let elements = reading.elements::<u64>()?.iter();
                Ok(elements
                    .map(|one| Key::Integer(one.cast_signed()))
                    .collect())
            }
            dtype if dtype.is_integer() => {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "integers of 32 bits or fewer"
                )]
                let keys = to_f64(dense)?
                    .into_iter()
                    .map(|one| Key::Integer(one as i64));
                Ok(keys.collect())
            }
            _ => Ok(to_f64(dense)?.into_iter().map(Key::of_float).collect()),
        }
    }
}

/// `ml.LabelEncoder(x)`, attributes `keys_TYPE`, `values_TYPE`, `default_TYPE`, where `TYPE` is `floats`, `int64s`,
/// `strings` or `tensor` (`default_float`, `default_int64`, `default_string`): the value of each key.
fn label_encoder(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let keys =
        list(node, "keys")?.ok_or_else(|| node.error("expected keys, which are left out"))?;
    let values =
        list(node, "values")?.ok_or_else(|| node.error("expected values, which are left out"))?;
    let n_values = super::carried::count(&values.metadata().shape.to_dims());
    let keys = Key::of(&keys)?;
    if keys.len() != n_values {
        let n_keys = keys.len();
        return Err(node.error(format_args!(
            "expected as many keys as values, found {n_keys} and {n_values}"
        )));
    }
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (place, key) in keys.into_iter().enumerate() {
        // The last of equal keys counts.
        places.insert(key, place);
    }
    let found: Vec<Option<usize>> = Key::of(x)?
        .iter()
        .map(|key| places.get(key).copied())
        .collect();
    let shape = x.metadata().shape.clone();
    let default = default(node, values.metadata().dtype)?;
    match (&values, &default) {
        (Tensor::String(values), Tensor::String(default)) => {
            let string = |place: &Option<usize>| match place {
                Some(place) => values.strings()[*place].clone(),
                None => default.strings().first().cloned().unwrap_or_default(),
            };
            Ok(StringHostTensor::new(shape, found.iter().map(string).collect())?.into())
        }
        _ => {
            let (values, default) = (values.as_dense()?, default.as_dense()?);
            let out = node.output(values.dtype(), &shape.to_dims())?;
            let size = values.dtype().size_bytes().unwrap_or(1);
            if default.dtype() != values.dtype() || default.n_elements() != 1 {
                let (wanted, found) = (values.dtype(), default.metadata());
                return Err(node.error(format_args!(
                    "expected one default of {wanted}, found {found}"
                )));
            }
            {
                let (values, default, mut writing) =
                    (values.read()?, default.read()?, out.write()?);
                let places = writing.bytes_mut().chunks_exact_mut(size).zip(&found);
                for (out, place) in places {
                    out.copy_from_slice(match place {
                        Some(place) => &values.bytes()[place * size..(place + 1) * size],
                        None => default.bytes(),
                    });
                }
            }
            Ok(out.into())
        }
    }
}

/// The attribute of `keys` or `values`, whichever type it has.
fn list(node: &Node<'_>, what: &str) -> Result<Option<Tensor>, Error> {
    let name = |kind: &str| format!("{what}_{kind}");
    if let Some(list) = node.attributes.strings(&name("strings"))? {
        return strings(list).map(Some);
    }
    if let Some(list) = node.attributes.integers(&name("int64s"))? {
        return Ok(Some(node.tensor_of(&[list.len()], list)?.into()));
    }
    if let Some(list) = node.attributes.floats(&name("floats"))? {
        return Ok(Some(node.tensor_of(&[list.len()], list)?.into()));
    }
    node.attributes
        .tensor(&name("tensor"), node.execution.host().allocator())
}

fn strings(list: Vec<&[u8]>) -> Result<Tensor, Error> {
    let shape = tfrt_tensor::TensorShape::new(&[list.len()])?;
    let strings = list.into_iter().map(<[u8]>::to_vec).collect();
    Ok(StringHostTensor::new(shape, strings)?.into())
}

/// The value of what is no key.
fn default(node: &Node<'_>, dtype: DType) -> Result<Tensor, Error> {
    let allocator = node.execution.host().allocator();
    if let Some(tensor) = node.attributes.tensor("default_tensor", allocator)? {
        return Ok(tensor);
    }
    match dtype {
        DType::String => strings(vec![
            node.attributes
                .string_or("default_string", "_Unused")?
                .as_bytes(),
        ]),
        DType::I64 => Ok(node
            .tensor_of(&[], &[node.attributes.integer_or("default_int64", -1)?])?
            .into()),
        DType::F32 => Ok(node
            .tensor_of(&[], &[node.attributes.float_or("default_float", -0.0)?])?
            .into()),
        other => Err(node.error(format_args!(
            "expected a default of {other}, which is left out"
        ))),
    }
}

/// `ml.TreeEnsemble(x)`, `x: [n, features]`: the results of trees for each row; what is left out of the attributes is as
/// the definition has it.
fn tree_ensemble(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let &[n_rows, n_features] = &node.inputs.extents(0, 2)?[..] else {
        unreachable!("there are two extents");
    };
    with_floating!(x.dtype(), T => {
        let trees = trees::<T>(node)?;
        if trees.n_features() > n_features {
            let message = format_args!("is expected to have {} features, found {n_features}", trees.n_features());
            return Err(node.inputs.error(0, message));
        }
        let transform = Transform::of(node)?;
        let n_targets = trees.n_targets();
        let out = node.output(x.dtype(), &[n_rows, n_targets])?;
        let x = x.clone();
        let chunk = parallel::chunk_len(trees.n_trees().saturating_mul(16), n_targets);
        let chain = parallel::fill::<T>(node.execution, &out, chunk, move |first, part| {
            let reading = x.read()?;
            let rows = reading.elements::<T>()?.chunks_exact(n_features.max(1)).skip(first / n_targets.max(1));
            for (out, row) in part.chunks_exact_mut(n_targets).zip(rows) {
                trees.run(row, out);
                transform.apply(out);
            }
            Ok(())
        })?;
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, x.dtype())))
}

fn trees<T: Floating>(node: &Node<'_>) -> Result<Trees<T>, Error> {
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
    let mut members = Members::new(numbers("membership_values")?.unwrap_or_default());
    let mut nodes = Vec::with_capacity(n);
    for index in 0..n {
        let feature = usize::try_from(features[index])
            .ok()
            .filter(|feature| *feature < usize::MAX);
        let limit = T::from_f64(splits[index]);
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
    let leaf = |(target, weight): (&i64, &f64)| Leaf {
        target: usize::try_from(*target).unwrap_or(usize::MAX),
        weight: T::from_f64(*weight),
    };
    let leaves = targets.iter().zip(&weights).map(leaf).collect();
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
    Trees::new(nodes, leaves, roots, n_targets, aggregate)
        .map_err(|error| node.error(error.message()))
}

/// A root both of whose branches are one leaf is that leaf.
fn root_of<T>(nodes: &[TreeNode<T>], root: Branch) -> Result<Branch, Error> {
    let Branch::Node(index) = root else {
        return Ok(root);
    };
    match nodes.get(index) {
        Some(node) if node.yes == node.no && matches!(node.yes, Branch::Leaf(_)) => Ok(node.yes),
        _ => Ok(root),
    }
}

/// Lists of members, one after the other, each ended by what is no number.
struct Members {
    values: std::vec::IntoIter<f64>,
}

impl Members {
    fn new(values: Vec<f64>) -> Members {
        Members {
            values: values.into_iter(),
        }
    }

    fn next_set<T: Real>(&mut self) -> Option<Vec<T>> {
        if self.values.as_slice().is_empty() {
            return None;
        }
        let set = self.values.by_ref().take_while(|value| !value.is_nan());
        Some(set.map(T::from_f64).collect())
    }
}

/// What becomes of a row of results.
#[derive(Clone, Copy)]
enum Transform {
    Nothing,
    Softmax,
    Logistic,
    /// Of what is not 0, which stays so.
    SoftmaxOfOthers,
    Probit,
}

impl Transform {
    fn of(node: &Node<'_>) -> Result<Transform, Error> {
        match node.attributes.integer_or("post_transform", 0)? {
            0 => Ok(Transform::Nothing),
            1 => Ok(Transform::Softmax),
            2 => Ok(Transform::Logistic),
            3 => Ok(Transform::SoftmaxOfOthers),
            4 => Ok(Transform::Probit),
            other => Err(node
                .attributes
                .error("post_transform", format_args!("has no meaning for {other}"))),
        }
    }

    fn apply<T: Floating>(self, row: &mut [T]) {
        match self {
            Transform::Nothing => {}
            Transform::Softmax => softmax(row, |_| true),
            Transform::SoftmaxOfOthers => softmax(row, |x| x.abs() > 1e-7),
            Transform::Logistic => {
                row.iter_mut()
                    .for_each(|x| *x = T::from_f64(1.0 / (1.0 + (-x.to_f64()).exp())));
            }
            Transform::Probit => row
                .iter_mut()
                .for_each(|x| *x = T::from_f64(probit(x.to_f64()))),
        }
    }
}

fn softmax<T: Floating>(row: &mut [T], is_in: impl Fn(f64) -> bool) {
    let most = row
        .iter()
        .map(|x| x.to_f64())
        .fold(f64::NEG_INFINITY, f64::max);
    let power = |x: &T| {
        if is_in(x.to_f64()) {
            (x.to_f64() - most).exp()
        } else {
            0.0
        }
    };
    let powers: Vec<f64> = row.iter().map(power).collect();
    let sum: f64 = powers.iter().sum();
    for (x, power) in row.iter_mut().zip(powers) {
        *x = T::from_f64(if sum > 0.0 { power / sum } else { 0.0 });
    }
}

/// The number below which a normal variable is this likely, by Winitzki's approximation of the inverse error function.
fn probit(likely: f64) -> f64 {
    const A: f64 = 0.147;
    let x = 2.0 * likely - 1.0;
    let logarithm = (1.0 - x * x).ln();
    let half = 2.0 / (std::f64::consts::PI * A) + logarithm / 2.0;
    let root = ((half * half - logarithm / A).sqrt() - half).sqrt();
    std::f64::consts::SQRT_2 * x.signum() * root
}
