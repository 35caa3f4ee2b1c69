//! Steps of optimizers: operands are a rate, a count, then tensors of weights, as many gradients, and as many tensors
//! of each state; results are weights and states.

use tfrt_host::Error;
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::number::Real;

use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.training.Adagrad", adagrad),
    ("onnx.training.Adam", adam),
    ("onnx.training.Momentum", momentum),
];

/// Steps all weights: `function` maps an element, its gradient and its states to the new element and states.
fn step<const STATES: usize>(
    node: &NodeCall<'_>,
    function: impl Fn(f64, f64, [f64; STATES]) -> (f64, [f64; STATES]),
) -> Result<Outputs, Error> {
    let n_kinds = STATES + 2;
    let n = node.inputs.len().saturating_sub(2) / n_kinds;
    if node.inputs.len() != n * n_kinds + 2 || n == 0 {
        let found = node.inputs.len();
        return Err(node.error(format_args!(
            "expected a rate, a count and {n_kinds} lists of tensors, found {found} operands"
        )));
    }
    let mut results: Vec<Vec<DenseHostTensor>> = vec![Vec::new(); STATES + 1];
    for index in 0..n {
        let at = |kind: usize| 2 + kind * n + index;
        let weights = node.inputs.dense(at(0))?;
        let extents = weights.shape().to_dims();
        for kind in 1..n_kinds {
            if node.inputs.dense(at(kind))?.shape() != weights.shape() {
                return Err(node.inputs.error(
                    at(kind),
                    format_args!("is expected to have extents {extents:?}"),
                ));
            }
        }
        let (mut x, gradients) = (node.inputs.numbers(at(0))?, node.inputs.numbers(at(1))?);
        let mut states: Vec<Vec<f64>> = (2..n_kinds)
            .map(|kind| node.inputs.numbers(at(kind)))
            .collect::<Result<_, _>>()?;
        for (element, x) in x.iter_mut().enumerate() {
            let own = std::array::from_fn(|state| states[state][element]);
            let (moved, own) = function(*x, gradients[element], own);
            *x = moved;
            states
                .iter_mut()
                .zip(own)
                .for_each(|(list, own)| list[element] = own);
        }
        for (list, (numbers, results)) in std::iter::once(&x)
            .chain(&states)
            .zip(&mut results)
            .enumerate()
        {
            let kind = if list == 0 { 0 } else { list + 1 };
            let dtype = node.inputs.dense(at(kind))?.dtype();
            results.push(with_floating!(dtype, T => {
                let narrow: Vec<T> = numbers.iter().map(|one| T::from_f64(*one)).collect();
                node.tensor_of(&extents, &narrow)?
            }, else return Err(node.inputs.unsupported(at(kind), dtype))));
        }
    }
    let all = results.into_iter().flatten();
    Ok(all.fold(Outputs::new(), |outputs, tensor| outputs.and_tensor(tensor)))
}

fn attribute(node: &NodeCall<'_>, name: &str, default: f32) -> Result<f64, Error> {
    Ok(node.attributes.float_or(name, default)?.into())
}

/// Adagrad (Duchi and others, 2011)
fn adagrad(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (rate, count) = (node.inputs.number(0)?, node.inputs.number(1)?);
    let norm = attribute(node, "norm_coefficient", 0.0)?;
    let epsilon = attribute(node, "epsilon", 0.0)?;
    let rate = rate / (1.0 + count * attribute(node, "decay_factor", 0.0)?);
    step::<1>(node, |x, gradient, [squares]| {
        let gradient = norm * x + gradient;
        let squares = squares + gradient * gradient;
        (x - rate * gradient / (squares.sqrt() + epsilon), [squares])
    })
}

/// Adam (Kingma and Ba, 2015)
fn adam(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (rate, count) = (node.inputs.number(0)?, node.inputs.number(1)?);
    let (alpha, beta) = (
        attribute(node, "alpha", 0.9)?,
        attribute(node, "beta", 0.999)?,
    );
    let norm = attribute(node, "norm_coefficient", 0.0)?;
    let norm_after = attribute(node, "norm_coefficient_post", 0.0)?;
    let epsilon = attribute(node, "epsilon", 0.0)?;
    let rate = match count > 0.0 {
        true => rate * (1.0 - beta.powf(count)).sqrt() / (1.0 - alpha.powf(count)),
        false => rate,
    };
    step::<2>(node, |x, gradient, [mean, squares]| {
        let gradient = norm * x + gradient;
        let mean = alpha * mean + (1.0 - alpha) * gradient;
        let squares = beta * squares + (1.0 - beta) * gradient * gradient;
        let moved = x - rate * mean / (squares.sqrt() + epsilon);
        ((1.0 - norm_after) * moved, [mean, squares])
    })
}

/// Momentum, of the plain kind or Nesterov's
fn momentum(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (rate, count) = (node.inputs.number(0)?, node.inputs.number(1)?);
    let norm = attribute(node, "norm_coefficient", 0.0)?;
    let (alpha, beta) = (
        attribute(node, "alpha", 0.0)?,
        attribute(node, "beta", 0.0)?,
    );
    let is_nesterov = match node.attributes.string_or("mode", "standard")? {
        "standard" => false,
        "nesterov" => true,
        other => {
            let message = format_args!("is not recognized: '{}'", other.escape_debug());
            return Err(node.attributes.error("mode", message));
        }
    };
    // The first gradient counts in full.
    let beta = if count > 0.0 { beta } else { 1.0 };
    step::<1>(node, |x, gradient, [speed]| {
        let gradient = norm * x + gradient;
        let speed = alpha * speed + beta * gradient;
        let moved = if is_nesterov {
            gradient + alpha * speed
        } else {
            speed
        };
        (x - rate * moved, [speed])
    })
}
