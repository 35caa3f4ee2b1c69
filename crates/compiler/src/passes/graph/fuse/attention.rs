//! Recognises multi-head attention that exporters write as many operations.
//!
//! ```text
//! q, k, v: [batch, rows, heads, width]  --Transpose--> heads second
//! scores = (q kᵀ) * scale + mask, or (q kᵀ) * scale where the mask is true, else a number
//! softmax(scores) v, of which weights that the mask leaves out may be 0  --Transpose--> [batch, rows, heads, width]
//! ```
//!
//! becomes `cpu.fused.attention`, which takes heads where they lie, and never has all scores. Products may be of transposed
//! factors in the other order, as JAX and Keras write sums of products. Of a query that a mask of minus infinities lets look
//! at no key it makes zeros, where the operations make what is no number; a finite number in the place of scores counts as
//! it does there.

mod layout;

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;
use super::cached_attention::is_no_larger;
use layout::{Heads, is_joined, is_one_batch};

/// Replaces the operations of an attention by its kernel.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match attention(rewrite.module, op) {
            None => rewrite.keep(op),
            Some(found) => replace(&mut rewrite, op, &found),
        }
    }
    rewrite.finish(&old);
}

fn replace(rewrite: &mut Rewrite<'_>, op: OpId, found: &AttentionMatch) {
    let inputs = found
        .inputs
        .each_ref()
        .map(|heads| heads.merged(rewrite, op));
    let mask: Vec<ValueId> = found
        .mask
        .iter()
        .map(|value| rewrite.mapped(*value))
        .collect();
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it was a product of numbers of this type"
    )]
    let scale = found.scale as f32;
    let heads = found.inputs[0].n_heads;
    let state = OpState::new("cpu.fused.attention")
        .operands(inputs.into_iter().chain(mask))
        .attribute("heads", Attribute::integer(heads, Type::I64))
        .attribute("scale", Attribute::f32(scale));
    if node::name(rewrite.module, op) == "reshape" {
        return super::replace(rewrite, op, state);
    }
    // Heads lie apart behind it.
    let [queries, _, values] = &found.inputs;
    let apart = Heads {
        value: rewrite.module.op(op).results()[0],
        ..*values
    };
    let merged = Type::tensor(apart.merged_shape(rewrite.module), Type::F32);
    let merged = rewrite.add(state.result(merged), op);
    let sizes = vec![0, 0, queries.n_heads, values.width];
    let sizes = rewrite.integers(&sizes, op);
    let state = OpState::new("graph.reshape").operands([merged, sizes]);
    super::replace(rewrite, op, state);
}

/// The operands and parameters of an attention that was recognised.
struct AttentionMatch {
    /// Queries, keys and values.
    inputs: [Heads; 3],
    /// A mask that is added; or truth values and the number that takes the place of a score, and the zero that takes the
    /// place of its weight, if it does.
    mask: Vec<ValueId>,
    scale: f64,
}

/// Matches an attention that ends with an operation, which lays heads side by side, or before a user that does.
fn attention(module: &Module, op: OpId) -> Option<AttentionMatch> {
    let result = *module.op(op).results().first()?;
    let (mixed, axes) = match node::name(module, op) {
        "reshape" => Axes::alone(module, node::operand(module, op, 0)?)?,
        "transpose" => {
            let user = node::only_user(module, result);
            if user.is_some_and(|user| is_joined(module, user, result)) {
                return None;
            }
            let (mixed, inner) = Axes::alone(module, node::operand(module, op, 0)?)?;
            (mixed, inner.then(&node::ints(module, op, "perm")?)?)
        }
        _ => return None,
    };
    let [left, right] = product(module, mixed)?;
    // Rows of weights, or columns.
    let (weights, values) = match axes.0 {
        [0, 2, 1, 3] => (Side::row(left), Side::row(right)),
        [0, 3, 1, 2] => (Side::column(right), Side::column(left)),
        _ => return None,
    };
    let (weights, _) =
        Axes::alone(module, weights.value).filter(|(_, axes)| axes.is_matrix(weights.is_turned))?;
    let (weights, zeroed) = unzeroed(module, weights)?;
    let softmax = softmax(module, weights)?;
    let masked = node::operand(module, softmax, 0)?;
    let (scores, scale, mask) = masked_scores(module, masked, zeroed)?;
    let (scores, axes) = Axes::alone(module, scores)?;
    let [left, right] = product(module, scores)?;
    let [queries, keys] = match axes.0 {
        [0, 1, 2, 3] => [Side::row(left), Side::column(right)],
        [0, 1, 3, 2] => [Side::column(right), Side::row(left)],
        _ => return None,
    };
    let (queries, q_scale) = queries.heads(module)?;
    let (keys, k_scale) = keys.heads(module)?;
    let (values, v_scale) = values.heads(module)?;
    let fits = keys.n_heads == queries.n_heads
        && values.n_heads == queries.n_heads
        && keys.width == queries.width
        && v_scale == 1.0
        && is_one_batch(module, [queries.value, keys.value, values.value]);
    let is_end = match node::name(module, op) {
        "reshape" => is_joined(module, op, node::operand(module, op, 0)?),
        _ => true,
    };
    let scale = scale * q_scale * k_scale;
    (fits && is_end && scale.is_finite()).then_some(AttentionMatch {
        inputs: [queries, keys, values],
        mask,
        scale,
    })
}

