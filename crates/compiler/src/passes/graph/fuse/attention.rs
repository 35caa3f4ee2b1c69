//! Recognises multi-head attention that exporters write as many operations.
//!
//! ```text
//! q, k, v: [batch, rows, heads * width]  --Reshape--> [batch, rows, heads, width] --Transpose--> heads second
//! scores = (q kᵀ) * scale + mask
//! softmax(scores) v  --Transpose, Reshape--> [batch, rows, heads * width]
//! ```
//!
//! becomes `cpu.fused.attention`, which takes heads where they lie, and never has all scores. Of a query that a
//! mask of minus infinities lets look at no key it makes zeros, where the operations make what is no number.

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;

/// Replaces the operations of an attention by its kernel.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match attention(rewrite.module, op) {
            None => rewrite.keep(op),
            Some(found) => {
                let inputs = found.inputs.iter().chain(&found.mask);
                let inputs: Vec<ValueId> = inputs.map(|value| rewrite.mapped(*value)).collect();
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "it was a product of numbers of this type"
                )]
                let scale = found.scale as f32;
                let state = OpState::new("cpu.fused.attention")
                    .operands(inputs)
                    .attribute("heads", Attribute::integer(found.heads, Type::I64))
                    .attribute("scale", Attribute::f32(scale));
                super::replace(&mut rewrite, op, state);
            }
        }
    }
    rewrite.finish(&old);
}

/// The operands and parameters of an attention that was recognised.
struct AttentionMatch {
    /// Queries, keys and values, with heads side by side.
    inputs: [ValueId; 3],
    mask: Option<ValueId>,
    heads: i64,
    scale: f64,
}

/// Matches an attention that ends with an operation, which lays heads side by side.
fn attention(module: &Module, op: OpId) -> Option<AttentionMatch> {
    if node::name(module, op) != "reshape" {
        return None;
    }
    let turned = node::operand(module, op, 0)?;
    let mixed = transposed(module, turned, &[0, 2, 1, 3])?;
    let [weights, values] = product(module, mixed)?;
    let softmax = softmax(module, weights)?;
    let masked = node::operand(module, softmax, 0)?;
    let (scores, scale, mask) = scores(module, masked)?;
    let [queries, keys] = product(module, scores)?;
    let (queries, q_scale) = unscaled(module, queries);
    let (keys, k_scale) = unscaled(module, keys);
    let (queries, q_factor) = unscaled(module, operand_of(module, queries, &[0, 2, 1, 3])?);
    let (keys, k_factor) = unscaled(module, columns(module, keys)?);
    let (q, q_parts) = parted(module, queries)?;
    let (k, k_parts) = parted(module, keys)?;
    let (v, v_parts) = parted(module, operand_of(module, values, &[0, 2, 1, 3])?)?;
    let heads = q_parts[0];
    let inputs = [q, k, v];
    let batches: Option<Vec<Attribute>> = inputs
        .iter()
        .map(|value| node::extents(module, *value)?.into_iter().next())
        .collect();
    let is_one_batch = batches?.windows(2).all(|pair| pair[0] == pair[1]);
    let fits = [k_parts[0], v_parts[0]] == [heads; 2] && q_parts[1] == k_parts[1] && is_one_batch;
    if !fits || !is_joined(module, op, turned, heads.checked_mul(v_parts[1])?) {
        return None;
    }
    let scale = scale * q_scale * q_factor * k_scale * k_factor;
    Some(AttentionMatch {
        inputs,
        mask,
        heads,
        scale,
    })
    .filter(|_| scale.is_finite())
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

/// Returns the operand of a transposition of this order, whose result has one user.
fn transposed(module: &Module, value: ValueId, order: &[i64]) -> Option<ValueId> {
    node::single_use_op(module, value, "transpose")?;
    operand_of(module, value, order)
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

/// Matches transposed keys; returns them in the layout before heads came second.
fn columns(module: &Module, value: ValueId) -> Option<ValueId> {
    operand_of(module, value, &[0, 2, 3, 1]).or_else(|| {
        let heads = operand_of(module, value, &[0, 1, 3, 2])?;
        operand_of(module, heads, &[0, 2, 1, 3])
    })
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
            product(module, scores)?;
            // A mask makes scores no more than they are.
            let extents = [value, scores].map(|value| node::extents(module, value));
            let is_broadcast = matches!(extents, [Some(a), Some(b)] if a == b);
            (is_broadcast && node::is_f32(module, mask)).then_some((scores, scale, Some(mask)))
        })
}

/// Matches a split into heads; returns the value, the number of heads, and their width.
fn parted(module: &Module, value: ValueId) -> Option<(ValueId, [i64; 2])> {
    let op = module.defining_op(value)?;
    if node::name(module, op) != "reshape" {
        return None;
    }
    let whole = node::operand(module, op, 0)?;
    let (&[.., hidden], &[_, _, heads, width]) = (
        &node::shape(module, whole)?[..],
        &node::shape(module, value)?[..],
    ) else {
        return None;
    };
    let is_cut = heads > 0 && width > 0 && heads.checked_mul(width) == Some(hidden);
    (is_cut && keeps_rows(module, op, whole, 3)).then_some((whole, [heads, width]))
}

/// Returns whether an operation lays heads side by side, in rows of so many elements.
fn is_joined(module: &Module, op: OpId, turned: ValueId, hidden: i64) -> bool {
    let result = module.op(op).results()[0];
    let shape = node::shape(module, result);
    shape.is_some_and(|shape| shape.len() == 3 && shape[2] == hidden)
        && keeps_rows(module, op, turned, 4)
}

/// Returns whether a `Reshape` of a value of this rank leaves the first two dimensions as they are.
fn keeps_rows(module: &Module, op: OpId, value: ValueId, rank: usize) -> bool {
    if node::shape(module, value).is_none_or(|shape| shape.len() != rank) {
        return false;
    }
    let wanted = node::operand(module, op, 1).and_then(|shape| node::constant_ints(module, shape));
    let copies = node::int(module, op, "allow_zero", 0) == 0;
    if copies && wanted.is_some_and(|wanted| wanted.starts_with(&[0, 0])) {
        return true;
    }
    let result = module.op(op).results()[0];
    let extents = [value, result].map(|value| node::extents(module, value));
    matches!(extents, [Some(a), Some(b)] if a[..2] == b[..2])
}
