//! `MoE`: a mixture of experts, each two layers, of which the best few for a row are asked.
//!
//! All experts are asked of all rows, and those that are not chosen get the weight 0: that takes longer than to ask the chosen
//! ones alone, and gives the same.

use tfrt_ir::{Attribute, ValueId};

use super::expansion::integer;
use super::{Expansion, Made, Refusal, wrong};

pub(super) fn mixture(here: &mut Expansion<'_>) -> Made {
    here.refuse(&[], &["use_sparse_mixer", "swiglu_limit_after_activation"])?;
    let x = here.needed(0, "input")?;
    let extents = here.add("Shape", &[x], &[]);
    let width = here.extents(x, -1, i64::MAX);
    let rest = here.integers(&[-1]);
    let flat = here.list(&[rest, width]);
    let rows = here.add("Reshape", &[x, flat], &[]);
    let first = layer(here, rows, 2)?;
    let inner = match here.input(6) {
        Some(_) => Some(layer(here, rows, 6)?),
        None => None,
    };
    let inner = activated(here, first, inner)?;
    let second = layer(here, inner, 4)?;
    let weights = weights(here)?;
    let weights = here.transposed(weights, &[1, 0]);
    let weights = here.unsqueezed(weights, &[2]);
    let parts = here.add("Mul", &[second, weights], &[]);
    let axes = here.integers(&[0]);
    let y = here.add("ReduceSum", &[parts, axes], &[("keepdims", integer(0))]);
    Ok(vec![Some(here.add("Reshape", &[y, extents], &[]))])
}

/// Appends a layer of each expert: products with the matrices at an index, plus the bias behind it.
fn layer(here: &mut Expansion<'_>, x: ValueId, index: usize) -> Result<ValueId, Refusal> {
    let matrices = here.needed(index, "experts_weights")?;
    let y = here.row("dot", &[x, matrices], &[("transpose_b", integer(1))]);
    let bias = here
        .input(index + 1)
        .map(|bias| here.unsqueezed(bias, &[1]));
    Ok(here.sum(y, &[bias]))
}

/// Appends what is between the layers: the activation, times a second product if there is one.
fn activated(
    here: &mut Expansion<'_>,
    x: ValueId,
    other: Option<ValueId>,
) -> Result<ValueId, Refusal> {
    let kind = here.text("activation_type");
    if kind == "swiglu" {
        return gated(here, x, other);
    }
    let y = match &*kind {
        "" | "relu" => here.add("Relu", &[x], &[]),
        "gelu" => here.add("Gelu", &[x], &[("approximate", Attribute::string("tanh"))]),
        "silu" => here.add("Swish", &[x], &[]),
        "identity" => x,
        other => {
            return Err(wrong(format!(
                "attribute 'activation_type' is no known one, found '{other}'"
            )));
        }
    };
    Ok(match other {
        Some(other) => here.add("Mul", &[y, other], &[]),
        None => y,
    })
}

/// Appends `gate * sigmoid(alpha * gate) * (linear + beta)`, of parts that lie side by side, in turn or one behind the other.
fn gated(here: &mut Expansion<'_>, x: ValueId, other: Option<ValueId>) -> Result<ValueId, Refusal> {
    let [mut gate, mut linear] = match (here.int("swiglu_fusion", 0), other) {
        (0, Some(other)) => [x, other],
        (1, None) => {
            let pairs = here.reshaped(x, &[0, 0, -1, 2]);
            [here.picked(pairs, 3, 0), here.picked(pairs, 3, 1)]
        }
        (2, None) => {
            let halves = [("axis", integer(-1)), ("n", integer(2))];
            let parts = here.rows("split", &[x], &halves, 2);
            [parts[0], parts[1]]
        }
        (fusion, _) => {
            return Err(wrong(format!(
                "attribute 'swiglu_fusion' does not fit the operands, found {fusion}"
            )));
        }
    };
    if here.has("swiglu_limit") {
        let limit = here.float("swiglu_limit", 0.0);
        let (most, least) = (here.number(limit, x), here.number(-limit, x));
        gate = here.add("Min", &[gate, most], &[]);
        linear = here.add("Clip", &[linear, least, most], &[]);
    }
    let alpha = super::pointwise::float(here.float("activation_alpha", 1.0));
    let gate = here.add("Swish", &[gate], &[("alpha", alpha)]);
    let beta = here.float("activation_beta", 0.0);
    let beta = here.number(beta, x);
    let linear = here.add("Add", &[linear, beta], &[]);
    Ok(here.add("Mul", &[gate, linear], &[]))
}

/// Appends the weight of each expert for each row: that of the best ones, 0 of others.
fn weights(here: &mut Expansion<'_>) -> Result<ValueId, Refusal> {
    let scores = here.needed(1, "router_probs")?;
    let all = here.add("Softmax", &[scores], &[("axis", integer(-1))]);
    let k = here.int("k", 1);
    if let Some(n) = here.last_extent(scores).filter(|n| k < 1 || k > *n) {
        return Err(wrong(format!(
            "attribute 'k' is expected to be 1 to {n}, found {k}"
        )));
    }
    let k = here.integers(&[k]);
    let best = here.rows("top_k", &[all, k], &[], 2);
    let mut values = best[0];
    if here.int("normalize_routing_weights", 0) != 0 {
        let axes = here.integers(&[-1]);
        let sum = here.add("ReduceSum", &[values, axes], &[]);
        values = here.add("Div", &[values, sum], &[]);
    }
    let zeros = here.add("Sub", &[all, all], &[]);
    let axis = [("axis", integer(-1))];
    Ok(here.add("ScatterElements", &[zeros, best[1], values], &axis))
}