/// A factor of a product of matrices.
#[derive(Clone, Copy)]
struct Side {
    value: ValueId,
    /// Whether its last two dimensions are exchanged.
    is_turned: bool,
}

impl Side {
    fn row(value: ValueId) -> Side {
        Side {
            value,
            is_turned: false,
        }
    }

    fn column(value: ValueId) -> Side {
        Side {
            value,
            is_turned: true,
        }
    }

    /// Returns the heads that a factor is made of by transposition, and the number that they are multiplied by.
    fn heads(self, module: &Module) -> Option<(Heads, f64)> {
        let (mut value, mut factor) = (self.value, 1.0);
        let mut axes = Axes::SAME;
        // A number before or behind a transposition.
        for _ in 0..4 {
            let (inner, number) = unscaled(module, value);
            (value, factor) = (inner, factor * number);
            let Some(op) = transposition(module, value) else {
                break;
            };
            let perm = node::ints(module, op, "perm")?;
            (value, axes) = (
                node::operand(module, op, 0)?,
                Axes::of(&perm)?.then(&axes.0)?,
            );
        }
        let wanted = if self.is_turned {
            [0, 2, 3, 1]
        } else {
            [0, 2, 1, 3]
        };
        (axes.0 == wanted)
            .then(|| Heads::of(module, value))?
            .map(|heads| (heads, factor))
    }
}

/// The dimensions of a value of four dimensions that those of a transposed one are.
#[derive(Clone, Copy)]
struct Axes([i64; 4]);

impl Axes {
    const SAME: Axes = Axes([0, 1, 2, 3]);

    fn of(perm: &[i64]) -> Option<Axes> {
        let axes: [i64; 4] = perm.try_into().ok()?;
        let mut sorted = axes;
        sorted.sort_unstable();
        (sorted == Axes::SAME.0).then_some(Axes(axes))
    }

    /// Returns the dimensions behind one more transposition.
    fn then(self, perm: &[i64]) -> Option<Axes> {
        let outer = Axes::of(perm)?;
        let inner = |axis: i64| {
            usize::try_from(axis)
                .ok()
                .and_then(|axis| self.0.get(axis).copied())
        };
        let [a, b, c, d] = outer.0.map(inner);
        Some(Axes([a?, b?, c?, d?]))
    }

    /// Follows transpositions whose results have one user.
    fn alone(module: &Module, value: ValueId) -> Option<(ValueId, Axes)> {
        let (mut value, mut axes) = (value, Axes::SAME);
        while let Some(op) = node::single_use_op(module, value, "transpose") {
            let inner = Axes::of(&node::ints(module, op, "perm")?)?;
            (value, axes) = (node::operand(module, op, 0)?, inner.then(&axes.0)?);
        }
        Some((value, axes))
    }

    /// Returns whether matrices are as they are, or turned.
    fn is_matrix(self, is_turned: bool) -> bool {
        self.0
            == if is_turned {
                [0, 1, 3, 2]
            } else {
                [0, 1, 2, 3]
            }
    }
}

fn transposition(module: &Module, value: ValueId) -> Option<OpId> {
    let op = module.defining_op(value)?;
    (node::name(module, op) == "transpose").then_some(op)
}

/// Returns weights before those that a mask leaves out are made zero, with the mask and the zero.
fn unzeroed(module: &Module, value: ValueId) -> Option<(ValueId, Option<[ValueId; 2]>)> {
    let Some(op) = node::single_use_op(module, value, "select") else {
        return Some((value, None));
    };
    let &[seen, weights, zero] = module.op(op).operands() else {
        return None;
    };
    let is_zero = node::is_f32(module, zero) && node::number(module, zero, 4) == Some(0.0);
    is_zero.then_some((weights, Some([seen, zero])))
}

