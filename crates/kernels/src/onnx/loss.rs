//! Losses of classification.

use tfrt_host::Error;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{DenseHostTensor, Dims};

use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.NegativeLogLikelihoodLoss", |node| {
        let x = node.inputs.dense(0)?;
        Ok(Outputs::from(likelihood(
            node,
            x,
            &logarithms(node, x, false)?,
        )?))
    }),
    ("onnx.SoftmaxCrossEntropyLoss", |node| {
        let x = node.inputs.dense(0)?;
        let logarithms = logarithms(node, x, true)?;
        let outputs = Outputs::from(likelihood(node, x, &logarithms)?);
        match node.n_results {
            0 | 1 => Ok(outputs),
            _ => Ok(outputs.and_tensor(narrowed(node, x, &x.shape().to_dims(), &logarithms)?)),
        }
    }),
];

/// Returns log-probabilities: the operand itself, or its log-softmax over the classes.
fn logarithms(
    node: &NodeCall<'_>,
    x: &DenseHostTensor,
    is_softmax: bool,
) -> Result<Vec<f64>, Error> {
    let mut numbers = node.inputs.numbers(0)?;
    let extents = x.shape().to_dims();
    let [_, n_classes, spatial @ ..] = &extents[..] else {
        return Err(node.inputs.error(
            0,
            format_args!("is expected to be [batch, classes, ..], found {extents:?}"),
        ));
    };
    if !is_softmax || numbers.is_empty() {
        return Ok(numbers);
    }
    let stride: usize = spatial.iter().product();
    for image in numbers.chunks_mut(n_classes * stride) {
        for place in 0..stride {
            let classes = || (place..n_classes * stride).step_by(stride);
            let largest = classes()
                .map(|index| image[index])
                .fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = classes().map(|index| (image[index] - largest).exp()).sum();
            let logarithm = largest + sum.ln();
            classes().for_each(|index| image[index] -= logarithm);
        }
    }
    Ok(numbers)
}

/// Makes a tensor of numbers, of the type of `x`.
fn narrowed(
    node: &NodeCall<'_>,
    x: &DenseHostTensor,
    extents: &[usize],
    numbers: &[f64],
) -> Result<DenseHostTensor, Error> {
    let dtype = x.dtype();
    with_floating!(dtype, T => {
        let narrow: Vec<T> = numbers.iter().map(|one| T::from_f64(*one)).collect();
        node.tensor_of(extents, &narrow)
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// Calculates the negative log-likelihood of the classes in operand 1, weighted by operand 2; of each element, their
/// sum, or their weighted mean.
fn likelihood(
    node: &NodeCall<'_>,
    x: &DenseHostTensor,
    logarithms: &[f64],
) -> Result<DenseHostTensor, Error> {
    let extents = x.shape().to_dims();
    let (n_classes, stride) = (
        extents[1],
        extents[2..]
            .iter()
            .fold(1_usize, |n, e| n.saturating_mul(*e)),
    );
    let targets = node.inputs.integers(1)?;
    let mut wanted = extents.clone();
    wanted.remove(1);
    let found: Dims = node.inputs.dense(1)?.shape().to_dims();
    if found != wanted {
        return Err(node.inputs.error(
            1,
            format_args!("is expected to have extents {wanted:?}, found {found:?}"),
        ));
    }
    let weights = match node.inputs.has(2) {
        true => Some(node.inputs.numbers(2)?),
        false => None,
    };
    if let Some(weights) = &weights
        && weights.len() != n_classes
    {
        let found = weights.len();
        return Err(node.inputs.error(
            2,
            format_args!("is expected to have {n_classes} elements, found {found}"),
        ));
    }
    let ignored = node.attributes.integer("ignore_index")?;
    let (mut losses, mut total) = (Vec::with_capacity(targets.len()), 0.0);
    for (index, target) in targets.iter().enumerate() {
        if Some(*target) == ignored {
            losses.push(0.0);
            continue;
        }
        let class = usize::try_from(*target)
            .ok()
            .filter(|class| *class < n_classes);
        let class = class.ok_or_else(|| {
            node.inputs
                .error(1, format_args!("has no class of {n_classes}: {target}"))
        })?;
        let weight = weights.as_ref().map_or(1.0, |weights| weights[class]);
        let (image, place) = (index / stride, index % stride);
        losses.push(-logarithms[(image * n_classes + class) * stride + place] * weight);
        total += weight;
    }
    let sum = || losses.iter().sum::<f64>();
    match node.attributes.string_or("reduction", "mean")? {
        "none" => narrowed(node, x, &wanted, &losses),
        "sum" => narrowed(node, x, &[], &[sum()]),
        "mean" => narrowed(node, x, &[], &[sum() / total]),
        other => {
            let other = other.escape_debug();
            let message =
                format_args!("is expected to be 'none', 'sum' or 'mean', found '{other}'");
            Err(node.attributes.error("reduction", message))
        }
    }
}