/// Matches scores before softmax; returns the product, its factor, and the mask.
fn masked_scores(
    module: &Module,
    value: ValueId,
    zeroed: Option<[ValueId; 2]>,
) -> Option<(ValueId, f64, Vec<ValueId>)> {
    let Some(op) = node::single_use_op(module, value, "select") else {
        let (scores, scale, mask) = scores(module, value)?;
        return zeroed
            .is_none()
            .then_some((scores, scale, mask.into_iter().collect()));
    };
    let &[seen, scaled, number] = module.op(op).operands() else {
        return None;
    };
    let is_number = node::is_f32(module, number) && node::number(module, number, 4).is_some();
    let (scores, scale) = unscaled(module, scaled);
    let is_one_mask = zeroed.is_none_or(|[other, _]| other == seen);
    if !is_number || !is_one_mask || !is_no_larger(module, seen, scores) {
        return None;
    }
    let mask = [seen, number]
        .into_iter()
        .chain(zeroed.map(|[_, zero]| zero));
    Some((scores, scale, mask.collect()))
}

/// Matches a softmax along the last of four dimensions, whose result has one user.
pub(super) fn softmax(module: &Module, value: ValueId) -> Option<OpId> {
    let last = [-1, 3];
    if let Some(op) = node::single_use_op(module, value, "softmax") {
        let fits = last.contains(&node::int(module, op, "axis", -1))
            && node::int(module, op, "log", 0) == 0;
        return fits.then_some(op);
    }
    // Before version 13 it went over all dimensions from the axis on, which is the same for the last one.
    let op = node::single_use_op(module, value, "onnx.Softmax")?;
    last.contains(&node::int(module, op, "axis", 1))
        .then_some(op)
}

/// Returns the operand of a transposition of this order.
pub(super) fn operand_of(module: &Module, value: ValueId, order: &[i64]) -> Option<ValueId> {
    let op = module.defining_op(value)?;
    let is_it = node::name(module, op) == "transpose" && node::ints(module, op, "perm")? == order;
    is_it.then(|| node::operand(module, op, 0))?
}

/// Returns the factors of a product of matrices, as `factors` does, whose result has one user.
pub(super) fn product(module: &Module, value: ValueId) -> Option<[ValueId; 2]> {
    factors(module, node::single_use_op(module, value, "dot")?)
}

/// Returns the factors of a product of matrices of `f32`, both of four dimensions, as they are.
pub(super) fn factors(module: &Module, op: OpId) -> Option<[ValueId; 2]> {
    let is_turned = |name| node::int(module, op, name, 0) != 0;
    if node::name(module, op) != "dot" || is_turned("transpose_a") || is_turned("transpose_b") {
        return None;
    }
    let factors: [ValueId; 2] = module.op(op).operands().try_into().ok()?;
    let fits = |value: &ValueId| {
        node::is_f32(module, *value)
            && node::shape(module, *value).is_some_and(|shape| shape.len() == 4)
    };
    factors.iter().all(fits).then_some(factors)
}

/// Returns a value and the number that it is multiplied by.
pub(super) fn unscaled(module: &Module, value: ValueId) -> (ValueId, f64) {
    let of = |name| node::single_use_op(module, value, name);
    let product = of("mul").or_else(|| of("div"));
    match product.and_then(|op| node::product(module, op, 4)) {
        Some(product) if product.values.len() == 1 => (product.values[0], product.factor),
        _ => (value, 1.0),
    }
}

/// Matches scores; returns the product, its factor, and the mask that is added.
pub(super) fn scores(module: &Module, value: ValueId) -> Option<(ValueId, f64, Option<ValueId>)> {
    let Some(op) = node::single_use_op(module, value, "add") else {
        let (scores, scale) = unscaled(module, value);
        return Some((scores, scale, None));
    };
    node::pairs(module, op)
        .into_iter()
        .flatten()
        .find_map(|(scaled, mask)| {
            let (scores, scale) = unscaled(module, scaled);
            Axes::alone(module, scores).and_then(|(scores, _)| product(module, scores))?;
            // A mask makes scores no more than they are.
            let extents = [value, scores].map(|value| node::extents(module, value));
            let is_broadcast = matches!(extents, [Some(a), Some(b)] if a == b);
            (is_broadcast && node::is_f32(module, mask)).then_some((scores, scale, Some(mask)))
        })
}
